/* instance_status.c - classifies the instances of a workload one by one. */
#include "core/plan/instance_status.h"

#include <assert.h>

#include "base/bits.h"
#include "base/plant.h"
#include "base/sort.h"
#include "core/plan/eviction.h"
#include "core/plan/migration.h"
#include "core/queue/plan_quota.h"
#include "core/search/holders.h"

#define STARTING_NS_MAX (900 * (int64_t)1000000000)

static int compare_members(const void *ctx, uint32_t a, uint32_t b)
{
    const struct workload_member *at = ctx;
    if (at[a].ordinal != at[b].ordinal)
        return at[a].ordinal < at[b].ordinal ? -1 : 1;
    return (at[a].id > at[b].id) - (at[a].id < at[b].id);
}

static void collect_members(struct berth_plan *p, struct workload_status *st)
{
    const struct instance *i;
    uint32_t len = 0;

    for (uint32_t at = st->w->first; at != NONE; at = i->next_of_workload) {
        i = snapshot_instance(p->s, at);
        len++;
    }
    if (len == 0)
        return;
    struct workload_member *raw = ARENA_ARRAY(&p->scratch, struct workload_member, len);
    uint32_t *order = ARENA_ARRAY(&p->scratch, uint32_t, 2 * (size_t)len);
    for (uint32_t at = st->w->first; at != NONE; at = i->next_of_workload) {
        i = snapshot_instance(p->s, at);
        order[st->len] = st->len;
        raw[st->len++] = (struct workload_member){.slot = at, .ordinal = i->ordinal, .id = i->id, .extra = NONE};
    }
    sort_indices(order, order + len, len, compare_members, raw);
    st->at = ARENA_ARRAY(&p->scratch, struct workload_member, len);
    for (uint32_t n = 0; n < len; n++)
        st->at[n] = raw[order[n]];
}

/* Returns whether all instances that the reserved one waits for have stopped. They are on its own node. */
static bool waits_are_done(const struct berth_plan *p, const struct instance *i)
{
    const struct node *n = pages_at(&p->s->nodes, i->node.v);
    const struct instance_wait *w;
    for (uint32_t at = i->waits; at != NONE; at = w->more) {
        w = pages_at(&p->s->waits, at);
        for (uint32_t on = n->first; on != NONE; on = snapshot_instance(p->s, on)->next_of_node) {
            const struct instance *other = snapshot_instance(p->s, on);
            if (other->id == w->id && state_active(other->state) && !bits_has(p->c.removed, on))
                return false;
        }
    }
    return true;
}

/* Returns whether another instance still holds one of its ports on the node, or mounts one of its volumes elsewhere. */
static bool is_port_or_volume_held(const struct berth_plan *p, const struct instance *i)
{
    const struct port_or_volume_hold *own, *h;
    for (uint32_t at = i->holds; at != NONE; at = own->more) {
        own = pages_at(&p->s->holds, at);
        const struct port_or_volume *t = snapshot_port_or_volume(p->s, own->port_or_volume);
        PORT_RIVALS_EACH (rival, &p->s->ports_and_volumes, own->port_or_volume)
            for (uint32_t x = snapshot_port_or_volume(p->s, rival)->first; x != NONE; x = h->next) {
                h = pages_at(&p->s->holds, x);
                bool here = h->node == own->node;
                bool in_the_way = t->kind == HELD_PORT ? here : !here && !t->shared;
                if (h->instance != own->instance && in_the_way &&
                    (h->instance == NONE || !bits_has(p->c.removed, h->instance)))
                    return true;
            }
    }
    return false;
}

enum promotion promotion_of(struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    struct cycle *c = &p->c;
    const struct class *k = snapshot_class(p->s, i->class);
    const struct attempt fixed = {.c = c, .k = k}; /* enough for filters on fixed node properties */
    uint32_t at = snapshot_position(p->s, i);
    bool now = true;

    if (bits_has(c->over, at) || !bits_has(attempt_constraints_mask(c, &fixed), at))
        return PROMOTION_NEVER;
    for (uint32_t n = 0; n < k->needs_len; n++) {
        uint32_t r = k->needs[n].resource;
        if (r >= c->resources || !c->free[r])
            return PROMOTION_NEVER;
        now &= c->now[r][at] >= k->needs[n].amount; /* separate books exist because an instance is reserved */
        if (c->later[r][at] < 0)
            return PROMOTION_NEVER;
    }
    BITS_EACH (d, i->gpus) {
        const struct device_free *f = &c->devices[c->l->device[at] + d];
        now &= f->now >= (int32_t)k->gpu.milli;
        if (f->later < 0 || c->l->devices[c->l->device[at] + d].unhealthy)
            return PROMOTION_NEVER;
    }
    int allotted = plan_quota_promotable(p, slot);
    if (allotted < 0)
        return PROMOTION_NEVER;
    return now && allotted && (waits_are_done(p, i) || PLANTED(PROMOTE_EARLY)) && !is_port_or_volume_held(p, i)
               ? PROMOTION_NOW
               : PROMOTION_LATER;
}

