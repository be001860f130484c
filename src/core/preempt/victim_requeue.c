/* victim_requeue.c - demands for victims that may be placed again before they have stopped. */
#include "base/sort.h"
#include "core/backfill/reservation.h"
#include "core/preempt/preempt.h"
#include "core/preempt/victims.h"
#include "core/queue/rank.h"
#include "core/queue/tier.h"

static bool is_wanted(const struct berth_plan *p, const struct workload *w)
{
    return !w->gone && !w->suspended && w->begin_ns <= p->s->now_ns;
}

static struct demand demand_again(struct berth_plan *p, uint32_t workload, int64_t tier)
{
    const struct workload *w = snapshot_workload(p->s, workload);
    const struct claim *claim = snapshot_claim(p->s, workload);
    struct demand x = {.workload = workload,
                       .class = w->class,
                       .replaces = NONE,
                       .group = NONE,
                       .cause = BERTH_CAUSE_PENDING,
                       .tier = tier,
                       .duration_ns = expected_duration_of(p, workload),
                       .queue = claim ? rank_queue(p, claim) : NONE,
                       .more = NONE,
                       .spare_of = NONE};
    demand_set_claim(&x, claim);
    x.queue_priority = x.queue == NONE ? 0 : p->policy.order.queues[x.queue].priority;
    return x;
}

/* Lists the ordinals that no finished or stopping instance has. */
static uint32_t free_ordinals(struct berth_plan *p, const struct workload *w, const uint32_t **ret, uint32_t *ret_done)
{
    uint32_t *list = ARENA_ARRAY(&p->arena, uint32_t, w->replicas + 1), len = 0;
    struct arena_mark mark = arena_mark(&p->scratch);
    uint64_t *used = ARENA_ARRAY(&p->scratch, uint64_t, bits_words(w->replicas) + 1);
    *ret_done = 0;
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload) {
        const struct instance *i = snapshot_instance(p->s, at);
        bool done = workload_done(w, i);
        bool stopping = state_active(i->state) && !bits_has(p->c.removed, at) && w->on_lost != BERTH_LOST_REPLACE;
        if (i->ordinal >= w->replicas || (!done && !stopping))
            continue;
        *ret_done += done && !bits_has(used, i->ordinal);
        bits_add(used, i->ordinal);
    }
    for (uint32_t o = 0; o < w->replicas; o++)
        if (!bits_has(used, o))
            list[len++] = o;
    arena_rewind(&p->scratch, mark);
    *ret = list;
    return len;
}

static bool is_going(const struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    return i->state == BERTH_ENDED || i->state == BERTH_STOPPING || bits_has(p->c.stopped, slot) ||
           bits_has(p->c.removed, slot);
}

/* Returns whether the instance is on a lost node and is replaced at once. */
static bool is_replaced_as_lost(const struct berth_plan *p, const struct workload *w, const struct instance *i)
{
    return w->on_lost == BERTH_LOST_REPLACE && !p->alarm && p->s->state[snapshot_position(p->s, i)] == BERTH_NODE_LOST;
}

/* Returns whether the instance that it takes over from exists and stays. */
static bool is_extra(const struct berth_plan *p, const struct workload *w, const struct instance *i)
{
    for (uint32_t at = i->replaces ? w->first : NONE; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload) {
        const struct instance *old = snapshot_instance(p->s, at);
        if (old->id == i->replaces && !is_going(p, at) && !is_replaced_as_lost(p, w, old))
            return true;
    }
    return false;
}

/* Returns whether the instance counts as its pod once all stops are done. */
static bool counts_after_stops(const struct berth_plan *p, const struct workload *w, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    return !is_going(p, slot) && !is_extra(p, w, i) && !is_replaced_as_lost(p, w, i);
}

/* Returns the number of pods that exist or are finished; adds the ordinals that must not be used to the bit set
 * `used`. */
static uint32_t pods_after_stops(const struct berth_plan *p, uint32_t workload, uint64_t *used)
{
    const struct workload *w = snapshot_workload(p->s, workload);
    uint32_t n = 0;
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload) {
        const struct instance *i = snapshot_instance(p->s, at);
        bool counts = workload_done(w, i) || counts_after_stops(p, w, at);
        bool stopping = state_active(i->state) && !bits_has(p->c.removed, at) && w->on_lost != BERTH_LOST_REPLACE;
        n += counts;
        if (i->ordinal < w->replicas && (counts || stopping))
            bits_add(used, i->ordinal);
    }
    return n;
}

