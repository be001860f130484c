/* preempt_test.c - which instances are preempted for which demands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/preempt/preempt_scene_test.h"

/* ---- one victim ------------------------------------------------------------------------------------------------- */

/* `low` runs alone on the only node; `high` demands it. */
static void preemption_needs_higher_priority_and_min_run(void **state)
{
    static const struct {
        const char *label;
        int32_t low, high;
        bool off, unpreemptible;
        int64_t min_run, own_min_run, minutes;
        const char *want;
        int64_t recheck_minutes; /* from now; 0: none */
    } rows[] = {
        {"a higher priority",       0, 1, false, false, 0,  0,  60,
         "stop low/0 a preempted #1; reserve high/0 a pending after 1",                                                            0},
        {"the same",                1, 1, false, false, 0,  0,  60, "",                                                            0},
        {"a lower one",             2, 1, false, false, 0,  0,  60, "",                                                            0},
        {"not by this policy",      0, 1, true,  false, 0,  0,  60, "",                                                            0},
        {"not this one",            0, 1, false, true,  0,  0,  60, "",                                                            0},
        {"too young by the policy", 0, 1, false, false, 10, 0,  9,  "",                                                            1},
        {"too young by itself",     0, 1, false, false, 10, 20, 15, "",                                                            5},
        {"old enough",              0, 1, false, false, 10, 5,  10, "stop low/0 a preempted #1; reserve high/0 a pending after 1", 0},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(1);
        s.policy.preemption.on = !rows[i].off;
        s.policy.preemption.min_run_ns = rows[i].min_run * MINUTE_NS;
        scene_put(&s, (struct berth_workload){.id = "low",
                                              .kind = BERTH_JOB,
                                              .replicas = 1,
                                              .priority = rows[i].low,
                                              .unpreemptible = rows[i].unpreemptible,
                                              .min_run_ns = rows[i].own_min_run * MINUTE_NS,
                                              .shape = {NEEDS(800, 1)}});
        job(&s, "high", rows[i].high, 1, 500);
        runs(&s, "low", 0, "a", rows[i].minutes);
        print_message("%s\n", rows[i].label);
        scene_expect_and_apply(&s, rows[i].want);
        if (rows[i].recheck_minutes)
            assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + rows[i].recheck_minutes * MINUTE_NS);
        scene_cleanup(&s);
    }
}

/* ---- lowest cost ------------------------------------------------------------------------------------------------ */

struct resident {
    const char *id;
    int32_t priority;
    int64_t cpu;
    const char *node;
    int64_t minutes;
};

