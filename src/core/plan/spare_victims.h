/* spare_victims.h - a plan made again so that it stops no victim that need not be stopped.
 *
 * Victims are chosen one demand after another. What is decided later may make a stop needless: another pod evens out
 * the spread that the stop was for, or it turns out that other victims would have kept a budget. A stop cannot be
 * taken back then, since later decisions rest on it. Instead the plan is made once more, from the beginning, with
 * these victims protected: they are not stopped for others until everything is placed that can be without that, and no
 * budget is broken until then. Afterwards they may be stopped like all others, so the result leaves nothing to do at
 * the same moment, like every plan.
 *
 * The new plan counts only if no workload has more pods waiting, and fewer wait or less is wasted. Which stops are
 * needless is only an estimate: an error costs time, and never a place. A plan without preemption, or without needless
 * stops, is made once.
 */
#pragma once

#include "core/plan/plan.h"

/* What a plan that is made again must not do at first. */
struct protection {
    uint64_t *instances; /* [slot]: a bit each: not stopped for others */
    bool keeps_budgets;  /* no budget is broken */
    bool break_budgets;  /* ... what the policy says, from then on */
};

/* What a plan does for nothing. */
struct waste {
    uint32_t broken;   /* pods that it stops beyond what budgets allow */
    uint32_t needless; /* victim groups that could have stayed */
    uint32_t stops;    /* for others */
};

/* Finds what the plan wastes, and protects it in `add`; *ret_more: is anything protected that was not? Leaves the plan
 * as it is. The time grows with the number of stops for others. */
struct waste waste_of(struct berth_plan *p, struct protection *add, bool *ret_more);

/* Does no workload have more pods waiting by `again` than by `first`, and do fewer wait, or is less wasted? Both are
 * made from the same snapshot. */
bool wastes_less(const struct berth_plan *again, struct waste of_again, const struct berth_plan *first,
                 struct waste of_first);
