/* leftover.h - removes what a user has left in shared places: temporary files, shared memory, message queues,
 * semaphores.
 *
 * An instance's own directories are removed with it. Files in /tmp and System V IPC objects would stay for ever, so
 * they are removed when no instance of their owner runs on this node any more; until then the owner's other instances
 * may use them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/container/user_range.h"

/* /tmp, /var/tmp, /dev/shm, /dev/mqueue; NULL-terminated. */
extern const char *const leftover_folders[];

/* Tells whether a process of this machine has one of these uids. */
bool user_has_processes(uid_t uid, struct user_range more);
/* Removes what these uids own directly in these directories, and their System V shared memory, semaphores and queues.
 * Skips what was created or changed after `timeout_at_ns` (since 1970). Does nothing while a process with one of these
 * uids lives. Subdirectories of other users are not searched. Returns the number of removed objects. */
size_t leftovers_remove(uid_t uid, struct user_range more, const char *const *folders, int64_t until_ns);
