/* image_name.h - image reference of an instance: a directory, a layout on this node, or a name in a registry; of a
 * virtual machine: a file of this node, or a URL.
 *
 * Only parses text. To add a kind of source: a member of enum image_kind, and a case in image.c.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

enum image_kind { IMAGE_NONE, IMAGE_FOLDER, IMAGE_LAYOUT, IMAGE_NAMED, IMAGE_FILE, IMAGE_URL };

enum {
    IMAGE_NAME_MAX = 240, /* used as a file name */
    IMAGE_TAG_MAX = 129,
    IMAGE_PATH_MAX = 4096,
    IMAGE_DIGEST_MAX = 72, /* "sha256:", 64 hexadecimal digits and the NUL */
};

struct image_name {
    enum image_kind kind;
    bool pull_always;
    bool plain_http;                 /* a registry on this node: plain HTTP is allowed */
    char path[IMAGE_PATH_MAX];       /* path of a directory, layout or file; URL */
    char tag[IMAGE_TAG_MAX];         /* of a layout; "": the only one */
    char name[IMAGE_NAME_MAX];       /* as written, with tag or digest */
    char repository[IMAGE_NAME_MAX]; /* without tag and digest */
    char digest[IMAGE_DIGEST_MAX];   /* of a name with digest, or of a URL; else "" */
};

/* Reads `rootfs`, `image` and `pull` of an instance's configuration. -EINVAL: neither `rootfs` nor `image`, or invalid
 * values. For a virtual machine reads `image` and `vm.sha256`; without an image IMAGE_NONE. */
int image_name_read(const json_t *config, struct image_name *ret, struct berth_err *err);
/* Tells whether the runtime is `vm`. */
bool image_is_vm(const json_t *config);
/* "sha256:" and 64 lower-case hexadecimal digits. */
bool image_digest_valid(const char *text);
/* An absolute path without "." and "..", and not "/" alone. */
bool image_path_valid(const char *path);
