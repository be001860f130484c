/* instances_test.c - instances are added, changed and removed; nothing is held twice; refused puts change nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

#define PORT(number) LIST(ports, struct berth_port, {BERTH_TCP, number, 1})

static int put(struct scene *s, struct berth_instance i)
{
    return berth_instance_put(s->c, &i, &s->err);
}

/* Two nodes with two GPUs; workloads that request a port, a GPU and half a GPU. */
static struct scene stage(void)
{
    struct scene s = scene_new();
    for (const char *id = "a\0b\0"; *id; id += 2)
        scene_put_node(
            &s, (struct berth_node){.id = id, HAS(1000, 1000), LIST(gpus, struct berth_gpu, {"x", 8}, {"x", 8})});
    scene_put(&s, (struct berth_workload){
                      .id = "port", .replicas = 9, .shape = {NEEDS(10, 10), PORT(80)}
    });
    scene_put(&s, (struct berth_workload){.id = "gpu", .replicas = 9, .shape = {.gpu = {.count = 1}}});
    scene_put(&s, (struct berth_workload){.id = "half", .replicas = 9, .shape = {.gpu = {.count = 1, .milli = 500}}});
    return s;
}

static void an_instance_is_replaced_by_id(void **state)
{
    (void)state;
    struct scene s = stage();
    scene_check(&s,
                put(&s, (struct berth_instance){.id = 5, .workload = "port", .node = "a", .state = BERTH_ASSIGNED}));
    scene_check(&s, put(&s, (struct berth_instance){.id = 5, .workload = "port", .node = "a", .state = BERTH_RUNNING}));
    scene_audit(&s);
    scene_check(&s, put(&s, (struct berth_instance){.id = 5, .workload = "port", .node = "b", .state = BERTH_RUNNING}));
    scene_check(&s, put(&s, (struct berth_instance){
                                .id = 5, .workload = "gpu", .node = "b", .gpus = 2, .state = BERTH_RUNNING}));
    scene_audit(&s);
    assert_int_equal(cluster_node(s.c, cluster_node_find(s.c, "a"))->instances, 0);
    assert_int_equal(cluster_node(s.c, cluster_node_find(s.c, "b"))->instances, 1);
    scene_cleanup(&s);
}

static void instances_are_removed(void **state)
{
    (void)state;
    struct scene s = stage();
    assert_int_equal(berth_instance_remove(s.c, 5, &s.err), -ENOENT);
    assert_non_null(strstr(s.err.text, "5"));
    scene_check(&s, put(&s, (struct berth_instance){.id = 5, .workload = "port", .node = "a", .state = BERTH_RUNNING}));
    uint32_t slot = cluster_instance_find(s.c, 5);
    scene_remove(&s, 5);
    assert_true(cluster_instance_find(s.c, 5) == NONE);
    assert_int_equal(berth_instance_remove(s.c, 5, NULL), -ENOENT);
    scene_check(&s, put(&s, (struct berth_instance){
                                .id = 6, .workload = "gpu", .node = "b", .gpus = 1, .state = BERTH_RUNNING}));
    assert_int_equal(cluster_instance_find(s.c, 6), slot);
    scene_audit(&s);
    scene_cleanup(&s);
}

/* Which states of two instances are compatible on one port. */
static void port_states_are_compatible(void **state)
{
    static const struct {
        enum berth_state first, second;
        bool allowed;
    } rows[] = {
        {BERTH_RUNNING,  BERTH_RUNNING,  false},
        {BERTH_RUNNING,  BERTH_ASSIGNED, false},
        {BERTH_STOPPING, BERTH_RUNNING,  false},
        {BERTH_RUNNING,  BERTH_STOPPING, false},
        {BERTH_RUNNING,  BERTH_RESERVED, false},
        {BERTH_RESERVED, BERTH_RESERVED, false},
        {BERTH_STOPPING, BERTH_RESERVED, true },
        {BERTH_RESERVED, BERTH_STOPPING, true },
        {BERTH_ENDED,    BERTH_RUNNING,  true },
        {BERTH_RUNNING,  BERTH_ENDED,    true },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage();
        scene_check(&s,
                    put(&s, (struct berth_instance){.id = 1, .workload = "port", .node = "a", .state = rows[i].first}));
        int rc = put(&s, (struct berth_instance){
                             .id = 2, .workload = "port", .ordinal = 1, .node = "a", .state = rows[i].second});
        if (rc != (rows[i].allowed ? 0 : -EBUSY))
            fail_msg("row %zu: %d", i, rc);
        if (rc)
            assert_non_null(strstr(s.err.text, "tcp/80"));
        assert_true((cluster_instance_find(s.c, 2) != NONE) == rows[i].allowed);
        scene_check(&s,
                    put(&s, (struct berth_instance){.id = 3, .workload = "port", .node = "b", .state = BERTH_RUNNING}));
        scene_audit(&s);
        scene_cleanup(&s);
    }
}

