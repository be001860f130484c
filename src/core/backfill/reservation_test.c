/* reservation_test.c - reservations and backfill: nodes, devices, gangs, wrong estimates, and that an applied plan
 * leaves nothing to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/waiting_test.h"

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

/* Two of four nodes are free. The head needs all four; jobs that end in time start before it, others wait. */
static void short_jobs_start_before_the_head(void **state)
{
    (void)state;
    struct scene s = stage(4, 100);
    run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 1000}, "a", 0);
    run_job(&s, (struct job){.id = "y", .cpu = 1000, .seconds = 2000}, "b", 0);
    put_job(&s, (struct job){.id = "head", .pods = 4, .cpu = 1000, .seconds = 600});
    put_job(&s, (struct job){.id = "long", .cpu = 1000, .seconds = 2001});
    put_job(&s, (struct job){.id = "short", .cpu = 1000, .seconds = 2000});
    put_job(&s, (struct job){.id = "tiny", .cpu = 500, .seconds = 10});
    scene_plan(&s);
    assert_non_null(strstr(scene_reason(&s, "long", "reserved").text, "there is room, but not for 34 minutes"));
    step(&s, "place short/0 c pending; place tiny/0 d pending");
    assert_int_equal(start_of(&s, "head"), 2000);
    assert_int_equal(start_of(&s, "long"), 2600);
    struct berth_queue_position head = queue_position(&s, "head");
    assert_int_equal(head.nodes, 4);
    assert_string_equal(head.node, "a");
    assert_int_equal(head.end_ns, START_NS + 2600 * SCENE_SECOND_NS);
    assert_int_equal(head.blockers_len, 4);
    assert_int_equal(berth_plan_recheck_ns(s.p), START_NS + 10 * SCENE_SECOND_NS);
    scene_cleanup(&s);
}

/* Without reservations every job that fits is placed. */
static void without_reservations_nothing_is_kept(void **state)
{
    (void)state;
    struct scene s = stage(2, 0);
    run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 1000}, "a", 0);
    put_job(&s, (struct job){.id = "head", .pods = 2, .cpu = 1000, .seconds = 600});
    put_job(&s, (struct job){.id = "long", .cpu = 1000, .seconds = 99999});
    step(&s, "place long/0 b pending");
    assert_int_equal(start_of(&s, "head"), -1);
    scene_cleanup(&s);
}

/* With `queued`, only jobs in a queue get reservations; other jobs may be overtaken. */
static void queued_limits_reservations_to_queues(void **state)
{
    static const struct berth_queue queue = {.id = "q"};
    static const struct {
        bool queued, in_queue;
        const char *want;
        int64_t start;
    } rows[] = {
        {false, false, "",                       1000},
        {true,  false, "place long/0 b pending", -1  },
        {true,  true,  "",                       1000},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(2, 100);
        s.policy.order.queues = &queue;
        s.policy.order.queues_len = 1;
        s.policy.backfill.queued = rows[i].queued;
        run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 1000}, "a", 0);
        put_job(&s, (struct job){
                        .id = "head", .pods = 2, .cpu = 1000, .seconds = 600, .queue = rows[i].in_queue ? "q" : ""});
        put_job(&s, (struct job){.id = "long", .cpu = 1000, .seconds = 99999});
        step(&s, rows[i].want);
        assert_int_equal(start_of(&s, "head"), rows[i].start);
        scene_cleanup(&s);
    }
}

/* A pod that fits beside the reserved pods may run for ever. */
static void pod_beside_a_reservation_is_placed(void **state)
{
    (void)state;
    struct scene s = stage(1, 100);
    run_job(&s, (struct job){.id = "x", .cpu = 800, .seconds = 1000}, "a", 0);
    put_job(&s, (struct job){.id = "head", .cpu = 900, .seconds = 600});
    scene_put(&s,
              (struct berth_workload){.id = "web", .replicas = 2, .created_ns = INT64_MAX, .shape = {NEEDS(60, 10)}});
    step(&s, "place web/0 a pending");
    assert_int_equal(start_of(&s, "head"), 1000);
    scene_cleanup(&s);
}

