/* user_move.h - gives what an owner has on this machine to another number: homes and local volumes.
 *
 * For owners whose number was this node's own and is the cluster's now. Only what has one of the old numbers changes,
 * so a move that a crash has ended is done again from the start. Symbolic links are changed themselves and never
 * followed; mounts below a folder are left out. Nothing of the owner may run meanwhile.
 */
#pragma once

#include "machine/container/user_range.h"
#include "machine/launch/instance_dir.h"

/* Numbers of one owner: of user and group alike. */
struct user_numbers {
    uid_t own;
    struct user_range more; /* of its containers */
};

/* The home of this name, and every local volume, since owners share these. Durable when it returns. */
int user_move(struct place *p, const char *home, const struct user_numbers *from, const struct user_numbers *to,
              struct berth_err *err);
