/* reconcile.c - stops instances that are no longer wanted or possible, and turns missing pods into demands.
 *
 * For each workload, its instances are classified one by one (instance_status.c), then examined as a whole (a gang
 * below its minimum, more instances than replicas, instances on drained nodes), and missing pods become a demand. All
 * stops come before all placements, so that reserving actions can use the resources they will free.
 */
#include <assert.h>

#include "base/bits.h"
#include "base/sort.h"
#include "core/plan/eviction.h"
#include "core/plan/instance_status.h"
#include "core/plan/migration.h"
#include "core/queue/plan_quota.h"

enum { PREFETCH = 8 }; /* workloads in order are scattered in memory, so they are prefetched */

/* ---- the workload as a whole ------------------------------------------------------------------------------------ */

struct surplus_order {
    const struct workload_status *st;
    const uint32_t *key; /* [member] */
};

static int compare_surplus(const void *ctx, uint32_t a, uint32_t b)
{
    const struct surplus_order *v = ctx;
    if (v->key[a] != v->key[b])
        return v->key[a] > v->key[b] ? -1 : 1;
    return a > b ? -1 : 1; /* the highest ordinal, then the youngest */
}

/* Returns the order of stopping surplus instances: first those that do not report, are only reserved, are not available
 * or are being drained. */
static uint32_t surplus_key(const struct berth_plan *p, const struct workload_status *st,
                            const struct workload_member *m)
{
    const struct instance *i = snapshot_instance(p->s, m->slot);
    if (st->w->kind == BERTH_JOB)
        return 0; /* tasks have ranks: the last ones are stopped */
    return (uint32_t)m->lost << 3 | (uint32_t)(i->state == BERTH_RESERVED) << 2 | (uint32_t)!m->available << 1 |
           (uint32_t)m->draining;
}

static void stop_surplus(struct berth_plan *p, struct workload_status *st, uint32_t surplus)
{
    uint32_t *order = ARENA_ARRAY(&p->scratch, uint32_t, 2 * (size_t)st->len), len = 0;
    uint32_t *key = ARENA_ARRAY(&p->scratch, uint32_t, st->len);
    for (uint32_t n = 0; n < st->len; n++) {
        if (st->at[n].part != PART_COUNTED)
            continue;
        key[n] = surplus_key(p, st, &st->at[n]);
        order[len++] = n;
    }
    struct surplus_order v = {st, key};
    sort_indices(order, order + st->len, len, compare_surplus, &v);
    for (uint32_t n = 0; n < surplus; n++)
        member_stop(p, st, &st->at[order[n]], BERTH_CAUSE_SCALED);
}

static void scale_in(struct berth_plan *p, struct workload_status *st)
{
    if (!st->w->gone && !st->w->suspended) {
        stop_surplus(p, st, st->counted - (st->want - st->done));
        return;
    }
    for (uint32_t n = 0; n < st->len; n++)
        if (st->at[n].part == PART_COUNTED)
            member_stop(p, st, &st->at[n], st->w->gone ? BERTH_CAUSE_REMOVED : BERTH_CAUSE_SUSPENDED);
}

/* Returns whether a user requested a migration of the instance, and in *ret_to the target node (0: any other). */
static bool migration_requested(const struct berth_plan *p, const struct workload_status *st,
                                const struct workload_member *m, sym *ret_to)
{
    struct migration_state seen;
    if (st->w->kind != BERTH_SERVICE || st->w->gang != NONE || !st->want || !migration_of(p, m->id, &seen))
        return false;
    *ret_to = seen.to;
    return (seen.phase == BERTH_MIGRATION_REQUESTED || seen.phase == BERTH_MIGRATION_STARTING) &&
           seen.cause == BERTH_CAUSE_MANUAL;
}

/* `to`: the only allowed node; 0: any. */
static void demand_migration(struct berth_plan *p, const struct workload_status *st, const struct workload_member *m,
                             enum berth_cause cause, sym to)
{
    struct demand w = {.workload = st->workload,
                       .class = st->w->class,
                       .first = m->ordinal,
                       .len = 1,
                       .replaces = m->slot,
                       .from = snapshot_position(p->s, snapshot_instance(p->s, m->slot)),
                       .group = NONE,
                       .cause = (uint8_t)cause,
                       .elsewhere = cause == BERTH_CAUSE_MANUAL,
                       .movable = st->available};
    if (to) {
        w.bound = true;
        w.only = p->c.len; /* no node, if the target is gone */
        for (uint32_t at = 0; at < p->c.len; at++)
            if (p->c.l->id[at] == to)
                w.only = at;
    }
    vec_push(&p->demands, w);
}

