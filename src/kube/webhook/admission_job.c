/* admission_job.c - admission of a Job: its spec, its user, its queue, and its quotas. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/tenant/admission.h"
#include "kube/job/job.h"
#include "kube/object/pod.h"
#include "kube/object/quantity.h"
#include "kube/webhook/admission.h"
#include "wire/text/document.h"

struct job_review {
    const struct admission *j;
    struct arena arena;
    struct kube_job job;
    const char *who;
    int64_t now_ns;
    json_t *warnings;
    struct berth_err *err;
    struct berth_workload *drafts; /* one for each role */
};

static void warn(struct job_review *g, const char *text)
{
    (void)json_array_append_new(g->warnings, json_string(text));
}

/* ---- requests of a pod ------------------------------------------------------------------------------------------ */

static bool amount_read(const json_t *value, const char *resource, int64_t *ret)
{
    int64_t scale = strcmp(resource, "cpu") == 0 ? 1000 : 1, amount = 0;
    const char *text = json_string_value(value);
    CLEANUP(str) struct str number = {0};
    if (json_is_number(value))
        str_addf(&number, "%.17g", json_number_value(value));
    else if (text)
        str_add(&number, text);
    if (!kube_quantity_parse(str_text(&number), number.len, scale, &amount))
        return false;
    *ret = amount < 0 ? 0 : amount > BERTH_AMOUNT_MAX ? BERTH_AMOUNT_MAX : amount;
    return true;
}

static bool has(const struct kube_amounts *amounts, const char *resource)
{
    for (size_t i = 0; i < amounts->len; i++)
        if (strcmp(amounts->at[i].resource, resource) == 0)
            return true;
    return false;
}

/* A missing request equals the limit. Invalid amounts are rejected by the API server. */
static struct kube_amounts requests_read(struct arena *arena, const json_t *resources)
{
    static const char *const parts[] = {"requests", "limits"};
    struct kube_amounts all = {0};
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        const char *resource;
        json_t *value;
        json_object_foreach(json_object_get(resources, parts[p]), resource, value)
        {
            int64_t amount;
            if (!has(&all, resource) && amount_read(value, resource, &amount))
                kube_push(arena, &all, ((struct berth_amount){resource, amount}));
        }
    }
    return all;
}

static struct kube_container container_read(struct arena *arena, const json_t *from,
                                            const struct kube_amounts *defaults)
{
    const char *name = json_string_value(json_object_get(from, "name"));
    const char *policy = json_string_value(json_object_get(from, "restartPolicy"));
    struct kube_container c = {.name = name ? name : "",
                               .requests = requests_read(arena, json_object_get(from, "resources")),
                               .sidecar = policy && strcmp(policy, "Always") == 0};
    for (size_t i = 0; i < defaults->len; i++)
        if (!has(&c.requests, defaults->at[i].resource))
            kube_push(arena, &c.requests, defaults->at[i]);
    return c;
}

static struct kube_amounts pod_requests(struct job_review *g, const struct kube_job *job, const json_t *template)
{
    struct arena *arena = &g->arena;
    const json_t *spec = json_object_get(template, "spec");
    const char *runtime = json_string_value(json_object_get(spec, "runtimeClassName"));
    struct kube_pod pod = {.pod_level = requests_read(arena, json_object_get(spec, "resources"))};
    struct kube_amounts all, some = {0}, defaults = {0};
    cache_defaults(g->j->cache, job->namespace, runtime ? runtime : "", arena, &defaults, &pod.overhead);
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(spec, "containers"), i, one)
    {
        kube_push(arena, &pod.containers, container_read(arena, one, &defaults));
    }
    json_array_foreach(json_object_get(spec, "initContainers"), i, one)
    {
        kube_push(arena, &pod.inits, container_read(arena, one, &defaults));
    }
    all = kube_pod_requests(arena, &pod);
    for (size_t k = 0; k < all.len; k++)
        if (all.at[k].amount > 0)
            kube_push(arena, &some, all.at[k]);
    return some;
}

/* ---- user ------------------------------------------------------------------------------------------------------- */

static int user_check(struct job_review *g)
{
    const char *user = g->job.user;
    struct tenant_view view;
    size_t i;
    json_t *one;
    if (!*user)
        return 0;
    if (!tenants_view(g->j->tenants, KIND_USER, user, &view) || !view.in_force) {
        warn(g, arena_fmt(&g->arena, "spec.user: user %.80s does not exist; its quota and group apply once it exists.",
                          user));
        return 0;
    }
    const json_t *names = json_object_get(view.in_force, "names");
    if (!json_array_size(names)) {
        warn(g,
             arena_fmt(
                 &g->arena,
                 "spec.user: user %s lists no Kubernetes user names, so every Kubernetes user may create jobs as it.",
                 user));
        return 0;
    }
    json_array_foreach(names, i, one)
    {
        const char *name = json_string_value(one);
        if (name && strcmp(name, g->who) == 0)
            return 0;
    }
    return err_set(g->err, EACCES,
                   "spec.user: %.120s may not create jobs as user %s; omit it, use your own user, or ask an "
                   "administrator to add you to the names of %s",
                   g->who, user, user);
}

