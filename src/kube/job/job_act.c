/* job_act.c - actions for jobs: dry runs of pods, plan actions on tasks, status writes. */
#include <string.h>

#include "base/hash.h"
#include "kube/client/clock.h"
#include "kube/client/proto.h"
#include "kube/job/job_internal.h"
#include "wire/text/moment.h"

enum { UNDER_WAY_MAX = 128 };                    /* pods being created at a time */
#define STATUS_WRITE_NS (SECOND_NS / 2)          /* between two writes of one status */
#define PENDING_REASON_AGAIN_NS (10 * SECOND_NS) /* minimum interval when the reasons for waiting change */

/* Returns the job that an answer is about; NULL: it is gone. */
static struct job_entry *job_answered(struct kube_jobs *k, const struct kube_job_answer *answer)
{
    struct job_entry *j = job_by_uid(k, answer->job.uid);
    return j && j->there ? j : NULL;
}

/* ---- dry runs of the pods of each role -------------------------------------------------------------------------- */

enum { TICKET_ROLES = 64 }; /* more than the roles of a job; the rest of a ticket is the generation */

/* Puts all roles at once, so that a gang is complete. */
static void roles_put(struct job_entry *j)
{
    for (size_t i = 0; i < j->roles.len; i++) {
        struct job_role *role = &j->roles.at[i];
        struct proto_object object;
        const struct cache_job_role put = {
            .id = role->id,
            .namespace = j->spec.namespace,
            .owner = j->uid,
            .pod = proto_object_read(role->pod, role->pod_len, &object) ? object.raw : proto_reader(NULL, 0)};
        role->shaped = cache_role_put(j->k->c.cache, &put);
        if (!role->shaped)
            job_text_set(&j->refused, "cannot parse the API server's answer to a dry run of the pods");
        mem_free(role->pod);
        role->pod = NULL;
    }
    job_roles_changed(j); /* again, because the claims of a role depend on all roles */
}

static void dry_runs_done(struct job_entry *j)
{
    if (j->refused) {
        j->dry_run_ns = kube_wall_ns() + kube_pause_ns(j->refusals++);
        job_due(j, j->dry_run_ns);
    } else if (!j->over && !j->leaves) {
        j->refusals = 0;
        roles_put(j);
    }
    job_note_first_end(j);
    job_dirty(j);
}

static void on_dry_run(void *ctx, const struct kube_job_answer *answer)
{
    struct kube_jobs *k = ctx;
    struct job_entry *j = job_answered(k, answer);
    size_t r = answer->ticket % TICKET_ROLES;
    if (!j || j->dry_runs == 0 || answer->ticket / TICKET_ROLES != (uint64_t)j->dry_run_generation || r >= j->roles.len)
        return;
    struct job_role *role = &j->roles.at[r];
    if (answer->fate == KUBE_DONE) {
        mem_free(role->pod);
        role->pod = mem_alloc(answer->body_len + 1);
        memcpy(role->pod, answer->body, answer->body_len);
        role->pod_len = answer->body_len;
    } else {
        str_clear(&k->text);
        str_addf(&k->text, "role %s: %s", j->spec.roles[r].name, answer->text);
        job_text_set(&j->refused, k->text.at);
    }
    if (--j->dry_runs == 0)
        dry_runs_done(j);
}

void job_dry_run_pods(struct job_entry *j)
{
    const struct kube_job_ref ref = job_ref(j);
    CLEANUP(str) struct str why = {0};
    j->dry_run_ns = 0;
    j->dry_run_generation = j->generation;
    j->dry_runs = j->roles.len;
    job_text_set(&j->refused, NULL);
    if (job_name_taken(j, &why)) {
        j->dry_runs = 0;
        job_text_set(&j->refused, why.at);
        dry_runs_done(j);
        return;
    }
    for (size_t i = 0; i < j->roles.len; i++) {
        json_t *pod = kube_job_pod(&j->spec, i, NULL,
                                   kube_job_scheduler(&j->spec, i, j->k->c.schedulers, j->k->c.schedulers_len));
        kube_job_dry_run(j->k->writer, &ref, pod, (uint64_t)j->generation * TICKET_ROLES + i, on_dry_run);
        json_decref(pod);
    }
}

