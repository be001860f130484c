/* batch_group.h - finds the actions of a plan that must be committed together.
 *
 * Actions belong together in these cases: a gang is placed as a whole. A reservation needs the stops that it waits for.
 * A pod that is lost or stopped and placed again would run twice if only the placement were committed. On a node with
 * reservations, a stop or a dropped reservation frees reserved resources for others at once. A volume that becomes free
 * on one node may be used on another. Freed quota may be used by other workloads of the same quota. All other actions
 * are independent.
 */
#pragma once

#include "control/state/state.h"

struct batch_groups;

struct batch_groups *batch_groups_new(const struct state *s);
void batch_groups_free(struct batch_groups *g);

/* Records that an earlier plan is making a reservation on this node. Call before batch_groups_read. */
void batch_groups_reserved(struct batch_groups *g, const char *node);
/* Reads the whole plan, once. */
void batch_groups_read(struct batch_groups *g, const struct berth_plan *plan);
/* Returns the number of the action's group, above 0; 0: the action is independent. */
uint64_t batch_group_of(struct batch_groups *g, const struct berth_action *a);
