/* demand_order.h - in which order a round looks at the wishes: theirs (tier.c), and once all reservations are made, that of the
 * backfill's own ranking.
 *
 * Within a tier only: who has waited for too long and queues keep their places; creation and id decide among equals. Wishes
 * that come up while the round goes on (victim_requeue.c) have their turn in it, where they belong among those that are left.
 */
#pragma once

#include "core/plan/plan.h"

struct visit {
    size_t next, end;     /* indices of wishes: of those that were there when it began */
    const uint32_t *tail; /* those left, in the other order; NULL: not yet */
    size_t tail_len, tail_at;
    VEC(uint32_t) late; /* the first of each group that came up since and was not visited yet */
    size_t first_late;  /* of these, the one that comes first */
};

/* One group that is visited. */
struct visited {
    size_t wish; /* its first */
    uint32_t len;
    bool late;
};

/* Freed by visit_done. */
struct visit visit_begin(const struct berth_plan *p);
void visit_done(struct visit *v);
/* The next group; false: there is none. */
bool visit_next(struct berth_plan *p, struct visit *v, struct visited *ret);
/* Wishes were added from there on, with their tiers and keys, below those that were visited. */
void visit_add(const struct berth_plan *p, struct visit *v, size_t from);
/* Fills back_key of the wishes from this one on. Fails where a formula does. */
int visit_keys(struct berth_plan *p, size_t from, struct berth_err *err);
