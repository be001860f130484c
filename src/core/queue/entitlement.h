/* entitlement.h - what of a workload is by right, borrowed or spare, and wishes split by that: what tier.c and entitlement.c share. */
#pragma once

#include "core/plan/plan.h"

struct tiers {
    uint64_t *lent; /* instance slots that are borrowed; NULL: none */
};

/* May it have more pods than it needs at least? */
bool is_elastic(const struct workload *w);

/* Finds who is by right, where there are guarantees: what is lent, and the tiers of wishes, which are split where their pods are
 * of two. */
void entitle(struct berth_plan *p);

/* ---- parts of wishes -------------------------------------------------------------------------------------------- */

/* The first `pods` of a wish stay in it, the others become one of their own; returns that. */
struct wish wish_split(struct wish *w, uint32_t pods);

/* Parts that were split off, each with the wish it comes after; in that order. */
typedef VEC(struct part) part_list;
struct part {
    uint32_t after;
    struct wish wish;
};

/* Puts parts where they belong: behind the group of the wish that they were part of. Frees the list. */
void parts_insert(struct berth_plan *p, part_list *parts);
