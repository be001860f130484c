/* explain_test.c - why a pod was left over: every reason with its nodes, most first, and the smallest change that helps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene_test.h"

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

/* "reason what nodes/only; ..." */
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
    scene_see(&s, "");
    expect_reasons(&s, "w", "short cpu 5/0; short memory 4/0; state 1/1; arch 1/0");
    struct berth_reason r = scene_reason(&s, "w", "short");
    assert_string_equal(r.text, "5 of 6 nodes have too little cpu left: 2 needed, at most 1500m free");
    assert_string_equal(scene_reason(&s, "w", "state").text, "1 of 6 nodes is not ready for new work");
    scene_cleanup(&s);
}

static void the_smallest_change(void **state)
{
    static const struct {
        int64_t cpu, memory;
        const char *arch, *help;
    } rows[] = {
        {2000, 1000, NULL,    "asking for 1500m of cpu instead of 2 would fit on b"        },
        {1600, 900,  "arm64", "asking for 1 of cpu instead of 1600m would fit on d"        },
        {1000, 5000, NULL,    "asking for 3.9Ki of memory instead of 4.9Ki would fit on d" },
        {1000, 1000, "mips",  "for another architecture, 5 of 6 nodes would take it"       },
        {4000, 4000, "amd64", "once ready again, 1 of 6 nodes would take it"               },
        {5000, 5000, "amd64", "nearest is b, which refuses for: short (cpu) short (memory)"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage();
        scene_put(&s,
                  (struct berth_workload){
                      .id = "w", .replicas = 1, .shape = {NEEDS(rows[i].cpu, rows[i].memory), .arch = rows[i].arch}
        });
        scene_see(&s, "");
        assert_string_equal(pending(&s, "w").help, rows[i].help);
        scene_cleanup(&s);
    }
}

/* What the sentence proposes is true. */
static void the_change_helps(void **state)
{
    (void)state;
    struct scene s = stage();
    scene_service(&s, "w", 1, 1501, 1000);
    scene_see(&s, "");
    assert_string_equal(pending(&s, "w").help, "asking for 1500m of cpu instead of 1501m would fit on b");
    scene_service(&s, "w", 1, 1500, 1000);
    scene_see(&s, "place w/0 b pending");
    scene_cleanup(&s);
}

static void the_state_after_the_plan_counts(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "w", 3, 400, 1);
    scene_see(&s, "place w/0 a pending; place w/1 a pending");
    struct berth_pending p = pending(&s, "w");
    assert_int_equal(p.ordinals_len, 1);
    assert_int_equal(p.ordinals[0], 2);
    assert_string_equal(p.reasons[0].text, "the only node has too little cpu left: 400m needed, at most 200m free");
    assert_string_equal(p.help, "asking for 200m of cpu instead of 400m would fit on a");
    scene_cleanup(&s);
}

static void what_is_refused_for_is_named(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_volume v = {.id = "disk", .zone = "z9"};
    scene_must(&s, berth_volume_put(s.c, &v, &s.err));
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), LIST(ports, struct berth_port, {BERTH_UDP, 53, 1})});
    scene_node(&s, "b", 10, 10);
    struct berth_shape shape = {NAMES(volumes, "disk"), LIST(ports, struct berth_port, {BERTH_UDP, 53, 1})};
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = shape});
    scene_see(&s, "");
    expect_reasons(&s, "w", "volume disk 2/1; port udp/53 1/0");
    assert_string_equal(scene_reason(&s, "w", "port").text, "1 of 2 nodes has the port in use: udp/53");
    assert_string_equal(pending(&s, "w").help, "without the volume, or once it is free, 1 of 2 nodes would take it");
    scene_cleanup(&s);
}

/* There is room for it: that its gang still stops something is all that keeps it away. */
static void what_a_gang_may_have_beyond_its_minimum_waits_for_its_stops(void **state)
{
    (void)state;
    struct scene s = scene_stage(2);
    scene_put(&s,
              (struct berth_workload){
                  .id = "w", .kind = BERTH_JOB, .replicas = 3, .gang = "g", .gang_min = 1, .shape = {NEEDS(100, 100)}});
    scene_running(&s, "w", 0, "a");
    scene_instance(&s, (struct berth_instance){.workload = "w", .ordinal = 1, .node = "a", .state = BERTH_STOPPING});
    scene_see(&s, "");
    assert_int_equal(pending(&s, "w").ordinals_len, 1);
    assert_int_equal(pending(&s, "w").ordinals[0], 2);
    expect_reasons(&s, "w", "stopping 0/0");
    scene_gone(&s, 2);
    scene_step(&s, "place w/1 b pending; place w/2 a pending");
    scene_cleanup(&s);
}

