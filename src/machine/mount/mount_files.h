/* mount_files.h - files, secrets and settings of an instance, on the node's side.
 *
 *   STATE/instances/ID/files/              0700
 *       settings/settings.json             the folder is mounted, so that a rename is seen
 *       d-HASH/NAME                        files of a folder that its root has not, or empty: mounted as that folder
 *       f-HASH                             a file in a folder with others: mounted alone, stays as it is while mounted
 *   STATE/instances/ID/secrets/            a tmpfs; the same, for folders that hold a secret
 */
#pragma once

#include "machine/mount/mount.h"
#include "machine/mount/mount_plan.h"

struct file_set {
    struct place *place;
    uint64_t id;
    const struct mount_plan *plan;
    const struct user *user;
    secret_find *find;
    void *ctx;
};

/* Is every secret there? -ENOENT: names the one that is not. */
int files_check(const struct file_set *s, struct berth_err *err);
/* Writes all of them. `root`: the instance's root, to look at. Appends to `list`, which has room for each file and one more. */
int files_make(const struct file_set *s, int root, struct arena *arena, struct launch_mount *list, size_t *len,
               struct berth_err *err);
/* Writes anew what differs, removes what is gone. */
int files_change(const struct file_set *s, struct berth_err *err);
