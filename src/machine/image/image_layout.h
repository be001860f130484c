/* image_layout.h - an OCI image layout on disk: which manifest a tag means, its configuration, its layers.
 *
 * Whoever wrote it is not trusted: digests are names of files only if they are digests, documents are bounded, and what is
 * taken into the agent's own folder is verified by what unpacks it (umoci compares every blob with its digest).
 *
 * And layouts that are made here, of what a registry sent (image_manifest.c).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/image/image_name.h"

/* The digest of the manifest that `tag` ("": the only one) means for this machine. `name` stands in errors. */
int layout_find(int layout, const char *tag, const char *name, char ret[static IMAGE_DIGEST_MAX],
                struct berth_err *err);

/* Makes `to`, an empty folder, a layout of this one manifest under the tag "image": manifest and configuration copied, layers
 * linked to. `layout_path`: how to reach `layout` by links. *ret_config: the image's configuration. */
int layout_take(int layout, const char *layout_path, const char *digest, int to, const char *name, json_t **ret_config,
                struct berth_err *err);

/* A document of a registry's, as sent, whose digest the caller has compared: does this index list that manifest for this machine? */
bool index_lists(const char *text, size_t len, const char *digest);
/* Makes `to`, an empty folder, a layout without layers of what a manifest (OCI's, or Docker's of schema 2) names: *ret is the
 * digest of a manifest of OCI's with the same configuration and layers in it. `each` is called for each of these, once, with
 * the folder where it belongs under the hexadecimal part of its digest; what is not 0 ends it. */
int layout_make(const char *text, size_t len, int to, const char *name,
                int (*each)(void *ctx, const char *digest, uint64_t size, int blobs), void *ctx,
                char ret[static IMAGE_DIGEST_MAX], struct berth_err *err);
