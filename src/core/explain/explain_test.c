/* explain_test.c - reasons why a pod has no place: every reason with its nodes, sorted by their number, and the nearest
 * nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static struct berth_pending pending(struct scene *s, const char *workload)
{
    for (size_t i = 0; i < berth_plan_pendings(s->p); i++) {
        struct berth_pending p = berth_plan_pending(s->p, i);
        if (strcmp(p.workload, workload) == 0)
            return p;
    }
    fail_msg("%s is not left over", workload);
    return (struct berth_pending){0};
}

/* Expects the reasons in the form "reason what nodes/only; ..." */
static void expect_reasons(struct scene *s, const char *workload, const char *want)
{
    char got[1024] = "";
    size_t len = 0;
    struct berth_pending p = pending(s, workload);
    for (size_t i = 0; i < p.reasons_len; i++) {
        const struct berth_reason *r = &p.reasons[i];
        len +=
            (size_t)snprintf(got + len, sizeof got - len, "%s%s%s%s %llu/%llu", len ? "; " : "", r->reason,
                             *r->what ? " " : "", r->what, (unsigned long long)r->nodes, (unsigned long long)r->only);
        assert_true(strlen(r->text) > 10);
    }
    assert_string_equal(got, want);
}

/* Six nodes: two are small, one is cordoned, one is small and of another architecture. */
static struct scene stage(void)
{
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", .arch = "amd64", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "b", .arch = "amd64", HAS(1500, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "c", .arch = "amd64", HAS(4000, 4000), .state = BERTH_NODE_CORDONED});
    scene_put_node(&s, (struct berth_node){.id = "d", .arch = "arm64", HAS(1000, 4000)});
    scene_put_node(&s, (struct berth_node){.id = "e", .arch = "amd64", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "f", .arch = "amd64", HAS(1000, 1000)});
    return s;
}

static void reasons_are_counted_and_sorted(void **state)
{
    (void)state;
    struct scene s = stage();
    scene_put(&s, (struct berth_workload){
                      .id = "w", .replicas = 1, .shape = {NEEDS(2000, 2000), .arch = "amd64"}
    });
    scene_expect(&s, "");
    expect_reasons(&s, "w", "short cpu 5/0; short memory 4/0; state 1/1; arch 1/0");
    struct berth_reason r = scene_reason(&s, "w", "short");
    assert_string_equal(r.text, "5 of 6 nodes have too little cpu left: 2 needed, at most 1500m free");
    assert_string_equal(scene_reason(&s, "w", "state").text, "1 of 6 nodes is cordoned or not ready");
    scene_cleanup(&s);
}

static void reasons_use_state_after_the_plan(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "w", 3, 400, 1);
    scene_expect(&s, "place w/0 a pending; place w/1 a pending");
    struct berth_pending p = pending(&s, "w");
    assert_int_equal(p.ordinals_len, 1);
    assert_int_equal(p.ordinals[0], 2);
    assert_string_equal(p.reasons[0].text, "the only node has too little cpu left: 400m needed, at most 200m free");
    scene_cleanup(&s);
}

static void reasons_name_their_subject(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_volume v = {.id = "disk", .zone = "z9"};
    scene_check(&s, berth_volume_put(s.c, &v, &s.err));
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), LIST(ports, struct berth_port, {BERTH_UDP, 53, 1})});
    scene_node(&s, "b", 10, 10);
    struct berth_shape shape = {NAMES(volumes, "disk"), LIST(ports, struct berth_port, {BERTH_UDP, 53, 1})};
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = shape});
    scene_expect(&s, "");
    expect_reasons(&s, "w", "volume disk 2/1; port udp/53 1/0");
    assert_string_equal(scene_reason(&s, "w", "port").text, "1 of 2 nodes has the port in use: udp/53");
    scene_cleanup(&s);
}

