/* job_pod.h - the objects created for a job, as JSON: the pods of its tasks, and the Service that gives them DNS names.
 *
 * A function of the job alone, so that creating a pod twice produces the same object: its name contains task and
 * attempt. Nothing is sent here.
 */
#pragma once

#include <jansson.h>

#include "base/str.h"
#include "kube/job/job.h"

/* What distinguishes the pods of a job. */
struct kube_job_task {
    size_t role;
    uint32_t ordinal, attempt; /* from 0; from 1 */
    const char *node;
};

/* Appends "JOB-ROLE-INDEX", from the second attempt on with "-ATTEMPT". */
void kube_job_pod_name(const struct kube_job *job, const struct kube_job_task *task, struct str *to);
/* Returns the scheduler name of the role's pods: the template's if it is one of ours, else our first. */
const char *kube_job_scheduler(const struct kube_job *job, size_t role, const char *const *ours, size_t len);
/* Returns the pod on its node, owned by the job; with `task` NULL, a pod for the dry run of the role. */
json_t *kube_job_pod(const struct kube_job *job, size_t role, const struct kube_job_task *task, const char *scheduler);
/* Reports whether the job needs the headless Service JOB: it has more than one task. */
bool kube_job_has_service(const struct kube_job *job);
json_t *kube_job_service(const struct kube_job *job);
uint32_t kube_job_tasks(const struct kube_job *job);
