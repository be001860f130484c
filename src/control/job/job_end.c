/* job_end.c - effects of a task's end on its job: time limit, preemption, node loss. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "control/control_parts.h"
#include "control/job/job.h"
#include "control/job/outcome.h"
#include "wire/text/document.h"

const char *duration_text(int64_t ns, struct arena *arena)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {
        {86400, 'd'},
        {3600,  'h'},
        {60,    'm'},
        {1,     's'},
    };
    CLEANUP(str) struct str text = {0};
    int64_t left = ns / 1000000000;
    size_t said = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units && said < 2; i++) {
        int64_t n = left / units[i].seconds;
        if (n)
            str_addf(&text, "%" PRId64 "%c", n, units[i].unit);
        said += n || said; /* only the two largest units */
        left -= n * units[i].seconds;
    }
    return text.len ? arena_strdup(arena, str_text(&text)) : "0s";
}

static bool is_finished(const json_t *doc)
{
    return json_is_true(json_object_get(doc, "failed")) || json_is_true(json_object_get(doc, "cancelled")) ||
           json_is_true(json_object_get(doc, "ended"));
}

/* Opens the job's document for editing; NULL if the job has ended. */
static json_t *edit_open(struct change *change, const char *job)
{
    const json_t *doc = change_read(change, KIND_JOB, job);
    return doc && !is_finished(doc) ? change_edit(change, KIND_JOB, job) : NULL;
}

static void end_job(struct change *change, const char *job, const char *how, enum work_outcome outcome,
                    const char *error)
{
    json_t *doc = edit_open(change, job);
    if (doc)
        outcome_put(doc, how, outcome, error);
}

void job_note_task_failed(struct change *change, const struct object *instance, json_t *doc, enum work_outcome outcome,
                          const char *error, int64_t now_ns)
{
    char now[TIMESTAMP_MAX];
    (void)json_object_set_new(doc, "state", json_string(berth_state_name(BERTH_ENDED)));
    (void)json_object_set_new(doc, "since", json_string(timestamp_text(now_ns, now)));
    (void)json_object_set_new(doc, "ready", json_false());
    outcome_put(doc, "failed", outcome, error);
    change_put(change, KIND_INSTANCE, instance->id, json_incref(doc));
}

/* Adds the task's run time to the job's attained service, for rankings by it. For several tasks the mean counts. */
static void attained_add(struct change *change, const struct object *job, const struct object *instance, int64_t now_ns)
{
    int64_t ran_ns = now_ns - instance->instance->started_ns;
    if (!instance->instance->started_ns || ran_ns <= 0 || instance->instance->state != BERTH_RUNNING)
        return;
    json_t *doc = edit_open(change, job->id);
    const json_t *known = json_object_get(doc, "attained");
    int64_t had_ns = known ? (int64_t)(json_number_value(known) * 1e9) : 0;
    uint32_t tasks = job->work->replicas ? job->work->replicas : 1;
    int64_t attained_ns = had_ns + ran_ns / tasks;
    if (doc)
        (void)json_object_set_new(doc, "attained", json_real((double)attained_ns / 1e9));
}

/* Stores why the stopping instance was stopped; the handling of its last report reads it. */
static void instance_outcome(struct change *change, const struct object *instance, enum work_outcome outcome)
{
    json_t *doc = change_edit(change, KIND_INSTANCE, instance->id);
    if (doc)
        (void)json_object_set_new(doc, "outcome", json_string(work_outcome_name(outcome)));
}

static void task_expired(struct change *change, const struct object *job, const struct object *instance,
                         const struct work_doc *d)
{
    const char *error =
        arena_fmt(change->arena, "exceeded its time limit of %s", duration_text(d->job.time_limit_ns, change->arena));
    if (!job->work->array) {
        instance_outcome(change, instance, OUTCOME_TIMED_OUT);
        end_job(change, job->id, "failed", OUTCOME_TIMED_OUT, error);
        return;
    }
    json_t *doc = change_edit(change, KIND_INSTANCE, instance->id);
    if (doc)
        outcome_put(doc, "failed", OUTCOME_TIMED_OUT, error);
}

