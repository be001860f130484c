/* days_world.c - makes random days: nodes, quotas, policy, jobs. */
#include "days_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define GIB ((int64_t)1 << 30)
#define HOUR_NS (3600 * DAY_SECOND_NS)

enum { MUST_NOT_FAIL = 70 };

static void must(int rc, const struct berth_err *err)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "days: %s\n", err->text);
    exit(MUST_NOT_FAIL);
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

static void nodes_make(struct day *d)
{
    struct berth_err err;
    unsigned gpu_percent = RNG_PICK(&d->rng, unsigned, 0, 30, 100);
    d->nodes_len = (uint32_t)rng_range(&d->rng, 8, DAY_NODES_MAX);
    for (uint32_t i = 0; i < d->nodes_len; i++) {
        struct day_node *n = &d->nodes[i];
        (void)snprintf(n->id, sizeof n->id, "n%u", i);
        n->cpu = RNG_PICK(&d->rng, int64_t, 8, 16, 32) * 1000;
        n->gpus = rng_chance(&d->rng, gpu_percent) ? RNG_PICK(&d->rng, uint32_t, 4, 8) : 0;
        struct berth_amount has[] = {
            {"cpu",    n->cpu   },
            {"memory", 256 * GIB}
        };
        struct berth_gpu gpus[DAY_GPUS_MAX];
        for (uint32_t g = 0; g < n->gpus; g++)
            gpus[g] = (struct berth_gpu){"a100", 80 * GIB};
        must(berth_node_put(
                 d->cluster,
                 &(struct berth_node){
                     .id = n->id, .allocatable = has, .allocatable_len = 2, .gpus = gpus, .gpus_len = n->gpus},
                 &err),
             &err);
    }
}

static int64_t cluster_has(const struct day *d, enum day_resource r)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < d->nodes_len; i++)
        sum += r == DAY_CPU ? d->nodes[i].cpu : (int64_t)d->nodes[i].gpus * 1000;
    return sum;
}

/* ---- quotas ---------------------------------------------------------------------------------------------------- */

static size_t amounts_make(const int64_t *from, struct berth_amount *to)
{
    static const char *const names[] = {[DAY_CPU] = "cpu", [DAY_GPU] = "gpu", [DAY_JOBS] = "jobs"};
    size_t len = 0;
    for (unsigned r = 0; r < DAY_RESOURCES; r++)
        if (from[r] >= 0)
            to[len++] = (struct berth_amount){names[r], from[r]};
    return len;
}

static void quota_put(struct day *d, struct day_quota *q)
{
    struct berth_err err;
    struct berth_amount limits[DAY_RESOURCES], guarantees[DAY_RESOURCES];
    struct berth_quota put = {.id = q->id,
                              .parent = q->parent < 0 ? "" : d->quotas[q->parent].id,
                              .weight = (uint32_t)rng_range(&d->rng, 1, 5),
                              .limits = limits,
                              .guarantees = guarantees};
    put.limits_len = amounts_make(q->limit, limits);
    put.guarantees_len = amounts_make(q->guarantee, guarantees);
    must(berth_quota_put(d->cluster, &put, &err), &err);
}

static struct day_quota *quota_add(struct day *d, const char *kind, uint32_t number, int parent)
{
    struct day_quota *q = &d->quotas[d->quotas_len++];
    (void)snprintf(q->id, sizeof q->id, "%s/%u", kind, number);
    q->parent = parent;
    for (unsigned r = 0; r < DAY_RESOURCES; r++)
        q->limit[r] = q->guarantee[r] = -1;
    return q;
}

static int64_t share(struct day *d, enum day_resource r, int64_t low, int64_t high)
{
    return cluster_has(d, r) * rng_range(&d->rng, low, high) / 100;
}

static void quotas_make(struct day *d)
{
    uint32_t groups = (uint32_t)rng_range(&d->rng, 1, 4), users = 0;
    d->guarantees = rng_chance(&d->rng, 50);
    for (uint32_t g = 0; g < groups; g++) {
        int at = (int)d->quotas_len;
        struct day_quota *group = quota_add(d, "group", g, -1);
        if (rng_chance(&d->rng, 50))
            group->limit[DAY_CPU] = share(d, DAY_CPU, 30, 100);
        if (rng_chance(&d->rng, 30))
            group->limit[DAY_GPU] = share(d, DAY_GPU, 40, 100);
        if (d->guarantees) {
            group->guarantee[DAY_CPU] = share(d, DAY_CPU, 10, 100 / (int64_t)groups);
            group->guarantee[DAY_GPU] = share(d, DAY_GPU, 10, 100 / (int64_t)groups);
        }
        quota_put(d, group);
        for (uint32_t n = (uint32_t)rng_range(&d->rng, 1, 3); n > 0; n--) {
            struct day_quota *user = quota_add(d, "user", users++, at);
            if (rng_chance(&d->rng, 30))
                user->limit[DAY_CPU] = share(d, DAY_CPU, 20, 80);
            if (rng_chance(&d->rng, 20))
                user->limit[DAY_JOBS] = rng_range(&d->rng, 2, 20);
            quota_put(d, user);
        }
    }
    for (uint32_t q = 0; q < 3; q++) {
        struct day_quota *queue = quota_add(d, "queue", q, -1);
        if (q && rng_chance(&d->rng, 40))
            queue->limit[DAY_CPU] = share(d, DAY_CPU, 40, 100);
        quota_put(d, queue);
    }
}

