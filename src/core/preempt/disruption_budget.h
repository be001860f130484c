/* disruption_budget.h - how many of some pods may still be stopped for others, as a plan goes on.
 *
 * What the plan has stopped is noted from its actions, and given back when they are. A pod that counts against several budgets
 * needs a place in each.
 */
#pragma once

#include "core/preempt/victims.h"

/* Notes what there is; NULL where nobody has put a budget. */
struct budgets *budgets_new(struct berth_plan *p);
void budgets_done(struct budgets *b);
/* Actions from there on were taken back, or stand elsewhere. */
void budgets_rewind(struct berth_plan *p, size_t acts);

/* Puts parties that could not be stopped after those before them without breaking a budget behind the others, each in the order
 * they had; or leaves them out, if none may be broken. Returns how many are left. */
uint32_t budgets_order(struct berth_plan *p, uint32_t *parties, uint32_t len, bool may_break);
/* Pods of these parties that would break a budget if all of them were stopped. */
uint32_t budgets_broken(struct berth_plan *p, const uint32_t *parties, uint32_t len);
/* Pods that the plan has stopped beyond what budgets allow. */
uint32_t budgets_overspent(struct berth_plan *p);
/* Changes whenever something is given back. */
uint32_t budgets_turn(const struct berth_plan *p);
