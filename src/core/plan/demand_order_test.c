/* demand_order_test.c - demands after the reservations may be visited in the order of the backfill ranking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/waiting_test.h"

/* Three tenths of the node are free for 100 s, then job `head` needs the whole node. Three other jobs fit there, one at
 * a time. */
static struct scene full_node_with_head(uint32_t reservations)
{
    struct scene s = stage(1, reservations);
    run_job(&s, (struct job){.id = "x", .cpu = 700, .seconds = 100}, "a", 0);
    put_job(&s, (struct job){.id = "head", .cpu = 1000, .seconds = 600});
    put_job(&s, (struct job){.id = "middle", .cpu = 200, .seconds = 60});
    put_job(&s, (struct job){.id = "long", .cpu = 200, .seconds = 90});
    put_job(&s, (struct job){.id = "short", .cpu = 200, .seconds = 30});
    return s;
}

static void backfill_ranking_orders_backfilled_jobs(void **state)
{
    static const struct {
        const char *ranking;
        uint32_t reservations;
        const char *want;
    } rows[] = {
        {NULL,   1, "place middle/0 a pending"},
        {"",     1, "place middle/0 a pending"},
        {"fifo", 1, "place middle/0 a pending"},
        {"sjf",  1, "place short/0 a pending" },
 /* With no reservations, or with one for every job, the ranking does not apply. */
        {"sjf",  0, "place middle/0 a pending"},
        {"sjf",  9, "place middle/0 a pending"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = full_node_with_head(rows[i].reservations);
        s.policy.backfill.ranking.name = rows[i].ranking;
        step(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* The ranking applies once no remaining job may get a reservation, whichever part of the cluster it uses. */
static void ranking_applies_once_no_reservation_is_left(void **state)
{
    (void)state;
    for (uint32_t alike = 0; alike < 3; alike++) {
        struct scene s = full_node_with_head(100);
        s.policy.backfill.alike = alike;
        s.policy.backfill.ranking.name = "sjf";
        step(&s, alike == 1 ? "place short/0 a pending" : "place middle/0 a pending");
        scene_cleanup(&s);
    }
}

/* The first job keeps its position, and jobs before the last reservation are not overtaken. */
static void first_job_is_not_overtaken(void **state)
{
    (void)state;
    struct scene s = full_node_with_head(1);
    s.policy.backfill.ranking.name = "sjf";
    scene_plan(&s);
    assert_int_equal(start_of(&s, "head"), 100);
    assert_int_equal(queue_position(&s, "head").position, 1);
    scene_cleanup(&s);
}

/* Priority takes precedence over length. */
static void backfill_ranking_keeps_priorities(void **state)
{
    (void)state;
    struct scene s = full_node_with_head(1);
    struct berth_workload urgent = {.id = "urgent",
                                    .kind = BERTH_JOB,
                                    .replicas = 1,
                                    .priority = 5,
                                    .created_ns = s.now_ns + 9999,
                                    .estimate_ns = 95 * SCENE_SECOND_NS,
                                    .shape = {NEEDS(200, 10)}};
    struct berth_workload first = {.id = "first",
                                   .kind = BERTH_JOB,
                                   .replicas = 1,
                                   .priority = 5,
                                   .created_ns = s.now_ns,
                                   .estimate_ns = 500 * SCENE_SECOND_NS,
                                   .shape = {NEEDS(1000, 10)}};
    scene_put(&s, urgent);
    scene_put(&s, first);
    s.policy.backfill.ranking.name = "sjf";
    step(&s, "place urgent/0 a pending");
    scene_cleanup(&s);
}

/* The tasks of a gang stay together in the order. */
static void gang_tasks_stay_together_in_order(void **state)
{
    (void)state;
    struct scene s = stage(1, 1);
    run_job(&s, (struct job){.id = "x", .cpu = 600, .seconds = 100}, "a", 0);
    put_job(&s, (struct job){.id = "head", .cpu = 1000, .seconds = 600});
    put_job(&s, (struct job){.id = "one", .cpu = 300, .seconds = 60});
    put_job(&s, (struct job){.id = "pair", .pods = 2, .cpu = 200, .seconds = 30});
    s.policy.backfill.ranking.name = "sjf";
    step(&s, "place pair/0 a pending; place pair/1 a pending");
    scene_cleanup(&s);
}

static void unknown_backfill_ranking_is_refused(void **state)
{
    (void)state;
    struct scene s = full_node_with_head(1);
    struct berth_plan *plan = NULL;
    s.policy.backfill.ranking.name = "shortest";
    struct berth_snapshot *snapshot = berth_freeze(s.c, s.now_ns, 0);
    assert_int_equal(berth_plan_make(snapshot, &s.policy, &plan, &s.err), -22);
    assert_string_equal(s.err.text, "policy: backfill: there is no ranking \"shortest\"");
    berth_snapshot_free(snapshot);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backfill_ranking_orders_backfilled_jobs),
        cmocka_unit_test(ranking_applies_once_no_reservation_is_left),
        cmocka_unit_test(first_job_is_not_overtaken),
        cmocka_unit_test(backfill_ranking_keeps_priorities),
        cmocka_unit_test(gang_tasks_stay_together_in_order),
        cmocka_unit_test(unknown_backfill_ranking_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
