/* preempt_blockers.h - clears a node for a pod that other pods keep away by a spread or an anti-affinity, not for lack
 * of room.
 *
 * All pods of the node that may be preempted are stopped; those that need not stop are reprieved, the most valuable
 * first. Nodes are tried in the order of a lower bound on the cost, up to a limit; the first node that works is used.
 */
#pragma once

#include "core/preempt/preempt_attempt.h"
#include "core/preempt/preempt_cost.h"

/* Reserves a place for one more pod of the demand by stopping victims; returns false if nothing was done. */
bool preempt_blockers_clear(struct preempt_attempt *e, struct demand *w, const struct preemptor *a);