/* Jobs run on a and b; which of them are stopped for a pod of 500 of priority 9? */
static void cheapest_victims_are_chosen(void **state)
{
    static const struct {
        const char *label;
        struct resident at[5];
        const char *want;
    } rows[] = {
        {"the lowest tier, however long it has run",
         {{"p", 1, 600, "a", 90}, {"q", 2, 600, "b", 1}},
         "stop p/0 a preempted #1; reserve new/0 a pending after 1"                           },
        {"then the least work",
         {{"p", 1, 600, "a", 90}, {"q", 1, 600, "b", 1}},
         "stop q/0 b preempted #2; reserve new/0 b pending after 2"                           },
        {"work is time times size",
         {{"p", 1, 900, "a", 30}, {"q", 1, 600, "b", 40}},
         "stop q/0 b preempted #2; reserve new/0 b pending after 2"                           },
        {"one that is too large rather than two of a higher tier",
         {{"p", 2, 300, "a", 1}, {"q", 2, 400, "a", 1}, {"r", 1, 1000, "b", 90}},
         "stop r/0 b preempted #3; reserve new/0 b pending after 3"                           },
        {"nobody who is not needed",
         {{"p", 1, 200, "a", 1}, {"q", 1, 500, "a", 2}, {"r", 1, 300, "a", 3}, {"t", 5, 1000, "b", 1}},
         "stop q/0 a preempted #2; reserve new/0 a pending after 2"                           },
        {"nor of several",
         {{"p", 1, 100, "a", 1},
          {"q", 1, 300, "a", 2},
          {"r", 1, 400, "a", 3},
          {"t", 9, 200, "a", 5},
          {"u", 9, 900, "b", 5}},
         "stop p/0 a preempted #1; stop r/0 a preempted #3; reserve new/0 a pending after 1,3"},
        {"the youngest of equals",
         {{"p", 1, 600, "a", 5}, {"q", 1, 600, "b", 5}},
         "stop q/0 b preempted #2; reserve new/0 b pending after 2"                           },
        {"all of a node",
         {{"p", 1, 300, "a", 5}, {"q", 1, 300, "a", 5}, {"r", 10, 400, "a", 5}, {"t", 9, 900, "b", 5}},
         "stop p/0 a preempted #1; stop q/0 a preempted #2; reserve new/0 a pending after 1,2"},
        {"nobody, where that would not be enough",
         {{"p", 1, 400, "a", 5}, {"q", 9, 600, "a", 5}, {"r", 1, 300, "b", 5}, {"t", 9, 600, "b", 5}},
         ""                                                                                   },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(2);
        for (size_t n = 0; n < 5 && rows[i].at[n].id; n++) {
            const struct resident *r = &rows[i].at[n];
            job(&s, r->id, r->priority, 1, r->cpu);
            runs(&s, r->id, 0, r->node, r->minutes);
        }
        job(&s, "new", 9, 1, 500);
        print_message("%s\n", rows[i].label);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* A service keeps its minimum, whatever the priority of the preemptor. */
static void services_keep_their_minimum(void **state)
{
    (void)state;
    struct scene s = stage(3);
    scene_put(&s, (struct berth_workload){
                      .id = "web", .replicas = 2, .min_available = 2, .priority = 1, .shape = {NEEDS(900, 1)}});
    runs(&s, "web", 0, "a", 1);
    runs(&s, "web", 1, "b", 1);
    job(&s, "low", 5, 1, 900);
    runs(&s, "low", 0, "c", 90);
    job(&s, "new", 9, 1, 600);
    scene_expect_and_apply(&s, "stop low/0 c preempted #3; reserve new/0 c pending after 3");
    job(&s, "more", 9, 1, 600);
    scene_expect_and_apply(&s, "");
    scene_put(&s, (struct berth_workload){
                      .id = "web", .replicas = 2, .min_available = 1, .priority = 1, .shape = {NEEDS(900, 1)}});
    scene_expect_and_apply(&s, "stop web/1 b preempted #2; reserve more/0 b pending after 2");
    job(&s, "most", 9, 1, 600);
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

/* ---- victim groups ---------------------------------------------------------------------------------------------- */

static void gangs_are_preempted_as_a_whole(void **state)
{
    (void)state;
    struct scene s = stage(3);
    gang(&s, "pair", 1, 2, 0, 900);
    runs(&s, "pair", 0, "a", 60);
    runs(&s, "pair", 1, "b", 60);
    job(&s, "one", 2, 1, 900);
    runs(&s, "one", 0, "c", 60);
    job(&s, "new", 9, 2, 700);
    /* the second pod finds room where the other half of the gang was */
    scene_expect_and_apply(&s,
                           "stop pair/0 a preempted #1; stop pair/1 b preempted #2; reserve new/0 a pending after 1; "
                           "reserve new/1 b pending after 2");
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "promote new/0 a pending #4");
    scene_remove(&s, 2);
    scene_expect_and_apply(&s, "promote new/1 b pending #5");
    scene_cleanup(&s);
}

static void spare_pods_are_preempted_first(void **state)
{
    (void)state;
    struct scene s = stage(3);
    gang(&s, "train", 5, 3, 2, 900);
    runs(&s, "train", 0, "a", 1);
    runs(&s, "train", 1, "b", 1);
    runs(&s, "train", 2, "c", 90);
    job(&s, "new", 1, 1, 600); /* also for a lower priority: spare pods are of the lowest tier */
    scene_expect_and_apply(&s, "stop train/2 c preempted #3; reserve new/0 c pending after 3");
    job(&s, "high", 9, 1, 600);
    scene_expect_and_apply(
        &s, "stop train/0 a preempted #1; stop train/1 b preempted #2; reserve high/0 a pending after 1");
    scene_cleanup(&s);
}

/* A spare pod frees its room once, whether it is stopped alone or with the gang. */
static void spare_pod_frees_room_once(void **state)
{
    (void)state;
    struct scene s = stage(1);
    gang(&s, "train", 1, 2, 1, 200);
    runs(&s, "train", 0, "a", 60);
    runs(&s, "train", 1, "a", 60);
    job(&s, "low", 2, 1, 300);
    runs(&s, "low", 0, "a", 60);
    job(&s, "firm", 9, 1, 300);
    runs(&s, "firm", 0, "a", 60);
    job(&s, "new", 5, 1, 600);
    scene_expect_and_apply(&s, "stop train/0 a preempted #1; stop train/1 a preempted #2; stop low/0 a preempted #3; "
                               "reserve new/0 a pending after 1,2,3");
    scene_cleanup(&s);
}

/* The first pod is reserved the room of `small`, the second that of `big`. Then `small` is reprieved, and both wait for
 * `big`. */
static void stops_precede_reservations_that_wait_for_them(void **state)
{
    (void)state;
    char text[SCENE_TEXT_MAX];
    struct scene s = stage(1);
    job(&s, "big", 1, 1, 570);
    runs(&s, "big", 0, "a", 60);
    job(&s, "small", 1, 1, 120);
    runs(&s, "small", 0, "a", 60);
    job(&s, "firm", 9, 1, 230);
    runs(&s, "firm", 0, "a", 60);
    job(&s, "new", 5, 2, 160);
    scene_plan(&s);
    scene_text(&s, text);
    assert_string_equal(text,
                        "stop big/0 a preempted #1; reserve new/0 a pending after 1; reserve new/1 a pending after 1");
    scene_apply(&s);
    scene_cleanup(&s);
}

/* A pod that found no node in the first round is tried again once the pod that it has an affinity to is placed. */
static void failed_attempt_is_retried_after_placement(void **state)
{
    const char *const of_a[] = {"a"}, *const of_c[] = {"c"};
    const struct berth_expr is_a = {"app", BERTH_IN, of_a, 1}, is_c = {"app", BERTH_IN, of_c, 1};
    const struct berth_affinity apart = {
        .topology = "node", .select = {&is_a, 1, 0},
             .apart = true
    };
    const struct berth_affinity near = {
        .topology = "node", .select = {&is_c, 1, 0}
    };
    (void)state;
    struct scene s = stage(1);
    s.policy.preemption.clears = true;
    scene_put(
        &s,
        (struct berth_workload){
            .id = "hermit", .kind = BERTH_JOB, .replicas = 1, .shape = {NEEDS(100, 1), .near = &apart, .near_len = 1}
    });
    runs(&s, "hermit", 0, "a", 60);
    scene_put(&s, (struct berth_workload){
                      .id = "new",
                      .kind = BERTH_JOB,
                      .replicas = 1,
                      .priority = 9,
                      LABEL("app", "a"),
                      .shape = {NEEDS(100, 1), .near = &near, .near_len = 1}
    });
    scene_put(&s, (struct berth_workload){.id = "host", .replicas = 1, LABEL("app", "c"), .shape = {NEEDS(100, 1)}});
    scene_expect_and_apply(&s, "place host/0 a pending; stop hermit/0 a preempted #1; reserve new/0 a pending after 1");
    scene_cleanup(&s);
}

/* One of three replicas is preempted, so the drain, which finds no other place, must stop none. */
static void drain_counts_preempted_replicas(void **state)
{
    (void)state;
    struct scene s = stage(3);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 3, .min_available = 2, .shape = {NEEDS(500, 1)}});
    job(&s, "firm", 9, 2, 500);
    for (uint32_t i = 0; i < 3; i++)
        runs(&s, "web", i, ((const char *[]){"a", "b", "c"})[i], 60);
    runs(&s, "firm", 0, "b", 60);
    runs(&s, "firm", 1, "c", 60);
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    job(&s, "new", 5, 1, 500);
    scene_expect_and_apply(&s, "stop web/2 c preempted #3; reserve new/0 c pending after 3");
    scene_cleanup(&s);
}