/* With one reservation only the head cannot be delayed; with more, those behind it as well. */
static void reserved_jobs_are_not_delayed(void **state)
{
    static const struct {
        uint32_t reservations;
        int64_t seconds;
        const char *want;
    } rows[] = {
        {1, 1500, "place late/0 b pending"},
        {2, 1500, ""                      },
        {2, 1000, "place late/0 b pending"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(2, rows[i].reservations);
        run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 1000}, "a", 0);
        run_job(&s, (struct job){.id = "y", .cpu = 500, .seconds = 1000}, "b", 0);
        put_job(&s, (struct job){.id = "one", .cpu = 1000, .seconds = 1000});
        put_job(&s, (struct job){.id = "two", .cpu = 1000, .seconds = 1000});
        put_job(&s, (struct job){.id = "late", .cpu = 500, .seconds = rows[i].seconds});
        step(&s, rows[i].want);
        assert_int_equal(start_of(&s, "one"), 1000);
        assert_int_equal(start_of(&s, "two"), rows[i].reservations > 1 ? 1000 : -1);
        scene_cleanup(&s);
    }
}

/* With `alike`, only the first jobs of those with the same constraints get reservations; a job that needs other nodes
 * gets its own. */
static void alike_limits_reservations_per_constraints(void **state)
{
    static const struct {
        uint32_t alike;
        int64_t two, there;
    } rows[] = {
        {0, 1000, 1000},
        {1, -1,   1000},
        {2, 1000, 1000},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(3, 100);
        s.policy.backfill.alike = rows[i].alike;
        run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 1000}, "a", 0);
        run_job(&s, (struct job){.id = "y", .cpu = 1000, .seconds = 1000}, "b", 0);
        run_job(&s, (struct job){.id = "z", .cpu = 1000, .seconds = 1000}, "c", 0);
        put_job(&s, (struct job){.id = "one", .cpu = 1000, .seconds = 1000});
        put_job(&s, (struct job){.id = "two", .cpu = 900, .seconds = 1000});
        scene_put(&s, (struct berth_workload){
                          .id = "there",
                          .kind = BERTH_JOB,
                          .replicas = 1,
                          .created_ns = INT64_MAX,
                          .estimate_ns = 1000 * SCENE_SECOND_NS,
                          .shape = {NEEDS(1000, 10), .node = "c"}
        });
        step(&s, "");
        assert_int_equal(start_of(&s, "one"), 1000);
        assert_int_equal(start_of(&s, "two"), rows[i].two);
        assert_int_equal(start_of(&s, "there"), rows[i].there);
        scene_cleanup(&s);
    }
}

/* Reservations are made one after the other, and beside one another. */
static void reservations_follow_each_other(void **state)
{
    (void)state;
    struct scene s = stage(2, 100);
    run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 100}, "a", 0);
    run_job(&s, (struct job){.id = "y", .cpu = 1000, .seconds = 150}, "b", 0);
    put_job(&s, (struct job){.id = "j1", .pods = 2, .cpu = 600, .seconds = 100}); /* 150 to 250 on both */
    put_job(&s, (struct job){.id = "j2", .cpu = 400, .seconds = 100});            /* beside, once a is free */
    put_job(&s, (struct job){.id = "j3", .cpu = 500, .seconds = 50});             /* 100 to 150: before j1 */
    put_job(&s, (struct job){.id = "j4", .cpu = 500, .seconds = 60});             /* after j1 */
    put_job(&s, (struct job){.id = "j5", .cpu = 2000, .seconds = 60});            /* never */
    step(&s, "");
    static const struct {
        const char *id;
        int64_t start;
    } rows[] = {
        {"j1", 150},
        {"j2", 100},
        {"j3", 100},
        {"j4", 250},
        {"j5", -1 },
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        if (start_of(&s, rows[i].id) != rows[i].start)
            fail_msg("%s starts at %lld", rows[i].id, (long long)start_of(&s, rows[i].id));
    scene_cleanup(&s);
}

