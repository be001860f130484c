/* monitor.h - the health and metrics endpoint: /healthz, /readyz and /metrics (Prometheus), without TLS and without
 * secrets.
 */
#pragma once

#include "kube/sched/scheduler.h"
#include "kube/webhook/webhook.h"

struct kube_monitor;

struct kube_numbers {
    struct kube_scheduler_stats scheduler;
    const struct kube_scheduler *of; /* its statistics per scheduler name are shown */
    const struct kube_profiles *profiles;
    struct kube_api_stats api;
    struct kube_events_stats events;
    struct kube_jobs_stats jobs;
    struct kube_watch_stats watches[CACHE_KINDS];
    size_t objects[CACHE_KINDS];
    struct kube_journal_stats journal;
    struct kube_webhook_stats webhook;
    bool leads, has_journal, has_webhook; /* a journal, and a webhook, are configured */
};

/* Listens at "ADDRESS:PORT"; calls `numbers` and `ready` for each request. */
int kube_monitor_new(struct loop *l, const char *listen, bool (*ready)(void *ctx),
                     void (*numbers)(void *ctx, struct kube_numbers *ret), void *ctx, struct kube_monitor **ret,
                     struct berth_err *err);
void kube_monitor_free(struct kube_monitor *m); /* accepts NULL */
