/* predict_last2.c - predicts the mean of the user's last two run times (Tsafrir, Etsion, Feitelson 2007). */
#include "base/vec.h"
#include "sim/trace/predict.h"

#define MINUTE_NS (60 * SIM_SECOND_NS)
#define HOUR_NS (60 * MINUTE_NS)

struct runs {
    int64_t last_ns, before_ns; /* -1: none yet */
};

struct last2 {
    VEC(struct runs) of; /* indexed by the user's word */
};

static void *begin(const struct sim_trace *t)
{
    (void)t;
    return mem_zalloc(sizeof(struct last2));
}

static void end(void *state)
{
    struct last2 *l = state;
    vec_done(&l->of);
    mem_free(l);
}

static struct runs *runs_of(struct last2 *l, sym user)
{
    while (l->of.len <= user)
        vec_push(&l->of, ((struct runs){-1, -1}));
    return &l->of.at[user];
}

/* In whole seconds, as published. */
static int64_t predict(void *state, const struct sim_job *job, int64_t now_ns)
{
    const struct runs *r = runs_of(state, job->user);
    (void)now_ns;
    if (r->before_ns < 0)
        return job->request_ns > 0 ? job->request_ns : INT64_MAX;
    return (r->last_ns / SIM_SECOND_NS + r->before_ns / SIM_SECOND_NS) / 2 * SIM_SECOND_NS;
}

int64_t sim_predict_correct(int64_t predicted_ns, uint32_t times)
{
    static const int64_t steps[] = {1 * MINUTE_NS, 5 * MINUTE_NS, 15 * MINUTE_NS, 30 * MINUTE_NS,
                                    1 * HOUR_NS,   2 * HOUR_NS,   5 * HOUR_NS,    10 * HOUR_NS,
                                    20 * HOUR_NS,  50 * HOUR_NS,  100 * HOUR_NS};
    enum { STEPS = sizeof steps / sizeof *steps };
    int64_t first_ns = predicted_ns - (times ? steps[times < STEPS ? times - 1 : STEPS - 1] : 0);
    return times < STEPS ? first_ns + steps[times] : 2 * predicted_ns;
}

static int64_t correct(void *state, const struct sim_job *job, int64_t predicted_ns, uint32_t times)
{
    (void)state;
    (void)job;
    return sim_predict_correct(predicted_ns, times);
}

static void ended(void *state, const struct sim_job *job, int64_t now_ns)
{
    struct runs *r = runs_of(state, job->user);
    (void)now_ns;
    r->before_ns = r->last_ns;
    r->last_ns = job->run_ns;
}

const struct sim_predictor sim_predict_last2 = {
    .name = "last2",
    .sentence = "the mean of its user's last two, longer by steps when that proves too short",
    .begin = begin,
    .end = end,
    .predict = predict,
    .correct = correct,
    .ended = ended,
};
