/* shrink.c - reduces a failing world to the smallest one that still fails, for people to read.
 *
 * The search is greedy: it removes one part, checks the world in a child process (an assertion in the library is a
 * failure, too), and keeps the part removed if the failure text begins in the same way.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "properties.h"
#include "rules.h"

enum { ALIKE_CHARS = 11 };

/* Checks the world in a child process and returns its verdict. The verdict is in shared memory, since the child has its
 * own copy of all other memory. */
static struct verdict fate(const struct world *world)
{
    struct verdict said = {.bad = true, .text = "it crashes"};
    struct verdict *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return said;

    pid_t pid = fork();
    if (pid == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        (void)world_check(world, shared);
        _exit(0);
    }
    int status = 1;
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        said = *shared;
    munmap(shared, sizeof *shared);
    return said;
}

static bool fails_alike(const struct world *world, const struct verdict *first)
{
    struct verdict now = fate(world);
    return now.bad && strncmp(now.text, first->text, ALIKE_CHARS) == 0;
}

static bool node_in_use(const struct world *world, size_t node)
{
    for (size_t i = 0; i < world->seats_len; i++)
        if (world->seats[i].node == node)
            return true;
    return world->nodes_len == 1;
}

/* Removes the i-th part from a copy of the world. Returns false if there is no such part. */
typedef bool (*less_fn)(struct world *world, size_t i);

static bool less_instances(struct world *world, size_t i)
{
    if (i >= world->seats_len)
        return false;
    world_remove_seat(world, i);
    return true;
}

static bool less_workloads(struct world *world, size_t i)
{
    if (i >= world->workloads_len)
        return false;
    world_remove_workload(world, i);
    return true;
}

static bool less_budgets(struct world *world, size_t i)
{
    if (i >= world->budgets_len)
        return false;
    world->budgets[i] = world->budgets[--world->budgets_len];
    return true;
}

static bool less_nodes(struct world *world, size_t i)
{
    if (i >= world->nodes_len)
        return false;
    if (!node_in_use(world, i))
        world_remove_node(world, i);
    return true;
}

static void shape_less(struct berth_shape *s, size_t part)
{
    switch (part) {
    case 0: s->requests_len = s->limits_len = 0; break;
    case 1: s->gpu.count = s->gpu.milli = 0; break;
    case 2: s->limits_len = 0; break;
    case 3: s->node = s->arch = s->runtime = NULL; break;
    case 4: s->domains_len = 0; break;
    case 5: s->require_len = 0; break;
    case 6: s->prefer_len = 0; break;
    case 7: s->tolerations_len = 0; break;
    case 8: s->ports_len = 0; break;
    case 9: s->volumes_len = 0; break;
    case 10: s->images_len = 0; break;
    case 11: s->near_zone = NULL; break;
    case 12: s->spread_len = 0; break;
    case 13: s->near_len = 0; break;
    case 14: s->max_per_node = 0; break;
    case 15: s->requests_len = s->requests_len > 1 ? s->requests_len - 1 : 0; break;
    default: break;
    }
}

enum { SHAPE_PARTS = 16, WORKLOAD_PARTS = SHAPE_PARTS + 5, NODE_PARTS = 9 };

static bool less_features(struct world *world, size_t i)
{
    if (i / WORKLOAD_PARTS >= world->workloads_len)
        return false;
    struct berth_workload *w = &world->workloads[i / WORKLOAD_PARTS];
    size_t part = i % WORKLOAD_PARTS;

    shape_less(&w->shape, part);
    if (part == SHAPE_PARTS && w->replicas)
        w->replicas--;
    else if (part == SHAPE_PARTS + 1)
        w->gang = NULL;
    else if (part == SHAPE_PARTS + 2)
        w->labels_len = 0;
    else if (part == SHAPE_PARTS + 3)
        w->priority = 0;
    else if (part == SHAPE_PARTS + 4)
        w->never_preempts = w->unpreemptible = false;
    world_link(world);
    return true;
}

static bool less_instance_features(struct world *world, size_t i)
{
    if (i / (SHAPE_PARTS + 1) >= world->seats_len)
        return false;
    struct seat *s = &world->seats[i / (SHAPE_PARTS + 1)];
    if (s->is.shape && i % (SHAPE_PARTS + 1) < SHAPE_PARTS) {
        struct berth_shape *shape = arena_dup(&world->arena, s->is.shape, sizeof *shape);
        shape_less(shape, i % (SHAPE_PARTS + 1));
        s->is.shape = s->shape = shape;
    } else {
        s->is.usage_len = 0;
    }
    return true;
}

static bool less_node_features(struct world *world, size_t i)
{
    if (i / NODE_PARTS >= world->nodes_len)
        return false;
    struct berth_node *n = &world->nodes[i / NODE_PARTS];
    switch (i % NODE_PARTS) {
    case 0: n->overcommit_len = 0; break;
    case 1: n->consumed_len = 0; break;
    case 2: n->labels_len = 0; break;
    case 3: n->taints_len = 0; break;
    case 4: n->gpus_len = 0; break;
    case 5: n->runtimes_len = n->images_len = n->ports_len = 0; break;
    case 6: n->zone = n->rack = n->domain = n->arch = NULL; break;
    case 7:
        n->rank = 0;
        n->page_size_bytes = 0;
        break;
    default: n->state = BERTH_NODE_READY; break;
    }
    return true;
}

static size_t world_size(const struct world *world)
{
    return world->nodes_len + world->seats_len + world->workloads_len + world->budgets_len;
}

static bool world_smaller(struct world *world, less_fn less, const struct verdict *first)
{
    bool smaller = false;
    for (size_t i = 0;;) {
        struct world trial;
        world_copy(&trial, world);
        size_t size = world_size(&trial);
        if (!less(&trial, i)) {
            world_done(&trial);
            return smaller;
        }
        if (fails_alike(&trial, first)) {
            bool removed = world_size(&trial) < size;
            smaller |= removed;
            i += !removed;
            *world = trial; /* the old world stays allocated: the new one shares its memory */
        } else {
            world_done(&trial);
            i++;
        }
    }
}

void world_shrink(struct world *world)
{
    static const less_fn lesses[] = {less_instances, less_workloads,         less_nodes,        less_budgets,
                                     less_features,  less_instance_features, less_node_features};
    struct verdict first = fate(world);
    bool smaller = first.bad;

    while (smaller) {
        smaller = false;
        for (size_t i = 0; i < sizeof lesses / sizeof *lesses; i++)
            smaller |= world_smaller(world, lesses[i], &first);
    }
}
