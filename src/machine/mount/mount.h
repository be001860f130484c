/* mount.h - mounts of an instance: volumes, files, secrets, settings, huge pages. */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "machine/container/user.h"
#include "machine/launch/launch.h"

/* Returns the value of a secret's key; NULL: not found. */
typedef const char *secret_find(void *ctx, const char *secret, const char *key);

/* Creates volumes, files, secrets (on a tmpfs in the instance directory, mode 0400, owned by its user) and
 * settings.json, and returns the mounts for them. `*ret` is allocated from the arena. Paths given by a workload are
 * opened beneath their root; `..` and links cannot leave it. On failure nothing is left mounted. Adds to `ret_env`
 * (NULL-terminated, allocated from the arena): BERTH_SETTINGS=PATH, BERTH_HUGEPAGES_SIZE=PATH. */
int mounts_make(struct state_dir *p, uint64_t id, const json_t *config, const struct instance_user *user,
                secret_find *find, void *ctx, struct arena *arena, struct launch_mount **ret, size_t *ret_len,
                const char ***ret_env, struct berth_err *err);
/* Applies changed settings and files: each is replaced by rename, so that a reader sees the old or the new content, and
 * inotify reports the change. */
int mounts_change(struct state_dir *p, uint64_t id, const json_t *config, const struct instance_user *user,
                  secret_find *find, void *ctx, struct berth_err *err);
/* Unmounts and removes what mounts_make created, also after a crash in between; persistent volumes stay. */
int mounts_end(struct state_dir *p, uint64_t id, struct berth_err *err);
