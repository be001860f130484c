/* muri.c - the protocol of the published Muri results: the cost of events, and new placement of all jobs at each event.
 */
#include "sim/protocol/muri.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "sim/trace/muri_cluster.h"

/* ---- particulars of the published runs -------------------------------------------------------------------------- */

enum { SIZES = 6 };

/* Seconds that a running job loses whenever jobs arrive or end, by number of GPUs: 1, 2, 4, 8, 16, 32. */
static const struct {
    const char *model;
    double seconds[SIZES];
} restarts[] = {
    {"vgg16",              {7, 7, 8, 9, 9, 10}     },
    {"vgg19",              {7, 7, 8, 9, 10, 10}    },
    {"resnet18",           {4, 5, 5, 7, 7, 7}      },
    {"shufflenet_v2_x1_0", {4, 4, 5, 5, 7, 8}      },
    {"a2c",                {38, 39, 39, 46, 46, 46}},
    {"dqn",                {5, 5, 6, 6, 8, 8}      },
};
static const double restart_usual_s = 10;      /* for bert, gpt2 and all others */
static const double iteration_stretch = 1.015; /* an iteration takes longer than in the trace */

double muri_restart_s(const char *model, int64_t gpus)
{
    size_t size = 0;
    while (size + 1 < SIZES && ((int64_t)1 << size) < gpus)
        size++;
    for (size_t i = 0; i < sizeof restarts / sizeof *restarts; i++)
        if (strcmp(restarts[i].model, model) == 0)
            return restarts[i].seconds[size];
    return restart_usual_s;
}

/* Splits a job that is larger than one node: whole free nodes, and a part of one more. */
static int job_begin(struct muri_job *job, const struct muri_options *o, struct berth_err *err)
{
    int64_t per_node = (int64_t)o->gpus;
    if (job->gpus > per_node * (int64_t)o->nodes)
        return err_set(err, EINVAL, "job %" PRId64 " wants %" PRId64 " GPUs; %zu nodes with %zu each have fewer",
                       job->id, job->gpus, o->nodes, o->gpus);
    bool large = job->gpus > per_node;
    job->whole_nodes = large ? (uint32_t)(job->gpus / per_node) : 0;
    job->rest = (uint32_t)(large ? job->gpus % per_node : job->gpus);
    job->left = job->iterations;
    job->end_s = 0;
    job->starts = 0;
    return 0;
}

static double iteration_s(const struct muri_job *job)
{
    return job->iteration_s * iteration_stretch;
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

struct muri_simulation {
    struct muri_trace *t;
    struct muri_cluster *cluster;
    double now_s, ends_s; /* time of the current event; first end of a running job */
    size_t next, done;    /* index of the next job to arrive; number of ended jobs */
    VEC(uint32_t) live;   /* jobs that have arrived and not ended */
    double *end_s;        /* predicted end of each running job; 0: waiting */
    uint64_t events;
};

/* Advances running jobs: the time since the last event, minus the cost of that event. */
static void advance(struct muri_simulation *c, double from_s)
{
    for (size_t i = 0; i < c->live.len; i++) {
        struct muri_job *job = &c->t->at[c->live.at[i]];
        double did_s = c->now_s - from_s - job->restart_s;
        if (c->end_s[c->live.at[i]] > 0 && did_s > 0)
            job->left -= did_s / iteration_s(job);
    }
}

static void end_finished(struct muri_simulation *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->live.len; i++) {
        uint32_t at = c->live.at[i];
        if (c->end_s[at] > 0 && c->end_s[at] <= c->ends_s) {
            c->t->at[at].end_s = c->now_s;
            c->end_s[at] = 0;
            c->done++;
            muri_cluster_remove(c->cluster, at);
        } else {
            c->live.at[kept++] = at;
        }
    }
    c->live.len = kept;
}

/* Places all jobs on the cluster again. */
static int decide(struct muri_simulation *c, struct berth_err *err)
{
    for (size_t i = 0; i < c->live.len; i++) {
        const struct muri_job *job = &c->t->at[c->live.at[i]];
        int rc = muri_cluster_put(c->cluster, c->live.at[i], job, job->left * iteration_s(job), err);
        if (rc)
            return rc;
    }
    int rc = muri_cluster_plan(c->cluster, c->now_s, err);
    c->ends_s = INFINITY_S;
    for (size_t i = 0; rc == 0 && i < c->live.len; i++) {
        uint32_t at = c->live.at[i];
        struct muri_job *job = &c->t->at[at];
        bool runs = muri_cluster_runs(c->cluster, at);
        job->starts += runs && !(c->end_s[at] > 0);
        c->end_s[at] = runs ? c->now_s + job->left * iteration_s(job) : 0;
        if (runs && c->end_s[at] < c->ends_s)
            c->ends_s = c->end_s[at];
    }
    return rc;
}

static int event(struct muri_simulation *c, struct berth_err *err)
{
    double from_s = c->now_s, comes_s = c->next < c->t->len ? c->t->at[c->next].submit_s : INFINITY_S;
    c->now_s = comes_s < c->ends_s ? comes_s : c->ends_s;
    if (!(c->now_s < INFINITY_S))
        return err_set(err, EINVAL, "the policy leaves %zu jobs waiting on an empty cluster", c->live.len);
    c->events++;
    if (c->ends_s <= comes_s)
        end_finished(c);
    advance(c, from_s);
    for (; c->next < c->t->len && !(c->t->at[c->next].submit_s > c->now_s); c->next++)
        vec_push(&c->live, (uint32_t)c->next);
    return decide(c, err);
}

int muri_run(struct muri_trace *t, const struct muri_options *o, struct muri_result *ret, struct berth_err *err)
{
    struct muri_simulation c = {.t = t, .ends_s = INFINITY_S};
    int rc = 0;
    for (size_t i = 0; i < t->len && rc == 0; i++)
        rc = job_begin(&t->at[i], o, err);
    if (rc == 0)
        rc = muri_cluster_new(o, t->len, &c.cluster, err);
    if (rc)
        return rc;
    c.end_s = mem_zarray(t->len + 1, sizeof *c.end_s);
    while (rc == 0 && c.done < t->len) {
        rc = event(&c, err);
        if (o->progress)
            o->progress(o->ctx, c.done, t->len);
    }
    if (rc == 0)
        *ret = muri_result_of(t, c.events);
    muri_cluster_free(c.cluster);
    vec_done(&c.live);
    mem_free(c.end_s);
    return rc;
}
