/* muri_cluster.c - training jobs as workloads of a cluster, planned by the core. */
#include "sim/trace/muri_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "berth.h"
#include "sim/trace/trace_policy.h"

enum { ID_MAX = 32 };

struct muri_job_state {
    double put_s;  /* remaining seconds last reported to the cluster; below 0: never reported */
    uint64_t plan; /* the last plan that gave it a place */
    bool stands;   /* has instances */
};

struct muri_cluster {
    struct berth_cluster *cluster;
    struct berth_policy policy;
    bool keeps; /* running jobs keep their place; otherwise every plan starts with an empty cluster */
    uint64_t plans, instances;
    struct muri_job_state *jobs;
};

/* ---- policies --------------------------------------------------------------------------------------------------- */

/* All scores are equal, so the first node that fits is chosen. */
static const struct berth_profile first_fit = {.name = "first-fit"};

static int policy_of(struct muri_cluster *c, const char *name, struct berth_err *err)
{
    CLEANUP(str) struct str known = {0};
    const char *ranking;
    if (strcmp(name, "berth") == 0) {
        c->policy = berth_policy_usual();
        c->keeps = true;
        int rc = sim_policy_order(name, &c->policy, err);
        return rc ? rc : sim_policy_backfill(name, &c->policy, err);
    }
    c->policy = (struct berth_policy){.profile = &first_fit};
    if (strcmp(name, "srtf") == 0)
        c->policy.order.ranking.name = "sjf"; /* the estimate is the remaining time */
    for (size_t i = 0; (ranking = berth_ranking_at(i, NULL)); i++) {
        if (strcmp(ranking, name) == 0)
            c->policy.order.ranking.name = ranking;
        str_addf(&known, ", %s", ranking);
    }
    if (!c->policy.order.ranking.name)
        return err_set(err, EINVAL, "there is no policy \"%s\"; there are berth, srtf%s", name, str_text(&known));
    return 0;
}

/* ---- cluster ---------------------------------------------------------------------------------------------------- */

int muri_cluster_new(const struct muri_options *o, size_t jobs, struct muri_cluster **ret, struct berth_err *err)
{
    struct muri_cluster *c = mem_zalloc(sizeof *c);
    struct berth_gpu *gpus = mem_zarray(o->gpus, sizeof *gpus);
    int rc = policy_of(c, o->policy, err);
    c->cluster = berth_cluster_new();
    c->jobs = mem_zarray(jobs + 1, sizeof *c->jobs);
    for (size_t i = 0; i < jobs; i++)
        c->jobs[i].put_s = -1;
    for (size_t i = 0; i < o->nodes && rc == 0; i++) {
        char id[ID_MAX];
        (void)snprintf(id, sizeof id, "node-%zu", i);
        struct berth_node node = {.id = id, .rank = (uint32_t)i, .gpus = gpus, .gpus_len = o->gpus};
        rc = berth_node_put(c->cluster, &node, err);
    }
    mem_free(gpus);
    if (rc)
        muri_cluster_free(c);
    else
        *ret = c;
    return rc;
}

void muri_cluster_free(struct muri_cluster *c)
{
    berth_cluster_free(c->cluster);
    mem_free(c->jobs);
    mem_free(c);
}

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

static void gang_id(char buf[static ID_MAX], uint32_t at)
{
    (void)snprintf(buf, ID_MAX, "job-%010u", at);
}

/* Id of the part on whole nodes, or of the rest. */
static void part_id(char buf[static ID_MAX], uint32_t at, bool whole)
{
    (void)snprintf(buf, ID_MAX, "job-%010u-%c", at, whole ? 'a' : 'b');
}

static int part_put(struct muri_cluster *c, uint32_t at, const struct berth_workload *like, bool whole, uint32_t tasks,
                    uint32_t gpus, struct berth_err *err)
{
    char id[ID_MAX];
    struct berth_workload w = *like;
    part_id(id, at, whole);
    w.id = id;
    w.replicas = tasks;
    w.shape.gpu.count = gpus;
    return berth_workload_put(c->cluster, &w, err);
}

