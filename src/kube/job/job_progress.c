/* job_progress.c - recomputes the state of a job from its pods.
 *
 * A failed task gets another attempt; in a gang all tasks do. After more than `retries` attempts the job has failed.
 * The attempt number is a label of every pod, so that any process that reads the pods counts the same failures.
 */
#include "control/state/state.h"
#include "kube/job/job_internal.h"

static bool is_ended(const struct task_pod *pod)
{
    return pod->phase == CACHE_TASK_SUCCEEDED || pod->phase == CACHE_TASK_FAILED;
}

static struct job_task *task_of(struct job_entry *j, const struct task_pod *pod)
{
    if (pod->role == NONE_ROLE || pod->ordinal >= j->roles.at[pod->role].len)
        return NULL;
    return &j->roles.at[pod->role].tasks[pod->ordinal];
}

/* Computes the attempt of each task, or of the gang: the last attempt seen, plus one if it failed. */
static const struct task_pod *attempts_count(struct job_entry *j)
{
    const struct task_pod *last = NULL;
    uint32_t gang = j->attempt;
    for (size_t i = 0; i < j->pods.len; i++) {
        const struct task_pod *pod = &j->pods.at[i];
        struct job_task *task = task_of(j, pod);
        if (!task)
            continue;
        uint32_t next = pod->attempt + pod->failed;
        if (next > task->attempt)
            task->attempt = next;
        gang = next > gang ? next : gang;
        if (pod->failed && (!last || pod->attempt >= last->attempt))
            last = pod;
    }
    j->attempt = j->spec.gang ? gang : 1;
    j->restarts = 0;
    for (size_t r = 0; r < j->roles.len; r++)
        for (uint32_t t = 0; t < j->roles.at[r].len; t++) {
            struct job_task *task = &j->roles.at[r].tasks[t];
            task->attempt = j->spec.gang ? j->attempt : task->attempt ? task->attempt : 1;
            j->restarts += j->spec.gang ? 0 : task->attempt - 1;
        }
    if (j->spec.gang)
        j->restarts = j->attempt - 1;
    return last;
}

static void tasks_clear(struct job_entry *j)
{
    for (size_t r = 0; r < j->roles.len; r++) {
        struct job_role *role = &j->roles.at[r];
        role->live = role->done = 0;
        for (uint32_t t = 0; t < role->len; t++)
            role->tasks[t] = (struct job_task){.attempt = role->tasks[t].attempt};
    }
    j->live = j->done = j->failed = 0;
}

static void pods_count(struct job_entry *j)
{
    for (size_t i = 0; i < j->pods.len; i++) {
        const struct task_pod *pod = &j->pods.at[i];
        struct job_task *task = task_of(j, pod);
        j->failed += pod->failed;
        j->live += !is_ended(pod);
        if (!task)
            continue;
        struct job_role *role = &j->roles.at[pod->role];
        bool done = pod->phase == CACHE_TASK_SUCCEEDED && (!j->spec.gang || pod->attempt == j->attempt);
        if (!is_ended(pod) && !task->live) {
            task->live = true;
            role->live++;
        }
        if (done && !task->done) {
            task->done = true;
            role->done++;
            j->done++;
        }
    }
}

/* Records completed tasks in the cache. */
static void completed_tasks_record(struct job_entry *j)
{
    for (size_t r = 0; r < j->roles.len; r++)
        for (uint32_t t = 0; t < j->roles.at[r].len && j->roles.at[r].done; t++)
            if (j->roles.at[r].tasks[t].done)
                cache_task_succeeded(j->k->c.cache, j->roles.at[r].id, t);
}

