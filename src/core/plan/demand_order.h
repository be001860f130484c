/* demand_order.h - the order in which a round visits demands: the order of tier.c, and, once all reservations are made,
 * the order of the backfill ranking.
 *
 * The backfill ranking applies within a tier only: demands that waited too long and queue priorities keep their places;
 * equals are ordered by creation time and id. Demands that are added during the round (victim_requeue.c) are visited in
 * the same round, at their place among the demands that are left.
 */
#pragma once

#include "core/plan/plan.h"

struct demand_visit {
    size_t next, end;     /* indices of demands that existed when the round began */
    const uint32_t *tail; /* the demands left, in backfill order; NULL: not sorted yet */
    size_t tail_len, tail_at;
    VEC(uint32_t) late; /* first demand of each group that was added since and is not visited yet */
    size_t first_late;  /* index into `late` of the first in order */
};

/* One visited group of demands. */
struct visited_group {
    size_t demand; /* index of its first demand */
    uint32_t len;
    bool late;
};

/* Begins a round. Freed by visit_done. */
struct demand_visit visit_begin(const struct berth_plan *p);
void visit_done(struct demand_visit *v);
/* Stores the next group in *ret; false: all groups were visited. */
bool visit_next(struct berth_plan *p, struct demand_visit *v, struct visited_group *ret);
/* Adds the demands from index `from` on to the round. Their tiers and keys are set and lower than those of visited
 * demands. */
void visit_add(const struct berth_plan *p, struct demand_visit *v, size_t from);
/* Fills backfill_key of the demands from index `from` on. Fails if a formula fails. */
int visit_fill_keys(struct berth_plan *p, size_t from, struct berth_err *err);
