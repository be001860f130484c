/* eviction_test.c - which instances leave a node short of memory or over capacity, and which stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static struct scene nodes_under_pressure(size_t nodes)
{
    struct scene s = scene_with_nodes(nodes);
    s.policy.pressure = berth_policy_usual().pressure;
    return s;
}

/* Lets the hold time between two stops pass. */
static void hold(struct scene *s)
{
    s->now_ns += 10 * SCENE_SECOND_NS;
}

static void evicts_lowest_priority_then_overuse_then_youngest(void **state)
{
    (void)state;
    struct scene s = nodes_under_pressure(1);
    scene_service(&s, "low", 2, 10, 100);
    scene_service(&s, "mid", 3, 10, 100);
    scene_put(&s, (struct berth_workload){.id = "high", .replicas = 2, .priority = 9, .shape = {NEEDS(10, 100)}});
    scene_put(&s, (struct berth_workload){.id = "low", .replicas = 2, .priority = -1, .shape = {NEEDS(10, 100)}});
    scene_running_with_use(&s, 1, "low", 0, "a", 10, 101);
    scene_running_with_use(&s, 2, "low", 1, "a", 10, 101);
    scene_running_with_use(&s, 3, "mid", 0, "a", 10, 300);
    scene_running_with_use(&s, 4, "mid", 1, "a", 10, 300);
    scene_running_with_use(&s, 5, "mid", 2, "a", 10, 120);
    scene_running_with_use(&s, 6, "high", 0, "a", 10, 400);
    scene_running_with_use(&s, 7, "high", 1, "a", 10, 400);
    scene_expect_and_apply(&s, ""); /* not before the pressure has lasted for the hold time */
    assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + 10 * SCENE_SECOND_NS);
    hold(&s);
    scene_expect_and_apply(&s, "stop low/1 a pressure #2");
    assert_int_equal(scene_pending(&s, "low"), 1);
    (void)scene_reason(&s, "low", "pressure");
    hold(&s);
    scene_expect_and_apply(&s, "stop mid/1 a pressure #4"); /* min_available of `low` is one */
    hold(&s);
    scene_expect_and_apply(&s, "stop high/1 a pressure #7");
    hold(&s);
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

static void instances_within_request_are_not_evicted(void **state)
{
    static const struct {
        int64_t ratio;
        const char *want;
    } rows[] = {
        {0,    ""                        },
        {2000, "stop web/1 a pressure #2"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = nodes_under_pressure(1);
        struct berth_amount promised = {"memory", rows[i].ratio}, used = {"memory", 990};
        scene_put_node(&s, (struct berth_node){.id = "a",
                                               HAS(1000, 1000),
                                               .overcommit = &promised,
                                               .overcommit_len = rows[i].ratio != 0,
                                               .used = &used,
                                               .used_len = 1});
        scene_service(&s, "web", 2, 10, 400);
        scene_running_with_use(&s, 1, "web", 0, "a", 10, 400);
        scene_running_with_use(&s, 2, "web", 1, "a", 10, 400);
        scene_expect_and_apply(&s, "");
        hold(&s);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* Jobs, gangs, single replicas and instances that report no use are not evicted. */
static void jobs_gangs_and_single_replicas_are_not_evicted(void **state)
{
    (void)state;
    struct scene s = nodes_under_pressure(1);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 2, .shape = {NEEDS(10, 10)}});
    scene_put(&s, (struct berth_workload){.id = "vm", .kind = BERTH_VM, .replicas = 2, .shape = {NEEDS(10, 10)}});
    scene_put(&s, (struct berth_workload){.id = "gang", .replicas = 2, .gang = "g", .shape = {NEEDS(10, 10)}});
    scene_service(&s, "alone", 1, 10, 10);
    scene_service(&s, "mute", 2, 10, 10);
    scene_running_with_use(&s, 1, "job", 0, "a", 10, 400);
    scene_running_with_use(&s, 2, "job", 1, "a", 10, 400);
    scene_running_with_use(&s, 3, "vm", 0, "a", 10, 400);
    scene_running_with_use(&s, 4, "vm", 1, "a", 10, 400);
    scene_running_with_use(&s, 5, "gang", 0, "a", 10, 400);
    scene_running_with_use(&s, 6, "gang", 1, "a", 10, 400);
    scene_running_with_use(&s, 7, "alone", 0, "a", 10, 400);
    scene_running(&s, "mute", 0, "a");
    scene_running(&s, "mute", 1, "a");
    scene_expect_and_apply(&s, "");
    hold(&s);
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

static void pressure_lasts_until_low_percent(void **state)
{
    static const struct {
        int64_t used[3]; /* use at successive moments */
        bool refused[3];
    } rows[] = {
        {{940, 955, 940}, {false, true, true} },
        {{955, 850, 940}, {true, false, false}},
        {{955, 851, 960}, {true, true, true}  },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = nodes_under_pressure(1);
        scene_service(&s, "web", 1, 10, 10);
        for (size_t n = 0; n < 3; n++) {
            struct berth_amount used = {"memory", rows[i].used[n]};
            scene_put_node(&s, (struct berth_node){.id = "a", HAS(1000, 1000), .used = &used, .used_len = 1});
            scene_plan(&s);
            assert_int_equal(berth_plan_actions(s.p), !rows[i].refused[n]);
            uint64_t placed = s.next;
            scene_apply(&s);
            if (!rows[i].refused[n])
                scene_remove(&s, placed);
        }
        scene_cleanup(&s);
    }
}

static void concurrent_evictions_are_limited(void **state)
{
    (void)state;
    struct scene s = nodes_under_pressure(3);
    s.policy.pressure.drops = 2;
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 6, .min_available = 1, .shape = {NEEDS(10, 10)}});
    for (uint32_t i = 0; i < 6; i++) {
        const char node[] = {(char)('a' + i % 3), '\0'};
        scene_running_with_use(&s, i + 1, "web", i, node, 10, 600);
    }
    scene_expect_and_apply(&s, "");
    hold(&s);
    scene_expect_and_apply(&s, "stop web/3 a pressure #4; stop web/4 b pressure #5");
    hold(&s);
    scene_expect_and_apply(&s, "");
    scene_remove(&s, 4);
    scene_expect_and_apply(
        &s, "stop web/5 c pressure #6; place web/3 a pending; place web/4 a pending; place web/5 a pending");
    scene_cleanup(&s);
}

