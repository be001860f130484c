/* job_loop.c - the loop that follows jobs: their start, their end, and the jobs that depend on them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/plant.h"
#include "base/str.h"
#include "control/control_parts.h"
#include "control/job/job.h"
#include "control/job/job_names.h"
#include "control/job/outcome.h"
#include "control/state/commit.h"
#include "control/system/settings_table.h"
#include "wire/text/document.h"

enum { DECIDED_MAX = 1000, DECIDED_STEP = 8, SWEPT_MAX = 1000, SECOND = 1000000000 };
enum { AGAIN_S = 1 }; /* after a failed commit */
#define TASK_KEY                                                                                                       \
    (UINT64_C(1) << 62) /* key of a job of which only a task has changed: jobs that depend on it are not handled */

/* A job that waits for the job or name of the key. */
struct job_waiter {
    uint64_t key, job;
    uint32_t next; /* next waiter of the same key; MAP_NONE: last */
};

struct job_loop {
    struct control *control;
    VEC(uint64_t) touched; /* keys to handle */
    VEC(uint64_t) batch;   /* keys of the transaction in progress */
    bool busy;
    VEC(struct job_waiter) waiters;
    VEC(uint32_t) free_waiters;
    struct map heads;            /* key to its first waiter */
    VEC(uint64_t) with_deadline; /* jobs with a deadline that have not started */
    int64_t deadline_next_ns;
    struct job_names names;
    int64_t again_ns;   /* steady time; nothing is written before */
    size_t decided_max; /* per transaction: maximum of keys, and of decided waiters */
    size_t sweep_next;  /* where the next sweep continues */
};

/* ---- waiters of jobs and names ---------------------------------------------------------------------------------- */

static bool same_key(const void *ctx, uint32_t at, const void *key)
{
    return ((const struct job_loop *)ctx)->waiters.at[at].key == *(const uint64_t *)key;
}

static uint32_t head_of(const struct job_loop *j, uint64_t key)
{
    return map_find(&j->heads, hash_u64(key), same_key, j, &key);
}

static void waiter_add(struct job_loop *j, uint64_t key, uint64_t job)
{
    uint32_t head = head_of(j, key), at;
    if (head != MAP_NONE && j->waiters.at[head].job == job)
        return;
    if (j->free_waiters.len) {
        at = j->free_waiters.at[--j->free_waiters.len];
    } else {
        at = (uint32_t)j->waiters.len;
        vec_push(&j->waiters, (struct job_waiter){0});
    }
    if (head != MAP_NONE)
        map_drop(&j->heads, hash_u64(key), head);
    j->waiters.at[at] = (struct job_waiter){key, job, head};
    map_add(&j->heads, hash_u64(key), at);
}

static void touch(struct job_loop *j, uint64_t key)
{
    if (key && (j->touched.len == 0 || j->touched.at[j->touched.len - 1] != key))
        vec_push(&j->touched, key);
}

static uint64_t number_of(const char *id)
{
    int64_t n = 0;
    return str_parse_i64(id, &n) && n > 0 ? (uint64_t)n : 0;
}

