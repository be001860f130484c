/* job_verbs.c - verbs on existing jobs: hold, release, cancel, requeue. They apply to all jobs of a set. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/plant.h"
#include "base/str.h"
#include "control/job/job.h"
#include "control/job/outcome.h"
#include "control/kind/work.h"
#include "wire/text/document.h"

size_t job_set(struct request *c, const struct object *job, uint64_t **ret)
{
    uint64_t *all = ARENA_ARRAY(&c->arena, uint64_t, ROLES_MAX);
    size_t len = 0;
    int64_t own = 0;
    (void)str_parse_i64(job->id, &own);
    for (uint64_t n = job->work->of; job->work->of && n < job->work->of + ROLES_MAX; n++) {
        char number[24];
        const struct object *o = state_find(c->state, KIND_JOB, str_u64(n, number));
        if (o && o->work->of == job->work->of)
            all[len++] = n;
    }
    if (len == 0)
        all[len++] = (uint64_t)own;
    *ret = all;
    return len;
}

/* Opens the job that the path names and lets `edit` change it and the other jobs of its set as far as possible. `any`:
 * one changed job suffices for success. */
static int edit_set(struct request *c, const char *verb, crud_edit_fn *edit, bool any)
{
    const char *id = NULL;
    struct berth_err refused = {0};
    size_t altered = 0;
    const json_t *old = crud_open(c, KIND_JOB, c->args[0], PERMIT_MANAGE, &id);
    const struct object *job = old ? state_find(c->state, KIND_JOB, id) : NULL;
    uint64_t *all = NULL;
    if (!old)
        return -c->err.code;
    size_t len = job ? job_set(c, job, &all) : 0;
    for (size_t i = 0; i < len; i++) {
        char number[24];
        const char *one = arena_strdup(&c->arena, str_u64(all[i], number));
        const json_t *was = change_read(&c->change, KIND_JOB, one);
        CLEANUP(json) json_t *doc = json_deep_copy(was);
        bool named = strcmp(one, id) == 0;
        int rc = edit(c, one, doc, NULL);
        if (rc < 0 && (any || !named)) {
            refused = named ? c->err : refused;
            c->err = (struct berth_err){0};
            continue;
        }
        if (rc == 0)
            rc = crud_write(c, &job_crud, one, was, take_ptr(&doc));
        if (rc < 0)
            return rc;
        altered++;
    }
    if (altered == 0 && refused.code) {
        c->err = refused;
        return -refused.code;
    }
    crud_name(c, KIND_JOB, id, verb);
    return crud_answer(c, KIND_JOB, id, false);
}

int job_refuse_finished(struct request *c, const char *id, const json_t *doc)
{
    const char *how = json_is_true(json_object_get(doc, "cancelled")) ? "was cancelled"
                      : json_is_true(json_object_get(doc, "failed"))  ? "has failed"
                      : json_is_true(json_object_get(doc, "ended"))   ? "has ended"
                                                                      : NULL;
    if (!how)
        return 0;
    return err_set(&c->err, EBUSY, "job %s %s; submit or requeue it", id, how);
}

/* ---- hold and release -------------------------------------------------------------------------------------------- */

struct assumed_job_search {
    const struct state *state;
    bool found;
};

static void assumed_find(void *ctx, const struct berth_instance_view *instance)
{
    struct assumed_job_search *assumed_search = ctx;
    char number[24];
    assumed_search->found |= !state_find(assumed_search->state, KIND_INSTANCE, str_u64(instance->id, number));
}

/* Returns whether an assumed change of a plan places the job. An instance without a document cannot be stopped. */
static bool is_being_placed(struct request *c, const char *id)
{
    struct assumed_job_search assumed_search = {.state = c->state};
    berth_instances(state_cluster(c->state), id, assumed_find, &assumed_search);
    return assumed_search.found;
}

/* Counts instances that run or are about to; a hold does not affect instances that are stopping. */
static size_t running_of(const struct object *job)
{
    size_t n = 0;
    for (size_t i = 0; job && i < job->work->instances_len; i++) {
        enum berth_state state = job->work->instances[i]->instance->state;
        n += state == BERTH_ASSIGNED || state == BERTH_STARTING || state == BERTH_RUNNING;
    }
    return n;
}

