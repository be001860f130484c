#include "control/job/cron.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "control/control_parts.h"
#include "control/job/cron_time.h"
#include "control/job/outcome.h"
#include "control/kind/work.h"
#include "control/state/commit.h"
#include "control/tenant/cap.h"
#include "wire/text/document.h"

/* RECORDS_MAX: records deleted in one transaction; AGAIN_S: pause after a failed commit */
enum { RECORDS_MAX = 1000, AGAIN_S = 1 };

/* ---- the object ------------------------------------------------------------------------------------------------- */

static int prepare(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    char now[TIMESTAMP_MAX];
    (void)k;
    (void)id;
    int rc = old ? owned_key_keep(c, "owner", old, doc) : 0;
    if (rc == 0 && old)
        rc = owned_key_keep(c, "name", old, doc);
    if (rc == 0)
        rc = owned_join_group(c, doc);
    if (rc < 0)
        return rc;
    bool other = !old || !json_equal(json_object_get(old, "schedule"), json_object_get(doc, "schedule")) ||
                 json_is_true(json_object_get(old, "suspended"));
    if (other) /* earlier times of a new schedule are skipped */
        (void)json_object_set_new(doc, "last", json_string(timestamp_text(c->now_ns, now)));
    return 0;
}

/* Rejects a job that could not be submitted now. Each job gets its own number, and its owner from the schedule. */
static int job_check_submittable(struct request *c, const char *owner, const json_t *job)
{
    static const char *const forbidden[] = {"id", "owner", "roles"};
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (json_object_get(job, forbidden[i]))
            return err_set(&c->err, EINVAL, "job: %s: not allowed in the job of a schedule; leave it out",
                           forbidden[i]);
    struct change tried;
    change_init(&tried, c->state, &c->arena);
    struct change kept = c->change;
    bool dry_run = c->dry_run, is_new = false;
    const char *id = NULL;
    CLEANUP(json) json_t *doc = json_deep_copy(job);
    (void)json_object_set_new(doc, "owner", json_string(owner));
    c->change = tried;
    c->dry_run = true;
    int rc = crud_put(c, &job_crud, NULL, doc, CRUD_CREATE, &id, &is_new);
    change_done(&c->change);
    c->change = kept;
    c->dry_run = dry_run;
    return rc < 0 ? err_prefix(&c->err, "job") : 0;
}

static int check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct cron_doc d;
    struct cron_time t;
    (void)k;
    (void)id;
    int rc = cron_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0 && (rc = cron_parse(d.schedule, &t, &c->err)) < 0)
        return err_prefix(&c->err, "schedule");
    if (rc == 0 && cron_next(&t, c->now_ns) == BERTH_NEVER_NS)
        return err_set(&c->err, EINVAL, "schedule: this date does not exist");
    if (rc == 0 && !(old && json_equal(json_object_get(old, "job"), d.job)))
        rc = job_check_submittable(c, d.owner, d.job);
    return rc;
}

static void show(const struct request *c, const struct object *o, json_t *doc)
{
    struct arena arena;
    struct cron_doc d;
    struct cron_time t;
    char next[TIMESTAMP_MAX];
    CLEANUP(json) json_t *stored = object_doc(o);
    arena_init(&arena);
    if (cron_doc_read(stored, &arena, &d, NULL) == 0 && !d.suspended && cron_parse(d.schedule, &t, NULL) == 0)
        (void)json_object_set_new(doc, "status",
                                  json_pack("{s:s}", "next", timestamp_text(cron_next(&t, c->now_ns), next)));
    arena_done(&arena);
}

const struct crud cron_crud = {
    .kind = KIND_CRON,
    .make = PERMIT_SUBMIT,
    .change = PERMIT_MANAGE,
    .identify = owned_identify,
    .belongs = owned_belongs,
    .prepare = prepare,
    .check = check,
    .show = show,
};

/* ---- due times -------------------------------------------------------------------------------------------------- */

struct cron_due {
    char *id;
    int64_t next_ns;
};

struct crons {
    struct control *control;
    VEC(struct cron_due) all;
    int64_t next_ns;  /* earliest of all schedules */
    int64_t again_ns; /* steady time; nothing is written before */
    bool busy;
};

static int64_t next_of(const struct object *o)
{
    struct arena arena;
    struct cron_doc d;
    struct cron_time t;
    arena_init(&arena);
    json_t *doc = object_doc(o);
    int64_t next_ns = BERTH_NEVER_NS;
    if (cron_doc_read(doc, &arena, &d, NULL) == 0 && !d.suspended && cron_parse(d.schedule, &t, NULL) == 0)
        next_ns = cron_next(&t, d.last_ns);
    json_decref(doc);
    arena_done(&arena);
    return next_ns;
}

