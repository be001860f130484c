/* job.c - parses the spec of a Job by a table of its keys, then checks the keys against each other. */
#include "kube/job/job.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "wire/text/keys.h"
#include "wire/text/moment.h"

#define SECOND_NS INT64_C(1000000000)

/* ---- keys ------------------------------------------------------------------------------------------------------- */

static int length_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t ns = 0;
    int rc = duration_parse(value, &ns, r->err);
    if (rc == 0 && (ns < SECOND_NS || ns > 3650 * 86400 * SECOND_NS))
        return expected(r, "a duration from 1s to 3650d", value);
    if (rc == 0)
        *(int64_t *)key_field(key, object) = ns;
    return rc;
}

/* i64_read, but not below 0. */
static int count_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return expected(r, "a whole number of 0 or more", value);
    return i64_read(r, key, value, object);
}

#define AT(field) offsetof(struct kube_job_role, field)
static const struct key role_rows[] = {
    KEY("name", "text", "part of the pod names; task if not given", text_read, .at = AT(name)),
    KEY("tasks", "whole number", "number of pods; 1 if not given", u32_read, .at = AT(tasks)),
    KEY("min", "whole number", "minimum number of pods to start with; all if not given", u32_read, .at = AT(min)),
    KEY("template", "object", "pod template", raw_read, .at = AT(template)),
};
#undef AT
static KEY_TABLE(role_keys, "role", role_rows);
static const struct kube_job_role role_initial = {.name = "task", .tasks = 1};

/* Reports whether the text is a valid DNS label. */
static bool is_label(const char *text, size_t max)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++) {
        bool plain = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9');
        if (!plain && (text[i] != '-' || i == 0 || i == len - 1))
            return false;
    }
    return len > 0 && len <= max;
}

/* Rejects templates whose pods Berth could not place or count. */
static int template_check(struct reader *r, const struct kube_job_role *role)
{
    const json_t *spec = json_object_get(role->template, "spec");
    const char *policy = json_string_value(json_object_get(spec, "restartPolicy"));
    if (!role->template)
        return missing(r, "template");
    if (!json_is_object(role->template) || !json_is_object(spec))
        return err_set(r->err, EINVAL, "template: expected an object with a spec, as in other workloads");
    if (json_array_size(json_object_get(spec, "containers")) == 0)
        return err_set(r->err, EINVAL, "template.spec.containers: expected at least one container");
    if (policy && strcmp(policy, "Never") != 0 && strcmp(policy, "OnFailure") != 0)
        return err_set(r->err, EINVAL,
                       "template.spec.restartPolicy: expected Never or OnFailure; tasks run to completion");
    if (json_object_get(spec, "nodeName"))
        return err_set(r->err, EINVAL, "template.spec.nodeName: not allowed; use nodeSelector or affinity");
    if (json_array_size(json_object_get(spec, "schedulingGates")))
        return err_set(r->err, EINVAL, "template.spec.schedulingGates: not allowed; use suspend");
    return 0;
}

static int role_finish(struct reader *r, void *item)
{
    struct kube_job_role *role = item;
    if (!is_label(role->name, KUBE_ROLE_NAME_MAX))
        return err_set(r->err, EINVAL, "name: expected at most %d lower-case letters, digits and '-'",
                       KUBE_ROLE_NAME_MAX);
    if (role->tasks < 1 || role->tasks > KUBE_TASKS_MAX)
        return err_set(r->err, EINVAL, "tasks: expected a whole number from 1 to %d", KUBE_TASKS_MAX);
    if (role->min > role->tasks)
        return err_set(r->err, EINVAL, "min: expected at most %u, the number of tasks", role->tasks);
    return template_check(r, role);
}

static const struct object_kind role_kind = {.table = &role_keys,
                                             .size = sizeof(struct kube_job_role),
                                             .initial = &role_initial,
                                             .finish = role_finish};

