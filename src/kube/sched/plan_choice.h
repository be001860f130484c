/* plan_choice.h - of several plans for the same moment, the one that leaves the fewest pods waiting.
 *
 * A profile says which nodes are better, and where all find a place it decides alone. Where some do not, the same pods may fit by
 * another: so the whole is computed again by one that packs, by one that spreads, and, where that is quickly done, some times with nodes in
 * random order (of fixed seeds: the same cluster gives the same choice). What leaves fewer of the highest priority waiting is
 * taken, then of the next; of equal ones the first, by the profile that was asked for.
 *
 * It is also tried with the smallest first of each priority: who could go elsewhere, if only others gave way there, may take the place
 * of one that could not. That is taken only where nobody of that priority or above waits for it: who came first is not put off by
 * smaller ones again and again.
 */
#pragma once

#include "berth.h"

struct kube_choice {
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
};
void kube_choice_done(struct kube_choice *c);

/* The plan leaves something to be remembered, such as since when somebody is promised a place. */
void kube_remember(struct berth_cluster *cluster, const struct berth_plan *plan);

/* Fails as berth_plan_make does by the given policy, which names its profile. */
int kube_choose(struct berth_cluster *cluster, int64_t now_ns, const struct berth_policy *policy,
                struct kube_choice *ret, struct berth_err *err);
