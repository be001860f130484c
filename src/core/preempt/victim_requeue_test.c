/* victim_requeue_test.c - victims enter the queue at the position at which the next plan will see them, so the next
 * plan is empty.
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

/* One node of 1000 at noon, and a number of reservations. */
static struct scene stage(uint32_t reservations)
{
    struct scene s = scene_with_nodes(1);
    s.now_ns = 12 * 60 * MINUTE_NS;
    s.policy.preemption.on = true;
    s.policy.backfill.reservations = reservations;
    return s;
}

/* A job that is expected to run for an hour. */
static void job(struct scene *s, struct berth_workload w)
{
    w.kind = BERTH_JOB;
    w.replicas = w.replicas ? w.replicas : 1;
    w.estimate_ns = 60 * MINUTE_NS;
    scene_put(s, w);
}

static void runs(struct scene *s, const char *workload, uint32_t tasks)
{
    for (uint32_t i = 0; i < tasks; i++)
        scene_instance(s, (struct berth_instance){.workload = workload,
                                                  .ordinal = i,
                                                  .node = "a",
                                                  .state = BERTH_RUNNING,
                                                  .ready = true,
                                                  .since_ns = s->now_ns - 30 * MINUTE_NS});
}

/* Returns the start of the workload's reservation in minutes from now; -1: it has none. */
static int64_t reservation_start_minutes(struct scene *s, const char *workload)
{
    for (size_t i = 0; i < berth_plan_pendings(s->p); i++)
        if (strcmp(berth_plan_pending_name(s->p, i), workload) == 0) {
            int64_t start = berth_plan_queue_position(s->p, i).start_ns;
            return start ? (start - s->now_ns) / MINUTE_NS : -1;
        }
    return -1;
}

static void step(struct scene *s, const char *want)
{
    scene_expect_and_apply(s, want);
    assert_int_equal(berth_plan_facts(s->p), 0);
}

/* An elastic gang that had waited for too long before it started comes before a job in a better queue. */
static void requeued_gang_keeps_its_wait(void **state)
{
    (void)state;
    const struct berth_queue fast = {.id = "fast", .priority = 1};
    struct scene s = stage(10);
    s.policy.order = (struct berth_order){.queues = &fast, .queues_len = 1, .max_wait_ns = 60 * MINUTE_NS};
    job(&s, (struct berth_workload){
                .id = "old", .replicas = 6, .gang = "old", .gang_min = 2, .created_ns = 1, .shape = {NEEDS(400, 1)}});
    job(&s, (struct berth_workload){
                .id = "new", .queue = "fast", .created_ns = s.now_ns - MINUTE_NS, .shape = {NEEDS(800, 1)}});
    job(&s, (struct berth_workload){
                .id = "high", .priority = 5, .created_ns = s.now_ns - MINUTE_NS, .shape = {NEEDS(800, 1)}});
    runs(&s, "old", 2);
    step(&s, "stop old/0 a preempted #1; stop old/1 a preempted #2; reserve high/0 a pending after 1,2");
    assert_int_equal(reservation_start_minutes(&s, "old"), 60);
    assert_int_equal(reservation_start_minutes(&s, "new"), 120);
    scene_cleanup(&s);
}

/* Quota is kept for the gang's reservation, though the gang had other demands before it was stopped. */
static void requeued_gang_keeps_quota_for_its_reservation(void **state)
{
    (void)state;
    const char *const ann[] = {"user/ann"};
    struct scene s = stage(10);
    struct berth_quota limited = {.id = "user/ann", LIST(limits, struct berth_amount, {"cpu", 1600})};
    scene_check(&s, berth_quota_put(s.c, &limited, &s.err));
    job(&s, (struct berth_workload){.id = "old",
                                    .replicas = 6,
                                    .gang = "old",
                                    .gang_min = 2,
                                    .created_ns = 1,
                                    .quotas = ann,
                                    .quotas_len = 1,
                                    .shape = {NEEDS(400, 1)}});
    job(&s, (struct berth_workload){
                .id = "next", .created_ns = 2, .quotas = ann, .quotas_len = 1, .shape = {NEEDS(400, 1)}});
    job(&s, (struct berth_workload){.id = "high", .priority = 5, .created_ns = 3, .shape = {NEEDS(800, 1)}});
    runs(&s, "old", 2);
    step(&s, "stop old/0 a preempted #1; stop old/1 a preempted #2; reserve high/0 a pending after 1,2");
    assert_int_equal(reservation_start_minutes(&s, "old"), 60);
    assert_int_equal(reservation_start_minutes(&s, "next"), -1);
    scene_cleanup(&s);
}

/* Pods that were stopped one by one, and pods that had no place before, get one reservation together; the second
 * reservation is for the other job. */