static void next_count(struct crons *c)
{
    c->next_ns = BERTH_NEVER_NS;
    for (size_t i = 0; i < c->all.len; i++)
        if (c->all.at[i].next_ns < c->next_ns)
            c->next_ns = c->all.at[i].next_ns;
}

void crons_event(struct crons *c, const char *id)
{
    const struct object *o = state_find(c->control->state, KIND_CRON, id);
    size_t i = 0;
    while (i < c->all.len && strcmp(c->all.at[i].id, id) != 0)
        i++;
    if (o && i == c->all.len)
        vec_push(&c->all, ((struct cron_due){mem_strdup(id), 0}));
    if (o) {
        c->all.at[i].next_ns = next_of(o);
    } else if (i < c->all.len) {
        mem_free(c->all.at[i].id);
        c->all.at[i] = c->all.at[--c->all.len];
    }
    next_count(c);
}

struct crons *crons_new(struct control *control)
{
    struct crons *c = mem_zalloc(sizeof *c);
    size_t len;
    const struct object *const *list = state_list(control->state, KIND_CRON, &len);
    c->control = control;
    c->next_ns = BERTH_NEVER_NS;
    for (size_t i = 0; i < len; i++)
        vec_push(&c->all, ((struct cron_due){mem_strdup(list[i]->id), next_of(list[i])}));
    next_count(c);
    return c;
}

void crons_free(struct crons *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->all.len; i++)
        mem_free(c->all.at[i].id);
    vec_done(&c->all);
    mem_free(c);
}

/* ---- creating jobs ---------------------------------------------------------------------------------------------- */

static const struct object *job_at(const struct state *s, const json_t *number)
{
    char text[24];
    return state_find(s, KIND_JOB, str_u64((uint64_t)json_integer_value(number), text));
}

static void job_delete(struct change *change, const struct object *job)
{
    for (size_t i = 0; i < job->work->instances_len; i++)
        change_delete(change, KIND_INSTANCE, job->work->instances[i]->id);
    change_delete(change, KIND_JOB, job->id);
}

/* Returns the schedule's remaining jobs, oldest first, and deletes ended jobs beyond the limit. A new reference. */
static json_t *jobs_left(struct request *request, const struct cron_doc *d, size_t *ret_open)
{
    json_t *left = json_array();
    size_t over = 0, gone = 0, i;
    json_t *number;
    *ret_open = 0;
    json_array_foreach(d->jobs, i, number)
    {
        const struct object *job = job_at(request->state, number);
        over += job && job->work->finished_ns;
        *ret_open += job && !job->work->finished_ns;
    }
    json_array_foreach(d->jobs, i, number)
    {
        const struct object *job = job_at(request->state, number);
        bool goes = job && job->work->finished_ns && over > d->keep && gone + job->work->instances_len < RECORDS_MAX &&
                    !jobs_has_waiters(request->control->jobs, job->id);
        if (goes) {
            job_delete(&request->change, job);
            gone += job->work->instances_len + 1;
            over--;
        } else if (job) {
            (void)json_array_append(left, number);
        }
    }
    return left;
}

static void cancel_open(struct request *request, const json_t *jobs)
{
    size_t i;
    json_t *number;
    json_array_foreach((json_t *)jobs, i, number)
    {
        const struct object *job = job_at(request->state, number);
        json_t *doc = job && !job->work->finished_ns ? change_edit(&request->change, KIND_JOB, job->id) : NULL;
        if (!doc || job->work->failed || job->work->ended)
            continue;
        outcome_put(doc, "cancelled", OUTCOME_CANCELLED, "replaced by the next job of the schedule");
    }
}

/* Creates one job with the rights of the schedule's owner. */
static int make_job(struct request *request, const struct object *cron, const struct cron_doc *d, json_t *jobs)
{
    const char *id = NULL, *peer = arena_fmt(&request->arena, "user:%s", cron->owner);
    bool is_new = false;
    int rc = caller_find(request->state, NULL, peer, request->now_ns, &request->caller, &request->err);
    if (rc < 0)
        return rc;
    CLEANUP(json) json_t *doc = json_deep_copy(d->job);
    (void)json_object_set_new(doc, "owner", json_string(cron->owner));
    if (!json_object_get(doc, "name"))
        (void)json_object_set_new(doc, "name", json_string(d->name ? d->name : cron->id));
    rc = crud_put(request, &job_crud, NULL, doc, CRUD_CREATE, &id, &is_new);
    if (rc < 0)
        return rc;
    (void)json_object_set_new(change_edit(&request->change, KIND_JOB, id), "cron", json_string(cron->id));
    (void)json_array_append_new(jobs, crud_id_value(KIND_JOB, id));
    return 0;
}