static void system_port_is_refused(void **state)
{
    (void)state;
    struct scene s = stage();
    scene_put_node(&s, (struct berth_node){.id = "c", HAS(1, 1), PORT(80)});
    assert_int_equal(put(&s, (struct berth_instance){.id = 1, .workload = "port", .node = "c", .state = BERTH_RUNNING}),
                     -EBUSY);
    assert_non_null(strstr(s.err.text, "node itself"));
    scene_audit(&s);
    scene_cleanup(&s);
}

static void gpu_is_not_allocated_twice(void **state)
{
    static const struct {
        const char *workload;
        uint64_t gpus;
        enum berth_state state;
        int rc;
    } rows[] = {
        {"gpu",  1, BERTH_RUNNING,  -EBUSY},
        {"half", 1, BERTH_RUNNING,  -EBUSY},
        {"gpu",  2, BERTH_RUNNING,  -EBUSY},
        {"half", 2, BERTH_RUNNING,  0     },
        {"half", 2, BERTH_RUNNING,  -EBUSY}, /* the fourth half */
        {"gpu",  1, BERTH_RESERVED, -EBUSY},
        {"gpu",  1, BERTH_ENDED,    0     },
    };
    (void)state;
    struct scene s = stage();
    scene_check(&s, put(&s, (struct berth_instance){
                                .id = 1, .workload = "gpu", .node = "a", .gpus = 1, .state = BERTH_RUNNING}));
    scene_check(&s, put(&s, (struct berth_instance){
                                .id = 2, .workload = "half", .node = "a", .gpus = 2, .state = BERTH_RUNNING}));
    for (size_t i = 0; i < ROWS(rows); i++) {
        int rc = put(
            &s,
            (struct berth_instance){
                .id = 10 + i, .workload = rows[i].workload, .node = "a", .gpus = rows[i].gpus, .state = rows[i].state});
        if (rc != rows[i].rc)
            fail_msg("row %zu: %d", i, rc);
        scene_audit(&s);
    }
    scene_report(&s, 1, BERTH_STOPPING, false);
    scene_check(&s, put(&s, (struct berth_instance){
                                .id = 20, .workload = "gpu", .node = "a", .gpus = 1, .state = BERTH_RESERVED}));
    scene_audit(&s);
    assert_int_equal(
        put(&s, (struct berth_instance){.id = 1, .workload = "gpu", .node = "a", .gpus = 1, .state = BERTH_RUNNING}),
        -EBUSY); /* reserved for another instance */
    scene_audit(&s);
    scene_cleanup(&s);
}

/* Instances placed by others are accounted for whatever they conflict with; instances placed by Berth are still
 * refused. */
