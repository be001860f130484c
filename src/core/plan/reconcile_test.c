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

static void scale_out_uses_lowest_ordinals(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(1);
    scene_service(&s, "web", 4, 100, 100);
    scene_running(&s, "web", 1, "a");
    scene_running(&s, "web", 3, "a");
    scene_expect_and_apply(&s, "place web/0 a pending; place web/2 a pending");
    scene_service(&s, "web", 5, 100, 100);
    scene_expect_and_apply(&s, "place web/4 a pending");
    scene_cleanup(&s);
}

static void scale_in_stops_least_useful_first(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(7);
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
    scene_set_node_state(&s, "a", BERTH_NODE_LOST);
    scene_set_node_state(&s, "b", BERTH_NODE_DRAINING);
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
        scene_expect_and_apply(&s, order[i]);
    }
    scene_cleanup(&s);
}

static void scale_in_of_a_job_stops_last_tasks(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(1);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 4});
    scene_instance(&s, (struct berth_instance){.workload = "job", .ordinal = 0, .node = "a", .state = BERTH_STARTING});
    scene_running(&s, "job", 1, "a");
    scene_instance(&s, (struct berth_instance){.workload = "job", .ordinal = 2, .node = "a", .state = BERTH_ENDED});
    scene_running(&s, "job", 3, "a");
    scene_expect_and_apply(&s, "");
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 2});
    scene_expect_and_apply(&s, "stop job/3 a scaled #4");
    scene_cleanup(&s);
}

static void ended_tasks_stay_ended_and_ended_services_restart(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(1);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 2});
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 2});
    scene_instance(&s, (struct berth_instance){.workload = "job", .node = "a", .state = BERTH_ENDED});
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "a", .state = BERTH_ENDED});
    scene_expect_and_apply(&s, "place job/1 a pending; place web/0 a pending; place web/1 a pending");
    scene_cleanup(&s);
}

static void suspended_workload_stops_and_resumes(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(1);
    struct berth_workload w = {.id = "web", .replicas = 1, .shape = {NEEDS(10, 10)}};
    scene_put(&s, w);
    scene_running(&s, "web", 0, "a");
    w.suspended = true;
    scene_put(&s, w);
    scene_expect_and_apply(&s, "stop web/0 a suspended #1");
    w.suspended = false;
    scene_put(&s, w);
    scene_expect_and_apply(&s, ""); /* must not run twice, and its old instance has not stopped */
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "place web/0 a pending");
    scene_cleanup(&s);
}

/* Pods of a service with several replicas may overlap with their stopping instances. */
static void replicas_may_overlap_with_stopping_ones(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(1);
    scene_service(&s, "web", 2, 10, 10);
    scene_running(&s, "web", 0, "a");
    scene_instance(&s, (struct berth_instance){.workload = "web", .ordinal = 1, .node = "a", .state = BERTH_STOPPING});
    scene_expect_and_apply(&s, "place web/1 a pending");
    scene_cleanup(&s);
}

/* ---- drains ----------------------------------------------------------------------------------------------------- */

static void drain_moves_services(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    scene_service(&s, "web", 1, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "place web/0 b drained for 1");
    scene_report(&s, 2, BERTH_STARTING, false);
    scene_expect_and_apply(&s, "");
    scene_report(&s, 2, BERTH_RUNNING, false);
    scene_expect_and_apply(&s, ""); /* the replacement is not ready */
    scene_report(&s, 2, BERTH_RUNNING, true);
    scene_expect_and_apply(&s, "stop web/0 a moved #1");
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "");
    scene_check(&s, berth_node_remove(s.c, "a", &s.err));
    scene_cleanup(&s);
}

static void drain_waits_for_jobs(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 1});
    scene_put(&s, (struct berth_workload){.id = "vm", .kind = BERTH_VM, .replicas = 1});
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 1, .on_drain = BERTH_DRAIN_WAIT});
    scene_running(&s, "job", 0, "a");
    scene_running(&s, "vm", 0, "a");
    scene_running(&s, "web", 0, "a");
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

static void drain_stop_restarts_elsewhere(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 1, .on_drain = BERTH_DRAIN_STOP});
    scene_running(&s, "job", 0, "a");
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "stop job/0 a drained #1"); /* a task must not run twice */
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "place job/0 b pending");
    scene_cleanup(&s);
}