/* Returns whether nothing new of the workload is placed yet: it pauses after failures, or has a start time. */
static bool is_paused(struct berth_plan *p, const struct workload_status *st)
{
    if (st->w->begin_ns <= p->s->now_ns)
        return false;
    plan_recheck(p, st->w->begin_ns);
    return true;
}

/* Replaces the instance by its replacement, available or not. */
static void hand_over(struct berth_plan *p, struct workload_status *st, struct workload_member *m,
                      enum berth_cause cause)
{
    member_stop_instance(p, m, cause);
    st->at[m->extra].part = PART_COUNTED;
    st->available -= m->available;
}

/* Begins migrations requested by a drain or a user. */
static void begin_migrations(struct berth_plan *p, struct workload_status *st)
{
    for (uint32_t n = 0; n < st->len; n++) {
        struct workload_member *m = &st->at[n];
        if (m->part != PART_COUNTED || m->lost)
            continue;
        struct workload_member *extra = m->extra == NONE ? NULL : &st->at[m->extra];
        if (extra && extra->draining) { /* its new node is being drained, too */
            member_stop_instance(p, extra, extra->why);
            extra = NULL;
            m->extra = NONE;
        }
        sym to;
        if (!m->draining && !extra && migration_requested(p, st, m, &to) && !is_paused(p, st))
            demand_migration(p, st, m, BERTH_CAUSE_MANUAL, to);
        if (!m->draining || st->w->on_drain == BERTH_DRAIN_WAIT)
            continue;
        if (extra) {
            if (st->w->on_drain == BERTH_DRAIN_STOP)
                hand_over(p, st, m, m->why);
        } else if (st->w->on_drain == BERTH_DRAIN_STOP) {
            member_stop(p, st, m, m->why);
        } else if (!is_paused(p, st)) {
            demand_migration(p, st, m, m->why, 0);
        }
    }
}

/* Stops the instances picked on nodes under pressure, where enough other instances are available. */
static void stop_for_pressure(struct berth_plan *p, struct workload_status *st)
{
    for (uint32_t n = 0; n < st->len; n++) {
        struct workload_member *m = &st->at[n];
        if (m->part != PART_COUNTED || m->lost || !eviction_stops(p, m->slot))
            continue;
        if (m->available && st->available <= st->w->min_available)
            continue;
        if (m->extra != NONE)
            hand_over(p, st, m, BERTH_CAUSE_PRESSURE);
        else
            member_stop(p, st, m, BERTH_CAUSE_PRESSURE);
    }
}

/* Stops instances that have reached their time limit. */
static void stop_expired(struct berth_plan *p, struct workload_status *st)
{
    const struct claim *claim = st->len ? snapshot_claim(p->s, st->workload) : NULL;
    for (uint32_t n = 0; claim && claim->limit_ns && n < st->len; n++) {
        struct workload_member *m = &st->at[n];
        const struct instance *i = snapshot_instance(p->s, m->slot);
        if (m->part != PART_COUNTED || i->state != BERTH_RUNNING)
            continue;
        if (instance_expiry(claim, i) <= p->s->now_ns)
            member_stop(p, st, m, BERTH_CAUSE_EXPIRED);
        else
            plan_recheck(p, instance_expiry(claim, i));
    }
}

/* Replaces instances placed from an older description. The old instance stops first where the workload tolerates fewer
 * instances for a while (always with a single replica); otherwise, as in a drain, the new one is ready before the old
 * one stops. */
static void replace_outdated(struct berth_plan *p, struct workload_status *st)
{
    const struct workload *w = st->w;
    if (w->kind != BERTH_SERVICE || st->want == 0)
        return;
    bool stop_first = st->want == 1 || st->want > w->min_available;
    uint32_t least = st->want == 1 ? 0 : w->min_available;
    uint32_t spare = st->available > least ? st->available - least : 0;
    bool paused = is_paused(p, st); /* the new description fails, so working instances of the old one stay */
    for (uint32_t n = 0; n < st->len; n++) {
        struct workload_member *m = &st->at[n];
        if (!m->outdated || m->part != PART_COUNTED || m->lost || m->draining)
            continue;
        if (!stop_first && w->gang == NONE) {
            m->draining = true;
        } else if (!m->available || (spare && !paused)) {
            spare -= m->available;
            member_stop(p, st, m, BERTH_CAUSE_OUTDATED);
        }
    }
}

