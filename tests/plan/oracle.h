/* oracle.h - a naive checker of plans: applies the actions of a plan to the world one by one and checks every step.
 *
 * It checks the numbered invariants (1 capacity, 2 ports, 3 GPUs, 5 single place, 10 gangs, 12 feasible, 17 no limbo),
 * work conservation, and the node counts in the reasons of pending pods. It reads berth.h only and knows nothing of how
 * plans are made.
 */
#pragma once

#include "world.h"

/* The first violation that a check found. */
struct verdict {
    bool bad;
    char text[800];
};

/* Records the violation if it is the first one. Always returns false, for the caller to return. */
bool verdict_bad(struct verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Checks the plan against the world from which it was made. *ret_after (initialised by this function, also on failure)
 * is the world with the plan applied; new instances are numbered from before->next_id in the order of the actions. */
bool plan_check(const struct world *before, struct berth_plan *plan, struct world *ret_after, struct verdict *v);

/* The parts of plan_check. */
bool action_check(const struct world *world, const struct berth_action *a,
                  struct verdict *v); /* called before the action is applied */
void action_apply(struct world *world, const struct berth_action *a);
bool state_check(const struct world *before, const struct world *after, bool alarm, struct verdict *v);
bool relief_check(const struct world *before, const struct world *after, struct berth_plan *plan, struct verdict *v);
bool preempt_check(const struct world *before, const struct world *after, struct berth_plan *plan, struct verdict *v);
bool plan_breaks_budgets(const struct world *before,
                         struct berth_plan *plan); /* true: the plan preempts more pods than some budget allows */
bool pendings_check(const struct world *after, struct berth_plan *plan, struct verdict *v);
