/* topology_test.c - which pods count for spread, affinity and anti-affinity; observed through plans.
 *
 * Covers the counted states, selection by every operator, both sides of anti-affinity, the limit per node, and counts
 * that change within and between placement attempts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static const char *const web_value[] = {"web"};
static const struct berth_expr web_expr = {"app", BERTH_IN, web_value, 1};

/* Affinity or anti-affinity to pods with app=web, per node. */
static struct berth_affinity web_affinity(bool apart)
{
    return (struct berth_affinity){
        .topology = "node", .select = {.exprs = &web_expr, .exprs_len = 1},
             .apart = apart
    };
}

static void put_web(struct scene *s, uint32_t replicas)
{
    scene_put(
        s, (struct berth_workload){.id = "web", .replicas = replicas, LABEL("app", "web"), .shape = {NEEDS(10, 10)}});
}

static void instances_that_have_not_ended_count(void **state)
{
    static const struct {
        enum berth_state state;
        bool counts;
    } rows[] = {
        {BERTH_RESERVED, true },
        {BERTH_ASSIGNED, true },
        {BERTH_STARTING, true },
        {BERTH_RUNNING,  true },
        {BERTH_STOPPING, true },
        {BERTH_ENDED,    false},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_new();
        struct berth_affinity apart = web_affinity(true), near = web_affinity(false);
        scene_node(&s, "a", 1000, 1000);
        scene_put(&s, (struct berth_workload){.id = "web", .kind = BERTH_JOB, .replicas = 1, LABEL("app", "web")});
        scene_instance(&s, (struct berth_instance){.workload = "web", .node = "a", .state = rows[i].state});
        scene_put(&s, (struct berth_workload){
                          .id = "far", .replicas = 1, .shape = {.near = &apart, .near_len = 1}
        });
        scene_put(&s, (struct berth_workload){
                          .id = "by", .replicas = 1, .shape = {.near = &near, .near_len = 1}
        });
        scene_plan(&s);
        /* then the pod may wait for the stop, and no other pod is placed there before */
        bool stops = rows[i].state == BERTH_STOPPING;
        assert_int_equal(scene_pending(&s, "far"), rows[i].counts && !stops);
        for (size_t n = 0; n < berth_plan_actions(s.p); n++) {
            struct berth_action a = berth_plan_action(s.p, n);
            if (rows[i].counts && strcmp(a.workload, "far") == 0) {
                assert_int_equal(a.op, BERTH_RESERVE);
                assert_int_equal(a.waits_len, 1);
            }
        }
        assert_int_equal(scene_pending(&s, "by"), !rows[i].counts);
        scene_cleanup(&s);
    }
}

static void pods_are_selected_by_workload_labels(void **state)
{
    static const char *const web[] = {"web"}, *const others[] = {"db", "cache"}, *const three[] = {"3"};
    static const struct {
        struct berth_expr expr;
        bool selects;
    } rows[] = {
        {{"app", BERTH_IN, web, 1},           true },
        {{"app", BERTH_IN, others, 2},        false},
        {{"app", BERTH_NOT_IN, others, 2},    true },
        {{"app", BERTH_NOT_IN, web, 1},       false},
        {{"app", BERTH_EXISTS, NULL, 0},      true },
        {{"tier", BERTH_EXISTS, NULL, 0},     false},
        {{"tier", BERTH_NOT_EXISTS, NULL, 0}, true },
        {{"size", BERTH_GT, three, 1},        true },
        {{"size", BERTH_LT, three, 1},        false},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_new();
        struct berth_affinity near = {
            .topology = "node", .select = {.exprs = &rows[i].expr, .exprs_len = 1}
        };
        scene_node(&s, "a", 1000, 1000);
        scene_put(&s, (struct berth_workload){
                          .id = "web", .replicas = 1, LIST(labels, struct berth_label, {"app", "web"}, {"size", "5"})});
        scene_running(&s, "web", 0, "a");
        scene_put(&s, (struct berth_workload){
                          .id = "by",
                          .replicas = 1,
                          .priority = 1,
                          LIST(labels, struct berth_label, {"app",         "cache"      },
                             {"tier",        "x"          }
                             ),
                          .shape = {.near = &near, .near_len = 1}
        });
        scene_plan(&s);
        /* A pod that selects itself may be the first. */
        bool self = i == 1 || i == 3 || i == 5;
        if (scene_pending(&s, "by") != (rows[i].selects || self ? 0 : 1))
            fail_msg("row %zu", i);
        scene_cleanup(&s);
    }
}

