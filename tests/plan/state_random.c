/* state_random.c - makes a random present state: instances in every state, moves, reservations, and later changes.
 *
 * Instances are placed where the naive rules allow it, so that they were placed legally; then the world changes: nodes
 * drain, are lost or shrink, and workloads are scaled, changed, suspended or removed.
 */
#include <string.h>

#include "rules.h"
#include "world.h"

/* The state of a node may have changed since its pods were placed, so any state will do. */
static bool node_could_take(const struct placement_query *placement_query, size_t node)
{
    uint32_t refusals = rules_all(placement_query, node);
    return (refusals & ~(UINT32_C(1) << RULE_STATE)) == 0; /* there is no policy yet */
}

static enum berth_state state_pick(struct rng *r, enum berth_workload_kind kind)
{
    if (kind == BERTH_JOB && rng_chance(r, 15))
        return BERTH_ENDED;
    return RNG_PICK(r, enum berth_state, BERTH_ASSIGNED, BERTH_STARTING, BERTH_RUNNING, BERTH_RUNNING, BERTH_RUNNING,
                    BERTH_RUNNING, BERTH_RUNNING, BERTH_STOPPING);
}

static void usage_random(struct world *world, struct rng *r, const struct berth_shape *shape,
                         struct berth_instance *instance)
{
    struct berth_usage *u = ARENA_ARRAY(&world->arena, struct berth_usage, shape->limits_len + 1);

    for (size_t i = 0; i < shape->limits_len; i++) {
        const struct berth_limit *l = &shape->limits[i];
        u[i].resource = l->resource;
        u[i].used = rng_range(r, 0, l->amount * 2);
        u[i].used_since_ns = world->now_ns - rng_range(r, 0, 30) * MINUTE_NS;
        u[i].limit_since_ns = world->now_ns - rng_range(r, 0, 30) * MINUTE_NS;
        if (l->kind == BERTH_ABSOLUTE && l->max > l->amount && rng_chance(r, 50))
            u[i].limit = rng_range(r, l->amount, l->max);
    }
    instance->usage = u;
    instance->usage_len = shape->limits_len;
}

/* Puts one pod on a random node that takes it. Returns NULL if none of a few random nodes does. */
static struct inst *pod_place(struct world *world, struct rng *r, size_t workload, uint32_t ordinal)
{
    const struct berth_workload *w = &world->workloads[workload];
    struct placement_query placement_query = {.world = world, .workload = workload};

    for (int tries = 0; tries < 12; tries++) {
        size_t n = rng_below(r, world->nodes_len);
        if (!node_could_take(&placement_query, n))
            continue;
        struct berth_instance instance = {
            .id = world->next_id,
            .workload = w->id,
            .ordinal = ordinal,
            .node = world->nodes[n].id,
            .state = BERTH_RUNNING,
            .gpus = rule_gpu_share(&w->shape) ? rule_gpu_pick(&placement_query, n) : 0,
        };
        instance.since_ns = world->now_ns - rng_range(r, 0, 30) * MINUTE_NS;
        if (rng_chance(r, 50))
            instance.shape = arena_dup(&world->arena, &w->shape, sizeof w->shape);
        if (rng_chance(r, 60))
            usage_random(world, r, &w->shape, &instance);
        return world_add_instance(world, instance);
    }
    return NULL;
}

static void inst_set_state(struct inst *inst, struct rng *r, enum berth_state state)
{
    inst->is.state = state;
    inst->is.ready = state == BERTH_RUNNING && rng_chance(r, 80);
}

static void workload_place(struct world *world, struct rng *r, size_t workload)
{
    uint32_t pods = world->workloads[workload].replicas;
    enum berth_workload_kind kind = world->workloads[workload].kind;
    unsigned percent = RNG_PICK(r, unsigned, 100, 90, 50);

    if (rng_chance(r, 15))
        pods += (uint32_t)rng_range(r, 1, 2); /* the workload was larger once */
    for (uint32_t ordinal = 0; ordinal < pods; ordinal++) {
        if (!rng_chance(r, percent))
            continue;
        struct inst *inst = pod_place(world, r, workload, ordinal);
        if (inst)
            inst_set_state(inst, r, state_pick(r, kind));
    }
}

/* Places all members of a gang, or none if one finds no place. */
static void gang_place(struct world *world, struct rng *r, const char *gang)
{
    size_t before = world->instances_len;

    for (size_t i = 0; i < world->workloads_len; i++) {
        const struct berth_workload *w = &world->workloads[i];
        if (!text_same(w->gang, gang))
            continue;
        uint32_t least = w->gang_min ? w->gang_min : w->replicas, seated = 0;
        for (uint32_t ordinal = 0; ordinal < w->replicas; ordinal++) {
            struct inst *inst = pod_place(world, r, i, ordinal);
            if (!inst)
                continue;
            inst_set_state(inst, r, BERTH_RUNNING);
            seated++;
        }
        if (seated < least) {
            world->instances_len = before;
            return;
        }
    }
    /* A member failed or was told to stop. */
    if (world->instances_len > before && rng_chance(r, 20)) {
        size_t i = before + rng_below(r, world->instances_len - before);
        if (rng_chance(r, 50))
            world_remove_instance(world, i);
        else
            inst_set_state(&world->instances[i], r, BERTH_STOPPING);
        world->broken = true;
    }
}

