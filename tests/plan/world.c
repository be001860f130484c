/* world.c - a cluster as plain arrays, and loading it into the library. */
#include "world.h"

#include <inttypes.h>
#include <string.h>

#include "rules.h"

void world_init(struct world *world)
{
    memset(world, 0, sizeof *world);
    arena_init(&world->arena);
    world->next_id = 1;
}

void world_done(struct world *world)
{
    arena_done(&world->arena);
    memset(world, 0, sizeof *world);
}

/* Returns the array with room for one more element. Its capacity doubles whenever its length is a power of two. */
static void *grown(struct world *world, void *old, size_t len, size_t size)
{
    if (len & (len - 1) && old)
        return old;

    void *grown = arena_zalloc(&world->arena, arena_product(len ? len * 2 : 1, size));
    if (len && old)
        memcpy(grown, old, len * size);
    return grown;
}

#define APPEND(world, list, x)                                                                                         \
    do {                                                                                                               \
        (world)->list = grown((world), (world)->list, (world)->list##_len, sizeof *(world)->list);                     \
        (world)->list[(world)->list##_len++] = (x);                                                                    \
    } while (0)

#define COPY_LIST(to, from, list)                                                                                      \
    do {                                                                                                               \
        (to)->list = NULL;                                                                                             \
        (to)->list##_len = 0;                                                                                          \
        for (size_t i_ = 0; i_ < (from)->list##_len; i_++)                                                             \
            APPEND((to), list, (from)->list[i_]);                                                                      \
    } while (0)

void world_copy(struct world *to, const struct world *from)
{
    *to = *from;
    arena_init(&to->arena);
    COPY_LIST(to, from, resources);
    COPY_LIST(to, from, nodes);
    COPY_LIST(to, from, volumes);
    COPY_LIST(to, from, workloads);
    COPY_LIST(to, from, instances);
    COPY_LIST(to, from, facts);
    COPY_LIST(to, from, budgets);
    world_link(to);
}

/* Mostly the default profile; never one that leaves out filters, since the checker applies all rules. */
static const struct berth_profile *profile_random(struct rng *r)
{
    size_t len = 0;
    while (berth_profile_at(len))
        len++;
    const struct berth_profile *profile = rng_chance(r, 40) ? berth_profile_at(rng_below(r, len)) : NULL;
    return profile && !profile->filters_len ? profile : NULL;
}

void world_random(struct world *ret_world, uint64_t seed)
{
    struct rng r = {seed * 0x2545f4914f6cdd1du + 1};
    struct world *w = ret_world;
    unsigned size = rng_below(&r, 100);
    size_t nodes = size < 2 ? 130 + rng_below(&r, 70) : size < 4 ? 40 : (size_t)rng_range(&r, 1, 12);
    size_t workloads = size < 2 ? 20 : size < 4 ? 60 : rng_below(&r, 11);

    world_init(w);
    w->seed = seed;
    w->now_ns = 1000000 * SECOND_NS + rng_below(&r, 3) * SECOND_NS / 2;
    w->next_id = rng_chance(&r, 10) ? (UINT64_C(1) << 40) : 1;
    w->profile = profile_random(&r);
    resources_random(w, &r);
    nodes_random(w, &r, nodes);
    volumes_random(w, &r);
    workloads_random(w, &r, workloads);
    if (world_has_preemption(w))
        preemption_before_instances(w);
    world_link(w);
    instances_random(w, &r);
    policy_and_use_random(w);
    if (world_has_preemption(w))
        preemption_after_instances(w);
}

/* ---- lookup ----------------------------------------------------------------------------------------------------- */

static bool same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

size_t world_find_node(const struct world *world, const char *id)
{
    for (size_t i = 0; i < world->nodes_len; i++)
        if (same(world->nodes[i].id, id))
            return i;
    return NONE;
}

size_t world_find_workload(const struct world *world, const char *id)
{
    for (size_t i = 0; i < world->workloads_len; i++)
        if (same(world->workloads[i].id, id))
            return i;
    return NONE;
}

size_t world_find_resource(const struct world *world, const char *name)
{
    for (size_t i = 0; i < world->resources_len; i++)
        if (same(world->resources[i].name, name))
            return i;
    return NONE;
}

const struct berth_volume *world_find_volume(const struct world *world, const char *id)
{
    for (size_t i = 0; i < world->volumes_len; i++)
        if (same(world->volumes[i].id, id))
            return &world->volumes[i];
    return NULL;
}

struct inst *world_find_instance(const struct world *world, uint64_t id)
{
    for (size_t i = 0; i < world->instances_len; i++)
        if (world->instances[i].is.id == id)
            return &world->instances[i];
    return NULL;
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static void inst_link(const struct world *world, struct inst *inst)
{
    static const struct berth_shape unknown;

    inst->node = world_find_node(world, inst->is.node);
    inst->workload = world_find_workload(world, inst->is.workload);
    inst->shape = inst->is.shape;
    if (!inst->shape && inst->workload != NONE)
        inst->shape = &world->workloads[inst->workload].shape;
    if (!inst->shape)
        inst->shape = &unknown;
}

void world_link(struct world *world)
{
    for (size_t i = 0; i < world->instances_len; i++)
        inst_link(world, &world->instances[i]);
}

struct berth_node *world_add_node(struct world *world, struct berth_node node)
{
    APPEND(world, nodes, node);
    return &world->nodes[world->nodes_len - 1];
}

struct berth_workload *world_add_workload(struct world *world, struct berth_workload workload)
{
    APPEND(world, workloads, workload);
    world_link(world);
    return &world->workloads[world->workloads_len - 1];
}

struct inst *world_add_instance(struct world *world, struct berth_instance instance)
{
    struct inst inst = {.is = instance};
    inst_link(world, &inst);
    APPEND(world, instances, inst);
    if (instance.id >= world->next_id)
        world->next_id = instance.id + 1;
    return &world->instances[world->instances_len - 1];
}

/* Adds the fact and removes an older one of the same kind and subject. A fact that is over is only removed. */
void world_add_fact(struct world *world, struct berth_fact fact)
{
    size_t kept = 0;
    for (size_t i = 0; i < world->facts_len; i++) {
        const struct berth_fact *old = &world->facts[i];
        if (old->kind != fact.kind || old->subject != fact.subject || (!fact.subject && !same(old->key, fact.key)))
            world->facts[kept++] = *old;
    }
    world->facts_len = kept;
    fact.key = arena_strdup(&world->arena, fact.key ? fact.key : "");
    if (!fact.over)
        APPEND(world, facts, fact);
}

void world_add_budget(struct world *world, struct berth_budget budget)
{
    APPEND(world, budgets, budget);
}

void world_spend_budgets(struct world *world, size_t workload)
{
    for (size_t i = 0; i < world->budgets_len; i++)
        world->budgets[i].allowed -= world->budgets[i].allowed && budget_counts(world, i, workload);
}

#define REMOVE(world, list, i)                                                                                         \
    do {                                                                                                               \
        size_t rest_ = --(world)->list##_len - (i);                                                                    \
        memmove(&(world)->list[i], &(world)->list[(i) + 1], rest_ * sizeof *(world)->list);                            \
    } while (0)

void world_remove_node(struct world *world, size_t i)
{
    REMOVE(world, nodes, i);
    world_link(world);
}

void world_remove_workload(struct world *world, size_t i)
{
    REMOVE(world, workloads, i);
    world_link(world);
}

void world_remove_instance(struct world *world, size_t i)
{
    REMOVE(world, instances, i);
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

enum part { PART_RESOURCE, PART_VOLUME, PART_NODE, PART_WORKLOAD, PART_INSTANCE, PART_FACT, PART_BUDGET };

struct item {
    enum part part;
    size_t i;
};

/* The order of loading: objects of a rank need those of lower ranks; within a rank any order is allowed. An instance
 * without its own shape has that of its workload, which must exist. */
static int item_rank(const struct world *world, struct item item)
{
    static const int ranks[] = {0, 1, 2, 3, 3, 5, 3};
    bool follows = item.part == PART_INSTANCE && !world->instances[item.i].is.shape;
    return follows ? 4 : ranks[item.part];
}

static int item_put(const struct world *world, struct berth_cluster *c, struct item item, struct berth_err *err)
{
    switch (item.part) {
    case PART_RESOURCE: return berth_resource_put(c, &world->resources[item.i], err);
    case PART_VOLUME: return berth_volume_put(c, &world->volumes[item.i], err);
    case PART_NODE: return berth_node_put(c, &world->nodes[item.i], err);
    case PART_WORKLOAD: return berth_workload_put(c, &world->workloads[item.i], err);
    case PART_INSTANCE: return berth_instance_put(c, &world->instances[item.i].is, err);
    case PART_FACT: return berth_fact_put(c, &world->facts[item.i], err);
    case PART_BUDGET: return berth_budget_put(c, &world->budgets[item.i], err);
    }
    return -1;
}

/* Adds objects and removes them again, which must leave no trace. */
static int add_and_remove_ghosts(const struct world *world, struct berth_cluster *c, struct rng *r,
                                 struct berth_err *err)
{
    int rc = 0;
    if (world->nodes_len && rng_chance(r, 10)) {
        struct berth_node node = world->nodes[rng_below(r, world->nodes_len)];
        node.id = "ghost";
        rc = berth_node_put(c, &node, err);
        if (!rc)
            rc = berth_node_remove(c, "ghost", err);
    }
    if (!rc && world->workloads_len && rng_chance(r, 10)) {
        struct berth_workload workload = world->workloads[rng_below(r, world->workloads_len)];
        workload.id = "ghost";
        rc = berth_workload_put(c, &workload, err);
        if (!rc)
            rc = berth_workload_remove(c, "ghost", err);
    }
    return rc;
}

static size_t items_list(const struct world *world, struct item *items)
{
    const size_t lens[] = {world->resources_len, world->volumes_len, world->nodes_len,  world->workloads_len,
                           world->instances_len, world->facts_len,   world->budgets_len};
    size_t len = 0;

    for (size_t part = 0; part < sizeof lens / sizeof *lens; part++)
        for (size_t i = 0; i < lens[part]; i++)
            items[len++] = (struct item){(enum part)part, i};
    return len;
}

static void items_shuffle(struct item *items, size_t len, struct rng *r)
{
    for (size_t i = len; i > 1; i--) {
        size_t j = rng_below(r, i);
        struct item item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}

static int items_put(const struct world *world, struct berth_cluster *c, const struct item *items, size_t len,
                     uint64_t shuffle, struct berth_err *err)
{
    struct rng r = {shuffle};
    for (int rank = 0; rank <= 5; rank++)
        for (size_t i = 0; i < len; i++) {
            if (item_rank(world, items[i]) != rank)
                continue;
            int rc = item_put(world, c, items[i], err);
            if (!rc && shuffle && rng_chance(&r, 5))
                rc = item_put(world, c, items[i], err); /* putting the same object again changes nothing */
            if (!rc && shuffle && rank > 2 && rng_chance(&r, 10))
                rc = add_and_remove_ghosts(world, c, &r, err);
            if (rc)
                return rc;
        }
    return 0;
}

struct berth_cluster *world_load(const struct world *world, uint64_t shuffle)
{
    struct rng r = {shuffle};
    struct berth_err err = {0};
    struct arena arena;
    size_t room = world->resources_len + world->volumes_len + world->nodes_len + world->workloads_len +
                  world->instances_len + world->facts_len + world->budgets_len;

    arena_init(&arena);
    struct item *items = ARENA_ARRAY(&arena, struct item, room + 1);
    size_t len = items_list(world, items);
    if (shuffle)
        items_shuffle(items, len, &r);
    struct berth_cluster *c = berth_cluster_new();
    if (items_put(world, c, items, len, shuffle, &err) != 0) {
        fprintf(stderr, "seed %" PRIu64 ": refused: %s\n", world->seed, err.text);
        berth_cluster_free(c);
        c = NULL;
    }
    arena_done(&arena);
    return c;
}

struct berth_policy world_policy(const struct world *world)
{
    struct berth_policy policy = world->policy;
    policy.profile = world->profile;
    return policy;
}

struct berth_plan *world_plan(const struct world *world, struct berth_cluster *cluster,
                              struct berth_snapshot **ret_snapshot)
{
    struct berth_policy policy = world_policy(world);
    struct berth_snapshot *snapshot = berth_freeze(cluster, world->now_ns, world->seed);
    struct berth_plan *plan = NULL;
    struct berth_err err = {0};

    if (berth_plan_make(snapshot, &policy, &plan, &err) != 0) {
        fprintf(stderr, "seed %" PRIu64 ": no plan: %s\n", world->seed, err.text);
        berth_snapshot_free(snapshot);
        return NULL;
    }
    *ret_snapshot = snapshot;
    return plan;
}
