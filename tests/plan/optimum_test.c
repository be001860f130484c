/* optimum_test.c - compares plans with the optimum of an exhaustive search, on small clusters.
 *
 * The size of a pod is the sum of its requests, each as a share of one node. If every request is at most half a node, a
 * bound is proven: on each node a pod that is not placed finds less than half of some resource free, so every node is
 * more than half full of some resource, and no node can hold more than its whole of each resource. So the optimum is at
 * most 2 x resources times what a plan places. The ratio on these seeds is far better, and is asserted as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "rng.h"
#include "world.h"

enum { NODES_MAX = 4, PODS_MAX = 8, KINDS_MAX = 3, CASES = 2000 };

static const char *const kinds[KINDS_MAX] = {"cpu", "memory", "example.com/fpga"};

struct packing_case {
    size_t nodes, pods, kinds;
    int64_t capacity[KINDS_MAX]; /* of every node */
    int64_t needs[PODS_MAX][KINDS_MAX];
};

/* In millionths of a node. */
static int64_t pod_size(const struct packing_case *p, size_t pod)
{
    int64_t size = 0;
    for (size_t k = 0; k < p->kinds; k++)
        size += p->needs[pod][k] * 1000000 / p->capacity[k];
    return size;
}

struct optimum_search {
    const struct packing_case *p;
    int64_t used[NODES_MAX][KINDS_MAX];
    int64_t best_size;
    size_t best_pods;
};

/* Tries every assignment of the pods from `pod` on, each to every node or to none. */
static void search_from(struct optimum_search *s, size_t pod, int64_t size, size_t placed)
{
    if (size > s->best_size)
        s->best_size = size;
    if (placed > s->best_pods)
        s->best_pods = placed;
    if (pod == s->p->pods)
        return;
    search_from(s, pod + 1, size, placed);
    for (size_t n = 0; n < s->p->nodes; n++) {
        bool fits = true;
        for (size_t k = 0; k < s->p->kinds; k++)
            fits &= s->used[n][k] + s->p->needs[pod][k] <= s->p->capacity[k];
        if (!fits)
            continue;
        for (size_t k = 0; k < s->p->kinds; k++)
            s->used[n][k] += s->p->needs[pod][k];
        search_from(s, pod + 1, size + pod_size(s->p, pod), placed + 1);
        for (size_t k = 0; k < s->p->kinds; k++)
            s->used[n][k] -= s->p->needs[pod][k];
    }
}

/* Makes one workload per pod, so that the plan handles them one by one, or with `alike` one workload for all pods. */
static struct berth_cluster *packing_case_load(const struct packing_case *p, bool alike)
{
    struct berth_cluster *c = berth_cluster_new();
    struct berth_amount amounts[KINDS_MAX];
    char id[24];

    for (size_t k = 0; k < p->kinds; k++)
        amounts[k] = (struct berth_amount){kinds[k], p->capacity[k]};
    for (size_t n = 0; n < p->nodes; n++) {
        (void)snprintf(id, sizeof id, "n%zu", n);
        assert_int_equal(
            berth_node_put(c, &(struct berth_node){.id = id, .allocatable = amounts, .allocatable_len = p->kinds},
                           NULL),
            0);
    }
    for (size_t i = 0; i < (alike ? 1 : p->pods); i++) {
        for (size_t k = 0; k < p->kinds; k++)
            amounts[k] = (struct berth_amount){kinds[k], p->needs[i][k]};
        (void)snprintf(id, sizeof id, "w%zu", i);
        struct berth_workload w = {.id = id, .replicas = alike ? (uint32_t)p->pods : 1};
        w.shape.requests = amounts;
        w.shape.requests_len = p->kinds;
        assert_int_equal(berth_workload_put(c, &w, NULL), 0);
    }
    return c;
}

/* Returns the total size and the number of the pods that the planner places. */
static void packing_case_plan(const struct packing_case *p, bool alike, const char *profile, int64_t *ret_size,
                              size_t *ret_pods)
{
    struct berth_cluster *c = packing_case_load(p, alike);
    struct berth_snapshot *s = berth_freeze(c, 0, 1);
    struct berth_policy policy = {.profile = berth_profile_find(profile)};
    struct berth_plan *plan = NULL;

    assert_int_equal(berth_plan_make(s, &policy, &plan, NULL), 0);
    *ret_size = 0;
    *ret_pods = 0;
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        assert_int_equal(a.op, BERTH_PLACE);
        size_t pod = alike ? 0 : (size_t)(a.workload[1] - '0');
        *ret_size += pod_size(p, pod);
        ++*ret_pods;
    }
    berth_plan_free(plan);
    berth_snapshot_free(s);
    berth_cluster_free(c);
}

static struct packing_case packing_case_random(struct rng *r, bool alike)
{
    struct packing_case p = {0};

    p.nodes = (size_t)rng_range(r, 1, NODES_MAX);
    p.pods = (size_t)rng_range(r, 3, PODS_MAX);
    p.kinds = (size_t)rng_range(r, 1, KINDS_MAX);
    for (size_t k = 0; k < p.kinds; k++)
        p.capacity[k] = rng_range(r, 10, 40);
    for (size_t i = 0; i < p.pods; i++)
        for (size_t k = 0; k < p.kinds; k++)
            p.needs[i][k] = alike && i ? p.needs[0][k] : rng_range(r, i % 3 ? 1 : p.capacity[k] / 3, p.capacity[k] / 2);
    return p;
}

static void plans_are_close_to_the_optimum(void **state)
{
    (void)state;
    double worst = 1, mean = 0;
    size_t best_reached = 0;

    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct rng r = {seed};
        struct packing_case p = packing_case_random(&r, false);
        struct optimum_search s = {.p = &p};
        int64_t size;
        size_t pods;
        search_from(&s, 0, 0, 0);
        packing_case_plan(&p, false, "default", &size, &pods);
        double ratio = size ? (double)s.best_size / (double)size : 1;
        if (!size || ratio > 2 * (double)p.kinds)
            fail_msg("seed %d: the best is %f times larger", (int)seed, ratio);
        worst = ratio > worst ? ratio : worst;
        mean += ratio / CASES;
        best_reached += s.best_size == size;
    }
    print_message("the best is at most %.3f times what is placed, %.3f on average; %zu of %d are best\n", worst, mean,
                  best_reached, CASES);
    assert_true(worst < 2);
}

/* With every profile, as one workload and as one workload per pod. */
static void equal_pods_are_packed_optimally(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES / 4; seed++) {
        struct rng r = {seed};
        struct packing_case p = packing_case_random(&r, true);
        struct optimum_search s = {.p = &p};

        search_from(&s, 0, 0, 0);
        for (size_t i = 0; berth_profile_at(i); i++)
            for (int alike = 0; alike < 2; alike++) {
                int64_t size;
                size_t pods;
                packing_case_plan(&p, alike, berth_profile_at(i)->name, &size, &pods);
                if (pods != s.best_pods)
                    fail_msg("seed %d, %s: %zu pods placed of %zu", (int)seed, berth_profile_at(i)->name, pods,
                             s.best_pods);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_close_to_the_optimum),
        cmocka_unit_test(equal_pods_are_packed_optimally),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
