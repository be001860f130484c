/* cycle.c - books of free resources, keys and bounds of one plan. */
#include "core/plan/cycle.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/lanes.h"
#include "core/gpu/gpu_cost.h"
#include "core/plan/headroom.h"

/* ---- single nodes ----------------------------------------------------------------------------------------------- */

static int32_t node_key(const struct cycle *c, uint32_t p)
{
    const struct profile *f = &c->profile;
    int32_t key = c->l->device[p + 1] == c->l->device[p] ? f->spare : 0;

    if (gpu_cost_applies_to_node(c, p))
        return 0;
    for (uint32_t i = 0; i < f->resources_len; i++) {
        uint32_t r = f->resources[i];
        if (f->linear[i] && c->free[r])
            key += f->linear[i] * share_of(c->free[r][p], c->l->inverse[r][p]);
    }
    return key;
}

static void node_gpus(struct cycle *c, uint32_t p)
{
    int64_t whole = 0, part = 0, used = 0;

    for (uint32_t d = c->l->device[p]; d < c->l->device[p + 1]; d++) {
        const struct device_free *f = &c->devices[d];
        int32_t left = f->now < f->later ? f->now : f->later;
        if (left == BERTH_GPU_MILLI) {
            whole++;
        } else {
            used = 1;
            part = left > part ? left : part;
        }
    }
    c->free[cycle_gpu_column(c, GPU_FREE)][p] = whole;
    c->free[cycle_gpu_column(c, GPU_PART)][p] = part;
    c->free[cycle_gpu_column(c, GPU_USED_FREE)][p] = used ? whole : 0;
}

/* ---- bounds ----------------------------------------------------------------------------------------------------- */

static void refresh_key(struct cycle *c, uint32_t level, uint32_t entry)
{
    const int32_t *below = level == 1 ? c->key : c->bounds[level - 1].key;
    struct span of = layout_below(c->l, level, entry);
    int32_t most = INT32_MIN;

    if (of.to - of.from == LANES)
        most = lanes_max32(below + of.from);
    else
        for (uint32_t i = of.from; i < of.to; i++)
            most = below[i] > most ? below[i] : most;
    c->bounds[level].key[entry] = most;
}

static void refresh_column(struct cycle *c, uint32_t level, uint32_t entry, uint32_t k)
{
    const int64_t *below = level == 1 ? c->free[k] : c->bounds[level - 1].max[k];
    struct span of = layout_below(c->l, level, entry);
    int64_t most = INT64_MIN;

    if (of.to - of.from == LANES)
        most = lanes_max64(below + of.from);
    else
        for (uint32_t i = of.from; i < of.to; i++)
            most = below[i] > most ? below[i] : most;
    c->bounds[level].max[k][entry] = most;
}

/* Updates the coarser entries above segments whose keys decreased, level by level, each entry once. */
void cycle_refresh(struct cycle *c)
{
    for (uint32_t level = 2; c->dirty_len; level++) {
        uint32_t parents = 0;
        for (uint32_t i = 0; i < c->dirty_len; i++) {
            uint32_t entry = c->dirty[i], parent = entry / FANOUT;
            bits_drop(c->dirty_bits[level - 1], entry);
            if (level > c->l->levels || bits_has(c->dirty_bits[level], parent))
                continue;
            bits_add(c->dirty_bits[level], parent);
            refresh_key(c, level, parent);
            c->dirty[parents++] = parent;
        }
        c->dirty_len = parents;
    }
}

void cycle_tighten(struct cycle *c, const struct class *k, uint32_t segment)
{
    for (uint32_t level = 1, entry = segment; level <= c->l->levels; level++, entry /= FANOUT) {
        for (uint32_t i = 0; i < k->needs_len; i++)
            refresh_column(c, level, entry, k->needs[i].resource);
        for (unsigned g = 0; k->gpu.count && g < GPU_COLUMNS; g++)
            refresh_column(c, level, entry, cycle_gpu_column(c, g));
    }
}

