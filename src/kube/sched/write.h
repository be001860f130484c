/* write.h - what a decision becomes on the API server: a binding, the deletion of a pod that gives way, a nomination, a condition.
 *
 * Everything is about one pod of one uid: of one that was deleted and made again under its name nothing is written. A binding whose
 * outcome is not known (the answer was lost, somebody was faster) is looked up before anything is told of it, so that what
 * is bound is never taken for free. Nothing here decides.
 */
#pragma once

#include "kube/client/api.h"

struct kube_writer;

struct kube_pod_ref {
    const char *namespace, *name, *uid;
};

enum kube_fate {
    KUBE_DONE,
    KUBE_TAKEN,  /* of a binding: the pod is bound, to another node */
    KUBE_GONE,   /* there is no such pod any more */
    KUBE_FAILED, /* and nothing was written; it may be tried again later */
};

/* Once for each call below, never from within it. `ticket` is the caller's own. */
typedef void kube_written(void *ctx, uint64_t ticket, enum kube_fate fate, const char *text);

struct kube_writer *kube_writer_new(struct kube_api *api, kube_written *written, void *ctx);
/* Nothing is told of what is under way; NULL is fine. */
void kube_writer_free(struct kube_writer *w);

void kube_bind(struct kube_writer *w, const struct kube_pod_ref *pod, const char *node, uint64_t ticket);
/* With a condition DisruptionTarget that says for whom, then by deletion with its own grace period. */
void kube_give_way(struct kube_writer *w, const struct kube_pod_ref *pod, const char *why, uint64_t ticket);
/* status.nominatedNodeName; "": none any more. Nobody is told. */
void kube_nominate(struct kube_writer *w, const struct kube_pod_ref *pod, const char *node);
/* PodScheduled=False with a reason ("Unschedulable", "SchedulingGated") and a sentence. Nobody is told. */
void kube_refuse(struct kube_writer *w, const struct kube_pod_ref *pod, const char *reason, const char *text);

struct kube_writer_stats {
    uint64_t bound, failed, looked_up; /* bindings; of which the last were in doubt */
    size_t under_way;                  /* bindings */
};
struct kube_writer_stats kube_writer_stats(const struct kube_writer *w);