/* Adds second instances of pods, which replace the first ones. */
static void moves_random(struct world *world, struct rng *r)
{
    size_t len = world->instances_len;

    for (size_t i = 0; i < len; i++) {
        struct berth_instance old = world->instances[i].is;
        size_t w = world->instances[i].workload;
        enum berth_node_state at = world->nodes[world->instances[i].node].state;
        bool leaving = at == BERTH_NODE_DRAINING || at == BERTH_NODE_LOST;
        if (w == NONE || world->workloads[w].gang || old.state != BERTH_RUNNING || !rng_chance(r, leaving ? 30 : 2))
            continue;
        struct inst *inst = pod_place(world, r, w, old.ordinal);
        if (!inst)
            continue;
        inst_set_state(inst, r, RNG_PICK(r, enum berth_state, BERTH_ASSIGNED, BERTH_STARTING, BERTH_RUNNING));
        inst->is.replaces = old.id;
    }
}

static bool pod_has_instance(const struct world *world, size_t workload, uint32_t ordinal)
{
    for (size_t i = 0; i < world->instances_len; i++)
        if (world->instances[i].workload == workload && world->instances[i].is.ordinal == ordinal)
            return true;
    return false;
}

/* Returns the instances on the node that are stopping. */
static size_t stopping_on(struct world *world, size_t node, uint64_t **ret_ids)
{
    uint64_t *ids = ARENA_ARRAY(&world->arena, uint64_t, world->instances_len + 1);
    size_t len = 0;

    for (size_t i = 0; i < world->instances_len; i++)
        if (world->instances[i].node == node && world->instances[i].is.state == BERTH_STOPPING)
            ids[len++] = world->instances[i].is.id;
    *ret_ids = ids;
    return len;
}

/* Adds reserved pods on nodes where an instance is stopping, or stopped a moment ago. */
static void reservations_random(struct world *world, struct rng *r)
{
    for (size_t w = 0; w < world->workloads_len; w++) {
        if (world->workloads[w].gang || !world->workloads[w].replicas || !rng_chance(r, 20))
            continue;
        uint32_t ordinal = rng_below(r, world->workloads[w].replicas);
        size_t n = rng_below(r, world->nodes_len);
        uint64_t *waits;
        size_t waits_len = stopping_on(world, n, &waits);
        struct placement_query placement_query = {.world = world, .workload = w, .gone = waits, .gone_len = waits_len};
        if (pod_has_instance(world, w, ordinal) || !node_could_take(&placement_query, n))
            continue;
        if (!waits_len) {
            waits[0] = world->next_id++; /* confirmed: no instance has that id any more */
            waits_len = 1;
        }
        world_add_instance(
            world, (struct berth_instance){
                       .id = world->next_id,
                       .workload = world->workloads[w].id,
                       .ordinal = ordinal,
                       .node = world->nodes[n].id,
                       .state = BERTH_RESERVED,
                       .since_ns = world->now_ns - MINUTE_NS,
                       .gpus = rule_gpu_share(&world->workloads[w].shape) ? rule_gpu_pick(&placement_query, n) : 0,
                       .waits = waits,
                       .waits_len = waits_len,
                   });
    }
}

/* Makes the capacity of some nodes less than what their pods hold. */
static void nodes_shrink(struct world *world, struct rng *r)
{
    for (size_t n = 0; n < world->nodes_len; n++) {
        struct berth_node *node = &world->nodes[n];
        if (!node->allocatable_len || !rng_chance(r, 3))
            continue;
        struct berth_amount *a =
            arena_dup(&world->arena, node->allocatable, node->allocatable_len * sizeof *node->allocatable);
        size_t i = rng_below(r, node->allocatable_len);
        a[i].amount = strncmp(a[i].resource, "hugepages", 9) == 0 ? 0 : a[i].amount / 4;
        node->allocatable = a;
        world->broken = true;
    }
}

/* Gives workloads new shapes. Instances that were placed with the old shape keep it. */
static void workloads_change(struct world *world, struct rng *r)
{
    for (size_t w = 0; w < world->workloads_len; w++) {
        if (!rng_chance(r, 5))
            continue;
        for (size_t i = 0; i < world->instances_len; i++)
            if (world->instances[i].workload == w && !world->instances[i].is.shape)
                world->instances[i].is.shape =
                    arena_dup(&world->arena, &world->workloads[w].shape, sizeof world->workloads[w].shape);
        world->workloads[w].shape = shape_random(world, r);
        world_link(world);
    }
    if (world->workloads_len && rng_chance(r, 10)) {
        size_t w = rng_below(r, world->workloads_len);
        for (size_t i = 0; i < world->instances_len; i++)
            if (world->instances[i].workload == w && world->instances[i].shape)
                world->instances[i].is.shape =
                    arena_dup(&world->arena, world->instances[i].shape, sizeof *world->instances[i].shape);
        world->broken |= text_same(world->workloads[w].gang, "") ? 0 : 1;
        world_remove_workload(world, w);
    }
    world_link(world);
}

void instances_random(struct world *world, struct rng *r)
{
    unsigned percent = RNG_PICK(r, unsigned, 0, 40, 80, 100);

    for (size_t w = 0; w < world->workloads_len; w++)
        if (text_same(world->workloads[w].gang, "") && rng_chance(r, percent))
            workload_place(world, r, w);
    for (size_t g = 0; g < 3; g++)
        if (rng_chance(r, percent))
            gang_place(world, r, (const char *[]){"g1", "g2", "g3"}[g]);
    moves_random(world, r);
    reservations_random(world, r);
    nodes_shrink(world, r);
    workloads_change(world, r);
}
