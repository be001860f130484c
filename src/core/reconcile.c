/* reconcile.c - what is no longer wanted or possible goes; what is missing is wished for.
 *
 * For each workload: its instances are looked at one by one (lost, fenced, reserved and to be promoted or dropped), then
 * as a whole (a gang below its minimum, more than asked for, on a node being drained), and what is missing becomes a
 * wish. Stops come before all placements, so that places can be reserved on what they will free.
 */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "base/sort.h"
#include "core/plan.h"

enum { PREFETCH = 8 }; /* workloads in order are scattered in memory */

enum part {
    PART_NONE,    /* gone with this plan, or ended, or unknown and replaced */
    PART_COUNTED, /* one of the pods asked for */
    PART_EXTRA,   /* about to take over from a counted one */
    PART_LEAVING, /* stopping */
    PART_DONE,    /* a task that ended */
};

struct member {
    uint32_t slot, ordinal;
    uint64_t id;
    enum part part;
    bool lost; /* unknown: on a node that does not report, and yet counted */
    bool draining;
    bool available; /* ready and running */
    bool promote;   /* reserved, and its place is free now */
    uint32_t extra; /* member that takes over from this one, or NONE */
};

/* A workload and its instances, as they stand. */
struct standing {
    uint32_t workload;
    const struct workload *w;
    struct member *at; /* by ordinal and id */
    uint32_t len;
    uint32_t want, counted, done, available;
};

/* ---- looking at instances one by one ---------------------------------------------------------------------------- */

static int compare_members(const void *ctx, uint32_t a, uint32_t b)
{
    const struct member *at = ctx;
    if (at[a].ordinal != at[b].ordinal)
        return at[a].ordinal < at[b].ordinal ? -1 : 1;
    return (at[a].id > at[b].id) - (at[a].id < at[b].id);
}

static void gather(struct berth_plan *p, struct standing *st)
{
    const struct instance *i;
    uint32_t len = 0;

    for (uint32_t at = st->w->first; at != NONE; at = i->next_of_workload) {
        i = snapshot_instance(p->s, at);
        len++;
    }
    struct member *raw = ARENA_ARRAY(&p->scratch, struct member, len);
    uint32_t *order = ARENA_ARRAY(&p->scratch, uint32_t, 2 * (size_t)len);
    for (uint32_t at = st->w->first; at != NONE; at = i->next_of_workload) {
        i = snapshot_instance(p->s, at);
        order[st->len] = st->len;
        raw[st->len++] = (struct member){.slot = at, .ordinal = i->ordinal, .id = i->id, .extra = NONE};
    }
    sort_indices(order, order + len, len, compare_members, raw);
    st->at = ARENA_ARRAY(&p->scratch, struct member, len);
    for (uint32_t n = 0; n < len; n++)
        st->at[n] = raw[order[n]];
}

