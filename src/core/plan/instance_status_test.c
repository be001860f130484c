/* instance_status_test.c - status of single instances: on lost nodes, and reserved instances that are promoted or
 * dropped.
 *
 * Each step is also applied, and must leave nothing to do at that moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

#define MINUTE_NS (60 * SCENE_SECOND_NS)

/* ---- lost nodes ------------------------------------------------------------------------------------------------- */

static void lost_instance_is_replaced_at_once(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(4);
    scene_service(&s, "web", 2, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 1, "b");
    scene_set_node_state(&s, "a", BERTH_NODE_LOST);
    scene_expect_and_apply(&s, "place web/0 c lost");
    scene_report(&s, 3, BERTH_RUNNING, true);
    scene_set_node_state(&s, "a", BERTH_NODE_READY);
    scene_expect_and_apply(&s, "stop web/0 a scaled #1"); /* of two available instances the younger one is kept */
    scene_cleanup(&s);
}

static void available_duplicate_is_kept(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(4);
    scene_service(&s, "web", 2, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 1, "b");
    scene_set_node_state(&s, "a", BERTH_NODE_LOST);
    scene_expect_and_apply(&s, "place web/0 c lost");
    scene_set_node_state(&s, "a", BERTH_NODE_READY);
    scene_expect_and_apply(&s, "stop web/0 c scaled #3");
    scene_cleanup(&s);
}

static void lost_instance_is_replaced_after_fencing(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(4);
    scene_service(&s, "db", 1, 600, 10);
    scene_running(&s, "db", 0, "a");
    scene_set_node_state(&s, "a", BERTH_NODE_LOST);
    int64_t fenced = s.now_ns + 10 * MINUTE_NS;
    scene_expect_and_apply(&s, "");
    assert_true(berth_plan_recheck_ns(s.p) == fenced);
    s.now_ns = fenced - 1;
    scene_expect_and_apply(&s, "");
    assert_true(berth_plan_recheck_ns(s.p) == fenced);
    s.now_ns = fenced;
    scene_expect_and_apply(&s, "lose db/0 a lost #1; place db/0 b lost");
    assert_true(berth_plan_recheck_ns(s.p) == BERTH_NEVER_NS);
    scene_check(&s, berth_node_remove(s.c, "a", &s.err));
    scene_cleanup(&s);
}

static void fence_time_is_the_workloads(void **state)
{
    static const struct {
        int64_t fence_ns, since_ns;
        bool never;
    } rows[] = {
        {MINUTE_NS, 0,             false},
        {1,         0,             false},
        {INT64_MAX, 0,             false},
        {INT64_MAX, 5,             true },
        {5,         INT64_MAX - 1, true },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_with_nodes(4);
        s.now_ns = rows[i].since_ns;
        scene_put(&s,
                  (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 1, .fence_ns = rows[i].fence_ns});
        scene_running(&s, "job", 0, "a");
        scene_set_node_state(&s, "a", BERTH_NODE_LOST);
        scene_expect_and_apply(&s, "");
        assert_true(berth_plan_recheck_ns(s.p) ==
                    (rows[i].never ? BERTH_NEVER_NS : rows[i].since_ns + rows[i].fence_ns));
        scene_cleanup(&s);
    }
}

/* The workload's fence time may have changed since the placement: the longer of it and the time that the node was told
 * applies. */
static void longer_fence_time_applies(void **state)
{
    static const struct {
        int64_t told_ns, says_ns, want_ns;
    } rows[] = {
        {0,              MINUTE_NS,     MINUTE_NS     },
        {9 * MINUTE_NS,  MINUTE_NS,     9 * MINUTE_NS },
        {MINUTE_NS,      9 * MINUTE_NS, 9 * MINUTE_NS },
        {BERTH_NEVER_NS, MINUTE_NS,     BERTH_NEVER_NS},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_with_nodes(4);
        s.now_ns = MINUTE_NS;
        scene_put(&s,
                  (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 1, .fence_ns = rows[i].says_ns});
        struct berth_instance told = {.id = 1,
                                      .workload = "job",
                                      .node = "a",
                                      .state = BERTH_RUNNING,
                                      .outdated = true,
                                      .fence_ns = rows[i].told_ns};
        scene_check(&s, berth_instance_put(s.c, &told, &s.err));
        scene_set_node_state(&s, "a", BERTH_NODE_LOST);
        scene_expect_and_apply(&s, "");
        assert_true(berth_plan_recheck_ns(s.p) ==
                    (rows[i].want_ns == BERTH_NEVER_NS ? BERTH_NEVER_NS : s.now_ns + rows[i].want_ns));
        scene_cleanup(&s);
    }
}