static enum member_role classify_reserved(struct berth_plan *p, struct workload_member *m, uint8_t state)
{
    enum promotion promotion = state == BERTH_NODE_READY ? promotion_of(p, m->slot) : PROMOTION_NEVER;
    if (promotion == PROMOTION_NEVER) {
        plan_stop(p, m->slot, BERTH_CAUSE_INFEASIBLE);
        return PART_NONE;
    }
    m->promote = promotion == PROMOTION_NOW;
    return PART_COUNTED;
}

static enum member_role classify_lost(struct berth_plan *p, struct workload_member *m, const struct instance *i,
                                      const struct workload *w)
{
    uint32_t at = snapshot_position(p->s, i);
    int64_t fenced, fence_ns = i->fence_ns > w->fence_ns ? i->fence_ns : w->fence_ns;

    m->lost = true;
    if ((p->alarm && !PLANTED(ALARM_IGNORED)) || w->on_lost == BERTH_LOST_WAIT || w->gone || w->suspended)
        return PART_COUNTED; /* an instance that is not wanted is told to stop, in case its node ever reports again */
    if (w->on_lost == BERTH_LOST_REPLACE)
        return PART_NONE;
    if (__builtin_add_overflow(p->s->since[at], fence_ns, &fenced))
        fenced = BERTH_NEVER_NS;
    if (p->s->now_ns < fenced && !PLANTED(FENCE_IGNORED)) {
        plan_recheck(p, fenced);
        return PART_COUNTED;
    }
    (void)plan_act(p, BERTH_LOSE, BERTH_CAUSE_LOST, m->slot);
    bits_add(p->c.removed, m->slot);
    cycle_lose(&p->c, i);
    plan_quota_lose(p, m->slot);
    holds_release(&p->c, i);
    return PART_NONE;
}

static void classify(struct berth_plan *p, struct workload_status *st, struct workload_member *m)
{
    const struct instance *i = snapshot_instance(p->s, m->slot);
    if (i->state == BERTH_ENDED) {
        m->part = workload_done(st->w, i) ? PART_DONE : PART_NONE;
        return;
    }
    uint8_t state = p->s->state[snapshot_position(p->s, i)];
    bool over = eviction_moves(p, m->slot);
    m->draining = state == BERTH_NODE_DRAINING || over;
    m->why = over ? BERTH_CAUSE_OVER_CAPACITY : BERTH_CAUSE_DRAINED;
    m->outdated = i->outdated;
    if (i->state == BERTH_STOPPING)
        m->part = PART_LEAVING;
    else if (i->state == BERTH_RESERVED)
        m->part = classify_reserved(p, m, state);
    else if (state == BERTH_NODE_LOST)
        m->part = classify_lost(p, m, i, st->w);
    else
        m->part = PART_COUNTED;
    m->available = m->part == PART_COUNTED && !m->lost && i->state == BERTH_RUNNING && i->ready;
}

void member_stop_instance(struct berth_plan *p, struct workload_member *m, enum berth_cause cause)
{
    bool reserved = snapshot_instance(p->s, m->slot)->state == BERTH_RESERVED;
    plan_stop(p, m->slot, cause);
    m->part = reserved ? PART_NONE : PART_LEAVING;
}

/* ---- pairs of an old instance and its replacement --------------------------------------------------------------- */

static uint32_t member_find(const struct workload_status *st, uint64_t id)
{
    for (uint32_t n = 0; n < st->len; n++)
        if (st->at[n].id == id)
            return n;
    return NONE;
}

/* Returns whether an automatic migration has been starting for too long. */
static bool overdue(struct berth_plan *p, int64_t since_ns)
{
    int64_t end;
    if (__builtin_add_overflow(since_ns, STARTING_NS_MAX, &end))
        return false;
    plan_recheck(p, end);
    return p->s->now_ns >= end;
}

/* Compares two replacements of one instance: the available one is kept, else the older one. */
static bool is_better_replacement(const struct workload_member *a, const struct workload_member *b)
{
    if (a->available != b->available)
        return a->available;
    return a->id < b->id;
}

static void pair_replacements(struct berth_plan *p, struct workload_status *st)
{
    for (uint32_t n = 0; n < st->len && p->s->replacing; n++) {
        struct workload_member *m = &st->at[n];
        uint64_t replaces = snapshot_instance(p->s, m->slot)->replaces;
        if (m->part != PART_COUNTED || !replaces || m->lost)
            continue;
        uint32_t old = member_find(st, replaces);
        if (old == NONE || st->at[old].part != PART_COUNTED || st->at[old].lost || old == n)
            continue; /* the replacement has taken over already */
        m->part = PART_EXTRA;
        uint32_t rival = st->at[old].extra;
        if (rival != NONE && !is_better_replacement(m, &st->at[rival])) {
            member_stop_instance(p, m, BERTH_CAUSE_SCALED);
            continue;
        }
        if (rival != NONE)
            member_stop_instance(p, &st->at[rival], BERTH_CAUSE_SCALED);
        st->at[old].extra = n;
    }
}

