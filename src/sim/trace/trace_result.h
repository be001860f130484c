/* trace_result.h - the outcome of each job of a trace, and averages.
 *
 * Bounded slowdown is (wait + run) / max(run, 10 s), at least 1. Utilisation is the processor time used by jobs (GPU
 * time if the machine has GPUs) as a part of the total from the first submission to the last end.
 */
#pragma once

#include "sim/trace/trace.h"

#define SIM_BOUND_NS (10 * SIM_SECOND_NS)

struct sim_outcome {
    int64_t start_ns;     /* -1: never started */
    int64_t end_ns;       /* start plus run time; -1: never started */
    int64_t predicted_ns; /* at submission */
    uint32_t node;        /* of its first task, an index in the setup's nodes */
    uint32_t stops;       /* number of preemptions, each followed by a new start */
    double missing_s;     /* of an elastic job: sum of the seconds without each of its tasks */
};

/* The state of the queue from one moment to the next. */
struct sim_queue_point {
    int64_t at_ns;
    uint32_t waiting, running;
    int64_t held; /* in use: milli-processors, or milli-GPUs if the machine has GPUs */
};

struct sim_summary {
    size_t jobs;  /* jobs that ran */
    size_t unrun; /* jobs that never ran */
    double average_bounded_slowdown, max_bounded_slowdown, rms_bounded_slowdown;
    double utilisation; /* 0 to 1 */
    double mean_wait_s, max_wait_s;
    double mean_completion_s, p99_completion_s; /* from submission to end */
    double makespan_s;                          /* from the first submission to the last end */
    double queue_median;                        /* of the queue lengths at decisions */
};

/* The output of sim_trace_run. */
struct sim_outcomes {
    struct sim_outcome *at; /* indexed by job, in order of submission */
    size_t len;
    struct sim_queue_point *points; /* one for each moment with an event, if requested */
    size_t points_len, points_cap;
    uint64_t *queue_lengths; /* number of decisions by queue length; the last counter includes longer queues */
    size_t queue_lengths_len;
    int64_t capacity; /* in the units of `held` */
    uint64_t plans;
};

void sim_outcomes_done(struct sim_outcomes *o);
static inline void sim_outcomes_cleanup(struct sim_outcomes *o)
{
    sim_outcomes_done(o);
}

/* Returns (wait + run) / max(run, 10 s), at least 1; for a job that ran. */
double sim_bounded_slowdown(const struct sim_job *job, const struct sim_outcome *o);
/* Return the use of one running task, and of all tasks of the job, in the units of the machine's capacity. */
int64_t sim_task_held(const struct sim_job *job, bool by_gpus);
int64_t sim_job_held(const struct sim_job *job, bool by_gpus);
struct sim_summary sim_summarise(const struct sim_trace *t, const struct sim_outcomes *o, bool by_gpus);
