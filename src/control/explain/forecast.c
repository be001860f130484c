#include "control/explain/forecast.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "control/control_parts.h"
#include "control/job/job.h"
#include "control/sched/plan_policy.h"
#include "control/state/state_parts.h"
#include "core/model/cluster.h"

enum { WAITING_MAX = 64, WAITING_USER_MAX = 8, STALE_S = 10, COST_SHARE = 20 };
enum {
    LOOK_PLANS_LEAST = 16,  /* minimum number of plans; without time for them no lookahead is made */
    LOOK_CASES_SIZE = 20000 /* workloads and instances; in a larger cluster only a single case has a lookahead */
};
#define SECOND_NS INT64_C(1000000000)
#define BUDGET_NS (2 * SECOND_NS) /* time of all plans of a run, without the first */
#define LOOK_NS (1 * SECOND_NS)   /* time of all lookaheads of a run */
#define STOP_NS (10 * SECOND_NS)  /* expected time of stopping a pod: most pods end when they get the signal */

/* A run with its inputs. Owned by the worker while it runs. */
struct run_task {
    struct forecast_run run;
    struct plan_policy policy;
    struct arena arena;                               /* of the profile and the texts below */
    struct berth_policy policies[FORECAST_CASES_MAX]; /* the scheduler's policy, with the ranking of each case */
    struct berth_queue *queues[FORECAST_CASES_MAX];
    struct berth_cluster *copies[FORECAST_CASES_MAX]; /* start of each lookahead; NULL: finished */
    const struct lookahead_wait *waits;               /* in the arena */
    size_t waits_len;
    const char *subject; /* in the arena, or NULL */
    bool advise, plan_only;
    int64_t look_end_ns; /* end of the running lookahead */
    void (*drop)(void *keep);
    int64_t took_ns, made_steady_ns;
    int64_t (*steady_ns)(void *ctx);
    void *clock_ctx;
};

struct queued_forecast {
    struct request *request;
    struct run_task *run_task; /* the request's own run; NULL: waits for the outlook */
    uint64_t turn;             /* order of the runs: lowest first, equal ones by age */
    char user[ID_MAX + 1];
};

struct forecast {
    struct control *control;
    struct run_task *last;    /* the latest outlook; NULL: none yet */
    struct run_task *running; /* runs on the worker */
    VEC(struct queued_forecast) waiting;
    uint64_t turn;           /* turn of the run that was started last */
    struct request *serving; /* request whose verb is being run again */
    struct run_task *result; /* result for `serving`; a request's own run is kept until the next result */
    struct request *asking;  /* request that does not wait if its run completes synchronously */
    bool stopping;
};

struct forecast *forecast_new(struct control *control)
{
    struct forecast *f = mem_zalloc(sizeof *f);
    f->control = control;
    return f;
}

static void run_task_free(struct run_task *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->run.plans_len; i++) {
        forecast_plan_done(&m->run.plans[i]);
        berth_cluster_free(m->copies[i]);
        mem_free(m->queues[i]);
    }
    plan_policy_done(&m->policy);
    arena_done(&m->arena);
    if (m->drop)
        m->drop(m->run.keep);
    mem_free(m);
}

static void result_drop(struct forecast *f)
{
    if (f->result != f->last)
        run_task_free(f->result);
    f->result = NULL;
}

void forecast_free(struct forecast *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->waiting.len; i++)
        if (f->waiting.at[i].run_task != f->running)
            run_task_free(f->waiting.at[i].run_task);
    run_task_free(f->running); /* its thread has ended without calling `on_forecast_done` */
    result_drop(f);
    run_task_free(f->last);
    vec_done(&f->waiting);
    mem_free(f);
}

bool forecast_drop(struct forecast *f)
{
    if (f->running)
        return false;
    for (size_t i = 0; i < f->waiting.len; i++)
        if (f->waiting.at[i].run_task)
            return false;
    result_drop(f);
    run_task_free(take_ptr(&f->last));
    return true;
}

void forecast_stop(struct forecast *f)
{
    f->stopping = true;
    while (f->waiting.len) {
        struct queued_forecast w = f->waiting.at[--f->waiting.len];
        if (w.run_task != f->running)
            run_task_free(w.run_task);
        (void)err_set(&w.request->err, ENOSPC, "berthd is stopping; try again soon");
        request_answer(w.request, -ENOSPC);
    }
}