static void without_nodes(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_service(&s, "w", 2, 1, 1);
    scene_see(&s, "");
    expect_reasons(&s, "w", "no-nodes 0/0");
    assert_string_equal(pending(&s, "w").help, "");
    assert_int_equal(pending(&s, "w").ordinals_len, 2);
    scene_cleanup(&s);
}

static void the_smallest_cut_and_the_taint_are_named(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 900, 1000);
    scene_node(&s, "b", 1000, 500);
    scene_service(&s, "w", 1, 1000, 1000);
    scene_see(&s, "");
    assert_string_equal(pending(&s, "w").help, "asking for 900m of cpu instead of 1 would fit on a");
    scene_node(&s, "b", 1000, 950);
    scene_see(&s, "");
    assert_string_equal(pending(&s, "w").help, "asking for 950 of memory instead of 1000 would fit on b");
    scene_cleanup(&s);

    s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a",
                                           HAS(1000, 1000),
                                           LIST(taints, struct berth_taint, {"gpu", "", BERTH_NO_SCHEDULE})});
    scene_service(&s, "w", 1, 10, 10);
    scene_see(&s, "");
    assert_string_equal(pending(&s, "w").help, "with a toleration of the taint gpu, the only node would take it");
    scene_cleanup(&s);
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
                               .id = "a", LIST(allocatable, struct berth_amount, {rows[i].resource, rows[i].has})});
        scene_put(&s, (struct berth_workload){
                          .id = "w",
                          .replicas = 1,
                          .shape = {LIST(requests, struct berth_amount, {rows[i].resource, rows[i].need})}});
        scene_see(&s, "");
        struct berth_reason r = scene_reason(&s, "w", "short");
        assert_string_equal(r.what, rows[i].resource);
        if (!strstr(r.text, rows[i].part))
            fail_msg("\"%s\" does not say \"%s\"", r.text, rows[i].part);
        scene_cleanup(&s);
    }
}

static void workloads_of_one_shape_may_be_told_apart_by_their_labels(void **state)
{
    (void)state;
    struct scene s = scene_new();
    const struct berth_expr app = {"app", BERTH_IN, (const char *const[]){"noisy"}, 1};
    const struct berth_near apart = {
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
    scene_see(&s, "place guard/0 a pending");
    expect_reasons(&s, "calm", "short cpu 1/1");
    expect_reasons(&s, "noisy", "short cpu 1/0; anti-affinity 1/0");
    expect_reasons(&s, "calm", "short cpu 1/1");
    scene_cleanup(&s);
}

static void pendings_stand_in_the_order_of_the_plan(void **state)
{
    static const char *const order[] = {"w2", "w1", "w0"};
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 10, 10);
    for (int32_t i = 0; i < 3; i++)
        scene_put(&s,
                  (struct berth_workload){.id = order[2 - i], .replicas = 1, .priority = i, .shape = {NEEDS(2000, 1)}});
    scene_see(&s, "");
    assert_int_equal(berth_plan_pendings(s.p), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(berth_plan_pending(s.p, i).workload, order[i]);
    assert_int_equal(berth_plan_stats(s.p).unplaced, 3);
    scene_cleanup(&s);
}

/* Fewest reasons first, then who lacks least in proportion, then in order of nodes; each with all it lacks. */
static void the_nearest_nodes(void **state)
{
    static const char *const want[] = {
        "c: is not ready for new work",
        "b: has 1500m of cpu free, 2 needed; has 1000 of memory free, 1.9Ki needed",
        "d: has another architecture; has 1 of cpu free, 2 needed",
        "a: has 1 of cpu free, 2 needed; has 1000 of memory free, 1.9Ki needed",
    };
    struct berth_miss got[6];
    char line[256];
    (void)state;
    struct scene s = stage();
    scene_put(&s, (struct berth_workload){
                      .id = "w", .replicas = 1, .shape = {NEEDS(2000, 1900), .arch = "amd64"}
    });
    scene_see(&s, "");
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
        cmocka_unit_test(the_smallest_change),
        cmocka_unit_test(the_change_helps),
        cmocka_unit_test(the_state_after_the_plan_counts),
        cmocka_unit_test(what_is_refused_for_is_named),
        cmocka_unit_test(what_a_gang_may_have_beyond_its_minimum_waits_for_its_stops),
        cmocka_unit_test(without_nodes),
        cmocka_unit_test(the_smallest_cut_and_the_taint_are_named),
        cmocka_unit_test(sizes_are_readable),
        cmocka_unit_test(workloads_of_one_shape_may_be_told_apart_by_their_labels),
        cmocka_unit_test(pendings_stand_in_the_order_of_the_plan),
        cmocka_unit_test(the_nearest_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