/* A node that is free for a while and then reserved does not count for a job that would still run then. */
static void too_short_gap_is_not_used(void **state)
{
    (void)state;
    struct scene s = stage(0, 100);
    scene_node(&s, "a", 1000, 1000);
    scene_node(&s, "b", 500, 1000);
    scene_node(&s, "c", 1000, 1000);
    run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 100}, "a", 0);
    run_job(&s, (struct job){.id = "y", .cpu = 500, .seconds = 150}, "b", 0);
    run_job(&s, (struct job){.id = "z", .cpu = 1000, .seconds = 200}, "c", 0);
    put_job(&s, (struct job){.id = "head", .pods = 2, .cpu = 1000, .seconds = 100}); /* 200 to 300 on a and c */
    put_job(&s, (struct job){.id = "gap", .pods = 2, .cpu = 500, .seconds = 100});   /* 100 to 200 on a */
    /* a is free for too short a time */
    put_job(&s, (struct job){.id = "next", .pods = 3, .cpu = 500, .seconds = 140});
    step(&s, "");
    assert_int_equal(start_of(&s, "head"), 200);
    assert_int_equal(start_of(&s, "gap"), 100);
    assert_int_equal(start_of(&s, "next"), 300);
    scene_cleanup(&s);
}

/* Two pods of 500 fit on a until 200, and one on b from 150 on: three never fit before 300. */
static void pods_that_fit_decrease_before_a_reservation(void **state)
{
    (void)state;
    struct scene s = stage(0, 100);
    scene_node(&s, "a", 1000, 1000);
    scene_node(&s, "b", 500, 1000);
    scene_node(&s, "c", 1000, 1000);
    run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 100}, "a", 0);
    run_job(&s, (struct job){.id = "y", .cpu = 500, .seconds = 150}, "b", 0);
    run_job(&s, (struct job){.id = "z", .cpu = 1000, .seconds = 200}, "c", 0);
    put_job(&s, (struct job){.id = "head", .pods = 2, .cpu = 1000, .seconds = 100});
    put_job(&s, (struct job){.id = "three", .pods = 3, .cpu = 500, .seconds = 100});
    step(&s, "");
    assert_int_equal(start_of(&s, "three"), 300);
    scene_cleanup(&s);
}

/* A master and its workers start at the same moment. */
static void roles_start_together(void **state)
{
    (void)state;
    struct scene s = stage(2, 100);
    run_job(&s, (struct job){.id = "x", .cpu = 700, .seconds = 100}, "a", 0);
    run_job(&s, (struct job){.id = "y", .cpu = 700, .seconds = 200}, "b", 0);
    for (int i = 0; i < 2; i++)
        scene_put(&s, (struct berth_workload){.id = i ? "worker" : "master",
                                              .kind = BERTH_JOB,
                                              .replicas = i ? 2 : 1,
                                              .gang = "g",
                                              .created_ns = INT64_MAX / 2,
                                              .estimate_ns = 60 * SCENE_SECOND_NS,
                                              .shape = {NEEDS(i ? 600 : 400, 10)}});
    step(&s, "");
    assert_int_equal(start_of(&s, "master"), 200);
    assert_int_equal(start_of(&s, "worker"), 200);
    assert_int_equal(queue_position(&s, "worker").nodes, 2);
    scene_cleanup(&s);
}

/* ---- devices ---------------------------------------------------------------------------------------------------- */

static uint64_t gpus_of(struct scene *s, const char *id)
{
    for (size_t i = 0; i < berth_plan_actions(s->p); i++)
        if (strcmp(berth_plan_action(s->p, i).workload, id) == 0)
            return berth_plan_action(s->p, i).gpus;
    return 0;
}

/* Four GPUs, two in use. The head gets 0, 1 and 2; so the long job must get 3, though 2 is free, too. */
static void gpus_are_reserved_one_by_one(void **state)
{
    static const struct berth_gpu gpus[4] = {
        {"A", 80},
        {"A", 80},
        {"A", 80},
        {"A", 80}
    };
    (void)state;
    struct scene s = stage(0, 100);
    scene_put_node(&s, (struct berth_node){.id = "n", HAS(10000, 10000), .gpus = gpus, .gpus_len = 4});
    run_job(&s, (struct job){.id = "x", .cpu = 1, .seconds = 100, .gpus = 2}, "n", 3);
    put_job(&s, (struct job){.id = "head", .cpu = 1, .seconds = 60, .gpus = 3});
    put_job(&s, (struct job){.id = "long", .cpu = 1, .seconds = 1000, .gpus = 1});
    put_job(&s, (struct job){.id = "other", .cpu = 1, .seconds = 101, .gpus = 1});
    put_job(&s, (struct job){.id = "half", .cpu = 1, .seconds = 100, .gpus = 1, .milli = 500});
    put_job(&s, (struct job){.id = "most", .cpu = 1, .seconds = 1000, .gpus = 1, .milli = 600});
    scene_expect(&s, "place long/0 n pending; place half/0 n pending");
    assert_int_equal(gpus_of(&s, "long"), 8);
    assert_int_equal(gpus_of(&s, "half"), 4);
    step(&s, "place long/0 n pending; place half/0 n pending");
    assert_int_equal(start_of(&s, "head"), 100);
    assert_int_equal(start_of(&s, "other"), 160);
    assert_int_equal(start_of(&s, "most"), 160);
    scene_cleanup(&s);
}

