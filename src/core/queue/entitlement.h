/* entitlement.h - guaranteed, borrowed and spare pods, and demands split by entitlement; shared by tier.c and
 * entitlement.c.
 */
#pragma once

#include "core/plan/plan.h"

struct tiers {
    uint64_t *lent; /* bit set of instance slots that are borrowed; NULL: none */
};

/* Returns whether the workload may have more pods than its gang minimum. */
bool is_elastic(const struct workload *w);

/* Computes which instances and demands are guaranteed. Call only where some quota has a guarantee. Fills tiers.lent,
 * sets the tier of each demand, and splits a demand whose pods belong to two tiers. */
void entitlements_compute(struct berth_plan *p);

/* ---- parts of demands ------------------------------------------------------------------------------------------- */

/* Keeps the first `pods` pods in the demand and returns a new demand with the others. */
struct demand demand_split(struct demand *w, uint32_t pods);

/* Parts that were split off, each with the index of the demand that it follows, in ascending order of that index. */
typedef VEC(struct demand_part) demand_part_list;
struct demand_part {
    uint32_t after;
    struct demand demand;
};

/* Inserts each part behind the group of the demand that it was split from. Frees the list. */
void demand_parts_insert(struct berth_plan *p, demand_part_list *parts);
