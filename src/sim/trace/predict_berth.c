/* predict_berth.c - the daemon's own predictor (control/job/past_runs.h), which learns each end immediately. */
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "control/job/past_runs.h"
#include "sim/trace/predict.h"

/* Past runs of one user, or of one program of a user. */
struct run_history {
    sym user, name; /* name 0: all runs of the user */
    struct past_runs past_runs;
};

struct run_histories {
    VEC(struct run_history *) kinds;
    struct map map; /* (user, name) -> index in `kinds` */
    struct past_runs all;
};

static void *begin(const struct sim_trace *t)
{
    (void)t;
    return mem_zalloc(sizeof(struct run_histories));
}

static void end(void *state)
{
    struct run_histories *m = state;
    for (size_t i = 0; i < m->kinds.len; i++)
        mem_free(m->kinds.at[i]);
    vec_done(&m->kinds);
    map_done(&m->map);
    mem_free(m);
}

static bool same(const void *ctx, uint32_t value, const void *key)
{
    const struct run_histories *m = ctx;
    const struct run_history *k = key, *x = m->kinds.at[value];
    return x->user == k->user && x->name == k->name;
}

static uint64_t hash_of(const struct run_history *k)
{
    return hash_pair(k->user, k->name);
}

/* Returns NULL if none of these jobs has ended. */
static struct run_history *find(const struct run_histories *m, sym user, sym name)
{
    struct run_history key = {.user = user, .name = name};
    uint32_t at = map_find(&m->map, hash_of(&key), same, m, &key);
    return at == MAP_NONE ? NULL : m->kinds.at[at];
}

static struct past_runs *open(struct run_histories *m, sym user, sym name)
{
    struct run_history *k = find(m, user, name);
    if (!k) {
        k = mem_zalloc(sizeof *k);
        k->user = user;
        k->name = name;
        map_add(&m->map, hash_of(k), (uint32_t)m->kinds.len);
        vec_push(&m->kinds, k);
    }
    return &k->past_runs;
}

static int64_t size_of(const struct sim_job *j)
{
    return past_run_size(j->tasks, j->gpus, j->cpu_milli);
}

static int64_t predict(void *state, const struct sim_job *job, int64_t now_ns)
{
    const struct run_histories *m = state;
    const struct run_history *own = job->name ? find(m, job->user, job->name) : NULL;
    (void)now_ns;
    if (!own)
        own = find(m, job->user, 0);
    int64_t ns = past_predict(own ? &own->past_runs : NULL, &m->all, job->request_ns, size_of(job));
    return ns ? ns : job->request_ns > 0 ? job->request_ns : INT64_MAX;
}

static void ended(void *state, const struct sim_job *job, int64_t now_ns)
{
    struct run_histories *m = state;
    struct past_run past = {job->run_ns, job->request_ns, size_of(job)};
    struct past_runs *named = job->name ? open(m, job->user, job->name) : NULL;
    (void)now_ns;
    if (!named || past_run_counts(named->len)) {
        past_runs_add(open(m, job->user, 0), &past);
        past_runs_add(&m->all, &past);
    }
    if (named)
        past_runs_add(named, &past);
}

const struct sim_predictor sim_predict_berth = {
    .name = "berth",
    .sentence = "by the share of their requests that its user's jobs like it ran for, the latest most",
    .begin = begin,
    .end = end,
    .predict = predict,
    .again = true,
    .ended = ended,
};
