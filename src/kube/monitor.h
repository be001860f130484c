/* monitor.h - is it alive, is it ready, what has it done: /healthz, /readyz and /metrics (Prometheus), without TLS and without secrets. */
#pragma once

#include "kube/sched/scheduler.h"
#include "kube/webhook/webhook.h"

struct kube_monitor;

struct kube_numbers {
    struct kube_scheduler_stats scheduler;
    const struct kube_scheduler *of; /* with numbers for each name of */
    const struct kube_profiles *profiles;
    struct kube_api_stats api;
    struct kube_events_stats events;
    struct kube_jobs_stats jobs;
    struct kube_watch_stats watches[PROJECT_KINDS];
    size_t objects[PROJECT_KINDS];
    struct kube_journal_stats journal;
    struct kube_webhook_stats webhook;
    bool leads, journalled, judges; /* a journal and a webhook are asked for */
};

/* Listens at "ADDRESS:PORT"; `numbers` and `ready` are asked for each request. */
int kube_monitor_new(struct loop *l, const char *listen, bool (*ready)(void *ctx),
                     void (*numbers)(void *ctx, struct kube_numbers *ret), void *ctx, struct kube_monitor **ret,
                     struct berth_err *err);
void kube_monitor_free(struct kube_monitor *m); /* NULL is fine */
