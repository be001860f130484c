/* days_check.c - the checks of days_test.c on many more days, within a time bound (bound.h). Prints the totals. */
/* bed: seeds, in part */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "days.h"

static void random_days_keep_quotas_and_end(void **state)
{
    struct days_sum sum;
    (void)state;
    const struct bound bound = {.least = 150, .most = 1000, .seconds = 50};
    size_t failed = days_check_within(1000, bound, &sum);
    print_message("%" PRIu64 " days, %" PRIu64 " jobs, load %.2f, %" PRIu64 " plans, %" PRIu64 " pods placed, %" PRIu64
                  " preempted, %" PRIu64 " out of time\n",
                  sum.days, sum.jobs, sum.load / (double)(sum.days ? sum.days : 1), sum.plans, sum.placed,
                  sum.preempted, sum.expired);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_days_keep_quotas_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
