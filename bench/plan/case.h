/* case.h - one measurement: plans a synthetic cluster several times, then checks the plan.
 *
 * The measured time covers what `berth plan` does once a cluster is in memory: berth_freeze, berth_plan_make with the
 * default profile, and reading every action. Making the cluster, applying the plan and the checks are not measured.
 */
#pragma once

#include <jansson.h>

#include "bench/plan/cluster.h"

enum { BENCH_RUNS_MAX = 1000, BENCH_MANY = 5000 };

struct bench_case {
    struct bench_size size;
    uint64_t runs;
    bool one_more;  /* also measure one more pod once everything is placed */
    bool many_more; /* likewise BENCH_MANY pods, one workload each */
    bool fresh;     /* rebuild the cluster for each run: nothing is kept from the previous run */
    bool no_audit;
};

struct bench_times {
    double median, min, max, first;
};

struct bench_result {
    struct bench_times all, freeze, plan, actions; /* seconds; `all` is the sum of the other three in each run */
    struct bench_times one_more, many_more;
    uint64_t rss_bytes;       /* peak memory of the process after the last plan */
    uint64_t rss_total_bytes; /* peak memory at the end, checks included */
    struct berth_plan_stats stats;
    uint64_t hash;
    uint64_t checksum; /* of the actions as read */
    bool audited, fixpoint;
    char audit[BERTH_ERR_TEXT_MAX]; /* "ok", "skipped", or the first violation */
};

/* Measures in this process. Returns a negative errno and a text if a cluster or plan cannot be made; a violated
 * invariant is a result, not an error. */
int bench_case_run(const struct bench_case *c, struct bench_result *ret, struct berth_err *err);

/* Measures in a child process, so that the peak memory is only that of the case. */
int bench_case_fork(const struct bench_case *c, struct bench_result *ret, struct berth_err *err);

/* Returns a new object with the case and its results. */
json_t *bench_case_json(const struct bench_case *c, const struct bench_result *r);

bool bench_result_sound(const struct bench_result *r);
