/* disruption_budget.h - disruption budgets: how many of the selected pods may still be preempted during a plan.
 *
 * Preemptions are counted from the plan's actions, and uncounted when actions are undone. A pod that counts against
 * several budgets needs an allowed disruption in each.
 */
#pragma once

#include "core/preempt/victims.h"

/* Reads the budgets of the snapshot; NULL if there are none. */
struct budgets *budgets_new(struct berth_plan *p);
void budgets_done(struct budgets *b);
/* Call when the actions from index `acts` on were undone or moved. */
void budgets_rewind(struct berth_plan *p, size_t acts);

/* Moves victim groups that would break a budget, if stopped after those before them, behind the others; both parts keep
 * their order. With may_break false such groups are removed. Returns the number of groups left. */
uint32_t budgets_order(struct berth_plan *p, uint32_t *victim_groups, uint32_t len, bool may_break);
/* Returns the number of pods of these groups that would break a budget if all of the groups were stopped. */
uint32_t budgets_broken_by(struct berth_plan *p, const uint32_t *victim_groups, uint32_t len);
/* Returns the number of pods that the plan has stopped beyond what budgets allow. */
uint32_t budgets_exceeded_by(struct berth_plan *p);
/* Returns a counter that changes whenever a disruption is uncounted. */
uint32_t budgets_generation(const struct berth_plan *p);
