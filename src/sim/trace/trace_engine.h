/* trace_engine.h - jobs of a trace in a berth_cluster: submitted, predicted, planned, ended.
 *
 * The common base of trace_run.c and the published protocols. The engine knows no clock and no order of events: its
 * caller determines what happens when. berth_plan_make alone decides which jobs start, and where.
 */
#pragma once

#include "base/vec.h"
#include "sim/trace/trace_run.h"

#define SIM_NO_JOB UINT32_MAX

struct engine_instance {
    uint32_t job, next;
    bool placed; /* otherwise reserved */
};

struct sim_engine {
    const struct sim_setup *s;
    struct berth_cluster *cluster;
    struct sim_outcomes *out;
    struct sim_task_list {
        int64_t predicted_ns; /* current prediction; 0: unknown */
        uint32_t first;       /* first instance, an index in `instances`; UINT32_MAX: none */
        uint32_t placed;      /* number of tasks */
        uint32_t corrected;   /* number of corrections */
        uint32_t name;        /* number in its workload's id */
        bool waits;
    } * jobs;
    VEC(struct engine_instance) instances; /* indexed by id - 1 */
    VEC(uint32_t) named;   /* job by name, or SIM_NO_JOB; names are reused, because the planner keeps every word */
    uint32_t last;         /* last assigned name */
    VEC(uint32_t) started; /* jobs started by the last plan */
    VEC(uint32_t) stopped; /* running jobs stopped by the last plan */
    VEC(uint64_t)
    partial_stops; /* instances stopped by the last plan whose jobs keep others, and stopped reservations */
    uint32_t waiting, running;
    uint32_t small; /* number of running elastic jobs with fewer tasks than their maximum */
    int64_t held;
    bool by_gpus;
    bool time_overflow; /* a job would end after the maximum time */
};

/* Creates an empty cluster with the setup's nodes. `out` is filled during the simulation. */
int sim_engine_init(struct sim_engine *e, const struct sim_setup *s, struct sim_outcomes *out, struct berth_err *err);
void sim_engine_done(struct sim_engine *e);

/* Adds a waiting job with its expected run time (0: unknown). `priority` is added to the job's own priority. */
int sim_engine_submit(struct sim_engine *e, uint32_t job, int64_t predicted_ns, int32_t priority,
                      struct berth_err *err);
/* Changes the arguments of sim_engine_submit. */
int sim_engine_change(struct sim_engine *e, uint32_t job, int64_t predicted_ns, int32_t priority,
                      struct berth_err *err);
/* Removes a job and frees its resources. */
int sim_engine_end(struct sim_engine *e, uint32_t job, struct berth_err *err);

/* Plans, and repeats that while plans preempt jobs; sets e->started and e->stopped. A waiting job has a start in e->out
 * only after all its tasks are placed. `look`, unless NULL, is called with the last plan. */
int sim_engine_plan(struct sim_engine *e, const struct berth_policy *policy, int64_t now_ns,
                    void (*look)(void *ctx, struct berth_plan *plan), void *ctx, struct berth_err *err);

/* Returns the job of a workload's id. */
uint32_t sim_engine_job(const struct sim_engine *e, const char *workload);
