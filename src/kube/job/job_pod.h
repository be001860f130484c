/* job_pod.h - what is made for a job on the API server, as JSON: the pods of its tasks, and the Service that names them to each other.
 *
 * A function of the job alone, so that whoever makes a pod twice makes the same one: names say task and attempt. Nothing is sent here.
 */
#pragma once

#include <jansson.h>

#include "base/str.h"
#include "kube/job/job.h"

/* What distinguishes the pods of a role. */
struct kube_job_task {
    size_t role;
    uint32_t ordinal, attempt; /* from 0; from 1 */
    const char *node;
};

/* "JOB-ROLE-INDEX", from the second attempt on with "-ATTEMPT". */
void kube_job_pod_name(const struct kube_job *job, const struct kube_job_task *task, struct str *to);
/* Who places its pods: the template may name one of ours; else it is the first. */
const char *kube_job_scheduler(const struct kube_job *job, size_t role, const char *const *ours, size_t len);
/* The pod, on its node, owned by the job; without a task one that only shows what the API server would make of a pod of this role. */
json_t *kube_job_pod(const struct kube_job *job, size_t role, const struct kube_job_task *task, const char *scheduler);
/* Needed where a job has more than one task: the headless Service JOB. */
bool kube_job_has_service(const struct kube_job *job);
json_t *kube_job_service(const struct kube_job *job);
uint32_t kube_job_tasks(const struct kube_job *job);