/* Lists the job as a waiter of its dependencies and checks whether they are met already. */
static void wait_begin(struct job_loop *j, const struct object *job)
{
    struct arena arena;
    struct work_doc d;
    uint64_t number = number_of(job->id);
    arena_init(&arena);
    json_t *doc = object_doc(job);
    if (work_doc_read(doc, &arena, &d, NULL) == 0) {
        for (size_t i = 0; i < d.job.after_len; i++)
            waiter_add(j, d.job.after[i].job, number);
        if (d.job.singleton)
            waiter_add(j, job_name_key(job), number);
    }
    json_decref(doc);
    arena_done(&arena);
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static void job_changed(struct job_loop *j, const struct object *job)
{
    const struct work_view *v = job->work;
    if (!v->finished_ns)
        job_names_add(&j->names, job);
    if (v->finished_ns && v->started_ns && !v->waits) { /* the last change by the loop; handle the job's waiters */
        touch(j, number_of(job->id));
        return;
    }
    if (v->waits)
        wait_begin(j, job);
    if (v->begin_by_ns && !v->started_ns && !v->finished_ns) {
        vec_push(&j->with_deadline, number_of(job->id));
        if (v->begin_by_ns < j->deadline_next_ns)
            j->deadline_next_ns = v->begin_by_ns;
    }
    touch(j, number_of(job->id));
}

uint64_t jobs_key(const struct job_loop *j, enum kind kind, const char *id)
{
    const struct object *o = kind == KIND_JOB || kind == KIND_INSTANCE ? state_find(j->control->state, kind, id) : NULL;
    if (!o || kind == KIND_JOB)
        return o ? job_name_key(o) : 0;
    return strchr(o->instance->workload, '.') ? 0 : number_of(o->instance->workload) | TASK_KEY;
}

void jobs_event(struct job_loop *j, enum kind kind, const char *id, uint64_t key_before)
{
    const struct object *job = kind == KIND_JOB ? state_find(j->control->state, kind, id) : NULL;
    uint64_t key = jobs_key(j, kind, id);
    if (job)
        job_changed(j, job);
    else if (kind == KIND_JOB)
        touch(j, number_of(id));
    /* Jobs that wait for a name may start when a job of that name ends, is deleted or renamed. */
    if (kind == KIND_INSTANCE || (job && job->work->finished_ns))
        touch(j, key);
    if (key_before != key)
        touch(j, key_before);
}

struct job_loop *jobs_new(struct control *control)
{
    struct job_loop *j = mem_zalloc(sizeof *j);
    size_t len;
    const struct object *const *jobs = state_list(control->state, KIND_JOB, &len);
    j->control = control;
    j->decided_max = DECIDED_MAX;
    j->deadline_next_ns = BERTH_NEVER_NS;
    for (size_t i = 0; i < len; i++)
        if (!jobs[i]->work->finished_ns)
            job_changed(j, jobs[i]);
    return j;
}

void jobs_free(struct job_loop *j)
{
    if (!j)
        return;
    vec_done(&j->touched);
    vec_done(&j->batch);
    vec_done(&j->waiters);
    vec_done(&j->free_waiters);
    vec_done(&j->with_deadline);
    map_done(&j->heads);
    job_names_done(&j->names);
    mem_free(j);
}

/* ---- handle one job --------------------------------------------------------------------------------------------- */

struct job_pass {
    struct job_loop *jobs;
    struct change change;
    struct arena arena;
    int64_t now_ns;
    size_t decided; /* waiters that were decided, and jobs past their deadline */
};

/* Returns whether the transaction is full; the remaining keys are handled by the next one. */
static bool full(const struct job_pass *l)
{
    return l->decided >= l->jobs->decided_max || l->change.bytes >= CHANGE_BYTES_ENOUGH;
}

static void set_time(json_t *doc, const char *key, int64_t ns)
{
    char text[TIMESTAMP_MAX];
    (void)json_object_set_new(doc, key, json_string(timestamp_text(ns, text)));
}

static void add_job_event(struct job_pass *l, const struct object *job, const char *type, const char *message)
{
    struct object_event event = {
        .type = type, .kind = KIND_JOB, .id = job->id, .owner = job->owner, .group = job->group, .message = message};
    events_add(l->jobs->control->events, l->now_ns, &event);
}

static bool marked(const struct object *job)
{
    return job->work->cancelled || job->work->failed || job->work->ended;
}

static void fail_one(struct job_pass *l, const struct object *job, enum work_outcome outcome, const char *error)
{
    json_t *doc = marked(job) ? NULL : change_edit(&l->change, KIND_JOB, job->id);
    if (!doc || json_is_true(json_object_get(doc, "failed")))
        return;
    outcome_put(doc, "failed", outcome, error);
    if (job->work->instances_len == 0)
        set_time(doc, "finished", l->now_ns);
    add_job_event(l, job, "Failed", error);
}

/* Fails all other jobs of the set of a failed job. After a cancelled or preempted job they share its outcome. */
static void fail_others(struct job_pass *l, const struct object *job, const char *how)
{
    uint64_t of = job->work->of;
    enum work_outcome outcome = job->work->cancelled ? job->work->outcome : OUTCOME_FAILED;
    for (uint64_t n = of; of && n < of + ROLES_MAX; n++) {
        char number[24];
        const struct object *other = state_find(l->change.state, KIND_JOB, str_u64(n, number));
        if (other && other != job && other->work->of == of)
            fail_one(l, other, outcome, arena_fmt(&l->arena, "job %s of the set %s", job->id, how));
    }
}

/* Fails a job although none of its tasks failed. The rest of its set fails in the same transaction: a job without
 * instances ends at once and is not handled again. */
static void fail_job(struct job_pass *l, const struct object *job, const char *error)
{
    if (marked(job))
        return;
    fail_one(l, job, OUTCOME_FAILED, error);
    fail_others(l, job, "has failed");
}

/* Returns when a task of the job first ran; 0: none has. */
static int64_t first_run(const struct object *job)
{
    for (size_t i = 0; i < job->work->instances_len; i++) {
        const struct instance_view *v = job->work->instances[i]->instance;
        if (v->started_ns || v->state == BERTH_RUNNING || v->state == BERTH_ENDED)
            return v->started_ns ? v->started_ns : v->since_ns;
    }
    return 0;
}

/* Searches from the latest instances, which most likely still run. */
static bool some_live(const struct object *job)
{
    for (size_t i = job->work->instances_len; i-- > 0;)
        if (job->work->instances[i]->instance->state != BERTH_ENDED)
            return true;
    return false;
}

static void tasks_over(struct job_pass *l, const struct object *job)
{
    size_t bad = 0, len = job->work->instances_len;
    for (size_t i = 0; i < len; i++)
        bad += job->work->instances[i]->instance->failed;
    json_t *doc = change_edit(&l->change, KIND_JOB, job->id);
    const char *error = bad ? arena_fmt(&l->arena, "%zu of %zu tasks have failed", bad, len) : NULL;
    outcome_put(doc, bad ? "failed" : "ended", outcome_of_tasks(job), error);
    if (bad)
        add_job_event(l, job, "Failed", error);
    set_time(doc, "finished", l->now_ns);
}

/* Writes to the job's document that it has started or ended, by the state of its instances. */
static void update_job(struct job_pass *l, const struct object *job)
{
    const struct work_view *v = job->work;
    int64_t started_ns = v->started_ns ? 0 : first_run(job);
    if (v->finished_ns)
        return;
    if (started_ns)
        set_time(change_edit(&l->change, KIND_JOB, job->id), "started", started_ns);
    if (v->failed || v->cancelled)
        fail_others(l, job, v->cancelled ? "was cancelled" : "has failed");
    bool enough = v->instances_len >= v->least && v->instances_len > 0;
    if (marked(job) ? some_live(job) : !enough || some_live(job) || PLANTED(JOB_NEVER_OVER))
        return;
    if (marked(job))
        set_time(change_edit(&l->change, KIND_JOB, job->id), "finished", l->now_ns);
    else
        tasks_over(l, job);
}

/* Returns the job's number in the order of its name: that of the set's first job for a set, because its jobs start
 * together. */
static uint64_t name_order_of(const struct object *job)
{
    return job->work->of ? job->work->of : number_of(job->id);
}

/* Returns true if the waiting job is decided. */
static bool decide_waiting(struct job_pass *l, const struct object *job)
{
    const char *text;
    enum job_wait wait = job_wait(l->jobs, job, &l->arena, &text);
    if (wait == WAIT_OPEN)
        return false;
    l->decided++;
    vec_push(&l->jobs->batch, number_of(job->id)); /* handled again if the commit fails */
    if (wait == WAIT_NEVER)
        fail_job(l, job, text);
    else if (!marked(job))
        (void)json_object_set_new(change_edit(&l->change, KIND_JOB, job->id), "met", json_true());
    return true;
}

/* Returns whether the job goes on waiting. Of the jobs that wait for a name, only the oldest and its set may start. */
static bool keeps_waiting(struct job_pass *l, const struct job_waiter *w, uint64_t oldest)
{
    char number[24];
    bool by_name = w->key & JOB_NAME_KEY && oldest;
    if (by_name && w->job >= oldest + ROLES_MAX) /* later than any job of the oldest job's set */
        return true;
    const struct object *job = state_find(l->change.state, KIND_JOB, str_u64(w->job, number));
    if (!job || !job->work->waits || marked(job))
        return false;
    return (by_name && name_order_of(job) > oldest) || !decide_waiting(l, job);
}

/* Handles the waiters of the key, a limited number at a time. */
static void decide_waiters(struct job_pass *l, uint64_t key)
{
    struct job_loop *j = l->jobs;
    const struct object *oldest = key & JOB_NAME_KEY ? job_names_oldest(&j->names, l->change.state, key) : NULL;
    uint32_t head = head_of(j, key), kept = MAP_NONE, at = head;
    if (head == MAP_NONE)
        return;
    map_drop(&j->heads, hash_u64(key), head);
    for (uint32_t next; at != MAP_NONE && !full(l); at = next) {
        next = j->waiters.at[at].next;
        if (!keeps_waiting(l, &j->waiters.at[at], oldest ? number_of(oldest->id) : 0)) {
            vec_push(&j->free_waiters, at);
            continue;
        }
        j->waiters.at[at].next = kept;
        kept = at;
    }
    if (at != MAP_NONE) { /* the rest is handled next time, before the waiters handled now */
        uint32_t last = at;
        while (j->waiters.at[last].next != MAP_NONE)
            last = j->waiters.at[last].next;
        j->waiters.at[last].next = kept;
        kept = at;
        touch(j, key);
    }
    if (kept != MAP_NONE)
        map_add(&j->heads, hash_u64(key), kept);
}

static void handle_key(struct job_pass *l, uint64_t key)
{
    char number[24];
    bool task = !(key & JOB_NAME_KEY) && key & TASK_KEY;
    const struct object *job =
        key & JOB_NAME_KEY ? NULL : state_find(l->change.state, KIND_JOB, str_u64(key & ~TASK_KEY, number));
    if (job)
        update_job(l, job);
    if (task)
        return;
    if (job && job->work->waits && !marked(job))
        (void)decide_waiting(l, job);
    if (!job || job->work->started_ns || job->work->finished_ns)
        decide_waiters(l, key);
}

/* ---- deadlines --------------------------------------------------------------------------------------------------- */

static void check_deadlines(struct job_pass *l)
{
    struct job_loop *j = l->jobs;
    size_t kept = 0;
    if (l->now_ns < j->deadline_next_ns)
        return;
    j->deadline_next_ns = BERTH_NEVER_NS;
    for (size_t i = 0; i < j->with_deadline.len; i++) {
        char number[24];
        const struct object *job = state_find(l->change.state, KIND_JOB, str_u64(j->with_deadline.at[i], number));
        const struct work_view *v = job ? job->work : NULL;
        if (!v || !v->begin_by_ns || v->started_ns || marked(job) || first_run(job))
            continue;
        if (v->begin_by_ns < l->now_ns && !full(l)) {
            fail_job(l, job, "the job could not start in time to end by its deadline");
            l->decided++;
            vec_push(&j->batch, j->with_deadline.at[i]);
        } else if (v->begin_by_ns < j->deadline_next_ns) {
            j->deadline_next_ns = v->begin_by_ns;
        }
        j->with_deadline.at[kept++] = j->with_deadline.at[i]; /* kept until the job's document says otherwise */
    }
    j->with_deadline.len = kept;
}

/* ---- transactions ----------------------------------------------------------------------------------------------- */

static bool commit_due(const struct job_loop *j, int64_t now_ns)
{
    return j->touched.len > 0 || now_ns >= j->deadline_next_ns;
}

static void commit_succeeded(struct job_loop *j)
{
    j->decided_max = j->decided_max * DECIDED_STEP < DECIDED_MAX ? j->decided_max * DECIDED_STEP : DECIDED_MAX;
}

/* Handles the keys of a failed transaction again: at once after a conflict, else after a pause. If the store rejects
 * the content, transactions become smaller, so that a document that cannot be written delays only itself. */
static void commit_failed(struct job_loop *j, int rc)
{
    struct control *c = j->control;
    for (size_t i = 0; i < j->batch.len; i++)
        touch(j, j->batch.at[i]);
    j->deadline_next_ns = 0;
    if (rc == -EINVAL && j->decided_max > 1)
        j->decided_max = j->decided_max > DECIDED_STEP ? j->decided_max / DECIDED_STEP : 1;
    else if (rc != -EAGAIN)
        j->again_ns = c->env.steady_ns(c->env.ctx) + AGAIN_S * (int64_t)SECOND;
}

static void commit_done(void *ctx, const struct store_result *result)
{
    struct job_loop *j = ctx;
    struct control *c = j->control;
    j->busy = false;
    if (result->rc != 0)
        commit_failed(j, result->rc);
    else
        commit_succeeded(j);
    j->batch.len = 0;
    if (commit_due(j, c->now_ns))
        c->env.wake_at(c->env.ctx, c->env.steady_ns(c->env.ctx));
}

static void pass_submit(struct job_pass *l)
{
    struct job_loop *j = l->jobs;
    struct control *c = j->control;
    struct berth_err err;
    struct commit_note note = {.who = "berth", .verb = "job.life"};
    notification_scan(&l->change, l->now_ns);
    int rc = commit_submit(c, &l->change, &note, commit_done, j, &err);
    j->busy = rc > 0;
    if (rc > 0)
        return;
    if (rc < 0) {
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "jobs.failed", LOG_TEXT("text", err.text));
        commit_failed(j, rc);
    } else {
        commit_succeeded(j);
    }
    j->batch.len = 0;
}

