/* jobs.c - checks the lifecycle of jobs: dependencies, requeue, and preemption (17, 19).
 *
 * Documents do not give the reason why an instance was stopped. A stop that no other rule explains was a preemption,
 * and then the same transaction must have placed the preemptors.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/state/sync.h"
#include "sim/cluster/world.h"

enum { STOPS_AN_HOUR = 40 /* limit of preemptions per pod */, QUEUES_MAX = 16 };

/* A preempted pod. */
struct stopped {
    char workload[ID_OWNED_MAX + 1];
    uint32_t ordinal, times;
    int64_t since_ns;
};

struct jobs_history {
    VEC(struct stopped) at;
};

struct jobs_history *jobs_history_new(void)
{
    return mem_zalloc(sizeof(struct jobs_history));
}

void jobs_history_free(struct jobs_history *j)
{
    if (j)
        vec_done(&j->at);
    mem_free(j);
}

static bool is_over(const struct mirror_doc *work)
{
    return work->work.cancelled || work->work.failed || work->work.ended;
}

static bool same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* ---- dependencies ----------------------------------------------------------------------------------------------- */

/* Returns whether the dependency is met, by the documents at this revision. A requeued job may have any state. */
static bool has_come(const struct mirror_doc *of, enum after_when when)
{
    if (!of)
        return when == AFTER_ENDED;
    const struct work_doc *d = &of->work;
    bool over = d->job.finished_ns, well = over && !d->cancelled && !d->failed;
    switch (when) {
    case AFTER_STARTED: return d->job.started_ns || well;
    case AFTER_FAILED: return over && !well;
    case AFTER_ENDED: return over;
    default: return well;
    }
}

static void dependencies_verify(struct sim_world *w, const struct mirror_doc *job)
{
    const struct job_terms *t = &job->work.job;
    for (size_t i = 0; i < t->after_len; i++) {
        char id[24];
        const struct mirror_doc *of = mirror_find(&w->mirror, KIND_JOB, str_u64(t->after[i].job, id));
        if (!has_come(of, t->after[i].when) && (!of || !of->work.job.attempt))
            world_breach(w, 17, "job %s waits no longer for job %s (%s), but that has not come about", job->id, id,
                         after_when_name(t->after[i].when));
    }
    for (size_t i = 0; t->singleton && i < w->mirror.of[KIND_JOB].len; i++) {
        const struct mirror_doc *o = w->mirror.of[KIND_JOB].at[i];
        if (o->created < job->created && same(o->work.owner, job->work.owner) && same(o->work.name, job->work.name) &&
            !o->work.job.finished_ns && !o->work.job.attempt)
            world_breach(w, 17, "job %s is to run alone, but job %s of its name is not over", job->id, o->id);
    }
}

/* ---- requeue ---------------------------------------------------------------------------------------------------- */

/* Checks that a requeued job has the next attempt number, and that nothing of its last attempt continues. */
static void requeue_verify(struct sim_world *w, const struct mirror_doc *old, const struct mirror_doc *now)
{
    if (is_over(now) || now->work.job.finished_ns)
        world_breach(w, 17, "job %s was queued again, and is over", now->id);
    if (now->work.job.attempt != old->work.job.attempt + 1)
        world_breach(w, 17, "job %s was queued again, and is in attempt %" PRIu64 " after %" PRIu64, now->id,
                     now->work.job.attempt, old->work.job.attempt);
    for (size_t i = 0; i < w->mirror.of[KIND_INSTANCE].len; i++) {
        const struct berth_instance *x = &w->mirror.of[KIND_INSTANCE].at[i]->instance.instance;
        if (strcmp(x->workload, now->id) == 0 && x->state != BERTH_STOPPING)
            world_breach(w, 17, "job %s was queued again, and its task %u is still %s", now->id, x->ordinal,
                         berth_state_name(x->state));
    }
}

/* ---- preemption ------------------------------------------------------------------------------------------------- */

