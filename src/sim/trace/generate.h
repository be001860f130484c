/* generate.h - generates synthetic traces from a seed, with the same bits on every machine.
 *
 * Kinds: "lublin" (sizes, run times and bursts after Lublin and Feitelson, 2003, with their daily cycle), "poisson"
 * (uniform arrival times), "diurnal" (more jobs by day than by night, fewer at weekends). In the last two, a user has a
 * few programs, each with its own size and typical run time, so that history is informative. In all kinds a few users
 * submit most jobs, and requested times are as people choose them: round, and mostly too long.
 *
 * To add a kind: a row in the table of generate.c.
 */
#pragma once

#include <stdio.h>

#include "sim/trace/trace.h"

struct sim_generate {
    const char *kind;
    uint64_t seed;
    size_t jobs;
    double load;   /* average use of the machine from the first submission to the last; above 0 */
    int64_t procs; /* of the machine; at least 1 */
    int64_t gpus;  /* of the machine; if above 0, jobs request GPUs (some a share of one), with 4 processors each */
    size_t users;  /* at least 1 */
};

enum { SIM_GENERATE_JOBS_MAX = 100000000 };

/* Fills an empty trace. Times are whole seconds. Returns -EINVAL for impossible options. */
int sim_generate(const struct sim_generate *g, struct sim_trace *t, struct berth_err *err);
/* Returns the name of a kind, with a description; NULL past the end. */
const char *sim_generate_at(size_t i, const char **ret_sentence);

/* Writes the trace in the Standard Workload Format: users, groups, names and queues become numbers, GPUs are lost. */
void sim_trace_swf_write(const struct sim_trace *t, FILE *to);