#define AT(field) offsetof(struct kube_job, field)
static const struct key job_rows[] = {
    KEY("queue", "text", "queue of the job", text_read, .at = AT(queue)),
    KEY("user", "text", "user of the job", text_read, .at = AT(user)),
    KEY("priority", "whole number", "added to the priority of its pods", i32_read, .at = AT(priority)),
    KEY("suspend", "boolean", "starts no pods and stops running pods", bool_read, .at = AT(suspend)),
    KEY("begin", "time", "earliest start", moment_read, .at = AT(begin_ns)),
    KEY("deadline", "time", "pods that could not end by then do not start", moment_read, .at = AT(deadline_ns)),
    KEY("timeLimit", "duration", "maximum run time; the job fails after it", length_read, .at = AT(limit_ns)),
    KEY("estimate", "duration", "expected run time", length_read, .at = AT(estimate_ns)),
    KEY("minRun", "duration", "run time before it may be preempted", length_read, .at = AT(min_run_ns)),
    KEY("retries", "whole number", "number of retries before the job fails", u32_read, .at = AT(retries)),
    KEY("gang", "boolean", "all tasks start together, and fail together", bool_read, .at = AT(gang)),
    KEY("preemptible", "boolean", "whether it may be preempted", bool_read, .at = AT(preemptible)),
    KEY("preempts", "boolean", "whether it may preempt others", bool_read, .at = AT(preempts)),
    KEY("type", "text", "type of the job, for policies", text_read, .at = AT(type)),
    KEY("class", "text", "class of the job, for policies", text_read, .at = AT(class_name)),
    KEY("network", "text", "network of the job, for policies", text_read, .at = AT(network)),
    KEY("parameters", "whole number", "number of parameters of its model", count_read, .at = AT(parameters)),
    KEY("attributes", "map of texts", "further attributes, for policies", labels_read, .at = AT(attributes),
        .len_at = AT(attributes_len)),
    KEY("ttlSecondsAfterFinished", "whole number", "seconds after its end until it is deleted", count_read,
        .at = AT(ttl_s)),
    KEY("roles", "list of roles", "groups of pods", objects_read, .at = AT(roles), .len_at = AT(roles_len),
        .arg = &role_kind),
};
#undef AT
static KEY_TABLE(job_keys, "spec", job_rows);

/* ---- the whole object ------------------------------------------------------------------------------------------- */

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

void kube_job_meta_read(const json_t *object, struct kube_job *ret)
{
    const json_t *meta = json_object_get(object, "metadata"), *created = json_object_get(meta, "creationTimestamp");
    *ret = (struct kube_job){.namespace = text_at(meta, "namespace"),
                             .name = text_at(meta, "name"),
                             .uid = text_at(meta, "uid"),
                             .generation = json_integer_value(json_object_get(meta, "generation")),
                             .leaves = json_is_string(json_object_get(meta, "deletionTimestamp")),
                             .queue = "",
                             .user = "",
                             .type = "",
                             .class_name = "",
                             .network = "",
                             .gang = true,
                             .preemptible = true,
                             .preempts = true,
                             .ttl_s = -1};
    if (created)
        (void)timestamp_parse(created, &ret->created_ns, NULL);
}

bool kube_job_names_conflict(uint32_t tasks, const char *task, uint32_t retries, uint32_t others)
{
    int64_t number;
    if (strspn(task, "0123456789") != strlen(task) || (task[0] == '0' && task[1]) || !str_parse_i64(task, &number))
        return false;
    /* Attempt 2 is the first with its number in the name; that name is the one of the task with index 2. */
    return number < others && retries >= 1 && tasks > 2;
}

static bool roles_meet(const struct kube_job *job, const struct kube_job_role *a, const struct kube_job_role *b)
{
    size_t len = strlen(a->name);
    return strncmp(b->name, a->name, len) == 0 && b->name[len] == '-' &&
           kube_job_names_conflict(b->tasks, b->name + len + 1, job->retries, a->tasks);
}

static int roles_check(const struct kube_job *job, struct berth_err *err)
{
    if (job->roles_len < 1 || job->roles_len > KUBE_ROLES_MAX)
        return err_set(err, EINVAL, "roles: expected 1 to %d roles", KUBE_ROLES_MAX);
    for (size_t i = 0; i < job->roles_len; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(job->roles[i].name, job->roles[k].name) == 0)
                return err_set(err, EINVAL, "roles: duplicate name %s", job->roles[i].name);
    for (size_t i = 0; i < job->roles_len; i++)
        for (size_t k = 0; k < job->roles_len; k++)
            if (i != k && roles_meet(job, &job->roles[i], &job->roles[k]))
                return err_set(
                    err, EINVAL,
                    "roles: pods of %s would have the same names as retries of %s; rename one of these roles",
                    job->roles[k].name, job->roles[i].name);
    return 0;
}

int kube_job_read(const json_t *object, struct arena *arena, struct kube_job *ret, struct berth_err *err)
{
    struct kube_job job;
    struct reader r;
    struct berth_err own = {0};
    kube_job_meta_read(object, &job);
    reader_init(&r, arena, err ? err : &own);
    if (!is_label(job.name, KUBE_JOB_NAME_MAX))
        return err_set(
            err, EINVAL,
            "metadata.name: expected at most %d lower-case letters, digits and '-', as it is part of pod names",
            KUBE_JOB_NAME_MAX);
    const json_t *spec = json_object_get(object, "spec");
    int rc = spec ? table_read(&r, spec, &job_keys, &job) : missing(&r, "roles");
    if (rc == 0)
        rc = roles_check(&job, err);
    if (rc == 0)
        *ret = job;
    else
        (void)err_prefix(err, "spec");
    return rc;
}
