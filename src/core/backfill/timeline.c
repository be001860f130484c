/* timeline.c - free resources of a node over time. */
#include "core/backfill/timeline.h"

#include <string.h>

#include "base/bits.h"
#include "core/gpu/gpu.h"
#include "core/search/attempt.h"

/* ---- room on one node ------------------------------------------------------------------------------------------- */

enum { UNSUITED = INT32_MIN / 2 }; /* never enough, whatever is freed */

bool node_free_load(const struct cycle *c, const struct class *k, uint32_t position, struct node_free *ret)
{
    for (uint32_t i = 0; i < k->needs_len; i++) {
        const int64_t *column = cycle_column(c, k->needs[i].resource, true);
        if (!column)
            return false;
        ret->free[i] = column[position];
    }
    uint32_t first = c->l->device[position];
    ret->devices = k->gpu.count ? c->l->device[position + 1] - first : 0;
    for (uint32_t d = 0; d < ret->devices; d++) {
        ret->milli[d] = gpu_device_suits(c->l, &k->gpu, first + d) ? c->devices[first + d].later : UNSUITED;
        ret->mem[d] = c->devices[first + d].mem_later;
    }
    return true;
}

static inline void needs_add(const struct class *k, struct node_free *r, const struct class *other, int32_t pods)
{
    for (uint32_t i = 0; i < k->needs_len; i++)
        r->free[i] += pods * class_need_at(other, i, k->needs[i].resource);
}

void node_free_add(const struct class *k, struct node_free *r, const struct class *other, uint64_t gpus, int32_t pods)
{
    needs_add(k, r, other, pods);
    if (!r->devices || !gpus)
        return;
    bool share = other->gpu.milli < BERTH_GPU_MILLI; /* otherwise each device belongs to one pod */
    int32_t times = share ? pods : (pods > 0) - (pods < 0);
    BITS_EACH (d, gpus) {
        if (d >= r->devices)
            break;
        r->milli[d] += times * (int32_t)other->gpu.milli;
        r->mem[d] += times * gpu_memory_booked(&other->gpu);
    }
}

uint32_t node_free_fits_needs(const struct class *k, const struct node_free *r, uint32_t most)
{
    if (k->max_per_node && most > k->max_per_node)
        most = k->max_per_node;
    if (k->ports_len && most > 1)
        most = 1;
    for (uint32_t i = 0; i < k->needs_len && most; i++) {
        int64_t need = k->needs[i].amount;
        if (r->free[i] < need)
            return 0;
        if (most > 1 && r->free[i] / need < most)
            most = (uint32_t)(r->free[i] / need);
    }
    return most;
}

/* Returns the number of pods that may hold a share of the device, at most `most`. */
static uint32_t shares(const struct class *k, const struct node_free *r, uint32_t d, uint32_t most)
{
    int32_t need = (int32_t)k->gpu.milli;
    if (r->milli[d] < need)
        return 0;
    uint32_t fits = (uint32_t)(r->milli[d] / need);
    if (k->gpu.milli < BERTH_GPU_MILLI && k->gpu.memory_bytes > 0) {
        int64_t by_memory = r->mem[d] < 0 ? 0 : r->mem[d] / k->gpu.memory_bytes;
        fits = by_memory < fits ? (uint32_t)by_memory : fits;
    }
    return fits < most ? fits : most;
}

uint32_t node_free_fits(const struct class *k, const struct node_free *r, uint32_t most)
{
    uint32_t fits = node_free_fits_needs(k, r, most), found = 0;
    if (!fits || !k->gpu.count)
        return fits;
    uint32_t wanted = fits * k->gpu.count;
    for (uint32_t d = 0; d < r->devices && found < wanted; d++)
        found += shares(k, r, d, wanted - found);
    return found / k->gpu.count < fits ? found / k->gpu.count : fits;
}

uint64_t node_free_devices(const struct class *k, const struct node_free *r)
{
    uint64_t devices = 0;
    for (uint32_t d = 0; d < r->devices; d++)
        devices |= (uint64_t)(shares(k, r, d, 1) > 0) << d;
    return devices;
}