static uint64_t decided_at(const struct transaction *t)
{
    return (uint64_t)json_integer_value(json_object_get(json_object_get(t->record, "cycle"), "revision"));
}

static int64_t decided_ns(const struct transaction *t)
{
    return json_integer_value(json_object_get(json_object_get(t->record, "cycle"), "now"));
}

static bool is_lost(const struct sim_world *w, const struct berth_instance *x)
{
    const struct mirror_doc *node = mirror_find(&w->mirror, KIND_NODE, x->node);
    return node && node->node.node.state == BERTH_NODE_LOST;
}

/* Returns whether the pod counts. A pod on a lost node may be replaced, and then does not count. */
static bool counts(const struct sim_world *w, const struct mirror_doc *work, const struct berth_instance *x)
{
    return x->state != BERTH_STOPPING &&
           !(work->work.workload.on_lost == BERTH_LOST_REPLACE && x->state != BERTH_ENDED && is_lost(w, x));
}

/* Counts the pods of the workload that were placed or finished before the transaction. */
static uint32_t placed_before(const struct sim_world *w, const struct transaction *t, const struct mirror_doc *work)
{
    uint32_t n = 0;
    for (size_t i = 0; i < w->mirror.of[KIND_INSTANCE].len; i++) {
        const struct mirror_doc *s = w->mirror.of[KIND_INSTANCE].at[i];
        n += strcmp(s->instance.instance.workload, work->id) == 0 && s->created < t->revision &&
             counts(w, work, &s->instance.instance);
    }
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_change *c = &t->changes[i];
        bool goes = c->kind == KIND_INSTANCE && c->old && strcmp(c->old->instance.instance.workload, work->id) == 0 &&
                    counts(w, work, &c->old->instance.instance) &&
                    (!c->now || c->now->instance.instance.state == BERTH_STOPPING);
        n += goes;
    }
    return n;
}

static uint32_t gang_min_of(const struct berth_workload *d)
{
    return d->gang_min ? d->gang_min : d->replicas;
}

/* Returns whether a task was lost with its node, or a reservation could not be kept. Either breaks a gang. */
static bool lost_task(const struct sim_world *w, const struct transaction *t, const char *gang)
{
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_doc *old =
            t->changes[i].kind == KIND_INSTANCE && !t->changes[i].now ? t->changes[i].old : NULL;
        const struct mirror_doc *work = old ? mirror_find(&w->mirror, KIND_JOB, old->instance.instance.workload) : NULL;
        if (work && same(work->work.workload.gang, gang) &&
            (old->instance.instance.state == BERTH_RESERVED || is_lost(w, &old->instance.instance)))
            return true;
    }
    return false;
}

static bool gang_was_broken(const struct sim_world *w, const struct transaction *t, const char *gang)
{
    if (gang && *gang && lost_task(w, t, gang))
        return true;
    for (size_t i = 0; gang && *gang && i < w->mirror.of[KIND_JOB].len; i++) {
        const struct mirror_doc *work = w->mirror.of[KIND_JOB].at[i];
        const struct berth_workload *d = &work->work.workload;
        if (same(d->gang, gang) &&
            (is_over(work) || (work->revision > decided_at(t) && work->revision != t->revision) ||
             placed_before(w, t, work) < gang_min_of(d)))
            return true;
    }
    return false;
}

/* Returns whether the job has reached its time limit, or that of its queue. */
static bool ran_out(const struct mirror *m, const struct transaction *t, const struct mirror_doc *work,
                    const struct mirror_doc *was)
{
    const char *queue = work->work.job.queue;
    if (work->work.job.time_limit_ns)
        return decided_ns(t) - was->instance.instance.since_ns >= work->work.job.time_limit_ns;
    for (size_t i = 0; queue && *queue && i < QUEUES_MAX; i++) {
        const struct mirror_doc *s = mirror_find(m, KIND_QUEUE, queue);
        if (s && (s->queue.time_limit_ns || s->queue.max_time_ns))
            return true; /* which of the limits applies is decided by the daemon */
        queue = s ? s->queue.parent : NULL;
    }
    return !work->work.job.queue && m->of[KIND_QUEUE].len; /* "default" may have a time limit */
}