/* As pods_after_stops, for the pods that have a demand. */
static uint32_t pods_demanded(const struct berth_plan *p, uint32_t workload, uint64_t *used)
{
    uint32_t n = 0;
    for (size_t i = 0; i < p->demands.len; i++) {
        const struct demand *x = &p->demands.at[i];
        if (x->workload != workload || x->replaces != NONE)
            continue;
        n += x->len;
        for (uint32_t o = 0; o < x->len; o++)
            bits_add(used, demand_ordinal(x, o));
    }
    return n;
}

/* Adds a demand for one stopped pod: the lowest free ordinal takes its part, as in any plan. */
static void requeue_pod(struct berth_plan *p, const struct victim_group *x)
{
    const struct workload *w = snapshot_workload(p->s, x->workload);
    struct arena_mark mark = arena_mark(&p->scratch);
    uint64_t *used = ARENA_ARRAY(&p->scratch, uint64_t, bits_words(w->replicas) + 1);
    struct demand demand = demand_again(p, x->workload, x->tier);
    demand.spare_of = w->gang;
    uint32_t ahead = is_wanted(p, w) ? pods_after_stops(p, x->workload, used) : w->replicas;
    if (ahead < w->replicas && bits_count(used, bits_words(w->replicas)) < w->replicas &&
        ahead + pods_demanded(p, x->workload, used) < w->replicas) {
        while (demand.first < w->replicas && bits_has(used, demand.first))
            demand.first++;
        demand.len = demand.first < w->replicas;
    }
    arena_rewind(&p->scratch, mark);
    if (demand.len)
        vec_push(&p->demands, demand);
}

/* Returns the workloads of the gang, sorted by id. */
static struct keyed *gang_workloads(struct berth_plan *p, uint32_t gang, uint32_t *ret_len)
{
    uint32_t len = 0, first = ((const struct gang *)pages_at(&p->s->gangs, gang))->first;
    for (uint32_t w = first; w != NONE; w = snapshot_workload(p->s, w)->next_in_gang)
        len++;
    struct keyed *rows = arena_alloc(&p->scratch, 2 * (size_t)len * sizeof *rows);
    len = 0;
    for (uint32_t w = first; w != NONE; w = snapshot_workload(p->s, w)->next_in_gang)
        rows[len++] = (struct keyed){p->s->ranks[w], w};
    sort_keyed(rows, rows + len, len);
    *ret_len = len;
    return rows;
}

/* Adds demands for the whole gang if its pods that are not stopping are enough; otherwise the gang waits for the
 * stops. */
static void requeue_gang(struct berth_plan *p, const struct victim_group *x)
{
    uint32_t gang = snapshot_workload(p->s, x->workload)->gang, workloads;
    uint32_t from = (uint32_t)p->demands.len, to;
    struct arena_mark mark = arena_mark(&p->scratch);
    const struct keyed *of = gang_workloads(p, gang, &workloads);
    bool enough = true;
    for (uint32_t n = 0; n < workloads; n++) {
        const struct workload *w = snapshot_workload(p->s, of[n].value);
        struct demand demand = demand_again(p, of[n].value, x->tier);
        uint32_t done, least = w->gone || w->suspended ? 0 : w->gang_min;
        demand.len = free_ordinals(p, w, &demand.ordinals, &done);
        demand.group = gang;
        demand.needed = least > done ? least - done : 0;
        enough &= demand.len >= demand.needed && (demand.needed == 0 || is_wanted(p, w));
        if (is_wanted(p, w) && demand.len)
            vec_push(&p->demands, demand);
    }
    arena_rewind(&p->scratch, mark);
    to = (uint32_t)p->demands.len;
    for (uint32_t i = 0; !enough && i < to; i++) /* this includes its earlier demands beyond the minimum */
        p->demands.at[i].blocked |= p->demands.at[i].group == gang;
    for (uint32_t i = from; enough && i < to; i++) { /* spare pods get demands of their own */
        struct demand rest = p->demands.at[i];
        rest.ordinals += rest.needed;
        rest.len -= rest.needed;
        rest.needed = 0;
        rest.group = NONE;
        rest.spare_of = gang;
        rest.tier = tier_of(BERTH_SPARE, snapshot_workload(p->s, rest.workload)->priority);
        p->demands.at[i].len = p->demands.at[i].needed;
        if (rest.len)
            vec_push(&p->demands, rest);
    }
}

void preempt_requeue_victims(struct berth_plan *p)
{
    struct victims *v = p->victims;
    size_t before = p->demands.len;
    for (uint32_t i = 0; i < v->back_len; i++) {
        const struct victim_group *x = &v->victim_groups[v->back[i]];
        if (x->gang)
            requeue_gang(p, x);
        else
            requeue_pod(p, x);
    }
    v->back_len = 0;
    if (p->demands.len > before)
        tiers_rank(p, before);
}