static void anti_affinity_binds_both_sides(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_affinity apart = web_affinity(true);
    scene_node(&s, "a", 1000, 1000);
    scene_put(&s, (struct berth_workload){
                      .id = "guard", .replicas = 1, .shape = {.near = &apart, .near_len = 1}
    });
    scene_running(&s, "guard", 0, "a");
    put_web(&s, 1);
    scene_expect_and_apply(&s, "");
    assert_int_equal(scene_reason(&s, "web", "anti-affinity").nodes, 1);
    scene_node(&s, "b", 1000, 1000);
    scene_expect_and_apply(&s, "place web/0 b pending");
    scene_check(&s, berth_workload_remove(s.c, "guard", &s.err));
    put_web(&s, 2); /* a removed workload keeps no pod away */
    scene_expect(&s, "stop guard/0 a removed #1; place web/1 a pending");
    scene_cleanup(&s);
}

/* Neither pod exists before the plan. */
static void placements_of_the_plan_count(void **state)
{
    static const int32_t priorities[] = {-1, 1};
    (void)state;
    for (size_t i = 0; i < ROWS(priorities); i++) {
        struct scene s = scene_new();
        struct berth_affinity apart = web_affinity(true);
        scene_node(&s, "a", 1000, 1000);
        scene_put(
            &s, (struct berth_workload){
                    .id = "guard", .replicas = 1, .priority = priorities[i], .shape = {.near = &apart, .near_len = 1}
        });
        put_web(&s, 1);
        scene_expect_and_apply(&s, i ? "place guard/0 a pending" : "place web/0 a pending");
        scene_cleanup(&s);
    }
}

static void anti_affinity_to_own_pods(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_affinity apart = web_affinity(true);
    for (const char *id = "a\0b\0c\0"; *id; id += 2)
        scene_node(&s, id, 1000, 1000);
    scene_put(&s, (struct berth_workload){
                      .id = "web", .replicas = 4, LABEL("app", "web"), .shape = {.near = &apart, .near_len = 1}
    });
    scene_expect_and_apply(&s, "place web/0 a pending; place web/1 b pending; place web/2 c pending");
    assert_int_equal(scene_pending(&s, "web"), 1);
    scene_cleanup(&s);
}

