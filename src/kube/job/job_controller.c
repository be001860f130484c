/* job_controller.c - which jobs to process and when; the claims of roles; the watch. */
#include "kube/job/job_controller.h"

#include <errno.h>

#include "kube/client/clock.h"
#include "kube/job/job_claim.h"
#include "kube/job/job_internal.h"
#include "kube/tenant/tenant.h"

#define LOOK_NS (10 * SECOND_NS) /* interval of asking whether the API server serves jobs by now */

/* ---- timers ----------------------------------------------------------------------------------------------------- */

void jobs_due(struct kube_jobs *k, int64_t wall_ns)
{
    int64_t left = wall_ns - kube_wall_ns(), at = loop_now_ns(k->c.loop) + (left > 0 ? left : 0);
    if (at >= k->timer_ns)
        return;
    k->timer_ns = at;
    loop_timer_set(k->timer, at);
}

void job_due(struct job_entry *j, int64_t wall_ns)
{
    if (j->due_ns && j->due_ns <= wall_ns)
        return;
    j->due_ns = wall_ns;
    jobs_due(j->k, wall_ns);
}

/* ---- claims of roles -------------------------------------------------------------------------------------------- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool all_shaped(const struct job_entry *j)
{
    for (size_t i = 0; i < j->roles.len; i++)
        if (!j->roles.at[i].shaped)
            return false;
    return true;
}

/* Reads the claim of a role; false: its job is gone. Texts belong to the job. */
static bool claim_read(struct kube_jobs *k, const char *id, struct job_claim *ret)
{
    uint32_t r;
    const struct job_entry *j = job_of_role(k, id, &r);
    if (!j)
        return false;
    const struct kube_job *spec = &j->spec;
    bool waits = !job_is_unfinished(j) || job_role_needs_no_more(j, r) || !all_shaped(j);
    *ret = (struct job_claim){.namespace = spec->namespace,
                              .name = spec->name,
                              .user = spec->user,
                              .queue = spec->queue,
                              .type = spec->type,
                              .class_name = spec->class_name,
                              .network = spec->network,
                              .attributes = spec->attributes,
                              .attributes_len = spec->attributes_len,
                              .parameters = spec->parameters,
                              .tasks = spec->roles[r].tasks,
                              .min = spec->roles[r].min,
                              .priority = spec->priority,
                              .created_ns = spec->created_ns,
                              .begin_ns = waits ? BERTH_NEVER_NS : later(spec->begin_ns, j->pause_ns),
                              .deadline_ns = spec->deadline_ns,
                              .limit_ns = spec->limit_ns,
                              .estimate_ns = spec->estimate_ns,
                              .min_run_ns = spec->min_run_ns,
                              .suspended = spec->suspend,
                              .gang = spec->gang && kube_job_tasks(spec) > 1,
                              .unpreemptible = !spec->preemptible,
                              .never_preempts = !spec->preempts};
    return true;
}

const char *kube_jobs_claim(struct kube_jobs *k, const char *id, struct arena *arena, struct berth_workload *w)
{
    struct job_claim claim;
    bool there = claim_read(k, id, &claim);
    if (k->c.claimed)
        k->c.claimed(k->c.ctx, id, there ? &claim : NULL);
    return there ? job_claim_apply(&claim, k->c.tenants, arena, w) : JOB_CLAIM_GONE;
}

/* ---- processing ------------------------------------------------------------------------------------------------- */

void job_ends(struct job_entry *j, enum job_end end, const char *reason, const char *text)
{
    if (j->end != JOB_UNFINISHED)
        return;
    j->end = end;
    job_text_set(&j->end_reason, reason);
    job_text_set(&j->end_text, text);
    job_event(j, end == JOB_FAILED, end == JOB_FAILED ? "Failed" : "Completed", "Ending", text);
    job_roles_changed(j);
    job_dirty(j);
}

/* Gives back pods that were created but not shown by the watch in time: they were deleted at once. */
static void unseen_check(struct kube_jobs *k, int64_t now_ns)
{
    size_t left = 0;
    for (size_t i = 0; i < k->made.len; i++) {
        struct created_pod m = k->made.at[i];
        struct cache_pod_view pod;
        if (!cache_pod_by_instance(k->c.cache, m.instance, &pod) || *pod.uid)
            continue;
        if (now_ns - m.since_ns > JOB_UNSEEN_NS)
            cache_forget_pod(k->c.cache, m.instance, 0);
        else
            k->made.at[left++] = m;
    }
    k->made.len = left;
    if (left)
        jobs_due(k, now_ns + JOB_UNSEEN_NS);
}

void kube_jobs_process(struct kube_jobs *k, int64_t now_ns)
{
    if (!k->synced)
        return;
    unseen_check(k, now_ns);
    int64_t stuck_ns = stuck_pods_check(&k->stuck, now_ns);
    if (stuck_ns != INT64_MAX)
        jobs_due(k, stuck_ns);
    job_volumes_process(k, now_ns);
    for (size_t i = 0; i < k->jobs.len; i++) {
        struct job_entry *j = k->jobs.at[i];
        if (!j->dirty || !j->there)
            continue;
        j->dirty = false;
        job_update_progress(j, now_ns);
        if (job_is_unfinished(j) && !j->refused)
            job_create_service(j);
        job_write_status(j, now_ns);
        job_expire(j, now_ns);
    }
}

