/* shape_random.c - makes random workloads and shapes. */
#include <string.h>

#include "world.h"

static const char *const *strings(struct world *world, const char *a, const char *b)
{
    const char **list = ARENA_ARRAY(&world->arena, const char *, 2);
    list[0] = a;
    list[1] = b;
    return list;
}

static void requests_random(struct world *world, struct rng *r, struct berth_shape *shape)
{
    struct berth_amount *a = ARENA_ARRAY(&world->arena, struct berth_amount, 12);
    size_t len = 0;

    if (rng_chance(r, 90))
        a[len++] = (struct berth_amount){"cpu", RNG_PICK(r, int64_t, 0, 100, 250, 500, 1000, 1000, 2000, 3000, 9000)};
    if (rng_chance(r, 90))
        a[len++] = (struct berth_amount){"memory", RNG_PICK(r, int64_t, 64, 128, 512, 1024, 1024, 2048, 5000) * MIB};
    if (rng_chance(r, 60))
        a[len++] = (struct berth_amount){"pods", 1};
    if (rng_chance(r, 5))
        a[len++] = (struct berth_amount){"example.com/fpga", rng_range(r, 1, 2)};
    if (rng_chance(r, 6))
        a[len++] = (struct berth_amount){"hugepages-2Mi", rng_range(r, 1, 16) * 2 * MIB};
    if (rng_chance(r, 3))
        a[len++] = (struct berth_amount){"hugepages-1Gi", GIB};
    if (rng_chance(r, 5))
        a[len++] = (struct berth_amount){"traffic", rng_range(r, 1, 400)};
    if (rng_chance(r, 5))
        a[len++] = (struct berth_amount){"storage", rng_range(r, 1, 30) * GIB};
    if (rng_chance(r, 3))
        a[len++] = (struct berth_amount){"bandwidth", rng_range(r, 1, 40)};
    if (rng_chance(r, 1))
        a[len++] = (struct berth_amount){"unheard-of", 1};
    shape->requests = a;
    shape->requests_len = len;
}

static void gpu_need_random(struct world *world, struct rng *r, struct berth_shape *shape)
{
    struct berth_gpu_need need = {.count = 1};

    if (rng_chance(r, 45))
        need.milli = (uint32_t)RNG_PICK(r, int, 100, 250, 500, 700, 1000);
    else
        need.count = (uint32_t)RNG_PICK(r, int, 1, 1, 2, 4, 8);
    if (rng_chance(r, 40))
        need.memory_bytes = RNG_PICK(r, int64_t, 4, 8, 16, 40, 80) * GIB;
    if (rng_chance(r, 40)) {
        const char *first = RNG_PICK(r, char *, "T4", "A100");
        need.models = strings(world, first, RNG_PICK(r, char *, "H100", "B200"));
        need.models_len = (size_t)rng_range(r, 1, 2);
    }
    shape->gpu = need;
}

static struct berth_expr expr_random(struct world *world, struct rng *r)
{
    struct berth_expr e = {.match = (enum berth_match)rng_below(r, 6)};

    if (e.match == BERTH_GT || e.match == BERTH_LT) {
        e.key = "gen";
        e.values = strings(world, RNG_PICK(r, char *, "0", "1", "2", "-5", "9"), NULL);
        e.values_len = 1;
    } else if (e.match == BERTH_IN || e.match == BERTH_NOT_IN) {
        e.key = RNG_PICK(r, char *, "disk", "disk", "room");
        bool disk = e.key[0] == 'd';
        e.values = strings(world, disk ? RNG_PICK(r, char *, "ssd", "hdd") : RNG_PICK(r, char *, "r1", "r2"),
                           disk ? "nvme" : "r3");
        e.values_len = (size_t)rng_range(r, 1, 2);
    } else {
        e.key = RNG_PICK(r, char *, "pool", "gen", "disk", "nowhere");
    }
    return e;
}

static const struct berth_term *terms_random(struct world *world, struct rng *r, size_t len, bool weighted)
{
    struct berth_term *terms = ARENA_ARRAY(&world->arena, struct berth_term, len);

    for (size_t i = 0; i < len; i++) {
        size_t exprs_len = (size_t)RNG_PICK(r, int, 1, 1, 1, 2, 2, 0);
        if (weighted && !exprs_len)
            exprs_len = 1;
        struct berth_expr *exprs = ARENA_ARRAY(&world->arena, struct berth_expr, exprs_len + 1);
        for (size_t k = 0; k < exprs_len; k++)
            exprs[k] = expr_random(world, r);
        terms[i] = (struct berth_term){exprs, exprs_len, 0};
        if (weighted)
            terms[i].weight = RNG_PICK(r, int32_t, 1, 5, 100, -3, -100);
    }
    return terms;
}

/* Selects by the labels of workloads: app and tier. */
static struct berth_term select_random(struct world *world, struct rng *r)
{
    struct berth_expr *e = ARENA_ARRAY(&world->arena, struct berth_expr, 2);