static void node_free_copy(const struct class *k, struct node_free *to, const struct node_free *from)
{
    memcpy(to->free, from->free, k->needs_len * sizeof *to->free);
    memcpy(to->milli, from->milli, from->devices * sizeof *to->milli);
    memcpy(to->mem, from->mem, from->devices * sizeof *to->mem);
    to->devices = from->devices;
}

static void node_free_min(const struct class *k, struct node_free *low, const struct node_free *r)
{
    for (uint32_t i = 0; i < k->needs_len; i++)
        low->free[i] = r->free[i] < low->free[i] ? r->free[i] : low->free[i];
    for (uint32_t d = 0; d < r->devices; d++) {
        low->milli[d] = r->milli[d] < low->milli[d] ? r->milli[d] : low->milli[d];
        low->mem[d] = r->mem[d] < low->mem[d] ? r->mem[d] : low->mem[d];
    }
}

/* ---- expected ends ---------------------------------------------------------------------------------------------- */

/* Returns the reserved instances that this plan promotes: they start now, as the next plan will see. */
static uint64_t *promoted(struct reservation_state *f)
{
    struct berth_plan *p = f->p;
    uint64_t *slots = ARENA_ARRAY(&p->scratch, uint64_t, bits_words(p->s->instances.len) + 1);
    for (size_t i = 0; i < p->c.acts.len; i++)
        if (p->c.acts.at[i].op == BERTH_PROMOTE)
            bits_add(slots, p->c.acts.at[i].instance);
    return slots;
}

static int64_t end_of(struct reservation_state *f, const uint64_t *promotes, uint32_t slot)
{
    const struct berth_plan *p = f->p;
    const struct instance *i = snapshot_instance(p->s, slot);
    if (i->id == 0 || i->state == BERTH_ENDED || i->state == BERTH_STOPPING || bits_has(p->c.stopped, slot) ||
        bits_has(p->c.removed, slot))
        return BERTH_NEVER_NS;
    if (bits_has(promotes, slot))
        return add_ns(p->s->now_ns, expected_duration_of(p, i->workload.v));
    return expected_end_of(p, i);
}

/* Indexes the ends by node. The index is stable: the ends of a node stay in order of time. */
static void index_nodes(struct reservation_state *f)
{
    struct cycle *c = &f->p->c;
    f->first_end = ARENA_ARRAY(c->arena, uint32_t, c->len + 2);
    f->by_node = ARENA_ARRAY(c->arena, uint32_t, f->ends_len + 1);
    for (uint32_t i = 0; i < f->ends_len; i++)
        f->first_end[f->ends[i].position + 2]++;
    for (uint32_t at = 2; at < c->len + 2; at++)
        f->first_end[at] += f->first_end[at - 1];
    for (uint32_t i = 0; i < f->ends_len; i++)
        f->by_node[f->first_end[f->ends[i].position + 1]++] = i;
}

void timeline_gather(struct reservation_state *f)
{
    struct berth_plan *p = f->p;
    if (f->ends)
        return;
    struct arena_mark mark = arena_mark(&p->scratch);
    uint32_t len = p->s->instances.len, n = 0;
    const uint64_t *promotes = promoted(f);
    struct keyed *rows = arena_alloc(&p->scratch, (2 * (size_t)len + 1) * sizeof *rows);
    for (uint32_t i = 0; i < len; i++) {
        int64_t end = end_of(f, promotes, i);
        if (end != BERTH_NEVER_NS)
            rows[n++] = (struct keyed){(uint64_t)end - (uint64_t)p->s->now_ns, i};
    }
    sort_keyed(rows, rows + len, n);
    f->ends = arena_alloc(&p->arena, ((size_t)n + 1) * sizeof *f->ends);
    f->ends_len = n;
    for (uint32_t i = 0; i < n; i++) {
        const struct instance *in = snapshot_instance(p->s, rows[i].value);
        f->ends[i] = (struct expected_end){.at_ns = (int64_t)(rows[i].key + (uint64_t)p->s->now_ns),
                                           .k = snapshot_class(p->s, in->class),
                                           .gpus = in->gpus,
                                           .position = snapshot_position(p->s, in),
                                           .slot = rows[i].value};
    }
    index_nodes(f);
    arena_rewind(&p->scratch, mark);
}