static void column_changed(struct cycle *c, uint32_t k, uint32_t p)
{
    int64_t value = c->free[k][p];
    for (uint32_t level = 1, entry = layout_segment(c->l, p); level <= c->l->levels; level++, entry /= FANOUT) {
        if (c->bounds[level].max[k][entry] >= value)
            return;
        c->bounds[level].max[k][entry] = value;
    }
}

void cycle_key_changed(struct cycle *c, uint32_t p)
{
    uint32_t segment = layout_segment(c->l, p);
    int32_t before = c->bounds[1].key[segment];

    c->key[p] = node_key(c, p);
    refresh_key(c, 1, segment);
    int32_t after = c->bounds[1].key[segment];
    for (uint32_t level = 2, entry = segment / FANOUT; after > before && level <= c->l->levels;
         level++, entry /= FANOUT)
        if (c->bounds[level].key[entry] < after)
            c->bounds[level].key[entry] = after;
    if (after < before && !bits_has(c->dirty_bits[1], segment)) {
        bits_add(c->dirty_bits[1], segment);
        c->dirty[c->dirty_len++] = segment;
    }
}

/* ---- two books -------------------------------------------------------------------------------------------------- */

static int64_t *column_copy(struct cycle *c, const int64_t *from)
{
    size_t padded = (size_t)c->blocks * BLOCK;
    int64_t *to = arena_column(c->arena, padded, sizeof *to);
    return memcpy(to, from, padded * sizeof *to);
}

