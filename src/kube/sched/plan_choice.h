/* plan_choice.h - computes several plans for the same moment and chooses the one that leaves the fewest pods waiting.
 *
 * The profile decides which nodes are better; if every pod finds a place, its plan is chosen. Otherwise the same pods
 * may fit another way, so the plan is computed again with a packing profile, with a spreading one and, if that is fast
 * enough, several times with nodes in random order (fixed seeds: the same cluster gives the same choice). The plan that
 * leaves fewer pods of the highest priority waiting is chosen, then of the next priority; among equal plans the first,
 * that of the requested profile.
 *
 * Plans with the smallest pods first within a priority are tried too: a pod that could fit elsewhere may then give up
 * its place to one that could not. Such a plan is chosen only if no pod of that priority or above waits only in it:
 * small pods must not delay earlier pods again and again.
 */
#pragma once

#include "berth.h"

struct kube_choice {
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
};
void kube_choice_done(struct kube_choice *c);

/* Stores in the cluster what the plan needs remembered, such as since when a pod has a reservation. */
void kube_remember(struct berth_cluster *cluster, const struct berth_plan *plan);

/* Plans by `policy`, which names its profile. Fails as berth_plan_make does. */
int kube_choose(struct berth_cluster *cluster, int64_t now_ns, const struct berth_policy *policy,
                struct kube_choice *ret, struct berth_err *err);