/* ---- missing pods ----------------------------------------------------------------------------------------------- */

/* Adds a demand for missing pods, with the lowest free ordinals. A pod that must not run twice gets no new instance
 * before its old one has stopped. */
static void demand_missing(struct berth_plan *p, const struct workload_status *st, uint32_t group, uint32_t needed)
{
    uint32_t missing = st->want - st->done - st->counted;
    struct demand w = {.workload = st->workload,
                       .class = st->w->class,
                       .len = missing,
                       .replaces = NONE,
                       .group = group,
                       .needed = needed,
                       .cause = BERTH_CAUSE_PENDING};
    if (st->len > 0) {
        bool twice = st->w->on_lost == BERTH_LOST_REPLACE;
        uint64_t *used = ARENA_ARRAY(&p->scratch, uint64_t, bits_words(st->want) + 1);
        uint32_t *list = ARENA_ARRAY(&p->arena, uint32_t, missing);
        for (uint32_t n = 0; n < st->len; n++) {
            enum member_role part = st->at[n].part;
            if (part != PART_NONE && (part != PART_LEAVING || !twice) && st->at[n].ordinal < st->want)
                bits_add(used, st->at[n].ordinal);
        }
        w.len = 0;
        for (uint32_t o = 0; o < st->want && w.len < missing; o++)
            if (!bits_has(used, o))
                list[w.len++] = o;
        w.ordinals = list;
        for (uint32_t n = 0; n < st->len; n++)
            if (st->at[n].lost && st->at[n].part == PART_NONE)
                w.cause = BERTH_CAUSE_LOST;
    }
    w.blocked = w.len < needed;
    if (w.len)
        vec_push(&p->demands, w);
}

/* Returns whether another instance of the same pod is still stopping and the pod must not run twice. This may have been
 * allowed when the place was reserved. */
static bool is_predecessor_stopping(const struct workload_status *st, const struct workload_member *m)
{
    bool there = false;
    for (uint32_t n = 0; st->w->on_lost != BERTH_LOST_REPLACE && n < st->len; n++)
        there |= st->at[n].part == PART_LEAVING && st->at[n].ordinal == m->ordinal;
    return there;
}

/* Returns whether a replacement of the instance already has resources. */
static bool replacement_has_place(const struct berth_plan *p, const struct workload_status *st,
                                  const struct workload_member *m)
{
    return m->extra != NONE && snapshot_instance(p->s, st->at[m->extra].slot)->state != BERTH_RESERVED;
}

/* Promotes reserved instances that are still wanted and whose resources are free. */
static void promote(struct berth_plan *p, struct workload_status *st)
{
    for (uint32_t n = 0; n < st->len; n++) {
        const struct workload_member *m = &st->at[n];
        const struct instance *i = snapshot_instance(p->s, m->slot);
        if (!m->promote || (m->part != PART_COUNTED && m->part != PART_EXTRA) ||
            promotion_of(p, m->slot) != PROMOTION_NOW || is_predecessor_stopping(st, m) ||
            replacement_has_place(p, st, m))
            continue;
        cycle_promote(&p->c, i);
        plan_quota_promote(p, m->slot);
        (void)plan_act(p, BERTH_PROMOTE, BERTH_CAUSE_PENDING, m->slot);
    }
}

static void reconcile_workload(struct berth_plan *p, struct workload_status *st, uint32_t group, uint32_t needed)
{
    if (st->counted > st->want - st->done)
        scale_in(p, st);
    if (st->len) {
        stop_for_pressure(p, st);
        replace_outdated(p, st);
        begin_migrations(p, st);
        promote(p, st);
    }
    if (st->want <= st->done + st->counted)
        return;
    if (!is_paused(p, st))
        demand_missing(p, st, group, needed);
}

/* ---- gangs ------------------------------------------------------------------------------------------------------ */

