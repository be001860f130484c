/* layout.c - sorts nodes into columns. */
#include "core/snapshot/layout.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/sort.h"

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_text(const struct intern *names, sym a, sym b)
{
    return a == b ? 0 : strcmp(intern_text(names, a), intern_text(names, b));
}

static int64_t capacity_of(const struct node_body *b, uint32_t resource)
{
    for (uint32_t i = 0; i < b->capacities_len; i++)
        if (b->capacities[i].resource == resource)
            return b->capacities[i].capacity;
    return 0;
}

/* Compares hardware: devices, then capacities in a fixed order that does not depend on which resource was named
 * first. */
static int compare_kind(const struct berth_cluster *c, const struct node_body *a, const struct node_body *b)
{
    int by = compare_u64(a->devices_len, b->devices_len);
    for (uint32_t d = 0; !by && d < a->devices_len; d++) {
        by = compare_text(&c->names, a->devices[d].model, b->devices[d].model);
        if (!by)
            by = compare_u64((uint64_t)a->devices[d].memory_bytes, (uint64_t)b->devices[d].memory_bytes);
        if (!by)
            by = compare_u64(a->devices[d].unhealthy, b->devices[d].unhealthy);
    }
    for (uint32_t r = 0; !by && r < RESOURCES_BUILT_IN; r++)
        by = compare_u64((uint64_t)capacity_of(b, r), (uint64_t)capacity_of(a, r)); /* large ones first */
    return by;
}

/* ---- order ------------------------------------------------------------------------------------------------------
 *
 * There are far fewer kinds, zones and racks than nodes. So these are sorted first, then the nodes by their numbers,
 * and only neighbours that agree in all of them are compared by id.
 */

static uint64_t hash_kind(const struct berth_cluster *c, const void *of)
{
    const struct node_body *b = of;
    uint64_t h = 0;
    (void)c;
    for (uint32_t d = 0; d < b->devices_len; d++)
        h = hash_pair(hash_pair(h, b->devices[d].model), (uint64_t)b->devices[d].memory_bytes);
    for (uint32_t r = 0; r < RESOURCES_BUILT_IN; r++)
        h = hash_pair(h, (uint64_t)capacity_of(b, r));
    return h;
}

static uint64_t hash_zone(const struct berth_cluster *c, const void *of)
{
    (void)c;
    return hash_u64(((const struct node_body *)of)->zone);
}

static uint64_t hash_rack(const struct berth_cluster *c, const void *of)
{
    (void)c;
    return hash_u64(((const struct node_body *)of)->rack);
}

static int compare_zone(const struct berth_cluster *c, const struct node_body *a, const struct node_body *b)
{
    return compare_text(&c->names, a->zone, b->zone);
}

static int compare_rack(const struct berth_cluster *c, const struct node_body *a, const struct node_body *b)
{
    return compare_text(&c->names, a->rack, b->rack);
}

/* One property of a node by which nodes are grouped and sorted. */
struct trait {
    uint64_t (*hash)(const struct berth_cluster *c, const void *body);
    int (*compare)(const struct berth_cluster *c, const struct node_body *a, const struct node_body *b);
};

/* The distinct values of a trait, each represented by the first node that has it. */
struct trait_values {
    const struct berth_cluster *c;
    const struct trait *trait;
    VEC(uint32_t) slot;
};

static const struct node_body *body_at(const struct berth_cluster *c, uint32_t slot)
{
    return cluster_node(c, slot)->body;
}

static bool value_same(const void *ctx, uint32_t value, const void *key)
{
    const struct trait_values *v = ctx;
    return v->trait->compare(v->c, body_at(v->c, v->slot.at[value]), key) == 0;
}

static int compare_values(const void *ctx, uint32_t a, uint32_t b)
{
    const struct trait_values *v = ctx;
    return v->trait->compare(v->c, body_at(v->c, v->slot.at[a]), body_at(v->c, v->slot.at[b]));
}

