/* reconcile_test.c - instances that are no longer wanted stop and missing pods are placed: scaling, suspension, drains,
 * gangs.
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

/* ---- scaling ---------------------------------------------------------------------------------------------------- */

static void scaling_out_takes_the_lowest_ordinals(void **state)
{
    (void)state;
    struct scene s = scene_stage(1);
    scene_service(&s, "web", 4, 100, 100);
    scene_running(&s, "web", 1, "a");
    scene_running(&s, "web", 3, "a");
    scene_step(&s, "place web/0 a pending; place web/2 a pending");
    scene_service(&s, "web", 5, 100, 100);
    scene_step(&s, "place web/4 a pending");
    scene_cleanup(&s);
}

static void scaling_in_takes_the_least_useful_first(void **state)
{
    (void)state;
    struct scene s = scene_stage(7);
    scene_put(&s, (struct berth_workload){.id = "web",
                                          .replicas = 6,
                                          .on_drain = BERTH_DRAIN_WAIT,
                                          .on_lost = BERTH_LOST_WAIT,
                                          .shape = {NEEDS(600, 10)}});
    scene_running(&s, "web", 0, "a"); /* on a lost node */
    scene_running(&s, "web", 1, "b"); /* on a draining node */
    scene_instance(&s, (struct berth_instance){.workload = "web", .ordinal = 2, .node = "c", .state = BERTH_RUNNING});
    scene_running(&s, "web", 3, "d");
    scene_running(&s, "web", 4, "e");
    scene_running(&s, "web", 5, "f");
    scene_stage_state(&s, "a", BERTH_NODE_LOST);
    scene_stage_state(&s, "b", BERTH_NODE_DRAINING);
    static const char *const order[] = {
        "stop web/0 a scaled #1", /* does not report */
        "stop web/2 c scaled #3", /* is not ready */
        "stop web/1 b scaled #2", /* is being drained */
        "stop web/5 f scaled #6", "stop web/4 e scaled #5", "stop web/3 d scaled #4",
    };
    for (uint32_t i = 0; i < ROWS(order); i++) {
        scene_put(&s, (struct berth_workload){.id = "web",
                                              .replicas = 5 - i,
                                              .on_drain = BERTH_DRAIN_WAIT,
                                              .on_lost = BERTH_LOST_WAIT,
                                              .shape = {NEEDS(600, 10)}});
        scene_step(&s, order[i]);
    }
    scene_cleanup(&s);
}

static void a_job_loses_its_last_tasks(void **state)
{
    (void)state;
    struct scene s = scene_stage(1);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 4});
    scene_instance(&s, (struct berth_instance){.workload = "job", .ordinal = 0, .node = "a", .state = BERTH_STARTING});
    scene_running(&s, "job", 1, "a");
    scene_instance(&s, (struct berth_instance){.workload = "job", .ordinal = 2, .node = "a", .state = BERTH_ENDED});
    scene_running(&s, "job", 3, "a");
    scene_step(&s, "");
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 2});
    scene_step(&s, "stop job/3 a scaled #4");
    scene_cleanup(&s);
}

static void tasks_that_ended_are_not_run_again_and_pods_of_services_are(void **state)
{
    (void)state;
    struct scene s = scene_stage(1);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 2});
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 2});
    scene_instance(&s, (struct berth_instance){.workload = "job", .node = "a", .state = BERTH_ENDED});
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "a", .state = BERTH_ENDED});
    scene_step(&s, "place job/1 a pending; place web/0 a pending; place web/1 a pending");
    scene_cleanup(&s);
}

static void suspending_and_resuming(void **state)
{
    (void)state;
    struct scene s = scene_stage(1);
    struct berth_workload w = {.id = "web", .replicas = 1, .shape = {NEEDS(10, 10)}};
    scene_put(&s, w);
    scene_running(&s, "web", 0, "a");
    w.suspended = true;
    scene_put(&s, w);
    scene_step(&s, "stop web/0 a suspended #1");
    w.suspended = false;
    scene_put(&s, w);
    scene_step(&s, ""); /* must not run twice, and its old instance has not stopped */
    scene_gone(&s, 1);
    scene_step(&s, "place web/0 a pending");
    scene_cleanup(&s);
}

/* Pods of a service with several replicas may overlap with their stopping instances. */
static void replicas_need_not_wait_for_a_stop(void **state)
{
    (void)state;
    struct scene s = scene_stage(1);
    scene_service(&s, "web", 2, 10, 10);
    scene_running(&s, "web", 0, "a");
    scene_instance(&s, (struct berth_instance){.workload = "web", .ordinal = 1, .node = "a", .state = BERTH_STOPPING});
    scene_step(&s, "place web/1 a pending");
    scene_cleanup(&s);
}

