/* days_test.c - some random days of batch work: see days.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "days.h"

static void nothing_starves_and_nothing_loops(void **state)
{
    struct days_sum sum;
    (void)state;
    assert_int_equal(days_check(1, 60, &sum), 0);
    assert_true(sum.preempted > 0 && sum.placed >= sum.jobs / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_starves_and_nothing_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
