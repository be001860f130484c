/* suite.h - Berth's performance goals as tables: goals, and curves along which the time must not grow faster than the
 * input.
 *
 * To add a goal: cases in suite.c (full and quick) if it needs another cluster, and rows in the tables of goals.
 */
#pragma once

#include "bench/plan/case.h"

enum bench_measure {
    MEASURE_SECONDS,   /* median of freeze, plan and actions */
    MEASURE_ONE_MORE,  /* the same for one new pod, everything else placed */
    MEASURE_MANY_MORE, /* the same for BENCH_MANY new pods */
    MEASURE_BYTES,     /* peak memory */
    MEASURE_RATIO,     /* median relative to another case's */
};

struct bench_goal {
    const char *what;
    size_t of;   /* index of the case */
    size_t over; /* the reference case of a ratio */
    enum bench_measure measure;
    double most;
};

/* A sequence of cases along which one number doubles. */
struct bench_curve {
    const char *what;
    size_t first, len; /* cases */
};

/* Doubling the input may double the time at most; up to a tenth more counts as noise. */
#define BENCH_GROWTH_MOST 2.0
#define BENCH_GROWTH_NOISE 1.1

struct bench_suite {
    const struct bench_size *cases; /* seed is 0 */
    size_t cases_len;
    const struct bench_goal *goals;
    size_t goals_len;
    const struct bench_curve *curves;
    size_t curves_len;
};

/* Returns the full suite (minutes), or the quick suite (seconds), which has a tenth of the size. */
const struct bench_suite *bench_suite_get(bool quick);

/* Returns the goal for a cluster of this size, ignoring the seed; NULL: none. */
const struct bench_goal *bench_goal_find(const struct bench_size *size, enum bench_measure measure);

/* Returns whether a goal of the suite needs this measurement of case i. */
bool bench_suite_asks(const struct bench_suite *suite, size_t i, enum bench_measure measure);
