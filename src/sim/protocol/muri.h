/* muri.h - simulates training jobs on GPUs with free preemption, by the protocol of the published Muri results.
 *
 * At each event (jobs arrive, or the first running job ends) all jobs on the cluster are placed again, in the order of
 * a ranking, first fit; jobs without a place wait. muri.c has only the particulars of the published runs: the cost of
 * an event for a running job, the duration of iterations, whole nodes for large jobs. The core plans the order and the
 * placement.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct muri_job {
    int64_t id, gpus;
    double submit_s, iterations, iteration_s;
    double restart_s;           /* time that each event costs a running job */
    double left;                /* remaining iterations */
    double end_s;               /* 0: not ended */
    int64_t starts;             /* number of times that it got GPUs after having none */
    uint32_t whole_nodes, rest; /* nodes that it uses completely, and GPUs on one more */
};

struct muri_trace {
    struct muri_job *at; /* ordered by submission */
    size_t len, cap;
};

/* Reads job_id, num_gpu, submit_time and iteration_time (milliseconds), iterations and model_name from a CSV file. */
int muri_trace_read(const char *path, struct muri_trace *t, struct berth_err *err);
void muri_trace_done(struct muri_trace *t);
static inline void muri_trace_cleanup(struct muri_trace *t)
{
    muri_trace_done(t);
}

/* Returns the seconds that an event costs a running job of a model. A size between published ones is rounded up. */
double muri_restart_s(const char *model, int64_t gpus);

struct muri_options {
    const char *policy; /* "srtf", "srsf", "berth", or a ranking of the core */
    size_t nodes, gpus; /* number of nodes, and GPUs per node */
    void (*progress)(void *ctx, size_t done, size_t total);
    void *ctx;
};

struct muri_result {
    double average_s, makespan_s, p99_s; /* completion time: end minus submission */
    uint64_t events, starts;
};

/* Simulates the trace and sets the ends of its jobs. Returns -EINVAL for an unknown policy, or a job that can never
 * run. */
int muri_run(struct muri_trace *t, const struct muri_options *o, struct muri_result *ret, struct berth_err *err);
