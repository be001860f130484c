/* user_range.h - ranges of further uids and gids of an owner, for users other than root in the owner's containers.
 *
 * An owner with a number of the agent's range has a fixed slot of 65,536 numbers, from 0x70000000 up, where systemd's
 * container ranges end; the two slots that systemd reserves (0x7FFE0000 to 0x7FFFFFFF) are left out. An owner with an
 * account has the ranges of /etc/subuid and /etc/subgid.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { USER_RANGE_IDS = 65536, USER_RANGE_SLOTS = 4094 + 32767 };

/* User 1 of a container is `first`. */
struct user_range {
    uint32_t first, count; /* count 0: none */
};

/* Returns the slot of a uid. Uids that differ by less than USER_RANGE_SLOTS have different slots. */
unsigned user_range_slot(uid_t uid);
/* Returns at most USER_RANGE_IDS - 1 numbers: the first of the 65,536 is left out, so that the low 16 bits equal the
 * uid inside the container. */
struct user_range user_range_of_slot(unsigned slot);

/* Returns the largest range for an account, by name or number, in a file such as /etc/subuid, cut to USER_RANGE_IDS - 1
 * numbers. Empty if there is no file or line, or if the range contains `own`, the account's own number. Invalid lines
 * are skipped. */
struct user_range user_range_read(const char *path, const char *name, uid_t uid, uint32_t own);