/* Deletes the pods of earlier attempts of a gang; they no longer count. */
static void old_attempts_delete(struct job_entry *j)
{
    struct cache *p = j->k->c.cache;
    for (size_t i = 0; j->spec.gang && i < j->pods.len; i++) {
        const struct task_pod *pod = &j->pods.at[i];
        struct cache_pod_view known;
        if (is_ended(pod) || pod->leaves || pod->attempt >= j->attempt)
            continue;
        str_clear(&j->k->text);
        str_addf(&j->k->text, "%s:%s", j->spec.namespace, pod->name);
        const struct kube_job_ref ref = job_ref(j);
        if (cache_pod_find(p, j->k->text.at, &known) && !known.stopping)
            job_pod_delete(j->k, &ref, pod->name, pod->uid, known.instance);
    }
}

static uint32_t role_min(const struct job_entry *j, size_t r)
{
    const struct kube_job_role *role = &j->spec.roles[r];
    return j->spec.gang && role->min ? role->min : role->tasks;
}

bool job_role_needs_no_more(const struct job_entry *j, size_t r)
{
    const struct job_role *role = &j->roles.at[r];
    return role_min(j, r) < role->len && role->done > 0 && role->done + role->live >= role_min(j, r);
}

static bool is_complete(const struct job_entry *j)
{
    for (size_t r = 0; r < j->roles.len; r++) {
        const struct job_role *role = &j->roles.at[r];
        uint32_t min = role_min(j, r);
        if (role->done < min || (role->done < role->len && role->live > 0))
            return false;
    }
    return j->roles.len > 0;
}

/* Ends the job after too many failures; otherwise restarts it after a pause. */
static void failures_handle(struct job_entry *j, const struct task_pod *last, uint32_t before, int64_t now_ns)
{
    CLEANUP(str) struct str text = {0};
    uint32_t most = j->spec.gang ? j->attempt - 1 : 0;
    for (size_t r = 0; !j->spec.gang && r < j->roles.len; r++)
        for (uint32_t t = 0; t < j->roles.at[r].len; t++)
            most = j->roles.at[r].tasks[t].attempt - 1 > most ? j->roles.at[r].tasks[t].attempt - 1 : most;
    str_addf(&text, "pod %s failed%s%s", last ? last->name : "", last && *last->why ? ": " : "", last ? last->why : "");
    if (most > j->spec.retries) {
        if (j->spec.retries)
            str_addf(&text, ", after %u tries", most);
        job_ends(j, JOB_FAILED, "BackoffLimitExceeded", text.at);
        return;
    }
    if (j->progress_known) { /* at the first look, an earlier leader has handled the failure */
        j->pause_ns = now_ns + pause_ns(most);
        job_event(j, true, "Restarting", "Restarting", text.at);
    }
    for (size_t r = 0; j->spec.gang && j->attempt > before && r < j->roles.len; r++)
        cache_tasks_rerun(j->k->c.cache, j->roles.at[r].id);
    job_roles_changed(j);
}

void job_update_progress(struct job_entry *j, int64_t now_ns)
{
    uint32_t before = j->attempt, restarts = j->restarts, live = j->live;
    tasks_clear(j);
    const struct task_pod *last = attempts_count(j);
    pods_count(j);
    if (!job_is_unfinished(j))
        return;
    if (j->restarts > restarts)
        failures_handle(j, last, before, now_ns);
    if (j->progress_known && j->live && !live)
        job_event(j, false, "Started", "Starting", "The first pod was created.");
    j->progress_known = true;
    completed_tasks_record(j);
    if (j->end == JOB_UNFINISHED && is_complete(j))
        job_ends(j, JOB_COMPLETE, "Completed", "All tasks succeeded.");
    else if (j->end == JOB_UNFINISHED)
        old_attempts_delete(j);
    for (size_t r = 0; r < j->roles.len; r++)
        if (job_role_needs_no_more(j, r))
            cache_role_changed(j->k->c.cache, j->roles.at[r].id);
}

void job_recompute_progress(struct job_entry *j)
{
    tasks_clear(j);
    (void)attempts_count(j);
    pods_count(j);
    if (!job_is_unfinished(j))
        return;
    completed_tasks_record(j);
    job_roles_changed(j);
}