static void drain_keeps_min_available(void **state)
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
        struct scene s = scene_with_nodes(2);
        scene_service(&s, "full", 1, 900, 10);
        scene_running(&s, "full", 0, "b");
        scene_put(&s,
                  (struct berth_workload){
                      .id = "web", .replicas = 3, .min_available = rows[i].min_available, .shape = {NEEDS(300, 10)}});
        for (uint32_t n = 0; n < 3; n++)
            scene_running(&s, "web", n, "a");
        scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

static void unavailable_instances_may_be_drained(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(1);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 2, .min_available = 2, .shape = {NEEDS(300, 10)}});
    scene_running(&s, "web", 0, "a");
    scene_instance(&s, (struct berth_instance){.workload = "web", .ordinal = 1, .node = "a", .state = BERTH_STARTING});
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "stop web/1 a drained #2");
    assert_int_equal(scene_pending(&s, "web"), 2); /* the replacement of one instance, and the other pod */
    scene_cleanup(&s);
}

static void drained_replacement_is_replaced(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(3);
    scene_service(&s, "web", 1, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "place web/0 b drained for 1");
    scene_set_node_state(&s, "b", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "stop web/0 b drained #2; place web/0 c drained for 1");
    scene_cleanup(&s);
}

static void migration_ends_with_its_workload(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    scene_service(&s, "web", 1, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "place web/0 b drained for 1");
    scene_check(&s, berth_workload_remove(s.c, "web", &s.err));
    scene_expect_and_apply(&s, "stop web/0 a removed #1; stop web/0 b removed #2");
    scene_cleanup(&s);
}

static void one_of_two_replacements_remains(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(3);
    scene_service(&s, "web", 1, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "b", .state = BERTH_STARTING, .replaces = 1});
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "c", .state = BERTH_STARTING, .replaces = 1});
    scene_expect_and_apply(&s, "stop web/0 c scaled #3");
    scene_cleanup(&s);
}

static void lost_replacement_is_replaced(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(4);
    scene_service(&s, "web", 2, 600, 10);
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 1, "d");
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "place web/0 b drained for 1");
    scene_set_node_state(&s, "b", BERTH_NODE_LOST);
    scene_expect_and_apply(&s, "place web/0 c drained for 1");
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

static void broken_gang_is_stopped_and_restarted(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(7);
    put_gang(&s, "g1", 2, 0, BERTH_LOST_FENCE);
    put_gang(&s, "g2", 1, 0, BERTH_LOST_FENCE);
    scene_expect_and_apply(&s, "place g1/0 a pending; place g1/1 b pending; place g2/0 c pending");
    scene_set_node_state(&s, "b", BERTH_NODE_LOST);
    scene_expect_and_apply(&s, ""); /* a lost instance counts as placed until it is fenced */
    s.now_ns += 10 * MINUTE_NS;
    scene_expect_and_apply(&s, "lose g1/1 b lost #2; stop g1/0 a gang-broken #1; stop g2/0 c gang-broken #3");
    assert_non_null(scene_reason(&s, "g1", "stopping").text);
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, ""); /* one instance is still stopping */
    scene_remove(&s, 3);
    scene_expect_and_apply(&s, "place g1/0 a pending; place g1/1 c pending; place g2/0 d pending");
    scene_cleanup(&s);
}

static void elastic_gang_continues_with_its_minimum(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(7);
    put_gang(&s, "g1", 3, 2, BERTH_LOST_REPLACE);
    scene_expect_and_apply(&s, "place g1/0 a pending; place g1/1 b pending; place g1/2 c pending");
    scene_set_node_state(&s, "b", BERTH_NODE_LOST);
    scene_expect_and_apply(&s, "place g1/1 d lost");
    scene_cleanup(&s);
}

static void ended_tasks_do_not_break_a_gang(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(3);
    put_gang(&s, "g1", 2, 0, BERTH_LOST_FENCE);
    scene_expect_and_apply(&s, "place g1/0 a pending; place g1/1 b pending");
    scene_report(&s, 1, BERTH_ENDED, false);
    scene_expect_and_apply(&s, "");
    scene_report(&s, 2, BERTH_ENDED, false);
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

static void gang_members_are_not_moved_one_by_one(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(5);
    scene_put(&s, (struct berth_workload){.id = "g1", .replicas = 2, .gang = "g", .shape = {NEEDS(600, 10)}});
    scene_expect_and_apply(&s, "place g1/0 a pending; place g1/1 b pending");
    scene_report(&s, 1, BERTH_RUNNING, true);
    scene_report(&s, 2, BERTH_RUNNING, true);
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "");
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

static void outdated_pods_are_replaced_within_min_available(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(3);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 3, .min_available = 2, .shape = {NEEDS(100, 10)}});
    outdated(&s, "web", 0, "a", true);
    outdated(&s, "web", 1, "b", true);
    outdated(&s, "web", 2, "c", true);
    /* One pod may stop; the next one waits until it is available again. */
    scene_expect_and_apply(&s, "place web/0 a pending; stop web/0 a outdated #1");
    scene_cleanup(&s);
}