static void requeued_pods_share_one_reservation(void **state)
{
    (void)state;
    struct scene s = stage(2);
    job(&s, (struct berth_workload){
                .id = "many", .replicas = 5, .on_lost = BERTH_LOST_REPLACE, .created_ns = 1, .shape = {NEEDS(300, 1)}});
    job(&s, (struct berth_workload){.id = "other", .created_ns = 2, .shape = {NEEDS(300, 1)}});
    job(&s, (struct berth_workload){.id = "high", .priority = 5, .created_ns = 3, .shape = {NEEDS(1000, 1)}});
    runs(&s, "many", 3);
    step(&s, "stop many/0 a preempted #1; stop many/1 a preempted #2; stop many/2 a preempted #3; "
             "reserve high/0 a pending after 1,2,3");
    assert_int_equal(reservation_start_minutes(&s, "many"), 60);
    assert_int_equal(reservation_start_minutes(&s, "other"), 60);
    scene_cleanup(&s);
}

/* Expects what a waiting workload reports: "ORDINAL,...: REASON ..." */
static void waits(struct scene *s, const char *workload, const char *want)
{
    char got[256] = "it does not wait";
    size_t len = 0;
    for (size_t i = 0; i < berth_plan_pendings(s->p); i++) {
        struct berth_pending p = berth_plan_pending(s->p, i);
        if (strcmp(p.workload, workload) != 0)
            continue;
        for (size_t n = 0; n < p.ordinals_len; n++)
            len += (size_t)snprintf(got + len, sizeof got - len, "%s%u", n ? "," : "", p.ordinals[n]);
        for (size_t n = 0; n < p.reasons_len; n++)
            len += (size_t)snprintf(got + len, sizeof got - len, "%s %s", n ? "" : ":", p.reasons[n].reason);
    }
    assert_string_equal(got, want);
}

/* A driver and two workers, of which one is enough; the other one had no place. */
static struct scene stage_roles(void)
{
    struct scene s = stage(10);
    job(&s, (struct berth_workload){.id = "driver", .gang = "g", .created_ns = 1, .shape = {NEEDS(400, 1)}});
    job(&s, (struct berth_workload){
                .id = "worker", .replicas = 2, .gang = "g", .gang_min = 1, .created_ns = 1, .shape = {NEEDS(400, 1)}});
    return s;
}

/* The gang loses its minimum and cannot start again before its driver has stopped; its other worker waits for that. */
static void requeued_gang_waits_for_its_stops(void **state)
{
    (void)state;
    struct scene s = stage_roles();
    job(&s, (struct berth_workload){.id = "high", .priority = 5, .created_ns = 3, .shape = {NEEDS(800, 1)}});
    runs(&s, "driver", 1);
    runs(&s, "worker", 1);
    scene_expect(&s, "stop driver/0 a preempted #1; stop worker/0 a preempted #2; reserve high/0 a pending after 1,2");
    waits(&s, "worker", "1: stopping short");
    step(&s, "stop driver/0 a preempted #1; stop worker/0 a preempted #2; reserve high/0 a pending after 1,2");
    waits(&s, "worker", "1: stopping short");
    scene_cleanup(&s);
}

/* One finished worker is enough, but without its driver the gang does not have its minimum: the other worker waits. */
static void spare_worker_waits_for_the_driver(void **state)
{
    (void)state;
    struct scene s = stage_roles();
    scene_instance(&s,
                   (struct berth_instance){.workload = "driver", .ordinal = 0, .node = "a", .state = BERTH_STOPPING});
    scene_instance(&s, (struct berth_instance){.workload = "worker", .ordinal = 0, .node = "a", .state = BERTH_ENDED});
    step(&s, "");
    waits(&s, "worker", "1: spare");
    scene_cleanup(&s);
}

/* The node of one pod is lost, and the replacement has its place: no other replacement is placed when the other pod is
 * preempted. */
static void replacement_of_lost_pod_counts(void **state)
{
    (void)state;
    struct scene s = stage(0);
    scene_node(&s, "b", 1000, 1000);
    scene_node(&s, "c", 600, 1000);
    job(&s, (struct berth_workload){
                .id = "two", .replicas = 2, .on_lost = BERTH_LOST_REPLACE, .created_ns = 1, .shape = {NEEDS(300, 1)}});
    job(&s, (struct berth_workload){.id = "high", .priority = 5, .created_ns = 3, .shape = {NEEDS(1000, 1)}});
    scene_instance(&s, (struct berth_instance){.workload = "two", .ordinal = 0, .node = "b", .state = BERTH_RUNNING});
    scene_instance(&s, (struct berth_instance){
                           .workload = "two", .ordinal = 0, .node = "c", .state = BERTH_ASSIGNED, .replaces = 1});
    scene_instance(&s, (struct berth_instance){.workload = "two", .ordinal = 1, .node = "a", .state = BERTH_RUNNING});
    scene_set_node_state(&s, "b", BERTH_NODE_LOST);
    scene_expect_and_apply(&s, "stop two/1 a preempted #3; reserve high/0 a pending after 3; place two/1 c pending");
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requeued_gang_keeps_its_wait),
        cmocka_unit_test(requeued_gang_keeps_quota_for_its_reservation),
        cmocka_unit_test(requeued_pods_share_one_reservation),
        cmocka_unit_test(requeued_gang_waits_for_its_stops),
        cmocka_unit_test(spare_worker_waits_for_the_driver),
        cmocka_unit_test(replacement_of_lost_pod_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