/* There is room for the pod: it waits only because its gang still stops an instance. */
static void spare_pods_wait_for_stops_of_their_gang(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    scene_put(&s,
              (struct berth_workload){
                  .id = "w", .kind = BERTH_JOB, .replicas = 3, .gang = "g", .gang_min = 1, .shape = {NEEDS(100, 100)}});
    scene_running(&s, "w", 0, "a");
    scene_instance(&s, (struct berth_instance){.workload = "w", .ordinal = 1, .node = "a", .state = BERTH_STOPPING});
    scene_expect(&s, "");
    assert_int_equal(pending(&s, "w").ordinals_len, 1);
    assert_int_equal(pending(&s, "w").ordinals[0], 2);
    expect_reasons(&s, "w", "stopping 0/0");
    scene_remove(&s, 2);
    scene_expect_and_apply(&s, "place w/1 b pending; place w/2 a pending");
    scene_cleanup(&s);
}

static void reason_without_nodes(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_service(&s, "w", 2, 1, 1);
    scene_expect(&s, "");
    expect_reasons(&s, "w", "no-nodes 0/0");
    assert_int_equal(pending(&s, "w").ordinals_len, 2);
    scene_cleanup(&s);
}

/* A request above the capacity of every node is the first reason, in one sentence, even if other resources are short on
 * as many nodes. */
static void request_above_every_node_is_first_reason(void **state)
{
    static const struct {
        int64_t cpu, memory;
        const char *text;
    } rows[] = {
        {64000, 1000,             "no node has 64 CPUs; the largest has 4"                        },
        {4500,  1000,             "no node has 4500m of cpu; the largest has 4"                   },
        {1000,  (int64_t)1 << 40, "no node has 1Ti of memory; the largest has 3.9Ki"              },
        {2000,  1000,             "5 of 6 nodes have too little cpu left: 2 needed, at most 1500m"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage();
        scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = {NEEDS(rows[i].cpu, rows[i].memory)}});
        scene_expect(&s, "");
        struct berth_reason first = pending(&s, "w").reasons[0];
        assert_string_equal(first.reason, "short");
        if (strncmp(first.text, rows[i].text, strlen(rows[i].text)) != 0)
            fail_msg("\"%s\" is not \"%s\"", first.text, rows[i].text);
        scene_cleanup(&s);
    }
}

static void resource_of_no_node_is_named(void **state)
{
    (void)state;
    struct scene s = stage();
    scene_put(&s, (struct berth_workload){
                      .id = "w", .replicas = 1, .shape = {LIST(requests, struct berth_amount, {"fpga", 2})}});
    scene_expect(&s, "");
    assert_string_equal(pending(&s, "w").reasons[0].text, "no node has any fpga");
    scene_cleanup(&s);
}

static void too_many_gpus_are_named(void **state)
{
    static const struct {
        uint32_t count;
        const char *model;
        int64_t memory;
        const char *text;
    } rows[] = {
        {8, "H100", 0,                "no node has 8 H100 GPUs; the largest has 2"                            },
        {1, "B200", 0,                "no node has 1 B200 GPU"                                                },
        {4, NULL,   0,                "no node has 4 GPUs; the largest has 2"                                 },
        {2, NULL,   (int64_t)1 << 40, "no node has 2 GPUs with 1Ti of memory each"                            },
        {2, "A100", 0,                "2 of 3 nodes do not have enough GPUs of the requested model and memory"},
    };
    static const struct berth_gpu h100[] =
        {
            {"H100", 1, false},
            {"H100", 1, false}
    },
                                  a100[] = {{"A100", 1, false}, {"A100", 1, true}, {"A100", 1, false}};
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_new();
        scene_node(&s, "a", 1000, 1000);
        scene_put_node(&s, (struct berth_node){.id = "b", HAS(1000, 1000), .gpus = h100, .gpus_len = 2});
        scene_put_node(&s, (struct berth_node){
                               .id = "c", HAS(1000, 1000), .gpus = a100, .gpus_len = 3, .state = BERTH_NODE_CORDONED});
        const char *models[] = {rows[i].model};
        scene_put(&s, (struct berth_workload){.id = "w",
                                              .replicas = 1,
                                              .shape = {.gpu = {.count = rows[i].count,
                                                                .memory_bytes = rows[i].memory,
                                                                .models = models,
                                                                .models_len = rows[i].model != NULL}}});
        scene_expect(&s, "");
        assert_string_equal(pending(&s, "w").reasons[0].text, rows[i].text);
        scene_cleanup(&s);
    }
}

