/* trace_engine.c - jobs of a trace as workloads of a cluster. */
#include "sim/trace/trace_engine.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { ID_DIGITS = 8, ID_SIZE = ID_DIGITS + 1, QUEUE_LENGTHS = 4096, REPLANS_MAX = 64, NAMES_MANY = 4096 };
#define NO_INSTANCE UINT32_MAX

/* ---- names: equal length, ascending among jobs of one moment, so that these sort by submission ------------------ */

static const char *id_of(const struct sim_engine *e, uint32_t job, char buf[static ID_SIZE])
{
    uint32_t name = e->jobs[job].name;
    for (size_t i = ID_DIGITS; i-- > 0; name >>= 4)
        buf[i] = "0123456789abcdef"[name & 15];
    buf[ID_DIGITS] = 0;
    return buf;
}

uint32_t sim_engine_job(const struct sim_engine *e, const char *workload)
{
    uint32_t name = 0;
    for (size_t i = 0; i < ID_DIGITS; i++)
        name = name << 4 | (uint32_t)(workload[i] <= '9' ? workload[i] - '0' : workload[i] - 'a' + 10);
    return e->named.at[name];
}

/* Assigns the next unused name. After many names it starts again with the first, but not between jobs of one moment. */
static void name_give(struct sim_engine *e, uint32_t job)
{
    const struct sim_job *j = &e->s->trace->jobs[job];
    uint32_t name = e->named.len ? e->last + 1 : 0;
    if (name >= NAMES_MANY && (job == 0 || j[-1].submit_ns != j->submit_ns))
        name = 0;
    while (name < e->named.len && e->named.at[name] != SIM_NO_JOB)
        name++;
    while (e->named.len <= name)
        vec_push(&e->named, SIM_NO_JOB);
    e->named.at[name] = job;
    e->jobs[job].name = e->last = name;
}

/* ---- lifecycle of jobs ------------------------------------------------------------------------------------------ */

static int64_t capacity(const struct sim_setup *s, bool by_gpus)
{
    int64_t sum = 0;
    for (size_t i = 0; i < s->nodes_len; i++) {
        sum += by_gpus ? (int64_t)s->nodes[i].gpus_len * BERTH_GPU_MILLI : 0;
        for (size_t n = 0; !by_gpus && n < s->nodes[i].allocatable_len; n++)
            if (strcmp(s->nodes[i].allocatable[n].resource, "cpu") == 0)
                sum += s->nodes[i].allocatable[n].amount;
    }
    return sum;
}

int sim_engine_init(struct sim_engine *e, const struct sim_setup *s, struct sim_outcomes *out, struct berth_err *err)
{
    size_t len = s->trace->len;
    *e = (struct sim_engine){.s = s, .out = out, .cluster = berth_cluster_new()};
    for (size_t i = 0; i < s->nodes_len; i++) {
        int rc = berth_node_put(e->cluster, &s->nodes[i], err);
        e->by_gpus |= s->nodes[i].gpus_len > 0;
        if (rc) {
            sim_engine_done(e);
            return rc;
        }
    }
    e->jobs = mem_zarray(len + 1, sizeof *e->jobs);
    *out = (struct sim_outcomes){.at = mem_zarray(len + 1, sizeof *out->at),
                                 .len = len,
                                 .queue_lengths = mem_zarray(QUEUE_LENGTHS, sizeof *out->queue_lengths),
                                 .queue_lengths_len = QUEUE_LENGTHS,
                                 .capacity = capacity(s, e->by_gpus)};
    for (size_t i = 0; i < len; i++) {
        out->at[i].start_ns = out->at[i].end_ns = -1;
        e->jobs[i].first = NO_INSTANCE;
    }
    return 0;
}

void sim_engine_done(struct sim_engine *e)
{
    berth_cluster_free(e->cluster);
    mem_free(e->jobs);
    vec_done(&e->instances);
    vec_done(&e->named);
    vec_done(&e->started);
    vec_done(&e->stopped);
    vec_done(&e->partial_stops);
    e->cluster = NULL;
    e->jobs = NULL;
}

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

static int job_put(struct sim_engine *e, uint32_t job, int32_t priority, struct berth_err *err)
{
    const struct sim_trace *t = e->s->trace;
    const struct sim_job *j = &t->jobs[job];
    char id[ID_SIZE];
    struct berth_amount amounts[2];
    size_t len = 0;
    if (j->cpu_milli)
        amounts[len++] = (struct berth_amount){"cpu", j->cpu_milli};
    if (j->memory_bytes)
        amounts[len++] = (struct berth_amount){"memory", j->memory_bytes};
    struct berth_workload w = {
        .id = id_of(e, job, id),
        .kind = BERTH_JOB,
        .replicas = j->tasks,
        .priority = j->priority + priority,
        .created_ns = j->submit_ns,
        .gang = j->tasks > 1 ? id : NULL,
        .gang_min = sim_job_min_tasks(j) < j->tasks ? sim_job_min_tasks(j) : 0,
        .shape = {.requests = amounts, .requests_len = len, .gpu = {.count = j->gpus, .milli = j->gpu_milli}},
        .estimate_ns = e->jobs[job].predicted_ns
    };
    /* 1 ns more, so that the job ends or its prediction expires before the limit stops it */
    if (e->s->policy->backfill.until_limit && j->request_ns > 0)
        w.limit_ns = (j->request_ns > w.estimate_ns ? j->request_ns : w.estimate_ns) + 1;
    if (e->s->policy->order.queues_len)
        w.queue = sim_trace_text(t, j->queue);
    const char *account;
    if (e->s->accounts) {
        account = sim_trace_text(t, j->user);
        w.quotas = &account;
        w.quotas_len = *account != 0;
    }
    return berth_workload_put(e->cluster, &w, err);
}

