/* days.c - runs a random day from its first submission to its last end. */
#include "days.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "days_world.h"

enum { PLANS_MAX = 20000, FAILURES_MAX = 5, FIXPOINT_EVERY = 7, AUDIT_EVERY = 101 };

/* Least time between plans that only a recheck asks for: rank keys that change with age ask for one every 10 s. */
#define RECHECK_LEAST_NS (120 * DAY_SECOND_NS)

bool day_fail(struct day *d, const char *fmt, ...)
{
    va_list list;
    va_start(list, fmt);
    (void)vsnprintf(d->failure, sizeof d->failure, fmt, list);
    va_end(list);
    return false;
}

/* ---- events of the day ------------------------------------------------------------------------------------------ */

static void job_end_if_done(struct day *d, struct day_job *j)
{
    uint32_t ended = 0;
    bool expired = false;
    for (uint32_t t = 0; t < j->tasks; t++) {
        ended += j->task[t].state == DAY_ENDED;
        expired |= j->task[t].expired;
    }
    if (j->over || (ended < j->tasks && !expired))
        return;
    j->over = true; /* all tasks ended, or one exceeded its time limit and the others are stopped */
    day_submit(d, j);
}

static void task_finish(struct day *d, struct day_job *j, uint32_t t)
{
    struct day_task *task = &j->task[t];
    struct berth_err err;
    if (task->state == DAY_RUNNING) {
        task->state = DAY_ENDED;
        day_put_task(d, j, t);
    } else {
        (void)berth_instance_remove(d->cluster, task->id, &err);
        task->state = DAY_NONE;
    }
}

/* Returns the time of the next submission, end or confirmed stop. */
static int64_t next_event(const struct day *d)
{
    int64_t first = BERTH_NEVER_NS;
    for (uint32_t i = 0; i < d->jobs_len; i++) {
        const struct day_job *j = &d->jobs[i];
        if (!j->there && !j->over) {
            first = j->arrives_ns < first ? j->arrives_ns : first;
            break; /* jobs are in order of arrival */
        }
    }
    for (uint32_t i = 0; i < d->jobs_len; i++)
        for (uint32_t t = 0; d->jobs[i].there && t < d->jobs[i].tasks; t++) {
            const struct day_task *task = &d->jobs[i].task[t];
            if ((task->state == DAY_RUNNING || task->state == DAY_STOPPING) && task->ends_ns < first)
                first = task->ends_ns;
        }
    return first;
}

static void run_events(struct day *d)
{
    for (uint32_t i = 0; i < d->jobs_len; i++) {
        struct day_job *j = &d->jobs[i];
        if (!j->there && !j->over && j->arrives_ns <= d->now_ns)
            day_submit(d, j);
        bool any = false;
        for (uint32_t t = 0; j->there && t < j->tasks; t++)
            if ((j->task[t].state == DAY_RUNNING || j->task[t].state == DAY_STOPPING) &&
                j->task[t].ends_ns <= d->now_ns) {
                task_finish(d, j, t);
                any = true;
            }
        if (any)
            job_end_if_done(d, j);
    }
}

/* ---- applying a plan -------------------------------------------------------------------------------------------- */

static void task_run(struct day *d, struct day_job *j, uint32_t t)
{
    struct day_task *task = &j->task[t];
    task->state = DAY_RUNNING;
    task->since_ns = d->now_ns;
    task->ends_ns = d->now_ns + j->runs_ns;
    j->started_ns = j->started_ns ? j->started_ns : d->now_ns;
}

static void apply_action(struct day *d, const struct berth_action *a)
{
    struct day_job *j = day_job_find(d, a->workload);
    struct day_task *task = &j->task[a->ordinal];
    switch (a->op) {
    case BERTH_PLACE:
    case BERTH_RESERVE:
        *task = (struct day_task){.id = d->next_id++, .node = day_node_find(d, a->node), .gpus = a->gpus};
        d->placed++;
        if (a->op == BERTH_PLACE)
            task_run(d, j, a->ordinal);
        else
            task->state = DAY_RESERVED;
        break;
    case BERTH_PROMOTE: task_run(d, j, a->ordinal); break;
    case BERTH_STOP:
        if (task->state == DAY_RESERVED) {
            task->state = DAY_NONE;
            break;
        }
        task->state = DAY_STOPPING;
        task->expired = a->cause == BERTH_CAUSE_EXPIRED;
        task->since_ns = d->now_ns;
        task->ends_ns = d->now_ns + rng_range(&d->rng, 1, 60) * DAY_SECOND_NS;
        j->preempted += a->cause == BERTH_CAUSE_PREEMPTED;
        d->preempted += a->cause == BERTH_CAUSE_PREEMPTED;
        d->expired += task->expired;
        break;
    case BERTH_LOSE:
    case BERTH_ADJUST: break;
    }
    if (d->is_verbose)
        (void)printf("%9.0f  %s %s/%u %s %s\n", (double)d->now_ns / 1e9, berth_op_name(a->op), a->workload, a->ordinal,
                     a->node, berth_cause_name(a->cause));
}

/* Applies the plan to the cluster and to the records of the day. Placed tasks run at once. */
static bool plan_apply(struct day *d, const struct berth_plan *plan)
{
    struct berth_err err;
    if (berth_apply(d->cluster, plan, d->next_id, &err) < 0)
        return day_fail(d, "a plan could not be applied: %s", err.text);
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        apply_action(d, &a);
    }
    return true;
}

