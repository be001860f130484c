/* days_test.c - runs some random days of batch work (days.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "days.h"

static void random_days_keep_quotas_and_end(void **state)
{
    struct days_sum sum;
    (void)state;
    const struct bound bound = {.least = 12, .most = 60, .seconds = 10};
    assert_int_equal(days_check_within(1, bound, &sum), 0);
    assert_true(sum.preempted > 0 && sum.placed >= sum.jobs / 2);
}

/* Days on which a plan once stopped a job without need (decision 19). */
static void no_job_is_preempted_without_need(void **state)
{
    static const uint64_t seeds[] = {187, 1259, 3572, 3652, 5085, 6056, 8090, 9432};
    struct days_sum sum;
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        assert_int_equal(days_check(seeds[i], 1, &sum), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_days_keep_quotas_and_end),
        cmocka_unit_test(no_job_is_preempted_without_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
