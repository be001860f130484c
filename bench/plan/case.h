/* case.h - one measurement: a made-up cluster, planned several times, then checked.
 *
 * Timed is what `berth plan` does once a cluster is in memory: berth_freeze, berth_plan_make with the default profile,
 * and reading every action. Making the cluster, applying the plan and the checks are not.
 */
#pragma once

#include <jansson.h>

#include "bench/plan/cluster.h"

enum { BENCH_RUNS_MAX = 1000, BENCH_MANY = 5000 };

struct bench_case {
    struct bench_size size;
    uint64_t runs;
    bool one_more;  /* with everything placed, one more pod */
    bool many_more; /* ... and BENCH_MANY, each of a workload of its own */
    bool fresh;     /* make the cluster anew for each run: nothing is kept from the run before */
    bool no_audit;
};

struct bench_times {
    double median, min, max, first;
};

struct bench_result {
    struct bench_times all, freeze, plan, actions; /* seconds; `all` is the sum of the others, run by run */
    struct bench_times one_more, many_more;
    uint64_t rss_bytes;       /* peak of the process when the last plan was ready */
    uint64_t rss_total_bytes; /* peak in the end, checks included */
    struct berth_plan_stats stats;
    uint64_t hash;
    uint64_t checksum; /* of the actions as they were read */
    bool audited, fixpoint;
    char audit[BERTH_ERR_TEXT_MAX]; /* "ok", "skipped", or the first breach */
};

/* Runs in this process. Negative errno and a text when a cluster or a plan cannot be made; a broken invariant is a
 * result. */
int bench_case_run(const struct bench_case *c, struct bench_result *ret, struct berth_err *err);

/* The same in a child, so that the peak of memory is the case's own. */
int bench_case_fork(const struct bench_case *c, struct bench_result *ret, struct berth_err *err);

/* A new object with everything asked for and everything measured. */
json_t *bench_case_json(const struct bench_case *c, const struct bench_result *r);

bool bench_result_sound(const struct bench_result *r);
