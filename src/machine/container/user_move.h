/* user_move.h - changes the ownership of an owner's files on this node (home and local volumes) to another number.
 *
 * For owners whose number of this node was replaced by one of the cluster. Only files with one of the old numbers
 * change, so after a crash the move is repeated from the start. Symbolic links are changed themselves and never
 * followed; mounts below a directory are skipped. No instance of the owner may run meanwhile.
 */
#pragma once

#include "machine/container/user_range.h"
#include "machine/launch/instance_dir.h"

/* Numbers of one owner, used as uids and gids. */
struct user_numbers {
    uid_t own;
    struct user_range more; /* for its containers */
};

/* Moves the home `home` and the owner's files in every local volume, since owners share volumes. Durable when it
 * returns. */
int user_move(struct state_dir *p, const char *home, const struct user_numbers *from, const struct user_numbers *to,
              struct berth_err *err);
