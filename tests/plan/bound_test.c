/* bound_test.c - tests how many seeds a random check runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bound.h"

static size_t run(struct bound bound)
{
    size_t done = 0;
    bound_begin(&bound);
    while (bound_goes_on(&bound, done))
        done++;
    return done;
}

static void bound_runs_minimum_then_until_time_then_all(void **state)
{
    static const struct {
        const char *label, *bed;
        struct bound bound;
        size_t want;
    } rows[] = {
        {"the minimum runs when no time is left",    NULL,    {.least = 7, .most = 9, .seconds = 0},   7},
        {"all run when there is time",               NULL,    {.least = 7, .most = 9, .seconds = 600}, 9},
        {"none are too many",                        NULL,    {.least = 0, .most = 0, .seconds = 600}, 0},
        {"a whole bed has no time bound",            "whole", {.least = 7, .most = 9, .seconds = 0},   9},
        {"another word for the bed changes nothing", "small", {.least = 7, .most = 9, .seconds = 0},   7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].bed)
            assert_int_equal(setenv("BERTH_BED", rows[i].bed, 1), 0);
        else
            assert_int_equal(unsetenv("BERTH_BED"), 0);
        size_t got = run(rows[i].bound);
        if (got != rows[i].want)
            fail_msg("%s: %zu, not %zu", rows[i].label, got, rows[i].want);
    }
}

/* The loop would not end if the bound ignored CPU time. */
static void cpu_time_ends_the_loop(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("BERTH_BED"), 0);
    assert_true(run((struct bound){.least = 1, .most = SIZE_MAX, .seconds = 1}) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_runs_minimum_then_until_time_then_all),
        cmocka_unit_test(cpu_time_ends_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
