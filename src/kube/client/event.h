/* event.h - Events about objects (events.k8s.io/v1), for `kubectl describe`: written beside everything else, and the first to be left out.
 *
 * The queue is bounded: when it is full the oldest is dropped and counted, and bindings never wait for an event. The same
 * thing said again of the same object within six minutes is no second Event but a series on the first, whose count is
 * written at most every `series_ns`; how often it was said since then is lost if it is not said again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/client/api.h"

struct kube_events;

struct kube_events_config {
    struct kube_api *api;
    struct loop *loop;
    const char *controller;        /* reportingController: the scheduler's name, where an event has none of its own */
    const char *instance;          /* reportingInstance: "berth-kube-HOST" */
    size_t queue_max;              /* waiting to be written; 0: 4096 */
    size_t under_way_max;          /* requests at a time; 0: 24 */
    int64_t series_ns;             /* 0: 30 s */
    int64_t (*wall_ns)(void *ctx); /* since 1970; NULL: the system's clock */
    void *ctx;
};

struct kube_event {
    const char *controller;                       /* in place of the usual one; NULL: that */
    const char *kind, *api_version;               /* of the object it is about; "Pod", "v1" */
    const char *namespace, *name, *uid, *version; /* of the same; version may be NULL */
    bool warning;                                 /* type Warning instead of Normal */
    const char *reason;                           /* "FailedScheduling", "Scheduled", "Preempted" */
    const char *action;                           /* "Scheduling", "Binding", "Preempting" */
    const char *note;                             /* at most 1024 bytes; longer ones are cut */
    const char *related_kind, *related_namespace, *related_name, *related_uid; /* another object; NULL: none */
};

struct kube_events *kube_events_new(const struct kube_events_config *config);
void kube_events_free(struct kube_events *e); /* what waits is dropped; NULL is fine */
/* Copies. Never fails and never waits. */
void kube_events_add(struct kube_events *e, const struct kube_event *event);

struct kube_events_stats {
    uint64_t added, written, repeated, dropped, failed;
    size_t waiting, under_way;
};
struct kube_events_stats kube_events_stats(const struct kube_events *e);