/* A gang gets all its places, or nothing is stopped for it. */
static void gang_preempts_all_or_nothing(void **state)
{
    static const struct {
        uint32_t tasks;
        const char *want;
    } rows[] = {
        {2, "place new/0 c pending; stop low/1 b preempted #2; reserve new/1 b pending after 2"},
        {3, "place new/0 c pending; stop low/0 a preempted #1; stop low/1 b preempted #2; "
            "reserve new/1 b pending after 2; reserve new/2 a pending after 1"      },
        {4, ""                                                                                 },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(4);
        job(&s, "low", 1, 2, 800);
        runs(&s, "low", 0, "a", 60);
        runs(&s, "low", 1, "b", 60);
        job(&s, "firm", 9, 1, 800);
        runs(&s, "firm", 0, "d", 60);
        gang(&s, "new", 9, rows[i].tasks, 0, 700);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* A victim chosen before a gang had to stop as well is reprieved if it is no longer needed. */
static void needless_victims_beside_a_gang_are_reprieved(void **state)
{
    (void)state;
    struct scene s = stage(2);
    gang(&s, "pair", 2, 2, 0, 600);
    runs(&s, "pair", 0, "a", 60);
    runs(&s, "pair", 1, "b", 60);
    job(&s, "low", 1, 1, 400);
    runs(&s, "low", 0, "a", 60);
    gang(&s, "new", 9, 2, 0, 400);
    scene_expect_and_apply(&s, "place new/0 b pending; stop low/0 a preempted #3; reserve new/1 a pending after 3");
    scene_cleanup(&s);
    s = stage(2);
    gang(&s, "pair", 2, 2, 0, 600);
    runs(&s, "pair", 0, "a", 60);
    runs(&s, "pair", 1, "b", 60);
    job(&s, "low", 1, 1, 400);
    runs(&s, "low", 0, "a", 60);
    job(&s, "firm", 9, 1, 400);
    runs(&s, "firm", 0, "b", 60);
    gang(&s, "new", 9, 2, 0, 400);
    scene_expect_and_apply(&s,
                           "stop pair/0 a preempted #1; stop pair/1 b preempted #2; reserve new/0 a pending after 1; "
                           "reserve new/1 b pending after 2");
    scene_cleanup(&s);
}

/* never_preempts of one workload of a gang applies to the whole gang, even if that workload wants no pod. */
static void never_preempts_applies_to_whole_gang(void **state)
{
    static const struct {
        uint32_t drivers;
        bool never;
        const char *want;
    } rows[] = {
        {0, false, "stop low/0 a preempted #1; reserve new/0 a pending after 1"                          },
        {0, true,  ""                                                                                    },
        {1, false, "place driver/0 b pending; stop low/0 a preempted #1; reserve new/0 a pending after 1"},
        {1, true,  ""                                                                                    },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(2);
        scene_put_node(&s, (struct berth_node){.id = "b", HAS(100, 1000)});
        job(&s, "low", 1, 1, 900);
        runs(&s, "low", 0, "a", 60);
        scene_put(&s, (struct berth_workload){.id = "driver",
                                              .kind = BERTH_JOB,
                                              .replicas = rows[i].drivers,
                                              .gang = "new",
                                              .priority = 9,
                                              .never_preempts = rows[i].never,
                                              .shape = {NEEDS(100, 1)}});
        gang(&s, "new", 9, 1, 0, 400);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* A victim takes along the instance that was to take over from it. */
static void preempted_pod_takes_its_replacement_along(void **state)
{
    (void)state;
    struct scene s = stage(3);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 2, .priority = 1, .shape = {NEEDS(900, 1)}});
    runs(&s, "web", 0, "a", 60);
    scene_instance(
        &s,
        (struct berth_instance){
            .workload = "web", .node = "b", .state = BERTH_STARTING, .since_ns = s.now_ns - MINUTE_NS, .replaces = 1});
    runs(&s, "web", 1, "c", 90);
    job(&s, "new", 9, 1, 500);
    scene_plan(&s);
    scene_expect_and_apply(&s, "stop web/0 a preempted #1; stop web/0 b preempted #2; reserve new/0 a pending after 1; "
                               "reserve web/0 b pending after 2");
    scene_cleanup(&s);
}

/* ---- ports, GPUs and other filters ------------------------------------------------------------------------------ */

static void preemption_frees_ports_and_gpus(void **state)
{
    (void)state;
    struct scene s = scene_new();
    s.now_ns = 12 * 60 * MINUTE_NS;
    s.policy.preemption.on = s.policy.preemption.services = true;
    struct berth_gpu gpus[] = {
        {"x", 100},
        {"x", 100},
        {"x", 100}
    };
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(1000, 1000), .gpus = gpus, .gpus_len = 3});
    scene_put(&s, (struct berth_workload){
                      .id = "small", .kind = BERTH_JOB, .replicas = 3, .shape = {NEEDS(10, 1), .gpu = {.count = 1}}
    });
    for (uint32_t i = 0; i < 3; i++)
        scene_instance(&s, (struct berth_instance){.workload = "small",
                                                   .ordinal = i,
                                                   .node = "a",
                                                   .state = BERTH_RUNNING,
                                                   .gpus = (uint64_t)1 << i,
                                                   .since_ns = s.now_ns - (60 - i) * MINUTE_NS});
    scene_put(&s, (struct berth_workload){
                      .id = "wide",
                      .kind = BERTH_JOB,
                      .replicas = 1,
                      .priority = 1,
                      .shape = {NEEDS(10, 1), .gpu = {.count = 2}}
    });
    scene_expect_and_apply(
        &s, "stop small/1 a preempted #2; stop small/2 a preempted #3; reserve wide/0 a pending after 2,3");
    scene_put(&s, (struct berth_workload){
                      .id = "old",
                      .kind = BERTH_JOB,
                      .replicas = 1,
                      .shape = {NEEDS(10, 1), LIST(ports, struct berth_port, {BERTH_TCP, 80})}
    });
    runs(&s, "old", 0, "a", 5);
    scene_put(&s, (struct berth_workload){
                      .id = "web",
                      .replicas = 1,
                      .priority = 2,
                      .shape = {NEEDS(10, 1), LIST(ports, struct berth_port, {BERTH_TCP, 80})}
    });
    scene_expect_and_apply(&s, "stop old/0 a preempted #5; reserve web/0 a pending after 2,3,5");
    scene_cleanup(&s);
}

