/* suite.h - what Berth promises about its speed, as tables: goals, and curves along which the time must not grow
 * faster than the input.
 *
 * To add a goal: a case in `goal_cases` if it needs another cluster, and a row in `goals`.
 */
#pragma once

#include "bench/plan/case.h"

enum bench_measure {
    MEASURE_SECONDS,   /* freeze, plan and actions: the median */
    MEASURE_ONE_MORE,  /* the same for one new pod with everything placed */
    MEASURE_MANY_MORE, /* ... for BENCH_MANY */
    MEASURE_BYTES,     /* peak memory */
    MEASURE_RATIO,     /* the median against another case's */
};

struct bench_goal {
    const char *what;
    size_t of;   /* case */
    size_t over; /* the case it is compared with, of a ratio */
    enum bench_measure measure;
    double most;
};

/* A line along which one number doubles from case to case. */
struct bench_curve {
    const char *what;
    size_t first, len; /* cases */
};

/* Twice the input, at most twice the time; what lies a tenth above counts as noise. */
#define BENCH_GROWTH_MOST 2.0
#define BENCH_GROWTH_NOISE 1.1

struct bench_suite {
    const struct bench_size *cases; /* the seed is left 0 */
    size_t cases_len;
    const struct bench_goal *goals;
    size_t goals_len;
    const struct bench_curve *curves;
    size_t curves_len;
};

/* The whole one (minutes), or a quick one (seconds) of a tenth of the size. */
const struct bench_suite *bench_suite_get(bool quick);

/* The goal for a cluster of this size, whatever its seed; NULL: none. */
const struct bench_goal *bench_goal_find(const struct bench_size *size, enum bench_measure measure);

/* Does some goal of the suite ask for this of the case? */
bool bench_suite_asks(const struct bench_suite *suite, size_t i, enum bench_measure measure);
