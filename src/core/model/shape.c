/* shape.c - turns descriptions into pooled classes. */
#include "core/model/shape.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/model/cluster.h"

/* ---- pools ------------------------------------------------------------------------------------------------------ */

struct pool_key {
    const void *at;
    size_t len;
};

static bool pool_same(const void *ctx, uint32_t value, const void *key)
{
    const struct pool *p = ctx;
    const struct pool_entry *item = pages_at(&p->items, value);
    const struct pool_key *k = key;
    return item->key_len == k->len && memcmp(item->key, k->at, k->len) == 0;
}

void pool_init(struct pool *p)
{
    *p = (struct pool){0};
    pages_init(&p->items, sizeof(struct pool_entry));
}

void pool_done(struct pool *p)
{
    pages_done(&p->items);
    map_done(&p->map);
}

/* Finds the key, or adds it with a copy of the object and sets *added. */
static uint32_t pool_put(struct pool *p, struct arena *a, struct pool_key key, const void *object, size_t size,
                         bool *added)
{
    uint64_t hash = hash_bytes(key.at, key.len, 0);
    uint32_t found = map_find(&p->map, hash, pool_same, p, &key);
    if (found != MAP_NONE)
        return found;
    uint32_t ix = pages_push(&p->items);
    struct pool_entry *item = pages_edit(&p->items, ix);
    *item = (struct pool_entry){arena_dup(a, key.at, key.len), key.len, arena_dup(a, object, size)};
    map_add(&p->map, hash, ix);
    *added = true;
    return ix;
}

void shapes_init(struct cluster_shapes *s)
{
    arena_init(&s->arena);
    pool_init(&s->classes);
    pool_init(&s->constraints);
    pool_init(&s->preference_sets);
    pool_init(&s->topology_constraints);
}

void shapes_done(struct cluster_shapes *s)
{
    pool_done(&s->classes);
    pool_done(&s->constraints);
    pool_done(&s->preference_sets);
    pool_done(&s->topology_constraints);
    arena_done(&s->arena);
}

/* ---- labels and terms ------------------------------------------------------------------------------------------- */