/* Returns, for each node, the number of its value in sorted order. */
static uint32_t *number(const struct berth_cluster *c, const struct trait *trait, const uint32_t *slots, uint32_t len)
{
    struct trait_values v = {.c = c, .trait = trait};
    struct map map = {0};
    uint32_t *of = mem_array(len + 1, sizeof *of);

    for (uint32_t i = 0; i < len; i++) {
        const struct node_body *body = body_at(c, slots[i]);
        uint64_t hash = trait->hash(c, body);
        of[i] = map_find(&map, hash, value_same, &v, body);
        if (of[i] != MAP_NONE)
            continue;
        of[i] = (uint32_t)v.slot.len;
        map_add(&map, hash, of[i]);
        vec_push(&v.slot, slots[i]);
    }
    uint32_t distinct = (uint32_t)v.slot.len;
    uint32_t *order = mem_array(2 * (size_t)distinct + 1, sizeof *order);
    uint32_t *place = mem_array(distinct + 1, sizeof *place);
    for (uint32_t i = 0; i < distinct; i++)
        order[i] = i;
    sort_indices(order, order + distinct, distinct, compare_values, &v);
    for (uint32_t i = 0; i < distinct; i++)
        place[order[i]] = i;
    for (uint32_t i = 0; i < len; i++)
        of[i] = place[of[i]];
    mem_free(order);
    mem_free(place);
    vec_done(&v.slot);
    map_done(&map);
    return of;
}

static int compare_ids(const void *ctx, uint32_t x, uint32_t y)
{
    const struct berth_cluster *c = ctx;
    return compare_text(&c->names, body_at(c, x)->id, body_at(c, y)->id);
}

static bool same_group(const uint32_t *const of[3], const struct berth_cluster *c, const uint32_t *slots, uint32_t a,
                       uint32_t b)
{
    return body_at(c, slots[a])->rank == body_at(c, slots[b])->rank && of[0][a] == of[0][b] && of[1][a] == of[1][b] &&
           of[2][a] == of[2][b];
}

/* Sorts slots by rank, kind, zone, rack and id. */
static void order_nodes(const struct berth_cluster *c, uint32_t *slots, uint32_t len)
{
    static const struct trait traits[] = {
        {hash_kind, compare_kind},
        {hash_zone, compare_zone},
        {hash_rack, compare_rack}
    };
    uint32_t *of[3];
    struct keyed *rows = mem_array(2 * (size_t)len + 1, sizeof *rows);
    uint32_t *sorted = mem_array(2 * (size_t)len + 1, sizeof *sorted);

    for (size_t t = 0; t < 3; t++)
        of[t] = number(c, &traits[t], slots, len);
    for (uint32_t i = 0; i < len; i++)
        rows[i] = (struct keyed){(uint64_t)of[1][i] << 32 | of[2][i], i};
    sort_keyed(rows, rows + len, len);
    for (uint32_t i = 0; i < len; i++)
        rows[i].key = (uint64_t)body_at(c, slots[rows[i].value])->rank << 32 | of[0][rows[i].value];
    sort_keyed(rows, rows + len, len);
    for (uint32_t from = 0, to; from < len; from = to) {
        for (to = from; to < len && same_group((const uint32_t *const *)of, c, slots, rows[from].value, rows[to].value);
             to++)
            sorted[to] = slots[rows[to].value];
        sort_indices(sorted + from, sorted + len, to - from, compare_ids, c);
    }
    memcpy(slots, sorted, len * sizeof *slots);
    for (size_t t = 0; t < 3; t++)
        mem_free(of[t]);
    mem_free(sorted);
    mem_free(rows);
}

static void sort_nodes(const struct berth_cluster *c, struct layout *l)
{
    uint32_t n = 0;
    l->slots = c->nodes.len;
    l->slot = ARENA_ARRAY(&l->arena, uint32_t, l->len + 1);
    l->position = ARENA_ARRAY(&l->arena, uint32_t, l->slots + 1);
    for (uint32_t i = 0; i < l->slots; i++) {
        l->position[i] = NONE;
        if (cluster_node(c, i)->body)
            l->slot[n++] = i;
    }
    assert(n == l->len);
    order_nodes(c, l->slot, n);
    for (uint32_t p = 0; p < n; p++)
        l->position[l->slot[p]] = p;
}

