/* user.h - whom an owner is on this machine: an account of that name where that is wished, or a number of its own.
 *
 * The daemon gives each user one number in the whole cluster; which owner has which is remembered in
 * STATE/users.cluster. Whoever has none from the daemon has one of this node's own, from a range, remembered in
 * STATE/users. No number is given twice. When an owner who had one of the node's own comes with one of the cluster,
 * its files are moved to that (user_move.h) as soon as nothing of it runs here; until then it keeps the old one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/container/user_range.h"
#include "machine/launch/instance_dir.h"

enum { USER_GROUPS_MAX = 64 };

struct user {
    char name[64];
    char home[PLACE_PATH_MAX];
    uid_t uid;
    gid_t gid;
    gid_t groups[USER_GROUPS_MAX];
    size_t groups_len;
    bool old_number;              /* not yet the one that the daemon gave, as something of the owner runs with it */
    bool given;                   /* the numbers are of our range: nobody else on this machine has them */
    struct user_range uids, gids; /* further ones of the owner's alone, for its containers */
};

struct users;
/* `accounts`: owners run as the account of the same name where there is one, if it is a member of this group, its
 * number is not of the system's own (below 1000), and its group is not root's; NULL: no accounts. `first`: the
 * range's start. */
int users_open(struct place *p, const char *accounts, uid_t first, struct users **ret, struct berth_err *err);
void users_free(struct users *u);

struct user_ask {
    const char *owner;
    uid_t uid;       /* as the daemon says; 0: it says none */
    bool no_account; /* the owner's name is not to be taken for an account's */
    bool launch;     /* something is about to be started; else of something that was */
    bool alone;      /* nothing else of this owner is here */
};
/* Whom to run as; makes the home folder. Where the agent is not root everybody is the agent's user. On any thread;
 * one that moves an owner's files takes as long as that. */
int users_ask(struct users *u, const struct user_ask *ask, struct user *ret, struct berth_err *err);
/* The same of an owner of whom the daemon says nothing. */
int users_find(struct users *u, const char *owner, struct user *ret, struct berth_err *err);
/* Nothing of the owner is here any more: what it starts next may have another number. */
void users_rest(struct users *u, const char *owner);
