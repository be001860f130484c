/* trace_kit_test.h - short forms for small traces, and policies by name.
 *
 * Include <cmocka.h> and its prerequisites before this file.
 */
#pragma once

#include "base/mem.h"
#include "sim/random.h"
#include "sim/trace/trace_policy.h"
#include "sim/trace/trace_run.h"

struct kit_job {
    int64_t submit, run, request, procs; /* seconds */
};

static inline void kit_trace(struct sim_trace *t, const struct kit_job *jobs, size_t len)
{
    sim_trace_init(t);
    for (size_t i = 0; i < len; i++)
        sim_trace_add(t, &(struct sim_job){.id = (int64_t)i + 1,
                                           .submit_ns = jobs[i].submit * SIM_SECOND_NS,
                                           .run_ns = jobs[i].run * SIM_SECOND_NS,
                                           .request_ns = jobs[i].request * SIM_SECOND_NS,
                                           .tasks = 1,
                                           .cpu_milli = jobs[i].procs * 1000});
    sim_trace_sort(t);
}

struct kit {
    struct sim_machine machine;
    struct berth_policy policy;
    struct sim_setup setup;
};

/* The setup points into the kit. */
static inline void kit_init(struct kit *k, const struct sim_trace *t, int64_t procs, const char *order,
                            const char *backfill, const char *predictor)
{
    struct berth_err err = {0};
    *k = (struct kit){0};
    sim_machine_init(&k->machine, procs);
    assert_int_equal(sim_policy_order(order, &k->policy, &err), 0);
    assert_int_equal(sim_policy_backfill(backfill, &k->policy, &err), 0);
    k->setup = (struct sim_setup){.trace = t,
                                  .nodes = &k->machine.node,
                                  .nodes_len = 1,
                                  .policy = &k->policy,
                                  .predictor = sim_predictor_find(predictor)};
    assert_non_null(k->setup.predictor);
}

/* Returns seconds; -1: the job never started. */
static inline int64_t kit_start(const struct sim_outcomes *o, size_t job)
{
    return o->at[job].start_ns < 0 ? -1 : o->at[job].start_ns / SIM_SECOND_NS;
}

/* Fills in random jobs: enough load that each moment requires decisions, with many equal times. */
static inline size_t kit_random(struct kit_job *jobs, size_t most, int64_t procs, uint64_t seed)
{
    struct random_stream c = random_stream_new(seed, 1);
    size_t len = 1 + random_below(&c, most);
    int64_t now = 0;
    for (size_t i = 0; i < len; i++) {
        now += random_per_mille(&c, 300) ? 0 : random_range(&c, 0, 12);
        int64_t run = random_range(&c, random_per_mille(&c, 50) ? 0 : 1, 30);
        jobs[i] =
            (struct kit_job){.submit = now,
                             .run = run,
                             .request = random_per_mille(&c, 300) ? (run ? run : 1) : run + random_range(&c, 1, 40),
                             .procs = random_range(&c, 1, random_per_mille(&c, 300) ? procs : (procs + 2) / 3)};
    }
    return len;
}