/* ---- queue and quotas ------------------------------------------------------------------------------------------- */

/* Builds the workload of a role. Returns why it may not be in its queue; NULL: it may. */
static const char *draft_make(struct job_review *g, const struct kube_job *job, size_t role, struct berth_workload *w)
{
    const struct kube_job_role *r = &job->roles[role];
    struct kube_amounts requests = pod_requests(g, job, r->template);
    kube_push(&g->arena, &requests, ((struct berth_amount){"pods", 1}));
    *w = (struct berth_workload){
        .id = arena_fmt(&g->arena, "%s:%s:%s", job->namespace, job->name, r->name),
        .kind = BERTH_JOB,
        .replicas = r->tasks,
        .created_ns = g->now_ns,
        .suspended = job->suspend,
        .gang = job->gang ? arena_fmt(&g->arena, "%s:%s", job->namespace, job->name) : NULL,
        .gang_min = job->gang ? r->min : 0,
        .estimate_ns = job->estimate_ns,
        .limit_ns = job->limit_ns,
        .shape = {.requests = requests.at, .requests_len = requests.len},
    };
    return tenants_claim_check(g->j->tenants,
                               &(struct tenant_claim){.namespace = job->namespace,
                                                      .user = *job->user ? job->user : NULL,
                                                      .queue = *job->queue ? job->queue : NULL,
                                                      .name = job->name,
                                                      .estimate_ns = job->estimate_ns,
                                                      .limit_ns = job->limit_ns},
                               &g->arena, w);
}

static int queue_check(struct job_review *g)
{
    struct tenant_view view;
    const char *queue = g->job.queue, *why = NULL;
    bool there = !*queue || strcmp(queue, "default") == 0 || tenants_view(g->j->tenants, KIND_QUEUE, queue, &view);
    g->drafts = ARENA_ARRAY(&g->arena, struct berth_workload, g->job.roles_len);
    for (size_t i = 0; i < g->job.roles_len; i++)
        why = draft_make(g, &g->job, i, &g->drafts[i]); /* the same for each role */
    if (why && there && *queue && tenants_view(g->j->tenants, KIND_QUEUE, queue, &view) && !view.in_force)
        return err_set(g->err, EACCES, "spec.queue: queue %s is not in force: %s", queue, view.why);
    return why ? err_set(g->err, there ? EACCES : ENOENT, "spec.queue: %s", why) : 0;
}

/* Returns the minimum resources of a gang of several roles as one pod. */
static struct berth_workload gang_as_one_pod(struct job_review *g)
{
    struct kube_amounts sum = {0};
    struct berth_workload w = g->drafts[0];
    for (size_t i = 0; i < g->job.roles_len; i++) {
        const struct berth_workload *d = &g->drafts[i];
        int64_t pods = d->gang_min ? d->gang_min : d->replicas;
        for (size_t k = 0; k < d->shape.requests_len; k++) {
            const struct berth_amount *a = &d->shape.requests[k];
            size_t at = 0;
            int64_t more;
            while (at < sum.len && strcmp(sum.at[at].resource, a->resource) != 0)
                at++;
            if (at == sum.len)
                kube_push(&g->arena, &sum, ((struct berth_amount){a->resource, 0}));
            if (__builtin_mul_overflow(a->amount, pods, &more) ||
                __builtin_add_overflow(sum.at[at].amount, more, &sum.at[at].amount))
                sum.at[at].amount = INT64_MAX;
        }
    }
    w.id = arena_fmt(&g->arena, "%s:%s", g->job.namespace, g->job.name);
    w.replicas = 1;
    w.gang = NULL;
    w.gang_min = 0;
    w.shape = (struct berth_shape){.requests = sum.at, .requests_len = sum.len};
    return w;
}

static int verdict_check(struct job_review *g, const struct berth_admission_result *v)
{
    return v->ok ? 0 : admit_refuse(v, "job", "", &g->arena, g->err);
}

/* Checks each role together with the roles before it, which are put into the cluster temporarily. */
static int roles_check(struct job_review *g, struct berth_cluster *cluster)
{
    struct berth_workload_view workload;
    size_t i = 0;
    int rc = 0;
    for (; rc == 0 && i < g->job.roles_len; i++) {
        struct berth_admission_result v = berth_admission_check(cluster, &g->drafts[i], g->now_ns);
        bool known = berth_workload_find(cluster, g->drafts[i].id, &workload);
        rc = verdict_check(g, &v);
        if (known)
            g->drafts[i].id = NULL; /* in the cluster already, so not removed below */
        else if (rc == 0 && i + 1 < g->job.roles_len)
            (void)berth_workload_put(cluster, &g->drafts[i], NULL);
    }
    while (i-- > 0)
        if (g->drafts[i].id)
            (void)berth_workload_remove(cluster, g->drafts[i].id, NULL);
    return rc;
}

