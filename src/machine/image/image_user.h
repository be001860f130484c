/* image_user.h - finds the user that an image runs as: `User` of its configuration, by the image's /etc/passwd and
 * /etc/group.
 *
 * Both files are untrusted: they are opened with the image's root as "/", only if they are regular files, and read up
 * to a bound. Only ids are taken from them, which are valid only in the container's user namespace.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { IMAGE_GROUPS_MAX = 64, IMAGE_USERS_BYTES_MAX = 1 << 20 };

struct image_user {
    uint32_t uid, gid;
    uint32_t groups[IMAGE_GROUPS_MAX]; /* supplementary groups; those beyond the bound are dropped */
    size_t groups_len;
};

/* `user`: USER or USER:GROUP, each a name or a number; NULL and "": root, without reading files. As in other runtimes,
 * a number without an entry is used as it is, with group 0; with a GROUP there are no supplementary groups. -EINVAL:
 * unknown name, or unreadable files. */
int image_user_find(int root, const char *user, struct image_user *ret, struct berth_err *err);