void jobs_step(struct job_loop *j)
{
    struct control *c = j->control;
    if (j->busy || c->stopping || c->broken[0])
        return;
    struct job_pass l = {.jobs = j, .now_ns = control_now_ns(c)};
    if (!commit_due(j, l.now_ns))
        return;
    if (c->env.steady_ns(c->env.ctx) < j->again_ns) {
        c->env.wake_at(c->env.ctx, j->again_ns);
        return;
    }
    arena_init(&l.arena);
    change_init(&l.change, c->state, &l.arena);
    size_t len = j->touched.len < j->decided_max ? j->touched.len : j->decided_max, looked = 0;
    for (; looked < len && l.change.bytes < CHANGE_BYTES_ENOUGH; looked++) {
        uint64_t key = j->touched.at[looked]; /* handle_key may add keys */
        vec_push(&j->batch, key);
        handle_key(&l, key);
    }
    memmove(j->touched.at, j->touched.at + looked, (j->touched.len - looked) * sizeof *j->touched.at);
    j->touched.len -= looked;
    check_deadlines(&l);
    pass_submit(&l);
    if (!j->busy && commit_due(j, l.now_ns))
        c->env.wake_at(c->env.ctx, c->env.steady_ns(c->env.ctx));
    change_done(&l.change);
    arena_done(&l.arena);
}