/* ---- the Service ------------------------------------------------------------------------------------------------ */

static void on_service_created(void *ctx, const struct kube_job_answer *answer)
{
    struct job_entry *j = job_answered(ctx, answer);
    if (!j)
        return;
    j->serving = false;
    j->served = answer->fate == KUBE_DONE;
    if (!j->served)
        job_due(j, kube_wall_ns() + KUBE_PAUSE_NS_MAX);
}

void job_create_service(struct job_entry *j)
{
    const struct kube_job_ref ref = job_ref(j);
    if (j->served || j->serving || !kube_job_has_service(&j->spec))
        return;
    json_t *service = kube_job_service(&j->spec);
    j->serving = true;
    kube_job_create_service(j->k->writer, &ref, service, on_service_created);
    json_decref(service);
}

/* ---- pods ------------------------------------------------------------------------------------------------------- */

/* Sets of instances; instance ids are consecutive numbers. */
static bool number_same(const void *ctx, uint32_t value, const void *instance)
{
    (void)ctx;
    return value == (uint32_t) * (const uint64_t *)instance;
}

static bool set_has(const struct map *set, uint64_t instance)
{
    return map_find(set, hash_u64(instance), number_same, NULL, &instance) != MAP_NONE;
}

static void set_add(struct map *set, uint64_t instance)
{
    map_add(set, hash_u64(instance), (uint32_t)instance);
}

static bool set_take(struct map *set, uint64_t instance)
{
    bool there = set_has(set, instance);
    if (there)
        map_drop(set, hash_u64(instance), (uint32_t)instance);
    return there;
}

static void on_deleted(void *ctx, const struct kube_job_answer *answer)
{
    struct kube_jobs *k = ctx;
    k->stats.deleted += answer->fate == KUBE_DONE;
    if (answer->fate != KUBE_FAILED)
        return;
    log_write(k->c.log, kube_wall_ns(), LEVEL_WARN, "delete.failed", LOG_TEXT("namespace", answer->job.namespace),
              LOG_TEXT("pod", answer->name), LOG_TEXT("text", answer->text));
    int64_t again_ns = stuck_pods_add(&k->stuck, answer->ticket, kube_wall_ns());
    struct job_entry *j = job_answered(k, answer);
    jobs_due(k, again_ns);
    if (j)
        job_due(j, again_ns);
}

void job_pod_delete(struct kube_jobs *k, const struct kube_job_ref *job, const char *pod, const char *uid,
                    uint64_t instance)
{
    kube_job_delete_pod(k->writer, job, pod, uid, instance, on_deleted);
    cache_set_stopping(k->c.cache, instance, true);
}

void job_create_failed(struct kube_jobs *k, const struct cache_pod_view *pod, const char *text)
{
    uint32_t r;
    struct job_entry *j = job_of_role(k, pod->role, &r);
    log_write(k->c.log, kube_wall_ns(), LEVEL_WARN, "make.failed", LOG_TEXT("namespace", pod->namespace),
              LOG_TEXT("pod", pod->name), LOG_TEXT("text", text));
    k->stats.failed++;
    if (!j)
        return;
    str_clear(&k->text);
    str_addf(&k->text, "Error creating pod %s: %s", pod->name, text);
    job_event(j, true, "FailedCreate", "Creating", k->text.at);
    int64_t now_ns = kube_wall_ns();
    if (j->pause_ns > now_ns)
        return; /* of many concurrent failures one counts */
    j->pause_ns = now_ns + kube_pause_ns(j->roles.at[r].failures++);
    job_roles_changed(j);
}

static void create_queue_run(struct kube_jobs *k);

