/* userns.h - user namespaces of containers: who on the node the users in one are, and files as they are seen from there.
 *
 * Root in there is the owner out here, users 1 and on are the owner's further numbers (user_range.h). Groups alike; other
 * groups of an account are in there from USERNS_GROUPS on, where no image has any.
 *
 * A namespace here is a descriptor that nobody is in: it stands for its maps (mount_setattr). The runtime makes the container's
 * own from the same maps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/container/user.h"

enum { USERNS_GROUPS = 65536, ID_EXTENTS_MAX = USER_GROUPS_MAX + 2 };

struct id_extent {
    uint32_t inside, outside, count;
};

struct id_map {
    struct id_extent at[ID_EXTENTS_MAX];
    size_t len;
};

struct userns_maps {
    struct id_map uids, gids;
};

/* Of an owner's containers. */
void userns_maps_of(const struct user *user, struct userns_maps *ret);
/* Everybody is who they are, but for these two, who change places. */
void id_map_swap(uint32_t a, uint32_t b, struct id_map *ret);
/* Who that is on the node; false: nobody. */
bool id_map_out(const struct id_map *map, uint32_t inside, uint32_t *ret);
/* The other way. */
bool id_map_in(const struct id_map *map, uint32_t outside, uint32_t *ret);

/* A namespace with these maps: a descriptor, or -errno. Forks. */
int userns_open(const struct userns_maps *maps);
/* The file or folder at `path` below `dir` as a mount of its own that is nowhere yet (without what is mounted in it), where ids are those
 * of the namespace `ns`; -1: as they are. A descriptor, or -errno: -EINVAL where the file system cannot. */
int userns_tree(int dir, const char *path, int ns);
/* What an error of these, or of a mount for them, means: EOPNOTSUPP where it is not possible here, else itself: it may be
 * possible the next time. */
int userns_code(int rc);
/* Whether the kernel lets a container have all that it needs in one; -errno with the reason. Forks, and mounts where nobody sees it. */
int userns_check(struct berth_err *err);
