/* preempt_blockers.h - a node cleared for a pod that others keep away from it, not for want of room: by a spread, or because they and it
 * must stay apart.
 *
 * All that may go from the node is stopped, and whoever need not go stays, the most valuable first. Nodes are looked at in the
 * order of the least harm that could be done there, some of them only: the first that will do is taken.
 */
#pragma once

#include "core/preempt/preempt_attempt.h"
#include "core/preempt/preempt_cost.h"

/* One more pod of the wish is promised a place by stopping others; false: nothing was done. */
bool clear_for(struct effort *e, struct wish *w, const struct harm_asker *a);
