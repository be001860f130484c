/* world_shrink.c - reduces a failing world to the smallest one that still fails, for people to read.
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
static struct verdict check_in_child(const struct world *world)
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

static bool fails_like(const struct world *world, const struct verdict *first)
{
    struct verdict now = check_in_child(world);
    return now.bad && strncmp(now.text, first->text, ALIKE_CHARS) == 0;
}

static bool node_in_use(const struct world *world, size_t node)
{
    for (size_t i = 0; i < world->instances_len; i++)
        if (world->instances[i].node == node)
            return true;
    return world->nodes_len == 1;
}

/* Removes the i-th part from a copy of the world. Returns false if there is no such part. */
typedef bool (*remove_part_fn)(struct world *world, size_t i);

static bool remove_instance(struct world *world, size_t i)
{
    if (i >= world->instances_len)
        return false;
    world_remove_instance(world, i);
    return true;
}

static bool remove_workload(struct world *world, size_t i)
{
    if (i >= world->workloads_len)
        return false;
    world_remove_workload(world, i);
    return true;
}

static bool remove_budget(struct world *world, size_t i)
{
    if (i >= world->budgets_len)
        return false;
    world->budgets[i] = world->budgets[--world->budgets_len];
    return true;
}

static bool remove_node(struct world *world, size_t i)
{
    if (i >= world->nodes_len)
        return false;
    if (!node_in_use(world, i))
        world_remove_node(world, i);
    return true;
}

static void shape_remove_part(struct berth_shape *s, size_t part)
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

static bool remove_workload_feature(struct world *world, size_t i)
{
    if (i / WORKLOAD_PARTS >= world->workloads_len)
        return false;
    struct berth_workload *w = &world->workloads[i / WORKLOAD_PARTS];
    size_t part = i % WORKLOAD_PARTS;

    shape_remove_part(&w->shape, part);
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

static bool remove_instance_feature(struct world *world, size_t i)
{
    if (i / (SHAPE_PARTS + 1) >= world->instances_len)
        return false;
    struct inst *s = &world->instances[i / (SHAPE_PARTS + 1)];
    if (s->is.shape && i % (SHAPE_PARTS + 1) < SHAPE_PARTS) {
        struct berth_shape *shape = arena_dup(&world->arena, s->is.shape, sizeof *shape);
        shape_remove_part(shape, i % (SHAPE_PARTS + 1));
        s->is.shape = s->shape = shape;
    } else {
        s->is.usage_len = 0;
    }
    return true;
}

static bool remove_node_feature(struct world *world, size_t i)
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
    return world->nodes_len + world->instances_len + world->workloads_len + world->budgets_len;
}

static bool world_shrink_by(struct world *world, remove_part_fn less, const struct verdict *first)
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
        if (fails_like(&trial, first)) {
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
    static const remove_part_fn removers[] = {remove_instance,    remove_workload,         remove_node,
                                              remove_budget,      remove_workload_feature, remove_instance_feature,
                                              remove_node_feature};
    struct verdict first = check_in_child(world);
    bool smaller = first.bad;

    while (smaller) {
        smaller = false;
        for (size_t i = 0; i < sizeof removers / sizeof *removers; i++)
            smaller |= world_shrink_by(world, removers[i], &first);
    }
}