/* Creates separate books: from now on resources free now and resources free later may differ. */
static void split_books(struct cycle *c)
{
    c->now = ARENA_ARRAY(c->arena, int64_t *, c->columns);
    c->later = ARENA_ARRAY(c->arena, int64_t *, c->columns);
    for (uint32_t r = 0; r < c->resources; r++)
        if (c->free[r]) {
            c->now[r] = column_copy(c, c->free[r]);
            c->later[r] = column_copy(c, c->free[r]);
        }
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static void book_changed(struct cycle *c, uint32_t r, uint32_t p)
{
    c->free[r][p] = c->now[r][p] < c->later[r][p] ? c->now[r][p] : c->later[r][p];
}

/* Returns whether the node holds a resource that it does not have at all. */
static bool node_holds_unknown(const struct cycle *c, uint32_t p)
{
    const struct node *n = pages_at(&c->s->nodes, c->l->slot[p]);
    for (uint32_t at = n->first; at != NONE; at = snapshot_instance(c->s, at)->next_of_node) {
        const struct instance *i = snapshot_instance(c->s, at);
        const struct class *k = snapshot_class(c->s, i->class);
        if (i->state == BERTH_ENDED || bits_has(c->removed, at))
            continue;
        for (uint32_t need = 0; need < k->needs_len; need++)
            if (k->needs[need].resource >= c->resources || !c->free[k->needs[need].resource])
                return true;
    }
    return false;
}

static bool node_over_capacity(const struct cycle *c, uint32_t p)
{
    for (uint32_t r = 0; r < c->resources; r++)
        if (c->free[r] && (c->later ? c->now[r][p] < 0 || c->later[r][p] < 0 : c->free[r][p] < 0))
            return true;
    for (uint32_t d = c->l->device[p]; d < c->l->device[p + 1]; d++)
        if (c->devices[d].now < 0 || c->devices[d].later < 0)
            return true;
    return node_holds_unknown(c, p);
}

/* Adds to the books of everything the class requests. A node over capacity may go further below zero; the values never
 * wrap. */
static void books_add(struct cycle *c, const struct class *k, uint32_t p, uint64_t gpus, int sign, bool now, bool later)
{
    if (now != later && !c->later)
        split_books(c);
    if (c->headroom)
        headroom_count(c, p, -1);
    for (uint32_t i = 0; i < k->needs_len; i++) {
        uint32_t r = k->needs[i].resource;
        int64_t amount = sign * k->needs[i].amount;
        if (r >= c->resources || !c->free[r])
            continue; /* the node does not have this resource: it is over capacity */
        if (c->later) {
            c->now[r][p] += now ? amount : 0;
            c->later[r][p] += later ? amount : 0;
            book_changed(c, r, p);
        } else {
            c->free[r][p] += amount;
        }
        if (sign > 0)
            column_changed(c, r, p);
    }
    if (c->headroom)
        headroom_count(c, p, 1);
    BITS_EACH (d, gpus) {
        struct device_free *f = &c->devices[c->l->device[p] + d];
        int64_t mem = gpu_memory_booked(&k->gpu);
        int32_t milli = sign * (int32_t)k->gpu.milli;
        f->now += now ? milli : 0;
        f->later += later ? milli : 0;
        f->mem_now += now ? sign * mem : 0;
        f->mem_later += later ? sign * mem : 0;
    }
    if (gpus) {
        node_gpus(c, p);
        for (unsigned g = 0; g < GPU_COLUMNS; g++)
            column_changed(c, cycle_gpu_column(c, g), p);
    }
    cycle_key_changed(c, p);
    if (c->gpu_prices)
        gpu_cost_changed(c, p);
    if (c->views)
        vec_push(&c->changed, p);
    if (sign > 0)
        vec_push(&c->given, layout_segment(c->l, p));
    if (sign > 0 && bits_has(c->over, p) && !node_over_capacity(c, p))
        bits_drop(c->over, p);
}

void cycle_shift(struct cycle *c, uint32_t resource, uint32_t position, int64_t amount)
{
    if (c->later) {
        c->now[resource][position] += amount;
        c->later[resource][position] += amount;
        book_changed(c, resource, position);
    } else {
        c->free[resource][position] += amount;
    }
    if (c->gpu_prices)
        gpu_cost_changed(c, position);
    if (c->views)
        vec_push(&c->changed, position);
    if (amount <= 0)
        return;
    column_changed(c, resource, position);
    vec_push(&c->given, layout_segment(c->l, position));
    if (bits_has(c->over, position) && !node_over_capacity(c, position))
        bits_drop(c->over, position);
}

void cycle_take(struct cycle *c, const struct class *k, uint32_t position, uint64_t gpus, bool later, int sign)
{
    books_add(c, k, position, gpus, -sign, !later, true);
}

void cycle_stop(struct cycle *c, const struct instance *i)
{
    uint32_t p = snapshot_position(c->s, i);
    books_add(c, snapshot_class(c->s, i->class), p, i->gpus, 1, false, true);
    bits_add(c->leaving, p);
    c->any_leaving = true;
}

void cycle_unreserve(struct cycle *c, const struct instance *i)
{
    books_add(c, snapshot_class(c->s, i->class), snapshot_position(c->s, i), i->gpus, 1, false, true);
}

void cycle_promote(struct cycle *c, const struct instance *i)
{
    books_add(c, snapshot_class(c->s, i->class), snapshot_position(c->s, i), i->gpus, -1, true, false);
}

void cycle_lose(struct cycle *c, const struct instance *i)
{
    books_add(c, snapshot_class(c->s, i->class), snapshot_position(c->s, i), i->gpus, 1, true, true);
}

/* ---- beginning -------------------------------------------------------------------------------------------------- */

static void init_columns(struct cycle *c)
{
    const struct berth_snapshot *s = c->s;
    size_t padded = (size_t)c->blocks * BLOCK;

    c->free = ARENA_ARRAY(c->arena, int64_t *, c->columns);
    for (uint32_t r = 0; r < c->resources; r++)
        if (s->now[r])
            c->free[r] = column_copy(c, s->now[r]);
    if (s->later) {
        split_books(c);
        for (uint32_t r = 0; r < c->resources; r++) {
            if (!s->now[r])
                continue;
            memcpy(c->later[r], s->later[r], padded * sizeof *c->later[r]);
            for (uint32_t p = 0; p < c->len; p++)
                book_changed(c, r, p);
        }
    }
    uint32_t devices = c->l->device[c->l->len];
    c->devices = arena_dup(c->arena, s->devices, devices * sizeof *s->devices);
    if (devices == 0)
        return;
    for (unsigned g = 0; g < GPU_COLUMNS; g++)
        c->free[cycle_gpu_column(c, g)] = arena_column(c->arena, padded, sizeof(int64_t));
    for (uint32_t p = 0; p < c->len; p++)
        if (c->l->device[p + 1] > c->l->device[p])
            node_gpus(c, p);
}

static void init_bounds(struct cycle *c)
{
    for (uint32_t level = 1; level <= c->l->levels; level++) {
        struct key_bounds *b = &c->bounds[level];
        b->len = c->l->level[level].len;
        b->max = ARENA_ARRAY(c->arena, int64_t *, c->columns);
        for (uint32_t k = 0; k < c->columns; k++)
            if (c->free[k])
                b->max[k] = arena_column(c->arena, b->len, sizeof **b->max);
        for (uint32_t i = 0; i < b->len; i++)
            for (uint32_t k = 0; k < c->columns; k++)
                if (c->free[k])
                    refresh_column(c, level, i, k);
    }
}

static void init_keys(struct cycle *c)
{
    c->key = arena_column(c->arena, (size_t)c->blocks * BLOCK, sizeof *c->key);
    for (uint32_t i = 0; i < c->blocks * BLOCK; i++)
        c->key[i] = i < c->len ? node_key(c, i) : INT32_MIN / 2;
    for (uint32_t level = 1; level <= c->l->levels; level++) {
        struct key_bounds *b = &c->bounds[level];
        b->key = arena_column(c->arena, b->len, sizeof *b->key);
        for (uint32_t i = 0; i < b->len; i++)
            refresh_key(c, level, i);
    }
}

static void init_largest(struct cycle *c)
{
    for (uint32_t p = 0; p < c->len; p++) {
        int64_t gpus = (int64_t)c->l->body[p]->devices_len * BERTH_GPU_MILLI;
        c->largest[0] = gpus > c->largest[0] ? gpus : c->largest[0];
    }
    for (uint32_t i = 0; i < c->profile.resources_len; i++)
        for (uint32_t p = 0; p < c->len && c->profile.resources[i] != RESOURCE_GPU; p++) {
            int64_t capacity = snapshot_capacity(c->s, c->profile.resources[i], p);
            c->largest[1 + i] = capacity > c->largest[1 + i] ? capacity : c->largest[1 + i];
        }
}

void cycle_profile_begin(struct cycle *c)
{
    gpu_cost_begin(c);
    init_keys(c);
    memset(c->largest, 0, sizeof c->largest);
    if (c->profile.needs_largest)
        init_largest(c);
}

void cycle_init(struct cycle *c, const struct berth_snapshot *s, const struct profile *p, struct arena *a,
                struct arena *scratch)
{
    *c = (struct cycle){.s = s, .l = s->layout, .profile = *p, .arena = a, .scratch = scratch};
    c->len = c->l->len;
    c->blocks = c->l->blocks;
    c->resources = c->l->resources;
    c->columns = c->resources + GPU_COLUMNS;
    init_columns(c);
    init_bounds(c);
    cycle_profile_begin(c);
    c->heap = ARENA_ARRAY(a, uint64_t, 2 * (size_t)c->l->segments + 64);
    c->score = arena_column(a, (size_t)c->blocks * BLOCK, sizeof *c->score);
    c->opened_by = ARENA_ARRAY(a, uint64_t, c->l->segments + 1);
    c->memos = ARENA_ARRAY(a, struct search_memo *, s->classes.len + 1);
    c->any_over = bits_count(s->over, c->blocks) > 0;
    c->over =
        p->over ? arena_dup(a, s->over, (c->blocks + 1) * sizeof *s->over) : ARENA_ARRAY(a, uint64_t, c->blocks + 1);
    c->leaving = ARENA_ARRAY(a, uint64_t, c->blocks + 1);
    for (uint32_t w = 0; w < s->watched_len; w++)
        BITS_EACH (i, s->leaving[w]) {
            bits_add(c->leaving, snapshot_position(s, snapshot_instance(s, w * 64 + (uint32_t)i)));
            c->any_leaving = true;
        }
    c->stopped = ARENA_ARRAY(a, uint64_t, bits_words(s->instances.len) + 1);
    c->removed = ARENA_ARRAY(a, uint64_t, bits_words(s->instances.len) + 1);
    c->dirty = ARENA_ARRAY(a, uint32_t, c->l->segments + 1);
    for (uint32_t level = 1; level <= c->l->levels; level++)
        c->dirty_bits[level] = ARENA_ARRAY(a, uint64_t, bits_words(c->bounds[level].len) + 1);
    c->constraints_mask = ARENA_ARRAY(a, uint64_t *, s->constraints.len + 1);
    c->preference_sets = ARENA_ARRAY(a, struct preference_column, s->preference_sets.len + 1);
    c->preference_state = ARENA_ARRAY(a, uint8_t, s->preference_sets.len + 1);
    c->dead = ARENA_ARRAY(a, uint8_t, s->classes.len + 1);
    c->fresh = arena_alloc(a, (s->workloads.len + 1) * sizeof *c->fresh);
    memset(c->fresh, 0xff, (s->workloads.len + 1) * sizeof *c->fresh);
}

/* ---- topologies ------------------------------------------------------------------------------------------------- */

static sym topology_value(const struct cycle *c, sym key, const char *name, uint32_t p)
{
    if (strcmp(name, "zone") == 0)
        return c->l->zone[p] ? c->l->zone[p] : MAP_NONE;
    if (strcmp(name, "rack") == 0)
        return c->l->rack[p] ? c->l->rack[p] : MAP_NONE;
    return labels_find(c->l->body[p]->labels, key);
}

static bool value_same(const void *ctx, uint32_t value, const void *key)
{
    return ((const sym *)ctx)[value] == *(const sym *)key;
}

const struct topology *cycle_topology(struct cycle *c, sym key)
{
    for (struct topology *t = c->topologies; t; t = t->next)
        if (t->key == key)
            return t;
    struct topology *t = ARENA_NEW(c->arena, struct topology);
    *t = (struct topology){.key = key, .next = c->topologies};
    c->topologies = t;
    const char *name = snapshot_text(c->s, key);
    if (strcmp(name, "node") == 0) {
        t->domains = c->len;
        return t;
    }
    uint32_t *domain = arena_column(c->arena, (size_t)c->blocks * BLOCK + 1, sizeof *domain);
    sym *values = mem_array(c->len + 1, sizeof *values);
    struct map map = {0};
    sym last = MAP_NONE;
    uint32_t last_domain = NONE;
    for (uint32_t p = 0; p < c->blocks * BLOCK; p++) {
        sym value = p < c->len ? topology_value(c, key, name, p) : MAP_NONE;
        if (value != last) { /* neighbouring nodes often have the same value */
            last = value;
            last_domain = value == MAP_NONE ? NONE : map_find(&map, hash_u64(value), value_same, values, &value);
            if (value != MAP_NONE && last_domain == MAP_NONE) {
                last_domain = t->domains++;
                values[last_domain] = value;
                map_add(&map, hash_u64(value), last_domain);
            }
        }
        domain[p] = last_domain;
    }
    map_done(&map);
    mem_free(values);
    t->domain = domain;
    return t;
}

const sym *cycle_labels(struct cycle *c, sym key)
{
    for (struct label_column *l = c->labels; l; l = l->next)
        if (l->key == key)
            return l->at;
    sym *at = arena_column(c->arena, (size_t)c->blocks * BLOCK + 1, sizeof *at);
    for (uint32_t p = 0; p < c->len; p++)
        at[p] = labels_find(c->l->body[p]->labels, key);
    struct label_column *l = ARENA_NEW(c->arena, struct label_column);
    *l = (struct label_column){key, at, c->labels};
    c->labels = l;
    return at;
}
