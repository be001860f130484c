/* userns.h - user namespaces of containers: id maps, and mounts with mapped ids.
 *
 * Root of a container is its owner on the node; users 1 and up are the owner's further numbers (user_range.h). The same
 * holds for groups; other groups of an account are mapped from USERNS_GROUPS up, where images have none.
 *
 * A namespace is represented by a descriptor without any process in it, used for its maps (mount_setattr). The runtime
 * creates the container's own namespace from the same maps.
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

/* Builds the maps for an owner's containers. */
void userns_maps_of(const struct instance_user *user, struct userns_maps *ret);
/* Builds an identity map in which these two ids are exchanged. */
void id_map_swap(uint32_t a, uint32_t b, struct id_map *ret);
/* Maps an id of the container to the node's; false: unmapped. */
bool id_map_out(const struct id_map *map, uint32_t inside, uint32_t *ret);
/* Maps an id of the node to the container's; false: unmapped. */
bool id_map_in(const struct id_map *map, uint32_t outside, uint32_t *ret);

/* Creates a namespace with these maps; returns a descriptor, or -errno. Forks. */
int userns_open(const struct userns_maps *maps);
/* Returns the file or directory `path` below `dir` as a detached mount without submounts, with the ids of the namespace
 * `ns`; ns -1: unchanged ids. Returns a descriptor, or -errno: -EINVAL if the file system does not support mapped
 * ids. */
int userns_tree(int dir, const char *path, int ns);
/* Classifies an error of these functions or of a related mount: EOPNOTSUPP if this node does not support the operation,
 * else the same code, since a retry may succeed. */
int userns_code(int rc);
/* Checks whether the kernel allows a container everything that it needs in a user namespace; -errno with the reason.
 * Forks, and mounts in a private namespace. */
int userns_check(struct berth_err *err);
