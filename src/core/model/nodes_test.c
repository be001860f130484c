/* nodes_test.c - nodes are added, changed and removed; refused puts change nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"
#include "core/snapshot/snapshot.h"

#define GPUS(...) LIST(gpus, struct berth_gpu, __VA_ARGS__)
#define PORT(number) LIST(ports, struct berth_port, {BERTH_TCP, number, 1})

static int put_node(struct scene *s, struct berth_node n)
{
    return berth_node_put(s->c, &n, &s->err);
}

static void a_node_is_replaced_by_id(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 1, 2000, 100);
    scene_expect(&s, "");
    scene_node(&s, "a", 4000, 1000);
    scene_expect(&s, "place web/0 a pending");
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(4000, 1000), .state = BERTH_NODE_CORDONED});
    scene_expect(&s, "");
    assert_int_equal(s.c->nodes_len, 1);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void state_change_keeps_the_layout(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_plan(&s);
    const struct layout *before = s.c->layout;
    assert_non_null(before);
    scene_state(&s, "a", 1000, 1000, BERTH_NODE_DRAINING);
    assert_ptr_equal(s.c->layout, before);
    scene_state(&s, "a", 1001, 1000, BERTH_NODE_DRAINING);
    assert_null(s.c->layout);
    scene_cleanup(&s);
}

static void nodes_are_removed(void **state)
{
    (void)state;
    struct scene s = scene_new();
    assert_int_equal(berth_node_remove(s.c, "a", &s.err), -ENOENT);
    assert_non_null(strstr(s.err.text, "\"a\""));
    assert_int_equal(berth_node_remove(s.c, NULL, &s.err), -ENOENT);
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 1, 100, 100);
    scene_running(&s, "web", 0, "a");
    assert_int_equal(berth_node_remove(s.c, "a", &s.err), -EBUSY);
    assert_non_null(strstr(s.err.text, "drain"));
    scene_audit(&s);
    scene_expect(&s, "");
    scene_remove(&s, 1);
    scene_check(&s, berth_node_remove(s.c, "a", &s.err));
    assert_int_equal(berth_node_remove(s.c, "a", NULL), -ENOENT);
    scene_audit(&s);
    scene_expect(&s, "");
    assert_int_equal(scene_pending(&s, "web"), 1);
    scene_cleanup(&s);
}

static void reused_slot_is_clean(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(1000, 1000), GPUS({"x", 5}), PORT(80)});
    scene_put(&s, (struct berth_workload){
                      .id = "w", .replicas = 1, .shape = {NEEDS(900, 900), .gpu = {.count = 1}}
    });
    scene_instance(&s, (struct berth_instance){.workload = "w", .node = "a", .state = BERTH_STOPPING, .gpus = 1});
    scene_remove(&s, 1);
    uint32_t slot = cluster_node_find(s.c, "a");
    scene_check(&s, berth_node_remove(s.c, "a", &s.err));
    scene_put_node(&s, (struct berth_node){.id = "b", HAS(1000, 1000), GPUS({"x", 5}, {"x", 5})});
    assert_int_equal(cluster_node_find(s.c, "b"), slot);
    assert_true(cluster_node_find(s.c, "a") == NONE);
    scene_audit(&s);
    scene_expect_and_apply(&s, "place w/0 b pending");
    scene_cleanup(&s);
}

static void allocated_gpu_cannot_be_removed(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), GPUS({"x", 1}, {"x", 1}, {"x", 1})});
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = {.gpu = {.count = 1}}});
    scene_instance(&s, (struct berth_instance){.workload = "w", .node = "a", .state = BERTH_RUNNING, .gpus = 2});
    assert_int_equal(put_node(&s, (struct berth_node){.id = "a", HAS(99, 99), GPUS({"x", 1})}), -EBUSY);
    assert_non_null(strstr(s.err.text, "\"a\""));
    assert_int_equal(put_node(&s, (struct berth_node){.id = "a", HAS(99, 99)}), -EBUSY);
    const struct node *n = cluster_node(s.c, cluster_node_find(s.c, "a"));
    assert_int_equal(n->body->devices_len, 3); /* nothing changed */
    assert_int_equal(n->body->capacities[0].capacity, 10);
    scene_audit(&s);
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), GPUS({"x", 1}, {"x", 1})});
    scene_audit(&s);
    scene_remove(&s, 1);
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10)});
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), GPUS({"x", 1}, {"x", 1}, {"x", 1}, {"x", 1})});
    scene_audit(&s);
    scene_expect_and_apply(&s, "place w/0 a pending");
    scene_cleanup(&s);
}

/* The reported memory of a GPU that is held wholly may change. */
static void gpu_memory_may_change_while_gpu_is_allocated(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), GPUS({"x", 10})});
    scene_put(&s, (struct berth_workload){.id = "w", .shape = {.gpu = {.count = 1}}});
    scene_instance(&s, (struct berth_instance){.workload = "w", .node = "a", .state = BERTH_RUNNING, .gpus = 1});
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), GPUS({"x", 30})});
    scene_remove(&s, 1);
    scene_audit(&s);
    struct berth_shape share = {
        .gpu = {.count = 1, .milli = 100, .memory_bytes = 20}
    };
    scene_put(&s, (struct berth_workload){.id = "share", .replicas = 2, .shape = share});
    scene_expect_and_apply(&s, "place share/0 a pending"); /* two shares of 20 exceed 30 */
    scene_cleanup(&s);
}