static void column_new(struct layout *l, uint32_t r, int64_t capacity)
{
    size_t padded = (size_t)l->blocks * BLOCK;
    l->capacity[r] = arena_column(&l->arena, padded, sizeof **l->capacity);
    l->inverse[r] = arena_column(&l->arena, padded, sizeof **l->inverse);
    for (uint32_t p = 0; capacity && p < l->len; p++) {
        l->capacity[r][p] = capacity;
        l->inverse[r][p] = UINT64_MAX / (uint64_t)capacity;
    }
}

static void fill_columns(const struct berth_cluster *c, struct layout *l)
{
    size_t padded = (size_t)l->blocks * BLOCK;
    l->body = ARENA_ARRAY(&l->arena, const struct node_body *, l->len + 1);
    l->capacity = ARENA_ARRAY(&l->arena, int64_t *, l->resources);
    l->inverse = ARENA_ARRAY(&l->arena, uint64_t *, l->resources);
    sym **syms[] = {&l->id, &l->zone, &l->rack, &l->domain, &l->arch};
    for (size_t i = 0; i < sizeof syms / sizeof *syms; i++)
        *syms[i] = arena_column(&l->arena, padded + 1, sizeof(sym));
    for (uint32_t k = 0; k < USES; k++)
        l->real[k] = arena_column(&l->arena, padded + 1, sizeof **l->real);
    l->tainted = ARENA_ARRAY(&l->arena, uint64_t, l->blocks + 1);
    for (uint32_t r = 0; r < l->resources; r++)
        if (cluster_resource(c, r)->optional)
            column_new(l, r, BERTH_AMOUNT_MAX);
    for (uint32_t p = 0; p < l->len; p++) {
        struct node_body *b = cluster_node(c, l->slot[p])->body;
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
        l->body[p] = b;
        l->id[p] = b->id;
        l->zone[p] = b->zone;
        l->rack[p] = b->rack;
        l->domain[p] = b->domain;
        l->arch[p] = b->arch;
        if (b->taints_len)
            bits_add(l->tainted, p);
        for (uint32_t t = 0; t < b->taints_len; t++)
            l->soft_taints |= b->taints[t].effect == BERTH_PREFER_NO_SCHEDULE;
        for (uint32_t i = 0; i < b->capacities_len; i++) {
            uint32_t r = b->capacities[i].resource;
            int64_t capacity = b->capacities[i].capacity;
            if (!l->capacity[r])
                column_new(l, r, 0);
            l->capacity[r][p] = capacity;
            l->inverse[r][p] = capacity > 0 ? UINT64_MAX / (uint64_t)capacity : 0;
            if (r == RESOURCE_CPU || r == RESOURCE_MEMORY)
                l->real[r == RESOURCE_CPU ? USE_CPU : USE_MEMORY][p] = b->capacities[i].allocatable;
        }
    }
}

static void fill_devices(struct layout *l)
{
    l->device = ARENA_ARRAY(&l->arena, uint32_t, (size_t)l->blocks * BLOCK + 1);
    for (uint32_t p = 0; p < l->len; p++)
        l->device[p + 1] = l->device[p] + l->body[p]->devices_len;
    for (uint32_t p = l->len; p < l->blocks * BLOCK; p++)
        l->device[p + 1] = l->device[p];
    struct device *devices = ARENA_ARRAY(&l->arena, struct device, l->device[l->len] + 1);
    for (uint32_t p = 0; p < l->len; p++)
        if (l->body[p]->devices_len)
            memcpy(devices + l->device[p], l->body[p]->devices, l->body[p]->devices_len * sizeof *devices);
    l->devices = devices;
}

