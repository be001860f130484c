/* preemption_random.c - random worlds with preemption: priorities, policies and budgets; also ports at addresses, and
 * spreads over many domains.
 *
 * Uses its own random generator and applies to seeds from PREEMPTION_SEEDS_FROM on, so that the worlds of lower seeds
 * stay unchanged.
 */
#include "rules.h"
#include "world.h"

enum { CROWD_NODES = 12 };

bool world_has_preemption(const struct world *world)
{
    return world->seed >= PREEMPTION_SEEDS_FROM;
}

/* ---- one workload ----------------------------------------------------------------------------------------------- */

static struct berth_term term_of(struct world *world, const char *app, enum berth_match match)
{
    const char **values = ARENA_ARRAY(&world->arena, const char *, 1);
    struct berth_expr *e = ARENA_ARRAY(&world->arena, struct berth_expr, 1);
    values[0] = app;
    e[0] = (struct berth_expr){.key = "app", .match = match, .values = values, .values_len = 1};
    return (struct berth_term){e, 1, 0};
}

static const char *app_random(struct rng *r)
{
    return RNG_PICK(r, char *, "a", "b", "c", "d");
}

/* Uses few numbers and few addresses, so that ports often conflict. */
static struct berth_port *port_random(struct world *world, struct rng *r)
{
    struct berth_port *p = ARENA_ARRAY(&world->arena, struct berth_port, 1);
    p->port = RNG_PICK(r, uint16_t, 80, 80, 81);
    p->count = RNG_PICK(r, uint16_t, 0, 1, 2);
    p->address = RNG_PICK(r, char *, NULL, "", "0.0.0.0", "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2");
    return p;
}

static void spread_wide(struct world *world, struct rng *r, struct berth_workload *w)
{
    struct berth_spread *s = ARENA_ARRAY(&world->arena, struct berth_spread, 1);
    const char *own = w->labels_len ? w->labels[0].value : app_random(r);
    s->topology = RNG_PICK(r, char *, "node", "zone", "zone", "rack");
    s->select = term_of(world, own, BERTH_IN);
    s->max_skew = (uint32_t)rng_range(r, 1, 2);
    s->min_domains = (uint32_t)rng_range(r, 1, 5);
    s->nodes = (enum berth_spread_nodes)rng_below(r, 5);
    w->shape.spread = s;
    w->shape.spread_len = 1;
}

static void keep_apart(struct world *world, struct rng *r, struct berth_workload *w)
{
    struct berth_affinity *n = ARENA_ARRAY(&world->arena, struct berth_affinity, 1);
    n->topology = RNG_PICK(r, char *, "node", "node", "zone");
    n->select = term_of(world, app_random(r), BERTH_IN);
    n->apart = true;
    w->shape.near = n;
    w->shape.near_len = 1;
}

void preemption_claims_random(struct world *world, struct rng *r, struct berth_workload *w)
{
    w->priority = RNG_PICK(r, int32_t, 0, 0, 1, 2, 5, 50);
    if (rng_chance(r, 40))
        w->kind = BERTH_JOB;
    w->never_preempts = rng_chance(r, 25);
    w->unpreemptible = rng_chance(r, 10);
    w->min_run_ns = RNG_PICK(r, int64_t, 0, 0, 0, 0, 10, 60) * MINUTE_NS;
    if (rng_chance(r, 20)) {
        w->shape.ports = port_random(world, r);
        w->shape.ports_len = 1;
    }
    if (rng_chance(r, 20))
        spread_wide(world, r, w);
    if (rng_chance(r, 20))
        keep_apart(world, r, w);
}

/* ---- the world -------------------------------------------------------------------------------------------------- */

void preemption_before_instances(struct world *world)
{
    struct rng r = {world->seed * 0xd1342543de82ef95u + 5};

    for (size_t i = 0; i < world->workloads_len; i++)
        preemption_claims_random(world, &r, &world->workloads[i]);
    for (size_t i = 0; i < world->nodes_len; i++)
        if (rng_chance(&r, 20)) {
            world->nodes[i].ports = port_random(world, &r);
            world->nodes[i].ports_len = 1;
        }
}

void budget_random(struct world *world, struct rng *r, size_t number, struct berth_budget *ret)
{
    const char *app = app_random(r);
    enum berth_match match = rng_chance(r, 85) ? BERTH_IN : BERTH_NOT_IN;
    uint32_t allowed = RNG_PICK(r, uint32_t, 0, 0, 1, 1, 2, 5);

    *ret = (struct berth_budget){
        .id = arena_fmt(&world->arena, "b%zu", number), .select = term_of(world, app, match), .allowed = allowed};
}

