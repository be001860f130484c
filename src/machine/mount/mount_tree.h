/* mount_tree.h - folders that others have written in: opened beneath a root, emptied, removed, never left through a
 * link.
 *
 * Nothing here follows a symbolic link or crosses into a mount unless it says so, so that what an instance has
 * planted leads nowhere. Paths are those of the agent's own folder; what a workload wrote is checked in mount_plan.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/launch/instance_dir.h"
#include "machine/launch/state_file.h"

/* Opens `path` below `root`, without links, "..", or mounts on the way. -errno. */
int tree_open(int root, const char *path, int flags, mode_t mode);
/* Opens `path`, relative to `root` as if that were "/": links are followed, but never out of it. -errno. */
int tree_open_in(int root, const char *path, int flags);
/* An absolute path as it is: no symbolic link anywhere on the way (-ELOOP). */
int tree_open_real(const char *path, int flags);

/* STATE/instances/ID. -ENOENT: there is none. */
int tree_instance(const struct place *p, uint64_t id);
/* Makes a folder where there is none and opens it. -errno. */
int tree_folder(int root, const char *name, mode_t mode);
/* Removes all of it. What is mounted in it stays, and is -EBUSY. Not there: success. Time of what is in it. */
int tree_remove(int root, const char *name);
/* Removes all that is in a folder, but not the folder. */
int tree_empty(int folder);
/* Is there nothing in it? False where it cannot be read. */
bool tree_is_empty(int folder);
/* Bytes that it takes on disk; a folder takes 4 KiB at least. -EOVERFLOW: it is so deep, or has so many folders in
 * one, that counting it would take more than 64 MiB of memory. */
int tree_bytes(int folder, uint64_t *ret);
/* -EFBIG: the folder takes more bytes than that, or has more entries in it, at any depth. Ends as soon as it is known. */
int tree_fits(int folder, uint64_t bytes_max, uint64_t entries_max);
/* Calls back for everything in a folder, however deep, with the folder that it is in; not for the folder itself.
 * Mounts in it are left out. Ends with what is other than 0; -EOVERFLOW as tree_bytes. */
typedef int tree_visit(void *ctx, int folder, const char *name);
int tree_each(int folder, tree_visit *visit, void *ctx);
/* Copies all of a folder's content: folders, files (shared blocks where the file system can), links; owners,
 * permissions without set-user-id, times. Devices and sockets are left out. */
int tree_copy(int from, int to);

/* Writes a whole file by a temporary one and rename; of this owner, with this mode. -errno. */
int tree_write(int folder, const char *name, const void *text, size_t len, uid_t uid, gid_t gid, mode_t mode);
/* Reads a whole regular file of at most `max` bytes, with a NUL behind it; mem_free. -EFBIG: it is longer. */
int tree_read(int folder, const char *name, size_t max, char **ret, size_t *ret_len);

/* Unmounts all that is mounted at or below an absolute path, however deep, also what is busy. -EBUSY: something
 * stays. */
int mounts_below_end(const char *path, struct berth_err *err);
/* How many mounts there are at or below it. -errno. */
int mounts_below_count(const char *path);
