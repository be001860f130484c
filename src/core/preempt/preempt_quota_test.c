/* preempt_quota_test.c - preemption for full quotas and for guarantees, and needless preemption. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/preempt/preempt_scene_test.h"

/* One of two users has reached the limit: only that user's own work can make room. */
static void full_quota_preempts_within_itself(void **state)
{
    static const struct {
        int32_t own, others;
        const char *want;
    } rows[] = {
        {1, 0, "stop ann1/0 a preempted #1; reserve new/0 a pending after 1"},
        {9, 0, ""                                                           },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(3);
        struct berth_quota ann = {.id = "user/ann", LIST(limits, struct berth_amount, {"cpu", 400})};
        scene_check(&s, berth_quota_put(s.c, &ann, &s.err));
        quota_job(&s, "ann1", rows[i].own, "user/ann");
        quota_job(&s, "bob1", rows[i].others, "user/bob");
        runs(&s, "ann1", 0, "a", 60);
        runs(&s, "bob1", 0, "b", 1);
        quota_job(&s, "new", 5, "user/ann");
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* An attempt that is undone leaves no trace: ann's limit is as full as before, though there will be room on c. */
static void undone_attempt_restores_quota_usage(void **state)
{
    (void)state;
    struct scene s = stage(3);
    struct berth_quota ann = {.id = "user/ann", LIST(limits, struct berth_amount, {"cpu", 400})};
    scene_check(&s, berth_quota_put(s.c, &ann, &s.err));
    quota_job(&s, "ann1", 1, "user/ann");
    quota_job(&s, "ann2", 0, "user/ann");
    job(&s, "firm", 9, 2, 600);
    job(&s, "full", 9, 1, 1000);
    runs(&s, "ann1", 0, "a", 60);
    runs(&s, "firm", 0, "a", 60);
    runs(&s, "full", 0, "b", 60);
    runs(&s, "firm", 1, "c", 60);
    scene_instance(&s, (struct berth_instance){.workload = "old",
                                               .node = "c",
                                               .state = BERTH_STOPPING,
                                               .since_ns = 1,
                                               .shape = &(struct berth_shape){NEEDS(400, 1)}});
    gang(&s, "new", 9, 3, 0, 400);
    scene_expect_and_apply(&s, "");
    assert_int_equal(scene_pending(&s, "new"), 3);
    assert_int_equal(scene_pending(&s, "ann2"), 1);
    scene_cleanup(&s);
}

/* Ann's limit is full until ann1, a victim of another job, has stopped. So `new` waits in any case, and there is room
 * for it on b: nothing on c has to stop. */
static void demand_waiting_for_quota_preempts_nothing_more(void **state)
{
    (void)state;
    struct scene s = stage(3);
    struct berth_quota ann = {.id = "user/ann", LIST(limits, struct berth_amount, {"cpu", 400})};
    scene_check(&s, berth_quota_put(s.c, &ann, &s.err));
    quota_job(&s, "ann1", 0, "user/ann");
    job(&s, "firm", 9, 2, 600);
    job(&s, "low", 0, 1, 1000);
    runs(&s, "ann1", 0, "a", 60);
    runs(&s, "firm", 0, "a", 60);
    runs(&s, "firm", 1, "b", 60);
    runs(&s, "low", 0, "c", 60);
    scene_put(
        &s, (struct berth_workload){
                .id = "high", .kind = BERTH_JOB, .replicas = 1, .priority = 9, .shape = {NEEDS(400, 1), .node = "a"}
    });
    quota_job(&s, "new", 5, "user/ann");
    scene_expect_and_apply(&s, "stop ann1/0 a preempted #1; reserve high/0 a pending after 1; reserve new/0 b pending");
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "promote high/0 a pending #5; promote new/0 b pending #6");
    scene_cleanup(&s);
}

/* Borrowed resources are reclaimed by their guarantee, whatever the priorities. */
static void guarantee_reclaims_borrowed_resources(void **state)
{
    (void)state;
    struct scene s = stage(2);
    struct berth_quota quotas[] = {
        {.id = "group/x", LIST(guarantees, struct berth_amount, {"cpu", 800})},
        {.id = "group/y", LIST(guarantees, struct berth_amount, {"cpu", 800})},
    };
    for (size_t i = 0; i < 2; i++)
        scene_check(&s, berth_quota_put(s.c, &quotas[i], &s.err));
    static const char *const names[] = {"x1", "x2", "x3", "x4"}, *const nodes[] = {"a", "a", "b", "b"};
    for (uint32_t i = 0; i < 4; i++) {
        quota_job(&s, names[i], 5, "group/x");
        runs(&s, names[i], 0, nodes[i], 60 - (int64_t)i);
    }
    quota_job(&s, "y1", 1, "group/y");
    quota_job(&s, "y2", 1, "group/y");
    quota_job(&s, "y3", 1, "group/y"); /* beyond its own guarantee, and of a lower priority */
    scene_expect_and_apply(&s, "stop x3/0 b preempted #3; stop x4/0 b preempted #4; reserve y1/0 b pending after 4; "
                               "reserve y2/0 b pending after 3,4");
    scene_cleanup(&s);
}

/* A guaranteed pod that is placed again does not preempt a borrowed pod of the same service. */
static void guaranteed_pod_does_not_preempt_its_own_service(void **state)
{
    (void)state;
    struct scene s = stage(2);
    struct berth_quota x = {.id = "group/x", LIST(guarantees, struct berth_amount, {"cpu", 1000})};
    scene_check(&s, berth_quota_put(s.c, &x, &s.err));
    scene_put(&s, (struct berth_workload){
                      .id = "web", .replicas = 3, .priority = 1, NAMES(quotas, "group/x"), .shape = {NEEDS(500, 1)}});
    runs(&s, "web", 0, "a", 60);
    runs(&s, "web", 1, "b", 60);
    runs(&s, "web", 2, "a", 60);
    scene_put(&s,
              (struct berth_workload){
                  .id = "new", .kind = BERTH_JOB, .replicas = 1, .priority = 9, .shape = {NEEDS(700, 1), .node = "b"}
    });
    scene_expect_and_apply(&s, "stop web/1 b preempted #2; reserve new/0 b pending after 2");
    scene_cleanup(&s);
}

/* ---- quota kept for reservations -------------------------------------------------------------------------------- */

/* Two jobs of one quota: an elastic gang that runs on c with one spare pod, and a job that is last in the order; 100
 * each. */
static void put_small(struct scene *s)
{
    scene_put(s, (struct berth_workload){.id = "grown",
                                         .kind = BERTH_JOB,
                                         .replicas = 2,
                                         .gang = "grown",
                                         .gang_min = 1,
                                         .priority = 5,
                                         .created_ns = 1,
                                         .estimate_ns = 600 * MINUTE_NS,
                                         NAMES(quotas, "group/x"),
                                         .shape = {NEEDS(100, 1)}});
    runs(s, "grown", 0, "c", 60);
    runs(s, "grown", 1, "c", 60);
    scene_put(s, (struct berth_workload){.id = "small",
                                         .kind = BERTH_JOB,
                                         .replicas = 1,
                                         .created_ns = 9,
                                         NAMES(quotas, "group/x"),
                                         .shape = {NEEDS(100, 1)}});
}

/* One task of `big` is guaranteed and one is borrowed; both wait for the end of the jobs that fill a and b. `big` gets
 * one reservation and quota is kept for one task: nothing is preempted for the same quota twice. */
static void reservation_keeps_quota_once(void **state)
{
    (void)state;
    struct scene s = stage(3);
    s.policy.backfill.reservations = 100;
    struct berth_quota x = {.id = "group/x",
                            LIST(limits, struct berth_amount, {"cpu", 2250}),
                            LIST(guarantees, struct berth_amount, {"cpu", 1100})};
    scene_check(&s, berth_quota_put(s.c, &x, &s.err));
    put_small(&s);
    job(&s, "firm", 9, 2, 1000);
    runs(&s, "firm", 0, "a", 5);
    runs(&s, "firm", 1, "b", 5);
    scene_put(&s, (struct berth_workload){.id = "big",
                                          .kind = BERTH_JOB,
                                          .replicas = 2,
                                          .priority = 1,
                                          .created_ns = 2,
                                          NAMES(quotas, "group/x"),
                                          .shape = {NEEDS(1000, 1)}});
    scene_expect_and_apply(&s, "place small/0 c pending");
    assert_int_equal(scene_pending(&s, "big"), 2);
    assert_true(berth_plan_queue_position(s.p, 0).start_ns > s.now_ns);
    scene_cleanup(&s);
}

/* `back` is preempted for `high` and is placed on c at once, before quota is kept for `big`, which comes after it and
 * would have to give the quota back: so nothing is preempted for `small`. */
static void requeued_victim_is_placed_before_later_reservations(void **state)
{
    (void)state;
    struct scene s = stage(3);
    s.policy.backfill.reservations = 100;
    struct berth_quota x = {.id = "group/x", LIST(limits, struct berth_amount, {"cpu", 2050})};
    scene_check(&s, berth_quota_put(s.c, &x, &s.err));
    put_small(&s);
    job(&s, "firm", 9, 1, 1000);
    runs(&s, "firm", 0, "b", 5);
    scene_put(&s, (struct berth_workload){.id = "back",
                                          .kind = BERTH_JOB,
                                          .replicas = 3,
                                          .gang = "back",
                                          .gang_min = 1,
                                          .priority = 2,
                                          NAMES(quotas, "group/x"),
                                          .shape = {NEEDS(500, 1)}});
    runs(&s, "back", 0, "a", 60);
    scene_put(&s, (struct berth_workload){
                      .id = "high",
                      .kind = BERTH_JOB,
                      .replicas = 1,
                      .priority = 8,
                      NAMES(quotas, "group/x"),
                      .shape = {NEEDS(800, 1), .node = "a"}
    });
    scene_put(&s, (struct berth_workload){.id = "big",
                                          .kind = BERTH_JOB,
                                          .replicas = 1,
                                          .priority = 1,
                                          NAMES(quotas, "group/x"),
                                          .shape = {NEEDS(1000, 1)}});
    scene_expect_and_apply(&s, "stop back/0 a preempted #4; reserve high/0 a pending after 4; place back/1 c pending; "
                               "place small/0 c pending");
    assert_int_equal(scene_pending(&s, "big"), 1);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_quota_preempts_within_itself),
        cmocka_unit_test(undone_attempt_restores_quota_usage),
        cmocka_unit_test(guarantee_reclaims_borrowed_resources),
        cmocka_unit_test(guaranteed_pod_does_not_preempt_its_own_service),
        cmocka_unit_test(reservation_keeps_quota_once),
        cmocka_unit_test(requeued_victim_is_placed_before_later_reservations),
        cmocka_unit_test(demand_waiting_for_quota_preempts_nothing_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
