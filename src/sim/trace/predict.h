/* predict.h - predictors of job run times, by name.
 *
 * A predictor is asked once, when a job is submitted, and learns from ended jobs. When a job has run for as long as
 * predicted, the predictor is asked for a longer prediction. It sees jobs in the order of events, and must not read
 * run_ns before `ended` (except "clairvoyant").
 *
 * To add one: predict_NAME.c with its struct sim_predictor, and a row in predict.c.
 */
#pragma once

#include "sim/trace/trace.h"

struct sim_predictor {
    const char *name;     /* "last2" */
    const char *sentence; /* description for people */
    /* Create and free the state of a predictor for a trace. NULL: no state. */
    void *(*begin)(const struct sim_trace *t);
    void (*end)(void *state);
    /* Returns the expected run time, at least 1 ns. The caller limits it to the requested time. */
    int64_t (*predict)(void *state, const struct sim_job *job, int64_t now_ns);
    /* Called when a job continues after `predicted_ns` (below the requested time), for the `times`-th time, counted
     * from 0. Returns the new prediction, which the caller limits to the requested time. NULL: the requested time. */
    int64_t (*correct)(void *state, const struct sim_job *job, int64_t predicted_ns, uint32_t times);
    bool again; /* predict waiting jobs again whenever a job of the same user has ended */
    /* Called when a job has ended after run_ns. NULL: the predictor learns nothing. */
    void (*ended)(void *state, const struct sim_job *job, int64_t now_ns);
};

/* Returns a predictor by index; NULL past the end. */
const struct sim_predictor *sim_predictor_at(size_t i);
/* Returns a predictor by name; NULL: unknown. */
const struct sim_predictor *sim_predictor_find(const char *name);

/* The published corrections of a prediction that was too short (predict_last2.c): the first prediction plus 1, 5, 15,
 * 30 minutes, 1, 2, 5, 10, 20, 50, 100 hours; then doubled each time. */
int64_t sim_predict_correct(int64_t predicted_ns, uint32_t times);

extern const struct sim_predictor sim_predict_last2, sim_predict_berth;
