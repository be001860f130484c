/* image_name.h - which image an instance wants: a folder, a layout on this node, or a name in a registry; of a virtual
 * machine: a file of this node, or a URL.
 *
 * Only words are looked at here. To add a kind of source: a member of enum image_kind, and a case in image.c.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

enum image_kind { IMAGE_NONE, IMAGE_FOLDER, IMAGE_LAYOUT, IMAGE_NAMED, IMAGE_FILE, IMAGE_URL };

enum {
    IMAGE_NAME_MAX = 240, /* becomes the name of a file */
    IMAGE_TAG_MAX = 129,
    IMAGE_PATH_MAX = 4096,
    IMAGE_DIGEST_MAX = 72, /* "sha256:" and 64 hexadecimal digits */
};

struct image_name {
    enum image_kind kind;
    bool pull_always;
    bool plain_http;                 /* a registry on this node: without TLS if it has none */
    char path[IMAGE_PATH_MAX];       /* of a folder, a layout or a file; a URL */
    char tag[IMAGE_TAG_MAX];         /* of a layout; "": the only one */
    char name[IMAGE_NAME_MAX];       /* as it was written, with its tag or digest */
    char repository[IMAGE_NAME_MAX]; /* without them */
    char digest[IMAGE_DIGEST_MAX];   /* where the name has one, and of a URL; else "" */
};

/* From `rootfs`, `image` and `pull` of an instance's object. Neither of the first two: -EINVAL, as for all that is no image.
 * Of a virtual machine from `image` and `vm.sha256`; without an image IMAGE_NONE. */
int image_name_read(const json_t *config, struct image_name *ret, struct berth_err *err);
/* Is its runtime `vm`? */
bool image_is_vm(const json_t *config);
/* "sha256:" and 64 lower-case hexadecimal digits. */
bool image_digest_valid(const char *text);
/* An absolute path without "." and "..", and not "/" alone. */
bool image_path_valid(const char *path);
