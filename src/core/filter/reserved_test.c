/* reserved_test.c - nodes on which a pod would delay a reservation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/waiting_test.h"

/* One node of 1000: 600 are in use for 100 s, then the node is reserved for a head of 700 for 50 s. Which jobs may
 * start now? */
static void only_jobs_that_delay_nothing_start(void **state)
{
    static const struct {
        const char *label;
        int64_t cpu, seconds;
        bool placed;
    } rows[] = {
        {"ends before",             400, 99,    true },
        {"ends when it begins",     400, 100,   true },
        {"ends too late",           400, 101,   false},
        {"fits beside",             300, 99999, true },
        {"almost fits beside",      301, 101,   false},
        {"does not fit at present", 401, 1,     false},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(1, 100);
        run_job(&s, (struct job){.id = "x", .cpu = 600, .seconds = 100}, "a", 0);
        put_job(&s, (struct job){.id = "head", .cpu = 700, .seconds = 50});
        put_job(&s, (struct job){.id = "next", .cpu = rows[i].cpu, .seconds = rows[i].seconds});
        scene_plan(&s);
        if ((berth_plan_actions(s.p) > 0) != rows[i].placed)
            fail_msg("%s: %zu placed", rows[i].label, berth_plan_actions(s.p));
        step(&s, rows[i].placed ? "place next/0 a pending" : "");
        assert_int_equal(start_of(&s, "head"), 100);
        scene_cleanup(&s);
    }
}

/* A service has no end: it must fit beside the reservation. */
static void services_never_end(void **state)
{
    (void)state;
    struct scene s = stage(2, 100);
    run_job(&s, (struct job){.id = "x", .cpu = 600, .seconds = 100}, "a", 0);
    run_job(&s, (struct job){.id = "y", .cpu = 700, .seconds = 100}, "b", 0);
    put_job(&s, (struct job){.id = "head", .cpu = 700, .seconds = 50});
    scene_put(&s,
              (struct berth_workload){.id = "web", .replicas = 3, .created_ns = INT64_MAX, .shape = {NEEDS(150, 10)}});
    step(&s, "place web/0 a pending; place web/1 b pending; place web/2 a pending");
    assert_int_equal(start_of(&s, "head"), 100);
    scene_cleanup(&s);
}

/* After a job has failed, a shorter one of the same class is still tried; after a short one has failed, a longer one is
 * not. */
static void shorter_job_of_same_class_is_tried(void **state)
{
    (void)state;
    struct scene s = stage(1, 100);
    run_job(&s, (struct job){.id = "x", .cpu = 600, .seconds = 100}, "a", 0);
    put_job(&s, (struct job){.id = "head", .cpu = 1000, .seconds = 50});
    put_job(&s, (struct job){.id = "j1", .cpu = 200, .seconds = 300});
    put_job(&s, (struct job){.id = "j2", .cpu = 200, .seconds = 200});
    put_job(&s, (struct job){.id = "j3", .cpu = 200, .seconds = 100});
    put_job(&s, (struct job){.id = "j4", .cpu = 200, .seconds = 150});
    put_job(&s, (struct job){.id = "j5", .cpu = 200, .seconds = 50});
    put_job(&s, (struct job){.id = "j6", .cpu = 200, .seconds = 50});
    step(&s, "place j3/0 a pending; place j5/0 a pending");
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_jobs_that_delay_nothing_start),
        cmocka_unit_test(services_never_end),
        cmocka_unit_test(shorter_job_of_same_class_is_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
