/* cluster_check.c - simulates sixty seeds of a whole day each, shorter ones with other characters, seeds that once
 * broke an invariant, and new seeds, on all processors.
 *
 * BERTH_SEEDS is the first of the new seeds; default: the time of day. New seeds are started for BERTH_SEEDS_SECONDS
 * seconds of CPU time.
 *
 * bed: seeds, in part
 * In part: of the fixed seeds at least two of each character, then more until each process has used its time.
 * BERTH_BED=whole runs them all.
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

#include "sim/cluster/cluster.h"

enum { FIRST = 1001, WORKERS_MAX = 16, LEAST = 2, SECONDS = 60, NEW_SECONDS = 60, NEW_LEAST = 4 };

/* Rates in percent of the normal rate; 0 nodes or users: chosen by the seed. */
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

/* Returns whether another seed runs after this many of the same character. */
static bool runs_another_seed(unsigned done)
{
    const char *bed = getenv("BERTH_BED");
    return done < LEAST || (bed && strcmp(bed, "whole") == 0) || clock() < (clock_t)SECONDS * CLOCKS_PER_SEC;
}

/* Runs every n-th seed, the first seeds of all characters before the second ones. Stops at the first breach. */
static int days_work(long worker, long workers)
{
    long turn = 0;
    for (unsigned k = 0, left = 1; left; k++) {
        uint64_t seed = FIRST + k;
        left = 0;
        for (size_t i = 0; i < sizeof characters / sizeof *characters; seed += characters[i++].seeds) {
            if (k >= characters[i].seeds)
                continue;
            left++;
            if (turn++ % workers == worker && runs_another_seed(k) && run_one(&characters[i], seed) < 0)
                return 1;
        }
    }
    return 0;
}

/* 770007, 770011, 770013: commit batches exceeded quotas because they relied on uncommitted or outdated data. 41000008:
 * two instances of one pod, of different shapes, counted against a guarantee in the order in which they were put into
 * the cluster. 41000027, 41000053, 41000055: plans made before a scale request assigned reserved places. By then the
 * workload no longer allowed a second instance of a pod; the first one ran on a lost node, in 41000053 it was
 * stopping. */
static const struct {
    uint64_t seed;
    struct character character;
} once_broken[] = {
    {770007,   {.hours = 11, .rates = {100, 100}}},
    {770011,   {.hours = 7, .rates = {100, 100}} },
    {770013,   {.hours = 7, .rates = {100, 100}} },
    {41000008, {.hours = 3, .rates = {100, 100}} },
    {41000027, {.hours = 7, .rates = {100, 100}} },
    {41000053, {.hours = 3, .rates = {100, 100}} },
    {41000055, {.hours = 4, .rates = {100, 100}} },
};

static int broken_work(long worker, long workers)
{
    for (size_t i = 0; i < sizeof once_broken / sizeof *once_broken; i++)
        if ((long)i % workers == worker && run_one(&once_broken[i].character, once_broken[i].seed) < 0)
            return 1;
    return 0;
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* Set before the workers start. */
static uint64_t new_first;

/* Runs new seeds, alternately with normal and high rates, until the time is used up; a minimum number always runs. */
static int new_work(long worker, long workers)
{
    static const struct character kinds[] = {
        {.hours = 3,  .rates = {100, 100}},
        { .hours = 0.5, .rates = {300, 400},          .nodes = 6, .users = 8},
    };
    uint64_t seconds = number_from("BERTH_SEEDS_SECONDS", NEW_SECONDS) / (uint64_t)workers;
    clock_t begin = clock();
    for (uint64_t i = 0; i < (NEW_LEAST + (uint64_t)workers - 1) / (uint64_t)workers ||
                         (uint64_t)(clock() - begin) / CLOCKS_PER_SEC < seconds;
         i++)
        if (run_one(&kinds[i % 2], new_first + i * (uint64_t)workers + (uint64_t)worker) < 0)
            return 1;
    return 0;
}

static void share(int (*work)(long worker, long workers))
{
    long workers = sysconf(_SC_NPROCESSORS_ONLN), failed = 0;
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

static void no_invariant_breaks_in_fixed_seeds(void **state)
{
    (void)state;
    share(days_work);
}

static void fixed_regressions_stay_fixed(void **state)
{
    (void)state;
    share(broken_work);
}

static void no_invariant_breaks_in_new_seeds(void **state)
{
    (void)state;
    new_first = number_from("BERTH_SEEDS", (uint64_t)time(NULL) * 1000);
    print_message("# new seeds from %llu\n", (unsigned long long)new_first);
    share(new_work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_regressions_stay_fixed),
        cmocka_unit_test(no_invariant_breaks_in_new_seeds),
        cmocka_unit_test(no_invariant_breaks_in_fixed_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
