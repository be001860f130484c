/* side.c - simulates a trace with one policy, and computes its numbers. */
#include "sim/report/side.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/trace/trace_policy.h"

/* ---- parsing of policies ---------------------------------------------------------------------------------------- */

enum { WORD_ORDER, WORD_BACKFILL, WORD_PREDICT, WORD_PROFILE, WORDS };

static int words_take(struct sim_side *s, char *const words[WORDS], const struct sim_fleet *fleet,
                      struct berth_err *err)
{
    int rc = sim_policy_order(words[WORD_ORDER], &s->policy, err);
    if (rc == 0)
        rc = sim_policy_backfill(words[WORD_BACKFILL], &s->policy, err);
    if (rc == 0)
        rc = sim_policy_predictor(words[WORD_PREDICT], &s->predictor, err);
    if (rc)
        return rc;
    s->policy.profile = sim_fleet_profile(fleet, words[WORD_PROFILE]);
    if (!s->policy.profile)
        return err_set(err, EINVAL, "there is no profile \"%s\"; 'berth profiles' lists those built in",
                       words[WORD_PROFILE]);
    return 0;
}

int sim_side_init(struct sim_side *s, const char *text, const struct sim_fleet *fleet, struct berth_err *err)
{
    CLEANUP(mem) char *copy = mem_strdup(text);
    char *words[WORDS] = {copy, "easy", "request", "default"};
    size_t len = 1;
    *s = (struct sim_side){0};
    if (strcmp(text, "berth") == 0) {
        s->policy = berth_policy_usual();
        words[WORD_BACKFILL] = words[WORD_PREDICT] = copy;
    }
    for (char *p = strchr(copy, '/'); p; p = strchr(p, '/')) {
        *p++ = '\0';
        if (len == WORDS)
            return err_set(err, EINVAL, "policy \"%s\": expected ORDER/BACKFILL/PREDICT/PROFILE", text);
        words[len++] = p;
    }
    int rc = words_take(s, words, fleet, err);
    if (rc)
        return err_prefix(err, "policy \"%s\"", text);
    s->label = mem_strdup(text);
    return 0;
}

void sim_side_done(struct sim_side *s)
{
    mem_free(s->label);
    sim_outcomes_done(&s->out);
    vec_done(&s->samples);
    *s = (struct sim_side){0};
}

/* ---- fragmentation ---------------------------------------------------------------------------------------------- */

struct watch {
    struct idle_sampler idle;
    const struct sim_fleet *fleet;
    const char *resource;
};

static void look(void *ctx, const struct berth_cluster *cluster, int64_t now_ns)
{
    struct watch *w = ctx;
    if (!idle_sampler_due(&w->idle, now_ns))
        return;
    for (size_t i = 0; i < w->fleet->nodes.len; i++) {
        struct berth_node_use use = {0};
        (void)berth_node_use(cluster, w->fleet->nodes.at[i].id, w->resource, &use);
        idle_sampler_node(&w->idle, use.there, use.held);
    }
    idle_sampler_close(&w->idle, now_ns);
}

/* ---- simulation ------------------------------------------------------------------------------------------------- */

/* Rejects a job larger than the cluster, which would block all later jobs for ever. */
static int check_sizes(const struct sim_side_options *p, struct berth_err *err)
{
    struct sim_fleet_total total = sim_fleet_total(p->fleet);
    for (size_t i = 0; i < p->trace->len; i++) {
        const struct sim_job *job = &p->trace->jobs[i];
        int64_t tasks = sim_job_min_tasks(job), cpu = tasks * job->cpu_milli, gpus = tasks * job->gpus;
        if (job->gpus == 1 && job->gpu_milli)
            gpus = (tasks * (int64_t)job->gpu_milli + 999) / 1000;
        if (gpus > total.gpus)
            return err_set(err, EINVAL,
                           "job %" PRId64 " requests %" PRId64 " GPUs; the cluster has %" PRId64
                           "; add nodes with --nodes, such as --nodes 4xgpu8",
                           job->id, gpus, total.gpus);
        if (cpu > total.cpu_milli)
            return err_set(err, EINVAL,
                           "job %" PRId64 " requests %g processors; the cluster has %g; set more with "
                           "--procs or --nodes",
                           job->id, (double)cpu / 1000, (double)total.cpu_milli / 1000);
    }
    return 0;
}