/* Undoes migrations that a user wants undone, or that took too long. */
static void undo_migrations(struct berth_plan *p, struct workload_status *st)
{
    struct migration_state seen;
    for (uint32_t n = 0; n < st->len; n++) {
        struct workload_member *m = &st->at[n];
        if (m->part != PART_COUNTED || m->extra == NONE || m->draining || !migration_of(p, m->id, &seen))
            continue;
        bool stale =
            seen.phase == BERTH_MIGRATION_STARTING && seen.cause == BERTH_CAUSE_MOVED && overdue(p, seen.at_ns);
        if (seen.phase != BERTH_MIGRATION_UNDONE && !stale)
            continue;
        member_stop_instance(p, &st->at[m->extra], BERTH_CAUSE_UNDONE);
        migration_note(p, m->id, BERTH_MIGRATION_UNDONE, seen.cause);
        m->extra = NONE;
    }
}

/* Ends migrations whose new instance is available. */
static void complete_migrations(struct berth_plan *p, struct workload_status *st)
{
    for (uint32_t n = 0; n < st->len; n++) {
        struct workload_member *m = &st->at[n];
        if (m->part != PART_COUNTED || m->extra == NONE || !st->at[m->extra].available)
            continue;
        migration_note(p, m->id, BERTH_MIGRATION_STOPPING, BERTH_CAUSE_MOVED);
        member_stop_instance(p, m, BERTH_CAUSE_MOVED);
        st->at[m->extra].part = PART_COUNTED;
        m->extra = NONE;
    }
}

/* Compares two instances with one ordinal (one came back from a lost node): the available one is kept, else the younger
 * one. */
static bool is_better_duplicate(const struct workload_member *a, const struct workload_member *b)
{
    if (a->available != b->available)
        return a->available;
    return a->id > b->id;
}

static bool has_better_duplicate(const struct workload_status *st, const struct workload_member *m)
{
    for (const struct workload_member *x = m; x-- > st->at && x->ordinal == m->ordinal;)
        if (x->part == PART_COUNTED && is_better_duplicate(x, m))
            return true;
    for (const struct workload_member *x = m + 1; x < st->at + st->len && x->ordinal == m->ordinal; x++)
        if (x->part == PART_COUNTED && is_better_duplicate(x, m))
            return true;
    return false;
}

void member_stop(struct berth_plan *p, struct workload_status *st, struct workload_member *m, enum berth_cause cause)
{
    assert(m->part == PART_COUNTED);
    member_stop_instance(p, m, cause);
    st->counted--;
    st->available -= m->available;
    if (m->extra != NONE)
        member_stop_instance(p, &st->at[m->extra], cause);
}

static bool ordinal_done(const struct workload_status *st, const struct workload_member *m)
{
    for (const struct workload_member *x = m; x-- > st->at && x->ordinal == m->ordinal;)
        if (x->part == PART_DONE)
            return true;
    for (const struct workload_member *x = m + 1; x < st->at + st->len && x->ordinal == m->ordinal; x++)
        if (x->part == PART_DONE)
            return true;
    return false;
}

/* Stops duplicate instances of a pod. Tasks of a job have ranks: those with a rank past the last one, or whose task is
 * done, stop too. */
static void stop_excess_instances(struct berth_plan *p, struct workload_status *st)
{
    bool ranks = st->w->kind == BERTH_JOB;
    for (uint32_t n = 0; n < st->len && st->want; n++) {
        struct workload_member *m = &st->at[n];
        if (m->part == PART_COUNTED &&
            (has_better_duplicate(st, m) || (ranks && (m->ordinal >= st->want || ordinal_done(st, m)))))
            member_stop(p, st, m, BERTH_CAUSE_SCALED);
    }
}

/* Returns whether an earlier instance of the same task is done as well. */
static bool done_before(const struct workload_status *st, uint32_t n)
{
    for (uint32_t x = n; x-- > 0 && st->at[x].ordinal == st->at[n].ordinal;)
        if (st->at[x].part == PART_DONE)
            return true;
    return false;
}

void workload_status_find(struct berth_plan *p, uint32_t workload, struct workload_status *st)
{
    *st = (struct workload_status){.workload = workload, .w = snapshot_workload(p->s, workload)};
    st->want = st->w->gone || st->w->suspended ? 0 : st->w->replicas;
    if (st->w->first == NONE)
        return;
    collect_members(p, st);
    for (uint32_t n = 0; n < st->len; n++)
        classify(p, st, &st->at[n]);
    pair_replacements(p, st);
    undo_migrations(p, st);
    complete_migrations(p, st);
    for (uint32_t n = 0; n < st->len; n++) {
        st->counted += st->at[n].part == PART_COUNTED;
        st->done += st->at[n].part == PART_DONE && st->want && !done_before(st, n);
        st->available += st->at[n].available && st->at[n].part == PART_COUNTED;
    }
    stop_excess_instances(p, st);
}
