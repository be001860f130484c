/* uid.h - numbers of users on the cluster's machines: one for each user, the same on every node, never given twice.
 *
 * A number stands in the user's document (`uid`) and is the daemon's to give. It comes from a counter that only grows
 * (KIND_COUNTER "uids") and begins at the setting uid_first. A user who is deleted and made again has another number,
 * so that files of the one are not the other's. Agents have it from the configuration of each instance.
 */
#pragma once

#include "control/state/change.h"

enum { UID_LAST = 0x6FFFFFFF }; /* from there on nodes have numbers for containers (machine/container/user_range.h) */

struct control;

/* The next number. Guards against a second user who takes it at the same time. -EDQUOT: none is left. */
int uid_take(struct change *c, uint32_t *ret, struct berth_err *err);
/* Gives a number to every user that has none, as users of earlier versions do, and tells how many there were. Commits
 * before it returns; at the start. */
int control_uids_allot(struct control *c, size_t *ret, struct berth_err *err);