static void fill_kinds(const struct berth_cluster *c, struct layout *l)
{
    l->kind = arena_column(&l->arena, (size_t)l->blocks * BLOCK + 1, sizeof *l->kind);
    l->segment = ARENA_ARRAY(&l->arena, uint32_t, l->len + 1);
    l->block_segment = ARENA_ARRAY(&l->arena, uint32_t, l->blocks + 1);
    for (uint32_t p = 0; p < l->len; p++) {
        bool other = p && compare_kind(c, l->body[p - 1], l->body[p]) != 0;
        l->kind[p] = p ? l->kind[p - 1] + other : 0;
        if (p % BLOCK == 0)
            l->block_segment[p / BLOCK] = l->segments;
        if (p % BLOCK == 0 || other)
            l->segment[l->segments++] = p;
    }
    l->segment[l->segments] = l->len;
    l->block_segment[l->blocks] = l->segments;
}

static void fill_level(struct layout *l, uint32_t n, uint32_t r)
{
    struct layout_level *level = &l->level[n], *down = &l->level[n - 1];
    const uint64_t *min = n == 1 ? l->inverse[r] : down->inverse_min[r];
    const uint64_t *max = n == 1 ? l->inverse[r] : down->inverse_max[r];

    level->inverse_min[r] = arena_column(&l->arena, level->len, sizeof **level->inverse_min);
    level->inverse_max[r] = arena_column(&l->arena, level->len, sizeof **level->inverse_max);
    for (uint32_t i = 0; i < level->len; i++) {
        struct span below = layout_below(l, n, i);
        uint64_t least = UINT64_MAX, most = 0;
        for (uint32_t j = below.from; j < below.to; j++) {
            least = min[j] < least ? min[j] : least;
            most = max[j] > most ? max[j] : most;
        }
        level->inverse_min[r][i] = least;
        level->inverse_max[r][i] = most;
    }
}

static void fill_levels(struct layout *l)
{
    for (uint32_t len = l->segments, n = 1; n <= LEVELS_MAX && (n == 1 || len > 1); n++) {
        struct layout_level *level = &l->level[n];
        l->levels = n;
        level->len = len;
        level->inverse_min = ARENA_ARRAY(&l->arena, uint64_t *, l->resources);
        level->inverse_max = ARENA_ARRAY(&l->arena, uint64_t *, l->resources);
        for (uint32_t r = 0; r < l->resources; r++)
            if (l->capacity[r])
                fill_level(l, n, r);
        level->first = ARENA_ARRAY(&l->arena, uint32_t, len + 1);
        level->kind = ARENA_ARRAY(&l->arena, uint32_t, len + 1);
        for (uint32_t i = 0; i < len; i++) {
            struct span below = layout_below(l, n, i);
            const struct layout_level *down = &l->level[n - 1];
            level->first[i] = n == 1 ? below.from : down->first[below.from];
            uint32_t a = n == 1 ? l->kind[below.from] : down->kind[below.from];
            uint32_t b = n == 1 ? a : down->kind[below.to - 1];
            level->kind[i] = a == b ? a : NONE;
        }
        len = (len + FANOUT - 1) / FANOUT;
    }
}

struct layout *layout_new(const struct berth_cluster *c)
{
    struct layout *l = mem_zalloc(sizeof *l);
    atomic_init(&l->refs, 1);
    arena_init(&l->arena);
    l->len = c->nodes_len;
    l->blocks = (l->len + BLOCK - 1) / BLOCK;
    l->resources = (uint32_t)c->resources.len;
    sort_nodes(c, l);
    fill_columns(c, l);
    fill_devices(l);
    fill_kinds(c, l);
    fill_levels(l);
    return l;
}

struct layout *layout_ref(struct layout *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void layout_unref(struct layout *l)
{
    if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (uint32_t p = 0; p < l->len; p++)
        node_body_unref((struct node_body *)(uintptr_t)l->body[p]);
    arena_done(&l->arena);
    mem_free(l);
}
