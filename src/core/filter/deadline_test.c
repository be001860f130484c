/* deadline_test.c - pods that could not end by their deadline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/waiting_test.h"

static void missed_deadline_is_a_reason(void **state)
{
    static const struct {
        int64_t deadline;
        const char *want;
        int64_t begins;
    } rows[] = {
        {60,  "place job/0 b pending", 0 },
        {59,  "",                      -1},
        {400, "place job/0 b pending", 0 },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(2, 100);
        run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 100}, "a", 0);
        put_job(&s, (struct job){.id = "job", .cpu = 1000, .seconds = 60, .deadline = rows[i].deadline});
        put_job(&s, (struct job){.id = "same", .cpu = 1000, .seconds = 60});
        scene_plan(&s);
        /* other demands of its class are not affected */
        step(&s, *rows[i].want ? rows[i].want : "place same/0 b pending");
        if (!*rows[i].want)
            assert_non_null(strstr(scene_reason(&s, "job", "deadline").text, "the job cannot end by its deadline"));
        scene_cleanup(&s);
    }
    struct scene s = stage(1, 100); /* a job that could start, but not in time */
    run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 100}, "a", 0);
    put_job(&s, (struct job){.id = "job", .cpu = 1000, .seconds = 60, .deadline = 159});
    put_job(&s, (struct job){.id = "next", .cpu = 1000, .seconds = 60, .deadline = 160});
    step(&s, "");
    assert_int_equal(start_of(&s, "job"), -1);
    assert_int_equal(start_of(&s, "next"), 100);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missed_deadline_is_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