int sim_engine_submit(struct sim_engine *e, uint32_t job, int64_t predicted_ns, int32_t priority, struct berth_err *err)
{
    assert(!e->jobs[job].waits && e->jobs[job].placed == 0);
    e->jobs[job].predicted_ns = e->out->at[job].predicted_ns = predicted_ns;
    e->jobs[job].waits = true;
    e->waiting++;
    name_give(e, job);
    return job_put(e, job, priority, err);
}

int sim_engine_change(struct sim_engine *e, uint32_t job, int64_t predicted_ns, int32_t priority, struct berth_err *err)
{
    e->jobs[job].predicted_ns = predicted_ns;
    return job_put(e, job, priority, err);
}

/* Returns the remaining seconds of a running job. */
static double seconds_left(const struct sim_engine *e, uint32_t job, int64_t now_ns)
{
    return (double)(e->s->trace->jobs[job].run_ns - (now_ns - e->out->at[job].start_ns)) / 1e9;
}

/* usage_add counts a job that starts with its current tasks; usage_remove a job that runs no longer. */
static void usage_add(struct sim_engine *e, uint32_t job, int64_t now_ns)
{
    const struct sim_job *j = &e->s->trace->jobs[job];
    uint32_t placed = e->jobs[job].placed;
    e->running++;
    e->held += placed * sim_task_held(j, e->by_gpus);
    e->small += placed < j->tasks;
    e->out->at[job].missing_s = (j->tasks - placed) * seconds_left(e, job, now_ns);
}

static void usage_remove(struct sim_engine *e, uint32_t job)
{
    const struct sim_job *j = &e->s->trace->jobs[job];
    e->running--;
    e->held -= e->jobs[job].placed * sim_task_held(j, e->by_gpus);
    e->small -= e->jobs[job].placed < j->tasks;
}

/* Counts one task more (sign 1) or less (sign -1) of a running elastic job. */
static void usage_resize(struct sim_engine *e, uint32_t job, int sign, int64_t now_ns)
{
    const struct sim_job *j = &e->s->trace->jobs[job];
    e->small -= e->jobs[job].placed < j->tasks;
    e->jobs[job].placed += (uint32_t)sign;
    e->small += e->jobs[job].placed < j->tasks;
    e->held += sign * sim_task_held(j, e->by_gpus);
    e->out->at[job].missing_s -= sign * seconds_left(e, job, now_ns);
}

static int instances_drop(struct sim_engine *e, uint32_t job, struct berth_err *err)
{
    struct sim_task_list *l = &e->jobs[job];
    int rc = 0;
    for (uint32_t i = l->first; i != NO_INSTANCE && rc == 0; i = e->instances.at[i].next)
        rc = berth_instance_remove(e->cluster, i + 1, err);
    l->first = NO_INSTANCE;
    l->placed = 0;
    return rc;
}

int sim_engine_end(struct sim_engine *e, uint32_t job, struct berth_err *err)
{
    char id[ID_SIZE];
    assert(!e->jobs[job].waits);
    int rc = berth_workload_remove(e->cluster, id_of(e, job, id), err);
    e->named.at[e->jobs[job].name] = SIM_NO_JOB;
    usage_remove(e, job);
    return rc ? rc : instances_drop(e, job, err);
}

/* ---- planning --------------------------------------------------------------------------------------------------- */

static void task_placed(struct sim_engine *e, uint32_t job, int64_t now_ns)
{
    const struct sim_job *j = &e->s->trace->jobs[job];
    struct sim_task_list *l = &e->jobs[job];
    if (!l->waits) {
        usage_resize(e, job, 1, now_ns);
        return;
    }
    if (++l->placed < sim_job_min_tasks(j))
        return;
    int64_t end;
    e->time_overflow |= __builtin_add_overflow(now_ns, j->run_ns, &end);
    l->waits = false;
    e->waiting--;
    e->out->at[job].start_ns = now_ns;
    usage_add(e, job, now_ns);
    vec_push(&e->started, job);
}

static uint32_t node_find(const struct sim_engine *e, const char *id)
{
    uint32_t i = 0;
    while (i + 1 < e->s->nodes_len && strcmp(e->s->nodes[i].id, id) != 0)
        i++;
    return i;
}

