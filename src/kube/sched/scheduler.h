/* scheduler.h - the loop that decides for a Kubernetes cluster: freeze, plan, assume, write; again.
 *
 * Whenever something changed, all that waits is planned at once by the core; what is placed is assumed in the projection
 * (kube/cache/cache.h) and bound (kube/sched/write.h) while the next plan is already being made. A binding that fails is given back and the pod
 * waits, each time for longer. Pods that give way for others are told once; whom they give way for is nominated, holds its place, and is bound when
 * they are gone. Why a pod finds no place is written to it when it differs from what was written before.
 *
 * Only while `leads` says so is anything decided.
 */
#pragma once

#include "base/log.h"
#include "kube/cache/cache.h"
#include "kube/client/event.h"
#include "kube/job/job_life.h"
#include "kube/journal/journal.h"
#include "kube/sched/profile.h"
#include "kube/sched/write.h"

struct kube_scheduler;

struct kube_scheduler_config {
    struct loop *loop;
    struct kube_api *api;
    struct project *project;
    struct tenants *tenants;      /* queues and policies; NULL: none */
    struct kube_jobs *jobs;       /* NULL: none */
    struct kube_events *events;   /* NULL: none are written */
    struct kube_journal *journal; /* of what is decided, and from what; NULL: none is kept */
    const struct log *log;
    const struct kube_profiles *profiles; /* outlive it */
    bool (*leads)(void *ctx);
    void *ctx;
};

struct kube_scheduler *kube_scheduler_new(const struct kube_scheduler_config *config);
void kube_scheduler_free(struct kube_scheduler *s); /* NULL is fine */
/* Something changed: the cluster, or who leads. */
void kube_scheduler_wake(struct kube_scheduler *s);

struct kube_scheduler_stats {
    uint64_t plans, placed, bound, failed, preempted;
    size_t pending, assumed; /* by the last plan; not yet bound */
    double seconds;          /* in plans, in all */
    int64_t last_ns;         /* the last plan took */
};
struct kube_scheduler_stats kube_scheduler_stats(const struct kube_scheduler *s);
/* The same of pods with the i-th name of the profiles. */
struct kube_name_stats {
    uint64_t placed, bound, failed, preempted;
};
struct kube_name_stats kube_scheduler_name_stats(const struct kube_scheduler *s, size_t i);
