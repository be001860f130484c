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
#include "kube/job/job_parts.h"

#define ASK_AGAIN_NS (10 * SECOND_NS)

/* ---- claims named by the template ------------------------------------------------------------------------------- */

static void on_provisioned(void *ctx, uint64_t instance, const char *trouble)
{
    struct kube_jobs *k = ctx;
    vec_push(&k->served, ((struct task_served){instance, mem_strdup(trouble)}));
    k->c.changed(k->c.ctx); /* processed together with other tasks of the same job */
}

void job_begin(struct kube_jobs *k, uint64_t instance)
{
    struct project_pod pod;
    if (!project_pod_by_instance(k->c.project, instance, &pod))
        return;
    if (kube_provision(k->provisioner, instance))
        vec_push(&k->awaiting, instance);
    else
        job_make(k, instance);
}

static void awaiting_drop(struct kube_jobs *k, uint64_t instance)
{
    for (size_t i = 0; i < k->awaiting.len; i++)
        if (k->awaiting.at[i] == instance) {
            k->awaiting.at[i] = k->awaiting.at[--k->awaiting.len];
            return;
        }
}

static struct live_job *job_of_instance(struct kube_jobs *k, uint64_t instance, struct project_pod *ret)
{
    uint32_t r;
    return project_pod_by_instance(k->c.project, instance, ret) ? job_of_role(k, ret->role, &r) : NULL;
}

/* Finds jobs with a task whose node cannot reach its volumes. */
static void reach_look(struct kube_jobs *k)
{
    for (size_t i = 0; i < k->served.len; i++) {
        const struct task_served *s = &k->served.at[i];
        struct project_pod pod;
        struct live_job *j = job_of_instance(k, s->instance, &pod);
        if (!j || *s->trouble || j->scattered || project_volumes_reached(k->c.project, s->instance))
            continue;
        j->scattered = true;
        str_clear(&k->text);
        str_addf(&k->text, "The volumes of its claims cannot be accessed from node %s; its tasks are placed again.",
                 pod.node);
        job_event(j, true, "FailedScheduling", "Scheduling", k->text.at);
    }
}

static void served_look(struct kube_jobs *k, const struct task_served *s)
{
    struct project_pod pod;
    const struct live_job *j = job_of_instance(k, s->instance, &pod);
    awaiting_drop(k, s->instance);
    if (!j)
        return;
    if (*s->trouble)
        job_make_failed(k, &pod, s->trouble);
    if (*s->trouble || j->scattered)
        project_give_back(k->c.project, s->instance, 0);
    else
        job_make(k, s->instance);
}

/* Gives back tasks of such jobs that still wait for a volume. */
static void scattered_end(struct kube_jobs *k)
{
    size_t left = 0;
    for (size_t i = 0; i < k->awaiting.len; i++) {
        struct project_pod pod;
        const struct live_job *j = job_of_instance(k, k->awaiting.at[i], &pod);
        if (j && j->scattered)
            project_give_back(k->c.project, k->awaiting.at[i], 0);
        else if (j)
            k->awaiting.at[left++] = k->awaiting.at[i];
    }
    k->awaiting.len = left;
    for (size_t i = 0; i < k->jobs.len; i++)
        k->jobs.at[i]->scattered = false;
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

void job_claims_forget(struct seen_pod *pod)
{
    for (size_t i = 0; i < pod->claims.len; i++)
        mem_free(pod->claims.at[i].uid);
    pod->claims.len = 0;
}

static struct seen_claim *claim_seen(struct seen_pod *pod, const char *uid)
{
    for (size_t i = 0; i < pod->claims.len; i++)
        if (strcmp(pod->claims.at[i].uid, uid) == 0)
            return &pod->claims.at[i];
    vec_push(&pod->claims, (struct seen_claim){.uid = mem_strdup(uid)});
    return &pod->claims.at[pod->claims.len - 1];
}

struct asking {
    struct live_job *j;
    struct seen_pod *seen;
    const char *node;
    int64_t now_ns;
    bool refused; /* a provisioner has cleared the selected node */
};

/* Selects the node for an ephemeral claim. The claims of a pod appear one by one, each with its own provisioner. */
static void claim_ask(void *ctx, const struct project_volume *claim, bool selected)
{
    struct asking *a = ctx;
    struct seen_claim *c = claim_seen(a->seen, claim->claim_uid);
    a->refused |= c->known && !selected;
    c->known |= selected;
    if (c->known || a->now_ns - c->asked_ns < ASK_AGAIN_NS)
        return;
    c->asked_ns = a->now_ns;
    kube_provision_claim(a->j->k->provisioner, claim, a->node);
    job_due(a->j, a->now_ns + ASK_AGAIN_NS);
}

/* Deletes a pod whose provisioner has cleared the selected node: that node has no storage for it. */
static void pod_give_up(struct live_job *j, const struct seen_pod *seen, const struct project_pod *pod)
{
    const struct kube_job_ref ref = job_ref(j);
    CLEANUP(mem) char *name = mem_strdup(seen->name), *uid = mem_strdup(seen->uid);
    job_make_failed(j->k, pod, "a volume for it cannot be provisioned on its node");
    job_pod_delete(j->k, &ref, name, uid, pod->instance);
}

static void pod_ask(struct live_job *j, struct seen_pod *seen, int64_t now_ns)
{
    struct kube_jobs *k = j->k;
    struct project_pod pod;
    CLEANUP(str) struct str id = {0};
    str_addf(&id, "%s:%s", j->spec.namespace, seen->name);
    if (seen->phase != PROJECT_PENDING || seen->leaves || !project_pod_of(k->c.project, id.at, &pod) || !pod.bound ||
        pod.stopping)
        return;
    struct asking a = {.j = j, .seen = seen, .node = pod.node, .now_ns = now_ns};
    if (project_claims_made(k->c.project, id.at, claim_ask, &a) == 0)
        job_claims_forget(seen);
    if (a.refused)
        pod_give_up(j, seen, &pod);
}

/* ---- processing ------------------------------------------------------------------------------------------------- */

void job_volumes_look(struct kube_jobs *k, int64_t now_ns)
{
    kube_provision_look(k->provisioner);
    reach_look(k);
    for (size_t i = 0; i < k->served.len; i++) {
        served_look(k, &k->served.at[i]);
        mem_free(k->served.at[i].trouble);
    }
    k->served.len = 0;
    scattered_end(k);
    for (size_t i = 0; i < k->jobs.len; i++) {
        struct live_job *j = k->jobs.at[i];
        for (size_t p = 0; j->makes_claims && job_goes_on(j) && p < j->pods.len; p++)
            pod_ask(j, &j->pods.at[p], now_ns);
    }
}

void job_volumes_begin(struct kube_jobs *k)
{
    k->provisioner = kube_provisioner_new(k->c.loop, k->c.api, k->c.project, on_provisioned, k);
}

void job_volumes_done(struct kube_jobs *k)
{
    kube_provisioner_free(k->provisioner);
    for (size_t i = 0; i < k->served.len; i++)
        mem_free(k->served.at[i].trouble);
    vec_done(&k->served);
    vec_done(&k->awaiting);
}
