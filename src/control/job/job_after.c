/* job_after.c - dependencies of jobs: on other jobs, and on earlier jobs of the same name. */
#include <inttypes.h>
#include <string.h>

#include "base/plant.h"
#include "base/str.h"
#include "control/job/job.h"
#include "wire/text/document.h"

bool job_is_finished(const struct object *job)
{
    return job->work->finished_ns != 0;
}

static const char *condition_text(enum after_when when)
{
    switch (when) {
    case AFTER_STARTED: return "to start";
    case AFTER_FAILED: return "to fail";
    case AFTER_ENDED: return "to end";
    default: return "to succeed";
    }
}

/* Returns how a job ended, as text. */
static const char *ending_text(const struct object *job)
{
    const struct work_view *v = job->work;
    return v->cancelled ? "was cancelled" : v->failed ? "has failed" : "has succeeded";
}

static enum job_wait after_wait(const struct object *of, enum after_when when)
{
    if (!of) /* the job is deleted: it has ended, its outcome is unknown */
        return when == AFTER_ENDED ? WAIT_MET : WAIT_NEVER;
    bool over = job_is_finished(of), well = over && !of->work->cancelled && !of->work->failed;
    if (PLANTED(AFTER_EARLY))
        return WAIT_MET;
    switch (when) {
    case AFTER_STARTED: return of->work->started_ns || well ? WAIT_MET : over ? WAIT_NEVER : WAIT_OPEN;
    case AFTER_FAILED: return !over ? WAIT_OPEN : well ? WAIT_NEVER : WAIT_MET;
    case AFTER_ENDED: return over ? WAIT_MET : WAIT_OPEN;
    default: return !over ? WAIT_OPEN : well ? WAIT_MET : WAIT_NEVER;
    }
}

enum job_wait job_wait(struct job_loop *j, const struct object *job, struct arena *arena, const char **ret_text)
{
    const struct state *s = jobs_state(j);
    struct work_doc d;
    enum job_wait worst = WAIT_MET;
    CLEANUP(json) json_t *doc = object_doc(job);
    *ret_text = "";
    if (work_doc_read(doc, arena, &d, NULL) < 0 || !d.job.waits)
        return WAIT_MET;
    for (size_t i = 0; i < d.job.after_len; i++) {
        char number[24];
        const struct job_after *a = &d.job.after[i];
        const char *id = str_u64(a->job, number);
        const struct object *of = state_find(s, KIND_JOB, id);
        enum job_wait one = after_wait(of, a->when);
        if (one == WAIT_NEVER) {
            *ret_text = arena_fmt(arena, "the dependency on job %s %s cannot be met: that job %s", id,
                                  condition_text(a->when), of ? ending_text(of) : "was deleted");
            return one;
        }
        if (one == WAIT_OPEN && worst == WAIT_MET)
            *ret_text = arena_fmt(arena, "waits for job %s %s", id, condition_text(a->when));
        worst = one == WAIT_OPEN ? one : worst;
    }
    const struct object *before = d.job.singleton && worst == WAIT_MET ? jobs_earlier_of_name(j, job) : NULL;
    if (!before)
        return worst;
    *ret_text = arena_fmt(arena, "waits for the earlier job %s of the same name to end", before->id);
    return WAIT_OPEN;
}

/* Appends the dependencies of a job. Returns false if they are not expected to be met. */
static bool waits_add(const struct state *s, const struct object *job, struct arena *arena, struct lookahead_wait *to,
                      size_t *len)
{
    struct work_doc d;
    CLEANUP(json) json_t *doc = object_doc(job);
    const struct object *owner = state_find(s, KIND_USER, job->owner);
    if (work_doc_read(doc, arena, &d, NULL) < 0 || !d.job.waits || d.job.singleton || (owner && owner->user->disabled))
        return false;
    for (size_t i = 0; i < d.job.after_len; i++) {
        char number[24];
        const struct job_after *a = &d.job.after[i];
        const struct object *of = state_find(s, KIND_JOB, str_u64(a->job, number));
        enum job_wait wait = after_wait(of, a->when);
        if (wait == WAIT_MET)
            continue;
        if (wait == WAIT_NEVER || a->when == AFTER_FAILED || *len == JOB_WAITS_MAX)
            return false;
        to[(*len)++] = (struct lookahead_wait){arena_strdup(arena, job->id), arena_strdup(arena, of->id),
                                               a->when == AFTER_STARTED};
    }
    return true;
}

size_t job_waits(const struct state *s, struct arena *arena, const struct lookahead_wait **ret)
{
    size_t jobs, len = 0;
    const struct object *const *list = state_list(s, KIND_JOB, &jobs);
    struct lookahead_wait *waits = NULL;
    for (size_t i = 0; i < jobs && len < JOB_WAITS_MAX; i++) {
        size_t before = len;
        if (!list[i]->work->waits || list[i]->work->held || job_is_finished(list[i]))
            continue;
        waits = waits ? waits : ARENA_ARRAY(arena, struct lookahead_wait, JOB_WAITS_MAX);
        if (!waits_add(s, list[i], arena, waits, &len))
            len = before;
    }
    *ret = waits;
    return len;
}

void job_after_drop(struct change *change, const struct object *waiter, const struct object *job)
{
    struct work_doc d;
    CLEANUP(json) json_t *left = json_array();
    json_t *doc = change_edit(change, KIND_JOB, waiter->id);
    if (!doc || work_doc_read(doc, change->arena, &d, NULL) < 0 || !d.job.waits)
        return;
    for (size_t i = 0; i < d.job.after_len; i++) {
        char number[24];
        const struct job_after *a = &d.job.after[i];
        if (strcmp(str_u64(a->job, number), job->id) != 0 || after_wait(job, a->when) != WAIT_MET)
            (void)json_array_append_new(
                left, json_pack("{s:I, s:s}", "job", (json_int_t)a->job, "when", after_when_name(a->when)));
    }
    if (json_array_size(left) == 0 && !d.job.singleton)
        (void)json_object_set_new(doc, "met", json_true());
    else
        (void)json_object_set(doc, "after", left);
}