/* ---- on the worker ---------------------------------------------------------------------------------------------- */

static bool lookahead_has_time(void *ctx)
{
    const struct run_task *m = ctx;
    return m->steady_ns(m->clock_ctx) < m->look_end_ns;
}

/* Makes the lookaheads. The first case gets half of the time, the other cases share the rest. If a single plan takes
 * too long, no lookahead is made. */
static void make_lookaheads(struct run_task *m, int64_t plan_ns)
{
    size_t len = m->run.plans_len;
    int64_t half_ns = len > 1 ? LOOK_NS / 2 : LOOK_NS;
    for (size_t i = 0; i < len; i++) {
        struct forecast_plan *p = &m->run.plans[i];
        const struct lookahead_bounds bounds = {.stop_ns = STOP_NS,
                                                .subject = m->subject,
                                                .waits = m->waits,
                                                .waits_len = m->waits_len,
                                                .goes_on = lookahead_has_time,
                                                .ctx = m};
        m->look_end_ns = m->steady_ns(m->clock_ctx) + (i ? half_ns / (int64_t)(len - 1) : half_ns);
        if (p->plan && m->copies[i] && plan_ns < LOOK_NS / LOOK_PLANS_LEAST)
            forecast_plan_lookahead(p, m->copies[i], &m->policies[i], &bounds);
        berth_cluster_free(take_ptr(&m->copies[i]));
    }
}

/* Searches for advice, with at most the time budget of the cases. */
static void advise(struct run_task *m, int64_t plan_ns)
{
    enum { TRIES_MAX = 8 };
    struct forecast_plan *p = &m->run.plans[0];
    struct berth_policy policy = m->policies[0];
    int64_t tries = plan_ns > 0 ? BUDGET_NS / plan_ns : TRIES_MAX;
    size_t at;
    forecast_policy(&policy);
    if (m->advise && forecast_find(p, m->subject, &at))
        m->run.advice_len = berth_plan_advise(p->plan, &policy, at, tries < TRIES_MAX ? (size_t)tries : TRIES_MAX,
                                              m->run.advice, FORECAST_ADVICE_MAX);
}

/* Runs on the worker; accesses only `making`. */
static void run_work(void *ctx)
{
    struct run_task *m = ((struct forecast *)ctx)->running;
    int64_t start_ns = m->steady_ns(m->clock_ctx), first_ns = 0;
    assert(m->run.plans_len > 0);
    for (size_t i = 0; i < m->run.plans_len; i++) {
        struct berth_policy policy = m->policies[i];
        if (i && m->steady_ns(m->clock_ctx) - start_ns > BUDGET_NS)
            break;
        forecast_policy(&policy);
        forecast_plan_make(&m->run.plans[i], &policy);
        if (i == 0)
            first_ns = m->steady_ns(m->clock_ctx) - start_ns;
    }
    make_lookaheads(m, (m->steady_ns(m->clock_ctx) - start_ns) / (int64_t)m->run.plans_len);
    advise(m, first_ns);
    m->took_ns += m->steady_ns(m->clock_ctx) - start_ns;
}

/* Copies the queues and sets the ranking of each. */
static void set_rankings(struct run_task *m, size_t i, const struct berth_ranking *ranking)
{
    struct berth_order *order = &m->policies[i].order;
    order->ranking = *ranking;
    if (order->queues_len == 0)
        return;
    m->queues[i] = mem_array(order->queues_len, sizeof *m->queues[i]);
    memcpy(m->queues[i], order->queues, order->queues_len * sizeof *m->queues[i]);
    for (size_t q = 0; q < order->queues_len; q++)
        m->queues[i][q].ranking = *ranking;
    order->queues = m->queues[i];
}

