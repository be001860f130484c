/* mount.h - what an instance finds in its file system besides what is there: volumes, files, secrets, settings, huge pages. */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "machine/container/user.h"
#include "machine/launch/launch.h"

/* What `secret` of a file is; NULL: not there. */
typedef const char *secret_find(void *ctx, const char *secret, const char *key);

/* Makes volumes, files, secrets (on a tmpfs below the instance's folder, mode 0400, of its user) and settings.json, and says
 * how to mount them. `*ret` is the arena's. Paths of a workload are opened beneath their root; `..` and links lead nowhere.
 * On failure nothing is left mounted. Adds to `ret_env` (ends with NULL, the arena's): BERTH_SETTINGS=PATH, BERTH_HUGEPAGES_SIZE=PATH. */
int mounts_make(struct place *p, uint64_t id, const json_t *config, const struct user *user, secret_find *find,
                void *ctx, struct arena *arena, struct launch_mount **ret, size_t *ret_len, const char ***ret_env,
                struct berth_err *err);
/* Settings or files have changed: written anew by rename, so that a reader sees the old or the new, and inotify tells. */
int mounts_change(struct place *p, uint64_t id, const json_t *config, const struct user *user, secret_find *find,
                  void *ctx, struct berth_err *err);
/* Unmounts and removes what mounts_make made, also after a crash in the middle; persistent volumes stay. */
int mounts_end(struct place *p, uint64_t id, struct berth_err *err);
