/* policy_random.c - makes random policies apart from the profile, and their inputs: real usage, requested migrations,
 * facts.
 */
#include <string.h>

#include "rules.h"
#include "world.h"

static struct berth_headroom_amount *reserves_random(struct world *world, struct rng *r, size_t *ret_len)
{
    struct berth_headroom_amount *at = ARENA_ARRAY(&world->arena, struct berth_headroom_amount, 2);
    size_t len = 0;

    if (rng_chance(r, 70))
        at[len++] = (struct berth_headroom_amount){.resource = "cpu", .permille = (uint32_t)rng_range(r, 0, 400)};
    if (rng_chance(r, 70)) {
        at[len].resource = "memory";
        at[len].amount = rng_range(r, 0, 8) * GIB;
        at[len++].permille = (uint32_t)rng_range(r, 0, 300);
    }
    *ret_len = len;
    return at;
}

static struct berth_policy policy_random(struct world *world, struct rng *r)
{
    struct berth_policy policy = rng_chance(r, 60) ? berth_policy_usual() : (struct berth_policy){0};

    if (policy.pressure.high_percent && rng_chance(r, 50)) {
        policy.pressure.high_percent = (uint32_t)rng_range(r, 30, 100);
        policy.pressure.low_percent = (uint32_t)rng_range(r, 10, policy.pressure.high_percent);
        policy.pressure.drops = (uint32_t)rng_range(r, 0, 3);
    }
    policy.shed = policy.shed && rng_chance(r, 80);
    if (policy.rebalance.moves && rng_chance(r, 50)) {
        policy.rebalance.moves = (uint32_t)rng_range(r, 1, 4);
        policy.rebalance.gain_percent = (uint32_t)rng_range(r, 1, 20);
        policy.rebalance.age_ns = rng_range(r, 0, 5) * MINUTE_NS;
    }
    if (rng_chance(r, 25)) {
        policy.headroom.reserves = reserves_random(world, r, &policy.headroom.reserves_len);
        policy.headroom.priority = RNG_PICK(r, int32_t, 0, 1, 5, 100);
    }
    return policy;
}

/* Makes the instance report usage of cpu and memory in addition to that of its limited resources. */
void use_random(struct world *world, struct rng *r, struct inst *inst)
{
    static const char *const resources[] = {"cpu", "memory"};
    if (inst->is.state == BERTH_RESERVED) /* its node does not know of it yet */
        return;
    struct berth_usage *u = ARENA_ARRAY(&world->arena, struct berth_usage, inst->is.usage_len + 2);
    size_t len = inst->is.usage_len;

    if (len)
        memcpy(u, inst->is.usage, len * sizeof *u);
    for (size_t k = 0; k < 2; k++) {
        int64_t asked = amount_of(inst->shape->requests, inst->shape->requests_len, resources[k]);
        int64_t unit = k ? 256 * MIB : 100,
                used = rng_chance(r, 70) ? rng_range(r, 0, 2 * asked) : rng_range(r, 0, 40) * unit;
        size_t at = 0;
        while (at < len && !text_same(u[at].resource, resources[k]))
            at++;
        if (at == len)
            u[len++] = (struct berth_usage){.resource = resources[k]};
        u[at].used = used;
        u[at].used_since_ns = world->now_ns;
    }
    inst->is.usage = u;
    inst->is.usage_len = len;
}

void node_use_random(struct world *world, struct rng *r, struct berth_node *node)
{
    struct berth_amount *a = ARENA_ARRAY(&world->arena, struct berth_amount, 3);
    int64_t memory = amount_of(node->allocatable, node->allocatable_len, "memory");
    int64_t cpu = amount_of(node->allocatable, node->allocatable_len, "cpu");

    a[0] = (struct berth_amount){"memory", rng_range(r, 0, 120) * (memory / 100)};
    a[1] = (struct berth_amount){"cpu", rng_range(r, 0, cpu)};
    a[2] = (struct berth_amount){"entropy", 5}; /* a resource that no rule uses */
    node->used = a;
    node->used_len = (size_t)rng_range(r, 0, 3);
}

/* A manual request to migrate an instance, or to undo a migration. */
bool migration_request_random(struct world *world, struct rng *r, struct berth_fact *ret)
{
    if (!world->instances_len)
        return false;
    const struct inst *s = &world->instances[rng_below(r, world->instances_len)];
    struct berth_fact fact = {.kind = BERTH_FACT_MIGRATION, .subject = s->is.id, .at_ns = world->now_ns};
    fact.value = berth_migration_value(BERTH_MIGRATION_REQUESTED, BERTH_CAUSE_MANUAL);
    fact.key = rng_chance(r, 50) ? world->nodes[rng_below(r, world->nodes_len)].id : "";
    if (rng_chance(r, 30)) {
        fact.key = "";
        fact.value = berth_migration_value(BERTH_MIGRATION_UNDONE, BERTH_CAUSE_MOVED);
    }
    *ret = fact;
    return true;
}

/* ---- worlds with pressure, overload or uneven usage ------------------------------------------------------------- */

static bool tolerates_loss(const struct berth_workload *w)
{
    return w->kind == BERTH_SERVICE && text_same(w->gang, "");
}