/* Returns the number of counted members that a drain is about to stop. */
static uint32_t drained(const struct workload_status *st)
{
    uint32_t n = 0;
    for (uint32_t i = 0; st->w->on_drain == BERTH_DRAIN_STOP && i < st->len; i++)
        n += st->at[i].part == PART_COUNTED && st->at[i].draining && !st->at[i].lost;
    return n;
}

/* Reconciles a gang. A gang stands if each of its workloads has its minimum, or if it has no instances at all.
 * Otherwise it is broken: all its instances are stopped, and it starts again as a whole. */
static void reconcile_gang(struct berth_plan *p, const uint32_t *members, uint32_t len, uint32_t group)
{
    struct workload_status *all = ARENA_ARRAY(&p->scratch, struct workload_status, len);
    bool any = false, whole = true, blocked = false;

    for (uint32_t n = 0; n < len; n++) {
        struct workload_status *st = &all[n];
        workload_status_find(p, members[n], st);
        stop_expired(p, st);
        uint32_t least = st->want ? st->w->gang_min : 0;
        any |= st->counted > 0 && least > 0;
        whole &= st->counted - drained(st) + st->done >= least;
    }
    if (any && !whole)
        for (uint32_t n = 0; n < len; n++)
            for (uint32_t i = 0; i < all[n].len; i++)
                if (all[n].at[i].part == PART_COUNTED && all[n].want)
                    member_stop(p, &all[n], &all[n].at[i], BERTH_CAUSE_BROKEN);
    size_t from = p->demands.len;
    for (uint32_t n = 0; n < len; n++) {
        struct workload_status *st = &all[n];
        uint32_t has = st->counted + st->done, least = st->want ? st->w->gang_min : 0;
        uint32_t needed = whole || has >= least ? 0 : least - has;
        size_t before = p->demands.len;
        reconcile_workload(p, st, group, needed);
        blocked |= needed > 0 && (p->demands.len == before || p->demands.at[before].blocked);
    }
    for (size_t i = from; i < p->demands.len; i++)
        p->demands.at[i].blocked = blocked;
}

/* Returns the members of the gang that are in the order, in that order. */
static uint32_t *gang_members(struct berth_plan *p, const uint32_t *order_index, uint32_t gang, uint32_t *ret_len)
{
    uint32_t len = 0, at = ((const struct gang *)pages_at(&p->s->gangs, gang))->first;
    for (uint32_t w = at; w != NONE; w = snapshot_workload(p->s, w)->next_in_gang)
        len++;
    uint32_t *list = ARENA_ARRAY(&p->scratch, uint32_t, len);
    len = 0;
    for (uint32_t w = at; w != NONE; w = snapshot_workload(p->s, w)->next_in_gang) {
        uint32_t j = len++;
        for (; j > 0 && order_index[list[j - 1]] > order_index[w]; j--)
            list[j] = list[j - 1];
        list[j] = w;
    }
    *ret_len = len;
    return list;
}

void reconcile(struct berth_plan *p, const uint32_t *order, uint32_t len)
{
    const struct berth_snapshot *s = p->s;
    uint32_t *order_index = s->gangs.len ? ARENA_ARRAY(&p->scratch, uint32_t, s->workloads.len + 1) : NULL;
    uint64_t *gang_done = ARENA_ARRAY(&p->scratch, uint64_t, bits_words(s->gangs.len) + 1);

    vec_reserve(&p->demands, len);
    if (order_index)
        for (uint32_t i = 0; i < len; i++)
            order_index[order[i]] = i;
    for (uint32_t i = 0; i < len; i++) {
        const struct workload *w = snapshot_workload(s, order[i]);
        if (i + 2 * PREFETCH < len)
            __builtin_prefetch(snapshot_workload(s, order[i + 2 * PREFETCH]));
        if (w->gang == NONE) {
            struct arena_mark mark = arena_mark(&p->scratch);
            struct workload_status st;
            workload_status_find(p, order[i], &st);
            stop_expired(p, &st);
            reconcile_workload(p, &st, NONE, 0);
            arena_rewind(&p->scratch, mark);
        } else if (!bits_has(gang_done, w->gang)) {
            uint32_t members_len;
            assert(order_index); /* gangs exist */
            bits_add(gang_done, w->gang);
            uint32_t *members = gang_members(p, order_index, w->gang, &members_len);
            reconcile_gang(p, members, members_len, w->gang);
        }
    }
}
