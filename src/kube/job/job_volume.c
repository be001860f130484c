/* job_volume.c - volumes for tasks of jobs with WaitForFirstConsumer claims.
 *
 * A claim named by the template gets its volume before pods are created: it is requested for the node of the first task
 * that needs it, and a task's pod is created when all its claims are bound. If a node cannot reach one of the volumes,
 * all tasks of the job without pods are placed again, now that the volume's topology is known.
 *
 * An ephemeral claim comes after its pod, which is on its node already: that node is selected for the provisioner.
 */
#include <string.h>

#include "kube/client/clock.h"
#include "kube/job/job_internal.h"

#define ASK_AGAIN_NS (10 * SECOND_NS)

/* ---- claims named by the template ------------------------------------------------------------------------------- */

static void on_provisioned(void *ctx, uint64_t instance, const char *trouble)
{
    struct kube_jobs *k = ctx;
    vec_push(&k->served, ((struct provisioned_task){instance, mem_strdup(trouble)}));
    k->c.changed(k->c.ctx); /* processed together with other tasks of the same job */
}

void job_provision_task(struct kube_jobs *k, uint64_t instance)
{
    struct cache_pod_view pod;
    if (!cache_pod_by_instance(k->c.cache, instance, &pod))
        return;
    if (kube_provision(k->provisioner, instance))
        vec_push(&k->awaiting, instance);
    else
        job_create_pod(k, instance);
}

static void awaiting_drop(struct kube_jobs *k, uint64_t instance)
{
    for (size_t i = 0; i < k->awaiting.len; i++)
        if (k->awaiting.at[i] == instance) {
            k->awaiting.at[i] = k->awaiting.at[--k->awaiting.len];
            return;
        }
}

static struct job_entry *job_of_instance(struct kube_jobs *k, uint64_t instance, struct cache_pod_view *ret)
{
    uint32_t r;
    return cache_pod_by_instance(k->c.cache, instance, ret) ? job_of_role(k, ret->role, &r) : NULL;
}

/* Finds jobs with a task whose node cannot reach its volumes. */
static void unreachable_volumes_find(struct kube_jobs *k)
{
    for (size_t i = 0; i < k->served.len; i++) {
        const struct provisioned_task *s = &k->served.at[i];
        struct cache_pod_view pod;
        struct job_entry *j = job_of_instance(k, s->instance, &pod);
        if (!j || *s->trouble || j->volumes_unreachable || cache_volumes_are_reachable(k->c.cache, s->instance))
            continue;
        j->volumes_unreachable = true;
        str_clear(&k->text);
        str_addf(&k->text, "The volumes of its claims cannot be accessed from node %s; its tasks are placed again.",
                 pod.node);
        job_event(j, true, "FailedScheduling", "Scheduling", k->text.at);
    }
}

static void provisioned_task_handle(struct kube_jobs *k, const struct provisioned_task *s)
{
    struct cache_pod_view pod;
    const struct job_entry *j = job_of_instance(k, s->instance, &pod);
    awaiting_drop(k, s->instance);
    if (!j)
        return;
    if (*s->trouble)
        job_create_failed(k, &pod, s->trouble);
    if (*s->trouble || j->volumes_unreachable)
        cache_forget_pod(k->c.cache, s->instance, 0);
    else
        job_create_pod(k, s->instance);
}

/* Gives back tasks of such jobs that still wait for a volume. */
static void unreachable_tasks_forget(struct kube_jobs *k)
{
    size_t left = 0;
    for (size_t i = 0; i < k->awaiting.len; i++) {
        struct cache_pod_view pod;
        const struct job_entry *j = job_of_instance(k, k->awaiting.at[i], &pod);
        if (j && j->volumes_unreachable)
            cache_forget_pod(k->c.cache, k->awaiting.at[i], 0);
        else if (j)
            k->awaiting.at[left++] = k->awaiting.at[i];
    }
    k->awaiting.len = left;
    for (size_t i = 0; i < k->jobs.len; i++)
        k->jobs.at[i]->volumes_unreachable = false;
}

/* ---- ephemeral claims ------------------------------------------------------------------------------------------- */

