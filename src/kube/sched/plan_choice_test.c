/* plan_choice_test.c - if some pods stay pending, another plan that places more is found. */
#include "kube/sched/plan_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define GPU "nvidia.com/gpu"
#define HOUR_NS INT64_C(3600000000000)

static struct berth_cluster *two_nodes(void)
{
    struct berth_cluster *c = berth_cluster_new();
    const struct berth_amount has[] = {
        {"cpu",    4000             },
        {"memory", (int64_t)16 << 30},
        {"pods",   110              },
        {GPU,      4                },
    };
    static const char *const names[] = {"a", "b"};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            berth_node_put(c, &(struct berth_node){.id = names[i], .allocatable = has, .allocatable_len = 4}, NULL), 0);
    return c;
}

/* Adds a pending pod for this node, or for any node. */
static void pod_on(struct berth_cluster *c, unsigned number, int64_t gpus, int32_t priority, const char *node)
{
    char id[16];
    const struct berth_amount asks[] = {
        {GPU,    gpus},
        {"pods", 1   },
    };
    (void)snprintf(id, sizeof id, "ns:p%u", number);
    assert_int_equal(berth_workload_put(c,
                                        &(struct berth_workload){
                                            .id = id,
                                            .kind = BERTH_JOB,
                                            .replicas = 1,
                                            .priority = priority,
                                            .created_ns = number,
                                            .shape = {.requests = asks, .requests_len = 2, .node = node}
    },
                                        NULL),
                     0);
}

static void pod(struct berth_cluster *c, unsigned number, int64_t gpus, int32_t priority)
{
    pod_on(c, number, gpus, priority, "");
}

/* Adds a running pod. */
static void running_pod(struct berth_cluster *c, unsigned number, int64_t gpus, int32_t priority, const char *node)
{
    char id[16];
    pod(c, number, gpus, priority);
    (void)snprintf(id, sizeof id, "ns:p%u", number);
    const struct berth_instance runs = {.id = number, .workload = id, .node = node, .state = BERTH_RUNNING};
    assert_int_equal(berth_instance_put(c, &runs, NULL), 0);
}

/* Checks how many pods wait in the plan of the profile alone, and in the chosen plan. */
static void check(struct berth_cluster *c, size_t alone, size_t chosen)
{
    const struct berth_policy policy = {.profile = berth_profile_find("default")};
    struct berth_snapshot *s = berth_freeze(c, 0, 0);
    struct berth_plan *plan;
    struct kube_choice choice, again;
    assert_int_equal(berth_plan_make(s, &policy, &plan, NULL), 0);
    assert_int_equal(berth_plan_pendings(plan), alone);
    assert_int_equal(kube_choose(c, 0, &policy, &choice, NULL), 0);
    assert_int_equal(berth_plan_pendings(choice.plan), chosen);
    assert_int_equal(kube_choose(c, 0, &policy, &again, NULL), 0);
    assert_true(berth_plan_hash(again.plan) == berth_plan_hash(choice.plan));
    if (alone == chosen)
        assert_true(berth_plan_hash(choice.plan) == berth_plan_hash(plan));
    kube_choice_done(&again);
    kube_choice_done(&choice);
    berth_plan_free(plan);
    berth_snapshot_free(s);
}

static void profile_decides_if_all_pods_fit(void **state)
{
    (void)state;
    struct berth_cluster *c = two_nodes();
    pod(c, 0, 2, 0);
    pod(c, 1, 2, 0);
    check(c, 0, 0);
    berth_cluster_free(c);
}

static void variant_that_places_more_is_chosen(void **state)
{
    (void)state;
    static const int64_t gpus[] = {2, 2, 4, 1, 1};
    struct berth_cluster *c = two_nodes();
    for (unsigned i = 0; i < 5; i++)
        pod(c, i, gpus[i], 0);
    check(c, 2, 1); /* two pods on one node and four on the other; or all but the pod of four */
    berth_cluster_free(c);
}

/* Placing more pods does not help if a pod of a higher priority waits for it. */
static void highest_priority_pending_decides(void **state)
{
    (void)state;
    static const int64_t gpus[] = {2, 2, 4, 1, 1};
    struct berth_cluster *c = two_nodes();
    for (unsigned i = 0; i < 5; i++)
        pod(c, i, gpus[i], i < 3 ? 10 : 0);
    check(c, 2, 2);
    berth_cluster_free(c);
}

static void unplaceable_pods_do_not_change_choice(void **state)
{
    (void)state;
    struct berth_cluster *c = two_nodes();
    pod(c, 0, 5, 0);
    pod(c, 1, 1, 0);
    check(c, 1, 1);
    berth_cluster_free(c);
}

/* Checks the name of the only pod that waits in each plan; "": none. */
static void check_waits(struct berth_cluster *c, const char *alone, const char *chosen)
{
    const struct berth_policy policy = {.profile = berth_profile_find("default"), .preemption = {.on = true}};
    struct berth_snapshot *s = berth_freeze(c, HOUR_NS, 0);
    struct berth_plan *plan;
    struct kube_choice choice;
    assert_int_equal(berth_plan_make(s, &policy, &plan, NULL), 0);
    assert_int_equal(kube_choose(c, HOUR_NS, &policy, &choice, NULL), 0);
    assert_string_equal(berth_plan_pendings(plan) ? berth_plan_pending_name(plan, 0) : "", alone);
    assert_string_equal(berth_plan_pendings(choice.plan) ? berth_plan_pending_name(choice.plan, 0) : "", chosen);
    assert_true(berth_plan_pendings(choice.plan) <= 1);
    kube_choice_done(&choice);
    berth_plan_free(plan);
    berth_snapshot_free(s);
}

/* The first pod takes the node the second needs, though it could use the node of a pod that gives it up. */
static void smallest_first_frees_scarce_node(void **state)
{
    (void)state;
    struct berth_cluster *c = two_nodes();
    running_pod(c, 9, 2, 0, "b");
    pod(c, 0, 3, 1);
    pod_on(c, 1, 2, 1, "a");
    check_waits(c, "ns:p1", "");
    berth_cluster_free(c);
}

static void higher_priority_may_displace_lower(void **state)
{
    (void)state;
    struct berth_cluster *c = two_nodes();
    running_pod(c, 9, 1, -1, "b");
    pod(c, 0, 4, 1);
    pod_on(c, 1, 2, 1, "a");
    pod(c, 2, 3, 0);
    check_waits(c, "ns:p1", "ns:p2");
    berth_cluster_free(c);
}

/* Placing two small pods instead of a large one would be more, but the large one came first. */
static void small_pods_do_not_overtake_earlier_large_pod(void **state)
{
    (void)state;
    struct berth_cluster *c = two_nodes();
    pod_on(c, 0, 4, 0, "a");
    pod_on(c, 1, 2, 0, "a");
    pod_on(c, 2, 2, 0, "a");
    check(c, 2, 2);
    berth_cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profile_decides_if_all_pods_fit),
        cmocka_unit_test(variant_that_places_more_is_chosen),
        cmocka_unit_test(highest_priority_pending_decides),
        cmocka_unit_test(unplaceable_pods_do_not_change_choice),
        cmocka_unit_test(smallest_first_frees_scarce_node),
        cmocka_unit_test(higher_priority_may_displace_lower),
        cmocka_unit_test(small_pods_do_not_overtake_earlier_large_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
