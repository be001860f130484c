/* trace_result.h - what became of each job of a trace, and what that means on average.
 *
 * Bounded slowdown is (wait + run) / max(run, 10 s), at least 1. Utilisation is what the jobs held, by processors (by GPUs
 * where the machine has some) and time, of all there was from the first submission to the last end.
 */
#pragma once

#include "sim/trace/trace.h"

#define SIM_BOUND_NS (10 * SIM_SECOND_NS)

struct sim_outcome {
    int64_t start_ns;     /* -1: it never started */
    int64_t end_ns;       /* start plus run; -1 */
    int64_t predicted_ns; /* at its submission */
    uint32_t node;        /* of its first task, an index of the setup's nodes */
    uint32_t stops;       /* how often it was stopped for others, and began anew */
    double missing_s;     /* of an elastic job: seconds for which it ran without each of its tasks, added up */
};

/* The queue's length, as it was from one moment on to the next. */
struct sim_queue_point {
    int64_t at_ns;
    uint32_t waiting, running;
    int64_t held; /* processors in thousandths, or of a machine with GPUs thousandths of them */
};

struct sim_summary {
    size_t jobs;  /* that ran */
    size_t unrun; /* that never could */
    double average_bounded_slowdown, max_bounded_slowdown, rms_bounded_slowdown;
    double utilisation; /* 0 to 1 */
    double mean_wait_s, max_wait_s;
    double mean_completion_s, p99_completion_s; /* from submission to end */
    double makespan_s;                          /* from the first submission to the last end */
    double queue_median;                        /* of the lengths found at decisions */
};

/* What sim_trace_run fills. */
struct sim_outcomes {
    struct sim_outcome *at; /* [job], in order of submission */
    size_t len;
    struct sim_queue_point *points; /* one for each moment at which something happened, if asked for */
    size_t points_len, points_cap;
    uint64_t *queue_lengths; /* how many decisions found so many waiting; those beyond the last count there */
    size_t queue_lengths_len;
    int64_t capacity; /* in the units of `held` */
    uint64_t plans;
};

void sim_outcomes_done(struct sim_outcomes *o);
static inline void sim_outcomes_cleanup(struct sim_outcomes *o)
{
    sim_outcomes_done(o);
}

/* (wait + run) / max(run, 10 s), at least 1; of a job that ran. */
double sim_bounded_slowdown(const struct sim_job *job, const struct sim_outcome *o);
/* What one task holds while it runs, and what all tasks of the job hold, in the units of the machine's capacity. */
int64_t sim_task_held(const struct sim_job *job, bool by_gpus);
int64_t sim_job_held(const struct sim_job *job, bool by_gpus);
struct sim_summary sim_summarise(const struct sim_trace *t, const struct sim_outcomes *o, bool by_gpus);