/* Puts a recently allowed job into the cluster; false: the cluster knows it already. */
static bool recent_job_put(struct job_review *g, const struct kube_job *job, struct berth_cluster *cluster,
                           struct kube_texts *reasons)
{
    struct berth_workload_view workload;
    struct berth_workload w;
    for (size_t i = 0; i < job->roles_len; i++) {
        if (draft_make(g, job, i, &w))
            continue;
        if (berth_workload_find(cluster, w.id, &workload))
            return false;
        if (berth_workload_put(cluster, &w, NULL) == 0)
            kube_push(&g->arena, reasons, w.id);
    }
    return true;
}

static struct kube_texts recent_jobs_put(struct job_review *g, struct berth_cluster *cluster)
{
    struct kube_texts reasons = {0};
    const struct kube_job *job;
    size_t at = 0;
    if (!g->j->recent)
        return reasons;
    while ((job = recent_jobs_next(g->j->recent, &g->job, g->now_ns, &at)))
        if (!recent_job_put(g, job, cluster, &reasons))
            recent_jobs_drop(g->j->recent, &at);
    return reasons;
}

static int quotas_check(struct job_review *g)
{
    struct berth_cluster *cluster = cache_cluster(g->j->cache);
    if (g->job.gang && g->job.roles_len > 1) {
        const struct berth_workload all = gang_as_one_pod(g);
        struct berth_admission_result v = berth_admission_check(cluster, &all, g->now_ns);
        if (!v.ok && strcmp(v.kind, "limit") == 0)
            return verdict_check(g, &v);
    }
    struct kube_texts reasons = recent_jobs_put(g, cluster);
    int rc = roles_check(g, cluster);
    for (size_t i = 0; i < reasons.len; i++)
        (void)berth_workload_remove(cluster, reasons.at[i], NULL);
    return rc;
}

/* ---- the whole job ---------------------------------------------------------------------------------------------- */

static bool differs(const json_t *object, const json_t *old, const char *key)
{
    const json_t *a = json_object_get(json_object_get(object, "spec"), key);
    const json_t *b = json_object_get(json_object_get(old, "spec"), key);
    return a != b && !(a && b && json_equal(a, b));
}

/* Reports whether an update requests more, another queue or user, or a longer time than the accepted spec. */
static bool update_requests_more(const json_t *object, const json_t *old)
{
    static const char *const keys[] = {"queue", "user", "roles", "gang", "timeLimit", "estimate"};
    for (size_t i = 0; old && i < sizeof keys / sizeof *keys; i++)
        if (differs(object, old, keys[i]))
            return true;
    return !old;
}

static void warn_ignored_fields(struct job_review *g)
{
    const struct kube_job *job = &g->job;
    if (job->deadline_ns && job->deadline_ns <= g->now_ns)
        warn(g, "spec.deadline: the deadline has passed; no pod will start.");
    if (job->limit_ns && job->estimate_ns > job->limit_ns)
        warn(g, "spec.estimate: longer than timeLimit, after which the job is stopped.");
    if (job->min_run_ns && !job->preemptible)
        warn(g, "spec.minRun: no effect, as preemptible is false.");
    for (size_t i = 0; i < job->roles_len; i++) {
        if (job->roles[i].min && !job->gang)
            warn(g, arena_fmt(&g->arena, "spec.roles[%zu].min: no effect, as gang is false.", i));
        if (pod_requests(g, job, job->roles[i].template).len == 0)
            warn(g, arena_fmt(
                        &g->arena,
                        "spec.roles[%zu].template: the containers request no resources, so none are reserved for them.",
                        i));
    }
}

int admission_check_job(const struct admission *j, const struct admission_request *request, int64_t now_ns,
                        json_t *warnings, struct berth_err *err)
{
    const json_t *object = request->object, *old = request->old;
    struct job_review g = {.j = j, .who = request->who, .now_ns = now_ns, .warnings = warnings, .err = err};
    arena_init(&g.arena);
    int rc = kube_job_read(object, &g.arena, &g.job, err);
    if (rc == 0 && (!old || differs(object, old, "user")))
        rc = user_check(&g);
    if (rc == 0 && update_requests_more(object, old)) {
        rc = queue_check(&g);
        if (rc == 0)
            rc = quotas_check(&g);
        if (rc == 0 && j->recent && !request->dry && !old)
            recent_jobs_add(j->recent, object, now_ns);
    }
    if (rc == 0)
        warn_ignored_fields(&g);
    arena_done(&g.arena);
    return rc;
}
