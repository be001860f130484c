/* adjust_limits_test.c - limits rise under load where the node has room and fall when idle, both only after a while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

enum { NOW_S = 1000 };

/* One instance on a node with 4000 cpu: request 1000, limit 1000, maximum 2000. */
static struct scene stage(int64_t used, int64_t used_for_s, int64_t limit, int64_t limit_for_s)
{
    struct scene s = scene_new();
    struct berth_shape shape = {NEEDS(1000, 10), LIST(limits, struct berth_limit, {"cpu", BERTH_ABSOLUTE, 1000, 2000})};
    scene_node(&s, "a", 4000, 1000);
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = shape});
    const struct berth_usage u = {"cpu", used, (NOW_S - used_for_s) * SCENE_SECOND_NS, limit,
                                  (NOW_S - limit_for_s) * SCENE_SECOND_NS};
    scene_instance(
        &s, (struct berth_instance){
                .workload = "w", .node = "a", .state = BERTH_RUNNING, .ready = true, .usage = &u, .usage_len = 1});
    return s;
}

static void limits_rise_under_load_and_fall_when_idle(void **state)
{
    static const struct {
        int64_t used, used_for_s, limit, limit_for_s;
        const char *want;
        int64_t recheck_s; /* 0: none */
    } rows[] = {
        {900,  30,  0,    900, "adjust w/0 a busy #1 cpu=1250", 0          }, /* 0: as the workload says */
        {900,  30,  1000, 30,  "adjust w/0 a busy #1 cpu=1250", 0          },
        {900,  29,  1000, 900, "",                              NOW_S + 1  },
        {900,  900, 1000, 10,  "",                              NOW_S + 20 }, /* the limit is too young */
        {899,  900, 1000, 900, "",                              0          },
        {1800, 900, 1800, 900, "adjust w/0 a busy #1 cpu=2000", 0          }, /* not above the maximum */
        {2000, 900, 2000, 900, "",                              0          },
        {800,  300, 2000, 900, "adjust w/0 a idle #1 cpu=1200", 0          }, /* one and a half times the use */
        {0,    300, 2000, 300, "adjust w/0 a idle #1 cpu=1000", 0          }, /* not below the limit of the workload */
        {800,  299, 2000, 900, "",                              NOW_S + 1  },
        {1000, 900, 2000, 100, "",                              NOW_S + 200},
        {1001, 900, 2000, 900, "",                              0          },
        {0,    900, 1000, 900, "",                              0          },
        {0,    900, 0,    900, "",                              0          },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(rows[i].used, rows[i].used_for_s, rows[i].limit, rows[i].limit_for_s);
        print_message("row %zu\n", i);
        scene_expect(&s, rows[i].want);
        assert_true(berth_plan_recheck_ns(s.p) ==
                    (rows[i].recheck_s ? rows[i].recheck_s * SCENE_SECOND_NS : BERTH_NEVER_NS));
        scene_apply(&s);
        scene_cleanup(&s);
    }
}

static void raise_needs_room_on_node(void **state)
{
    static const struct {
        int64_t others;
        bool raised;
    } rows[] = {
        {2750, true },
        {2751, false},
        {3000, false},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(1000, 900, 1000, 900);
        scene_service(&s, "other", 1, rows[i].others, 1);
        scene_running(&s, "other", 0, "a");
        scene_expect_and_apply(&s, rows[i].raised ? "adjust w/0 a busy #1 cpu=1250" : "");
        scene_cleanup(&s);
    }
}

static void placements_of_the_plan_take_room(void **state)
{
    (void)state;
    struct scene s = stage(1000, 900, 1000, 900);
    scene_service(&s, "other", 1, 2800, 1);
    scene_expect_and_apply(&s, "place other/0 a pending");
    scene_cleanup(&s);
}

static void limit_rises_in_steps_to_maximum(void **state)
{
    static const int64_t steps[] = {1250, 1562, 1952, 2000};
    (void)state;
    struct scene s = stage(1000, 900, 1000, 900);
    for (size_t i = 0; i < ROWS(steps); i++) {
        char want[64];
        int64_t limit = i ? steps[i - 1] : 1000;
        const struct berth_usage u = {"cpu", limit, 0, limit, s.now_ns - 30 * SCENE_SECOND_NS};
        scene_instance(&s, (struct berth_instance){.id = 1,
                                                   .workload = "w",
                                                   .node = "a",
                                                   .state = BERTH_RUNNING,
                                                   .ready = true,
                                                   .usage = &u,
                                                   .usage_len = 1});
        (void)snprintf(want, sizeof want, "adjust w/0 a busy #1 cpu=%lld", (long long)steps[i]);
        scene_expect_and_apply(&s, want);
        assert_true(berth_plan_recheck_ns(s.p) == BERTH_NEVER_NS || steps[i] < 2000);
        s.now_ns += 40 * SCENE_SECOND_NS;
    }
    scene_expect(&s, "");
    scene_cleanup(&s);
}

static void only_running_instances_are_adjusted(void **state)
{
    static const enum berth_state states[] = {BERTH_ASSIGNED, BERTH_STARTING, BERTH_STOPPING, BERTH_ENDED};
    (void)state;
    for (size_t i = 0; i < ROWS(states); i++) {
        struct scene s = stage(1000, 900, 1000, 900);
        scene_put(&s, (struct berth_workload){
                          .id = "w",
                          .kind = BERTH_JOB,
                          .replicas = 1,
                          .shape = {LIST(limits, struct berth_limit, {"cpu", BERTH_ABSOLUTE, 1000, 2000})}});
        const struct berth_usage u = {"cpu", 1000, 0, 1000, 0};
        scene_instance(&s, (struct berth_instance){
                               .id = 1, .workload = "w", .node = "a", .state = states[i], .usage = &u, .usage_len = 1});
        scene_expect_and_apply(&s, "");
        scene_cleanup(&s);
    }
    struct scene s = stage(1000, 900, 1000, 900);
    scene_check(&s, berth_workload_remove(s.c, "w", &s.err));
    scene_expect_and_apply(&s, "stop w/0 a removed #1");
    scene_cleanup(&s);
}

