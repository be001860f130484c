/* predict.c - predictors by name, and the two predictors without state. */
#include "sim/trace/predict.h"

#include <string.h>

static int64_t by_request(void *state, const struct sim_job *job, int64_t now_ns)
{
    (void)state;
    (void)now_ns;
    return job->request_ns > 0 ? job->request_ns : INT64_MAX;
}

static int64_t by_run(void *state, const struct sim_job *job, int64_t now_ns)
{
    (void)state;
    (void)now_ns;
    return job->run_ns;
}

static const struct sim_predictor request = {.name = "request",
                                             .sentence = "the run time that its user requested",
                                             .predict = by_request};
static const struct sim_predictor clairvoyant = {.name = "clairvoyant",
                                                 .sentence = "the real run time, unknown to a real scheduler",
                                                 .predict = by_run};

static const struct sim_predictor *const predictors[] = {&request, &clairvoyant, &sim_predict_last2,
                                                         &sim_predict_berth};
enum { PREDICTORS = sizeof predictors / sizeof *predictors };

const struct sim_predictor *sim_predictor_at(size_t i)
{
    return i < PREDICTORS ? predictors[i] : NULL;
}

const struct sim_predictor *sim_predictor_find(const char *name)
{
    for (size_t i = 0; i < PREDICTORS; i++)
        if (strcmp(predictors[i]->name, name) == 0)
            return predictors[i];
    return NULL;
}