    e[0] = (struct berth_expr){"app", BERTH_IN, strings(world, RNG_PICK(r, char *, "a", "b", "c", "c"), "d"), 1};
    e[0].values_len = rng_chance(r, 15) ? 2 : 1;
    e[1] = (struct berth_expr){.key = "tier", .match = rng_chance(r, 50) ? BERTH_EXISTS : BERTH_NOT_EXISTS};
    if (rng_chance(r, 10))
        e[0] = (struct berth_expr){"app", BERTH_NOT_IN, strings(world, "a", "b"), 2};
    return (struct berth_term){e, rng_chance(r, 20) ? 2 : 1, 0};
}

static const char *topology_random(struct rng *r)
{
    return RNG_PICK(r, char *, "node", "node", "zone", "zone", "rack", "room");
}

static void spread_random(struct world *world, struct rng *r, struct berth_shape *shape)
{
    size_t len = rng_chance(r, 80) ? 1 : 2;
    struct berth_spread *s = ARENA_ARRAY(&world->arena, struct berth_spread, len);

    for (size_t i = 0; i < len; i++) {
        s[i].topology = topology_random(r);
        s[i].select = select_random(world, r);
        s[i].max_skew = (uint32_t)rng_range(r, 1, 3);
        s[i].soft = rng_chance(r, 30);
        s[i].min_domains = rng_chance(r, 25) ? rng_below(r, 5) : 0;
        s[i].nodes = rng_chance(r, 50) ? (enum berth_spread_nodes)rng_below(r, 5) : BERTH_SPREAD_POSSIBLE;
    }
    shape->spread = s;
    shape->spread_len = len;
}

static void near_random(struct world *world, struct rng *r, struct berth_shape *shape)
{
    size_t len = rng_chance(r, 80) ? 1 : 2;
    struct berth_affinity *n = ARENA_ARRAY(&world->arena, struct berth_affinity, len);

    for (size_t i = 0; i < len; i++) {
        n[i].topology = topology_random(r);
        n[i].select = select_random(world, r);
        n[i].apart = rng_chance(r, 50);
        if (rng_chance(r, 35))
            n[i].select.weight = RNG_PICK(r, int32_t, 1, 50, 100);
    }
    shape->near = n;
    shape->near_len = len;
}

static void tolerations_random(struct world *world, struct rng *r, struct berth_shape *shape)
{
    const struct berth_toleration all[] = {
        {.exists = true    },
        {                            .key = "dedicated",    .exists = true},
        {                            .key = "dedicated",      .value = "a"},
        {                            .key = "repair",    .exists = true, .effect = BERTH_NO_EXECUTE},
        {  .key = "repair",    .effect = BERTH_NO_SCHEDULE},
        {.key = "dedicated", .value = "b", .effect = BERTH_NO_SCHEDULE},
        {                 .exists = true,                  .effect = BERTH_NO_SCHEDULE},
        {               .key = "slow",                  .value = "yes"},
    };
    struct berth_toleration *t = ARENA_ARRAY(&world->arena, struct berth_toleration, 2);
    size_t first = rng_below(r, 8);

    t[0] = all[first];
    t[1] = all[(first + 1 + rng_below(r, 7)) % 8];
    shape->tolerations = t;
    shape->tolerations_len = (size_t)rng_range(r, 1, 2);
}

static void ports_random(struct world *world, struct rng *r, struct berth_shape *shape)
{
    struct berth_port *p = ARENA_ARRAY(&world->arena, struct berth_port, 2);

    p[0].protocol = RNG_PICK(r, enum berth_protocol, BERTH_TCP, BERTH_TCP, BERTH_UDP);
    p[0].port = RNG_PICK(r, uint16_t, 80, 8000, 8002, 8003, 3978, 65535);
    if (p[0].port < 65535)
        p[0].count = RNG_PICK(r, uint16_t, 0, 1, 2, 4);
    if (rng_chance(r, 30))
        p[0].address = RNG_PICK(r, char *, "0.0.0.0", "10.0.0.1", "10.0.0.2");
    p[1] = (struct berth_port){BERTH_SCTP, RNG_PICK(r, uint16_t, 9000, 9001), 1};
    shape->ports = p;
    shape->ports_len = rng_chance(r, 20) ? 2 : 1;
}

static void volumes_pick(struct world *world, struct rng *r, struct berth_shape *shape)
{
    if (!world->volumes_len)
        return;
    size_t first = rng_below(r, world->volumes_len);
    size_t second = (first + 1) % world->volumes_len;

    shape->volumes = strings(world, world->volumes[first].id, world->volumes[second].id);
    shape->volumes_len = second != first && rng_chance(r, 30) ? 2 : 1;
}

