/* tier.h - who comes first: tiers of wishes and of what is placed already.
 *
 * See berth.h, "who comes first". By right is what is within every guarantee of its quotas: counted in the order priority,
 * creation, id, of all that is wanted, whether it has a place, is stopping and comes back, or waits: an order that places given
 * or taken do not change, else each plan would change the tiers for the next. Whoever does not fit into what is left of a
 * guarantee is skipped, not waited for.
 *
 * A workload's pods are by right or borrowed in the order of their ordinals: of an elastic
 * gang (gang_min below replicas) pods beyond the minimum are spare. A gang is by right as a whole, or not at all.
 */
#pragma once

#include "core/plan/plan.h"

/* A tier as one number: entitlement, then priority. */
static inline int64_t tier_of(enum berth_entitlement e, int32_t priority)
{
    return (int64_t)e << 32 | (uint32_t)((uint32_t)priority ^ 0x80000000u);
}

/* Ranks all wishes, splits those whose pods are of different tiers, and sorts them. Fails where a formula does. */
int tiers_make(struct berth_plan *p, struct berth_err *err);

/* Ranks wishes that were added from there on, with their tiers; and puts all in order again. */
void tiers_rank(struct berth_plan *p, size_t from);
void tiers_sort(struct berth_plan *p);

/* The tier of an instance that is placed. */
int64_t tier_of_instance(const struct berth_plan *p, uint32_t slot);
