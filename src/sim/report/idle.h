/* idle.h - measures the idle resources of a cluster, and their fragmentation, sampled over time.
 *
 * Idle GPUs (idle processors in a cluster without GPUs) are fragmented if they are on nodes where a task drawn from the
 * trace does not fit. GPU shares are counted per node, not per device.
 */
#pragma once

#include "base/vec.h"
#include "sim/trace/trace.h"

struct sim_sample {
    int64_t at_ns;
    double load;       /* used part of the capacity, 0 to 1 */
    double fragmented; /* 0 to 1; 0 for a full cluster */
};

typedef VEC(struct sim_sample) sim_samples;

struct idle_need {
    int64_t amount;
    double weight; /* share of tasks that need this amount or more */
};

struct idle_sampler {
    sim_samples *samples;
    VEC(struct idle_need) needs; /* needs of tasks, ascending */
    int64_t every_ns, next_ns;
    double there, idle, lost;
};

/* Collects the needs of the trace's tasks. About a thousand samples are taken. */
void idle_sampler_init(struct idle_sampler *w, const struct sim_trace *t, bool by_gpus, sim_samples *samples);
void idle_sampler_done(struct idle_sampler *w);
/* Returns whether a sample is due. The caller then reports each node, and closes the sample. */
bool idle_sampler_due(struct idle_sampler *w, int64_t now_ns);
void idle_sampler_node(struct idle_sampler *w, int64_t there, int64_t held);
void idle_sampler_close(struct idle_sampler *w, int64_t now_ns);
/* Returns the mean over time. */
double idle_mean(const sim_samples *s);