/* Shares of GPUs: two halves wait for the same device, a third one for the next device. */
static void shares_of_a_device_are_reserved(void **state)
{
    static const struct berth_gpu gpus[2] = {
        {"A", 80},
        {"A", 80}
    };
    (void)state;
    struct scene s = stage(0, 100);
    scene_put_node(&s, (struct berth_node){.id = "n", HAS(10000, 10000), .gpus = gpus, .gpus_len = 2});
    run_job(&s, (struct job){.id = "x", .cpu = 1, .seconds = 100, .gpus = 1}, "n", 1);
    run_job(&s, (struct job){.id = "y", .cpu = 1, .seconds = 200, .gpus = 1}, "n", 2);
    put_job(&s, (struct job){.id = "two", .pods = 2, .cpu = 1, .seconds = 500, .gpus = 1, .milli = 500});
    put_job(&s, (struct job){.id = "more", .pods = 3, .cpu = 1, .seconds = 500, .gpus = 1, .milli = 400});
    step(&s, "");
    assert_int_equal(start_of(&s, "two"), 100);
    assert_int_equal(start_of(&s, "more"), 600);
    scene_cleanup(&s);
}

/* ---- estimates -------------------------------------------------------------------------------------------------- */

/* A job that outruns its estimate is expected to need twice as long, again and again, at most its limit. */
static void estimates_are_doubled_when_outrun(void **state)
{
    static const struct {
        int64_t estimate, limit, policy, at, end;
    } rows[] = {
        {100, 0,   0,  0,    100 },
        {100, 0,   0,  99,   100 },
        {100, 0,   0,  100,  200 },
        {100, 0,   0,  250,  400 },
        {100, 300, 0,  250,  300 },
        {0,   300, 0,  10,   300 },
        {0,   0,   0,  10,   3600},
        {0,   0,   50, 10,   50  },
        {0,   0,   50, 3000, 3200},
        {500, 300, 0,  10,   300 },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(1, 100);
        s.policy.backfill.estimate_ns = rows[i].policy * SCENE_SECOND_NS;
        struct job x = {.id = "x", .cpu = 1000, .seconds = rows[i].estimate, .limit = rows[i].limit};
        run_job(&s, x, "a", 0);
        put_job(&s, (struct job){.id = "head", .cpu = 1000, .seconds = 60});
        s.now_ns += rows[i].at * SCENE_SECOND_NS;
        step(&s, "");
        if (start_of(&s, "head") != rows[i].end)
            fail_msg("row %zu: starts at %lld", i, (long long)start_of(&s, "head"));
        assert_true(berth_plan_recheck_ns(s.p) <= START_NS + rows[i].end * SCENE_SECOND_NS);
        scene_cleanup(&s);
    }
}

/* With until_limit, running jobs are expected to run until their limits. Whether a job may start before a reservation
 * follows from its estimate; once it runs, its limit counts, too. */
static void until_limit_extends_expected_ends(void **state)
{
    static const struct {
        bool until_limit;
        int64_t limit, start;
    } rows[] = {
        {false, 300, 100},
        {true,  300, 300},
        {true,  0,   100},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(1, 1);
        s.policy.backfill.until_limit = rows[i].until_limit;
        run_job(&s, (struct job){.id = "x", .cpu = 600, .seconds = 100, .limit = rows[i].limit}, "a", 0);
        put_job(&s, (struct job){.id = "head", .cpu = 1000, .seconds = 60});
        put_job(&s, (struct job){.id = "next", .cpu = 400, .seconds = 90, .limit = 500});
        scene_expect(&s, "place next/0 a pending");
        assert_int_equal(start_of(&s, "head"), rows[i].start);
        scene_apply(&s);
        assert_int_equal(start_of(&s, "head"), rows[i].until_limit ? 500 : rows[i].start);
        scene_cleanup(&s);
    }
}

