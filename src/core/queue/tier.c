/* tier.c - sorts demands into the order in which they are placed. */
#include "core/queue/tier.h"

#include <assert.h>
#include <string.h>

#include "base/sort.h"
#include "core/backfill/reservation.h"
#include "core/plan/demand_order.h"
#include "core/queue/entitlement.h"
#include "core/queue/rank.h"

enum { PREFETCH = 8 }; /* workloads in this order are scattered in memory */

/* ---- parts ------------------------------------------------------------------------------------------------------ */

struct demand demand_split(struct demand *w, uint32_t pods)
{
    struct demand rest = *w;
    rest.len = w->len - pods;
    rest.first = w->first + pods;
    rest.ordinals = w->ordinals ? w->ordinals + pods : NULL;
    rest.needed = 0;
    w->len = pods;
    return rest;
}

void demand_parts_insert(struct berth_plan *p, demand_part_list *parts)
{
    size_t len = p->demands.len, to = 0, next = 0;
    if (parts->len) {
        struct arena_mark mark = arena_mark(&p->scratch);
        struct demand *old = arena_dup(&p->scratch, p->demands.at, len * sizeof *old);
        vec_resize(&p->demands, len + parts->len);
        for (size_t i = 0; i < len; i++) {
            p->demands.at[to++] = old[i];
            bool more = i + 1 < len && old[i].group != NONE && old[i + 1].group == old[i].group;
            while (!more && next < parts->len && parts->at[next].after <= i)
                p->demands.at[to++] = parts->at[next++].demand;
        }
        arena_rewind(&p->scratch, mark);
    }
    vec_done(parts);
}

/* Splits off the pods of an elastic gang beyond its minimum. They wait until the minimum is placed. */
static void split_spare(struct berth_plan *p, uint32_t i, demand_part_list *parts)
{
    struct demand *w = &p->demands.at[i];
    if (!w->elastic)
        return;
    struct demand rest = demand_split(w, w->needed);
    rest.group = NONE;
    rest.spare_of = w->group;
    rest.tier = tier_of(BERTH_SPARE, snapshot_workload(p->s, w->workload)->priority);
    vec_push(parts, ((struct demand_part){i, rest}));
}

/* ---- the order -------------------------------------------------------------------------------------------------- */

static uint32_t group_end(const struct berth_plan *p, uint32_t from)
{
    uint32_t to = from + 1;
    while (p->demands.at[from].group != NONE && to < p->demands.len &&
           p->demands.at[to].group == p->demands.at[from].group)
        to++;
    return to;
}

static uint64_t flip64(int64_t v)
{
    return ~((uint64_t)v ^ (uint64_t)1 << 63); /* the highest is first */
}

/* Returns the sort key of a group, taken from its first demand. `by`: 0 key, 1 queue, 2 whether it has waited for too
 * long, 3 priority, 4 tier, 5 id, 6 creation. The sorts are stable. */
static uint64_t sort_key(const struct berth_plan *p, const struct demand *w, unsigned by)
{
    switch (by) {
    case 0: return w->waited ? 0 : flip64(w->key);
    case 1: return w->waited ? 0 : flip64(w->queue_priority);
    case 2: return !w->waited;
    case 3: return flip64((int32_t)((uint32_t)w->tier ^ 0x80000000u)); /* the priority */
    case 5: return p->s->ranks[w->workload];
    case 6: return (uint64_t)snapshot_workload(p->s, w->workload)->created_ns ^ (uint64_t)1 << 63;
    default: return flip64(w->tier);
    }
}

/* Moves the demands into the new order of groups: first[] is the index of the first demand of a group, rows are the
 * sorted groups. */
static void move_demands(struct berth_plan *p, const struct keyed *rows, const uint32_t *first, size_t groups)
{
    __typeof__(p->demands) to = {0};
    size_t len = p->demands.len;
    if (groups == 0)
        return;
    vec_reserve(&to, len);
    assert(to.at);
    for (size_t i = 0; i < groups; i++) {
        if (i + PREFETCH < groups)
            __builtin_prefetch(&p->demands.at[first[rows[i + PREFETCH].value]]);
        uint32_t at = first[rows[i].value], group = p->demands.at[at].group;
        do
            to.at[to.len++] = p->demands.at[at++];
        while (group != NONE && at < len && p->demands.at[at].group == group);
    }
    vec_done(&p->demands);
    memcpy(&p->demands, &to, sizeof to);
}

/* Sorts groups by the keys `from` to `to`. The keys are gathered in columns first, because after the first sort demands
 * are no longer read in memory order. */
static void sort_demands(struct berth_plan *p, unsigned from, unsigned to)
{
    size_t len = p->demands.len, n = 0;
    struct arena_mark mark = arena_mark(&p->scratch);
    uint32_t *first = arena_alloc(&p->scratch, (len + 1) * sizeof *first);
    uint64_t *keys = arena_alloc(&p->scratch, (to - from + 1) * (len + 1) * sizeof *keys);
    struct keyed *rows = arena_alloc(&p->scratch, (2 * len + 1) * sizeof *rows);
    bool moved = false;
    for (uint32_t i = 0; i < len; i = group_end(p, i)) {
        for (unsigned by = from; by <= to; by++)
            keys[(by - from) * len + n] = sort_key(p, &p->demands.at[i], by);
        rows[n].value = (uint32_t)n;
        first[n++] = i;
    }
    for (unsigned by = from; by <= to; by++) {
        const uint64_t *column = keys + (by - from) * len;
        bool same = true;
        for (size_t i = 0; i < n; i++) {
            rows[i].key = column[rows[i].value];
            same &= rows[i].key == column[0];
        }
        if (!same)
            sort_keyed(rows, rows + n, n);
        moved |= !same;
    }
    if (moved)
        move_demands(p, rows, first, n);
    arena_rewind(&p->scratch, mark);
}

