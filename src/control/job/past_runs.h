/* past_runs.h - run time predictor: predicts how long a job runs from past runs of similar jobs.
 *
 * This is the only predictor of run times. The daemon uses it with past runs in documents (predict.h), simulations with
 * the runs of a trace (sim/trace/predict_berth.c). The prediction is a function of its arguments, without clock or
 * heap.
 *
 * Each past run contributes the share of its limit that it ran for, or its run time if one of the two jobs has no
 * limit. The prediction is a weighted mean. Of the job's own past (runs of its owner and name, or of its owner if there
 * are none) the latest runs weigh most, and runs of the same size and limit far more than others. The latest runs of
 * all users together weigh half as much as the last own run. The mean is multiplied by 1.5, so that most jobs end in
 * time, and stays below the limit. The limit itself is predicted only where users ask for exactly what they need.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PAST_RUNS_MAX = 64 };

struct past_run {
    int64_t run_ns, limit_ns; /* limit 0: none */
    int64_t size;             /* past_run_size */
};

/* The last PAST_RUNS_MAX runs; zeroes: none. */
struct past_runs {
    uint64_t len; /* number of runs ever added */
    struct past_run at[PAST_RUNS_MAX];
};

void past_runs_add(struct past_runs *p, const struct past_run *x);

/* Returns the size of all tasks that run together: their GPUs, or their cores if they have no GPU. */
int64_t past_run_size(uint32_t tasks, uint32_t gpus, int64_t cpu_milli);
/* Returns whether a run of a name also counts for its owner and for all users: the first few runs do, then every
 * eighth, so that one large array does not dominate. `before`: how many runs the name had. */
bool past_run_counts(uint64_t before);

/* Returns the predicted run time of a job with this limit (0: none) and size; the limit if the job needs all of it; 0:
 * nothing is known. `own` and `all` may be NULL. */
int64_t past_predict(const struct past_runs *own, const struct past_runs *all, int64_t limit_ns, int64_t size);
/* Returns whether two predictions differ by a quarter or more, or only one of them equals the limit. */
bool past_prediction_moved(int64_t was_ns, int64_t is_ns, int64_t limit_ns);