/* Applies the drafts to the cluster, takes a snapshot, and reverts the drafts. The snapshot keeps them. */
static int freeze_with_drafts(struct forecast *f, struct run_task *m, size_t i, const struct forecast_case *k,
                              struct berth_err *err)
{
    struct control *c = f->control;
    size_t put = 0;
    int rc = 0;
    for (; k && rc == 0 && put < k->drafts_len; put++) {
        const struct forecast_draft *d = &k->drafts[put];
        char *text = json_dumps(d->doc, JSON_COMPACT);
        struct object o = {
            .kind = d->kind, .id = d->id, .owner = d->owner, .group = d->group, .doc = {text, strlen(text)}
        };
        rc = object_sync(c->state, state_cluster(c->state), &o, err);
        free(text);
    }
    if (rc == 0) {
        struct berth_cluster *cluster = state_cluster(c->state);
        m->run.plans[i].snapshot = berth_freeze(cluster, m->run.now_ns, c->in_force.seed);
        if (!m->plan_only &&
            (m->run.plans_len == 1 || cluster->workloads.len + cluster->instances.len <= LOOK_CASES_SIZE))
            m->copies[i] = cluster_copy(cluster);
    }
    for (size_t at = 0; at < put; at++) {
        const struct forecast_draft *d = &k->drafts[at];
        if (state_find(c->state, d->kind, d->id))
            state_revert(c->state, d->kind, d->id);
        else if (d->kind == KIND_NODE)
            (void)berth_node_remove(state_cluster(c->state), d->id, NULL);
        else
            (void)berth_workload_remove(state_cluster(c->state), d->id, NULL);
    }
    return rc;
}

static int run_task_new(struct forecast *f, const struct forecast_spec *run_spec, struct run_task **ret,
                        struct berth_err *err)
{
    struct control *c = f->control;
    struct run_task *m = mem_zalloc(sizeof *m);
    int64_t start_ns = c->env.steady_ns(c->env.ctx);
    int rc = 0;
    *m = (struct run_task){.steady_ns = c->env.steady_ns, .clock_ctx = c->env.ctx, .drop = run_spec->drop};
    m->run.keep = run_spec->keep;
    m->run.revision = state_revision(c->state);
    m->run.now_ns = control_now_ns(c);
    m->run.plans_len = run_spec->cases_len ? run_spec->cases_len : 1;
    arena_init(&m->arena);
    plan_policy_read(c->state, &m->policy);
    const char *name;
    m->policy.policy.profile = scheduler_profile(c->state, &m->arena, &name);
    m->advise = run_spec->advise && run_spec->subject;
    m->plan_only = run_spec->plan_only;
    m->subject = run_spec->subject ? arena_strdup(&m->arena, run_spec->subject) : NULL;
    m->waits_len = job_waits(c->state, &m->arena, &m->waits);
    for (size_t i = 0; rc == 0 && i < m->run.plans_len; i++) {
        const struct forecast_case *k = run_spec->cases_len ? &run_spec->cases[i] : NULL;
        m->policies[i] = m->policy.policy;
        if (k && k->ranking)
            set_rankings(m, i, k->ranking);
        rc = freeze_with_drafts(f, m, i, k, err);
    }
    m->took_ns = c->env.steady_ns(c->env.ctx) - start_ns;
    if (rc < 0)
        run_task_free(m);
    else
        *ret = m;
    return rc;
}

static void on_forecast_done(void *ctx);

static void begin(struct forecast *f, struct run_task *m)
{
    const struct control_env *env = &f->control->env;
    f->running = m;
    (env->run_slow ? env->run_slow : env->run)(env->ctx, run_work, on_forecast_done, f);
}

/* Returns the next run: users take turns. */
static const struct queued_forecast *next_waiting(const struct forecast *f)
{
    const struct queued_forecast *first = &f->waiting.at[0];
    for (size_t i = 1; i < f->waiting.len; i++)
        if (f->waiting.at[i].turn < first->turn)
            first = &f->waiting.at[i];
    return first;
}

static void next(struct forecast *f)
{
    struct run_task *outlook = NULL;
    struct berth_err err;
    if (f->running || f->stopping || f->waiting.len == 0)
        return;
    const struct queued_forecast *first = next_waiting(f);
    struct run_task *own = first->run_task;
    f->turn = first->turn;
    if (own)
        begin(f, own);
    else if (run_task_new(f, &(struct forecast_spec){0}, &outlook, &err) == 0)
        begin(f, outlook);
}

/* Runs the verbs of the requests that waited for this run. All of them are removed from the queue first, because a verb
 * may ask for another run. */
static void answer_waiting(struct forecast *f, struct run_task *m, bool outlook)
{
    VEC(struct request *) ready = {0};
    size_t kept = 0;
    for (size_t i = 0; i < f->waiting.len; i++) {
        struct queued_forecast w = f->waiting.at[i];
        if (outlook ? w.run_task == NULL : w.run_task == m)
            vec_push(&ready, w.request);
        else
            f->waiting.at[kept++] = w;
    }
    f->waiting.len = kept;
    for (size_t i = 0; i < ready.len; i++) {
        if (ready.at[i] == f->asking)
            continue; /* its verb is still running */
        f->serving = ready.at[i];
        request_rerun(ready.at[i]);
        f->serving = NULL;
    }
    vec_done(&ready);
}

