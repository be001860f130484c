/* image_user.h - whom an image wants to run as: `User` of its configuration, by /etc/passwd and /etc/group of the image.
 *
 * Both are strangers' files: opened beneath the image's root as if that were "/", only where they are regular files, and read up
 * to a bound. Nothing they say is believed but numbers, which mean something in the container's user namespace alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { IMAGE_GROUPS_MAX = 64, IMAGE_USERS_BYTES_MAX = 1 << 20 };

struct image_user {
    uint32_t uid, gid;
    uint32_t groups[IMAGE_GROUPS_MAX]; /* further ones; what is beyond the bound is left out */
    size_t groups_len;
};

/* `user`: USER or USER:GROUP, each a name or a number; NULL and "": root, without a look at any file. As other runtimes have it: a number that no line has is taken as
 * it is, with group 0; with a GROUP there are no further ones. -EINVAL: there is no such name, or the files cannot be read. */
int image_user_find(int root, const char *user, struct image_user *ret, struct berth_err *err);