static void add_cron_event(struct request *request, const struct object *cron, const char *message)
{
    struct object_event event = {.type = "Cron",
                                 .kind = KIND_CRON,
                                 .id = cron->id,
                                 .owner = cron->owner,
                                 .group = cron->group,
                                 .message = message};
    events_add(request->control->events, request->now_ns, &event);
}

/* Puts the due work of a schedule into the change of a request. */
static void make_due(struct request *request, const struct object *cron, const struct cron_doc *d)
{
    char now[TIMESTAMP_MAX];
    size_t open = 0;
    json_t *jobs = jobs_left(request, d, &open);
    int rc = 0;
    if (open && d->overlap == CRON_REPLACE)
        cancel_open(request, jobs);
    bool skipped = open && d->overlap == CRON_SKIP;
    if (!skipped)
        rc = make_job(request, cron, d, jobs);
    if (rc == 0 && !skipped)
        rc = cap_check(request);
    if (rc < 0) { /* discard the change; only record the attempt */
        change_done(&request->change);
        change_init(&request->change, request->state, &request->arena);
        add_cron_event(request, cron, arena_fmt(&request->arena, "no job was created: %s", request->err.text));
    } else if (skipped) {
        add_cron_event(request, cron, "no job was created: the previous one has not ended");
    }
    json_t *doc = change_edit(&request->change, KIND_CRON, cron->id);
    (void)json_object_set_new(doc, "last", json_string(timestamp_text(request->now_ns, now)));
    if (rc < 0) {
        (void)json_object_set_new(doc, "error", json_string(request->err.text));
        json_decref(jobs);
        return;
    }
    (void)json_object_del(doc, "error");
    (void)json_object_set_new(doc, "jobs", jobs);
}

/* After a failure the schedule is still due: it is repeated at once after a conflict, else after a pause. */
static void job_committed(void *ctx, const struct store_result *result)
{
    struct crons *c = ctx;
    const struct control_env *env = &c->control->env;
    int64_t now_ns = env->steady_ns(env->ctx);
    c->busy = false;
    if (result->rc < 0 && result->rc != -EAGAIN)
        c->again_ns = now_ns + AGAIN_S * INT64_C(1000000000);
    env->wake_at(env->ctx, c->again_ns > now_ns ? c->again_ns : now_ns);
}

static void crons_make(struct crons *c, const struct object *cron, int64_t now_ns)
{
    static const struct request_input none = {.method = "POST", .path = "/v1/jobs"};
    struct request request = {.control = c->control, .state = c->control->state, .input = &none, .now_ns = now_ns};
    struct cron_doc d;
    struct berth_err err;
    arena_init(&request.arena);
    change_init(&request.change, request.state, &request.arena);
    CLEANUP(json) json_t *empty = json_object();
    request.body = empty;
    json_t *doc = object_doc(cron);
    if (cron_doc_read(doc, &request.arena, &d, NULL) == 0) {
        make_due(&request, cron, &d);
        struct commit_note note = {
            .who = "berth", .verb = "cron", .subject = arena_fmt(&request.arena, "crons/%s", cron->id)};
        int rc = commit_submit(c->control, &request.change, &note, job_committed, c, &err);
        c->busy = rc > 0;
        if (rc < 0) {
            log_write(c->control->env.log, now_ns, LEVEL_WARN, "cron.failed", LOG_TEXT("text", err.text));
            job_committed(c, &(struct store_result){.rc = rc});
        }
    }
    json_decref(doc);
    change_done(&request.change);
    arena_done(&request.arena);
}

void crons_step(struct crons *c)
{
    struct control *control = c->control;
    if (c->busy || control->stopping || control->broken[0] || c->next_ns == BERTH_NEVER_NS)
        return;
    int64_t now_ns = control_now_ns(control);
    if (now_ns < c->next_ns || control->env.steady_ns(control->env.ctx) < c->again_ns)
        return;
    for (size_t i = 0; i < c->all.len; i++) {
        const struct object *cron =
            c->all.at[i].next_ns <= now_ns ? state_find(control->state, KIND_CRON, c->all.at[i].id) : NULL;
        if (cron) {
            crons_make(c, cron, now_ns);
            return;
        }
    }
}
