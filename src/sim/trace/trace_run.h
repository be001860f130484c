/* trace_run.h - a trace of jobs played through the planner, in virtual time.
 *
 * Discrete events: submissions, ends, and predictions that prove too short. Each changes a berth_cluster; whenever something
 * waits, berth_freeze, berth_plan_make and berth_apply decide who starts where. There is no order, no placement and no
 * backfilling in here: those are the policy's.
 *
 * At one moment: predictions that are over are corrected; what was predicted to end now, and does, gives back what it holds;
 * then submissions, a plan after each; then ends, a plan after each. A job whose tasks are stopped for others begins anew.
 */
#pragma once

#include "berth.h"
#include "sim/trace/predict.h"
#include "sim/trace/trace_result.h"

struct sim_setup {
    const struct sim_trace *trace;
    const struct berth_node *nodes; /* the machine; a trace of processors is played on one node */
    size_t nodes_len;
    const struct berth_policy *policy;
    const struct sim_predictor *predictor;
    uint64_t seed;
    bool points;   /* fill sim_outcomes.points */
    bool accounts; /* jobs count against a quota named as their user, for shares that are fair */
    /* Called now and then with jobs ended and jobs in all; NULL: nobody is told. */
    void (*progress)(void *ctx, size_t done, size_t total);
    void *ctx;
    /* Shown the cluster at the end of each moment at which something happened; NULL: nobody is. */
    void (*moment)(void *ctx, const struct berth_cluster *cluster, int64_t now_ns);
    void *moment_ctx;
};

/* Plays the trace to its end. Jobs that could never be placed (larger than the machine) stay in the queue; those that still
 * wait when nothing runs and nothing comes any more never started. -EINVAL for a policy that cannot be planned by, or jobs
 * or nodes that the planner refuses; -EOVERFLOW for a trace that lasts for longer than 292 years. */
int sim_trace_run(const struct sim_setup *s, struct sim_outcomes *ret, struct berth_err *err);

/* One node "machine" with so many processors, for traces that know of nothing else. */
struct sim_machine {
    struct berth_amount amount;
    struct berth_node node;
};
void sim_machine_init(struct sim_machine *m, int64_t procs);
