/* eviction.c - finds evictions from nodes under memory pressure and from nodes over capacity. */
#include "core/plan/eviction.h"

#include <string.h>

#include "base/bits.h"
#include "base/sort.h"

/* A node under memory pressure. */
struct pressured_node {
    uint32_t position;
    bool known;    /* a fact says that it was under pressure before */
    int64_t at_ns; /* start of the pressure, or the last stop because of it; now_ns if not known */
    uint32_t drop; /* slot of the instance to stop, or NONE */
};

struct evictions {
    VEC(struct pressured_node) under_pressure;
    VEC(uint32_t) slots;
    uint64_t *moves, *stops; /* bit sets of instance slots; NULL: none */
    struct keyed *known;     /* pressure facts of the snapshot, sorted by node name */
    uint32_t known_len;
    uint64_t *kept; /* a bit per known fact: the node is still under pressure */
};

bool eviction_moves(const struct berth_plan *p, uint32_t instance)
{
    return p->evictions->moves && bits_has(p->evictions->moves, instance);
}

bool eviction_stops(const struct berth_plan *p, uint32_t instance)
{
    return p->evictions->stops && bits_has(p->evictions->stops, instance);
}

static void eviction_add(struct berth_plan *p, uint64_t **bits, uint32_t slot)
{
    if (!*bits)
        *bits = ARENA_ARRAY(&p->arena, uint64_t, bits_words(p->s->instances.len) + 1);
    bits_add(*bits, slot);
    vec_push(&p->evictions->slots, slot);
}

void evictions_mark_workloads(const struct berth_plan *p, uint64_t *workloads)
{
    for (size_t i = 0; i < p->evictions->slots.len; i++)
        bits_add(workloads, snapshot_instance(p->s, p->evictions->slots.at[i])->workload.v);
}

void evictions_done(struct berth_plan *p)
{
    if (!p->evictions)
        return;
    vec_done(&p->evictions->under_pressure);
    vec_done(&p->evictions->slots);
}

/* Returns whether the instance may be evicted: a settled instance of a wanted service that is in no gang. A gang only
 * goes as a whole. */
static bool may_evict(const struct berth_plan *p, const struct instance *i)
{
    const struct workload *w = snapshot_workload(p->s, i->workload.v);
    bool settled = i->state == BERTH_ASSIGNED || i->state == BERTH_STARTING || i->state == BERTH_RUNNING;
    return settled && w->kind == BERTH_SERVICE && !w->gone && !w->suspended && w->gang == NONE;
}

/* Returns whether evictions apply to the node: lost nodes do not report, and drained nodes lose everything anyway. */
static bool node_allows_eviction(const struct berth_snapshot *s, uint32_t position)
{
    return s->state[position] == BERTH_NODE_READY || s->state[position] == BERTH_NODE_CORDONED;
}

/* ---- pressure: nodes -------------------------------------------------------------------------------------------- */

static bool above(int64_t used, uint32_t percent, int64_t of)
{
    return (__int128)used * 100 > (__int128)of * percent;
}

static void index_known_facts(struct berth_plan *p)
{
    struct evictions *l = p->evictions;
    uint32_t len = 0;
    for (uint32_t i = 0; i < p->s->facts.len; i++) {
        const struct fact *f = pages_at(&p->s->facts, i);
        len += f->live && f->kind == BERTH_FACT_PRESSURE;
    }
    l->known = arena_alloc(&p->arena, (2 * (size_t)len + 1) * sizeof *l->known);
    l->kept = ARENA_ARRAY(&p->arena, uint64_t, bits_words(len) + 1);
    for (uint32_t i = 0; len && i < p->s->facts.len; i++) {
        const struct fact *f = pages_at(&p->s->facts, i);
        if (f->live && f->kind == BERTH_FACT_PRESSURE)
            l->known[l->known_len++] = (struct keyed){f->key, i};
    }
    sort_keyed(l->known, l->known + len, len);
}

/* Returns the index of the node's fact among the known ones, or NONE. */
static uint32_t known_fact_find(const struct evictions *l, sym node)
{
    uint32_t low = 0, high = l->known_len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (l->known[mid].key < node)
            low = mid + 1;
        else
            high = mid;
    }
    return low < l->known_len && l->known[low].key == node ? low : NONE;
}

