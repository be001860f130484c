/* trace_engine.h - jobs of a trace in a berth_cluster: submitted, predicted, planned, ended.
 *
 * What trace_run.c and the published protocols stand on. It knows no clock and no order of events: whoever drives it says
 * what happens when. Who starts, and where, is decided by berth_plan_make alone.
 */
#pragma once

#include "base/vec.h"
#include "sim/trace/trace_run.h"

#define SIM_NO_JOB UINT32_MAX

struct sim_instance {
    uint32_t job, next;
    bool placed; /* else it is reserved */
};

struct sim_engine {
    const struct sim_setup *s;
    struct berth_cluster *cluster;
    struct sim_outcomes *out;
    struct sim_task_list {
        int64_t predicted_ns; /* in force; 0: nothing is known */
        uint32_t first;       /* of its instances, an index of `instances`; UINT32_MAX: none */
        uint32_t placed;      /* tasks */
        uint32_t corrected;   /* how often */
        uint32_t name;        /* the number in its workload's id */
        bool waits;
    } * jobs;
    VEC(struct sim_instance) instances; /* [id - 1] */
    VEC(uint32_t) named;   /* [name]: the job, or SIM_NO_JOB; names are used again, for the planner keeps every word */
    uint32_t last;         /* name given */
    VEC(uint32_t) started; /* jobs, by the last plan */
    VEC(uint32_t) stopped; /* jobs that were running, by the last plan */
    VEC(uint64_t) shed;    /* instances that the last plan stopped while others of their job stay, and reserved ones */
    uint32_t waiting, running;
    uint32_t small; /* elastic jobs that run with fewer tasks than they may have */
    int64_t held;
    bool by_gpus;
    bool endless; /* something would end after the end of time */
};

/* An empty cluster of the setup's nodes; `out` is filled as things happen. */
int sim_engine_init(struct sim_engine *e, const struct sim_setup *s, struct sim_outcomes *out, struct berth_err *err);
void sim_engine_done(struct sim_engine *e);

/* It waits from now on, expected to run for so long (0: unknown). `priority` is beside its own. */
int sim_engine_submit(struct sim_engine *e, uint32_t job, int64_t predicted_ns, int32_t priority,
                      struct berth_err *err);
/* Says anew what was said then. */
int sim_engine_change(struct sim_engine *e, uint32_t job, int64_t predicted_ns, int32_t priority,
                      struct berth_err *err);
/* It gives back all it holds, and is forgotten. */
int sim_engine_end(struct sim_engine *e, uint32_t job, struct berth_err *err);

/* Decides, as often as something is stopped for others; e->started and e->stopped say what came of it. A job that waits has a
 * start in e->out only once all its tasks are placed. `look`, unless NULL, is shown the last plan. */
int sim_engine_plan(struct sim_engine *e, const struct berth_policy *policy, int64_t now_ns,
                    void (*look)(void *ctx, struct berth_plan *plan), void *ctx, struct berth_err *err);

/* The job of a workload's id. */
uint32_t sim_engine_job(const struct sim_engine *e, const char *workload);