static void weighted_and_fixed_limits_are_not_adjusted(void **state)
{
    static const struct berth_limit limits[] = {
        {"cpu", BERTH_WEIGHTED, 1000, 2000},
        {"cpu", BERTH_ABSOLUTE, 1000, 1000},
        {"cpu", BERTH_ABSOLUTE, 1000, 0   },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(limits); i++) {
        struct scene s = scene_new();
        const struct berth_usage u = {"cpu", 1000, 0, 0, 0};
        scene_node(&s, "a", 4000, 1000);
        scene_put(&s, (struct berth_workload){
                          .id = "w", .replicas = 1, .shape = {.limits = &limits[i], .limits_len = 1}
        });
        scene_instance(&s, (struct berth_instance){
                               .workload = "w", .node = "a", .state = BERTH_RUNNING, .usage = &u, .usage_len = 1});
        scene_expect_and_apply(&s, "");
        scene_cleanup(&s);
    }
}

/* An unused limit of one unit is not under load. */
static void unused_limit_is_not_under_load(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape shape = {LIST(limits, struct berth_limit, {"licence", BERTH_ABSOLUTE, 1, 4})};
    const struct berth_usage u = {"licence", 0, 0, 1, 0};
    scene_put_node(&s, (struct berth_node){.id = "a", LIST(allocatable, struct berth_amount, {"licence", 10})});
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = shape});
    scene_instance(
        &s, (struct berth_instance){.workload = "w", .node = "a", .state = BERTH_RUNNING, .usage = &u, .usage_len = 1});
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

static void overflowing_times_never_ripen(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape shape = {LIST(limits, struct berth_limit, {"cpu", BERTH_ABSOLUTE, 1000, 2000})};
    const struct berth_usage u = {"cpu", 1000, INT64_MAX, 1000, 0};
    scene_node(&s, "a", 4000, 1000);
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = shape});
    scene_instance(
        &s, (struct berth_instance){.workload = "w", .node = "a", .state = BERTH_RUNNING, .usage = &u, .usage_len = 1});
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

/* Adds another pod of workload w on node a. */
static void add_pod(struct scene *s, int64_t used, int64_t limit)
{
    struct berth_shape shape = {NEEDS(1000, 10), LIST(limits, struct berth_limit, {"cpu", BERTH_ABSOLUTE, 1000, 2000})};
    const struct berth_usage u = {"cpu", used, 0, limit, 0};
    scene_put(s, (struct berth_workload){.id = "w", .replicas = 2, .shape = shape});
    scene_instance(s, (struct berth_instance){.workload = "w",
                                              .ordinal = 1,
                                              .node = "a",
                                              .state = BERTH_RUNNING,
                                              .ready = true,
                                              .usage = &u,
                                              .usage_len = 1});
}

static void room_is_used_once(void **state)
{
    static const struct {
        int64_t others;
        const char *want;
    } rows[] = {
        {1500, "adjust w/0 a busy #1 cpu=1250; adjust w/1 a busy #2 cpu=1250"},
        {1501, "adjust w/0 a busy #1 cpu=1250"                               },
        {1750, "adjust w/0 a busy #1 cpu=1250"                               },
        {1751, ""                                                            },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(1000, 900, 1000, 900);
        add_pod(&s, 1000, 1000);
        scene_service(&s, "other", 1, rows[i].others, 1);
        scene_running(&s, "other", 0, "a");
        scene_expect_and_apply(&s, rows[i].want);
        s.now_ns += 100 * SCENE_SECOND_NS;
        scene_expect_and_apply(&s, ""); /* a limit in force is no room in the next plan either */
        scene_cleanup(&s);
    }
}

/* The order of the idle and the busy instance does not matter. */
static void lowered_limits_make_room_in_the_same_plan(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct scene s = first ? stage(0, 900, 2000, 900) : stage(1000, 900, 1000, 900);
        add_pod(&s, first ? 1000 : 0, first ? 1000 : 2000);
        scene_service(&s, "other", 1, 1000, 1);
        scene_running(&s, "other", 0, "a");
        scene_expect_and_apply(&s, first ? "adjust w/0 a idle #1 cpu=1000; adjust w/1 a busy #2 cpu=1250"
                                         : "adjust w/0 a busy #1 cpu=1250; adjust w/1 a idle #2 cpu=1000");
        scene_cleanup(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_rise_under_load_and_fall_when_idle),
        cmocka_unit_test(raise_needs_room_on_node),
        cmocka_unit_test(placements_of_the_plan_take_room),
        cmocka_unit_test(limit_rises_in_steps_to_maximum),
        cmocka_unit_test(only_running_instances_are_adjusted),
        cmocka_unit_test(weighted_and_fixed_limits_are_not_adjusted),
        cmocka_unit_test(unused_limit_is_not_under_load),
        cmocka_unit_test(overflowing_times_never_ripen),
        cmocka_unit_test(room_is_used_once),
        cmocka_unit_test(lowered_limits_make_room_in_the_same_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