static void find_pressed(struct berth_plan *p)
{
    const struct berth_snapshot *s = p->s;
    const struct berth_pressure *policy = &p->policy.pressure;
    struct evictions *l = p->evictions;

    for (uint32_t at = 0; policy->high_percent && s->used[USE_MEMORY] && at < s->layout->len; at++) {
        int64_t used = s->used[USE_MEMORY][at], has = s->layout->real[USE_MEMORY][at];
        if (has <= 0 || !above(used, policy->low_percent, has) || !node_allows_eviction(s, at))
            continue;
        uint32_t known = l->known_len ? known_fact_find(l, s->layout->id[at]) : NONE;
        if (known == NONE && !above(used, policy->high_percent, has))
            continue;
        struct pressured_node under_pressure = {
            .position = at, .known = known != NONE, .at_ns = s->now_ns, .drop = NONE};
        if (known != NONE) {
            bits_add(l->kept, known);
            under_pressure.at_ns = ((const struct fact *)pages_at(&s->facts, l->known[known].value))->at_ns;
        }
        vec_push(&l->under_pressure, under_pressure);
        if (!p->c.under_pressure)
            p->c.under_pressure = ARENA_ARRAY(&p->arena, uint64_t, p->c.blocks + 1);
        bits_add(p->c.under_pressure, at);
    }
}

/* ---- pressure: instances to stop -------------------------------------------------------------------------------- */

static int64_t memory_used(const struct berth_snapshot *s, const struct instance *i)
{
    const struct usage *u;
    for (uint32_t at = state_active(i->state) ? i->usage : NONE; at != NONE; at = u->more) {
        u = pages_at(&s->usages, at);
        if (u->resource == RESOURCE_MEMORY)
            return u->used;
    }
    return 0;
}

static bool available(const struct berth_snapshot *s, const struct instance *i)
{
    return i->state == BERTH_RUNNING && i->ready && s->state[snapshot_position(s, i)] != BERTH_NODE_LOST;
}

/* Returns whether the workload stays above min_available without this instance and without those picked already. */
static bool is_spare(const struct berth_plan *p, const struct instance *i)
{
    const struct workload *w = snapshot_workload(p->s, i->workload.v);
    uint32_t there = 0, going = 0;

    if (!available(p->s, i))
        return true;
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload)
        there += available(p->s, snapshot_instance(p->s, at));
    for (size_t n = 0; n < p->evictions->under_pressure.len; n++) {
        uint32_t slot = p->evictions->under_pressure.at[n].drop;
        going += slot != NONE && snapshot_instance(p->s, slot)->workload.v == i->workload.v &&
                 available(p->s, snapshot_instance(p->s, slot));
    }
    return there - going > w->min_available;
}

/* Returns whether `a` is evicted before `b`. */
static bool evicts_before(const struct berth_plan *p, const struct instance *a, const struct instance *b)
{
    int32_t pa = snapshot_workload(p->s, a->workload.v)->priority;
    int32_t pb = snapshot_workload(p->s, b->workload.v)->priority;
    int64_t over_a = memory_used(p->s, a) - class_need(snapshot_class(p->s, a->class), RESOURCE_MEMORY);
    int64_t over_b = memory_used(p->s, b) - class_need(snapshot_class(p->s, b->class), RESOURCE_MEMORY);
    if (pa != pb)
        return pa < pb;
    return over_a != over_b ? over_a > over_b : a->id > b->id;
}

static uint32_t pick_pressure_stop(const struct berth_plan *p, const struct pressured_node *at)
{
    const struct berth_snapshot *s = p->s;
    const struct node *n = pages_at(&s->nodes, s->layout->slot[at->position]);
    bool promises_more =
        snapshot_capacity(s, RESOURCE_MEMORY, at->position) > s->layout->real[USE_MEMORY][at->position];
    uint32_t best = NONE;

    for (uint32_t slot = n->first; slot != NONE; slot = snapshot_instance(s, slot)->next_of_node) {
        const struct instance *i = snapshot_instance(s, slot);
        int64_t used = memory_used(s, i);
        bool over = used > class_need(snapshot_class(s, i->class), RESOURCE_MEMORY);
        if (used > 0 && (over || promises_more) && may_evict(p, i) &&
            (best == NONE || evicts_before(p, i, snapshot_instance(s, best))) && is_spare(p, i))
            best = slot;
    }
    return best;
}

