/* muri.h - training jobs on GPUs that are stopped and started at will, by the protocol of the published Muri results.
 *
 * At each event (jobs come, or the first of those that run ends) every job on the cluster is placed anew, in the order of a
 * ranking, each where it fits first; who finds no place waits. What is peculiar to the published runs is in muri.c alone:
 * what an event costs a job that runs, how long iterations take, whole nodes for large jobs. Who comes first and where it
 * stands is a plan of the core.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct muri_job {
    int64_t id, gpus;
    double submit_s, iterations, iteration_s;
    double restart_s;           /* what an event costs it while it runs */
    double left;                /* iterations */
    double end_s;               /* 0: not yet */
    int64_t starts;             /* how often it was given GPUs after it had none */
    uint32_t whole_nodes, rest; /* nodes it takes wholly, and GPUs on one more */
};

struct muri_trace {
    struct muri_job *at; /* by submission */
    size_t len, cap;
};

/* Reads job_id, num_gpu, submit_time and iteration_time (milliseconds), iterations and model_name of a CSV file. */
int muri_trace_read(const char *path, struct muri_trace *t, struct berth_err *err);
void muri_trace_done(struct muri_trace *t);
static inline void muri_trace_cleanup(struct muri_trace *t)
{
    muri_trace_done(t);
}

/* Of seconds; what an event costs a running job of a model. Sizes between those published count as the next one up. */
double muri_restart_s(const char *model, int64_t gpus);

struct muri_options {
    const char *policy; /* "srtf", "srsf", "berth", or a ranking of the core */
    size_t nodes, gpus; /* nodes, and GPUs of each */
    void (*progress)(void *ctx, size_t done, size_t total);
    void *ctx;
};

struct muri_result {
    double average_s, makespan_s, p99_s; /* completion times: end less submission */
    uint64_t events, starts;
};

/* Plays the trace, whose jobs then have their ends. -EINVAL for a policy that there is not, or a job that can never run. */
int muri_run(struct muri_trace *t, const struct muri_options *o, struct muri_result *ret, struct berth_err *err);
