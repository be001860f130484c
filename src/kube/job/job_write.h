/* job_write.h - what the life of a job becomes on the API server: pods made and deleted, a Service, a status; and what would be made of a pod.
 *
 * A pod whose making is in doubt (the answer was lost, or one of that name is there) is looked up: one of the same job, task and attempt is ours,
 * whoever sent it. Nothing here decides.
 */
#pragma once

#include <jansson.h>

#include "kube/client/api.h"
#include "kube/sched/write.h"

struct kube_job_writer;

struct kube_job_ref {
    const char *namespace, *name, *uid; /* of the job */
};

/* How it went. Once for each call below, never from within it. */
struct kube_job_answer {
    struct kube_job_ref job;
    uint64_t ticket;     /* the caller's own */
    enum kube_fate fate; /* of a pod that was made: KUBE_TAKEN, it is there on another node */
    const char *text;    /* why not; "" */
    const char *uid;     /* of a pod that was made; "" where that is not known */
    const char *name;    /* of that pod */
    const char *body;    /* of a trial: the pod as the API server would make it, in its envelope */
    size_t body_len;
};
typedef void kube_job_done(void *ctx, const struct kube_job_answer *answer);

struct kube_job_writer *kube_job_writer_new(struct kube_api *api, void *ctx);
void kube_job_writer_free(struct kube_job_writer *w); /* nothing is told of what is under way; NULL is fine */

/* The pod is not stored. */
void kube_job_try(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *pod, uint64_t ticket,
                  kube_job_done *done);
void kube_job_make(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *pod, uint64_t ticket,
                   kube_job_done *done);
/* Of a pod of this uid alone; KUBE_GONE where it is not there any more. */
void kube_job_remove(struct kube_job_writer *w, const struct kube_job_ref *job, const char *pod, const char *uid,
                     uint64_t ticket, kube_job_done *done);
/* One that is there already is as good. */
void kube_job_serve(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *service,
                    kube_job_done *done);
/* The status as a merge patch; `late`: everything else goes first. */
void kube_job_tell(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *status, bool late,
                   kube_job_done *done);
/* The job itself goes, and what it owns. */
void kube_job_delete(struct kube_job_writer *w, const struct kube_job_ref *job, kube_job_done *done);