/* ---- policy ---------------------------------------------------------------------------------------------------- */

static struct berth_ranking ranking_random(struct rng *r)
{
    size_t len = 0;
    while (berth_ranking_at(len, NULL))
        len++;
    const char *name = berth_ranking_at(rng_below(r, len), NULL);
    return (struct berth_ranking){.name = strcmp(name, "formula") == 0 ? "fifo" : name};
}

static void policy_make(struct day *d)
{
    static const char *const names[] = {"queue-a", "queue-b", "queue-c"};
    struct rng *r = &d->rng;
    d->policy = berth_policy_usual();
    for (uint32_t q = 0; q < 3; q++)
        d->queues[q] = (struct berth_queue){names[q], (int32_t)rng_range(r, -1, 1), ranking_random(r)};
    d->policy.order = (struct berth_order){.queues = d->queues,
                                           .queues_len = 3,
                                           .ranking = ranking_random(r),
                                           .max_wait_ns = rng_chance(r, 70) ? rng_range(r, 2, 24) * HOUR_NS : 0};
    d->policy.backfill =
        (struct berth_backfill){.reservations = RNG_PICK(r, uint32_t, 0, 1, 10, 100, 100), .strict = rng_chance(r, 5)};
    if (rng_chance(r, 25))
        d->policy.backfill.ranking.name = RNG_PICK(r, char *, "sjf", "f1", "fifo");
    d->policy.preemption =
        (struct berth_preemption){.on = rng_chance(r, 60), .min_run_ns = rng_range(r, 0, 30) * 60 * DAY_SECOND_NS};
}

/* ---- jobs ------------------------------------------------------------------------------------------------------ */

static uint32_t gpu_nodes(const struct day *d, uint32_t gpus)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->nodes_len; i++)
        n += d->nodes[i].gpus >= gpus;
    return n;
}

/* Makes a job that fits into the empty cluster: it has at most as many pods as there are nodes that can take one. */
static void job_make(struct day *d, struct day_job *j, uint32_t number)
{
    struct rng *r = &d->rng;
    (void)snprintf(j->id, sizeof j->id, "%u", number + 1);
    j->gpus = gpu_nodes(d, 1) && rng_chance(r, 40) ? RNG_PICK(r, uint32_t, 1, 1, 2, 4) : 0;
    j->cpu = RNG_PICK(r, int64_t, 1000, 1000, 2000, 4000, 8000);
    uint32_t most = gpu_nodes(d, j->gpus);
    most = most < DAY_TASKS_MAX ? most : DAY_TASKS_MAX;
    j->tasks = j->min = 1;
    if (rng_chance(r, 50) && most > 0)
        j->tasks = j->min = (uint32_t)rng_range(r, 1, most);
    j->gang = j->tasks > 1 && rng_chance(r, 60);
    if (j->gang && rng_chance(r, 30))
        j->min = (uint32_t)rng_range(r, 1, j->tasks);
    j->priority = RNG_PICK(r, int32_t, 0, 0, 0, 0, -1, 1, 2);
    j->arrives_ns = DAY_SECOND_NS * (1 + rng_range(r, 0, (int64_t)24 * 3600 - 1));
    j->runs_ns = rng_range(r, 1, 100) * rng_range(r, 1, 100); /* scaled below */
    j->min_run_ns = rng_chance(r, 20) ? rng_range(r, 1, 60) * 60 * DAY_SECOND_NS : 0;
    j->unpreemptible = rng_chance(r, 10);
    do
        j->user = (int)rng_below(r, d->quotas_len);
    while (strncmp(d->quotas[j->user].id, "user/", 5) != 0);
    j->queue = (int)d->quotas_len - 3 + (int)rng_below(r, 3);
}

static int by_arrival(const void *a, const void *b)
{
    const struct day_job *x = a, *y = b;
    return x->arrives_ns < y->arrives_ns ? -1 : x->arrives_ns > y->arrives_ns;
}

/* Returns the share of the cluster that one pod holds of its dominant resource. */
static double pod_share(const struct day *d, const struct day_job *j)
{
    double cpu = (double)j->cpu / (double)cluster_has(d, DAY_CPU);
    double gpu = j->gpus ? (double)j->gpus * 1000 / (double)cluster_has(d, DAY_GPU) : 0;
    return cpu > gpu ? cpu : gpu;
}