int sim_side_run(struct sim_side *s, const struct sim_side_options *p, struct berth_err *err)
{
    const struct sim_trace *t = p->trace;
    bool by_gpus = sim_fleet_total(p->fleet).gpus > 0;
    int rc = check_sizes(p, err);
    if (rc)
        return rc;
    struct watch watch = {.fleet = p->fleet, .resource = by_gpus ? "gpu" : "cpu"};
    idle_sampler_init(&watch.idle, t, by_gpus, &s->samples);
    struct sim_setup setup = {
        .trace = t,
        .nodes = p->fleet->nodes.at,
        .nodes_len = p->fleet->nodes.len,
        .policy = &s->policy,
        .predictor = s->predictor,
        .seed = p->seed,
        .points = true,
        .accounts = true,
        .progress = p->progress,
        .ctx = p->ctx,
        .moment = look,
        .moment_ctx = &watch,
    };
    rc = sim_trace_run(&setup, &s->out, err);
    idle_sampler_done(&watch.idle);
    if (rc == 0)
        sim_side_compute_numbers(s, p);
    return rc;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sum_up_waits(struct sim_side *s, const struct sim_trace *t)
{
    double *waits = mem_zarray(t->len + 1, sizeof *waits);
    size_t len = 0;
    for (size_t i = 0; i < t->len; i++)
        if (s->out.at[i].end_ns >= 0)
            waits[len++] = (double)(s->out.at[i].start_ns - t->jobs[i].submit_ns) / 1e9;
    qsort(waits, len, sizeof *waits, by_value);
    s->median_wait_s = len ? waits[(len - 1) / 2] : 0;
    s->p95_wait_s = len ? waits[(len * 95 + 99) / 100 - 1] : 0;
    mem_free(waits);
}

static double fairness(const struct sim_side *s, const struct sim_trace *t)
{
    struct account {
        double sum, jobs;
    } *accounts = NULL;
    size_t len = 0;
    double users = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < t->len; i++)
        len = t->jobs[i].user >= len ? t->jobs[i].user + 1 : len;
    accounts = mem_zarray(len + 1, sizeof *accounts);
    for (size_t i = 0; i < t->len; i++) {
        struct account *a = &accounts[t->jobs[i].user];
        if (s->out.at[i].end_ns < 0)
            continue;
        a->sum += sim_bounded_slowdown(&t->jobs[i], &s->out.at[i]);
        a->jobs++;
    }
    for (size_t i = 0; i < len; i++) {
        double x = accounts[i].jobs > 0 ? accounts[i].sum / accounts[i].jobs : 0;
        users += accounts[i].jobs > 0;
        sum += x;
        squares += x * x;
    }
    mem_free(accounts);
    return squares > 0 ? sum * sum / (users * squares) : 1;
}

void sim_side_compute_numbers(struct sim_side *s, const struct sim_side_options *p)
{
    s->summary = sim_summarise(p->trace, &s->out, sim_fleet_total(p->fleet).gpus > 0);
    sum_up_waits(s, p->trace);
    s->fairness = fairness(s, p->trace);
    s->fragmented = idle_mean(&s->samples);
    s->done = true;
}

/* clang-format off */
struct sim_number sim_side_number(const struct sim_side *s, size_t i)
{
    const struct sim_summary *m = &s->summary;
    const struct sim_number numbers[] = {
        {"jobs",                     "jobs that ran",          (double)m->jobs,             0, false, false, 0 },
        {"unrun",                    "jobs that never fit",    (double)m->unrun,            0, false, false, -1},
        {"average_bounded_slowdown", "average slowdown",       m->average_bounded_slowdown, 2, false, false, -1},
        {"max_bounded_slowdown",     "worst slowdown",         m->max_bounded_slowdown,     1, false, false, -1},
        {"rms_bounded_slowdown",     "r.m.s. slowdown",        m->rms_bounded_slowdown,     2, false, false, -1},
        {"mean_wait",                "mean wait",              m->mean_wait_s,              1, true,  false, -1},
        {"median_wait",              "median wait",            s->median_wait_s,            1, true,  false, -1},
        {"p95_wait",                 "p95 wait",               s->p95_wait_s,               1, true,  false, -1},
        {"max_wait",                 "longest wait",           m->max_wait_s,               1, true,  false, -1},
        {"mean_completion",          "mean completion",        m->mean_completion_s,        1, true,  false, -1},
        {"p99_completion",           "p99 completion",         m->p99_completion_s,         1, true,  false, -1},
        {"makespan",                 "makespan",               m->makespan_s,               1, true,  false, -1},
        {"utilisation",              "utilisation",            m->utilisation,              4, false, true,  1 },
        {"fragmentation",            "fragmentation",          s->fragmented,               4, false, true,  -1},
        {"fairness",                 "fairness",               s->fairness,                 4, false, false, 1 },
        {"median_queue",             "median queue",           m->queue_median,             0, false, false, -1},
    };
    return i < sizeof numbers / sizeof *numbers ? numbers[i] : (struct sim_number){0};
}
/* clang-format on */
