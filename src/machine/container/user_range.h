/* user_range.h - numbers of users and groups beside an owner's own, for those who are not root in the owner's containers.
 *
 * An owner with a number of the agent's range has a fixed one: 65,536 numbers from 0x70000000 up, where systemd's ranges for
 * containers end, without the two that systemd keeps for itself (0x7FFE0000 to 0x7FFFFFFF). An owner with an account has what
 * /etc/subuid and /etc/subgid say.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { USER_RANGE_IDS = 65536, USER_RANGE_SLOTS = 4094 + 32767 };

/* User 1 of a container is `first`. */
struct user_range {
    uint32_t first, count; /* count 0: none */
};

/* Which of the slots a number has. Numbers that are less than USER_RANGE_SLOTS apart have different ones. */
unsigned user_range_slot(uid_t uid);
/* At most USER_RANGE_IDS - 1 numbers: the first of 65,536 is left out, so that the last 16 bits are the user's in there. */
struct user_range user_range_given(unsigned slot);

/* The largest range that a file as /etc/subuid gives to an account, by its name or number; at most USER_RANGE_IDS - 1 of it.
 * None where there is no such file or line, or where the range would hold `own`, which is the account's already. A line that makes no
 * sense is left out. */
struct user_range user_range_read(const char *path, const char *name, uid_t uid, uint32_t own);
