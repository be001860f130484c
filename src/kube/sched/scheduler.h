/* scheduler.h - the scheduling loop of a Kubernetes cluster: freeze, plan, assume, write.
 *
 * After any change the core plans all pending pods at once. Placed pods are assumed in the cache (kube/cache/cache.h)
 * and bound (kube/sched/write.h) while the next plan is already being made. A failed binding is given back and the pod
 * waits, longer each time. A preemption victim is deleted once; the pod it makes room for is nominated, holds a
 * reservation, and is bound when the victims are gone. The reason why a pod is pending is written to its condition when
 * it differs from the one written before. Decisions are made only while `leads` returns true.
 */
#pragma once

#include "base/log.h"
#include "kube/cache/cache.h"
#include "kube/client/event.h"
#include "kube/job/job_controller.h"
#include "kube/journal/journal.h"
#include "kube/sched/profile.h"
#include "kube/sched/write.h"

struct kube_scheduler;

struct kube_scheduler_config {
    struct loop *loop;
    struct kube_api *api;
    struct cache *cache;
    struct tenants *tenants;      /* queues and policies; NULL: none */
    struct kube_jobs *jobs;       /* NULL: none */
    struct kube_events *events;   /* NULL: no events are written */
    struct kube_journal *journal; /* records decisions and their inputs; NULL: no journal */
    const struct log *log;
    const struct kube_profiles *profiles; /* must outlive the scheduler */
    bool (*leads)(void *ctx);
    void *ctx;
};

struct kube_scheduler *kube_scheduler_new(const struct kube_scheduler_config *config);
void kube_scheduler_free(struct kube_scheduler *s); /* accepts NULL */
/* To be called when the cluster or the leadership changed. */
void kube_scheduler_wake(struct kube_scheduler *s);

struct kube_scheduler_stats {
    uint64_t plans, placed, bound, failed, preempted;
    size_t pending, assumed; /* pending in the last plan; assumed but not bound yet */
    double seconds;          /* total time spent planning */
    int64_t last_ns;         /* duration of the last plan */
};
struct kube_scheduler_stats kube_scheduler_stats(const struct kube_scheduler *s);
/* The same for pods with the i-th scheduler name of the profiles. */
struct kube_name_stats {
    uint64_t placed, bound, failed, preempted;
};
struct kube_name_stats kube_scheduler_name_stats(const struct kube_scheduler *s, size_t i);
