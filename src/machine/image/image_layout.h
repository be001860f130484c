/* image_layout.h - OCI image layouts on disk: the manifest of a tag, its configuration, its layers.
 *
 * Layouts are untrusted: digests become file names only if they are valid digests, documents are bounded, and umoci
 * compares every blob with its digest when it unpacks into the agent's own directory.
 *
 * Also creates layouts from the files that a registry sent (image_manifest.c).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/image/image_name.h"

/* Returns the digest of the manifest of `tag` ("": the only one) for this machine. `name` is for errors. */
int layout_find(int layout, const char *tag, const char *name, char ret[static IMAGE_DIGEST_MAX],
                struct berth_err *err);

/* Fills `to`, an empty directory, with a layout of this manifest under the tag "image": manifest and configuration are
 * copied, layers are symbolic links. `layout_path`: target of the links, the path of `layout`. *ret_config: the image's
 * configuration. */
int layout_take(int layout, const char *layout_path, const char *digest, int to, const char *name, json_t **ret_config,
                struct berth_err *err);

/* Tells whether an index, whose digest the caller has verified, lists this manifest for this machine. `text`: as the
 * registry sent it. */
bool index_lists(const char *text, size_t len, const char *digest);
/* Fills `to`, an empty directory, with a layout without blobs for a manifest (OCI, or Docker schema 2): *ret is the
 * digest of an OCI manifest with the same configuration and layers. `each` is called once for each of these and stores
 * the blob in the directory `blobs` under the hexadecimal part of its digest; a result other than 0 ends the call. */
int layout_make(const char *text, size_t len, int to, const char *name,
                int (*each)(void *ctx, const char *digest, uint64_t size, int blobs), void *ctx,
                char ret[static IMAGE_DIGEST_MAX], struct berth_err *err);
