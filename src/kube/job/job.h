/* job.h - the specification of a Job of berth.dev, parsed from the JSON of the API server.
 *
 * Plain data: texts and templates point into the object, lists are in the arena. The API server validates most of it by
 * the schema of packaging/kubernetes/crds/jobs.yaml; what the schema does not cover, or was stored before the schema,
 * is rejected here with a message. The life of a job is kube/job/job_controller.h.
 *
 * To add a key: a row in job.c, a line of the schema, and docs/kubernetes.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "berth.h"

enum {
    KUBE_JOB_NAME_MAX = 52, /* the names of its pods add a role and a number; its Service has this name too */
    KUBE_ROLE_NAME_MAX = 30,
    KUBE_ROLES_MAX = 16,
    KUBE_TASKS_MAX = 100000, /* per role */
};

struct kube_job_role {
    const char *name;
    uint32_t tasks;
    uint32_t min;           /* the gang starts with at least this many; 0: all */
    const json_t *template; /* v1.PodTemplateSpec */
};

struct kube_job {
    const char *namespace, *name, *uid;
    int64_t generation, created_ns;
    bool leaves; /* the job is being deleted */
    const char *queue, *user, *type, *class_name, *network;
    int32_t priority; /* overrides the priority of its pods */
    bool suspend, gang, preemptible, preempts;
    int64_t begin_ns, deadline_ns, limit_ns, estimate_ns, min_run_ns; /* 0: not set */
    int64_t parameters;
    const struct berth_label *attributes;
    size_t attributes_len;
    uint32_t retries;
    int64_t ttl_s; /* seconds from its end to its deletion; negative: never */
    struct kube_job_role *roles;
    size_t roles_len;
};

/* Reads only name, uid and times, which are present whatever the spec says. */
void kube_job_meta_read(const json_t *object, struct kube_job *ret);
/* Reads the whole object. -EINVAL with what is wrong and how to fix it. */
int kube_job_read(const json_t *object, struct arena *arena, struct kube_job *ret, struct berth_err *err);

/* Pod names are JOB-ROLE-INDEX and JOB-ROLE-INDEX-ATTEMPT, so two roles can produce equal names if one role's name is
 * the other's plus "-" and `task`. Reports whether they do: the first role has `tasks` tasks, the other one `others`
 * tasks with this many retries. */
bool kube_job_names_conflict(uint32_t tasks, const char *task, uint32_t retries, uint32_t others);
