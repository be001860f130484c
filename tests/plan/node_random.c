/* node_random.c - makes random resources, nodes and volumes. */
#include <string.h>

#include "world.h"

void resources_random(struct world *world, struct rng *r)
{
    const struct berth_resource all[] = {
        {.name = "traffic", .kind = BERTH_CUMULATIVE, .period_ns = 30 * MINUTE_NS},
        {.name = "storage",                 .kind = BERTH_CUMULATIVE                        },
        {.name = "bandwidth",                 .kind = BERTH_INSTANT},
    };
    world->resources = ARENA_ARRAY(&world->arena, struct berth_resource, 4);
    for (size_t i = 0; i < 3; i++)
        if (rng_chance(r, 70))
            world->resources[world->resources_len++] = all[i];
}

static void amounts_random(struct world *world, struct rng *r, struct berth_node *node)
{
    struct berth_amount *a = ARENA_ARRAY(&world->arena, struct berth_amount, 16);
    size_t len = 0;

    if (rng_chance(r, 97))
        a[len++] = (struct berth_amount){"cpu", RNG_PICK(r, int64_t, 0, 1000, 2000, 4000, 4000, 8000, 8000, 16000)};
    a[len++] = (struct berth_amount){"memory", RNG_PICK(r, int64_t, 1, 2, 4, 8, 8, 16, 16, 32) * GIB};
    if (rng_chance(r, 80))
        a[len++] = (struct berth_amount){"pods", rng_range(r, 0, 20)};
    if (rng_chance(r, 25))
        a[len++] = (struct berth_amount){"example.com/fpga", rng_range(r, 0, 4)};
    if (rng_chance(r, 30))
        a[len++] = (struct berth_amount){"hugepages-2Mi", rng_range(r, 0, 64) * 2 * MIB};
    if (rng_chance(r, 15))
        a[len++] = (struct berth_amount){"hugepages-1Gi", rng_range(r, 0, 4) * GIB};
    if (rng_chance(r, 50))
        a[len++] = (struct berth_amount){"traffic", rng_range(r, 0, 1000)};
    if (rng_chance(r, 50))
        a[len++] = (struct berth_amount){"storage", rng_range(r, 0, 100) * GIB};
    if (rng_chance(r, 30))
        a[len++] = (struct berth_amount){"bandwidth", rng_range(r, 1, 100)};
    if (rng_chance(r, 40))
        a[len++] = (struct berth_amount){"attach-csi", rng_range(r, 0, 3)};
    node->allocatable = a;
    node->allocatable_len = len;
}

static void overcommit_random(struct world *world, struct rng *r, struct berth_node *node)
{
    struct berth_amount *a = ARENA_ARRAY(&world->arena, struct berth_amount, 4);
    size_t len = 0;

    if (rng_chance(r, 25))
        a[len++] = (struct berth_amount){"cpu", RNG_PICK(r, int64_t, 333, 999, 1000, 1001, 1500, 4000)};
    if (rng_chance(r, 15))
        a[len++] = (struct berth_amount){"memory", RNG_PICK(r, int64_t, 500, 900, 1100, 2000)};
    if (rng_chance(r, 5))
        a[len++] = (struct berth_amount){"example.com/fpga", 1500};
    node->overcommit = a;
    node->overcommit_len = len;
}

static void consumed_random(struct world *world, struct rng *r, struct berth_node *node)
{
    struct berth_amount *a = ARENA_ARRAY(&world->arena, struct berth_amount, 4);
    size_t len = 0;

    for (size_t i = 0; i < node->allocatable_len; i++) {
        const char *resource = node->allocatable[i].resource;
        if (world_find_resource(world, resource) == NONE || !rng_chance(r, 50))
            continue;
        if (strcmp(resource, "traffic") == 0)
            a[len++] = (struct berth_amount){resource, rng_range(r, 0, 1100)};
        if (strcmp(resource, "storage") == 0)
            a[len++] = (struct berth_amount){resource, rng_range(r, 0, 60) * GIB};
    }
    node->consumed = a;
    node->consumed_len = len;
    node->consumed_ns = world->now_ns - rng_range(r, 0, 40) * MINUTE_NS;
    if (rng_chance(r, 5))
        node->consumed_ns = world->now_ns - 30 * MINUTE_NS; /* the period ends at this very moment */
}

static void labels_random(struct world *world, struct rng *r, struct berth_node *node)
{
    struct berth_label *l = ARENA_ARRAY(&world->arena, struct berth_label, 8);
    size_t len = 0;

    if (rng_chance(r, 60))
        l[len++] = (struct berth_label){"disk", RNG_PICK(r, char *, "ssd", "hdd", "nvme")};
    if (rng_chance(r, 60))
        l[len++] = (struct berth_label){"gen", RNG_PICK(r, char *, "1", "2", "3", "10", "-4", "x9", "")};
    if (rng_chance(r, 50))
        l[len++] = (struct berth_label){"pool", RNG_PICK(r, char *, "a", "b")};
    if (rng_chance(r, 70))
        l[len++] = (struct berth_label){"room", RNG_PICK(r, char *, "r1", "r2", "r3")};
    node->labels = l;
    node->labels_len = len;
}

static void taints_random(struct world *world, struct rng *r, struct berth_node *node)
{
    struct berth_taint *t = ARENA_ARRAY(&world->arena, struct berth_taint, 4);
    size_t len = 0;

    if (rng_chance(r, 12))
        t[len++] = (struct berth_taint){"dedicated", RNG_PICK(r, char *, "a", "b"), BERTH_NO_SCHEDULE};
    if (rng_chance(r, 6))
        t[len++] = (struct berth_taint){"repair", "", BERTH_NO_EXECUTE};
    if (rng_chance(r, 10))
        t[len++] = (struct berth_taint){"slow", "yes", BERTH_PREFER_NO_SCHEDULE};
    node->taints = t;
    node->taints_len = len;
}

