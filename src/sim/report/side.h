/* side.h - a trace played under one policy, to be held beside others: what became of it, as numbers and over time.
 *
 * A policy is written ORDER/BACKFILL/PREDICT/PROFILE, where what is left out at the end is easy, request, default; or "berth", the
 * product's own. The words are those of trace_policy.h, predict.h and of the planner's profiles.
 */
#pragma once

#include "sim/report/idle.h"
#include "sim/trace/fleet.h"
#include "sim/trace/trace_run.h"

struct sim_side {
    char *label;
    struct berth_policy policy;
    const struct sim_predictor *predictor;
    bool done; /* it was played, or is what was recorded */
    struct sim_outcomes out;
    struct sim_summary summary;
    double median_wait_s, p95_wait_s;
    double
        fairness; /* Jain's index of the users' average bounded slowdowns: 1 where all fare alike, 1/users at worst */
    double fragmented; /* mean over time */
    sim_samples samples;
};

/* -EINVAL: a word is none that is known. The profile is looked for in the fleet's file, too. */
int sim_side_init(struct sim_side *s, const char *text, const struct sim_fleet *fleet, struct berth_err *err);
void sim_side_done(struct sim_side *s);

struct sim_playing {
    const struct sim_trace *trace;
    const struct sim_fleet *fleet;
    uint64_t seed;
    void (*progress)(void *ctx, size_t done, size_t total); /* jobs; NULL: nobody is told */
    void *ctx;
};

/* Plays the trace. -EINVAL where a job is larger than all nodes together are, with what to do. */
int sim_side_run(struct sim_side *s, const struct sim_playing *p, struct berth_err *err);
/* Makes numbers of outcomes that came from elsewhere. */
void sim_side_sum_up(struct sim_side *s, const struct sim_playing *p);

/* Numbers of a side in the order of tables: name of JSON and CSV, name for people. */
struct sim_number {
    const char *key, *title;
    double value;
    int digits;   /* after the point */
    bool seconds; /* a time */
    bool percent; /* value is 0 to 1 */
    int better;   /* 1: higher is better, -1: lower, 0: neither */
};
/* key NULL past the end. */
struct sim_number sim_side_number(const struct sim_side *s, size_t i);
