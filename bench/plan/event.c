/* event.c - a small cluster, planned again for every job that ends. */
#include "bench/plan/event.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "cli/lib/command.h"

#define SECOND_NS ((int64_t)1000000000)

enum { RUNNING = 100, WAITING = 100, CORES_MAX = 4, ID_MAX = 24, JOBS_MAX = 1024 };

/* A running job: its number, its instance's number, and its end. */
struct running_job {
    uint64_t job, instance;
    int64_t end_ns;
};

struct event_generator {
    struct berth_cluster *cluster;
    struct berth_policy policy;
    uint64_t dice, jobs, instances;
    int64_t now_ns;
    struct running_job runs[JOBS_MAX];
    uint32_t runs_len;
    struct bench_event *ret;
    int64_t clock_ns;
    struct berth_err *err;
};

static int64_t roll(struct event_generator *e, int64_t low, int64_t high)
{
    e->dice += 0x9e3779b97f4a7c15u;
    return low + (int64_t)(hash_u64(e->dice) % (uint64_t)(high - low + 1));
}

static void lap(struct event_generator *e, double *to)
{
    int64_t now = cli_clock_ns();
    *to += (double)(now - e->clock_ns) / 1e9;
    e->clock_ns = now;
}

static int64_t duration_of(uint64_t job)
{
    return (int64_t)(60 + hash_u64(job) % 3600) * SECOND_NS;
}

static int job_put(struct event_generator *e)
{
    char id[ID_MAX];
    struct berth_amount cpu = {"cpu", roll(e, 1, CORES_MAX) * 1000};
    (void)snprintf(id, sizeof id, "%" PRIu64, ++e->jobs);
    struct berth_workload w = {
        .id = id,
        .kind = BERTH_JOB,
        .replicas = 1,
        .created_ns = e->now_ns,
        .shape = {.requests = &cpu, .requests_len = 1},
        .estimate_ns = duration_of(e->jobs)
    };
    return berth_workload_put(e->cluster, &w, e->err);
}

static int job_end(struct event_generator *e, uint32_t at)
{
    char id[ID_MAX];
    struct running_job r = e->runs[at];
    (void)snprintf(id, sizeof id, "%" PRIu64, r.job);
    e->runs[at] = e->runs[--e->runs_len];
    e->now_ns = r.end_ns > e->now_ns ? r.end_ns : e->now_ns;
    int rc = berth_workload_remove(e->cluster, id, e->err);
    return rc ? rc : berth_instance_remove(e->cluster, r.instance, e->err);
}

static int decide(struct event_generator *e)
{
    struct berth_plan *plan = NULL;
    struct berth_snapshot *s = berth_freeze(e->cluster, e->now_ns, 0);
    lap(e, &e->ret->freeze);
    int rc = berth_plan_make(s, &e->policy, &plan, e->err);
    lap(e, &e->ret->plan);
    if (rc == 0)
        rc = berth_apply(e->cluster, plan, e->instances + 1, e->err);
    lap(e, &e->ret->apply);
    for (size_t i = 0; rc == 0 && i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        uint64_t job = 0;
        for (const char *c = a.workload; *c; c++)
            job = job * 10 + (uint64_t)(*c - '0');
        if (a.op == BERTH_PLACE && e->runs_len < JOBS_MAX)
            e->runs[e->runs_len++] = (struct running_job){job, ++e->instances, e->now_ns + duration_of(job)};
        e->ret->started++;
    }
    e->ret->hash = rc == 0 ? hash_pair(e->ret->hash, berth_plan_hash(plan)) : 0;
    lap(e, &e->ret->change);
    berth_plan_free(plan);
    berth_snapshot_free(s);
    lap(e, &e->ret->free);
    return rc;
}

static int event(struct event_generator *e)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < e->runs_len; i++)
        if (e->runs[i].end_ns < e->runs[first].end_ns ||
            (e->runs[i].end_ns == e->runs[first].end_ns && e->runs[i].job < e->runs[first].job))
            first = i;
    int rc = e->runs_len ? job_end(e, first) : 0;
    if (rc == 0)
        rc = job_put(e);
    lap(e, &e->ret->change);
    return rc ? rc : decide(e);
}

int bench_event(uint64_t events, uint64_t seed, struct bench_event *ret, struct berth_err *err)
{
    struct event_generator e = {.cluster = berth_cluster_new(), .dice = seed, .ret = ret, .err = err};
    struct berth_amount has = {"cpu", RUNNING * (CORES_MAX + 1) * 1000 / 2};
    struct berth_node node = {.id = "n", .allocatable = &has, .allocatable_len = 1};
    int rc = berth_node_put(e.cluster, &node, err);

    e.policy = berth_policy_usual();
    e.policy.order.ranking.name = "fifo";
    e.policy.backfill.reservations = 1;
    e.policy.preemption.on = false;
    for (uint32_t i = 0; i < RUNNING + WAITING && rc == 0; i++)
        rc = job_put(&e);
    if (rc == 0)
        rc = decide(&e);
    *ret = (struct bench_event){.events = events};
    e.clock_ns = cli_clock_ns();
    for (uint64_t i = 0; i < events && rc == 0; i++)
        rc = event(&e);
    berth_cluster_free(e.cluster);
    return rc;
}