static void on_object_created(struct kube_jobs *k, const struct kube_job_answer *answer)
{
    struct cache_pod_view pod;
    uint64_t instance = answer->ticket;
    bool delete_after_create = set_take(&k->delete_after_create, instance);
    bool there = cache_pod_by_instance(k->c.cache, instance, &pod);
    (void)set_take(&k->making, instance);
    if (answer->fate == KUBE_DONE) {
        uint32_t r;
        struct job_entry *j = there ? job_of_role(k, pod.role, &r) : NULL;
        k->stats.made++;
        if (j)
            j->roles.at[r].failures = 0;
        if (delete_after_create)
            job_pod_delete(k, &answer->job, answer->name, answer->uid, instance);
        vec_push(&k->made, ((struct created_pod){instance, kube_wall_ns()}));
        jobs_due(k, kube_wall_ns() + JOB_UNSEEN_NS);
        return; /* the pod stays assumed until the watch shows it */
    }
    if (!there)
        return;
    if (answer->fate == KUBE_FAILED)
        job_create_failed(k, &pod, answer->text);
    cache_forget_pod(k->c.cache, instance, 0);
    k->c.changed(k->c.ctx);
}

static void on_create_answered(void *ctx, const struct kube_job_answer *answer)
{
    struct kube_jobs *k = ctx;
    k->under_way--;
    on_object_created(k, answer);
    create_queue_run(k);
}

static bool queue_next(struct kube_jobs *k, uint64_t *ret)
{
    if (k->queue_first == k->queue.len) {
        k->queue_first = k->queue.len = 0;
        return false;
    }
    *ret = k->queue.at[k->queue_first++];
    return true;
}

static void send(struct kube_jobs *k, uint64_t instance)
{
    struct cache_pod_view pod;
    uint32_t r;
    bool leads = !k->c.leads || k->c.leads(k->c.ctx), delete_after_create = set_take(&k->delete_after_create, instance);
    bool there = cache_pod_by_instance(k->c.cache, instance, &pod);
    struct job_entry *j = there ? job_of_role(k, pod.role, &r) : NULL;
    if (delete_after_create || !leads || !j || !job_is_unfinished(j) || pod.ordinal >= j->roles.at[r].len) {
        (void)set_take(&k->making, instance);
        cache_forget_pod(k->c.cache, instance, 0);
        return;
    }
    const struct kube_job_task task = {r, pod.ordinal, pod.attempt, pod.node};
    const struct kube_job_ref ref = job_ref(j);
    json_t *body =
        kube_job_pod(&j->spec, r, &task, kube_job_scheduler(&j->spec, r, k->c.schedulers, k->c.schedulers_len));
    k->under_way++;
    kube_job_create_pod(k->writer, &ref, body, instance, on_create_answered);
    json_decref(body);
}

/* A pod's JSON is built only when it is sent: a queue of these documents would be large. */
static void create_queue_run(struct kube_jobs *k)
{
    uint64_t instance;
    while (k->under_way < UNDER_WAY_MAX && queue_next(k, &instance))
        send(k, instance);
}

void job_create_pod(struct kube_jobs *k, uint64_t instance)
{
    set_add(&k->making, instance);
    vec_push(&k->queue, instance);
    create_queue_run(k);
}

/* ---- plan actions ----------------------------------------------------------------------------------------------- */

static void place(struct job_entry *j, uint32_t r, const struct berth_action *a)
{
    struct kube_jobs *k = j->k;
    CLEANUP(str) struct str name = {0};
    if (!job_is_unfinished(j) || a->ordinal >= j->roles.at[r].len)
        return;
    uint32_t attempt = j->roles.at[r].tasks[a->ordinal].attempt;
    const struct kube_job_task task = {r, a->ordinal, attempt ? attempt : 1, a->node};
    kube_job_pod_name(&j->spec, &task, &name);
    uint64_t instance = cache_assume_task(k->c.cache, &(struct cache_task_placement){.role = a->workload,
                                                                                     .name = name.at,
                                                                                     .ordinal = a->ordinal,
                                                                                     .attempt = task.attempt,
                                                                                     .node = a->node,
                                                                                     .gpus = a->gpus,
                                                                                     .waits = a->waits,
                                                                                     .waits_len = a->waits_len});
    if (instance && a->op == BERTH_PLACE)
        job_provision_task(k, instance);
}

