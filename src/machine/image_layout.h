/* image_layout.h - an OCI image layout on disk: which manifest a tag means, its configuration, its layers.
 *
 * Whoever wrote it is not trusted: digests are names of files only if they are digests, documents are bounded, and what is
 * taken into the agent's own folder is verified by what unpacks it (umoci compares every blob with its digest).
 */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "machine/image_name.h"

/* The digest of the manifest that `tag` ("": the only one) means for this machine. `name` stands in errors. */
int layout_find(int layout, const char *tag, const char *name, char ret[static IMAGE_DIGEST_MAX],
                struct berth_err *err);

/* Makes `to`, an empty folder, a layout of this one manifest under the tag "image": manifest and configuration copied, layers
 * linked to. `layout_path`: how to reach `layout` by links. *ret_config: the image's configuration. */
int layout_take(int layout, const char *layout_path, const char *digest, int to, const char *name, json_t **ret_config,
                struct berth_err *err);
