#include "kube/job/job_pod.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kube/cache/cache.h"

enum { LABEL_MAX = 63 };    /* of a host name */
#define MASTER_PORT "29500" /* each pod has its own address, so a fixed port is free */

void kube_job_pod_name(const struct kube_job *job, const struct kube_job_task *task, struct str *to)
{
    str_addf(to, "%s-%s-%u", job->name, job->roles[task->role].name, task->ordinal);
    if (task->attempt > 1)
        str_addf(to, "-%u", task->attempt);
}

uint32_t kube_job_tasks(const struct kube_job *job)
{
    uint32_t tasks = 0;
    for (size_t i = 0; i < job->roles_len; i++)
        tasks += job->roles[i].tasks;
    return tasks;
}

bool kube_job_has_service(const struct kube_job *job)
{
    return kube_job_tasks(job) > 1;
}

static bool is_elastic(const struct kube_job *job)
{
    for (size_t i = 0; i < job->roles_len; i++)
        if (job->roles[i].min && job->roles[i].min < job->roles[i].tasks)
            return true;
    return false;
}

/* The host name is the same for every attempt, so that a task has one DNS name: JOB-ROLE-INDEX.JOB. */
static void host_name(const struct kube_job *job, size_t role, uint32_t ordinal, struct str *to)
{
    size_t begun = to->len;
    str_addf(to, "%s-%s-%u", job->name, job->roles[role].name, ordinal);
    if (to->len - begun <= LABEL_MAX)
        return;
    uint32_t hash = (uint32_t)hash_bytes(to->at + begun, to->len - begun, 0);
    to->len = begun + 40;
    to->at[to->len] = 0;
    str_addf(to, "-%08x-%u", hash, ordinal);
}

static json_t *owners(const struct kube_job *job)
{
    return json_pack("[{s:s,s:s,s:s,s:s,s:b,s:b}]", "apiVersion", "berth.dev/v1", "kind", "Job", "name", job->name,
                     "uid", job->uid, "controller", 1, "blockOwnerDeletion", 1);
}

/* ---- environment ------------------------------------------------------------------------------------------------ */

/* Adds a variable unless the template sets it. */
static void env_add(json_t *env, const char *name, const char *value)
{
    for (size_t i = 0; i < json_array_size(env); i++) {
        const char *given = json_string_value(json_object_get(json_array_get(env, i), "name"));
        if (given && strcmp(given, name) == 0)
            return;
    }
    (void)json_array_append_new(env, json_pack("{s:s,s:s}", "name", name, "value", value));
}

static void env_add_number(json_t *env, const char *name, uint32_t value)
{
    char text[24];
    env_add(env, name, str_u64(value, text));
}

static void container_add_job_env(json_t *container, const struct kube_job *job, const struct kube_job_task *task)
{
    CLEANUP(str) struct str text = {0};
    json_t *env = json_object_get(container, "env");
    uint32_t rank = task->ordinal, all = kube_job_tasks(job);
    if (!json_is_object(container))
        return;
    if (!json_is_array(env)) {
        env = json_array();
        (void)json_object_set_new(container, "env", env);
    }
    for (size_t i = 0; i < task->role; i++)
        rank += job->roles[i].tasks;
    env_add(env, "BERTH_JOB_ID", job->name);
    env_add_number(env, "BERTH_TASK", task->ordinal);
    env_add(env, "BERTH_ROLE", job->roles[task->role].name);
    if (all < 2)
        return;
    env_add_number(env, "RANK", rank);
    if (!is_elastic(job))
        env_add_number(env, "WORLD_SIZE", all);
    host_name(job, 0, 0, &text);
    str_addf(&text, ".%s", job->name);
    env_add(env, "MASTER_ADDR", text.at);
    env_add(env, "MASTER_PORT", MASTER_PORT);
}

/* ---- pods ------------------------------------------------------------------------------------------------------- */

