/* predict.h - how long will it run? Predictors of run times, by name.
 *
 * A predictor is asked once, when a job is submitted; it learns from jobs that end; and when a job has run for as long as
 * was predicted, it is asked by how much the prediction grows. It sees jobs in the order of events, and must not look at
 * run_ns before `ended` (but for "clairvoyant").
 *
 * To add one: predict_NAME.c with its struct sim_predictor, and a row in predict.c.
 */
#pragma once

#include "sim/trace/trace.h"

struct sim_predictor {
    const char *name;     /* "last2" */
    const char *sentence; /* for people */
    /* What is remembered, of a trace; NULL functions: nothing. */
    void *(*begin)(const struct sim_trace *t);
    void (*end)(void *state);
    /* How long it is expected to run; at least 1 ns. Whoever asks cuts it to the request. */
    int64_t (*predict)(void *state, const struct sim_job *job, int64_t now_ns);
    /* It has run for `predicted_ns` (below the request) and goes on; `times` says how often that has happened before. The new
     * prediction, which whoever asks cuts to the request. NULL: the request. */
    int64_t (*correct)(void *state, const struct sim_job *job, int64_t predicted_ns, uint32_t times);
    bool again; /* what waits is asked for anew whenever a job of its user has ended */
    /* It is over, having run for run_ns. NULL: nothing to learn. */
    void (*ended)(void *state, const struct sim_job *job, int64_t now_ns);
};

/* All of them; NULL past the end. */
const struct sim_predictor *sim_predictor_at(size_t i);
/* NULL: none of that name. */
const struct sim_predictor *sim_predictor_find(const char *name);

/* predict_last2.c: the published corrections of a prediction that proved too short: what was predicted at first, and 1, 5, 15, 30
 * minutes, 1, 2, 5, 10, 20, 50, 100 hours more; then twice as long each time. */
int64_t sim_predict_grow(int64_t predicted_ns, uint32_t times);

extern const struct sim_predictor sim_predict_last2, sim_predict_berth;