static void on_forecast_done(void *ctx)
{
    struct forecast *f = ctx;
    struct run_task *m = take_ptr(&f->running);
    bool outlook = true;
    for (size_t i = 0; i < f->waiting.len; i++)
        outlook = outlook && f->waiting.at[i].run_task != m;
    m->made_steady_ns = m->steady_ns(m->clock_ctx);
    plan_policy_release_formulas(&m->policy);
    if (f->stopping) {
        run_task_free(m);
        return;
    }
    result_drop(f);
    if (outlook) {
        run_task_free(f->last);
        f->last = m;
    }
    f->result = m;
    answer_waiting(f, m, outlook);
    next(f);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

/* Tells whether the latest outlook is recent enough. Expensive outlooks are made less often: they use at most a
 * twentieth of the worker's time. */
static bool fresh(const struct forecast *f)
{
    const struct run_task *m = f->last;
    if (!m || !m->run.plans[0].plan)
        return false;
    int64_t age_ns = f->control->env.steady_ns(f->control->env.ctx) - m->made_steady_ns;
    bool same = m->run.revision == state_revision(f->control->state);
    return age_ns < STALE_S * SECOND_NS && (same || age_ns < m->took_ns * COST_SHARE);
}

/* Returns the run that a verb waited for. */
static int take_result(const struct forecast *f, struct request *c, const struct forecast_spec *run_spec,
                       const struct forecast_run **ret)
{
    const struct forecast_plan *first = &f->result->run.plans[0];
    if (run_spec->cases_len == 0 && !first->plan) {
        c->err = first->err;
        return first->rc;
    }
    *ret = &f->result->run;
    return 0;
}

/* Sets a turn after the last one of the same user. Returns the number of waiting forecasts of that user. */
static size_t turn_assign(const struct forecast *f, struct queued_forecast *w)
{
    size_t own = 0;
    w->turn = f->turn + 1;
    for (size_t i = 0; i < f->waiting.len; i++)
        if (strcmp(f->waiting.at[i].user, w->user) == 0) {
            own++;
            w->turn = f->waiting.at[i].turn >= w->turn ? f->waiting.at[i].turn + 1 : w->turn;
        }
    return own;
}

static int enqueue(struct forecast *f, struct request *c, const struct forecast_spec *run_spec)
{
    struct queued_forecast w = {.request = c};
    (void)snprintf(w.user, sizeof w.user, "%s", c->caller.user);
    bool full = turn_assign(f, &w) >= WAITING_USER_MAX || f->waiting.len >= WAITING_MAX;
    int rc = f->stopping ? err_set(&c->err, ENOSPC, "berthd is stopping; try again soon")
             : full      ? err_set(&c->err, EDQUOT, "too many forecasts are running; try again")
                         : 0;
    if (rc < 0 && run_spec->drop)
        run_spec->drop(run_spec->keep);
    if (rc == 0 && run_spec->cases_len)
        rc = run_task_new(f, run_spec, &w.run_task, &c->err);
    if (rc == 0)
        vec_push(&f->waiting, w);
    return rc;
}

static bool waits(const struct forecast *f, const struct request *c)
{
    for (size_t i = 0; i < f->waiting.len; i++)
        if (f->waiting.at[i].request == c)
            return true;
    return false;
}

int forecast_request(struct request *c, const struct forecast_spec *run_spec, const struct forecast_run **ret)
{
    struct forecast *f = c->control->forecast;
    *ret = NULL;
    if (f->serving == c) {
        if (run_spec->drop)
            run_spec->drop(run_spec->keep); /* the one of the first call is in use */
        return take_result(f, c, run_spec, ret);
    }
    if (run_spec->cases_len == 0 && fresh(f)) {
        *ret = &f->last->run;
        return 0;
    }
    int rc = enqueue(f, c, run_spec);
    if (rc < 0)
        return rc;
    f->asking = c;
    next(f);
    f->asking = NULL;
    if (!waits(f, c))
        return take_result(f, c, run_spec, ret);
    c->later = true;
    return 0;
}
