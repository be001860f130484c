/* placement_budget.h - the placement budget of an account: so many pods of it are placed and have not begun to start, at most.
 *
 * An account is the first quota of a workload: its user. Without a budget one user with very many replicas would fill a whole
 * plan and its commits, and everybody else would wait for them. What is beyond the budget is placed by later plans, once
 * nodes have begun to start what was placed; meanwhile it stops nobody and reserves nothing.
 *
 * The budget counts instances in the state `assigned`, which the cluster's books have, and not what one plan places. So a plan
 * that is applied at the same moment leaves an empty next plan, however many plans are made until nodes answer. A gang that
 * is larger than the budget is placed when nothing else of its account is about to start. Moves are not counted.
 */
#pragma once

#include "core/plan/plan.h"

void starting_begin(struct berth_plan *p);
/* Before each round: what the plan has stopped meanwhile is not about to start any more. */
void starting_settle(struct berth_plan *p);
/* How many more pods of a wish (at most `most`) its account may have placed now. */
uint32_t starting_room(const struct berth_plan *p, const struct wish *w, uint32_t most);
/* May the minimum of a gang, so many pods, be placed now? */
bool starting_gang_fits(const struct berth_plan *p, const struct wish *w, uint32_t pods);
/* Counts a pod of the wish that is placed at once (sign 1) or given back. */
void starting_count(struct berth_plan *p, const struct wish *w, int sign);