static int compare_fresh(const void *ctx, uint32_t a, uint32_t b)
{
    const struct new_pod_end *at = ctx;
    return (at[a].at_ns > at[b].at_ns) - (at[a].at_ns < at[b].at_ns);
}

void timeline_sort_fresh(struct reservation_state *f)
{
    struct arena *a = &f->p->scratch;
    size_t old = f->fresh_order.len, len = f->fresh.len, more = len - old;
    if (!more)
        return;
    struct arena_mark mark = arena_mark(a);
    uint32_t *add = ARENA_ARRAY(a, uint32_t, 2 * more);
    for (size_t i = 0; i < more; i++)
        add[i] = (uint32_t)(old + i);
    sort_indices(add, add + more, more, compare_fresh, f->fresh.at);
    vec_resize(&f->fresh_order, len);
    for (size_t to = len; more;) { /* merges from the end, to move as few entries as possible */
        bool take_old = old && compare_fresh(f->fresh.at, f->fresh_order.at[old - 1], add[more - 1]) > 0;
        f->fresh_order.at[--to] = take_old ? f->fresh_order.at[--old] : add[--more];
    }
    arena_rewind(a, mark);
}

/* ---- one node --------------------------------------------------------------------------------------------------- */

/* Inserts in order of time; most changes come in that order. */
static void change_add(change_list *list, struct timeline_change x)
{
    vec_push(list, x);
    size_t i = list->len - 1;
    for (; i > 0 && list->at[i - 1].at_ns > x.at_ns; i--)
        list->at[i] = list->at[i - 1];
    list->at[i] = x;
}

static void load(struct reservation_state *f, uint32_t position, change_list *list)
{
    list->len = 0;
    for (uint32_t i = f->first_end[position]; i < f->first_end[position + 1]; i++) {
        const struct expected_end *e = &f->ends[f->by_node[i]];
        if (!bits_has(f->p->c.stopped, e->slot))
            vec_push(list, ((struct timeline_change){e->at_ns, e->k, e->gpus, 1}));
    }
    for (uint32_t i = f->fresh_of[position]; i != NONE; i = f->fresh.at[i].next) {
        const struct new_pod_end *e = &f->fresh.at[i];
        if (!e->gone)
            change_add(list, (struct timeline_change){e->at_ns, e->k, e->gpus, 1});
    }
    for (uint32_t i = f->kept_of[position]; i != NONE; i = f->kept.at[i].next) {
        const struct node_reservation *x = &f->kept.at[i];
        int32_t pods = (int32_t)x->place.pods;
        change_add(list, (struct timeline_change){x->of->start_ns, x->k, x->place.gpus, -pods});
        if (x->of->end_ns != BERTH_NEVER_NS)
            change_add(list, (struct timeline_change){x->of->end_ns, x->k, x->place.gpus, pods});
    }
}

void timeline_changed(struct reservation_state *f, uint32_t position)
{
    if (f->known)
        bits_drop(f->known, position);
}

struct timeline_changes timeline_changes(struct reservation_state *f, uint32_t position)
{
    struct cycle *c = &f->p->c;
    timeline_gather(f);
    if (!f->changes) {
        f->changes = ARENA_ARRAY(c->arena, change_list, c->len + 1);
        f->known = ARENA_ARRAY(c->arena, uint64_t, c->blocks + 1);
    }
    if (f->stops != f->p->stop_generation) {
        memset(f->known, 0, c->blocks * sizeof *f->known);
        f->stops = f->p->stop_generation;
    }
    change_list *list = &f->changes[position];
    if (!bits_has(f->known, position))
        load(f, position, list);
    bits_add(f->known, position);
    return (struct timeline_changes){list->at, list->len};
}

bool timeline_min_room(struct reservation_state *f, const struct class *k, uint32_t position, int64_t at_ns,
                       int64_t duration_ns, struct node_free *ret)
{
    struct node_free room;
    int64_t until = add_ns(at_ns, duration_ns);
    size_t i = 0;

    if (!node_free_load(&f->p->c, k, position, &room))
        return false;
    struct timeline_changes x = timeline_changes(f, position);
    for (; i < x.len && x.at[i].at_ns <= at_ns; i++)
        node_free_add(k, &room, x.at[i].k, x.at[i].gpus, x.at[i].pods);
    node_free_copy(k, ret, &room);
    while (i < x.len && x.at[i].at_ns < until) {
        bool less = false;
        for (int64_t now = x.at[i].at_ns; i < x.len && x.at[i].at_ns == now; i++) {
            node_free_add(k, &room, x.at[i].k, x.at[i].gpus, x.at[i].pods);
            less |= x.at[i].pods < 0;
        }
        if (less)
            node_free_min(k, ret, &room);
    }
    return true;
}