static void shrunk_node_is_over_capacity(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_node(&s, "b", 100, 1000);
    scene_service(&s, "web", 1, 600, 10);
    scene_service(&s, "small", 1, 10, 10);
    scene_running(&s, "web", 0, "a");
    assert_int_equal(berth_nodes_over_capacity(s.c), 0);
    scene_node(&s, "a", 500, 1000);
    assert_int_equal(berth_nodes_over_capacity(s.c), 1);
    scene_audit(&s);
    scene_expect(&s, "place small/0 b pending"); /* nothing is stopped for it */
    scene_node(&s, "a", 600, 1000);
    assert_int_equal(berth_nodes_over_capacity(s.c), 0);
    scene_cleanup(&s);
}

static void system_ports_are_not_given_to_pods(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), PORT(80)});
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = {PORT(80)}});
    scene_expect(&s, "");
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), PORT(81)});
    scene_expect_and_apply(&s, "place w/0 a pending");
    scene_cleanup(&s);
}

static void system_port_conflicts_with_holder(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 10, 10);
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = {PORT(80)}});
    scene_running(&s, "w", 0, "a");
    assert_int_equal(put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), PORT(80)}), -EBUSY);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void overcommit_raises_capacity(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(
        &s, (struct berth_node){.id = "a", HAS(1001, 1000), LIST(overcommit, struct berth_amount, {"cpu", 1500})});
    scene_service(&s, "web", 2, 751, 10);
    scene_expect(&s, "place web/0 a pending"); /* 1501, rounded down */
    scene_service(&s, "web", 2, 750, 10);
    scene_expect_and_apply(&s, "place web/0 a pending; place web/1 a pending");
    assert_int_equal(berth_nodes_over_capacity(s.c), 0);
    scene_cleanup(&s);
}

static void nodes_at_random(void **state)
{
    (void)state;
    struct scene s = scene_new();
    uint64_t seed = scene_seed();
    bool there[20] = {false};
    scene_service(&s, "web", 1000, 1, 1);
    for (int round = 0; round < 600; round++) {
        char id[16];
        uint32_t n = scene_random_below(&seed, 20);
        (void)snprintf(id, sizeof id, "n%u", n);
        if (there[n] && scene_random_below(&seed, 3) == 0) {
            int rc = berth_node_remove(s.c, id, NULL);
            bool held = cluster_node_find(s.c, id) != NONE;
            assert_int_equal(rc, held ? -EBUSY : 0);
            there[n] = held;
        } else {
            uint16_t port = (uint16_t)(1 + scene_random_below(&seed, 9));
            scene_put_node(&s, (struct berth_node){.id = id, HAS(scene_random_below(&seed, 100), 100), PORT(port)});
            if (scene_random_below(&seed, 4) == 0)
                scene_running(&s, "web", 0, id);
            there[n] = true;
        }
        for (uint64_t i = 1; i < s.next && scene_random_below(&seed, 5) == 0; i++)
            (void)berth_instance_remove(s.c, i, NULL);
        scene_audit(&s);
    }
    scene_cleanup(&s);
}

/* Use reports are frequent and sorting the nodes is expensive. */
static void use_reports_keep_the_layout(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    scene_plan(&s);
    const struct layout *before = s.c->layout;
    assert_non_null(before);
    for (int64_t i = 1; i < 4; i++) {
        scene_put_node(&s, (struct berth_node){.id = "a",
                                               HAS(1000, 1000),
                                               LIST(consumed, struct berth_amount, {"cpu", i}),
                                               .consumed_ns = i,
                                               LIST(used, struct berth_amount, {"memory", i}, {"cpu", i})});
        scene_plan(&s);
        assert_ptr_equal(s.c->layout, before);
        assert_int_equal(s.s->used[USE_MEMORY][0], i);
        scene_audit(&s);
    }
    scene_node(&s, "a", 1001, 1000);
    assert_null(s.c->layout);
    scene_audit(&s);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_replaced_by_id),
        cmocka_unit_test(state_change_keeps_the_layout),
        cmocka_unit_test(nodes_are_removed),
        cmocka_unit_test(reused_slot_is_clean),
        cmocka_unit_test(allocated_gpu_cannot_be_removed),
        cmocka_unit_test(gpu_memory_may_change_while_gpu_is_allocated),
        cmocka_unit_test(shrunk_node_is_over_capacity),
        cmocka_unit_test(system_ports_are_not_given_to_pods),
        cmocka_unit_test(system_port_conflicts_with_holder),
        cmocka_unit_test(overcommit_raises_capacity),
        cmocka_unit_test(nodes_at_random),
        cmocka_unit_test(use_reports_keep_the_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
