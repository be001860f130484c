/* world_evolve.c - random events, told to the world and to a live cluster alike. */
#include "world_evolve.h"

#include <inttypes.h>

#include "rules.h"

struct event {
    struct world *world;
    struct berth_cluster *cluster;
    struct rng *r;
    struct berth_err err;
};

static int inst_put(struct event *e, const struct inst *inst)
{
    return berth_instance_put(e->cluster, &inst->is, &e->err);
}

static int inst_drop(struct event *e, size_t i)
{
    uint64_t id = e->world->instances[i].is.id;
    world_remove_instance(e->world, i);
    return berth_instance_remove(e->cluster, id, &e->err);
}

/* Moves an instance one step on in its usual life cycle. */
static int inst_advance(struct event *e, size_t i)
{
    struct inst *s = &e->world->instances[i];
    bool job = s->workload != NONE && e->world->workloads[s->workload].kind == BERTH_JOB;

    switch (s->is.state) {
    case BERTH_ASSIGNED: s->is.state = BERTH_STARTING; break;
    case BERTH_STARTING:
        s->is.state = BERTH_RUNNING;
        s->is.ready = rng_chance(e->r, 80);
        break;
    case BERTH_RUNNING:
        if (job && rng_chance(e->r, 20))
            s->is.state = BERTH_ENDED;
        s->is.ready = s->is.state == BERTH_RUNNING && rng_chance(e->r, 90);
        break;
    case BERTH_STOPPING: return inst_drop(e, i);
    case BERTH_RESERVED:
    case BERTH_ENDED: return 0;
    }
    s->is.since_ns = e->world->now_ns;
    return inst_put(e, s);
}

static int reports_arrive(struct event *e)
{
    int rc = 0;
    for (size_t i = e->world->instances_len; i-- > 0 && !rc;)
        if (e->world->nodes[e->world->instances[i].node].state != BERTH_NODE_LOST && rng_chance(e->r, 50))
            rc = inst_advance(e, i);
    return rc;
}

static int instance_fails(struct event *e)
{
    if (!e->world->instances_len)
        return 0;
    size_t i = rng_below(e->r, e->world->instances_len);
    const struct inst *s = &e->world->instances[i];
    if (s->workload != NONE && e->world->workloads[s->workload].gang)
        e->world->broken = true;
    return inst_drop(e, i);
}

static int usage_changes(struct event *e)
{
    if (!e->world->instances_len)
        return 0;
    struct inst *s = &e->world->instances[rng_below(e->r, e->world->instances_len)];
    if (!s->is.usage_len)
        return 0;
    struct berth_usage *u = arena_dup(&e->world->arena, s->is.usage, s->is.usage_len * sizeof *u);
    u[0].used = rng_range(e->r, 0, 2 * u[0].used + 10);
    u[0].used_since_ns = e->world->now_ns;
    s->is.usage = u;
    return inst_put(e, s);
}

static int node_changes_state(struct event *e)
{
    struct berth_node *n = &e->world->nodes[rng_below(e->r, e->world->nodes_len)];
    n->state = RNG_PICK(e->r, enum berth_node_state, BERTH_NODE_READY, BERTH_NODE_READY, BERTH_NODE_CORDONED,
                        BERTH_NODE_DRAINING, BERTH_NODE_LOST);
    n->since_ns = e->world->now_ns;
    return berth_node_put(e->cluster, n, &e->err);
}

/* Replaces the description of a node except its devices and ports, which instances may hold. */
static int node_changes(struct event *e)
{
    struct berth_node *n = &e->world->nodes[rng_below(e->r, e->world->nodes_len)];
    struct berth_node other = node_random(e->world, e->r, 0);

    other.id = n->id;
    other.gpus = n->gpus;
    other.gpus_len = n->gpus_len;
    other.ports = n->ports;
    other.ports_len = n->ports_len;
    *n = other;
    e->world->broken = true;
    return berth_node_put(e->cluster, n, &e->err);
}

/* Changes the health of a device. An instance that holds an unhealthy device keeps it. */
static int gpu_health_changes(struct event *e)
{
    struct berth_node *n = &e->world->nodes[rng_below(e->r, e->world->nodes_len)];
    if (!n->gpus_len)
        return 0;
    struct berth_gpu *gpus = arena_dup(&e->world->arena, n->gpus, n->gpus_len * sizeof *gpus);
    struct berth_gpu *one = &gpus[rng_below(e->r, n->gpus_len)];
    one->unhealthy = !one->unhealthy;
    n->gpus = gpus;
    e->world->broken = true;
    return berth_node_put(e->cluster, n, &e->err);
}

static int node_joins(struct event *e)
{
    static const size_t numbers = 1000;
    size_t number = numbers + rng_below(e->r, 1000);
    struct berth_node node = node_random(e->world, e->r, number);
    if (world_find_node(e->world, node.id) != NONE)
        return 0;
    return berth_node_put(e->cluster, world_add_node(e->world, node), &e->err);
}

/* Removes a node. The cluster must refuse that while the node has instances. */
static int node_leaves(struct event *e)
{
    size_t n = rng_below(e->r, e->world->nodes_len);
    /* an ended instance does not keep its node, but in this world every instance has a node */
    bool held = false, ended = false;

    for (size_t i = 0; i < e->world->instances_len; i++) {
        bool here = e->world->instances[i].node == n;
        ended |= here && e->world->instances[i].is.state == BERTH_ENDED;
        held |= here && e->world->instances[i].is.state != BERTH_ENDED;
    }
    if (ended && !held)
        return 0;
    if (held) {
        int rc = berth_node_remove(e->cluster, e->world->nodes[n].id, NULL);
        return rc < 0 ? 0 : -1;
    }
    if (e->world->nodes_len == 1)
        return 0;
    int rc = berth_node_remove(e->cluster, e->world->nodes[n].id, &e->err);
    world_remove_node(e->world, n);
    return rc;
}