int job_hold_running_check(struct request *c, const char *id, const json_t *old, const json_t *doc)
{
    const char *stop = request_query(c, "stop");
    if (!old || !json_is_true(json_object_get(doc, "hold")) || json_is_true(json_object_get(old, "hold")))
        return 0;
    if (stop && *stop && strcmp(stop, "true") != 0 && strcmp(stop, "1") != 0 && strcmp(stop, "false") != 0)
        return err_set(&c->err, EINVAL, "stop: expected true or false");
    if (stop && strcmp(stop, "false") != 0)
        return 0;
    const struct object *job = state_find(c->state, KIND_JOB, id);
    size_t running = running_of(job);
    if (running)
        return err_set(&c->err, EBUSY,
                       "job %s has %zu of %" PRIu32 " tasks running, and a hold affects only pending jobs; to stop "
                       "it as well, use --stop (?stop=true)",
                       id, running, job->work->replicas);
    if (is_being_placed(c, id))
        return err_set(&c->err, EBUSY, "job %s is being placed; try again, or use --stop (?stop=true)", id);
    return 0;
}

static int hold(struct request *c, const char *id, json_t *doc, const void *arg)
{
    const char *owner = json_string_value(json_object_get(doc, "owner"));
    (void)arg;
    int rc = job_refuse_finished(c, id, doc);
    if (rc < 0)
        return rc;
    (void)json_object_set_new(doc, "hold", json_true());
    if (owner && strcmp(owner, c->caller.user) != 0 && permit(&c->caller, PERMIT_MANAGE, "", ""))
        (void)json_object_set_new(doc, "held_by", json_string("operator"));
    return 0;
}

static int release(struct request *c, const char *id, json_t *doc, const void *arg)
{
    CLEANUP(json) json_t *old = json_copy(doc);
    (void)arg;
    int rc = job_refuse_finished(c, id, doc);
    (void)json_object_del(doc, "hold");
    if (rc == 0)
        rc = job_hold_check(c, old, doc);
    if (rc == 0)
        (void)json_object_del(doc, "held_by");
    return rc;
}

int job_hold_verb(struct request *c)
{
    return edit_set(c, "hold", hold, false);
}

int job_release_verb(struct request *c)
{
    return edit_set(c, "release", release, false);
}

/* ---- cancel ------------------------------------------------------------------------------------------------------ */

/* A job without instances ends at once. Cancelling a cancelled job changes nothing, so that clients may repeat the
 * request. */
static int cancel(struct request *c, const char *id, json_t *doc, const void *arg)
{
    char now[TIMESTAMP_MAX];
    const struct object *job = state_find(c->state, KIND_JOB, id);
    enum work_outcome outcome = outcome_of_doc(doc);
    (void)arg;
    if (outcome == OUTCOME_CANCELLED)
        return 0;
    if (outcome)
        return err_set(&c->err, EBUSY, "job %s has already ended: %s", id, work_outcome_name(outcome));
    outcome_put(doc, "cancelled", OUTCOME_CANCELLED, NULL);
    if (!job || job->work->instances_len == 0)
        (void)json_object_set_new(doc, "finished", json_string(timestamp_text(c->now_ns, now)));
    return 0;
}

int job_cancel_verb(struct request *c)
{
    return edit_set(c, "cancel", cancel, true);
}

/* ---- requeue ----------------------------------------------------------------------------------------------------- */

/* Stops the running instances and deletes the records of ended ones. */
static void tasks_restart(struct request *c, const struct object *job)
{
    char now[TIMESTAMP_MAX];
    for (size_t i = 0; i < job->work->instances_len; i++) {
        const struct object *o = job->work->instances[i];
        if (o->instance->state == BERTH_ENDED || o->instance->state == BERTH_RESERVED) {
            if (change_guard(&c->change, KIND_INSTANCE, o->id))
                change_delete(&c->change, KIND_INSTANCE, o->id);
            continue;
        }
        json_t *doc = o->instance->state == BERTH_STOPPING ? NULL : change_edit(&c->change, KIND_INSTANCE, o->id);
        if (!doc)
            continue;
        (void)json_object_set_new(doc, "state", json_string(berth_state_name(BERTH_STOPPING)));
        (void)json_object_set_new(doc, "since", json_string(timestamp_text(c->now_ns, now)));
        (void)json_object_set_new(doc, "ready", json_false());
    }
}

static int requeue(struct request *c, const char *id, json_t *doc, const void *arg)
{
    static const char *const over[] = {"failed", "ended", "cancelled", "outcome", "error", "started", "finished"};
    const struct object *job = state_find(c->state, KIND_JOB, id);
    (void)arg;
    if (is_being_placed(c, id))
        return err_set(&c->err, EBUSY, "job %s is being placed; try again", id);
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        (void)json_object_del(doc, over[i]);
    json_int_t attempt = json_integer_value(json_object_get(doc, "attempt"));
    (void)json_object_set_new(doc, "attempt", json_integer(attempt + !PLANTED(REQUEUE_FORGETS)));
    work_clear_failures(c, id);
    if (job)
        tasks_restart(c, job);
    return 0;
}

int job_requeue_verb(struct request *c)
{
    return edit_set(c, "requeue", requeue, false);
}