/* Returns how the job ends when the action takes one of its tasks; NULL: the job goes on. */
static const char *ends_as(const struct object *job, const struct work_doc *d, enum berth_op op, enum berth_cause cause)
{
    if (op == BERTH_LOSE)
        return d->job.requeue ? NULL : "failed";
    if (op == BERTH_STOP && cause == BERTH_CAUSE_PREEMPTED)
        return d->job.preempt == PREEMPT_CANCEL || !d->job.requeue ? "cancelled" : NULL;
    return op == BERTH_STOP && cause == BERTH_CAUSE_EXPIRED && !job->work->array ? "failed" : NULL;
}

/* Returns the job of the instance if the action may affect it; NULL for a mere reservation. */
static const struct object *job_affected(const struct state *s, const struct object *instance, enum berth_op op,
                                         enum berth_cause cause)
{
    bool may =
        op == BERTH_LOSE || (op == BERTH_STOP && (cause == BERTH_CAUSE_PREEMPTED || cause == BERTH_CAUSE_EXPIRED));
    return may && instance->instance->state != BERTH_RESERVED ? state_find(s, KIND_JOB, instance->instance->workload)
                                                              : NULL;
}

bool job_would_end(const struct state *s, const struct object *instance, enum berth_op op, enum berth_cause cause,
                   struct arena *arena)
{
    const struct object *job = job_affected(s, instance, op, cause);
    CLEANUP(json) json_t *doc = job ? object_doc(job) : NULL;
    struct work_doc d;
    return doc && work_doc_read(doc, arena, &d, NULL) == 0 && ends_as(job, &d, op, cause);
}

void job_note_task_stopped(struct change *change, const struct object *instance, enum berth_op op,
                           enum berth_cause cause, const char *by, int64_t now_ns)
{
    const struct object *job = job_affected(change->state, instance, op, cause);
    bool preempted = op == BERTH_STOP && cause == BERTH_CAUSE_PREEMPTED;
    struct work_doc d;
    CLEANUP(json) json_t *doc = job ? json_incref((json_t *)change_read(change, KIND_JOB, job->id)) : NULL;
    if (!doc || work_doc_read(doc, change->arena, &d, NULL) < 0)
        return;
    const char *how = ends_as(job, &d, op, cause);
    if (preempted)
        instance_outcome(change, instance, OUTCOME_PREEMPTED);
    if (preempted)
        notification_add(change, job, NOTIFY_PREEMPTED,
                         by ? arena_fmt(change->arena, "job %s needed its resources", by) : NULL, now_ns);
    if (preempted && how)
        end_job(change, job->id, how, OUTCOME_PREEMPTED,
                by ? arena_fmt(change->arena, "job %s needed its resources", by) : "other jobs needed its resources");
    else if (preempted)
        attained_add(change, job, instance, now_ns);
    else if (op == BERTH_STOP)
        task_expired(change, job, instance, &d);
    else if (how)
        end_job(change, job->id, how, OUTCOME_NODE_LOST,
                arena_fmt(change->arena, "node %s was lost, and the job is not requeued", instance->instance->node));
}

void job_event_preempted(struct control *c, const char *workload, uint32_t ordinal, const char *node, const char *by)
{
    const struct object *work = state_find_work(c->state, workload);
    char text[EVENT_TEXT_MAX];
    if (!work)
        return;
    (void)snprintf(text, sizeof text, "pod %" PRIu32 " on %s was preempted by %s%s", ordinal, node,
                   by ? "job " : "others", by ? by : "");
    struct object_event event = {.type = "Preempted",
                                 .kind = work->kind,
                                 .id = work->id,
                                 .owner = work->owner,
                                 .group = work->group,
                                 .message = text};
    events_add(c->events, control_now_ns(c), &event);
}
