/* generate.h - traces of jobs that never were: drawn from a seed, the same bits on every machine.
 *
 * Kinds: "lublin" (sizes, run times and bursts after Lublin and Feitelson, 2003, with their daily cycle), "poisson" (jobs come
 * at any time alike), "diurnal" (more by day than by night, fewer at the weekend). In the last two a user has a few programs,
 * each with its own size and usual run time, so that history tells something. All have users of whom a few are busy, and
 * requests as people make them: round, and mostly too long.
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
    double load;   /* what the jobs take of the machine, on average from the first submission to the last; above 0 */
    int64_t procs; /* of the machine; at least 1 */
    int64_t gpus; /* above 0: of the machine, and jobs ask for GPUs (some for a share of one), with 4 processors each */
    size_t users; /* at least 1 */
};

enum { SIM_GENERATE_JOBS_MAX = 100000000 };

/* Fills an empty trace. Times are whole seconds. -EINVAL for what cannot be. */
int sim_generate(const struct sim_generate *g, struct sim_trace *t, struct berth_err *err);
/* The kinds by name, with a sentence each; NULL past the end. */
const char *sim_generate_at(size_t i, const char **ret_sentence);

/* Writes the trace in the Standard Workload Format: users, groups, names and queues become numbers, GPUs are lost. */
void sim_trace_swf_write(const struct sim_trace *t, FILE *to);