static void limits_random(struct world *world, struct rng *r, struct berth_shape *shape)
{
    struct berth_limit *l = ARENA_ARRAY(&world->arena, struct berth_limit, 2);

    l[0] = (struct berth_limit){"cpu", BERTH_ABSOLUTE, 500, 0};
    if (rng_chance(r, 20))
        l[0] = (struct berth_limit){"memory", BERTH_ABSOLUTE, 512 * MIB, 0};
    for (size_t i = 0; i < shape->requests_len; i++) /* at least the request */
        if (strcmp(shape->requests[i].resource, l[0].resource) == 0 && shape->requests[i].amount > l[0].amount)
            l[0].amount = shape->requests[i].amount;
    l[0].max = l[0].amount * RNG_PICK(r, int64_t, 0, 1, 2, 4);
    l[1] = (struct berth_limit){"bandwidth", BERTH_WEIGHTED, 10, 0};
    shape->limits = l;
    shape->limits_len = rng_chance(r, 30) ? 2 : 1;
}

static void pins_random(struct world *world, struct rng *r, struct berth_shape *shape)
{
    if (rng_chance(r, 4))
        shape->node = rng_chance(r, 90) ? world->nodes[rng_below(r, world->nodes_len)].id : "no-such-node";
    if (rng_chance(r, 10))
        shape->arch = rng_chance(r, 75) ? "amd64" : "arm64";
    if (rng_chance(r, 10))
        shape->runtime = RNG_PICK(r, char *, "process", "oci", "vm");
    if (rng_chance(r, 8)) {
        shape->domains = strings(world, RNG_PICK(r, char *, "d1", "d3"), "d2");
        shape->domains_len = (size_t)rng_range(r, 1, 2);
    }
    if (rng_chance(r, 20))
        shape->max_per_node = (uint32_t)rng_range(r, 1, 2);
    if (rng_chance(r, 10))
        shape->near_zone = RNG_PICK(r, char *, "za", "zb", "zz");
    if (rng_chance(r, 10)) {
        shape->images = strings(world, RNG_PICK(r, char *, "web:1", "db:3"), NULL);
        shape->images_len = 1;
    }
}

struct berth_shape shape_random(struct world *world, struct rng *r)
{
    static const struct {
        unsigned percent;
        void (*make)(struct world *world, struct rng *r, struct berth_shape *shape);
    } features[] = {
        {15, gpu_need_random   },
        {15, spread_random     },
        {18, near_random       },
        {20, tolerations_random},
        {12, ports_random      },
        {12, volumes_pick      },
        {12, limits_random     },
        {60, pins_random       }
    };
    struct berth_shape shape = {0};
    bool plain = rng_chance(r, 30);

    requests_random(world, r, &shape);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (!plain && rng_chance(r, features[i].percent))
            features[i].make(world, r, &shape);
    if (!plain && rng_chance(r, 15)) {
        shape.require_len = (size_t)rng_range(r, 1, 2);
        shape.require = terms_random(world, r, shape.require_len, false);
    }
    if (!plain && rng_chance(r, 15)) {
        shape.prefer_len = (size_t)rng_range(r, 1, 2);
        shape.prefer = terms_random(world, r, shape.prefer_len, true);
    }
    return shape;
}

struct berth_workload workload_random(struct world *world, struct rng *r, size_t number)
{
    struct berth_label *labels = ARENA_ARRAY(&world->arena, struct berth_label, 2);
    struct berth_workload w = {.id = arena_fmt(&world->arena, "w%zu", number)};

    w.kind = RNG_PICK(r, enum berth_workload_kind, BERTH_SERVICE, BERTH_SERVICE, BERTH_JOB, BERTH_VM);
    w.replicas = (uint32_t)RNG_PICK(r, int, 0, 1, 1, 1, 2, 2, 3, 4, 5, 8);
    w.priority = RNG_PICK(r, int32_t, 0, 0, 0, 10, -5, 2000000000);
    w.created_ns = world->now_ns - rng_range(r, 0, 5) * SECOND_NS;
    w.suspended = rng_chance(r, 6);
    w.min_available = rng_chance(r, 20) ? rng_below(r, 4) : 0;
    w.on_lost = (enum berth_on_lost)rng_below(r, 4);
    w.on_drain = (enum berth_on_drain)rng_below(r, 4);
    w.fence_ns = rng_chance(r, 50) ? 0 : rng_range(r, 1, 20) * MINUTE_NS;
    labels[0] = (struct berth_label){"app", RNG_PICK(r, char *, "a", "b", "c", "d")};
    labels[1] = (struct berth_label){"tier", "front"};
    w.labels = labels;
    w.labels_len = (size_t)RNG_PICK(r, int, 0, 1, 1, 1, 2);
    w.shape = shape_random(world, r);
    if (world->workloads_len && rng_chance(r, 10))
        w.shape = world->workloads[rng_below(r, world->workloads_len)].shape;
    return w;
}

void workloads_random(struct world *world, struct rng *r, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct berth_workload w = workload_random(world, r, i);
        if (rng_chance(r, 18)) {
            w.gang = RNG_PICK(r, char *, "g1", "g2", "g3");
            if (w.replicas && rng_chance(r, 40))
                w.gang_min = (uint32_t)rng_range(r, 1, w.replicas);
            w.suspended = false;
        }
        world_add_workload(world, w);
    }
}