int muri_cluster_put(struct muri_cluster *c, uint32_t at, const struct muri_job *job, double seconds,
                     struct berth_err *err)
{
    struct muri_job_state *p = &c->jobs[at];
    char gang[ID_MAX];
    if (p->put_s == seconds || (p->stands && p->put_s >= 0)) /* a job that keeps its place keeps its expected end */
        return 0;
    gang_id(gang, at);
    struct berth_workload like = {
        .kind = BERTH_JOB,
        .created_ns = (int64_t)(job->submit_s * 1e9),
        .gang = gang,
        .estimate_ns = seconds * 1e9 > 1 ? (int64_t)(seconds * 1e9) : 1,
    };
    like.traits.attained_ns = (int64_t)((job->iterations - job->left) * job->iteration_s * 1e9);
    int rc = job->whole_nodes ? part_put(c, at, &like, true, job->whole_nodes,
                                         (uint32_t)((job->gpus - job->rest) / job->whole_nodes), err)
                              : 0;
    if (rc == 0 && job->rest)
        rc = part_put(c, at, &like, false, 1, job->rest, err);
    p->put_s = seconds;
    return rc;
}

struct id_list {
    VEC(uint64_t) at;
};

static void collect(void *ctx, const struct berth_instance_view *instance)
{
    struct id_list *ids = ctx;
    vec_push(&ids->at, instance->id);
}

void muri_cluster_remove(struct muri_cluster *c, uint32_t at)
{
    struct id_list ids = {0};
    for (int whole = 0; whole < 2; whole++) {
        char id[ID_MAX];
        part_id(id, at, whole);
        berth_instances(c->cluster, id, collect, &ids);
        (void)berth_workload_remove(c->cluster, id, NULL); /* the job may not have this part */
    }
    for (size_t i = 0; i < ids.at.len; i++)
        (void)berth_instance_remove(c->cluster, ids.at.at[i], NULL);
    vec_done(&ids.at);
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

static int place(struct muri_cluster *c, const struct berth_action *a, int64_t now_ns, struct berth_err *err)
{
    uint32_t at = (uint32_t)strtoul(a->workload + strlen("job-"), NULL, 10);
    struct berth_instance instance = {
        .id = ++c->instances,
        .workload = a->workload,
        .ordinal = a->ordinal,
        .node = a->node,
        .state = BERTH_RUNNING,
        .ready = true,
        .since_ns = now_ns,
        .gpus = a->gpus,
    };
    c->jobs[at].plan = c->plans;
    c->jobs[at].stands = c->keeps;
    return c->keeps ? berth_instance_put(c->cluster, &instance, err) : 0;
}

int muri_cluster_plan(struct muri_cluster *c, double now_s, struct berth_err *err)
{
    int64_t now_ns = (int64_t)(now_s * 1e9);
    struct berth_snapshot *snapshot = berth_freeze(c->cluster, now_ns, 0);
    struct berth_plan *plan = NULL;
    int rc = berth_plan_make(snapshot, &c->policy, &plan, err);
    c->plans++;
    for (size_t i = 0; rc == 0 && i < berth_plan_actions(plan); i++) {
        struct berth_action action = berth_plan_action(plan, i);
        if (action.op == BERTH_PLACE)
            rc = place(c, &action, now_ns, err);
    }
    berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    return rc;
}

bool muri_cluster_runs(const struct muri_cluster *c, uint32_t at)
{
    return c->jobs[at].stands || (c->plans && c->jobs[at].plan == c->plans);
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct muri_result muri_result_of(const struct muri_trace *t, uint64_t events)
{
    struct muri_result r = {.events = events};
    double *times = mem_zarray(t->len + 1, sizeof *times), sum = 0;
    for (size_t i = 0; i < t->len; i++) {
        const struct muri_job *job = &t->at[i];
        times[i] = job->end_s - job->submit_s;
        sum += times[i];
        r.makespan_s = job->end_s > r.makespan_s ? job->end_s : r.makespan_s;
        r.starts += (uint64_t)job->starts;
    }
    qsort(times, t->len, sizeof *times, by_value);
    r.average_s = t->len ? sum / (double)t->len : 0;
    r.p99_s = t->len ? times[t->len * 99 / 100] : 0;
    mem_free(times);
    return r;
}
