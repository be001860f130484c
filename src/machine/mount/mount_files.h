/* mount_files.h - files, secrets and settings of an instance on the node.
 *
 *     STATE/instances/ID/files/        0700
 *         settings/settings.json       the directory is mounted, so that a rename is visible
 *         d-HASH/NAME                  files of a directory that is missing or empty in the root: mounted as a whole
 *         f-HASH                       a file in a directory with others: mounted alone, constant while mounted
 *     STATE/instances/ID/secrets/      a tmpfs; the same, for directories that contain a secret
 */
#pragma once

#include "machine/mount/mount.h"
#include "machine/mount/mount_plan.h"

struct file_set {
    struct state_dir *state_dir;
    uint64_t id;
    const struct mount_plan *plan;
    const struct instance_user *user;
    secret_find *find;
    void *ctx;
};

/* Checks that every secret exists. -ENOENT with the name of a missing one. */
int files_check(const struct file_set *s, struct berth_err *err);
/* Writes all files. `root`: the instance's root, only read. Appends to `list`, which has room for each file and one
 * more. */
int files_make(const struct file_set *s, int root, struct arena *arena, struct launch_mount *list, size_t *len,
               struct berth_err *err);
/* Writes changed files and removes those that are not configured any more. */
int files_change(const struct file_set *s, struct berth_err *err);