void kube_jobs_recompute(struct kube_jobs *k)
{
    for (size_t i = 0; i < k->jobs.len; i++)
        if (k->jobs.at[i]->there && k->jobs.at[i]->known)
            job_recompute_progress(k->jobs.at[i]);
}

static void on_timer(void *ctx)
{
    struct kube_jobs *k = ctx;
    int64_t now_ns = kube_wall_ns();
    k->timer_ns = INT64_MAX;
    for (size_t i = 0; i < k->jobs.len; i++) {
        struct job_entry *j = k->jobs.at[i];
        if (!j->due_ns)
            continue;
        if (j->due_ns > now_ns) {
            jobs_due(k, j->due_ns);
            continue;
        }
        j->due_ns = 0;
        j->dirty = true;
        if (!job_is_unfinished(j))
            j->dry_run_ns = 0; /* a finished job needs no further dry runs */
        if (j->dry_run_ns && j->dry_run_ns <= now_ns)
            job_dry_run_pods(j);
        else if (j->dry_run_ns)
            job_due(j, j->dry_run_ns);
    }
    k->c.changed(k->c.ctx);
}

/* ---- the watch -------------------------------------------------------------------------------------------------- */

#define PATH "/apis/berth.dev/v1/jobs"

static void on_put(void *ctx, const struct kube_object *o)
{
    kube_jobs_put(ctx, o->json);
}

static void on_drop(void *ctx, const struct kube_object *o)
{
    kube_jobs_drop(ctx, o->namespace, o->name);
}

static void resources_found(struct kube_jobs *k)
{
    if (k->known)
        return;
    k->known = true;
    if (k->firsts)
        return;
    k->synced = true;
    k->c.synced(k->c.ctx);
}

static void on_synced(void *ctx)
{
    resources_found(ctx);
}

static void on_trouble(void *ctx, const char *text)
{
    const struct kube_jobs *k = ctx;
    log_write(k->c.log, kube_wall_ns(), LEVEL_WARN, "watch.trouble", LOG_TEXT("what", "jobs"), LOG_TEXT("text", text));
}

static void check_resource_exists(void *ctx);

static void on_resource_found(void *ctx, const struct kube_answer *answer)
{
    struct kube_jobs *k = ctx;
    k->call = NULL;
    if (answer->code == 0) {
        loop_source_free(k->timer);
        k->timer = loop_timer_new(k->c.loop, on_timer, k);
        k->timer_ns = INT64_MAX;
        k->watch = kube_watch_new(&(struct kube_watch_config){.api = k->c.api,
                                                              .loop = k->c.loop,
                                                              .path = PATH,
                                                              .format = KUBE_JSON,
                                                              .put = on_put,
                                                              .drop = on_drop,
                                                              .synced = on_synced,
                                                              .trouble = on_trouble,
                                                              .ctx = k});
        return;
    }
    if (answer->code != -ENOENT && !k->known)
        on_trouble(k, answer->text);
    loop_timer_set(k->timer, loop_now_ns(k->c.loop) + LOOK_NS);
    resources_found(k);
}

static void check_resource_exists(void *ctx)
{
    struct kube_jobs *k = ctx;
    k->call = kube_start(k->c.api, &(struct kube_request){.method = "GET",
                                                          .path = PATH "?limit=1",
                                                          .rank = KUBE_URGENT,
                                                          .harmless = true,
                                                          .done = on_resource_found,
                                                          .ctx = k});
}

struct kube_jobs *kube_jobs_new(const struct kube_jobs_config *config)
{
    struct kube_jobs *k = mem_zalloc(sizeof *k);
    k->c = *config;
    k->timer_ns = INT64_MAX;
    k->stuck.cache = config->cache;
    k->writer = kube_job_writer_new(config->api, k);
    job_volumes_begin(k);
    k->timer = loop_timer_new(config->loop, check_resource_exists, k);
    check_resource_exists(k);
    return k;
}

void kube_jobs_free(struct kube_jobs *k)
{
    if (!k)
        return;
    if (k->call)
        kube_cancel(k->call);
    kube_watch_free(k->watch);
    loop_source_free(k->timer);
    kube_job_writer_free(k->writer);
    job_volumes_done(k);
    for (size_t i = 0; i < k->jobs.len; i++)
        job_free(k->jobs.at[i]);
    vec_done(&k->jobs);
    job_stems_done(k);
    vec_done(&k->made);
    stuck_pods_done(&k->stuck);
    vec_done(&k->queue);
    map_done(&k->making);
    map_done(&k->delete_after_create);
    map_done(&k->by_key);
    map_done(&k->by_uid);
    str_done(&k->text);
    mem_free(k);
}

struct kube_jobs_stats kube_jobs_stats(const struct kube_jobs *k)
{
    struct kube_jobs_stats stats = k->stats;
    for (size_t i = 0; i < k->jobs.len; i++)
        stats.refused += k->jobs.at[i]->there && k->jobs.at[i]->refused;
    return stats;
}
