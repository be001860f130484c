/* judge.h - is this plan right? Naively: apply its actions to the world one by one and look.
 *
 * Knows the invariants by their numbers (1 capacity, 2 ports, 3 GPUs, 10 gangs, 12 feasible, 17 no
 * limbo), work conservation, and the counts in the reasons of what waits. Knows nothing of how plans are made: it reads
 * berth.h only.
 */
#pragma once

#include "world.h"

/* The first complaint. */
struct verdict {
    bool bad;
    char text[800];
};

/* Keeps the first text only. Returns false, for the caller to return. */
bool verdict_bad(struct verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Judges the plan against the world it was made from; *ret_after (initialised by this, also on failure) is the world
 * with the plan applied, new instances numbered from before->next_id in order of the actions. */
bool judge_plan(const struct world *before, struct berth_plan *plan, struct world *ret_after, struct verdict *v);

/* Its parts. */
bool action_judge(const struct world *world, const struct berth_action *a,
                  struct verdict *v); /* before it is applied */
void action_apply(struct world *world, const struct berth_action *a);
bool state_judge(const struct world *before, const struct world *after, bool alarm, struct verdict *v);
bool relief_judge(const struct world *before, const struct world *after, struct berth_plan *plan, struct verdict *v);
bool preempt_judge(const struct world *before, const struct world *after, struct berth_plan *plan, struct verdict *v);
bool plan_breaks_budgets(const struct world *before,
                         struct berth_plan *plan); /* does it stop more than some budget allows? */
bool pendings_judge(const struct world *after, struct berth_plan *plan, struct verdict *v);