static void promote(struct kube_jobs *k, uint64_t instance)
{
    if (cache_promote_pod(k->c.cache, instance))
        job_provision_task(k, instance);
}

/* Reports whether the pod may be stopped for this cause. A pod without a known role may only mean that the dry run of
 * its job was not answered yet. */
static bool is_to_stop(struct kube_jobs *k, const struct cache_pod_view *pod, enum berth_cause cause)
{
    struct job_entry *j = job_by_uid(k, pod->owner);
    uint32_t r;
    if (cause != BERTH_CAUSE_REMOVED)
        return true;
    if (!j || !j->there)
        return k->watch && kube_watch_synced(k->watch);
    return j->over || j->leaves || (j->known && (!job_of_role(k, pod->role, &r) || j->roles.at[r].shaped));
}

/* Stops a task whose pod does not exist as far as is known. */
static void stop_unseen(struct kube_jobs *k, uint64_t instance)
{
    if (set_has(&k->making, instance)) {
        set_add(&k->delete_after_create, instance);
        cache_set_stopping(k->c.cache, instance, true);
        return;
    }
    for (size_t i = 0; i < k->made.len; i++)
        if (k->made.at[i].instance == instance)
            return; /* after the watch shows it, another plan stops it */
    cache_forget_pod(k->c.cache, instance, 0);
}

/* False: the pod is to be preempted like any pod. */
static bool stop(struct kube_jobs *k, const struct cache_pod_view *pod, const struct berth_action *a)
{
    uint32_t r;
    struct job_entry *j = job_of_role(k, pod->role, &r);
    uint64_t instance = pod->instance;
    if (pod->stopping || !is_to_stop(k, pod, a->cause))
        return true;
    if (!pod->bound) {
        stop_unseen(k, instance);
        return true;
    }
    if (a->cause == BERTH_CAUSE_EXPIRED && j) {
        str_clear(&k->text);
        str_addf(&k->text, "pod %s exceeded the time limit", pod->name);
        job_ends(j, JOB_FAILED, "DeadlineExceeded", k->text.at); /* ends the whole job after the status is written */
        return true;
    }
    if (a->cause == BERTH_CAUSE_PREEMPTED) {
        if (j)
            job_event(j, true, "Preempted", "Preempting", "Its pods were preempted.");
        return false;
    }
    CLEANUP(mem) char *name = mem_strdup(pod->name), *uid = mem_strdup(pod->uid);
    CLEANUP(mem) char *namespace = mem_strdup(pod->namespace), *owner = mem_strdup(pod->owner);
    const struct kube_job_ref ref = {namespace, j ? j->spec.name : "", owner};
    job_pod_delete(k, &ref, name, uid, instance);
    return true;
}

bool kube_jobs_apply_action(struct kube_jobs *k, const struct berth_action *a)
{
    struct cache_pod_view pod;
    uint32_t r;
    if (a->op == BERTH_PLACE || a->op == BERTH_RESERVE) {
        struct job_entry *j = job_of_role(k, a->workload, &r);
        if (j)
            place(j, r, a);
        return j != NULL;
    }
    if (!cache_pod_by_instance(k->c.cache, a->instance, &pod) || !*pod.role)
        return false;
    if (a->op == BERTH_STOP)
        return stop(k, &pod, a);
    if (a->op == BERTH_PROMOTE)
        promote(k, a->instance);
    return true;
}