static void on_lost_wait_keeps_the_instance(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(4);
    scene_put(&s, (struct berth_workload){.id = "vm", .kind = BERTH_VM, .replicas = 1, .on_lost = BERTH_LOST_WAIT});
    scene_running(&s, "vm", 0, "a");
    scene_set_node_state(&s, "a", BERTH_NODE_LOST);
    s.now_ns += 1000 * MINUTE_NS;
    scene_expect_and_apply(&s, "");
    assert_true(berth_plan_recheck_ns(s.p) == BERTH_NEVER_NS);
    scene_cleanup(&s);
}

static void too_many_lost_nodes_raise_the_alarm(void **state)
{
    static const struct {
        size_t nodes, lost;
        bool alarm;
    } rows[] = {
        {2, 1, false}, /* a single lost node raises no alarm */
        {3, 1, false},
        {3, 2, true },
        {6, 2, false}, /* exactly a third */
        {5, 2, true },
        {7, 3, true },
        {9, 3, false},
        {2, 2, true },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_with_nodes(rows[i].nodes);
        scene_service(&s, "web", 2, 10, 10);
        scene_service(&s, "new", 1, 10, 10);
        scene_running(&s, "web", 0, "a");
        scene_running(&s, "web", 1, "a");
        for (size_t n = 0; n < rows[i].lost; n++) {
            const char id[] = {(char)('a' + n), '\0'};
            scene_set_node_state(&s, id, BERTH_NODE_LOST);
        }
        scene_plan(&s);
        assert_int_equal(berth_plan_alarm(s.p), rows[i].alarm);
        for (size_t n = 0; n < berth_plan_actions(s.p) && rows[i].alarm; n++)
            assert_string_equal(berth_plan_action(s.p, n).workload, "new"); /* new work is still placed */
        assert_int_equal(berth_plan_actions(s.p), rows[i].alarm ? rows[i].lost < rows[i].nodes : 3);
        scene_cleanup(&s);
    }
}

static void unwanted_instances_on_lost_nodes_are_stopped(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(4);
    scene_service(&s, "web", 2, 10, 10);
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 1, "b");
    scene_set_node_state(&s, "a", BERTH_NODE_LOST);
    scene_check(&s, berth_workload_remove(s.c, "web", &s.err));
    scene_expect_and_apply(&s, "stop web/0 a removed #1; stop web/1 b removed #2");
    scene_cleanup(&s);
}

/* ---- reserved instances ----------------------------------------------------------------------------------------- */

/* web/0 is reserved (#2) on a, waiting for old/0 (#1), which is stopping. */
static struct scene reserved_behind_stopping(void)
{
    struct scene s = scene_with_nodes(1);
    scene_service(&s, "old", 1, 900, 10);
    scene_running(&s, "old", 0, "a");
    scene_check(&s, berth_workload_remove(s.c, "old", &s.err));
    scene_service(&s, "web", 1, 800, 10);
    scene_expect_and_apply(&s, "stop old/0 a removed #1; reserve web/0 a pending after 1");
    return s;
}

static void reserved_instance_is_promoted_after_the_stop(void **state)
{
    (void)state;
    struct scene s = reserved_behind_stopping();
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "promote web/0 a pending #2");
    scene_report(&s, 2, BERTH_RUNNING, true);
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

static void infeasible_reserved_instance_is_dropped(void **state)
{
    (void)state;
    struct scene s = reserved_behind_stopping();
    scene_set_node_state(&s, "a", BERTH_NODE_CORDONED);
    scene_expect_and_apply(&s, "stop web/0 a infeasible #2");
    assert_true(cluster_instance_find(s.c, 2) == NONE);
    scene_cleanup(&s);

    s = reserved_behind_stopping();
    scene_node(&s, "a", 700, 1000); /* too small even without old/0 */
    scene_node(&s, "b", 1000, 1000);
    scene_expect_and_apply(&s, "stop web/0 a infeasible #2; place web/0 b pending");
    scene_cleanup(&s);

    s = reserved_behind_stopping();
    scene_set_node_state(&s, "a", BERTH_NODE_LOST);
    scene_node(&s, "b", 1000, 1000);
    scene_expect_and_apply(&s, "stop web/0 a infeasible #2; place web/0 b pending");
    scene_cleanup(&s);
}