/* until_limit also applies to pods that this plan places. */
static void until_limit_applies_to_new_pods(void **state)
{
    (void)state;
    for (int until_limit = 0; until_limit < 2; until_limit++) {
        struct scene s = stage(1, 1);
        s.policy.backfill.until_limit = until_limit;
        put_job(&s, (struct job){.id = "first", .cpu = 600, .seconds = 100, .limit = 300});
        put_job(&s, (struct job){.id = "head", .cpu = 1000, .seconds = 60});
        step(&s, "place first/0 a pending");
        assert_int_equal(start_of(&s, "head"), until_limit ? 300 : 100);
        scene_cleanup(&s);
    }
}

/* Services never end: no start can be predicted. */
static void services_have_no_expected_end(void **state)
{
    (void)state;
    struct scene s = stage(1, 100);
    scene_service(&s, "web", 1, 600, 10);
    scene_running(&s, "web", 0, "a");
    put_job(&s, (struct job){.id = "head", .cpu = 600, .seconds = 60});
    put_job(&s, (struct job){.id = "next", .cpu = 400, .seconds = 60});
    step(&s, "place next/0 a pending");
    assert_int_equal(start_of(&s, "head"), -1);
    scene_cleanup(&s);
}

/* ---- facts ------------------------------------------------------------------------------------------------------ */

static void reservation_facts_follow_the_start(void **state)
{
    (void)state;
    struct scene s = stage(1, 100);
    run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 100}, "a", 0);
    put_job(&s, (struct job){.id = "head", .cpu = 1000, .seconds = 60});
    scene_plan(&s);
    assert_int_equal(berth_plan_facts(s.p), 1);
    struct berth_fact fact = berth_plan_fact(s.p, 0);
    assert_int_equal(fact.kind, BERTH_FACT_RESERVATION);
    assert_string_equal(fact.key, "head");
    assert_int_equal(fact.value, START_NS + 100 * SCENE_SECOND_NS);
    assert_int_equal(fact.at_ns, START_NS);
    step(&s, "");

    s.now_ns += 50 * SCENE_SECOND_NS; /* nothing has changed */
    scene_plan(&s);
    assert_int_equal(berth_plan_facts(s.p), 0);

    s.now_ns += 50 * SCENE_SECOND_NS; /* the running job has outrun its estimate */
    scene_plan(&s);
    assert_int_equal(berth_plan_facts(s.p), 1);
    assert_int_equal(berth_plan_fact(s.p, 0).value, START_NS + 200 * SCENE_SECOND_NS);
    assert_int_equal(berth_plan_fact(s.p, 0).at_ns, s.now_ns);
    step(&s, "");

    scene_remove(&s, cluster_instance(s.c, 0)->id);
    scene_check(&s, berth_workload_remove(s.c, "x", &s.err));
    scene_plan(&s);
    assert_int_equal(berth_plan_facts(s.p), 1);
    assert_true(berth_plan_fact(s.p, 0).over);
    step(&s, "place head/0 a pending");
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_jobs_start_before_the_head),
        cmocka_unit_test(without_reservations_nothing_is_kept),
        cmocka_unit_test(queued_limits_reservations_to_queues),
        cmocka_unit_test(pod_beside_a_reservation_is_placed),
        cmocka_unit_test(reserved_jobs_are_not_delayed),
        cmocka_unit_test(alike_limits_reservations_per_constraints),
        cmocka_unit_test(reservations_follow_each_other),
        cmocka_unit_test(too_short_gap_is_not_used),
        cmocka_unit_test(pods_that_fit_decrease_before_a_reservation),
        cmocka_unit_test(roles_start_together),
        cmocka_unit_test(gpus_are_reserved_one_by_one),
        cmocka_unit_test(shares_of_a_device_are_reserved),
        cmocka_unit_test(estimates_are_doubled_when_outrun),
        cmocka_unit_test(until_limit_extends_expected_ends),
        cmocka_unit_test(until_limit_applies_to_new_pods),
        cmocka_unit_test(services_have_no_expected_end),
        cmocka_unit_test(reservation_facts_follow_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
