/* bundle_gate.h - the gate: a directory through which root of a container's user namespace reaches the container's root
 * and mount sources.
 *
 * Root of the namespace is the owner on the node, who may enter neither the agent's directories nor a bundle.
 * Therefore, everything that the runtime mounts from within the namespace appears once more at STATE/roots/ID: a small
 * read-only tmpfs that only the owner can enter and that cannot be listed. The mount is private, so its mounts do not
 * propagate to other namespaces. It exists until the container's program runs.
 *
 *     rootfs    the root (bundle.c)
 *     sys       /sys without submounts: a user namespace without its own network namespace cannot mount sysfs
 *     0, 1, ... sources of binds, and file systems that only the node's root can mount (hugetlbfs)
 *     dev-0 ... devices
 *
 * Flags (nodev, nosuid, read-only) are set here and cannot be cleared inside; crun omits them for writable binds.
 */
#pragma once

#include "base/arena.h"
#include "machine/container/userns.h"
#include "machine/image/image.h"
#include "machine/image/image_user.h"

#define GATE_FOLDER "roots"

/* The user namespace's maps and the container's user. */
struct container_ids {
    struct userns_maps maps;
    struct image_user user;
};

struct bundle_gate {
    char path[STATE_PATH_MAX];
    const char *root, *sys; /* paths in the gate */
    const char **devices;   /* as many as in the options */
    struct launch_mount *mounts;
    size_t mounts_len;
};

/* Creates the gate with `rootfs` of the bundle and the mounts and devices of the options, and returns their paths;
 * texts and lists are allocated from the arena. Files of the owner on the node belong to the container's user inside.
 * On failure everything is removed; -EOPNOTSUPP with a reason: this node cannot provide a mount in a user namespace. */
int gate_make(struct state_dir *p, uint64_t id, int bundle, const struct container_ids *inside,
              const struct bundle_options *options, struct arena *arena, struct bundle_gate *ret,
              struct berth_err *err);
/* Unmounts the gate and keeps its empty directory; gate_end retries a failure. Does nothing without a gate. */
void gate_close(struct state_dir *p, uint64_t id);
/* Unmounts and removes the gate. Success if there is none. */
int gate_end(struct state_dir *p, uint64_t id, struct berth_err *err);