static void adopted_instances_may_conflict(void **state)
{
    (void)state;
    struct scene s = stage();
    for (uint64_t id = 1; id <= 2; id++) {
        scene_check(&s, put(&s, (struct berth_instance){
                                    .id = id, .workload = "port", .node = "a", .state = BERTH_RUNNING, .found = true}));
        scene_check(
            &s,
            put(&s,
                (struct berth_instance){
                    .id = 10 + id, .workload = "gpu", .node = "a", .gpus = 1, .state = BERTH_RUNNING, .found = true}));
    }
    scene_audit(&s);
    assert_int_equal(put(&s, (struct berth_instance){.id = 3, .workload = "port", .node = "a", .state = BERTH_RUNNING}),
                     -EBUSY);
    assert_int_equal(
        put(&s, (struct berth_instance){.id = 4, .workload = "gpu", .node = "a", .gpus = 1, .state = BERTH_RUNNING}),
        -EBUSY);
    struct berth_shape shape = {PORT(80), .node = "a"};
    scene_put(&s, (struct berth_workload){.id = "one-more", .replicas = 1, .shape = shape});
    for (int round = 0; round < 2; round++) { /* with both instances, and with one of them removed */
        scene_plan(&s);
        for (size_t i = 0; i < berth_plan_actions(s.p); i++) {
            struct berth_action a = berth_plan_action(s.p, i);
            assert_false(a.op == BERTH_PLACE && strcmp(a.workload, "one-more") == 0);
        }
        if (round == 0)
            scene_check(&s, berth_instance_remove(s.c, 1, &s.err));
        scene_audit(&s);
    }
    scene_cleanup(&s);
}

static void refused_put_changes_nothing(void **state)
{
    (void)state;
    struct scene s = stage();
    scene_check(&s, put(&s, (struct berth_instance){.id = 1, .workload = "port", .node = "a", .state = BERTH_RUNNING}));
    scene_check(&s, put(&s, (struct berth_instance){.id = 2, .workload = "port", .node = "b", .state = BERTH_RUNNING}));
    scene_plan(&s);
    uint64_t before = berth_plan_hash(s.p);
    /* Would move to the port of the other instance. */
    assert_int_equal(put(&s, (struct berth_instance){.id = 2, .workload = "port", .node = "a", .state = BERTH_RUNNING}),
                     -EBUSY);
    /* A refused instance of an unknown workload leaves nothing behind. */
    struct berth_shape shape = {PORT(80)};
    assert_int_equal(put(&s,
                         (struct berth_instance){
                             .id = 3, .workload = "ghost", .node = "a", .state = BERTH_RUNNING, .shape = &shape}),
                     -EBUSY);
    assert_true(cluster_workload_find(s.c, "ghost") == NONE);
    scene_audit(&s);
    scene_plan(&s);
    assert_true(berth_plan_hash(s.p) == before);
    scene_cleanup(&s);
}

static void instance_without_workload_is_stopped(void **state)
{
    (void)state;
    struct scene s = stage();
    struct berth_shape shape = {NEEDS(100, 100)};
    scene_check(&s, berth_workload_remove(s.c, "port", &s.err));
    scene_check(&s, berth_workload_remove(s.c, "gpu", &s.err));
    scene_check(&s, berth_workload_remove(s.c, "half", &s.err));
    scene_check(&s, put(&s, (struct berth_instance){
                                .id = 7, .workload = "ghost", .node = "a", .state = BERTH_RUNNING, .shape = &shape}));
    s.next = 8;
    scene_audit(&s);
    scene_expect_and_apply(&s, "stop ghost/0 a removed #7");
    scene_check(&s,
                put(&s, (struct berth_instance){.id = 7, .workload = "ghost", .node = "b", .state = BERTH_STOPPING}));
    scene_audit(&s);
    scene_remove(&s, 7);
    assert_true(cluster_workload_find(s.c, "ghost") == NONE);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void instance_keeps_its_shape(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape old = {NEEDS(900, 10)};
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 2, 200, 10);
    scene_check(&s, put(&s, (struct berth_instance){
                                .id = 1, .workload = "web", .node = "a", .state = BERTH_RUNNING, .shape = &old}));
    scene_expect(&s, "");
    assert_int_equal(scene_reason(&s, "web", "short").nodes, 1);
    scene_check(&s, put(&s, (struct berth_instance){.id = 1, .workload = "web", .node = "a", .state = BERTH_RUNNING}));
    scene_expect(&s, ""); /* a report does not change what the instance holds */
    scene_cleanup(&s);
}