/* Returns the memory used by stopping instances of the node, and adds their number to *ret_len. */
static int64_t stopping_used(const struct berth_snapshot *s, uint32_t position, uint32_t *ret_len)
{
    const struct node *n = pages_at(&s->nodes, s->layout->slot[position]);
    int64_t sum = 0;
    for (uint32_t slot = n->first; slot != NONE; slot = snapshot_instance(s, slot)->next_of_node) {
        const struct instance *i = snapshot_instance(s, slot);
        if (i->state != BERTH_STOPPING)
            continue;
        sum += memory_used(s, i);
        *ret_len += 1;
    }
    return sum;
}

static void find_pressure_stops(struct berth_plan *p)
{
    const struct berth_pressure *policy = &p->policy.pressure;
    const struct berth_snapshot *s = p->s;
    uint32_t stopping = 0, ignored_len = 0;
    bool picked = false;

    for (size_t i = 0; i < p->evictions->under_pressure.len; i++) {
        (void)stopping_used(s, p->evictions->under_pressure.at[i].position, &stopping);
        /* Picks at most once per moment: the choice depends on earlier picks of the same moment, which are not
         * recorded. */
        picked |= p->evictions->under_pressure.at[i].known && p->evictions->under_pressure.at[i].at_ns == s->now_ns;
    }
    for (size_t i = 0; i < p->evictions->under_pressure.len; i++) {
        struct pressured_node *at = &p->evictions->under_pressure.at[i];
        int64_t left = s->used[USE_MEMORY][at->position] - stopping_used(s, at->position, &ignored_len), ripe;
        if (!above(left, policy->low_percent, s->layout->real[USE_MEMORY][at->position]) ||
            __builtin_add_overflow(at->at_ns, policy->hold_ns, &ripe))
            continue;
        if (s->now_ns < ripe || !at->known) {
            plan_recheck(p, ripe);
            continue;
        }
        if (picked || stopping >= policy->drops)
            continue;
        at->drop = pick_pressure_stop(p, at);
        if (at->drop == NONE)
            continue;
        eviction_add(p, &p->evictions->stops, at->drop);
        stopping++;
    }
}

/* ---- nodes over capacity ---------------------------------------------------------------------------------------- */

/* Fills `lack` with the amount, by resource, by which instances that do not stop exceed the node's capacity. Returns
 * whether any amount is positive. */
static bool find_excess(const struct berth_snapshot *s, uint32_t position, int64_t *excess)
{
    const struct node *n = pages_at(&s->nodes, s->layout->slot[position]);
    bool any = false;

    memset(excess, 0, s->resources_len * sizeof *excess);
    for (uint32_t slot = n->first; slot != NONE; slot = snapshot_instance(s, slot)->next_of_node) {
        const struct instance *i = snapshot_instance(s, slot);
        const struct class *k = snapshot_class(s, i->class);
        for (uint32_t d = 0; state_active(i->state) && i->state != BERTH_STOPPING && d < k->needs_len; d++)
            excess[k->needs[d].resource] += k->needs[d].amount;
    }
    for (uint32_t r = 0; r < s->resources_len; r++) {
        excess[r] -= snapshot_capacity(s, r, position);
        any |= excess[r] > 0;
    }
    return any;
}

struct eviction_order {
    const struct berth_snapshot *s;
    const uint32_t *slots;
};

static int compare_evictions(const void *ctx, uint32_t a, uint32_t b)
{
    const struct eviction_order *o = ctx;
    const struct instance *x = snapshot_instance(o->s, o->slots[a]), *y = snapshot_instance(o->s, o->slots[b]);
    int32_t px = snapshot_workload(o->s, x->workload.v)->priority,
            py = snapshot_workload(o->s, y->workload.v)->priority;
    if (px != py)
        return px < py ? -1 : 1;
    return x->id > y->id ? -1 : 1;
}

static bool frees_excess(const struct class *k, const int64_t *excess)
{
    for (uint32_t d = 0; d < k->needs_len; d++)
        if (excess[k->needs[d].resource] > 0 && k->needs[d].amount > 0)
            return true;
    return false;
}

