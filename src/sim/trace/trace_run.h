/* trace_run.h - simulates a trace of jobs with the planner, in virtual time.
 *
 * A discrete-event simulation: submissions, ends, and predictions that prove too short. Each event changes a
 * berth_cluster. While jobs wait, berth_freeze, berth_plan_make and berth_apply decide which jobs start where. Order,
 * placement and backfilling are only determined by the policy.
 *
 * At each moment, in this order: expired predictions are corrected; jobs that end now as predicted free their
 * resources; submissions, with a plan after each; ends, with a plan after each. A job whose tasks are preempted starts
 * again from the beginning.
 */
#pragma once

#include "berth.h"
#include "sim/trace/predict.h"
#include "sim/trace/trace_result.h"

struct sim_setup {
    const struct sim_trace *trace;
    const struct berth_node *nodes; /* the machine; a trace of processors is simulated on one node */
    size_t nodes_len;
    const struct berth_policy *policy;
    const struct sim_predictor *predictor;
    uint64_t seed;
    bool points;   /* fill sim_outcomes.points */
    bool accounts; /* jobs count against a quota named after their user, for fair shares */
    /* Called periodically with the number of ended jobs and of all jobs; NULL: no callback. */
    void (*progress)(void *ctx, size_t done, size_t total);
    void *ctx;
    /* Called with the cluster at the end of each moment with an event; NULL: no callback. */
    void (*moment)(void *ctx, const struct berth_cluster *cluster, int64_t now_ns);
    void *moment_ctx;
};

/* Simulates the trace to its end. Jobs that can never be placed (larger than the machine) stay in the queue. Jobs that
 * wait when nothing runs and no event is left never started. Returns -EINVAL for an unusable policy, or for jobs or
 * nodes that the planner rejects; -EOVERFLOW for a trace longer than 292 years. */
int sim_trace_run(const struct sim_setup *s, struct sim_outcomes *ret, struct berth_err *err);

/* One node "machine" with this many processors, for traces that have only processors. */
struct sim_machine {
    struct berth_amount amount;
    struct berth_node node;
};
void sim_machine_init(struct sim_machine *m, int64_t procs);