/* A window comes before the reasons of other nodes only if the window alone keeps the pod away. */
static void redundant_window_is_last_reason(void **state)
{
    static const struct {
        bool full;
        const char *want;
    } rows[] = {
        {true,  "short cpu 3/3; window tidy 1/0"},
        {false, "window tidy 1/0; short cpu 2/2"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_new();
        const struct berth_window window = {.id = "tidy",
                                            NAMES(nodes, "a"),
                                            .start_ns = s.now_ns + 60 * SCENE_SECOND_NS,
                                            .end_ns = s.now_ns + 120 * SCENE_SECOND_NS};
        s.policy.windows = &window;
        s.policy.windows_len = 1;
        scene_node(&s, "a", 4000, 1000);
        scene_node(&s, "b", 4000, 1000);
        scene_node(&s, "c", 4000, 1000);
        scene_service(&s, "other", 2 + rows[i].full, 3500, 10);
        scene_running(&s, "other", 0, "b");
        scene_running(&s, "other", 1, "c");
        if (rows[i].full)
            scene_running(&s, "other", 2, "a");
        scene_service(&s, "w", 1, 2000, 10);
        scene_expect(&s, "");
        expect_reasons(&s, "w", rows[i].want);
        scene_cleanup(&s);
    }
}

static void sizes_are_readable(void **state)
{
    static const struct {
        const char *resource;
        int64_t need, has;
        const char *part;
    } rows[] = {
        {"memory",        (int64_t)64 << 30,       (int64_t)32 << 30, "64Gi needed, at most 32Gi free"  },
        {"memory",        5000,                    4000,              "4.9Ki needed, at most 3.9Ki"     },
        {"memory",        ((int64_t)10 << 30) + 1, (int64_t)10 << 30, "10.1Gi needed, at most 10Gi free"},
        {"memory",        20480,                   10240,             "20Ki needed, at most 10Ki free"  },
        {"cpu",           2500,                    2000,              "2500m needed, at most 2 free"    },
        {"fpga",          200000,                  100000,            "200000 needed, at most 100000"   },
        {"hugepages-2Mi", (int64_t)64 << 20,       (int64_t)32 << 20, "64Mi needed, at most 32Mi free"  },
        {"traffic",       (int64_t)40 << 30,       (int64_t)20 << 30, "40Gi needed, at most 20Gi free"  },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_new();
        scene_put_node(&s, (struct berth_node){
                               .id = "a", LIST(allocatable, struct berth_amount, {rows[i].resource, rows[i].need})});
        scene_put(&s, (struct berth_workload){.id = "other",
                                              .replicas = 1,
                                              .shape = {LIST(requests, struct berth_amount,
                                                             {rows[i].resource, rows[i].need - rows[i].has})}});
        scene_running(&s, "other", 0, "a");
        scene_put(&s, (struct berth_workload){
                          .id = "w",
                          .replicas = 1,
                          .shape = {LIST(requests, struct berth_amount, {rows[i].resource, rows[i].need})}});
        scene_expect(&s, "");
        struct berth_reason r = scene_reason(&s, "w", "short");
        assert_string_equal(r.what, rows[i].resource);
        if (!strstr(r.text, rows[i].part))
            fail_msg("\"%s\" does not say \"%s\"", r.text, rows[i].part);
        scene_cleanup(&s);
    }
}

static void equal_shapes_with_other_labels_have_own_reasons(void **state)
{
    (void)state;
    struct scene s = scene_new();
    const struct berth_expr app = {"app", BERTH_IN, (const char *const[]){"noisy"}, 1};
    const struct berth_affinity apart = {
        .topology = "node", .select = {.exprs = &app, .exprs_len = 1},
             .apart = true
    };
    scene_node(&s, "a", 1000, 1000);
    scene_put(&s, (struct berth_workload){
                      .id = "guard", .replicas = 1, .priority = 9, .shape = {.near = &apart, .near_len = 1}
    });
    scene_put(&s, (struct berth_workload){.id = "calm", .replicas = 1, .shape = {NEEDS(2000, 1)}});
    scene_put(&s,
              (struct berth_workload){.id = "noisy", .replicas = 1, LABEL("app", "noisy"), .shape = {NEEDS(2000, 1)}});
    scene_expect(&s, "place guard/0 a pending");
    expect_reasons(&s, "calm", "short cpu 1/1");
    expect_reasons(&s, "noisy", "short cpu 1/0; anti-affinity 1/0");
    expect_reasons(&s, "calm", "short cpu 1/1");
    scene_cleanup(&s);
}

static void pendings_are_in_plan_order(void **state)
{
    static const char *const order[] = {"w2", "w1", "w0"};
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 10, 10);
    for (int32_t i = 0; i < 3; i++)
        scene_put(&s,
                  (struct berth_workload){.id = order[2 - i], .replicas = 1, .priority = i, .shape = {NEEDS(2000, 1)}});
    scene_expect(&s, "");
    assert_int_equal(berth_plan_pendings(s.p), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(berth_plan_pending(s.p, i).workload, order[i]);
    assert_int_equal(berth_plan_stats(s.p).unplaced, 3);
    scene_cleanup(&s);
}

/* Sorted by the fewest reasons, then by the smallest missing part, then by position; each node with all that it
 * lacks. */
static void nearest_nodes_are_sorted_by_shortfall(void **state)
{
    static const char *const want[] = {
        "c: is cordoned or not ready",
        "b: has 1500m of cpu free, 2 needed; has 1000 of memory free, 1.9Ki needed",
        "d: has another architecture; has 1 of cpu free, 2 needed",
        "a: has 1 of cpu free, 2 needed; has 1000 of memory free, 1.9Ki needed",
    };
    struct berth_near_miss got[6];
    char line[256];
    (void)state;
    struct scene s = stage();
    scene_put(&s, (struct berth_workload){
                      .id = "w", .replicas = 1, .shape = {NEEDS(2000, 1900), .arch = "amd64"}
    });
    scene_expect(&s, "");
    assert_int_equal(berth_plan_nearest(s.p, 0, got, 4), 4);
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(line, sizeof line, "%s: %s", got[i].node, got[i].text);
        assert_string_equal(line, want[i]);
    }
    assert_int_equal(got[0].reasons, 1);
    assert_int_equal(berth_plan_nearest(s.p, 0, got, 6), 6);
    assert_string_equal(got[4].node, "e");
    assert_int_equal(berth_plan_nearest(s.p, 0, got, 0), 0);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_are_counted_and_sorted),
        cmocka_unit_test(reasons_use_state_after_the_plan),
        cmocka_unit_test(reasons_name_their_subject),
        cmocka_unit_test(spare_pods_wait_for_stops_of_their_gang),
        cmocka_unit_test(reason_without_nodes),
        cmocka_unit_test(request_above_every_node_is_first_reason),
        cmocka_unit_test(resource_of_no_node_is_named),
        cmocka_unit_test(too_many_gpus_are_named),
        cmocka_unit_test(redundant_window_is_last_reason),
        cmocka_unit_test(sizes_are_readable),
        cmocka_unit_test(equal_shapes_with_other_labels_have_own_reasons),
        cmocka_unit_test(pendings_are_in_plan_order),
        cmocka_unit_test(nearest_nodes_are_sorted_by_shortfall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