/* Have all the instances it waits for stopped? They are on its own node. */
static bool waits_over(const struct berth_plan *p, const struct instance *i)
{
    const struct node *n = pages_at(&p->s->nodes, i->node.v);
    const struct wait *w;
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

/* Does another still hold one of its ports on the node, or mount one of its volumes elsewhere? */
static bool things_held(const struct berth_plan *p, const struct instance *i)
{
    const struct hold *own, *h;
    for (uint32_t at = i->holds; at != NONE; at = own->more) {
        own = pages_at(&p->s->holds, at);
        const struct thing *t = snapshot_thing(p->s, own->thing);
        for (uint32_t x = t->first; x != NONE; x = h->next) {
            h = pages_at(&p->s->holds, x);
            bool here = h->node == own->node;
            bool in_the_way = t->kind == THING_PORT ? here : !here && !t->shared;
            if (x != at && in_the_way && (h->instance == NONE || !bits_has(p->c.removed, h->instance)))
                return true;
        }
    }
    return false;
}

enum promise { PROMISE_WAITS, PROMISE_HOLDS, PROMISE_BROKEN };

/* Could a reserved instance have its place at once, later, or never? */
static enum promise promise_of(const struct berth_plan *p, const struct instance *i)
{
    const struct cycle *c = &p->c;
    const struct class *k = snapshot_class(p->s, i->class);
    uint32_t at = snapshot_position(p->s, i);
    bool now = true;

    if (bits_has(c->over, at))
        return PROMISE_BROKEN;
    for (uint32_t n = 0; n < k->needs_len; n++) {
        uint32_t r = k->needs[n].resource;
        if (r >= c->resources || !c->free[r])
            return PROMISE_BROKEN;
        now &= c->now[r][at] >= k->needs[n].amount; /* two books exist: something is reserved */
        if (c->later[r][at] < 0)
            return PROMISE_BROKEN;
    }
    BITS_EACH (d, i->gpus) {
        const struct device_free *f = &c->devices[c->l->device[at] + d];
        now &= f->now >= (int32_t)k->gpu.milli;
        if (f->later < 0)
            return PROMISE_BROKEN;
    }
    return now && waits_over(p, i) && !things_held(p, i) ? PROMISE_HOLDS : PROMISE_WAITS;
}

static enum part look_reserved(struct berth_plan *p, struct member *m, const struct instance *i, uint8_t state)
{
    enum promise promise = state == BERTH_NODE_READY ? promise_of(p, i) : PROMISE_BROKEN;
    if (promise == PROMISE_BROKEN) {
        plan_stop(p, m->slot, BERTH_CAUSE_INFEASIBLE);
        return PART_NONE;
    }
    m->promote = promise == PROMISE_HOLDS;
    return PART_COUNTED;
}

static enum part look_lost(struct berth_plan *p, struct member *m, const struct instance *i, const struct workload *w)
{
    uint32_t at = snapshot_position(p->s, i);
    int64_t fenced;

    m->lost = true;
    if (p->alarm || w->on_lost == BERTH_LOST_WAIT || w->gone || w->suspended)
        return PART_COUNTED; /* what is not wanted is told to stop, should it ever listen */
    if (w->on_lost == BERTH_LOST_REPLACE)
        return PART_NONE;
    if (__builtin_add_overflow(p->s->since[at], w->fence_ns, &fenced))
        fenced = BERTH_NEVER_NS;
    if (p->s->now_ns < fenced) {
        plan_recheck(p, fenced);
        return PART_COUNTED;
    }
    (void)plan_act(p, BERTH_LOSE, BERTH_CAUSE_LOST, m->slot);
    bits_add(p->c.removed, m->slot);
    cycle_lose(&p->c, i);
    return PART_NONE;
}

static void look(struct berth_plan *p, struct standing *st, struct member *m)
{
    const struct instance *i = snapshot_instance(p->s, m->slot);
    uint8_t state = p->s->state[snapshot_position(p->s, i)];

    m->draining = state == BERTH_NODE_DRAINING;
    if (i->state == BERTH_ENDED)
        m->part = workload_done(st->w, i) ? PART_DONE : PART_NONE;
    else if (i->state == BERTH_STOPPING)
        m->part = PART_LEAVING;
    else if (i->state == BERTH_RESERVED)
        m->part = look_reserved(p, m, i, state);
    else if (state == BERTH_NODE_LOST)
        m->part = look_lost(p, m, i, st->w);
    else
        m->part = PART_COUNTED;
    m->available = m->part == PART_COUNTED && !m->lost && i->state == BERTH_RUNNING && i->ready;
}

/* Tells it to stop. One that was only reserved is gone at once. */
static void leave(struct berth_plan *p, struct member *m, enum berth_cause cause)
{
    bool reserved = snapshot_instance(p->s, m->slot)->state == BERTH_RESERVED;
    plan_stop(p, m->slot, cause);
    m->part = reserved ? PART_NONE : PART_LEAVING;
}

/* ---- pairs: the old one and the one that takes over ------------------------------------------------------------- */

static uint32_t member_find(const struct standing *st, uint64_t id)
{
    for (uint32_t n = 0; n < st->len; n++)
        if (st->at[n].id == id)
            return n;
    return NONE;
}

/* Of two replacements the one that is available, then the older one, is kept. */
static bool better_extra(const struct member *a, const struct member *b)
{
    if (a->available != b->available)
        return a->available;
    return a->id < b->id;
}

static void pair(struct berth_plan *p, struct standing *st)
{
    for (uint32_t n = 0; n < st->len && p->s->replacing; n++) {
        struct member *m = &st->at[n];
        uint64_t replaces = snapshot_instance(p->s, m->slot)->replaces;
        if (m->part != PART_COUNTED || !replaces || m->lost)
            continue;
        uint32_t old = member_find(st, replaces);
        if (old == NONE || st->at[old].part != PART_COUNTED || st->at[old].lost || old == n)
            continue; /* it has taken over already */
        m->part = PART_EXTRA;
        uint32_t rival = st->at[old].extra;
        if (rival != NONE && !better_extra(m, &st->at[rival])) {
            leave(p, m, BERTH_CAUSE_SCALED);
            continue;
        }
        if (rival != NONE)
            leave(p, &st->at[rival], BERTH_CAUSE_SCALED);
        st->at[old].extra = n;
    }
}

/* Ends migrations whose new instance is available. */
static void take_over(struct berth_plan *p, struct standing *st)
{
    for (uint32_t n = 0; n < st->len; n++) {
        struct member *m = &st->at[n];
        if (m->part != PART_COUNTED || m->extra == NONE || !st->at[m->extra].available)
            continue;
        plan_fact_migration(p, m->id, BERTH_MIGRATION_STOPPING);
        leave(p, m, BERTH_CAUSE_MOVED);
        st->at[m->extra].part = PART_COUNTED;
        m->extra = NONE;
    }
}

/* Of two with one ordinal (one came back from a lost node) the one that is available is kept, then the younger. */
static bool better_twin(const struct member *a, const struct member *b)
{
    if (a->available != b->available)
        return a->available;
    return a->id > b->id;
}

static bool outdone(const struct standing *st, const struct member *m)
{
    for (const struct member *x = m; x-- > st->at && x->ordinal == m->ordinal;)
        if (x->part == PART_COUNTED && better_twin(x, m))
            return true;
    for (const struct member *x = m + 1; x < st->at + st->len && x->ordinal == m->ordinal; x++)
        if (x->part == PART_COUNTED && better_twin(x, m))
            return true;
    return false;
}

/* Stops a counted member and whoever was to take over from it. */
static void member_stop(struct berth_plan *p, struct standing *st, struct member *m, enum berth_cause cause)
{
    assert(m->part == PART_COUNTED);
    leave(p, m, cause);
    st->counted--;
    st->available -= m->available;
    if (m->extra != NONE)
        leave(p, &st->at[m->extra], cause);
}

static bool ordinal_done(const struct standing *st, const struct member *m)
{
    for (const struct member *x = m; x-- > st->at && x->ordinal == m->ordinal;)
        if (x->part == PART_DONE)
            return true;
    for (const struct member *x = m + 1; x < st->at + st->len && x->ordinal == m->ordinal; x++)
        if (x->part == PART_DONE)
            return true;
    return false;
}

/* No pod has two; and tasks have ranks: one beyond the last, or one that is done, is none of those asked for. */
static void stop_strays(struct berth_plan *p, struct standing *st)
{
    bool ranks = st->w->kind == BERTH_JOB;
    for (uint32_t n = 0; n < st->len && st->want; n++) {
        struct member *m = &st->at[n];
        if (m->part == PART_COUNTED && (outdone(st, m) || (ranks && (m->ordinal >= st->want || ordinal_done(st, m)))))
            member_stop(p, st, m, BERTH_CAUSE_SCALED);
    }
}

/* Has an earlier one of the same task ended, too? */
static bool done_before(const struct standing *st, uint32_t n)
{
    for (uint32_t x = n; x-- > 0 && st->at[x].ordinal == st->at[n].ordinal;)
        if (st->at[x].part == PART_DONE)
            return true;
    return false;
}

static void stand(struct berth_plan *p, uint32_t workload, struct standing *st)
{
    *st = (struct standing){.workload = workload, .w = snapshot_workload(p->s, workload)};
    st->want = st->w->gone || st->w->suspended ? 0 : st->w->replicas;
    if (st->w->first == NONE)
        return;
    gather(p, st);
    for (uint32_t n = 0; n < st->len; n++)
        look(p, st, &st->at[n]);
    pair(p, st);
    take_over(p, st);
    for (uint32_t n = 0; n < st->len; n++) {
        st->counted += st->at[n].part == PART_COUNTED;
        st->done += st->at[n].part == PART_DONE && st->want && !done_before(st, n);
        st->available += st->at[n].available && st->at[n].part == PART_COUNTED;
    }
    stop_strays(p, st);
}

/* ---- as a whole ------------------------------------------------------------------------------------------------- */

struct victims {
    const struct standing *st;
    const uint32_t *key; /* [member] */
};

static int compare_victims(const void *ctx, uint32_t a, uint32_t b)
{
    const struct victims *v = ctx;
    if (v->key[a] != v->key[b])
        return v->key[a] > v->key[b] ? -1 : 1;
    return a > b ? -1 : 1; /* the highest ordinal, then the youngest */
}

/* Whom to stop first: what does not report, is not there yet, does not work, or leaves anyway. */
static uint32_t victim_key(const struct berth_plan *p, const struct standing *st, const struct member *m)
{
    const struct instance *i = snapshot_instance(p->s, m->slot);
    if (st->w->kind == BERTH_JOB)
        return 0; /* tasks have ranks: the last ones go */
    return (uint32_t)m->lost << 3 | (uint32_t)(i->state == BERTH_RESERVED) << 2 | (uint32_t)!m->available << 1 |
           (uint32_t)m->draining;
}

static void stop_surplus(struct berth_plan *p, struct standing *st, uint32_t surplus)
{
    uint32_t *order = ARENA_ARRAY(&p->scratch, uint32_t, 2 * (size_t)st->len), len = 0;
    uint32_t *key = ARENA_ARRAY(&p->scratch, uint32_t, st->len);
    for (uint32_t n = 0; n < st->len; n++) {
        if (st->at[n].part != PART_COUNTED)
            continue;
        key[n] = victim_key(p, st, &st->at[n]);
        order[len++] = n;
    }
    struct victims v = {st, key};
    sort_indices(order, order + st->len, len, compare_victims, &v);
    for (uint32_t n = 0; n < surplus; n++)
        member_stop(p, st, &st->at[order[n]], BERTH_CAUSE_SCALED);
}

static void scale_in(struct berth_plan *p, struct standing *st)
{
    if (!st->w->gone && !st->w->suspended) {
        stop_surplus(p, st, st->counted - (st->want - st->done));
        return;
    }
    for (uint32_t n = 0; n < st->len; n++)
        if (st->at[n].part == PART_COUNTED)
            member_stop(p, st, &st->at[n], st->w->gone ? BERTH_CAUSE_REMOVED : BERTH_CAUSE_SUSPENDED);
}

static void wish_move(struct berth_plan *p, const struct standing *st, const struct member *m)
{
    struct wish w = {.workload = st->workload,
                     .class = st->w->class,
                     .first = m->ordinal,
                     .len = 1,
                     .replaces = m->slot,
                     .group = NONE,
                     .cause = BERTH_CAUSE_DRAINED,
                     .movable = st->available};
    vec_push(&p->wishes, w);
}

/* Begins the migrations that a drain asks for. */
static void move(struct berth_plan *p, struct standing *st)
{
    for (uint32_t n = 0; n < st->len; n++) {
        struct member *m = &st->at[n];
        if (m->part != PART_COUNTED || m->lost)
            continue;
        struct member *extra = m->extra == NONE ? NULL : &st->at[m->extra];
        if (extra && extra->draining) { /* its new place is being emptied, too */
            leave(p, extra, BERTH_CAUSE_DRAINED);
            extra = NULL;
            m->extra = NONE;
        }
        if (!m->draining || st->w->on_drain == BERTH_DRAIN_WAIT)
            continue;
        if (extra) {
            if (st->w->on_drain == BERTH_DRAIN_STOP) { /* the other one takes its place, ready or not */
                leave(p, m, BERTH_CAUSE_DRAINED);
                extra->part = PART_COUNTED;
                st->available -= m->available;
            }
        } else if (st->w->on_drain == BERTH_DRAIN_STOP) {
            member_stop(p, st, m, BERTH_CAUSE_DRAINED);
        } else {
            wish_move(p, st, m);
        }
    }
}

/* ---- what is missing -------------------------------------------------------------------------------------------- */

/* Pods get the lowest free ordinals. One that must not run twice gets no new instance before its old one has stopped. */
static void wish_missing(struct berth_plan *p, const struct standing *st, uint32_t group, uint32_t needed)
{
    uint32_t missing = st->want - st->done - st->counted;
    struct wish w = {.workload = st->workload,
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
            enum part part = st->at[n].part;
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
        vec_push(&p->wishes, w);
}

/* Reserved places that are still wanted and have become free. */
static void promote(struct berth_plan *p, struct standing *st)
{
    for (uint32_t n = 0; n < st->len; n++) {
        const struct member *m = &st->at[n];
        const struct instance *i = snapshot_instance(p->s, m->slot);
        if (!m->promote || (m->part != PART_COUNTED && m->part != PART_EXTRA) || promise_of(p, i) != PROMISE_HOLDS)
            continue;
        cycle_promote(&p->c, i);
        (void)plan_act(p, BERTH_PROMOTE, BERTH_CAUSE_PENDING, m->slot);
    }
}

static void settle(struct berth_plan *p, struct standing *st, uint32_t group, uint32_t needed)
{
    if (st->counted > st->want - st->done)
        scale_in(p, st);
    if (st->len) {
        move(p, st);
        promote(p, st);
    }
    if (st->want > st->done + st->counted)
        wish_missing(p, st, group, needed);
}

/* ---- gangs ------------------------------------------------------------------------------------------------------ */

/* Counted members that a drain is about to stop. */
static uint32_t drained(const struct standing *st)
{
    uint32_t n = 0;
    for (uint32_t i = 0; st->w->on_drain == BERTH_DRAIN_STOP && i < st->len; i++)
        n += st->at[i].part == PART_COUNTED && st->at[i].draining && !st->at[i].lost;
    return n;
}

/* A gang stands when each of its workloads has its minimum; it may also have nothing. Else it is broken: what is left is
 * stopped, and it starts anew as a whole. */
static void reconcile_gang(struct berth_plan *p, const uint32_t *members, uint32_t len, uint32_t group)
{
    struct standing *all = ARENA_ARRAY(&p->scratch, struct standing, len);
    bool any = false, whole = true, blocked = false;

    for (uint32_t n = 0; n < len; n++) {
        struct standing *st = &all[n];
        stand(p, members[n], st);
        uint32_t least = st->want ? st->w->gang_min : 0;
        any |= st->counted > 0 && least > 0;
        whole &= st->counted - drained(st) + st->done >= least;
    }
    if (any && !whole)
        for (uint32_t n = 0; n < len; n++)
            for (uint32_t i = 0; i < all[n].len; i++)
                if (all[n].at[i].part == PART_COUNTED && all[n].want)
                    member_stop(p, &all[n], &all[n].at[i], BERTH_CAUSE_BROKEN);
    size_t from = p->wishes.len;
    for (uint32_t n = 0; n < len; n++) {
        struct standing *st = &all[n];
        uint32_t has = st->counted + st->done, least = st->want ? st->w->gang_min : 0;
        uint32_t needed = whole || has >= least ? 0 : least - has;
        size_t before = p->wishes.len;
        settle(p, st, group, needed);
        blocked |= needed > 0 && (p->wishes.len == before || p->wishes.at[before].blocked);
    }
    for (size_t i = from; i < p->wishes.len; i++)
        p->wishes.at[i].blocked = blocked;
}

/* Members of the gang that are in the order, in that order. */
static uint32_t *gang_members(struct berth_plan *p, const uint32_t *place_of, uint32_t gang, uint32_t *ret_len)
{
    uint32_t len = 0, at = ((const struct gang *)pages_at(&p->s->gangs, gang))->first;
    for (uint32_t w = at; w != NONE; w = snapshot_workload(p->s, w)->next_in_gang)
        len++;
    uint32_t *list = ARENA_ARRAY(&p->scratch, uint32_t, len);
    len = 0;
    for (uint32_t w = at; w != NONE; w = snapshot_workload(p->s, w)->next_in_gang) {
        uint32_t j = len++;
        for (; j > 0 && place_of[list[j - 1]] > place_of[w]; j--)
            list[j] = list[j - 1];
        list[j] = w;
    }
    *ret_len = len;
    return list;
}

void reconcile(struct berth_plan *p, const uint32_t *order, uint32_t len)
{
    const struct berth_snapshot *s = p->s;
    uint32_t *place_of = s->gangs.len ? ARENA_ARRAY(&p->scratch, uint32_t, s->workloads.len + 1) : NULL;
    uint64_t *gang_done = ARENA_ARRAY(&p->scratch, uint64_t, bits_words(s->gangs.len) + 1);

    vec_reserve(&p->wishes, len);
    if (place_of)
        for (uint32_t i = 0; i < len; i++)
            place_of[order[i]] = i;
    for (uint32_t i = 0; i < len; i++) {
        const struct workload *w = snapshot_workload(s, order[i]);
        if (i + PREFETCH < len)
            __builtin_prefetch(snapshot_workload(s, order[i + PREFETCH]));
        if (w->gang == NONE) {
            struct arena_mark mark = arena_mark(&p->scratch);
            struct standing st;
            stand(p, order[i], &st);
            settle(p, &st, NONE, 0);
            arena_rewind(&p->scratch, mark);
        } else if (!bits_has(gang_done, w->gang)) {
            uint32_t members_len;
            assert(place_of); /* there are gangs */
            bits_add(gang_done, w->gang);
            uint32_t *members = gang_members(p, place_of, w->gang, &members_len);
            reconcile_gang(p, members, members_len, w->gang);
        }
    }
}