bool kube_jobs_report_pending(struct kube_jobs *k, const struct berth_pending *pending, int64_t now_ns, bool *ret_told)
{
    uint32_t r;
    struct job_entry *j = job_of_role(k, pending->workload, &r);
    if (!j)
        return false;
    if (r > 0 && j->waits && now_ns - j->pending_reason_ns < PENDING_REASON_AGAIN_NS)
        return true;
    CLEANUP(str) struct str text = {0};
    cache_unschedulable_message(k->c.cache, pending, &text);
    if (!text.len || (j->waits && strcmp(j->waits, text.at) == 0))
        return true;
    *ret_told = !j->waits || now_ns - j->pending_reason_ns >= PENDING_REASON_AGAIN_NS;
    if (!*ret_told)
        return true;
    job_text_set(&j->waits, text.at);
    j->pending_reason_ns = now_ns;
    job_event(j, true, "FailedScheduling", "Scheduling", text.at);
    job_dirty(j);
    return true;
}

/* ---- the status ------------------------------------------------------------------------------------------------- */

static void on_status_written(void *ctx, const struct kube_job_answer *answer)
{
    struct job_entry *j = job_answered(ctx, answer);
    if (!j)
        return;
    j->writing_status = false;
    if (answer->fate == KUBE_FAILED) {
        log_write(j->k->c.log, kube_wall_ns(), LEVEL_WARN, "status.failed", LOG_TEXT("job", j->key),
                  LOG_TEXT("text", answer->text));
        json_decref(j->status); /* its present content is unknown */
        j->status = NULL;
        j->write_not_before_ns = kube_wall_ns() + 5 * SECOND_NS;
        job_due(j, j->write_not_before_ns);
    } else if (answer->fate == KUBE_DONE) {
        j->k->stats.told++;
        if (j->end != JOB_UNFINISHED && !j->over &&
            (job_condition(j->status, "Complete") || job_condition(j->status, "Failed"))) {
            j->over = true;
            job_roles_drop(j); /* its running pods are stopped by the next plan */
        }
    }
    job_dirty(j);
}

void job_write_status(struct job_entry *j, int64_t now_ns)
{
    const struct kube_job_ref ref = job_ref(j);
    if (j->writing_status || j->leaves || j->dry_runs)
        return;
    json_t *status = job_status(j, now_ns);
    if (json_equal(status, j->status)) {
        json_decref(status);
        return;
    }
    bool urgent = j->end != JOB_UNFINISHED && !j->over && j->status; /* unless the last write was rejected */
    if (now_ns < j->write_not_before_ns && !urgent) {
        job_due(j, j->write_not_before_ns);
        json_decref(status);
        return;
    }
    json_t *patch = json_deep_copy(status);
    static const char *const come_and_go[] = {"reason", "completedIndexes"};
    for (size_t i = 0; i < sizeof come_and_go / sizeof *come_and_go; i++)
        if (!json_object_get(status, come_and_go[i]))
            (void)json_object_set_new(patch, come_and_go[i], json_null());
    j->writing_status = true;
    j->write_not_before_ns = now_ns + STATUS_WRITE_NS;
    kube_job_write_status(j->k->writer, &ref, patch, j->end == JOB_UNFINISHED || j->over, on_status_written);
    json_decref(patch);
    json_decref(j->status);
    j->status = status;
}

static void on_expired(void *ctx, const struct kube_job_answer *answer)
{
    struct job_entry *j = job_answered(ctx, answer);
    if (!j || answer->fate != KUBE_FAILED)
        return;
    j->deleting = false;
    job_due(j, kube_wall_ns() + KUBE_PAUSE_NS_MAX);
}

void job_expire(struct job_entry *j, int64_t now_ns)
{
    const json_t *completed = json_object_get(j->status, "completionTime");
    const struct kube_job_ref ref = job_ref(j);
    int64_t at_ns;
    if (!j->over || !j->known || j->spec.ttl_s < 0 || j->deleting || j->leaves || !completed ||
        timestamp_parse(completed, &at_ns, NULL) < 0)
        return;
    at_ns += (j->spec.ttl_s < 86400 * 36500L ? j->spec.ttl_s : 86400 * 36500L) * SECOND_NS;
    if (at_ns > now_ns) {
        job_due(j, at_ns);
        return;
    }
    j->deleting = true;
    kube_job_delete(j->k->writer, &ref, on_expired);
}
