/* cluster_check.c - many whole clusters under a seed, of several characters, for some minutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "sim/cluster.h"

enum { SEEDS_MAX = 1000, SECONDS_MAX = 240 };

/* Rates in percent of what is usual; 0 nodes or users: as the seed has it. */
static const struct {
    double hours;
    size_t nodes, users;
    struct sim_rates rates;
} characters[] = {
    {1,   0,  0,  {100, 100, 100}},
    {0.5, 0,  0,  {300, 100, 300}},
    {0.5, 0,  0,  {100, 200, 500}},
    {0.5, 3,  10, {300, 100, 100}},
    {0.2, 40, 20, {100, 100, 100}},
};

static void nothing_breaks_for_long(void **state)
{
    (void)state;
    time_t end = time(NULL) + SECONDS_MAX;
    uint64_t seed = 1001, events = 0;
    for (; seed <= 1000 + SEEDS_MAX && time(NULL) < end; seed++) {
        size_t of = (size_t)seed % (sizeof characters / sizeof *characters);
        struct sim_options options = {.seed = seed,
                                      .hours = characters[of].hours,
                                      .nodes = characters[of].nodes,
                                      .users = characters[of].users,
                                      .rates = characters[of].rates};
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
