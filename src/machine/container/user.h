/* user.h - maps owners to users of this machine: to the account of the same name if enabled, else to a uid of their
 * own.
 *
 * The daemon assigns each user a number for the whole cluster, recorded in STATE/users.cluster. Owners without such a
 * number get one of this node's range, recorded in STATE/users. No number is assigned twice. When the daemon assigns a
 * number to an owner who had one of this node, the owner's files are moved to it (user_move.h) as soon as no instance
 * of the owner runs here; until then the old number is used.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/container/user_range.h"
#include "machine/launch/instance_dir.h"

enum { USER_GROUPS_MAX = 64 };

struct instance_user {
    char name[64];
    char home[STATE_PATH_MAX];
    uid_t uid;
    gid_t gid;
    gid_t groups[USER_GROUPS_MAX];
    size_t groups_len;
    bool old_number;              /* still the node's number, because instances of the owner run with it */
    bool given;                   /* the numbers are of the agent's range: no account has them */
    struct user_range uids, gids; /* further numbers of this owner, for its containers */
};

struct user_table;
/* `accounts`: owners run as the account of the same name if it is a member of this group, its uid is 1000 or more, and
 * its primary group is not root's; NULL: no accounts. `first`: start of the node's range; 0: 200000. */
int users_open(struct state_dir *p, const char *accounts, uid_t first, struct user_table **ret, struct berth_err *err);
void users_free(struct user_table *u);

struct user_query {
    const char *owner;
    uid_t uid;       /* assigned by the daemon; 0: none */
    bool no_account; /* do not use an account of this name */
    bool launch;     /* an instance is about to be started; else it is running already */
    bool alone;      /* no other instance of this owner is here */
};
/* Returns the user to run as; with `launch`, creates the home directory. An agent that is not root uses its own user
 * for all owners. Thread-safe; takes long while an owner's files are moved. */
int users_resolve(struct user_table *u, const struct user_query *ask, struct instance_user *ret, struct berth_err *err);
/* Like users_resolve, for an owner without a number of the daemon. */
int users_find(struct user_table *u, const char *owner, struct instance_user *ret, struct berth_err *err);
/* No instance of the owner runs here any more: the next one may use another number. */
void users_release(struct user_table *u, const char *owner);
