/* volume.h - locates or creates the data of a mount on this node. */
#pragma once

#include "machine/container/user.h"
#include "machine/launch/instance_dir.h"
#include "machine/mount/mount_plan.h"

/* Returns STATE/volumes/NAME, created for this user if it is missing; never removed. */
int volume_local(struct state_dir *p, const char *name, const struct instance_user *user,
                 char ret[static STATE_PATH_MAX], struct berth_err *err);
/* Pins a path of the node by mounting it at STATE/instances/ID/binds/INDEX, so that it cannot be replaced before the
 * instance mounts it from there. -ELOOP: the path contains a symbolic link. Mounted with nodev and nosuid. */
int volume_pin(struct state_dir *p, uint64_t id, size_t index, const char *source, bool read_only,
               char ret[static STATE_PATH_MAX], struct berth_err *err);