/* ---- drains ----------------------------------------------------------------------------------------------------- */

static void a_drain_moves_services(void **state)
{
    (void)state;
    struct scene s = scene_stage(2);
    scene_service(&s, "web", 1, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
    scene_step(&s, "place web/0 b drained for 1");
    scene_report(&s, 2, BERTH_STARTING, false);
    scene_step(&s, "");
    scene_report(&s, 2, BERTH_RUNNING, false);
    scene_step(&s, ""); /* the replacement is not ready */
    scene_report(&s, 2, BERTH_RUNNING, true);
    scene_step(&s, "stop web/0 a moved #1");
    scene_gone(&s, 1);
    scene_step(&s, "");
    scene_must(&s, berth_node_remove(s.c, "a", &s.err));
    scene_cleanup(&s);
}

static void a_drain_waits_for_others(void **state)
{
    (void)state;
    struct scene s = scene_stage(2);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 1});
    scene_put(&s, (struct berth_workload){.id = "vm", .kind = BERTH_VM, .replicas = 1});
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 1, .on_drain = BERTH_DRAIN_WAIT});
    scene_running(&s, "job", 0, "a");
    scene_running(&s, "vm", 0, "a");
    scene_running(&s, "web", 0, "a");
    scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
    scene_step(&s, "");
    scene_cleanup(&s);
}

static void a_drain_may_stop(void **state)
{
    (void)state;
    struct scene s = scene_stage(2);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 1, .on_drain = BERTH_DRAIN_STOP});
    scene_running(&s, "job", 0, "a");
    scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
    scene_step(&s, "stop job/0 a drained #1"); /* a task must not run twice */
    scene_gone(&s, 1);
    scene_step(&s, "place job/0 b pending");
    scene_cleanup(&s);
}

static void enough_stay_available(void **state)
{
    static const struct {
        uint32_t min_available;
        const char *want; /* no replacement fits */
    } rows[] = {
        {3, ""                                                },
        {2, "stop web/0 a drained #2"                         },
        {1, "stop web/0 a drained #2; stop web/1 a drained #3"},
        {0, "stop web/0 a drained #2"                         }, /* all but one */
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_stage(2);
        scene_service(&s, "full", 1, 900, 10);
        scene_running(&s, "full", 0, "b");
        scene_put(&s,
                  (struct berth_workload){
                      .id = "web", .replicas = 3, .min_available = rows[i].min_available, .shape = {NEEDS(300, 10)}});
        for (uint32_t n = 0; n < 3; n++)
            scene_running(&s, "web", n, "a");
        scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
        scene_step(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

static void what_is_not_available_need_not_be_kept(void **state)
{
    (void)state;
    struct scene s = scene_stage(1);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 2, .min_available = 2, .shape = {NEEDS(300, 10)}});
    scene_running(&s, "web", 0, "a");
    scene_instance(&s, (struct berth_instance){.workload = "web", .ordinal = 1, .node = "a", .state = BERTH_STARTING});
    scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
    scene_step(&s, "stop web/1 a drained #2");
    assert_int_equal(scene_pending(&s, "web"), 2); /* the replacement of one instance, and the other pod */
    scene_cleanup(&s);
}

static void a_replacement_on_a_node_that_is_drained_too(void **state)
{
    (void)state;
    struct scene s = scene_stage(3);
    scene_service(&s, "web", 1, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
    scene_step(&s, "place web/0 b drained for 1");
    scene_stage_state(&s, "b", BERTH_NODE_DRAINING);
    scene_step(&s, "stop web/0 b drained #2; place web/0 c drained for 1");
    scene_cleanup(&s);
}

static void a_move_ends_with_its_workload(void **state)
{
    (void)state;
    struct scene s = scene_stage(2);
    scene_service(&s, "web", 1, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
    scene_step(&s, "place web/0 b drained for 1");
    scene_must(&s, berth_workload_remove(s.c, "web", &s.err));
    scene_step(&s, "stop web/0 a removed #1; stop web/0 b removed #2");
    scene_cleanup(&s);
}

static void of_two_replacements_one_is_kept(void **state)
{
    (void)state;
    struct scene s = scene_stage(3);
    scene_service(&s, "web", 1, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "b", .state = BERTH_STARTING, .replaces = 1});
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "c", .state = BERTH_STARTING, .replaces = 1});
    scene_step(&s, "stop web/0 c scaled #3");
    scene_cleanup(&s);
}