static void preemption_random(struct berth_preemption *p, struct rng *r)
{
    p->on = rng_chance(r, 95);
    p->services = rng_chance(r, 60);
    p->min_run_ns = RNG_PICK(r, int64_t, 0, 0, 1, 10) * MINUTE_NS;
    p->most = RNG_PICK(r, uint32_t, 0, 0, 0, 1, 2, 5);
    p->clears = rng_chance(r, 50);
    p->break_budgets = rng_chance(r, 50);
}

static struct berth_shape plain_shape(struct world *world, int64_t cpu)
{
    static const struct berth_toleration any = {.exists = true};
    struct berth_amount *a = ARENA_ARRAY(&world->arena, struct berth_amount, 2);
    a[0] = (struct berth_amount){"cpu", cpu};
    a[1] = (struct berth_amount){"memory", 16 * MIB};
    return (struct berth_shape){.requests = a, .requests_len = 2, .tolerations = &any, .tolerations_len = 1};
}

/* Adds a low-priority pod that has been running on the node for two hours, if the node has room for it. */
static void filler_random(struct world *world, struct rng *r, size_t node, size_t number)
{
    static const size_t numbers = 600;
    struct berth_workload w = workload_random(world, r, numbers + number);
    struct placement_query free = {.world = world};
    int64_t left = rule_capacity(world, node, "cpu") - rule_reserved(&free, node, "cpu");

    preemption_claims_random(world, r, &w);
    w.replicas = 1;
    w.suspended = false;
    w.priority = RNG_PICK(r, int32_t, -10, -10, 0, 1);
    struct berth_shape plain = plain_shape(world, left > 0 ? left * rng_range(r, 20, 90) / 100 : 0);
    plain.ports = w.shape.ports;
    plain.ports_len = w.shape.ports_len;
    plain.near = w.shape.near;
    plain.near_len = w.shape.near_len;
    w.shape = plain;
    bool ready = rng_chance(r, 80);
    world_add_workload(world, w);
    struct placement_query placement_query = {.world = world, .workload = world->workloads_len - 1};
    if (left <= 0 || rules_first(&placement_query, node) != RULES_LEN)
        return;
    world_add_instance(world, (struct berth_instance){.id = world->next_id,
                                                      .workload = w.id,
                                                      .node = world->nodes[node].id,
                                                      .state = BERTH_RUNNING,
                                                      .ready = ready,
                                                      .since_ns = world->now_ns - 120 * MINUTE_NS});
}

/* Adds a high-priority workload that arrives after the others are placed. It has the shape of another workload, or
 * requests a part of a node. */
static void urgent_random(struct world *world, struct rng *r, size_t number)
{
    static const size_t numbers = 500;
    struct berth_workload w = workload_random(world, r, numbers + number);

    if (world->workloads_len && rng_chance(r, 30))
        w.shape = world->workloads[rng_below(r, world->workloads_len)].shape;
    else if (rng_chance(r, 70))
        w.shape = plain_shape(world, rng_range(r, 2, 30) * 100);
    preemption_claims_random(world, r, &w);
    w.replicas = (uint32_t)rng_range(r, 1, 4);
    w.priority = RNG_PICK(r, int32_t, 2, 10, 1000);
    if (rng_chance(r, 20)) {
        w.gang = "urgent";
        w.gang_min = rng_chance(r, 50) ? (uint32_t)rng_range(r, 1, w.replicas) : 0;
        w.suspended = false;
    }
    world_add_workload(world, w);
}

void preemption_after_instances(struct world *world)
{
    struct rng r = {world->seed * 0xd1342543de82ef95u + 6};
    size_t urgent = (size_t)rng_range(&r, 1, 4), fillers = 0;
    size_t budgets = rng_below(&r, 4);

    preemption_random(&world->policy.preemption, &r);
    for (size_t i = 0; i < budgets; i++) {
        struct berth_budget b;
        budget_random(world, &r, i, &b);
        world_add_budget(world, b);
    }
    for (size_t n = 0; n < world->nodes_len && world->nodes_len <= CROWD_NODES; n++)
        for (size_t i = rng_below(&r, 4); i > 0; i--)
            filler_random(world, &r, n, fillers++);
    for (size_t i = 0; i < urgent; i++)
        urgent_random(world, &r, i);
}