/* ---- deletion --------------------------------------------------------------------------------------------------- */

const struct state *jobs_state(const struct job_loop *j)
{
    return j->control->state;
}

const struct object *jobs_earlier_of_name(struct job_loop *j, const struct object *job)
{
    const struct object *oldest = job_names_oldest(&j->names, j->control->state, job_name_key(job));
    return oldest && number_of(oldest->id) < name_order_of(job) ? oldest : NULL;
}

bool jobs_has_waiters(const struct job_loop *j, const char *id)
{
    for (uint32_t at = head_of(j, number_of(id)); at != MAP_NONE; at = j->waiters.at[at].next) {
        char number[24];
        const struct object *waiter = state_find(j->control->state, KIND_JOB, str_u64(j->waiters.at[at].job, number));
        if (waiter && waiter->work->waits && !marked(waiter))
            return true;
    }
    return false;
}

int jobs_before_delete(struct job_loop *j, struct change *change, const char *id, struct berth_err *err)
{
    const struct object *job = state_find(change->state, KIND_JOB, id);
    size_t told = 0;
    for (uint32_t at = job ? head_of(j, number_of(id)) : MAP_NONE; at != MAP_NONE; at = j->waiters.at[at].next) {
        char number[24];
        const struct object *waiter = state_find(change->state, KIND_JOB, str_u64(j->waiters.at[at].job, number));
        if (!waiter || !waiter->work->waits || marked(waiter) || !change_read(change, KIND_JOB, waiter->id))
            continue;
        if (told++ == DECIDED_MAX)
            return err_set(err, EBUSY, "more than %d jobs depend on job %s; cancel it first", DECIDED_MAX, id);
        job_after_drop(change, waiter, job);
    }
    return 0;
}