static void the_replacement_is_lost(void **state)
{
    (void)state;
    struct scene s = scene_stage(4);
    scene_service(&s, "web", 2, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 1, "d");
    scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
    scene_step(&s, "place web/0 b drained for 1");
    scene_stage_state(&s, "b", BERTH_NODE_LOST);
    scene_step(&s, "place web/0 c drained for 1");
    scene_cleanup(&s);
}

/* ---- gangs ------------------------------------------------------------------------------------------------------ */

static void put_gang(struct scene *s, const char *id, uint32_t replicas, uint32_t least, enum berth_on_lost on_lost)
{
    scene_put(s, (struct berth_workload){.id = id,
                                         .kind = BERTH_JOB,
                                         .replicas = replicas,
                                         .gang = "g",
                                         .gang_min = least,
                                         .on_lost = on_lost,
                                         .shape = {NEEDS(600, 10)}});
}

static void a_broken_gang_is_stopped_and_starts_anew(void **state)
{
    (void)state;
    struct scene s = scene_stage(7);
    put_gang(&s, "g1", 2, 0, BERTH_LOST_FENCE);
    put_gang(&s, "g2", 1, 0, BERTH_LOST_FENCE);
    scene_step(&s, "place g1/0 a pending; place g1/1 b pending; place g2/0 c pending");
    scene_stage_state(&s, "b", BERTH_NODE_LOST);
    scene_step(&s, ""); /* a lost instance counts as placed until it is fenced */
    s.now_ns += 10 * MINUTE_NS;
    scene_step(&s, "lose g1/1 b lost #2; stop g1/0 a gang-broken #1; stop g2/0 c gang-broken #3");
    assert_non_null(scene_reason(&s, "g1", "stopping").text);
    scene_gone(&s, 1);
    scene_step(&s, ""); /* one instance is still stopping */
    scene_gone(&s, 3);
    scene_step(&s, "place g1/0 a pending; place g1/1 c pending; place g2/0 d pending");
    scene_cleanup(&s);
}

static void an_elastic_gang_goes_on_with_its_minimum(void **state)
{
    (void)state;
    struct scene s = scene_stage(7);
    put_gang(&s, "g1", 3, 2, BERTH_LOST_REPLACE);
    scene_step(&s, "place g1/0 a pending; place g1/1 b pending; place g1/2 c pending");
    scene_stage_state(&s, "b", BERTH_NODE_LOST);
    scene_step(&s, "place g1/1 d lost");
    scene_cleanup(&s);
}

static void tasks_that_ended_do_not_break_a_gang(void **state)
{
    (void)state;
    struct scene s = scene_stage(3);
    put_gang(&s, "g1", 2, 0, BERTH_LOST_FENCE);
    scene_step(&s, "place g1/0 a pending; place g1/1 b pending");
    scene_report(&s, 1, BERTH_ENDED, false);
    scene_step(&s, "");
    scene_report(&s, 2, BERTH_ENDED, false);
    scene_step(&s, "");
    scene_cleanup(&s);
}

static void a_gang_is_not_moved_one_by_one(void **state)
{
    (void)state;
    struct scene s = scene_stage(5);
    scene_put(&s, (struct berth_workload){.id = "g1", .replicas = 2, .gang = "g", .shape = {NEEDS(600, 10)}});
    scene_step(&s, "place g1/0 a pending; place g1/1 b pending");
    scene_report(&s, 1, BERTH_RUNNING, true);
    scene_report(&s, 2, BERTH_RUNNING, true);
    scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
    scene_step(&s, "");
    scene_cleanup(&s);
}

/* ---- outdated instances ----------------------------------------------------------------------------------------- */

static void outdated(struct scene *s, const char *workload, uint32_t ordinal, const char *node, bool ready)
{
    scene_instance(s, (struct berth_instance){.workload = workload,
                                              .ordinal = ordinal,
                                              .node = node,
                                              .state = BERTH_RUNNING,
                                              .ready = ready,
                                              .outdated = true});
}

static void outdated_pods_are_renewed_within_min_available(void **state)
{
    (void)state;
    struct scene s = scene_stage(3);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 3, .min_available = 2, .shape = {NEEDS(100, 10)}});
    outdated(&s, "web", 0, "a", true);
    outdated(&s, "web", 1, "b", true);
    outdated(&s, "web", 2, "c", true);
    /* One pod may stop; the next one waits until it is available again. */
    scene_step(&s, "place web/0 a pending; stop web/0 a outdated #1");
    scene_cleanup(&s);
}

