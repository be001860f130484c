/* cluster_check.c - many whole clusters under a seed, for some minutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "sim/cluster.h"

enum { SEEDS_MAX = 400, SECONDS_MAX = 150 };

static void nothing_breaks_for_long(void **state)
{
    (void)state;
    time_t end = time(NULL) + SECONDS_MAX;
    uint64_t seed = 1001, events = 0;
    for (; seed <= 1000 + SEEDS_MAX && time(NULL) < end; seed++) {
        struct sim_options options = {.seed = seed, .hours = 1};
        struct sim_result result = {0};
        struct berth_err err = {0};
        if (sim_cluster_run(&options, &result, &err) < 0)
            fail_msg("%s", err.text);
        events += result.events;
    }
    print_message("# %llu clusters, %llu events\n", (unsigned long long)(seed - 1001), (unsigned long long)events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_breaks_for_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
