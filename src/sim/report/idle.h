/* idle.h - what is idle in a cluster, and how much of it is of use: fragmentation, sampled as time goes on.
 *
 * Of what is idle (GPUs where the cluster has some, else processors) the part counts that lies on nodes where a task drawn from
 * the trace finds no room. Shares of GPUs count by node, not by device.
 */
#pragma once

#include "base/vec.h"
#include "sim/trace/trace.h"

struct sim_sample {
    int64_t at_ns;
    double load;       /* held of what there is, 0 to 1 */
    double fragmented; /* 0 to 1; of a full cluster 0 */
};

typedef VEC(struct sim_sample) sim_samples;

struct idle_need {
    int64_t amount;
    double weight; /* the share of tasks that need this or more */
};

struct idle_watch {
    sim_samples *samples;
    VEC(struct idle_need) needs; /* of tasks, the smallest first */
    int64_t every_ns, next_ns;
    double there, idle, lost;
};

/* What tasks of the trace need; samples are taken about a thousand times. */
void idle_watch_init(struct idle_watch *w, const struct sim_trace *t, bool by_gpus, sim_samples *samples);
void idle_watch_done(struct idle_watch *w);
/* Is it time for a sample? Then each node is told, and the sample closed. */
bool idle_watch_due(struct idle_watch *w, int64_t now_ns);
void idle_watch_node(struct idle_watch *w, int64_t there, int64_t held);
void idle_watch_close(struct idle_watch *w, int64_t now_ns);
/* Mean over time. */
double idle_mean(const sim_samples *s);
