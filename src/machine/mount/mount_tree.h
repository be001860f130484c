/* mount_tree.h - safe operations on directory trees with untrusted content: opening beneath a root, emptying, removing,
 * counting, copying.
 *
 * Unless stated otherwise no function follows a symbolic link or crosses a mount point, so links planted by an instance
 * have no effect. Paths are those of the agent's state directory; paths given by a workload are checked in
 * mount_plan.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/launch/instance_dir.h"
#include "machine/launch/state_file.h"

/* Opens `path` below `root`; links, ".." out of the root and mount points on the path are errors. -errno. */
int tree_open(int root, const char *path, int flags, mode_t mode);
/* Opens `path` with `root` as "/": links are followed, but never out of it. -errno. */
int tree_open_in(int root, const char *path, int flags);
/* Opens an absolute path without any symbolic link on it (-ELOOP). */
int tree_open_real(const char *path, int flags);

/* Opens STATE/instances/ID. -ENOENT: it does not exist. */
int tree_open_instance(const struct state_dir *p, uint64_t id);
/* Opens a directory, creating it if it is missing. -errno. */
int tree_folder(int root, const char *name, mode_t mode);
/* Removes a tree. -EBUSY: something is mounted in it, which is kept. Success if it does not exist. Takes time
 * proportional to its content. */
int tree_remove(int root, const char *name);
/* Removes the content of a directory, but not the directory. */
int tree_empty(int folder);
/* Tells whether the directory is empty. False if it cannot be read. */
bool tree_is_empty(int folder);
/* Counts the bytes on disk; a directory counts at least 4 KiB. -EOVERFLOW: the tree is so deep, or has so many
 * subdirectories in one, that counting would take more than 64 MiB of memory. */
int tree_bytes(int folder, uint64_t *ret);
/* -EFBIG: the tree has more bytes or more entries, at any depth. Stops as soon as that is known. */
int tree_fits(int folder, uint64_t bytes_max, uint64_t entries_max);
/* Calls `visit` for every entry at any depth, with the directory that contains it; not for `folder` itself. Mounts in
 * it are skipped. Stops at the first result other than 0; -EOVERFLOW as in tree_bytes. */
typedef int tree_visit(void *ctx, int folder, const char *name);
int tree_each(int folder, tree_visit *visit, void *ctx);
/* Copies the content of a directory: subdirectories, files (with shared blocks if the file system supports it) and
 * links, with owners, permissions without set-user-id, and times. Devices and sockets are skipped. */
int tree_copy(int from, int to);

/* Writes a file with this owner and mode by a temporary file and rename. -errno. */
int tree_write(int folder, const char *name, const void *text, size_t len, uid_t uid, gid_t gid, mode_t mode);
/* Reads a regular file of at most `max` bytes, NUL-terminated; free with mem_free. -EFBIG: it is larger. */
int tree_read(int folder, const char *name, size_t max, char **ret, size_t *ret_len);

/* Unmounts everything at or below an absolute path, including busy mounts. -EBUSY: a mount is left. */
int mounts_below_end(const char *path, struct berth_err *err);
/* Returns the number of mounts at or below it. -errno. */
int mounts_below_count(const char *path);
