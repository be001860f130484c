/* tier.h - the order of demands: tiers of demands and of placed instances.
 *
 * See the order of demands in berth_policy.h. A pod is guaranteed if it is within every guarantee of its quotas. Pods
 * are counted in the order priority, creation, id over all wanted pods: placed, stopping to be placed again, or
 * waiting. Placing and stopping pods does not change that order; otherwise each plan would change the tiers for the
 * next one. A pod that does not fit into the rest of a guarantee is skipped; later pods do not wait for it.
 *
 * The pods of a workload are guaranteed first, then borrowed, by ordinal. In an elastic gang (gang_min below replicas)
 * the pods beyond the minimum are spare. A gang is guaranteed as a whole, or not at all.
 */
#pragma once

#include "core/plan/plan.h"

/* Returns a tier as one number: entitlement, then priority. */
static inline int64_t tier_of(enum berth_entitlement e, int32_t priority)
{
    return (int64_t)e << 32 | (uint32_t)((uint32_t)priority ^ 0x80000000u);
}

/* Ranks all demands, splits those whose pods are of different tiers, and sorts them. Fails if a formula fails. */
int tiers_make(struct berth_plan *p, struct berth_err *err);

/* tiers_rank ranks the demands from index `from` on, whose tiers are set; tiers_sort sorts all demands again. */
void tiers_rank(struct berth_plan *p, size_t from);
void tiers_sort(struct berth_plan *p);

/* Returns the tier of a placed instance. */
int64_t tier_of_instance(const struct berth_plan *p, uint32_t slot);