static void set_text(json_t *object, const char *key, const char *text)
{
    (void)json_object_set_new(object, key, json_string(text));
}

/* Returns a copy of the member, or an empty object. */
static json_t *copy_of(const json_t *from, const char *key)
{
    const json_t *value = json_object_get(from, key);
    return json_is_object(value) ? json_deep_copy(value) : json_object();
}

static json_t *meta_make(const struct kube_job *job, size_t role, const struct kube_job_task *task)
{
    CLEANUP(str) struct str name = {0};
    char number[24];
    const json_t *given = json_object_get(job->roles[role].template, "metadata");
    json_t *meta = json_object(), *labels = copy_of(given, "labels");
    set_text(labels, KUBE_JOB_LABEL, job->name);
    set_text(labels, KUBE_ROLE_LABEL, job->roles[role].name);
    if (task) {
        set_text(labels, KUBE_INDEX_LABEL, str_u64(task->ordinal, number));
        set_text(labels, KUBE_ATTEMPT_LABEL, str_u64(task->attempt, number));
        kube_job_pod_name(job, task, &name);
    } else {
        str_addf(&name, "%s-%s-", job->name, job->roles[role].name);
    }
    set_text(meta, task ? "name" : "generateName", name.at);
    set_text(meta, "namespace", job->namespace);
    (void)json_object_set_new(meta, "labels", labels);
    (void)json_object_set_new(meta, "annotations", copy_of(given, "annotations"));
    (void)json_object_set_new(meta, "ownerReferences", owners(job));
    return meta;
}

static void containers_add_job_env(json_t *spec, const char *key, const struct kube_job *job,
                                   const struct kube_job_task *task)
{
    json_t *list = json_object_get(spec, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        container_add_job_env(json_array_get(list, i), job, task);
}

const char *kube_job_scheduler(const struct kube_job *job, size_t role, const char *const *ours, size_t len)
{
    const json_t *spec = json_object_get(job->roles[role].template, "spec");
    const char *named = json_string_value(json_object_get(spec, "schedulerName"));
    for (size_t i = 1; named && i < len; i++)
        if (strcmp(ours[i], named) == 0)
            return ours[i];
    return ours[0];
}

json_t *kube_job_pod(const struct kube_job *job, size_t role, const struct kube_job_task *task, const char *scheduler)
{
    CLEANUP(str) struct str host = {0};
    const struct kube_job_task first = {.role = role, .attempt = 1};
    json_t *spec = copy_of(job->roles[role].template, "spec");
    set_text(spec, "schedulerName", scheduler);
    if (!json_object_get(spec, "restartPolicy"))
        set_text(spec, "restartPolicy", "Never");
    if (task)
        set_text(spec, "nodeName", task->node);
    if (kube_job_has_service(job) && !json_object_get(spec, "hostname") && !json_object_get(spec, "subdomain")) {
        host_name(job, role, task ? task->ordinal : 0, &host);
        set_text(spec, "hostname", host.at);
        set_text(spec, "subdomain", job->name);
    }
    containers_add_job_env(spec, "containers", job, task ? task : &first);
    containers_add_job_env(spec, "initContainers", job, task ? task : &first);
    return json_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "Pod", "metadata", meta_make(job, role, task),
                     "spec", spec);
}

json_t *kube_job_service(const struct kube_job *job)
{
    json_t *meta = json_pack("{s:s,s:s,s:{s:s}}", "name", job->name, "namespace", job->namespace, "labels",
                             KUBE_JOB_LABEL, job->name);
    (void)json_object_set_new(meta, "ownerReferences", owners(job));
    /* Addresses are published before pods are ready, so that pods find each other while they start. */
    return json_pack("{s:s,s:s,s:o,s:{s:s,s:b,s:{s:s}}}", "apiVersion", "v1", "kind", "Service", "metadata", meta,
                     "spec", "clusterIP", "None", "publishNotReadyAddresses", 1, "selector", KUBE_JOB_LABEL, job->name);
}