static bool is_fixpoint(struct day *d)
{
    struct berth_err err;
    struct berth_snapshot *s = berth_freeze(d->cluster, d->now_ns, 0);
    struct berth_plan *plan = NULL;
    bool ok = berth_plan_make(s, &d->policy, &plan, &err) == 0;
    size_t actions = ok ? berth_plan_actions(plan) : 0, facts = ok ? berth_plan_facts(plan) : 0;
    if (actions) {
        struct berth_action a = berth_plan_action(plan, 0);
        ok = day_fail(d, "a plan that was applied leaves %zu actions: %s %s/%u %s %s", actions, berth_op_name(a.op),
                      a.workload, a.ordinal, a.node, berth_cause_name(a.cause));
    } else if (facts) {
        struct berth_fact f = berth_plan_fact(plan, 0);
        ok = day_fail(d, "a plan that was applied leaves %zu facts: %s %" PRId64 "%s", facts, f.key, f.value,
                      f.over ? " over" : "");
    }
    berth_plan_free(plan);
    berth_snapshot_free(s);
    return ok;
}

/* Tells the cluster that the tasks placed by the last plan are running. */
static void put_running(struct day *d)
{
    for (uint32_t i = 0; i < d->jobs_len; i++)
        for (uint32_t t = 0; d->jobs[i].there && t < d->jobs[i].tasks; t++)
            if (d->jobs[i].task[t].state == DAY_RUNNING && d->jobs[i].task[t].since_ns == d->now_ns)
                day_put_task(d, &d->jobs[i], t);
}

static bool check_step(struct day *d)
{
    struct berth_err err;
    bool ok = day_check_state(d);
    if (ok && d->plans % FIXPOINT_EVERY == 0)
        ok = is_fixpoint(d);
    if (ok && d->plans % AUDIT_EVERY == 0 && berth_audit(d->cluster, &err) < 0)
        ok = day_fail(d, "%s", err.text);
    return ok;
}

/* Makes, checks and applies one plan. */
static bool step(struct day *d)
{
    struct berth_err err;
    struct berth_snapshot *s = berth_freeze(d->cluster, d->now_ns, 0);
    struct berth_plan *plan = NULL;
    bool ok = true;
    if (berth_plan_make(s, &d->policy, &plan, &err) < 0)
        ok = day_fail(d, "no plan: %s", err.text);
    ok = ok && (d->unchecked || day_check_plan(d, plan)) && plan_apply(d, plan);
    if (ok)
        d->recheck_ns = berth_plan_recheck_ns(plan);
    berth_plan_free(plan);
    berth_snapshot_free(s);
    d->plans++;
    ok = ok && (d->unchecked || check_step(d));
    if (ok)
        put_running(d);
    return ok;
}

bool day_run_until(struct day *d, int64_t until_ns)
{
    while (d->plans < PLANS_MAX) {
        int64_t next = next_event(d), recheck = d->recheck_ns;
        recheck = recheck < d->now_ns + RECHECK_LEAST_NS ? d->now_ns + RECHECK_LEAST_NS : recheck;
        next = recheck < next ? recheck : next;
        if (next == BERTH_NEVER_NS)
            return d->unchecked || day_check_end(d);
        next = next > d->now_ns + d->pause_ns ? next : d->now_ns + d->pause_ns;
        if (next > until_ns)
            return true;
        d->now_ns = next > d->now_ns ? next : d->now_ns;
        run_events(d);
        if (!step(d))
            return false;
        if (d->recheck_ns <= d->now_ns)
            return day_fail(d, "the plan is to be made again at once");
    }
    return day_fail(d, "no end after %d plans", PLANS_MAX);
}

/* ---- many days -------------------------------------------------------------------------------------------------- */

static bool seed_run(uint64_t seed, bool is_verbose, struct days_sum *sum)
{
    struct day d;
    day_make(&d, seed);
    d.is_verbose = is_verbose;
    bool ok = day_run_until(&d, BERTH_NEVER_NS);
    if (!ok)
        (void)printf("# BERTH_SEED=%" PRIu64 " at %.0f s: %s\n", seed, (double)d.now_ns / 1e9, d.failure);
    (void)fflush(stdout);
    sum->days++;
    sum->jobs += d.jobs_len;
    sum->plans += d.plans;
    sum->placed += d.placed;
    sum->preempted += d.preempted;
    sum->expired += d.expired;
    sum->load += d.load;
    berth_cluster_free(d.cluster);
    mem_free(d.jobs);
    return ok;
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

size_t days_check(uint64_t first, size_t len, struct days_sum *sum)
{
    return days_check_within(first, (struct bound){.least = len, .most = len}, sum);
}

size_t days_check_within(uint64_t first, struct bound bound, struct days_sum *sum)
{
    size_t failed = 0, most = (size_t)env_number("BERTH_FAILURES", FAILURES_MAX);
    *sum = (struct days_sum){0};
    if (getenv("BERTH_SEED"))
        return !seed_run(env_number("BERTH_SEED", 0), true, sum);
    first = env_number("BERTH_FIRST", first);
    if (getenv("BERTH_DAYS"))
        bound.least = bound.most = (size_t)env_number("BERTH_DAYS", bound.most);
    bound_begin(&bound);
    for (size_t done = 0; bound_goes_on(&bound, done) && failed < most; done++)
        failed += !seed_run(first + done, false, sum);
    return failed;
}
