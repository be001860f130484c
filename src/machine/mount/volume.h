/* volume.h - where the data of a mount is on this node. */
#pragma once

#include "machine/container/user.h"
#include "machine/launch/instance_dir.h"
#include "machine/mount/mount_plan.h"

/* STATE/volumes/NAME, made for this user where it is missing, kept for ever. */
int volume_local(struct place *p, const char *name, const struct user *user, char ret[static PLACE_PATH_MAX],
                 struct berth_err *err);
/* Holds on to a path of the node: mounts it at STATE/instances/ID/binds/INDEX, so that nobody can put something else in its
 * place before the instance mounts it from there. A path with a symbolic link in it is refused. Without devices and
 * set-user-id. */
int volume_hold(struct place *p, uint64_t id, size_t index, const char *source, bool read_only,
                char ret[static PLACE_PATH_MAX], struct berth_err *err);
