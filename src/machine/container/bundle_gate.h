/* bundle_gate.h - a container's root and the sources of its mounts, where root of its user namespace reaches them.
 *
 * That is the owner out here, who may pass neither the agent's folders nor a bundle. So all that the runtime mounts from within the
 * namespace is shown once more at STATE/roots/ID: a small tmpfs, read only, in which nobody may list anything and only the owner may
 * pass. It is private: what is mounted in it spreads to no other namespace. It is there until the container's program runs.
 *
 *   rootfs    the root (bundle.c)
 *   sys       /sys, without what is mounted in it: a namespace without a network of its own cannot have its own
 *   0, 1, ... sources of binds, and file systems that only the node's root mounts (hugetlbfs)
 *   dev-0 ... devices
 *
 * Flags (nodev, nosuid, read only) are set here and cannot be taken off inside: crun leaves them out where a bind may be written to.
 */
#pragma once

#include "base/arena.h"
#include "machine/container/userns.h"
#include "machine/image/image.h"
#include "machine/image/image_user.h"

#define GATE_FOLDER "roots"

/* Who runs in the container. */
struct inside {
    struct userns_maps maps;
    struct image_user user;
};

struct gate {
    char path[PLACE_PATH_MAX];
    const char *root, *sys; /* paths of these */
    const char **devices;   /* as many as there are in the options */
    struct launch_mount *mounts;
    size_t mounts_len;
};

/* Shows `rootfs` of the bundle's folder and what the options have, and says where; texts and lists are the arena's. Files that are the owner's on the node
 * are those of the container's user inside, whoever that is. On failure nothing is left; -EOPNOTSUPP with a sentence: something cannot be shown
 * in a user namespace on this node, which is no fault of the workload's. */
int gate_make(struct place *p, uint64_t id, int bundle, const struct inside *inside,
              const struct bundle_options *options, struct arena *arena, struct gate *ret, struct berth_err *err);
/* Unmounts it and leaves the folder, empty. What cannot go yet goes in the end. Not there: nothing. */
void gate_close(struct place *p, uint64_t id);
/* Not there: success. */
int gate_end(struct place *p, uint64_t id, struct berth_err *err);
