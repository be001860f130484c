/* spare_victims.h - makes a plan again so that it stops no victim needlessly.
 *
 * Victims are chosen one demand after another. A later decision may make a stop needless: another pod evens out the
 * spread that the stop was for, or other victims would have kept a budget. A stop cannot be revoked then, since later
 * decisions rest on it. Instead the plan is made once more from the beginning with these victims protected: until
 * everything that can be placed otherwise is placed, they are not stopped for others and no budget is broken.
 * Afterwards they may be stopped like all others, so the result leaves nothing to do at the same moment, like every
 * plan.
 *
 * The new plan is used only if no workload has more pods waiting, and fewer wait or less is wasted. Which stops are
 * needless is only an estimate: an error costs time, never a place. A plan without preemption, or without needless
 * stops, is made once.
 */
#pragma once

#include "core/plan/plan.h"

/* Restrictions on a plan that is made again; they are lifted once nothing more can be placed under them. */
struct victim_protection {
    uint64_t *instances; /* [slot]: a bit per instance that is not stopped for others */
    bool keeps_budgets;  /* no budget is broken */
    bool break_budgets;  /* the policy's setting, which applies once the protection is lifted */
};

/* Needless effects of a plan. */
struct preemption_waste {
    uint32_t broken;   /* pods stopped beyond what budgets allow */
    uint32_t needless; /* victim groups that could have stayed */
    uint32_t stops;    /* pods stopped for others */
};

/* Measures the waste of the plan and adds the needless victims to `add`. *ret_more: whether that protects any instance
 * or budget not protected before. Does not change the plan. The time grows with the number of stops for others. */
struct preemption_waste preemption_waste_of(struct berth_plan *p, struct victim_protection *add, bool *ret_more);

/* Returns whether `again` is better than `first`: no workload has more pods waiting, and fewer pods wait or less is
 * wasted. Both plans are made from the same snapshot. */
bool wastes_less(const struct berth_plan *again, struct preemption_waste of_again, const struct berth_plan *first,
                 struct preemption_waste of_first);
