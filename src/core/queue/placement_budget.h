/* placement_budget.h - the placement budget of an account: how many of its pods may be placed and not yet starting.
 *
 * An account is the first quota of a workload: its user. Without a budget, a user with very many replicas would fill a
 * whole plan and its commits, and all other users would wait for them. Later plans place the pods beyond the budget,
 * once nodes have begun to start the earlier ones. Until then such pods preempt nothing and reserve nothing.
 *
 * The budget counts instances in the state `assigned` in the cluster, not the placements of one plan. So when a plan
 * has been applied, the next plan at the same moment is empty, however many plans are made before nodes respond. A gang
 * larger than the budget is placed when its account has no other pod that is about to start. Moves are not counted.
 */
#pragma once

#include "core/plan/plan.h"

void placement_budget_begin(struct berth_plan *p);
/* Call before each round: subtracts the assigned instances that the plan has stopped or lost since the last call. */
void placement_budget_update(struct berth_plan *p);
/* Returns how many more pods of the demand (at most `most`) its account may have placed now. */
uint32_t placement_budget_room(const struct berth_plan *p, const struct demand *w, uint32_t most);
/* Returns whether the gang minimum of `pods` pods may be placed now. */
bool placement_budget_gang_fits(const struct berth_plan *p, const struct demand *w, uint32_t pods);
/* Counts a pod of the demand that is placed now (sign 1), or removes it from the count (sign -1). */
void placement_budget_count(struct berth_plan *p, const struct demand *w, int sign);