static const struct mirror_doc *as_it_was(const struct transaction *t, const char *job)
{
    for (size_t i = 0; i < t->len; i++)
        if (t->changes[i].kind == KIND_JOB && t->changes[i].old && strcmp(t->changes[i].old->id, job) == 0)
            return t->changes[i].old;
    return NULL;
}

/* Returns whether something other than preemption explains the stop. */
static bool is_explained(const struct sim_world *w, const struct transaction *t, const struct mirror_doc *was)
{
    const struct mirror *m = &w->mirror;
    const struct berth_instance *x = &was->instance.instance;
    const struct mirror_doc *work = mirror_find(m, KIND_JOB, x->workload), *node = mirror_find(m, KIND_NODE, x->node);
    uint64_t mirror_doc = decided_at(t);
    if (work && work->revision == t->revision && !work->work.failed)
        work = as_it_was(t, work->id); /* this transaction may have marked the job as finally preempted */
    if (!work || x->replaces || x->ordinal >= work->work.workload.replicas || work->revision > mirror_doc)
        return true;
    if (!mirror_should_run(m, work) || ran_out(m, t, work, was) ||
        was->instance.generation != work->work.meta.generation)
        return true;
    if (!node || node->revision > mirror_doc || node->node.node.state != BERTH_NODE_READY)
        return true;
    for (size_t i = 0; i < m->of[KIND_INSTANCE].len; i++) { /* there are two copies of the pod */
        const struct berth_instance *o = &m->of[KIND_INSTANCE].at[i]->instance.instance;
        if (o->id != x->id && o->ordinal == x->ordinal && strcmp(o->workload, x->workload) == 0)
            return true;
    }
    return gang_was_broken(w, t, work->work.workload.gang);
}

static int64_t priority_of(const struct mirror *m, const struct mirror_doc *work)
{
    const char *queue = work->kind != KIND_JOB ? "" : work->work.job.queue ? work->work.job.queue : QUEUE_DEFAULT;
    const struct mirror_doc *q = *queue ? mirror_find(m, KIND_QUEUE, queue) : NULL;
    return (int64_t)work->work.workload.priority + (q ? q->queue.priority_class : 0);
}

/* Returns whether any guarantee exists: then priorities alone do not determine the order. */
static bool has_guarantees(const struct mirror *m)
{
    static const enum kind all[] = {KIND_USER, KIND_GROUP, KIND_QUEUE};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (size_t i = 0; i < m->of[all[k]].len; i++) {
            const struct mirror_doc *s = m->of[all[k]].at[i];
            const struct quota_doc *q = s->kind == KIND_USER    ? &s->user.quota
                                        : s->kind == KIND_GROUP ? &s->group.quota
                                                                : &s->queue.quota;
            if (q->guarantees_len || (s->kind == KIND_QUEUE && s->queue.share))
                return true;
        }
    return false;
}

/* Returns the highest priority of other workloads that this transaction places; false: none. */
static bool placed_for(const struct sim_world *w, const struct transaction *t, const char *victim, int64_t *ret)
{
    bool some = false;
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_doc *now =
            t->changes[i].kind == KIND_INSTANCE && !t->changes[i].old ? t->changes[i].now : NULL;
        const struct mirror_doc *work = now ? mirror_work(&w->mirror, now->instance.instance.workload) : NULL;
        if (!work || strcmp(work->id, victim) == 0)
            continue;
        int64_t priority = priority_of(&w->mirror, work);
        *ret = !some || priority > *ret ? priority : *ret;
        some = true;
    }
    return some;
}

static bool order_changed(const struct mirror *m, const struct transaction *t)
{
    for (size_t i = 0; i < m->of[KIND_QUEUE].len; i++)
        if (m->of[KIND_QUEUE].at[i]->revision > decided_at(t))
            return true;
    return false;
}