/* A reserved instance that is no longer wanted is dropped, not promoted. */
static void unwanted_reserved_instance_is_dropped(void **state)
{
    static const bool stopped[] = {false, true};
    (void)state;
    for (size_t i = 0; i < ROWS(stopped); i++) {
        struct scene s = reserved_behind_stopping();
        if (stopped[i])
            scene_remove(&s, 1);
        scene_service(&s, "web", 0, 800, 10);
        scene_expect_and_apply(&s, "stop web/0 a scaled #2");
        assert_true(cluster_instance_find(s.c, 2) == NONE);
        scene_cleanup(&s);
    }
}

static void reserved_instance_waits_for_its_port(void **state)
{
    (void)state;
    struct berth_shape http = {NEEDS(10, 10), LIST(ports, struct berth_port, {BERTH_TCP, 80, 1})};
    struct scene s = scene_with_nodes(1);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 1, .shape = http});
    scene_instance(&s,
                   (struct berth_instance){.workload = "old", .node = "a", .state = BERTH_STOPPING, .shape = &http});
    scene_expect_and_apply(&s, "reserve web/0 a pending after 1");
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "promote web/0 a pending #2");
    scene_cleanup(&s);
}

/* Even if the reserved instance lists no instances to wait for. */
static void allocated_port_blocks_promotion(void **state)
{
    (void)state;
    struct berth_shape http = {NEEDS(10, 10), LIST(ports, struct berth_port, {BERTH_TCP, 80, 1})};
    struct scene s = scene_with_nodes(1);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 1, .shape = http});
    scene_instance(&s,
                   (struct berth_instance){.workload = "old", .node = "a", .state = BERTH_STOPPING, .shape = &http});
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "a", .state = BERTH_RESERVED});
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

/* The node has another, healthy GPU, which is in use. */
static void unhealthy_gpu_drops_the_reserved_instance(void **state)
{
    static const struct berth_gpu well[2] = {0};
    static const struct berth_gpu ails[2] = {[1].unhealthy = true};
    static const struct {
        const struct berth_gpu *gpus;
        const char *want;
    } rows[] = {
        {well, "promote web/0 a pending #3"},
        {ails, "stop web/0 a infeasible #3"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct berth_shape one = {NEEDS(10, 10), .gpu.count = 1};
        struct berth_node a = {.id = "a", HAS(1000, 1000), .gpus = well, .gpus_len = 2};
        struct scene s = scene_with_nodes(0);
        scene_put_node(&s, a);
        scene_put(&s, (struct berth_workload){.id = "first", .replicas = 1, .shape = one});
        scene_put(&s, (struct berth_workload){.id = "web", .replicas = 1, .shape = one});
        scene_instance(&s, (struct berth_instance){
                               .workload = "first", .node = "a", .state = BERTH_RUNNING, .ready = true, .gpus = 1});
        scene_instance(&s, (struct berth_instance){
                               .workload = "old", .node = "a", .state = BERTH_STOPPING, .shape = &one, .gpus = 2});
        scene_expect_and_apply(&s, "reserve web/0 a pending after 2");
        a.gpus = rows[i].gpus;
        scene_put_node(&s, a);
        scene_remove(&s, 2);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* ---- duplicates ------------------------------------------------------------------------------------------------- */

static void duplicate_ordinal_counts_as_one_pod(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(3);
    scene_service(&s, "web", 2, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 0, "b");
    scene_expect_and_apply(&s, "stop web/0 a scaled #1; place web/1 c pending");
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_instance_is_replaced_at_once),
        cmocka_unit_test(available_duplicate_is_kept),
        cmocka_unit_test(lost_instance_is_replaced_after_fencing),
        cmocka_unit_test(fence_time_is_the_workloads),
        cmocka_unit_test(longer_fence_time_applies),
        cmocka_unit_test(on_lost_wait_keeps_the_instance),
        cmocka_unit_test(too_many_lost_nodes_raise_the_alarm),
        cmocka_unit_test(unwanted_instances_on_lost_nodes_are_stopped),
        cmocka_unit_test(reserved_instance_is_promoted_after_the_stop),
        cmocka_unit_test(infeasible_reserved_instance_is_dropped),
        cmocka_unit_test(unwanted_reserved_instance_is_dropped),
        cmocka_unit_test(reserved_instance_waits_for_its_port),
        cmocka_unit_test(allocated_port_blocks_promotion),
        cmocka_unit_test(unhealthy_gpu_drops_the_reserved_instance),
        cmocka_unit_test(duplicate_ordinal_counts_as_one_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