/* Stops all tasks of a job, which waits again. */
static void job_stopped(struct sim_engine *e, uint32_t job)
{
    struct sim_task_list *l = &e->jobs[job];
    if (!l->waits) {
        l->waits = true;
        e->waiting++;
        usage_remove(e, job);
        e->out->at[job].start_ns = -1;
        e->out->at[job].missing_s = 0;
        e->out->at[job].stops++;
    }
    vec_push(&e->stopped, job);
}

/* Stops a task. An elastic job that still has its minimum keeps running. */
static void task_stopped(struct sim_engine *e, uint32_t job, uint64_t id, int64_t now_ns)
{
    bool placed = e->instances.at[id - 1].placed;
    bool whole = e->jobs[job].waits || e->jobs[job].placed - placed < sim_job_min_tasks(&e->s->trace->jobs[job]);
    if (whole)
        job_stopped(e, job);
    else if (placed)
        usage_resize(e, job, -1, now_ns);
    if (!whole || !placed)
        vec_push(&e->partial_stops, id);
}

static void action_take(struct sim_engine *e, const struct berth_action *a, int64_t now_ns)
{
    uint32_t job = sim_engine_job(e, a->workload);
    switch (a->op) {
    case BERTH_PLACE:
    case BERTH_RESERVE: {
        struct engine_instance i = {job, e->jobs[job].first, a->op == BERTH_PLACE};
        e->jobs[job].first = (uint32_t)e->instances.len;
        vec_push(&e->instances, i);
        if (e->jobs[job].placed == 0 && e->s->nodes_len > 1)
            e->out->at[job].node = node_find(e, a->node);
        if (a->op == BERTH_PLACE)
            task_placed(e, job, now_ns);
        break;
    }
    case BERTH_PROMOTE:
        e->instances.at[a->instance - 1].placed = true;
        task_placed(e, job, now_ns);
        break;
    case BERTH_STOP:
    case BERTH_LOSE: task_stopped(e, job, a->instance, now_ns); break;
    case BERTH_ADJUST: break;
    }
}

static int plan_once(struct sim_engine *e, const struct berth_policy *policy, int64_t now_ns,
                     void (*look)(void *ctx, struct berth_plan *plan), void *ctx, struct berth_err *err)
{
    struct berth_plan *plan = NULL;
    struct berth_snapshot *snapshot = berth_freeze(e->cluster, now_ns, e->s->seed);
    int rc = berth_plan_make(snapshot, policy, &plan, err);
    if (rc == 0)
        rc = berth_apply(e->cluster, plan, e->instances.len + 1, err);
    size_t len = rc == 0 ? berth_plan_actions(plan) : 0;
    for (size_t i = 0; i < len; i++) {
        struct berth_action a = berth_plan_action(plan, i);
        action_take(e, &a, now_ns);
    }
    if (rc == 0 && look)
        look(ctx, plan);
    if (plan)
        berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    e->out->plans++;
    if (rc == 0 && e->time_overflow)
        rc = err_set(err, EOVERFLOW, "the trace would last for longer than 292 years");
    return rc;
}

/* Removes an instance of a job that keeps others. For a reserved instance, the plan has already removed it from the
 * cluster. */
static int partial_stop_remove(struct sim_engine *e, uint64_t id, struct berth_err *err)
{
    const struct engine_instance *gone = &e->instances.at[id - 1];
    uint32_t *at = &e->jobs[gone->job].first;
    while (*at != NO_INSTANCE && *at != id - 1)
        at = &e->instances.at[*at].next;
    if (*at == NO_INSTANCE)
        return 0;
    *at = gone->next;
    return gone->placed ? berth_instance_remove(e->cluster, id, err) : 0;
}

/* Removes stopped instances before the next plan. */
static int stopped_remove(struct sim_engine *e, size_t from, struct berth_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < e->partial_stops.len && rc == 0; i++)
        rc = partial_stop_remove(e, e->partial_stops.at[i], err);
    for (size_t i = from; i < e->stopped.len && rc == 0; i++)
        rc = instances_drop(e, e->stopped.at[i], err);
    return rc;
}

int sim_engine_plan(struct sim_engine *e, const struct berth_policy *policy, int64_t now_ns,
                    void (*look)(void *ctx, struct berth_plan *plan), void *ctx, struct berth_err *err)
{
    size_t len = e->waiting < QUEUE_LENGTHS ? e->waiting : QUEUE_LENGTHS - 1, before;
    uint32_t times = 0;
    bool freed;
    int rc;
    e->out->queue_lengths[len]++;
    e->started.len = e->stopped.len = 0;
    do {
        before = e->stopped.len;
        e->partial_stops.len = 0;
        rc = plan_once(e, policy, now_ns, look, ctx, err);
        freed = e->stopped.len > before || e->partial_stops.len;
        if (rc == 0)
            rc = stopped_remove(e, before, err);
    } while (rc == 0 && freed && ++times < REPLANS_MAX);
    return rc;
}