static void first_pod_with_affinity_to_itself_is_placed(void **state)
{
    (void)state;
    struct scene s = scene_new();
    const struct berth_affinity near = {
        .topology = "zone", .select = {.exprs = &web_expr, .exprs_len = 1}
    };
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(1000, 1000)}); /* has no zone */
    scene_put_node(&s, (struct berth_node){.id = "b", .zone = "z1", HAS(500, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "c", .zone = "z1", HAS(500, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "d", .zone = "z2", HAS(500, 1000)});
    scene_put(
        &s,
        (struct berth_workload){
            .id = "web", .replicas = 3, LABEL("app", "web"), .shape = {NEEDS(300, 10), .near = &near, .near_len = 1}
    });
    scene_expect_and_apply(&s,
                           "place web/0 b pending; place web/1 c pending"); /* the zone of the first pod is then full */
    assert_int_equal(scene_pending(&s, "web"), 1);
    scene_cleanup(&s);
}

static void max_per_node_is_kept(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_node(&s, "b", 1000, 1000);
    scene_put(&s, (struct berth_workload){
                      .id = "w", .replicas = 6, .shape = {NEEDS(10, 10), .max_per_node = 2}
    });
    scene_running(&s, "w", 5, "a");
    scene_expect_and_apply(&s, "place w/0 b pending; place w/1 a pending; place w/2 b pending");
    assert_int_equal(scene_reason(&s, "w", "per-node").nodes, 2);
    scene_cleanup(&s);
}

/* z1 has two nodes, z2 one full node. z2 counts for the skew, because it could take the pod if it were empty. */
static void spread_counts_domains_that_could_take_the_pod(void **state)
{
    (void)state;
    struct scene s = scene_new();
    const struct berth_spread even = {
        .topology = "zone", .select = {.exprs = &web_expr, .exprs_len = 1},
             .max_skew = 1
    };
    struct berth_shape shape = {NEEDS(100, 10), .arch = "amd64", .spread = &even, .spread_len = 1};
    scene_put_node(&s, (struct berth_node){.id = "a", .zone = "z1", .arch = "amd64", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "b", .zone = "z2", .arch = "amd64", HAS(100, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "c", .zone = "z3", .arch = "arm64", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "d", .arch = "amd64", HAS(1000, 1000)});
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 5, LABEL("app", "web"), .shape = shape});
    scene_expect_and_apply(&s, "place web/0 a pending; place web/1 b pending; place web/2 a pending");
    assert_int_equal(scene_reason(&s, "web", "spread").nodes, 2); /* a, and d, which has no zone */
    scene_cleanup(&s);
}

/* Many single-pod workloads with the same labels, more than fit: each counts all placed before it. */
static void single_pods_count_each_other(void **state)
{
    enum { PODS = 200, NODES = 6 };
    static const char *const nodes[NODES] = {"a", "b", "c", "d", "e", "f"}, *const zones[] = {"x", "y", "z"};
    (void)state;
    for (unsigned apart = 0; apart < 2; apart++) {
        struct scene s = scene_new();
        struct berth_affinity near = web_affinity(true);
        struct berth_spread spread = {
            .topology = "zone", .select = {.exprs = &web_expr, .exprs_len = 1},
                 .max_skew = 1
        };
        uint32_t placed = 0, in[3] = {0};
        for (size_t n = 0; n < NODES; n++) /* the last zone has little room */
            scene_put_node(
                &s, (struct berth_node){.id = nodes[n], .zone = zones[n % 3], HAS(n % 3 == 2 ? 200 : 1000, 1000)});
        for (unsigned i = 0; i < PODS; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "p%u", i);
            struct berth_workload w = {.id = id, .replicas = 1, LABEL("app", "web"), .shape = {NEEDS(10, 1)}};
            w.shape.near = &near;
            w.shape.near_len = apart;
            w.shape.spread = &spread;
            w.shape.spread_len = !apart;
            scene_put(&s, w);
        }
        scene_plan(&s);
        for (size_t i = 0; i < berth_plan_actions(s.p); i++, placed++)
            for (size_t n = 0; n < NODES; n++)
                in[n % 3] += strcmp(berth_plan_action(s.p, i).node, nodes[n]) == 0;
        assert_int_equal(placed, apart ? NODES : 41 + 41 + 40);
        assert_int_equal(in[2], apart ? 2 : 40);
        assert_int_equal(in[0], apart ? 2 : 41);
        scene_cleanup(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instances_that_have_not_ended_count),
        cmocka_unit_test(pods_are_selected_by_workload_labels),
        cmocka_unit_test(anti_affinity_binds_both_sides),
        cmocka_unit_test(placements_of_the_plan_count),
        cmocka_unit_test(anti_affinity_to_own_pods),
        cmocka_unit_test(first_pod_with_affinity_to_itself_is_placed),
        cmocka_unit_test(max_per_node_is_kept),
        cmocka_unit_test(spread_counts_domains_that_could_take_the_pod),
        cmocka_unit_test(single_pods_count_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