/* Even if it is the last object that names its workload. */
static void instance_of_removed_workload_keeps_its_holds(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape shape = {NEEDS(900, 10), PORT(80)};
    scene_node(&s, "a", 1000, 1000);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 1, .shape = shape});
    scene_running(&s, "web", 0, "a");
    scene_check(&s, berth_workload_remove(s.c, "web", &s.err));
    scene_check(&s, put(&s, (struct berth_instance){.id = 1, .workload = "web", .node = "a", .state = BERTH_STOPPING}));
    scene_audit(&s);
    scene_service(&s, "cpu", 1, 200, 10);
    scene_put(&s, (struct berth_workload){.id = "port", .replicas = 1, .shape = {PORT(80)}});
    scene_expect_and_apply(&s, "reserve cpu/0 a pending after 1; reserve port/0 a pending after 1");
    scene_remove(&s, 1);
    assert_true(cluster_workload_find(s.c, "web") == NONE);
    scene_expect_and_apply(&s, "promote cpu/0 a pending #2; promote port/0 a pending #3");
    scene_cleanup(&s);
}

static void sums_do_not_overflow(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape huge = {LIST(requests, struct berth_amount, {"cpu", BERTH_AMOUNT_MAX})};
    int rc = 0;
    uint64_t id = 0;
    scene_node(&s, "a", 1, 1);
    while (rc == 0 && id < 2000)
        rc = put(&s, (struct berth_instance){
                         .id = ++id, .workload = "w", .node = "a", .state = BERTH_RUNNING, .shape = &huge});
    assert_int_equal(rc, -EOVERFLOW);
    assert_non_null(strstr(s.err.text, "cpu"));
    scene_audit(&s);
    assert_int_equal(berth_nodes_over_capacity(s.c), 1);
    scene_plan(&s);
    assert_int_equal(berth_plan_actions(s.p), id - 1); /* all of them are stopped */
    scene_cleanup(&s);
}

static void instances_at_random(void **state)
{
    static const char *const workloads[] = {"port", "gpu", "half", "ghost"};
    (void)state;
    struct scene s = stage();
    uint64_t seed = scene_seed();
    for (int round = 0; round < 3000; round++) {
        uint64_t id = 1 + scene_random_below(&seed, 24);
        uint32_t which = scene_random_below(&seed, 4);
        struct berth_instance i = {.id = id,
                                   .workload = workloads[which],
                                   .ordinal = scene_random_below(&seed, 9),
                                   .node = scene_random_below(&seed, 2) ? "a" : "b",
                                   .state = (enum berth_state)scene_random_below(&seed, 6),
                                   .ready = scene_random_below(&seed, 2),
                                   .gpus = which == 1 || which == 2 ? (uint64_t)1 << scene_random_below(&seed, 2) : 0};
        if (scene_random_below(&seed, 4) == 0)
            i.replaces = id + 1;
        if (scene_random_below(&seed, 4) == 0)
            (void)berth_instance_remove(s.c, id, NULL);
        else
            (void)berth_instance_put(s.c, &i, NULL);
        scene_audit(&s);
    }
    for (uint64_t id = 1; id <= 24; id++)
        (void)berth_instance_remove(s.c, id, NULL);
    scene_check(&s, berth_node_remove(s.c, "a", &s.err));
    scene_check(&s, berth_node_remove(s.c, "b", &s.err));
    scene_audit(&s);
    assert_int_equal(s.c->stopping + s.c->reserved + s.c->replacing, 0);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instance_is_replaced_by_id), cmocka_unit_test(instances_are_removed),
        cmocka_unit_test(port_states_are_compatible),    cmocka_unit_test(system_port_is_refused),
        cmocka_unit_test(gpu_is_not_allocated_twice),    cmocka_unit_test(adopted_instances_may_conflict),
        cmocka_unit_test(refused_put_changes_nothing),   cmocka_unit_test(instance_without_workload_is_stopped),
        cmocka_unit_test(instance_keeps_its_shape),      cmocka_unit_test(sums_do_not_overflow),
        cmocka_unit_test(instances_at_random),           cmocka_unit_test(instance_of_removed_workload_keeps_its_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
