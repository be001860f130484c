/* uid.h - uids of users on the cluster's nodes: one for each user, the same on every node, never reused.
 *
 * The uid is in the user's document (`uid`) and is assigned by the daemon. It comes from a counter that only grows
 * (KIND_COUNTER "uids") and starts at the setting uid_first. A user that is deleted and created again has another uid,
 * so the new user does not own the old user's files. Agents get the uid from the configuration of each instance.
 */
#pragma once

#include "control/state/change.h"

enum { UID_LAST = 0x6FFFFFFF }; /* nodes use higher numbers for containers (machine/container/user_range.h) */

struct control;

/* Takes the next uid. Guards against a concurrent request that takes the same one. -EDQUOT: none is left. */
int uid_take(struct change *c, uint32_t *ret, struct berth_err *err);
/* Assigns a uid to every user that has none, as users of earlier versions do; *ret: how many there were. Runs at the
 * start and commits before it returns. */
int control_uids_assign(struct control *c, size_t *ret, struct berth_err *err);