bool job_makes_claims(const struct kube_job *spec)
{
    for (size_t r = 0; r < spec->roles_len; r++) {
        const json_t *volumes = json_object_get(json_object_get(spec->roles[r].template, "spec"), "volumes");
        for (size_t i = 0; i < json_array_size(volumes); i++)
            if (json_object_get(json_array_get(volumes, i), "ephemeral"))
                return true;
    }
    return false;
}

void job_claims_forget(struct task_pod *pod)
{
    for (size_t i = 0; i < pod->claims.len; i++)
        mem_free(pod->claims.at[i].uid);
    pod->claims.len = 0;
}

static struct task_claim *claim_find(struct task_pod *pod, const char *uid)
{
    for (size_t i = 0; i < pod->claims.len; i++)
        if (strcmp(pod->claims.at[i].uid, uid) == 0)
            return &pod->claims.at[i];
    vec_push(&pod->claims, (struct task_claim){.uid = mem_strdup(uid)});
    return &pod->claims.at[pod->claims.len - 1];
}

struct claim_selection {
    struct job_entry *j;
    struct task_pod *seen;
    const char *node;
    int64_t now_ns;
    bool refused; /* a provisioner has cleared the selected node */
};

/* Selects the node for an ephemeral claim. The claims of a pod appear one by one, each with its own provisioner. */
static void claim_select_node(void *ctx, const struct cache_claim_volume *claim, bool selected)
{
    struct claim_selection *a = ctx;
    struct task_claim *c = claim_find(a->seen, claim->claim_uid);
    a->refused |= c->known && !selected;
    c->known |= selected;
    if (c->known || a->now_ns - c->asked_ns < ASK_AGAIN_NS)
        return;
    c->asked_ns = a->now_ns;
    kube_provision_claim(a->j->k->provisioner, claim, a->node);
    job_due(a->j, a->now_ns + ASK_AGAIN_NS);
}

/* Deletes a pod whose provisioner has cleared the selected node: that node has no storage for it. */
static void pod_delete_for_storage(struct job_entry *j, const struct task_pod *seen, const struct cache_pod_view *pod)
{
    const struct kube_job_ref ref = job_ref(j);
    CLEANUP(mem) char *name = mem_strdup(seen->name), *uid = mem_strdup(seen->uid);
    job_create_failed(j->k, pod, "a volume for it cannot be provisioned on its node");
    job_pod_delete(j->k, &ref, name, uid, pod->instance);
}

static void pod_claims_select(struct job_entry *j, struct task_pod *seen, int64_t now_ns)
{
    struct kube_jobs *k = j->k;
    struct cache_pod_view pod;
    CLEANUP(str) struct str id = {0};
    str_addf(&id, "%s:%s", j->spec.namespace, seen->name);
    if (seen->phase != CACHE_TASK_PENDING || seen->leaves || !cache_pod_find(k->c.cache, id.at, &pod) || !pod.bound ||
        pod.stopping)
        return;
    struct claim_selection a = {.j = j, .seen = seen, .node = pod.node, .now_ns = now_ns};
    if (cache_ephemeral_claims(k->c.cache, id.at, claim_select_node, &a) == 0)
        job_claims_forget(seen);
    if (a.refused)
        pod_delete_for_storage(j, seen, &pod);
}

/* ---- processing ------------------------------------------------------------------------------------------------- */

void job_volumes_process(struct kube_jobs *k, int64_t now_ns)
{
    kube_provision_check(k->provisioner);
    unreachable_volumes_find(k);
    for (size_t i = 0; i < k->served.len; i++) {
        provisioned_task_handle(k, &k->served.at[i]);
        mem_free(k->served.at[i].trouble);
    }
    k->served.len = 0;
    unreachable_tasks_forget(k);
    for (size_t i = 0; i < k->jobs.len; i++) {
        struct job_entry *j = k->jobs.at[i];
        for (size_t p = 0; j->makes_claims && job_is_unfinished(j) && p < j->pods.len; p++)
            pod_claims_select(j, &j->pods.at[p], now_ns);
    }
}

void job_volumes_begin(struct kube_jobs *k)
{
    k->provisioner = kube_provisioner_new(k->c.loop, k->c.api, k->c.cache, on_provisioned, k);
}

void job_volumes_done(struct kube_jobs *k)
{
    kube_provisioner_free(k->provisioner);
    for (size_t i = 0; i < k->served.len; i++)
        mem_free(k->served.at[i].trouble);
    vec_done(&k->served);
    vec_done(&k->awaiting);
}
