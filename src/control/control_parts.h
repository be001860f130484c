/* control_parts.h - internals of a control; only for the daemon's own modules. */
#pragma once

#include "base/vec.h"
#include "control/api/fair_queue.h"
#include "control/api/idempotency.h"
#include "control/api/rate_limit.h"
#include "control/control.h"
#include "control/explain/event.h"
#include "control/explain/forecast.h"
#include "control/job/cron.h"
#include "control/job/job.h"
#include "control/job/notification.h"
#include "control/journal/read_log.h"
#include "control/journal/refusals.h"
#include "control/journal/replay_decision.h"
#include "control/journal/sealer.h"
#include "control/node/lease.h"
#include "control/node/node_status.h"
#include "control/optask/optask.h"
#include "control/sched/scheduler.h"
#include "control/session/session.h"
#include "control/state/clock.h"
#include "control/system/alarm.h"
#include "control/system/metrics.h"
#include "control/system/series.h"
#include "control/tenant/usage.h"
#include "control/watch/watch.h"

/* Effective settings: the options of berthd, else the stored settings. */
struct effective_settings {
    int64_t lease_ns, cycle_ns_max;
    uint64_t history_max, seed;
    size_t audit_every;
    double requests_per_s; /* per caller; 0: no limit */
};

struct control {
    struct control_env env;
    struct control_options options;
    struct effective_settings in_force;
    struct store *store;
    struct store_watch *watch;
    struct state *state;
    struct watch_hub *hub;
    struct metrics *metrics;
    struct scheduler *scheduler;
    struct forecast *forecast;
    struct redecision *redecide;
    struct series *series;
    struct job_loop *jobs;
    struct crons *crons;
    struct optask_loop *optasks;
    struct rate_limits *limits;
    struct fair_queue *requests; /* waiting requests */
    bool serve_asked;            /* control_serve has been requested */
    struct event_log *events;
    struct node_leases *leases;
    struct node_statuses *lives;
    struct session_hub *session_hub;
    struct usage_books *books;
    struct notifications *notifications;
    struct read_list *reads;
    struct refusals *refusals;
    struct sealer *sealer; /* NULL: the log is never sealed */
    struct control_agents agents;
    int64_t now_ns;         /* latest time of a decision */
    int64_t now_clock_ns;   /* the same moment, by a clock that never jumps (clock.h) */
    int64_t clock_ahead_ns; /* wall clock less now_ns; 0: they agree */
    struct alarm_state alarms[ALARMS];
    int64_t swept_ns;      /* steady clock: last housekeeping */
    size_t swept[KINDS];   /* next position of the housekeeping, for kinds that are swept in parts */
    size_t calls;          /* unanswered requests */
    struct arena spare;    /* for the next request */
    size_t routed;         /* next position of the routing rules (route_rules.c) */
    int64_t route_next_ns; /* steady clock: next run of the routing rules */
    int64_t probed_ns;     /* steady clock: last probe of the store */
    bool stopping;
    char broken[256]; /* why every change is refused; "": no error */
};

/* Returns why changes are refused at present, as text for clients; NULL: changes are accepted. */
const char *control_refuses(const struct control *c);