bool timeline_always_fits(struct reservation_state *f, const struct class *k, uint32_t position, int64_t last_ns)
{
    struct node_free room;

    if (!node_free_load(&f->p->c, k, position, &room))
        return true; /* other filters refuse the node for that */
    if (!node_free_fits_needs(k, &room, 1))
        return false;
    struct timeline_changes x = timeline_changes(f, position);
    for (size_t i = 0; i < x.len && x.at[i].at_ns <= last_ns;) {
        bool less = false;
        for (int64_t now = x.at[i].at_ns; i < x.len && x.at[i].at_ns == now; i++) {
            needs_add(k, &room, x.at[i].k, x.at[i].pods);
            less |= x.at[i].pods < 0;
        }
        if (less && !node_free_fits_needs(k, &room, 1))
            return false;
    }
    return true;
}

/* ---- after all expected ends ------------------------------------------------------------------------------------ */

static void final_free_add(struct reservation_state *f, const struct class *k, uint32_t position)
{
    for (uint32_t i = 0; i < k->needs_len; i++)
        if (k->needs[i].resource < f->p->c.resources && f->last[k->needs[i].resource])
            f->last[k->needs[i].resource][position] += k->needs[i].amount;
}

/* Computes the free amounts after all expected ends. Pods placed later by this plan also end, or leave less: then the
 * amounts are too high. */
static void final_free_make(struct reservation_state *f)
{
    struct cycle *c = &f->p->c;
    timeline_gather(f);
    if (f->last && f->last_stops == f->p->stop_generation)
        return;
    f->last_stops = f->p->stop_generation;
    if (!f->last) {
        f->last = ARENA_ARRAY(c->arena, int64_t *, c->resources + 1);
        f->last_most = ARENA_ARRAY(c->arena, int64_t, c->resources + 1);
    }
    for (uint32_t r = 0; r < c->resources; r++) {
        const int64_t *column = cycle_column(c, r, true);
        if (column && !f->last[r])
            f->last[r] = arena_column(c->arena, c->len, sizeof *column);
        if (column)
            memcpy(f->last[r], column, c->len * sizeof *column);
    }
    for (uint32_t i = 0; i < f->ends_len; i++)
        if (!bits_has(c->stopped, f->ends[i].slot))
            final_free_add(f, f->ends[i].k, f->ends[i].position);
    for (size_t i = 0; i < f->fresh.len; i++)
        if (!f->fresh.at[i].gone)
            final_free_add(f, f->fresh.at[i].k, f->fresh.at[i].position);
    for (uint32_t r = 0; r < c->resources; r++)
        for (uint32_t at = 0; f->last[r] && at < c->len; at++)
            f->last_most[r] = f->last[r][at] > f->last_most[r] ? f->last[r][at] : f->last_most[r];
}

bool timeline_fits_eventually(struct reservation_state *f, const struct class *k, uint32_t pods)
{
    struct cycle *c = &f->p->c;
    const struct attempt fixed = {.c = c, .k = k};
    const uint64_t *constraints = attempt_constraints_mask(c, &fixed);
    uint64_t fits = 0;
    struct node_free room = {.devices = 0};

    final_free_make(f);
    for (uint32_t i = 0; i < k->needs_len; i++)
        if (k->needs[i].resource >= c->resources || f->last_most[k->needs[i].resource] < k->needs[i].amount)
            return false;
    for (uint32_t b = 0; b < c->blocks && fits < pods; b++)
        BITS_EACH (at, constraints[b]) {
            for (uint32_t i = 0; i < k->needs_len; i++)
                room.free[i] = f->last[k->needs[i].resource][b * BLOCK + at];
            fits += node_free_fits_needs(k, &room, pods);
        }
    return fits >= pods;
}
