/* rebalance_test.c - rebalancing evens out real use by a few moves and then stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

#define MINUTE_NS (60 * SCENE_SECOND_NS)

static struct scene equal_nodes(size_t nodes)
{
    struct scene s = scene_with_nodes(nodes);
    s.policy.rebalance = berth_policy_usual().rebalance;
    return s;
}

/* Puts `len` pods on node a, each with this cpu use. */
static void put_busy_pods(struct scene *s, uint32_t len, int64_t cpu)
{
    scene_service(s, "web", len, 10, 10);
    for (uint32_t i = 0; i < len; i++)
        scene_running_with_use(s, i + 1, "web", i, "a", cpu, 10);
}

static void pods_move_from_busiest_to_idlest_node(void **state)
{
    (void)state;
    struct scene s = equal_nodes(3);
    put_busy_pods(&s, 4, 200);
    scene_expect_and_apply(&s, "place web/0 b moved for 1"); /* b and c are equal; a is the busiest */
    scene_report(&s, 5, BERTH_STARTING, false);
    scene_expect_and_apply(&s, "");                       /* a migration is in progress */
    scene_running_with_use(&s, 6, "other", 0, "c", 0, 0); /* of no workload, so it is stopped */
    scene_expect_and_apply(&s, "stop other/0 c removed #6");
    scene_remove(&s, 6);
    scene_report(&s, 5, BERTH_RUNNING, true);
    scene_expect_and_apply(&s, "stop web/0 a moved #1");
    scene_expect_and_apply(&s, "");
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "place web/1 c moved for 2");
    scene_cleanup(&s);
}

static void small_gains_cause_no_move(void **state)
{
    static const struct {
        int64_t cpu;
        const char *want;
    } rows[] = {
        {150, ""                         },
        {152, "place web/0 b moved for 1"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = equal_nodes(2);
        put_busy_pods(&s, 2, rows[i].cpu);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

static void unsuitable_pods_are_not_moved(void **state)
{
    (void)state;
    struct scene s = equal_nodes(2);
    put_busy_pods(&s, 3, 300);
    struct scene *one = &s;
    scene_put(one, (struct berth_workload){.id = "web", .kind = BERTH_VM, .replicas = 3, .shape = {NEEDS(10, 10)}});
    scene_expect_and_apply(one, "");
    scene_put(one, (struct berth_workload){
                       .id = "web", .on_drain = BERTH_DRAIN_WAIT, .replicas = 3, .shape = {NEEDS(10, 10)}});
    scene_expect_and_apply(one, "");
    scene_put(one, (struct berth_workload){
                       .id = "web", .replicas = 3, .shape = {NEEDS(10, 10), .node = "a"}
    });
    scene_expect_and_apply(one, ""); /* fits nowhere else */
    scene_service(one, "web", 3, 10, 10);
    s.profile = "pack";
    if (berth_profile_find("pack"))
        scene_expect_and_apply(one, "");
    s.profile = NULL;
    s.policy.rebalance.moves = 0;
    scene_expect_and_apply(one, "");
    s.policy.rebalance.moves = 2;
    scene_set_node_state(one, "b", BERTH_NODE_CORDONED);
    scene_expect_and_apply(one, "");
    scene_set_node_state(one, "b", BERTH_NODE_READY);
    scene_expect_and_apply(one, "place web/0 b moved for 1");
    scene_cleanup(&s);
}

static void young_pods_and_new_neighbours_block_moves(void **state)
{
    (void)state;
    struct scene s = equal_nodes(2);
    put_busy_pods(&s, 3, 300);
    scene_service(&s, "new", 1, 10, 10);
    scene_running(&s, "new", 0, "b");
    scene_expect_and_apply(&s, "");
    assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + 10 * MINUTE_NS);
    s.now_ns += 10 * MINUTE_NS;
    scene_expect_and_apply(&s, "place web/0 b moved for 1");
    scene_cleanup(&s);
}

static void overdue_move_is_undone(void **state)
{
    (void)state;
    struct scene s = equal_nodes(2);
    put_busy_pods(&s, 3, 300);
    scene_expect_and_apply(&s, "place web/0 b moved for 1");
    scene_expect_and_apply(&s, "");
    assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + 15 * MINUTE_NS);
    s.now_ns += 15 * MINUTE_NS;
    scene_expect_and_apply(&s, "stop web/0 b undone #4");
    scene_remove(&s, 4);
    scene_expect_and_apply(&s, "place web/1 b moved for 2"); /* another pod is tried */
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_move_from_busiest_to_idlest_node),
        cmocka_unit_test(small_gains_cause_no_move),
        cmocka_unit_test(unsuitable_pods_are_not_moved),
        cmocka_unit_test(young_pods_and_new_neighbours_block_moves),
        cmocka_unit_test(overdue_move_is_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