static int workload_scales(struct event *e)
{
    if (!e->world->workloads_len)
        return 0;
    struct berth_workload *w = &e->world->workloads[rng_below(e->r, e->world->workloads_len)];
    if (w->gang)
        return 0;
    w->replicas = rng_below(e->r, 7);
    w->suspended = rng_chance(e->r, 10);
    w->priority = RNG_PICK(e->r, int32_t, 0, 5, -5);
    return berth_workload_put(e->cluster, w, &e->err);
}

/* Gives a workload a new shape. Instances without a shape of their own get the old one first, so that none breaks a
 * rule by the new shape. */
static int workload_changes_shape(struct event *e)
{
    if (!e->world->workloads_len)
        return 0;
    size_t i = rng_below(e->r, e->world->workloads_len);
    struct berth_workload *w = &e->world->workloads[i];
    int rc = 0;

    for (size_t k = 0; k < e->world->instances_len && !rc; k++) {
        struct inst *s = &e->world->instances[k];
        if (s->workload != i || s->is.shape)
            continue;
        s->is.shape = arena_dup(&e->world->arena, &w->shape, sizeof w->shape);
        rc = inst_put(e, s);
    }
    w->shape = shape_random(e->world, e->r);
    world_link(e->world);
    return rc ? rc : berth_workload_put(e->cluster, w, &e->err);
}

static int workload_is_added(struct event *e)
{
    struct berth_workload w = workload_random(e->world, e->r, 1000 + rng_below(e->r, 1000));
    if (world_find_workload(e->world, w.id) != NONE)
        return 0;
    if (world_has_preemption(e->world))
        preemption_claims_random(e->world, e->r, &w);
    return berth_workload_put(e->cluster, world_add_workload(e->world, w), &e->err);
}

static int workload_is_removed(struct event *e)
{
    if (!e->world->workloads_len)
        return 0;
    size_t w = rng_below(e->r, e->world->workloads_len);
    int rc = 0;

    for (size_t i = 0; i < e->world->instances_len && !rc; i++) {
        struct inst *s = &e->world->instances[i];
        if (s->workload != w || s->is.shape)
            continue;
        s->is.shape = arena_dup(&e->world->arena, s->shape, sizeof *s->shape);
        rc = inst_put(e, s);
    }
    e->world->broken |= e->world->workloads[w].gang != NULL;
    if (!rc)
        rc = berth_workload_remove(e->cluster, e->world->workloads[w].id, &e->err);
    world_remove_workload(e->world, w);
    return rc;
}

static int instance_reports_use(struct event *e)
{
    if (!e->world->instances_len)
        return 0;
    struct inst *s = &e->world->instances[rng_below(e->r, e->world->instances_len)];
    use_random(e->world, e->r, s);
    return inst_put(e, s);
}

static int node_reports_use(struct event *e)
{
    struct berth_node *n = &e->world->nodes[rng_below(e->r, e->world->nodes_len)];
    node_use_random(e->world, e->r, n);
    return berth_node_put(e->cluster, n, &e->err);
}

static int migration_is_requested(struct event *e)
{
    struct berth_fact wish;
    if (!migration_request_random(e->world, e->r, &wish))
        return 0;
    world_add_fact(e->world, wish);
    return berth_fact_put(e->cluster, &wish, &e->err);
}

/* Changes how many pods a budget allows; sometimes removes the budget first and makes it anew. */
static int budget_changes(struct event *e)
{
    size_t i = rng_below(e->r, e->world->budgets_len);
    struct berth_budget *b = &e->world->budgets[i], other;
    bool anew = rng_chance(e->r, 30);
    int rc = anew ? berth_budget_remove(e->cluster, b->id, &e->err) : 0;

    budget_random(e->world, e->r, i, &other);
    other.id = b->id;
    *b = other;
    return rc ? rc : berth_budget_put(e->cluster, b, &e->err);
}

bool world_evolve(struct world *world, struct berth_cluster *cluster, struct rng *r, struct verdict *v)
{
    static const struct {
        const char *name;
        unsigned percent;
        int (*happens)(struct event *e);
    } events[] = {
        {"reports arrive",           90, reports_arrive        },
        {"an instance fails",        20, instance_fails        },
        {"usage changes",            30, usage_changes         },
        {"a node changes state",     30, node_changes_state    },
        {"a node changes",           8,  node_changes          },
        {"a GPU ails or is well",    12, gpu_health_changes    },
        {"a node joins",             8,  node_joins            },
        {"a node leaves",            8,  node_leaves           },
        {"a workload scales",        30, workload_scales       },
        {"a workload changes shape", 8,  workload_changes_shape},
        {"a workload comes",         15, workload_is_added     },
        {"a workload goes",          8,  workload_is_removed   },
        {"an instance reports use",  50, instance_reports_use  },
        {"a node reports use",       20, node_reports_use      },
        {"somebody wishes",          20, migration_is_requested},
    };
    struct event e = {.world = world, .cluster = cluster, .r = r};

    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (rng_chance(r, events[i].percent) && events[i].happens(&e) != 0)
            return verdict_bad(v, "evolving: %s: %s", events[i].name, e.err.text);
    if (world->budgets_len && rng_chance(r, 40) && budget_changes(&e) != 0)
        return verdict_bad(v, "evolving: a budget changes: %s", e.err.text);
    world->now_ns += RNG_PICK(r, int64_t, 0, 1, 30, 600) * SECOND_NS;
    return true;
}