/* ---- sweep ------------------------------------------------------------------------------------------------------ */

/* Deletes the records of the job's tasks, a limited number at a time, then the job's record. Returns the number of
 * deletions. */
static size_t forget(struct change *change, const struct object *job)
{
    size_t gone = 0, len = job->work->instances_len;
    for (; gone < len && gone < SWEPT_MAX; gone++)
        change_delete(change, KIND_INSTANCE, job->work->instances[gone]->id);
    if (gone == len)
        change_delete(change, KIND_JOB, job->id);
    return gone + 1;
}

void jobs_sweep(struct job_loop *j, struct change *change)
{
    size_t len, written = 0;
    const struct object *const *jobs = state_list(change->state, KIND_JOB, &len);
    int64_t keep_ns = system_setting_number(change->state, SETTING_JOB_KEEP_S) * (int64_t)SECOND,
            now_ns = control_now_ns(j->control);
    size_t looked = 0;
    for (; looked < len && looked < SWEPT_MAX && written < SWEPT_MAX; looked++) {
        const struct object *job = jobs[(j->sweep_next + looked) % len];
        if (job->work->finished_ns && job->work->finished_ns < now_ns - keep_ns && !some_live(job) &&
            !jobs_has_waiters(j, job->id))
            written += forget(change, job);
    }
    j->sweep_next = len ? (j->sweep_next + looked) % len : 0;
}
