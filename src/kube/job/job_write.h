/* job_write.h - API requests for jobs: creating and deleting pods, the Service, the status; and dry runs of pods.
 *
 * If the creation of a pod has an unknown outcome (lost answer, name exists), the pod is looked up: a pod of the same
 * job, task and attempt is ours, whichever process created it. This module makes no decisions.
 */
#pragma once

#include <jansson.h>

#include "kube/client/api.h"
#include "kube/sched/write.h"

struct kube_job_writer;

struct kube_job_ref {
    const char *namespace, *name, *uid; /* of the job */
};

/* The outcome of a request. Delivered once for each call below, never from within it. */
struct kube_job_answer {
    struct kube_job_ref job;
    uint64_t ticket;             /* the caller's */
    enum kube_write_result fate; /* of a created pod: KUBE_TAKEN means that it exists on another node */
    const char *text;            /* error text; "" if none */
    const char *uid;             /* of a created pod; "" if unknown */
    const char *name;            /* of that pod */
    const char *body;            /* of a dry run: the pod as the API server would create it, in its envelope */
    size_t body_len;
};
typedef void kube_job_done(void *ctx, const struct kube_job_answer *answer);

struct kube_job_writer *kube_job_writer_new(struct kube_api *api, void *ctx);
void kube_job_writer_free(struct kube_job_writer *w); /* no callbacks for requests under way; accepts NULL */

/* Dry run: the pod is not stored. */
void kube_job_dry_run(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *pod, uint64_t ticket,
                      kube_job_done *done);
void kube_job_create_pod(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *pod, uint64_t ticket,
                         kube_job_done *done);
/* Deletes the pod if it still has this uid; KUBE_GONE if it does not exist. */
void kube_job_delete_pod(struct kube_job_writer *w, const struct kube_job_ref *job, const char *pod, const char *uid,
                         uint64_t ticket, kube_job_done *done);
/* Creates the Service; an existing one counts as success. */
void kube_job_create_service(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *service,
                             kube_job_done *done);
/* Writes the status as a merge patch; `late`: at the lowest rank of requests. */
void kube_job_write_status(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *status, bool late,
                           kube_job_done *done);
/* Deletes the job and, with it, the objects it owns. */
void kube_job_delete(struct kube_job_writer *w, const struct kube_job_ref *job, kube_job_done *done);