/* Moves instances that hold a lacking resource, lowest priority first, then the youngest, until nothing is lacking. */
static void move_off_node(struct berth_plan *p, uint32_t position, int64_t *excess)
{
    const struct berth_snapshot *s = p->s;
    const struct node *n = pages_at(&s->nodes, s->layout->slot[position]);
    uint32_t *slots = ARENA_ARRAY(&p->scratch, uint32_t, n->instances), len = 0;

    for (uint32_t slot = n->first; slot != NONE; slot = snapshot_instance(s, slot)->next_of_node) {
        const struct instance *i = snapshot_instance(s, slot);
        if (may_evict(p, i) && snapshot_workload(s, i->workload.v)->on_drain != BERTH_DRAIN_WAIT)
            slots[len++] = slot;
    }
    uint32_t *order = ARENA_ARRAY(&p->scratch, uint32_t, 2 * (size_t)len);
    for (uint32_t i = 0; i < len; i++)
        order[i] = i;
    struct eviction_order by = {s, slots};
    sort_indices(order, order + len, len, compare_evictions, &by);
    for (uint32_t i = 0; i < len; i++) {
        uint32_t slot = slots[order[i]];
        const struct class *k = snapshot_class(s, snapshot_instance(s, slot)->class);
        if (!frees_excess(k, excess))
            continue;
        for (uint32_t d = 0; d < k->needs_len; d++)
            excess[k->needs[d].resource] -= k->needs[d].amount;
        /* also an instance that pressure picked: its workload may need the replacement */
        eviction_add(p, &p->evictions->moves, slot);
    }
}

static void find_overcapacity_moves(struct berth_plan *p)
{
    const struct berth_snapshot *s = p->s;
    int64_t *excess = ARENA_ARRAY(&p->scratch, int64_t, s->resources_len + 1);

    for (uint32_t b = 0; b < s->layout->blocks; b++)
        BITS_EACH (lane, s->over[b]) {
            uint32_t at = b * BLOCK + (uint32_t)lane;
            struct arena_mark mark = arena_mark(&p->scratch);
            if (node_allows_eviction(s, at) && find_excess(s, at, excess))
                move_off_node(p, at, excess);
            arena_rewind(&p->scratch, mark);
        }
}

/* ---- entry points ----------------------------------------------------------------------------------------------- */

void evictions_find(struct berth_plan *p)
{
    p->evictions = ARENA_NEW(&p->arena, struct evictions);
    index_known_facts(p);
    find_pressed(p);
    if (p->evictions->under_pressure.len)
        find_pressure_stops(p);
    if (p->policy.shed && p->c.any_over)
        find_overcapacity_moves(p);
}

static void note_pressure(struct berth_plan *p, const char *node, bool over)
{
    struct berth_fact f = {
        .kind = BERTH_FACT_PRESSURE, .key = node, .value = !over, .at_ns = p->s->now_ns, .over = over};
    vec_push(&p->facts, f);
}

static int compare_known_facts(const void *ctx, uint32_t a, uint32_t b)
{
    const struct berth_plan *p = ctx;
    const struct keyed *known = p->evictions->known;
    return strcmp(snapshot_text(p->s, (sym)known[a].key), snapshot_text(p->s, (sym)known[b].key));
}

void evictions_close(struct berth_plan *p)
{
    struct evictions *l = p->evictions;
    uint32_t *order = ARENA_ARRAY(&p->scratch, uint32_t, 2 * (size_t)l->known_len), len = 0;

    for (size_t i = 0; i < l->under_pressure.len; i++) {
        const struct pressured_node *at = &l->under_pressure.at[i];
        if (!at->known || at->drop != NONE) /* also when reconcile.c kept the instance because of min_available */
            note_pressure(p, snapshot_text(p->s, p->s->layout->id[at->position]), false);
    }
    for (uint32_t i = 0; i < l->known_len; i++)
        if (!bits_has(l->kept, i))
            order[len++] = i;
    sort_indices(order, order + len, len, compare_known_facts, p);
    for (uint32_t i = 0; i < len; i++)
        note_pressure(p, snapshot_text(p->s, (sym)l->known[order[i]].key), true);
}
