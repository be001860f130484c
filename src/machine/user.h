/* user.h - whom an owner is on this machine: an account of that name where that is wished, or a number of its own.
 *
 * Numbers are given from a range, remembered in STATE/users, never given twice.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/place.h"
#include "machine/user_range.h"

enum { USER_GROUPS_MAX = 64 };

struct user {
    char name[64];
    char home[PLACE_PATH_MAX];
    uid_t uid;
    gid_t gid;
    gid_t groups[USER_GROUPS_MAX];
    size_t groups_len;
    bool given;                   /* the numbers are of our range: nobody else on this machine has them */
    struct user_range uids, gids; /* further ones of the owner's alone, for its containers */
};

struct users;
/* `accounts`: owners run as the account of the same name where there is one (never as root). `first`: the range's start. */
int users_open(struct place *p, bool accounts, uid_t first, struct users **ret, struct berth_err *err);
void users_free(struct users *u);
/* Whom to run as; makes the home folder. Where the agent is not root everybody is the agent's user. On any thread. */
int users_find(struct users *u, const char *owner, struct user *ret, struct berth_err *err);
