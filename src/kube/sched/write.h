/* write.h - writes decisions to the API server: bindings, deletions of victims, nominations, conditions.
 *
 * Every write names the uid of its pod: a pod that was deleted and created again under the same name is not touched. A
 * binding with an unknown outcome (lost answer, conflict) is looked up before its result is reported, so that a bound
 * pod never counts as unbound. This module makes no decisions.
 */
#pragma once

#include "kube/client/api.h"

struct kube_writer;

struct kube_pod_ref {
    const char *namespace, *name, *uid;
};

enum kube_write_result {
    KUBE_DONE,
    KUBE_TAKEN,  /* of a binding: the pod is bound to another node */
    KUBE_GONE,   /* the pod no longer exists */
    KUBE_FAILED, /* nothing was written; may be tried again later */
};

/* Called once for each call below that takes a ticket, never from within it. `ticket` is the caller's. */
typedef void kube_written(void *ctx, uint64_t ticket, enum kube_write_result fate, const char *text);

struct kube_writer *kube_writer_new(struct kube_api *api, kube_written *written, void *ctx);
/* No callback is made for requests under way; accepts NULL. */
void kube_writer_free(struct kube_writer *w);

void kube_bind(struct kube_writer *w, const struct kube_pod_ref *pod, const char *node, uint64_t ticket);
/* Writes a DisruptionTarget condition with the reason, then deletes the pod with its own grace period. */
void kube_preempt_pod(struct kube_writer *w, const struct kube_pod_ref *pod, const char *why, uint64_t ticket);
/* Sets status.nominatedNodeName; "": clears it. No callback. */
void kube_nominate(struct kube_writer *w, const struct kube_pod_ref *pod, const char *node);
/* Sets PodScheduled=False with a reason ("Unschedulable", "SchedulingGated") and a message. No callback. */
void kube_mark_unschedulable(struct kube_writer *w, const struct kube_pod_ref *pod, const char *reason,
                             const char *text);

struct kube_writer_stats {
    uint64_t bound, failed, looked_up; /* bindings; looked_up: those of unknown outcome */
    size_t under_way;                  /* bindings in progress */
};
struct kube_writer_stats kube_writer_stats(const struct kube_writer *w);
