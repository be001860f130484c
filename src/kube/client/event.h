/* event.h - Events about objects (events.k8s.io/v1), shown by `kubectl describe`: written at low priority, dropped
 * first.
 *
 * The queue is bounded: when it is full, the oldest event is dropped and counted; bindings never wait for events. An
 * event repeated for the same object within six minutes is not a new Event but a series on the first one. The series
 * count is written at most every `series_ns`; repeats after the last write are lost if no further repeat follows.
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
    const char *controller;        /* reportingController: the scheduler's name, unless an event has its own */
    const char *instance;          /* reportingInstance: "berth-kube-HOST" */
    size_t queue_max;              /* length of the queue; 0: 4096 */
    size_t under_way_max;          /* concurrent requests; 0: 24 */
    int64_t series_ns;             /* 0: 30 s */
    int64_t (*wall_ns)(void *ctx); /* since 1970; NULL: the system's clock */
    void *ctx;
};

struct kube_event {
    const char *controller;                       /* overrides the default controller; NULL: default */
    const char *kind, *api_version;               /* of the object the event is about: "Pod", "v1" */
    const char *namespace, *name, *uid, *version; /* of the same object; version may be NULL */
    bool warning;                                 /* type Warning instead of Normal */
    const char *reason;                           /* "FailedScheduling", "Scheduled", "Preempted" */
    const char *action;                           /* "Scheduling", "Binding", "Preempting" */
    const char *note;                             /* message, cut at 1024 bytes */
    const char *related_kind, *related_namespace, *related_name, *related_uid; /* a related object; NULL: none */
};

struct kube_events *kube_events_new(const struct kube_events_config *config);
void kube_events_free(struct kube_events *e); /* drops queued events; accepts NULL */
/* Copies the event. Never fails and never blocks. */
void kube_events_add(struct kube_events *e, const struct kube_event *event);

struct kube_events_stats {
    uint64_t added, written, repeated, dropped, failed;
    size_t waiting, under_way;
};
struct kube_events_stats kube_events_stats(const struct kube_events *e);