/* ---- nodes over capacity ---------------------------------------------------------------------------------------- */

static void services_move_off_a_node_that_shrank(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    s.policy.shed = true;
    scene_put(&s, (struct berth_workload){.id = "low", .replicas = 2, .priority = -1, .shape = {NEEDS(200, 10)}});
    scene_put(&s, (struct berth_workload){
                      .id = "job", .kind = BERTH_JOB, .replicas = 1, .priority = -9, .shape = {NEEDS(200, 10)}});
    scene_put(&s, (struct berth_workload){.id = "idle", .replicas = 1, .priority = -5, .shape = {NEEDS(0, 10)}});
    scene_service(&s, "web", 1, 200, 10);
    scene_running(&s, "low", 0, "a");
    scene_running(&s, "low", 1, "a");
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "job", 0, "a");
    scene_running(&s, "idle", 0, "a");
    scene_node(&s, "a", 600, 1000); /* holds one pod too many */
    scene_expect_and_apply(&s, "place low/1 b over for 2");
    scene_report(&s, 6, BERTH_RUNNING, true);
    scene_expect_and_apply(&s, "stop low/1 a moved #2");
    scene_remove(&s, 2);
    scene_expect_and_apply(&s, "");
    scene_node(&s, "a", 100, 1000); /* the job is never evicted */
    scene_expect_and_apply(&s, "place low/0 b over for 1; place web/0 b over for 3");
    scene_cleanup(&s);
}

static void spare_replicas_stop_without_room_elsewhere(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(1);
    s.policy.shed = true;
    scene_service(&s, "web", 3, 300, 10);
    for (uint32_t i = 0; i < 3; i++)
        scene_running(&s, "web", i, "a");
    scene_node(&s, "a", 500, 1000);
    scene_expect_and_apply(&s, "stop web/1 a over #2"); /* two pods too many, but min_available is two */
    s.policy.shed = false;
    scene_expect(&s, "");
    scene_cleanup(&s);
}

/* A pod with a replacement is evicted in the usual order; its replacement then takes over. */
static void replaced_pod_is_evicted_in_order(void **state)
{
    (void)state;
    struct scene s = nodes_under_pressure(2);
    scene_service(&s, "web", 3, 10, 100);
    scene_running_with_use(&s, 1, "web", 0, "a", 10, 110);
    scene_running_with_use(&s, 2, "web", 1, "a", 10, 890);
    scene_running_with_use(&s, 3, "web", 2, "b", 10, 100);
    scene_instance(&s, (struct berth_instance){.id = 4,
                                               .workload = "web",
                                               .ordinal = 1,
                                               .node = "b",
                                               .state = BERTH_STARTING,
                                               .since_ns = 1,
                                               .replaces = 2});
    scene_expect_and_apply(&s, "");
    hold(&s);
    scene_expect_and_apply(&s, "stop web/1 a pressure #2");
    hold(&s);
    scene_expect_and_apply(&s, "");
    assert_int_equal(scene_pending(&s, "web"), 0);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evicts_lowest_priority_then_overuse_then_youngest),
        cmocka_unit_test(instances_within_request_are_not_evicted),
        cmocka_unit_test(jobs_gangs_and_single_replicas_are_not_evicted),
        cmocka_unit_test(pressure_lasts_until_low_percent),
        cmocka_unit_test(concurrent_evictions_are_limited),
        cmocka_unit_test(services_move_off_a_node_that_shrank),
        cmocka_unit_test(replaced_pod_is_evicted_in_order),
        cmocka_unit_test(spare_replicas_stop_without_room_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