static void gpus_random(struct world *world, struct rng *r, struct berth_node *node)
{
    if (!rng_chance(r, 40))
        return;
    size_t len = rng_chance(r, 3) ? 64 : (size_t)RNG_PICK(r, int, 1, 2, 4, 8);
    struct berth_gpu *gpus = ARENA_ARRAY(&world->arena, struct berth_gpu, len);
    bool mixed = rng_chance(r, 20), ailing = rng_chance(r, 15);
    const char *model = RNG_PICK(r, char *, "T4", "A100", "H100");

    for (size_t i = 0; i < len; i++) {
        if (mixed)
            model = RNG_PICK(r, char *, "T4", "A100", "H100");
        gpus[i] =
            (struct berth_gpu){model, (model[0] == 'T' ? 16 : 80) * GIB, .unhealthy = ailing && rng_chance(r, 40)};
    }
    node->gpus = gpus;
    node->gpus_len = len;
}

static void extras_random(struct world *world, struct rng *r, struct berth_node *node)
{
    static const char *const runtimes[] = {"process", "oci", "vm"};
    static const struct berth_image images[] = {
        {"web:1",   100 * MIB},
        {"train:7", 9 * GIB  },
        {"db:3",    700 * MIB}
    };
    struct berth_port *ports = ARENA_ARRAY(&world->arena, struct berth_port, 2);

    if (rng_chance(r, 30)) {
        node->runtimes = runtimes + rng_below(r, 2);
        node->runtimes_len = (size_t)rng_range(r, 1, 2);
    }
    node->images = images + rng_below(r, 2);
    node->images_len = rng_below(r, 3) % 2;
    if (rng_chance(r, 50)) {
        ports[0] = (struct berth_port){BERTH_TCP, 3980, 0};
        ports[1] = (struct berth_port){BERTH_UDP, 8000, 4, RNG_PICK(r, char *, "", "", "10.0.0.1")};
        node->ports = ports;
        node->ports_len = (size_t)rng_range(r, 1, 2);
    }
}

/* A node that is restricted to one page size has huge pages of no other size. */
static void page_size_random(struct rng *r, struct berth_node *node)
{
    if (!rng_chance(r, 20))
        return;
    node->page_size_bytes = rng_chance(r, 50) ? 2 * MIB : GIB;
    const char *other = node->page_size_bytes == GIB ? "hugepages-2Mi" : "hugepages-1Gi";
    for (size_t i = 0; i < node->allocatable_len; i++)
        if (strcmp(node->allocatable[i].resource, other) == 0)
            node->page_size_bytes = 0;
}

struct berth_node node_random(struct world *world, struct rng *r, size_t number)
{
    struct berth_node node = {.id = arena_fmt(&world->arena, "n%zu", number)};

    /* One draw per statement, here and elsewhere: the order in which initialisers and arguments are evaluated differs
     * between compilers. */
    node.since_ns = world->now_ns - rng_range(r, 0, 20) * MINUTE_NS;
    node.zone = RNG_PICK(r, char *, "za", "za", "zb", "zb", "zc", NULL);
    node.rack = RNG_PICK(r, char *, "k1", "k2", "k3", "k4", "");
    node.domain = RNG_PICK(r, char *, NULL, NULL, "d1", "d2");
    node.arch = RNG_PICK(r, char *, "amd64", "amd64", "amd64", "amd64", "arm64", "");
    node.rank = rng_chance(r, 20) ? rng_below(r, 3) : 0;
    unsigned dice = rng_below(r, 100);

    node.state = dice < 76   ? BERTH_NODE_READY
                 : dice < 81 ? BERTH_NODE_JOINING
                 : dice < 86 ? BERTH_NODE_CORDONED
                 : dice < 93 ? BERTH_NODE_DRAINING
                             : BERTH_NODE_LOST;
    amounts_random(world, r, &node);
    overcommit_random(world, r, &node);
    consumed_random(world, r, &node);
    labels_random(world, r, &node);
    taints_random(world, r, &node);
    gpus_random(world, r, &node);
    extras_random(world, r, &node);
    page_size_random(r, &node);
    return node;
}

void nodes_random(struct world *world, struct rng *r, size_t len)
{
    bool alike = rng_chance(r, 25); /* equal nodes give equal scores */

    for (size_t i = 0; i < len; i++) {
        struct berth_node node = node_random(world, r, i);
        if (alike && i) {
            struct berth_node twin = world->nodes[0];
            twin.id = node.id;
            twin.state = node.state;
            twin.zone = node.zone;
            node = twin;
        }
        world_add_node(world, node);
    }
}

void volumes_random(struct world *world, struct rng *r)
{
    size_t len = rng_below(r, 7);

    world->volumes = ARENA_ARRAY(&world->arena, struct berth_volume, len + 1);
    for (size_t i = 0; i < len; i++) {
        struct berth_volume v = {.id = arena_fmt(&world->arena, "v%zu", i), .shared = rng_chance(r, 40)};
        if (rng_chance(r, 30))
            v.zone = RNG_PICK(r, char *, "za", "zb");
        if (rng_chance(r, 15))
            v.node = world->nodes[rng_below(r, world->nodes_len)].id;
        if (rng_chance(r, 60))
            v.driver = RNG_PICK(r, char *, "csi", "csi", "nbd");
        world->volumes[world->volumes_len++] = v;
    }
}