/* Makes services that tolerate the loss of pods, all of whose pods run. */
static void services_tolerate_loss(struct world *world)
{
    for (size_t i = 0; i < world->workloads_len; i++)
        if (tolerates_loss(&world->workloads[i]))
            world->workloads[i].min_available = 1;
    for (size_t i = 0; i < world->instances_len; i++) {
        struct inst *s = &world->instances[i];
        if (s->is.state != BERTH_ASSIGNED && s->is.state != BERTH_STARTING && s->is.state != BERTH_RUNNING)
            continue;
        s->is.state = BERTH_RUNNING;
        s->is.ready = true;
        s->is.since_ns = world->now_ns - 30 * MINUTE_NS;
    }
}

static void memory_is_short(struct world *world, struct rng *r)
{
    services_tolerate_loss(world);
    for (size_t i = 0; i < world->workloads_len; i++)
        world->workloads[i].priority = RNG_PICK(r, int32_t, 0, 0, 1, 2);
    world->policy.pressure = berth_policy_usual().pressure;
    world->policy.pressure.drops = (uint32_t)rng_range(r, 1, 4);
    for (size_t i = 0; i < world->instances_len; i++)
        use_random(world, r, &world->instances[i]);
    for (size_t i = 0; i < world->nodes_len; i++) {
        struct berth_node *n = &world->nodes[i];
        struct berth_amount *a = ARENA_ARRAY(&world->arena, struct berth_amount, 1);
        int64_t memory = amount_of(n->allocatable, n->allocatable_len, "memory");
        a[0] = (struct berth_amount){"memory", rng_range(r, 80, 120) * (memory / 100)};
        n->used = a;
        n->used_len = 1;
        if (rng_chance(r, 80))
            world_add_fact(world, (struct berth_fact){
                                      .kind = BERTH_FACT_PRESSURE, .key = n->id, .at_ns = world->now_ns - MINUTE_NS});
    }
}

static void nodes_exceed_capacity(struct world *world, struct rng *r)
{
    world->policy.shed = true;
    world->broken = true;
    for (size_t i = 0; i < world->nodes_len; i++) {
        struct berth_node *n = &world->nodes[i];
        if (!n->allocatable_len || !rng_chance(r, 50))
            continue;
        struct berth_amount *a = arena_dup(&world->arena, n->allocatable, n->allocatable_len * sizeof *a);
        for (size_t k = 0; k < n->allocatable_len; k++)
            if (text_same(a[k].resource, "cpu") || text_same(a[k].resource, "memory"))
                a[k].amount = a[k].amount * rng_range(r, 5, 60) / 100;
        n->allocatable = a;
    }
}

static void use_is_uneven(struct world *world, struct rng *r)
{
    services_tolerate_loss(world);
    world->policy.rebalance = (struct berth_rebalance){.moves = 3, .gain_percent = 2, .age_ns = MINUTE_NS};
    world->profile = NULL;
    for (size_t i = 0; i < world->instances_len; i++) {
        struct inst *s = &world->instances[i];
        use_random(world, r, s);
        if (s->workload != NONE && tolerates_loss(&world->workloads[s->workload]))
            world->workloads[s->workload].replicas = 0; /* counted below: as many as there are instances */
    }
    for (size_t i = 0; i < world->instances_len; i++)
        if (world->instances[i].workload != NONE && tolerates_loss(&world->workloads[world->instances[i].workload]))
            world->workloads[world->instances[i].workload].replicas++;
}

static void scenario_random(struct world *world, struct rng *r)
{
    switch (rng_below(r, 8)) {
    case 0:
    case 1: memory_is_short(world, r); break;
    case 2: nodes_exceed_capacity(world, r); break;
    case 3:
    case 4: use_is_uneven(world, r); break;
    default: break;
    }
}

void policy_and_use_random(struct world *world)
{
    struct rng r = {world->seed * 0x9e3779b97f4a7c15u + 77};
    struct berth_fact wish;

    world->policy = policy_random(world, &r);
    if (rng_chance(&r, 40))
        return;
    if (rng_chance(&r, 60)) {
        scenario_random(world, &r);
        return;
    }
    for (size_t i = 0; i < world->instances_len; i++)
        if (rng_chance(&r, 60))
            use_random(world, &r, &world->instances[i]);
    for (size_t i = 0; i < world->nodes_len; i++) {
        if (rng_chance(&r, 20))
            node_use_random(world, &r, &world->nodes[i]);
        if (rng_chance(&r, 20))
            world_add_fact(world, (struct berth_fact){.kind = BERTH_FACT_PRESSURE,
                                                      .key = world->nodes[i].id,
                                                      .value = 1,
                                                      .at_ns = world->now_ns - (rng_chance(&r, 70) ? MINUTE_NS : 0)});
    }
    if (rng_chance(&r, 10))
        world_add_fact(world, (struct berth_fact){.kind = BERTH_FACT_PRESSURE, .key = "gone", .value = 1});
    for (size_t i = 0; i < 3; i++)
        if (rng_chance(&r, 20) && migration_request_random(world, &r, &wish))
            world_add_fact(world, wish);
}
