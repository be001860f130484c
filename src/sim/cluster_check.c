/* cluster_check.c - sixty seeds of a whole day each, and shorter ones of other characters, on every processor there is.
 *
 * bed: seeds, in part
 * In part: at least two seeds of each character, then more until each process has used its time. BERTH_BED=whole runs them all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/cluster.h"

enum { FIRST = 1001, WORKERS_MAX = 16, LEAST = 2, SECONDS = 60 };

/* Rates in percent of what is usual; 0 nodes or users: as the seed has it. */
static const struct character {
    unsigned seeds;
    double hours;
    size_t nodes, users;
    struct sim_rates rates;
} characters[] = {
    {20, 24,  3,  2,  {20, 60}  },
    {20, 24,  3,  3,  {10, 40}  },
    {20, 24,  4,  2,  {10, 30}  },
    {4,  1,   0,  0,  {100, 100}},
    {4,  0.5, 0,  0,  {300, 300}},
    {4,  0.5, 0,  0,  {100, 500}},
    {4,  0.5, 3,  10, {300, 100}},
    {4,  0.2, 40, 20, {100, 100}},
};

static int run_one(const struct character *c, uint64_t seed)
{
    struct sim_options options = {
        .seed = seed, .hours = c->hours, .nodes = c->nodes, .users = c->users, .rates = c->rates};
    struct sim_result result = {0};
    struct berth_err err = {0};
    int rc = sim_cluster_run(&options, &result, &err);
    if (rc < 0)
        print_message("# %s\n", err.text);
    else
        print_message("# seed %llu: %g hours of %zu nodes, %llu events, %llu checks\n", (unsigned long long)seed,
                      c->hours, c->nodes, (unsigned long long)result.events, (unsigned long long)result.checks);
    (void)fflush(stdout);
    return rc;
}

/* Does another seed run after so many of its character? */
static bool goes_on(unsigned done)
{
    const char *bed = getenv("BERTH_BED");
    return done < LEAST || (bed && strcmp(bed, "whole") == 0) || clock() < (clock_t)SECONDS * CLOCKS_PER_SEC;
}

/* Every n-th seed, the first ones of all characters before the second ones; ends at the first breach. */
static int work(long worker, long workers)
{
    long turn = 0;
    for (unsigned k = 0, left = 1; left; k++) {
        uint64_t seed = FIRST + k;
        left = 0;
        for (size_t i = 0; i < sizeof characters / sizeof *characters; seed += characters[i++].seeds) {
            if (k >= characters[i].seeds)
                continue;
            left++;
            if (turn++ % workers == worker && goes_on(k) && run_one(&characters[i], seed) < 0)
                return 1;
        }
    }
    return 0;
}

static void nothing_breaks_for_days(void **state)
{
    long workers = sysconf(_SC_NPROCESSORS_ONLN), failed = 0;
    (void)state;
    workers = workers < 1 ? 1 : workers > WORKERS_MAX ? WORKERS_MAX : workers;
    (void)fflush(NULL);
    for (long i = 0; i < workers; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(work(i, workers));
    }
    for (long i = 0; i < workers; i++) {
        int status;
        assert_true(wait(&status) > 0);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_breaks_for_days)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