sym labels_find(struct labels labels, sym key)
{
    uint32_t low = 0, high = labels.len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (labels.at[mid].key < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low < labels.len && labels.at[low].key == key ? labels.at[low].value : MAP_NONE;
}

void labels_fill(struct intern *names, const struct berth_label *from, size_t len, struct label *to)
{
    for (size_t i = 0; i < len; i++) {
        struct label l = {intern_put(names, from[i].key), intern_put(names, from[i].value)};
        size_t j = i;
        for (; j > 0 && to[j - 1].key > l.key; j--)
            to[j] = to[j - 1];
        to[j] = l;
    }
}

bool expr_holds(const struct intern *names, const struct expr *expr, sym value, bool present)
{
    bool listed = false;
    int64_t number;

    switch (expr->match) {
    case BERTH_EXISTS: return present;
    case BERTH_NOT_EXISTS: return !present;
    case BERTH_IN:
    case BERTH_NOT_IN:
        for (uint32_t i = 0; present && i < expr->values.len; i++)
            listed |= expr->values.at[i] == value;
        return listed == (expr->match == BERTH_IN);
    case BERTH_GT:
    case BERTH_LT:
        if (!present || !str_parse_i64(intern_text(names, value), &number))
            return false;
        return expr->match == BERTH_GT ? number > expr->number : number < expr->number;
    }
    return false;
}

bool term_holds(const struct intern *names, const struct term *term, struct labels labels)
{
    for (uint32_t i = 0; i < term->exprs_len; i++) {
        sym value = labels_find(labels, term->exprs[i].key);
        if (!expr_holds(names, &term->exprs[i], value, value != MAP_NONE))
            return false;
    }
    return term->exprs_len > 0;
}

/* ---- building --------------------------------------------------------------------------------------------------- */

/* A maker writes the key of an object into `key` and its lists into the arena. Lists are built before it is known
 * whether the object is new; class_put rewinds the arena when nothing was added. */
struct shape_builder {
    struct berth_cluster *c;
    struct arena *arena;
    VEC(uint32_t) key;
    bool added;
};

static void key_u32(struct shape_builder *m, uint32_t x)
{
    vec_push(&m->key, x);
}

static void key_i64(struct shape_builder *m, int64_t x)
{
    key_u32(m, (uint32_t)((uint64_t)x >> 32));
    key_u32(m, (uint32_t)x);
}

static struct pool_key key_done(struct shape_builder *m)
{
    return (struct pool_key){m->key.at, m->key.len * sizeof *m->key.at};
}

static sym make_sym(struct shape_builder *m, const char *s)
{
    sym x = intern_put(&m->c->names, s);
    key_u32(m, x);
    return x;
}

static struct syms make_syms(struct shape_builder *m, const char *const *from, size_t len)
{
    sym *at = ARENA_ARRAY(m->arena, sym, len);
    key_u32(m, (uint32_t)len);
    for (size_t i = 0; i < len; i++)
        at[i] = make_sym(m, from[i]);
    return (struct syms){at, (uint32_t)len};
}

static struct term make_term(struct shape_builder *m, const struct berth_term *from)
{
    struct expr *exprs = ARENA_ARRAY(m->arena, struct expr, from->exprs_len);
    key_u32(m, (uint32_t)from->weight);
    key_u32(m, (uint32_t)from->exprs_len);
    for (size_t i = 0; i < from->exprs_len; i++) {
        const struct berth_expr *e = &from->exprs[i];
        key_u32(m, e->match);
        exprs[i] = (struct expr){.key = make_sym(m, e->key), .match = e->match};
        exprs[i].values = make_syms(m, e->values, e->values_len);
        if (e->match == BERTH_GT || e->match == BERTH_LT)
            (void)str_parse_i64(e->values[0], &exprs[i].number); /* checked by describe.c */
    }
    return (struct term){exprs, (uint32_t)from->exprs_len, from->weight};
}

static struct terms make_terms(struct shape_builder *m, const struct berth_term *from, size_t len)
{
    struct term *at = ARENA_ARRAY(m->arena, struct term, len);
    key_u32(m, (uint32_t)len);
    for (size_t i = 0; i < len; i++)
        at[i] = make_term(m, &from[i]);
    return (struct terms){at, (uint32_t)len};
}

static struct tolerations make_tolerations(struct shape_builder *m, const struct berth_shape *shape)
{
    struct toleration *at = ARENA_ARRAY(m->arena, struct toleration, shape->tolerations_len);
    key_u32(m, (uint32_t)shape->tolerations_len);
    for (size_t i = 0; i < shape->tolerations_len; i++) {
        const struct berth_toleration *t = &shape->tolerations[i];
        at[i] = (struct toleration){make_sym(m, t->key), make_sym(m, t->value), t->exists, t->effect};
        key_u32(m, t->exists);
        key_u32(m, t->effect);
    }
    return (struct tolerations){at, (uint32_t)shape->tolerations_len};
}

static struct gpu_need make_gpu(struct shape_builder *m, const struct berth_gpu_need *from)
{
    struct gpu_need gpu = {
        .count = from->count, .milli = from->milli ? from->milli : BERTH_GPU_MILLI, .memory_bytes = from->memory_bytes};
    key_u32(m, gpu.count);
    key_u32(m, gpu.milli);
    key_i64(m, gpu.memory_bytes);
    gpu.models = make_syms(m, from->models, from->models_len);
    sym *kinds = ARENA_ARRAY(m->arena, sym, from->models_len);
    for (size_t i = 0; i < from->models_len; i++)
        kinds[i] = cluster_gpu_kind_put(m->c, from->models[i]);
    gpu.kinds = (struct syms){kinds, gpu.models.len};
    return gpu;
}

/* Returns the page size of the requested huge pages: 0 none, -1 several. */
static int64_t page_size(const struct berth_cluster *c, const struct resource_need *needs, uint32_t len)
{
    int64_t size = 0;
    for (uint32_t i = 0; i < len; i++) {
        int64_t s = cluster_resource(c, needs[i].resource)->page_size_bytes;
        if (s)
            size = size && size != s ? -1 : s;
    }
    return size;
}

static struct constraints_ix make_constraints(struct shape_builder *m, const struct berth_shape *shape, int64_t pages)
{
    m->key.len = 0;
    struct constraints r = {.node = make_sym(m, shape->node),
                            .arch = make_sym(m, shape->arch),
                            .runtime = make_sym(m, shape->runtime),
                            .page_size_bytes = pages};
    key_i64(m, pages);
    r.domains = make_syms(m, shape->domains, shape->domains_len);
    r.require = make_terms(m, shape->require, shape->require_len);
    r.tolerations = make_tolerations(m, shape);
    r.gpu = make_gpu(m, &shape->gpu);
    return (struct constraints_ix){pool_put(&m->c->shapes.constraints, m->arena, key_done(m), &r, sizeof r, &m->added)};
}

static struct preferences_ix make_preferences(struct shape_builder *m, const struct berth_shape *shape)
{
    m->key.len = 0;
    struct preferences t = {.near_zone = make_sym(m, shape->near_zone), .profile = make_sym(m, shape->profile)};
    t.prefer = make_terms(m, shape->prefer, shape->prefer_len);
    t.images = make_syms(m, shape->images, shape->images_len);
    t.tolerations = make_tolerations(m, shape);
    return (struct preferences_ix){
        pool_put(&m->c->shapes.preference_sets, m->arena, key_done(m), &t, sizeof t, &m->added)};
}

/* Sets the anchors: the values of the first `in` condition. Every selected workload has one of these labels. */
static void make_anchors(struct shape_builder *m, struct topology_constraint *topology_constraint)
{
    for (uint32_t i = 0; i < topology_constraint->select.exprs_len; i++) {
        const struct expr *e = &topology_constraint->select.exprs[i];
        if (e->match != BERTH_IN)
            continue;
        uint32_t *at = ARENA_ARRAY(m->arena, uint32_t, e->values.len);
        for (uint32_t v = 0; v < e->values.len; v++) {
            bool again = false; /* so that each pod is counted once */
            for (uint32_t x = 0; x < v; x++)
                again |= e->values.at[x] == e->values.at[v];
            if (!again)
                at[topology_constraint->anchors_len++] =
                    cluster_pair_put(m->c, (struct label){e->key, e->values.at[v]});
        }
        topology_constraint->anchors = at;
        return;
    }
}

static struct topology_constraint_ix put_topology_constraint(struct shape_builder *m,
                                                             struct topology_constraint topology_constraint,
                                                             const struct berth_term *select, const char *topology)
{
    m->key.len = 0;
    key_u32(m, topology_constraint.kind);
    key_u32(m, (uint32_t)topology_constraint.weight);
    key_u32(m, topology_constraint.max_skew);
    key_u32(m, topology_constraint.min_domains);
    key_u32(m, topology_constraint.nodes);
    topology_constraint.topology = make_sym(m, topology);
    topology_constraint.select = make_term(m, select);
    make_anchors(m, &topology_constraint);
    uint32_t before = m->c->shapes.topology_constraints.items.len;
    struct topology_constraint_ix ix = {pool_put(&m->c->shapes.topology_constraints, m->arena, key_done(m),
                                                 &topology_constraint, sizeof topology_constraint, &m->added)};
    if (ix.v == before && topology_constraint.kind == TOPOLOGY_ANTI_AFFINITY && topology_constraint.weight == 0)
        cluster_apart_add(m->c, ix);
    return ix;
}

struct topology_constraint_ix budget_selector_put(struct berth_cluster *c, const struct berth_term *select)
{
    struct shape_builder m = {.c = c, .arena = &c->shapes.arena};
    struct arena_mark mark = arena_mark(m.arena);
    struct topology_constraint_ix ix =
        put_topology_constraint(&m, (struct topology_constraint){.kind = TOPOLOGY_BUDGET}, select, "");
    vec_done(&m.key);
    if (!m.added)
        arena_rewind(m.arena, mark);
    return ix;
}

/* Adds a constraint unless the same required one is present already, so that it counts once. */
static uint32_t topology_constraint_add(struct shape_builder *m, struct topology_constraint_ix *topology_constraints,
                                        uint32_t len, struct topology_constraint_ix topology_constraint)
{
    const struct pool_entry *pooled = pages_at(&m->c->shapes.topology_constraints.items, topology_constraint.v);
    bool required = ((const struct topology_constraint *)pooled->object)->weight == 0;
    for (uint32_t i = 0; i < len && required; i++)
        if (topology_constraints[i].v == topology_constraint.v)
            return len;
    topology_constraints[len] = topology_constraint;
    return len + 1;
}

static const struct topology_constraint_ix *
make_topology_constraints(struct shape_builder *m, const struct berth_shape *shape, uint32_t *ret_len)
{
    struct topology_constraint_ix *topology_constraints =
        ARENA_ARRAY(m->arena, struct topology_constraint_ix, shape->spread_len + shape->near_len);
    uint32_t len = 0;
    for (size_t i = 0; i < shape->spread_len; i++) {
        const struct berth_spread *s = &shape->spread[i];
        struct topology_constraint topology_constraint = {.kind = TOPOLOGY_SPREAD,
                                                          .weight = s->soft ? BERTH_WEIGHT_MAX : 0,
                                                          .max_skew = s->max_skew,
                                                          .min_domains = s->min_domains,
                                                          .nodes = s->nodes};
        len = topology_constraint_add(m, topology_constraints, len,
                                      put_topology_constraint(m, topology_constraint, &s->select, s->topology));
    }
    for (size_t i = 0; i < shape->near_len; i++) {
        const struct berth_affinity *n = &shape->near[i];
        struct topology_constraint topology_constraint = {.kind = n->apart ? TOPOLOGY_ANTI_AFFINITY : TOPOLOGY_AFFINITY,
                                                          .weight = n->select.weight};
        len = topology_constraint_add(m, topology_constraints, len,
                                      put_topology_constraint(m, topology_constraint, &n->select, n->topology));
    }
    *ret_len = len;
    return topology_constraints;
}

static struct resource_need *make_needs(struct shape_builder *m, const struct berth_shape *shape, uint32_t *ret_len)
{
    struct resource_need *needs = ARENA_ARRAY(m->arena, struct resource_need, shape->requests_len + 1);
    uint32_t len = 0;
    bool pods = false;

    for (size_t i = 0; i < shape->requests_len; i++) {
        uint32_t r = cluster_resource_put(m->c, shape->requests[i].resource);
        pods |= r == RESOURCE_PODS;
        if (shape->requests[i].amount > 0)
            needs[len++] = (struct resource_need){r, shape->requests[i].amount};
    }
    if (!pods)
        needs[len++] = (struct resource_need){RESOURCE_PODS, 1};
    *ret_len = len;
    return needs;
}

static const uint32_t *make_ports(struct shape_builder *m, const struct berth_shape *shape, uint32_t *ret_len)
{
    uint32_t len = 0;
    for (size_t i = 0; i < shape->ports_len; i++)
        len += shape->ports[i].count ? shape->ports[i].count : 1;
    uint32_t *at = ARENA_ARRAY(m->arena, uint32_t, len);
    *ret_len = 0;
    for (size_t i = 0; i < shape->ports_len; i++) {
        const struct berth_port *p = &shape->ports[i];
        for (uint32_t n = 0; n < (p->count ? p->count : 1); n++)
            at[(*ret_len)++] = cluster_port_put(m->c, p, n);
    }
    return at;
}

static const struct limit *make_limits(struct shape_builder *m, const struct berth_shape *shape, bool *ret_adjustable)
{
    struct limit *at = ARENA_ARRAY(m->arena, struct limit, shape->limits_len);
    for (size_t i = 0; i < shape->limits_len; i++) {
        const struct berth_limit *l = &shape->limits[i];
        at[i] = (struct limit){cluster_resource_put(m->c, l->resource), l->kind, l->amount, l->max};
        *ret_adjustable |= l->kind == BERTH_ABSOLUTE && l->max > l->amount;
    }
    return at;
}

static void class_key(struct shape_builder *m, const struct class *k)
{
    m->key.len = 0;
    key_u32(m, k->constraints.v);
    key_u32(m, k->preferences.v);
    key_u32(m, k->max_per_node);
    key_u32(m, k->needs_len);
    for (uint32_t i = 0; i < k->needs_len; i++) {
        key_u32(m, k->needs[i].resource);
        key_i64(m, k->needs[i].amount);
    }
    key_u32(m, k->ports_len);
    for (uint32_t i = 0; i < k->ports_len; i++)
        key_u32(m, k->ports[i]);
    key_u32(m, k->volumes_len);
    for (uint32_t i = 0; i < k->volumes_len; i++)
        key_u32(m, k->volumes[i]);
    key_u32(m, k->topology_constraints_len);
    for (uint32_t i = 0; i < k->topology_constraints_len; i++)
        key_u32(m, k->topology_constraints[i].v);
    for (uint32_t i = 0; i < k->limits_len; i++) {
        key_u32(m, k->limits[i].resource);
        key_u32(m, k->limits[i].kind);
        key_i64(m, k->limits[i].amount);
        key_i64(m, k->limits[i].max);
    }
}

struct class_ix class_put(struct berth_cluster *c, const struct berth_shape *shape)
{
    struct shape_builder m = {.c = c, .arena = &c->shapes.arena};
    struct class k = {.max_per_node = shape->max_per_node};
    struct arena_mark mark = arena_mark(m.arena);

    k.needs = make_needs(&m, shape, &k.needs_len);
    k.constraints = make_constraints(&m, shape, page_size(c, k.needs, k.needs_len));
    const struct pool_entry *constraints = pages_at(&c->shapes.constraints.items, k.constraints.v);
    k.gpu = ((const struct constraints *)constraints->object)->gpu;
    k.preferences = make_preferences(&m, shape);
    k.topology_constraints = make_topology_constraints(&m, shape, &k.topology_constraints_len);
    k.ports = make_ports(&m, shape, &k.ports_len);
    uint32_t *volumes = ARENA_ARRAY(m.arena, uint32_t, shape->volumes_len);
    for (size_t i = 0; i < shape->volumes_len; i++)
        volumes[i] = cluster_volume_find(c, shape->volumes[i]);
    k.volumes = volumes;
    k.volumes_len = (uint32_t)shape->volumes_len;
    k.limits = make_limits(&m, shape, &k.adjustable);
    k.limits_len = (uint32_t)shape->limits_len;
    class_key(&m, &k);
    struct class_ix ix = {pool_put(&c->shapes.classes, m.arena, key_done(&m), &k, sizeof k, &m.added)};
    vec_done(&m.key);
    if (!m.added)
        arena_rewind(m.arena, mark);
    return ix;
}