static void an_outdated_pod_that_does_not_work_goes_at_once(void **state)
{
    (void)state;
    struct scene s = scene_stage(2);
    scene_put(
        &s,
        (struct berth_workload){
            .id = "web", .replicas = 2, .on_lost = BERTH_LOST_FENCE, .min_available = 1, .shape = {NEEDS(100, 10)}});
    outdated(&s, "web", 0, "a", false);
    scene_running(&s, "web", 1, "b");
    scene_step(&s, "stop web/0 a outdated #1");
    scene_cleanup(&s);
}

static void a_single_outdated_pod_is_stopped_first(void **state)
{
    (void)state;
    struct scene s = scene_stage(1);
    scene_service(&s, "web", 1, 100, 10);
    outdated(&s, "web", 0, "a", true);
    scene_step(&s, "stop web/0 a outdated #1");
    scene_cleanup(&s);
}

static void where_all_are_needed_the_new_one_comes_first(void **state)
{
    (void)state;
    struct scene s = scene_stage(2);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 2, .min_available = 2, .shape = {NEEDS(100, 10)}});
    outdated(&s, "web", 0, "a", true);
    scene_running(&s, "web", 1, "b");
    scene_step(&s, "place web/0 a drained for 1");
    scene_cleanup(&s);
}

static void outdated_tasks_of_a_job_run_to_their_end(void **state)
{
    (void)state;
    struct scene s = scene_stage(1);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 1, .shape = {NEEDS(100, 10)}});
    outdated(&s, "job", 0, "a", true);
    scene_step(&s, "");
    scene_cleanup(&s);
}

static void nothing_is_placed_before_its_time(void **state)
{
    (void)state;
    struct scene s = scene_stage(1);
    scene_put(&s, (struct berth_workload){
                      .id = "web", .replicas = 2, .begin_ns = s.now_ns + MINUTE_NS, .shape = {NEEDS(100, 10)}});
    scene_running(&s, "web", 0, "a");
    scene_step(&s, "");
    assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + MINUTE_NS);
    s.now_ns += MINUTE_NS;
    scene_step(&s, "place web/1 a pending");
    scene_cleanup(&s);
}

static void what_works_stays_while_the_new_ones_fail(void **state)
{
    (void)state;
    struct scene s = scene_stage(2);
    struct berth_workload web = {
        .id = "web", .replicas = 2, .begin_ns = s.now_ns + MINUTE_NS, .shape = {NEEDS(100, 10)}};
    scene_put(&s, web);
    scene_running(&s, "web", 0, "a");
    outdated(&s, "web", 1, "b", true);
    scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
    scene_step(&s, "");
    assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + MINUTE_NS);
    s.now_ns += MINUTE_NS;
    scene_step(&s, "place web/0 b drained for 1; place web/1 b pending; stop web/1 b outdated #2");
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outdated_pods_are_renewed_within_min_available),
        cmocka_unit_test(an_outdated_pod_that_does_not_work_goes_at_once),
        cmocka_unit_test(a_single_outdated_pod_is_stopped_first),
        cmocka_unit_test(where_all_are_needed_the_new_one_comes_first),
        cmocka_unit_test(outdated_tasks_of_a_job_run_to_their_end),
        cmocka_unit_test(nothing_is_placed_before_its_time),
        cmocka_unit_test(what_works_stays_while_the_new_ones_fail),
        cmocka_unit_test(scaling_out_takes_the_lowest_ordinals),
        cmocka_unit_test(scaling_in_takes_the_least_useful_first),
        cmocka_unit_test(a_job_loses_its_last_tasks),
        cmocka_unit_test(tasks_that_ended_are_not_run_again_and_pods_of_services_are),
        cmocka_unit_test(suspending_and_resuming),
        cmocka_unit_test(replicas_need_not_wait_for_a_stop),
        cmocka_unit_test(a_drain_moves_services),
        cmocka_unit_test(a_drain_waits_for_others),
        cmocka_unit_test(a_drain_may_stop),
        cmocka_unit_test(enough_stay_available),
        cmocka_unit_test(what_is_not_available_need_not_be_kept),
        cmocka_unit_test(a_replacement_on_a_node_that_is_drained_too),
        cmocka_unit_test(a_move_ends_with_its_workload),
        cmocka_unit_test(of_two_replacements_one_is_kept),
        cmocka_unit_test(the_replacement_is_lost),
        cmocka_unit_test(a_broken_gang_is_stopped_and_starts_anew),
        cmocka_unit_test(an_elastic_gang_goes_on_with_its_minimum),
        cmocka_unit_test(tasks_that_ended_do_not_break_a_gang),
        cmocka_unit_test(a_gang_is_not_moved_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