static void unavailable_outdated_pod_is_replaced_at_once(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    scene_put(
        &s,
        (struct berth_workload){
            .id = "web", .replicas = 2, .on_lost = BERTH_LOST_FENCE, .min_available = 1, .shape = {NEEDS(100, 10)}});
    outdated(&s, "web", 0, "a", false);
    scene_running(&s, "web", 1, "b");
    scene_expect_and_apply(&s, "stop web/0 a outdated #1");
    scene_cleanup(&s);
}

static void single_outdated_pod_is_stopped_first(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(1);
    scene_service(&s, "web", 1, 100, 10);
    outdated(&s, "web", 0, "a", true);
    scene_expect_and_apply(&s, "stop web/0 a outdated #1");
    scene_cleanup(&s);
}

static void replacement_comes_first_where_all_are_needed(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 2, .min_available = 2, .shape = {NEEDS(100, 10)}});
    outdated(&s, "web", 0, "a", true);
    scene_running(&s, "web", 1, "b");
    scene_expect_and_apply(&s, "place web/0 a drained for 1");
    scene_cleanup(&s);
}

static void outdated_tasks_run_to_their_end(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(1);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 1, .shape = {NEEDS(100, 10)}});
    outdated(&s, "job", 0, "a", true);
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

static void nothing_is_placed_before_begin_time(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(1);
    scene_put(&s, (struct berth_workload){
                      .id = "web", .replicas = 2, .begin_ns = s.now_ns + MINUTE_NS, .shape = {NEEDS(100, 10)}});
    scene_running(&s, "web", 0, "a");
    scene_expect_and_apply(&s, "");
    assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + MINUTE_NS);
    s.now_ns += MINUTE_NS;
    scene_expect_and_apply(&s, "place web/1 a pending");
    scene_cleanup(&s);
}

static void working_old_pods_stay_while_new_ones_fail(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    struct berth_workload web = {
        .id = "web", .replicas = 2, .begin_ns = s.now_ns + MINUTE_NS, .shape = {NEEDS(100, 10)}};
    scene_put(&s, web);
    scene_running(&s, "web", 0, "a");
    outdated(&s, "web", 1, "b", true);
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "");
    assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + MINUTE_NS);
    s.now_ns += MINUTE_NS;
    scene_expect_and_apply(&s, "place web/0 b drained for 1; place web/1 b pending; stop web/1 b outdated #2");
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outdated_pods_are_replaced_within_min_available),
        cmocka_unit_test(unavailable_outdated_pod_is_replaced_at_once),
        cmocka_unit_test(single_outdated_pod_is_stopped_first),
        cmocka_unit_test(replacement_comes_first_where_all_are_needed),
        cmocka_unit_test(outdated_tasks_run_to_their_end),
        cmocka_unit_test(nothing_is_placed_before_begin_time),
        cmocka_unit_test(working_old_pods_stay_while_new_ones_fail),
        cmocka_unit_test(scale_out_uses_lowest_ordinals),
        cmocka_unit_test(scale_in_stops_least_useful_first),
        cmocka_unit_test(scale_in_of_a_job_stops_last_tasks),
        cmocka_unit_test(ended_tasks_stay_ended_and_ended_services_restart),
        cmocka_unit_test(suspended_workload_stops_and_resumes),
        cmocka_unit_test(replicas_may_overlap_with_stopping_ones),
        cmocka_unit_test(drain_moves_services),
        cmocka_unit_test(drain_waits_for_jobs),
        cmocka_unit_test(drain_stop_restarts_elsewhere),
        cmocka_unit_test(drain_keeps_min_available),
        cmocka_unit_test(unavailable_instances_may_be_drained),
        cmocka_unit_test(drained_replacement_is_replaced),
        cmocka_unit_test(migration_ends_with_its_workload),
        cmocka_unit_test(one_of_two_replacements_remains),
        cmocka_unit_test(lost_replacement_is_replaced),
        cmocka_unit_test(broken_gang_is_stopped_and_restarted),
        cmocka_unit_test(elastic_gang_continues_with_its_minimum),
        cmocka_unit_test(ended_tasks_do_not_break_a_gang),
        cmocka_unit_test(gang_members_are_not_moved_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
