/* side.h - one side of a comparison: a trace simulated with one policy, with its results as numbers and over time.
 *
 * A policy is written ORDER/BACKFILL/PREDICT/PROFILE, with the defaults easy, request, default for omitted parts; or
 * "berth", the product's own policy. The names are those of trace_policy.h, predict.h and of the planner's profiles.
 */
#pragma once

#include "sim/report/idle.h"
#include "sim/trace/fleet.h"
#include "sim/trace/trace_run.h"

struct sim_side {
    char *label;
    struct berth_policy policy;
    const struct sim_predictor *predictor;
    bool done; /* simulated, or filled from a recording */
    struct sim_outcomes out;
    struct sim_summary summary;
    double median_wait_s, p95_wait_s;
    /* Jain's index of the users' average bounded slowdowns: 1 is perfectly fair, 1/users is the minimum */
    double fairness;
    double fragmented; /* mean over time */
    sim_samples samples;
};

/* Parses a policy. Returns -EINVAL for an unknown name. Profiles of the fleet's file are known, too. */
int sim_side_init(struct sim_side *s, const char *text, const struct sim_fleet *fleet, struct berth_err *err);
void sim_side_done(struct sim_side *s);

struct sim_side_options {
    const struct sim_trace *trace;
    const struct sim_fleet *fleet;
    uint64_t seed;
    void (*progress)(void *ctx, size_t done, size_t total); /* jobs; NULL: no callback */
    void *ctx;
};

/* Simulates the trace. Returns -EINVAL, with a remedy, if a job is larger than all nodes together. */
int sim_side_run(struct sim_side *s, const struct sim_side_options *p, struct berth_err *err);
/* Computes the numbers of outcomes that were not simulated here. */
void sim_side_compute_numbers(struct sim_side *s, const struct sim_side_options *p);

/* A number of a side, in the order of tables: its name in JSON and CSV, its title for people. */
struct sim_number {
    const char *key, *title;
    double value;
    int digits;   /* after the decimal point */
    bool seconds; /* value is a duration */
    bool percent; /* value is 0 to 1 */
    int better;   /* 1: higher is better, -1: lower, 0: neither */
};
/* Returns a number; key NULL past the end. */
struct sim_number sim_side_number(const struct sim_side *s, size_t i);
