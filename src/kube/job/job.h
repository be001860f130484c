/* job.h - a Job of berth.dev as people write it, read from the JSON of the API server.
 *
 * Plain data; texts and templates point into the object, lists are in the arena. The API server has checked most of it by the schema of
 * packaging/kubernetes/crds/jobs.yaml; what gets past it, or was written before the schema, is refused here with a sentence. What becomes of a
 * job is kube/job/job_life.h.
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
    KUBE_JOB_NAME_MAX = 52, /* with its role and a number it names pods, and a Service */
    KUBE_ROLE_NAME_MAX = 30,
    KUBE_ROLES_MAX = 16,
    KUBE_TASKS_MAX = 100000, /* of a role */
};

struct kube_job_role {
    const char *name;
    uint32_t tasks;
    uint32_t min;           /* it begins with at least so many; 0: all */
    const json_t *template; /* v1.PodTemplateSpec */
};

struct kube_job {
    const char *namespace, *name, *uid;
    int64_t generation, created_ns;
    bool leaves; /* it is being deleted */
    const char *queue, *user, *type, *class_name, *network;
    int32_t priority; /* above that of its pods */
    bool suspend, gang, preemptible, preempts;
    int64_t begin_ns, deadline_ns, limit_ns, estimate_ns, min_run_ns; /* 0: not said */
    int64_t parameters;
    const struct berth_label *attributes;
    size_t attributes_len;
    uint32_t retries;
    int64_t ttl_s; /* it is deleted so long after its end; negative: not */
    struct kube_job_role *roles;
    size_t roles_len;
};

/* The name, uid and times alone, which are there whatever the spec says. */
void kube_job_meta_read(const json_t *object, struct kube_job *ret);
/* All of it. -EINVAL with what is wrong and what to do. */
int kube_job_read(const json_t *object, struct arena *arena, struct kube_job *ret, struct berth_err *err);

/* Names of pods are JOB-ROLE-INDEX and JOB-ROLE-INDEX-ATTEMPT. A role of `tasks` tasks has the name of another, '-', and `task`: can its pods have the
 * names of further attempts of a task of the other, which has so many retries and tasks? */
bool kube_job_names_meet(uint32_t tasks, const char *task, uint32_t retries, uint32_t others);