/* Returns whether the workload is a job that has waited for longer than max_wait_ns. */
static bool has_waited(struct berth_plan *p, const struct workload *of)
{
    int64_t bound;
    if (p->policy.order.max_wait_ns == 0 || of->kind != BERTH_JOB ||
        __builtin_add_overflow(of->created_ns, p->policy.order.max_wait_ns, &bound))
        return false;
    plan_recheck(p, bound);
    return bound <= p->s->now_ns;
}

static void describe_demand(struct berth_plan *p, struct demand *w)
{
    const struct workload *of = snapshot_workload(p->s, w->workload);
    const struct claim *claim = snapshot_claim(p->s, w->workload);
    demand_set_claim(w, claim);
    w->duration_ns = expected_duration_of(p, w->workload);
    w->spare_of = w->more = NONE;
    w->queue = claim ? rank_queue(p, claim) : NONE;
    w->queue_priority = w->queue == NONE ? 0 : p->policy.order.queues[w->queue].priority;
    w->tier = tier_of(BERTH_GUARANTEED, of->priority);
    w->elastic = w->group != NONE && w->replaces == NONE && is_elastic(of) && w->needed < w->len;
    w->waited = has_waited(p, of);
}

/* Fills in the order fields of all demands; returns whether some are elastic. */
static bool describe_demands(struct berth_plan *p)
{
    bool elastic = false;
    size_t len = p->demands.len;
    for (size_t i = 0; i < len; i++) {
        if (i + 2 * PREFETCH < len)
            __builtin_prefetch(snapshot_workload(p->s, p->demands.at[i + 2 * PREFETCH].workload));
        if (i + PREFETCH < len)
            __builtin_prefetch(snapshot_claim(p->s, p->demands.at[i + PREFETCH].workload));
        describe_demand(p, &p->demands.at[i]);
        elastic |= p->demands.at[i].elastic;
    }
    return elastic;
}

/* Links the parts of each workload's demand, from the first one on. */
static void chain_parts(struct berth_plan *p)
{
    uint32_t *last = NULL;
    for (uint32_t i = 0; i < p->demands.len; i++) {
        struct demand *w = &p->demands.at[i];
        if (!last) {
            last = arena_alloc(&p->scratch, (p->s->workloads.len + 1) * sizeof *last);
            memset(last, 0xff, (p->s->workloads.len + 1) * sizeof *last);
        }
        if (w->replaces != NONE)
            continue;
        if (last[w->workload] != NONE) {
            p->demands.at[last[w->workload]].more = i;
            w->is_part = true;
        }
        last[w->workload] = i;
    }
}

void tiers_rank(struct berth_plan *p, size_t from)
{
    for (size_t i = from; i < p->demands.len; i++) {
        struct demand *w = &p->demands.at[i];
        struct berth_err err;
        w->waited = has_waited(p, snapshot_workload(p->s, w->workload));
        if (rank_keys(p, &w->workload, 1, &w->key, &err))
            w->key = 0; /* the formula fails for this demand alone: it is last in its tier */
    }
    struct berth_err err;
    (void)visit_fill_keys(p, from, &err); /* on an error the demand is among the first of the backfill order */
}

void tiers_sort(struct berth_plan *p)
{
    for (size_t i = 0; i < p->demands.len; i++) {
        p->demands.at[i].more = NONE;
        p->demands.at[i].is_part = false;
    }
    struct arena_mark mark = arena_mark(&p->scratch);
    sort_demands(p, 5, 6);
    sort_demands(p, 0, 4);
    chain_parts(p);
    arena_rewind(&p->scratch, mark);
}

int tiers_make(struct berth_plan *p, struct berth_err *err)
{
    p->tiers = ARENA_ARRAY(&p->arena, struct tiers, 1);
    rank_begin(p);
    bool elastic = describe_demands(p);
    int rc = p->demands.len ? rank_demands(p, err) : 0;
    if (rc == 0)
        rc = visit_fill_keys(p, 0, err);
    if (rc)
        return rc;
    struct arena_mark mark = arena_mark(&p->scratch);
    size_t whole = p->demands.len;
    if (elastic) { /* spare pods follow their gang, whose position its first member decides */
        demand_part_list spare = {0};
        sort_demands(p, 0, 3);
        for (uint32_t i = 0; i < whole; i++)
            split_spare(p, i, &spare);
        demand_parts_insert(p, &spare);
    }
    if (p->s->guaranteed)
        entitlements_compute(p);
    sort_demands(p, elastic ? 4 : 0, 4);
    if (p->demands.len != whole)
        chain_parts(p);
    arena_rewind(&p->scratch, mark);
    if (p->demands.len)
        rank_recheck(p);
    return 0;
}