static void jobs_make(struct day *d)
{
    struct rng *r = &d->rng;
    double asked = 0;
    d->jobs_len = (uint32_t)rng_range(r, 200, 240);
    d->jobs = mem_zalloc(d->jobs_len * sizeof *d->jobs);
    for (uint32_t i = 0; i < d->jobs_len; i++)
        job_make(d, &d->jobs[i], i);
    qsort(d->jobs, d->jobs_len, sizeof *d->jobs, by_arrival);
    for (uint32_t i = 0; i < d->jobs_len; i++)
        d->by_number[strtoul(d->jobs[i].id, NULL, 10) - 1] = &d->jobs[i];
    for (uint32_t i = 0; i < d->jobs_len; i++)
        asked += pod_share(d, &d->jobs[i]) * d->jobs[i].tasks * (double)d->jobs[i].runs_ns;
    d->load = 0.9 + (double)rng_below(r, 60) / 100;
    double scale = d->load * 24 * 3600 / asked;
    for (uint32_t i = 0; i < d->jobs_len; i++) {
        struct day_job *j = &d->jobs[i];
        int64_t seconds = 1 + (int64_t)((double)j->runs_ns * scale);
        j->runs_ns = seconds * DAY_SECOND_NS;
        if (rng_chance(r, 70)) /* an estimate may be too long or too short */
            j->estimate_ns = (1 + seconds * rng_range(r, 30, 300) / 100) * DAY_SECOND_NS;
        if (rng_chance(r, 60))
            j->limit_ns = (1 + seconds * rng_range(r, 95, 200) / 100) * DAY_SECOND_NS;
    }
}

void day_make(struct day *d, uint64_t seed)
{
    *d = (struct day){
        .seed = seed, .rng = {seed}, .cluster = berth_cluster_new(), .next_id = 1, .recheck_ns = BERTH_NEVER_NS};
    nodes_make(d);
    quotas_make(d);
    policy_make(d);
    jobs_make(d);
    d->pause_ns = RNG_PICK(&d->rng, int64_t, 0, 120, 600) * DAY_SECOND_NS;
}

/* ---- loading into the cluster ----------------------------------------------------------------------------------- */

void day_submit(struct day *d, struct day_job *j)
{
    struct berth_err err;
    struct berth_amount needs[] = {
        {"cpu",    j->cpu},
        {"memory", GIB   }
    };
    const char *quotas[] = {d->quotas[j->user].id, d->quotas[j->queue].id};
    struct berth_workload w = {
        .id = j->id,
        .kind = BERTH_JOB,
        .replicas = j->tasks,
        .priority = j->priority,
        .created_ns = j->arrives_ns,
        .suspended = j->over,
        .gang = j->gang ? j->id : NULL,
        .gang_min = j->gang ? j->min : 0,
        .shape = {.requests = needs, .requests_len = 2, .gpu = {.count = j->gpus}},
        .quotas = quotas,
        .quotas_len = j->over ? 0 : 2, /* a job that is over no longer counts */
        .queue = d->queues[j->queue - ((int)d->quotas_len - 3)].id,
        .estimate_ns = j->estimate_ns,
        .limit_ns = j->limit_ns,
        .min_run_ns = j->min_run_ns,
        .unpreemptible = j->unpreemptible,
    };
    if (!j->there && !berth_admission_check(d->cluster, &w, d->now_ns).ok) {
        j->refused = j->over = true;
        return;
    }
    j->there = true;
    must(berth_workload_put(d->cluster, &w, &err), &err);
}

void day_put_task(struct day *d, const struct day_job *j, uint32_t task)
{
    static const enum berth_state states[] = {[DAY_RESERVED] = BERTH_RESERVED,
                                              [DAY_RUNNING] = BERTH_RUNNING,
                                              [DAY_STOPPING] = BERTH_STOPPING,
                                              [DAY_ENDED] = BERTH_ENDED};
    struct berth_err err;
    const struct day_task *t = &j->task[task];
    must(berth_instance_put(d->cluster,
                            &(struct berth_instance){.id = t->id,
                                                     .workload = j->id,
                                                     .ordinal = task,
                                                     .node = d->nodes[t->node].id,
                                                     .state = states[t->state],
                                                     .ready = t->state == DAY_RUNNING,
                                                     .since_ns = t->since_ns,
                                                     .gpus = t->state == DAY_ENDED ? 0 : t->gpus},
                            &err),
         &err);
}

struct day_job *day_job_find(struct day *d, const char *id)
{
    unsigned long number = strtoul(id, NULL, 10);
    return number > 0 && number <= d->jobs_len ? d->by_number[number - 1] : NULL;
}

uint32_t day_node_find(const struct day *d, const char *id)
{
    return (uint32_t)strtoul(id + 1, NULL, 10) % d->nodes_len;
}