/* Filters that do not depend on victims are applied before anything is stopped. */
static void unsatisfiable_filters_prevent_preemption(void **state)
{
    (void)state;
    struct scene s = stage(2);
    job(&s, "low", 1, 2, 900);
    runs(&s, "low", 0, "a", 60);
    runs(&s, "low", 1, "b", 60);
    scene_put(
        &s, (struct berth_workload){
                .id = "there", .kind = BERTH_JOB, .replicas = 1, .priority = 9, .shape = {NEEDS(500, 1), .node = "c"}
    });
    struct berth_term app = {LIST(exprs, struct berth_expr, {"app", BERTH_EXISTS, NULL, 0})};
    struct berth_affinity near = {.topology = "node", .select = app};
    scene_put(&s, (struct berth_workload){
                      .id = "near",
                      .kind = BERTH_JOB,
                      .replicas = 1,
                      .priority = 9,
                      .shape = {NEEDS(500, 1), .near = &near, .near_len = 1}
    });
    scene_expect_and_apply(&s, "");
    assert_int_equal(scene_pending(&s, "there"), 1);
    scene_cleanup(&s);
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static void max_stops_per_plan(void **state)
{
    (void)state;
    struct scene s = stage(4);
    s.policy.preemption.most = 3;
    job(&s, "low", 1, 4, 900);
    const char *const nodes[] = {"a", "b", "c", "d"};
    for (uint32_t i = 0; i < 4; i++)
        runs(&s, "low", i, nodes[i], 60);
    job(&s, "new", 9, 4, 900);
    scene_plan(&s);
    assert_int_equal(berth_plan_actions(s.p), 6);
    scene_apply(&s);
    s.now_ns += MINUTE_NS;
    scene_plan(&s);
    assert_int_equal(berth_plan_actions(s.p), 2);
    scene_apply(&s);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preemption_needs_higher_priority_and_min_run),
        cmocka_unit_test(cheapest_victims_are_chosen),
        cmocka_unit_test(services_keep_their_minimum),
        cmocka_unit_test(gangs_are_preempted_as_a_whole),
        cmocka_unit_test(spare_pods_are_preempted_first),
        cmocka_unit_test(spare_pod_frees_room_once),
        cmocka_unit_test(gang_preempts_all_or_nothing),
        cmocka_unit_test(needless_victims_beside_a_gang_are_reprieved),
        cmocka_unit_test(never_preempts_applies_to_whole_gang),
        cmocka_unit_test(preempted_pod_takes_its_replacement_along),
        cmocka_unit_test(preemption_frees_ports_and_gpus),
        cmocka_unit_test(unsatisfiable_filters_prevent_preemption),
        cmocka_unit_test(max_stops_per_plan),
        cmocka_unit_test(stops_precede_reservations_that_wait_for_them),
        cmocka_unit_test(failed_attempt_is_retried_after_placement),
        cmocka_unit_test(drain_counts_preempted_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