static void count_stop(struct sim_world *w, const struct berth_instance *x)
{
    struct jobs_history *j = w->jobs;
    for (size_t i = 0; i < j->at.len; i++) {
        struct stopped *s = &j->at.at[i];
        if (s->ordinal != x->ordinal || strcmp(s->workload, x->workload) != 0)
            continue;
        if (w->now_ns - s->since_ns > HOUR) {
            s->since_ns = w->now_ns;
            s->times = 0;
        }
        if (++s->times > STOPS_AN_HOUR)
            world_breach(w, 19, "%s/%u was stopped for others %u times within an hour", x->workload, x->ordinal,
                         s->times);
        return;
    }
    struct stopped one = {.ordinal = x->ordinal, .times = 1, .since_ns = w->now_ns};
    (void)snprintf(one.workload, sizeof one.workload, "%s", x->workload);
    vec_push(&j->at, one);
}

/* A gang is preempted as a whole, or keeps its minimum. */
static void gang_rest_verify(struct sim_world *w, const struct mirror_doc *work)
{
    uint32_t left = 0, done = 0, least = gang_min_of(&work->work.workload);
    for (size_t i = 0; i < w->mirror.of[KIND_INSTANCE].len; i++) {
        const struct berth_instance *x = &w->mirror.of[KIND_INSTANCE].at[i]->instance.instance;
        if (strcmp(x->workload, work->id) == 0) {
            left += x->state != BERTH_STOPPING && x->state != BERTH_ENDED;
            done += x->state == BERTH_ENDED;
        }
    }
    if (left && left + done < least && !is_over(work))
        world_breach(w, 19, "of gang job %s %u tasks are left, and its minimum is %u", work->id, left + done, least);
}

static void victim_verify(struct sim_world *w, const struct transaction *t, const struct mirror_doc *was)
{
    const struct berth_instance *x = &was->instance.instance;
    const struct mirror_doc *work = mirror_find(&w->mirror, KIND_JOB, x->workload);
    int64_t priority = 0;
    if (is_explained(w, t, was))
        return;
    world_count_check(w, 19);
    count_stop(w, x);
    if (!placed_for(w, t, x->workload, &priority)) {
        world_breach(w, 19, "%s/%u is stopped on %s, and nothing is placed for which it was", x->workload, x->ordinal,
                     x->node);
        return;
    }
    const struct berth_workload *d = &work->work.workload;
    bool elastic = d->gang && *d->gang && gang_min_of(d) < d->replicas;
    if (!work->work.job.preemptible)
        world_breach(w, 19, "%s/%u is stopped for others, and was never to be", x->workload, x->ordinal);
    if (!elastic && !has_guarantees(&w->mirror) && !order_changed(&w->mirror, t) &&
        priority <= priority_of(&w->mirror, work))
        world_breach(w, 19, "%s/%u of priority %" PRId64 " is stopped for others of at most %" PRId64, x->workload,
                     x->ordinal, priority_of(&w->mirror, work), priority);
    if (d->gang && *d->gang)
        gang_rest_verify(w, work);
}

void jobs_verify(struct sim_world *w, const struct transaction *t)
{
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_doc *old = t->changes[i].old, *now = t->changes[i].now;
        if (t->changes[i].kind == KIND_JOB && now && now->work.job.met && !(old && old->work.job.met))
            dependencies_verify(w, now);
        if (t->changes[i].kind == KIND_JOB && old && now && t->asked && strstr(t->verb, "/requeue"))
            requeue_verify(w, old, now);
        if (t->changes[i].kind == KIND_INSTANCE && old && now && strcmp(t->verb, "unit") == 0 &&
            now->instance.instance.state == BERTH_STOPPING && old->instance.instance.state != BERTH_STOPPING &&
            mirror_find(&w->mirror, KIND_JOB, now->instance.instance.workload))
            victim_verify(w, t, old);
    }
}
