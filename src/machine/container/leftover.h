/* leftover.h - what somebody has left where all may write: temporary files, shared memory, queues, semaphores.
 *
 * An instance's own folders go with it. What it put into /tmp or gave to the kernel to keep would stay for ever, so it goes once
 * nothing of its owner runs on this machine any more: until then the owner's other instances may use it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/container/user_range.h"

/* /tmp, /var/tmp, /dev/shm, /dev/mqueue; ends with NULL. */
extern const char *const leftover_folders[];

/* Has any process of this machine one of these numbers? */
bool user_lives(uid_t uid, struct user_range more);
/* Removes what a user, or one of its further numbers, owns in these folders, and of System V's shared memory, semaphores and queues; nothing that was made or
 * changed later than `until_ns` (since 1970), and nothing at all while a process of these lives. What is in folders of
 * others is not looked for. Returns how many went. */
size_t leftovers_remove(uid_t uid, struct user_range more, const char *const *folders, int64_t until_ns);
