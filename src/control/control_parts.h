/* control_parts.h - the inside of a control; for its own files only. */
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
#include "control/journal/redecide.h"
#include "control/journal/refusals.h"
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

/* What the settings say, unless berthd was started with something else. */
struct in_force {
    int64_t lease_ns, cycle_ns_max;
    uint64_t history_max, seed;
    size_t audit_every;
    double requests_per_s; /* of one caller; 0: no limit */
};

struct control {
    struct control_env env;
    struct control_options options;
    struct in_force in_force;
    struct store *store;
    struct store_watch *watch;
    struct state *state;
    struct watch_hub *hub;
    struct metrics *metrics;
    struct scheduler *scheduler;
    struct forecast *forecast;
    struct redecide *redecide;
    struct series *series;
    struct jobs *jobs;
    struct crons *crons;
    struct optasks *optasks;
    struct limits *limits;
    struct fair_queue *requests; /* that wait for their turn */
    bool serve_asked;            /* control_serve will be called */
    struct events *events;
    struct leases *leases;
    struct node_lives *lives;
    struct relay *relay;
    struct usage_books *books;
    struct notices *notices;
    struct reads *reads;
    struct refusals *refusals;
    struct sealer *sealer; /* NULL: the log stays as it is */
    struct control_agents agents;
    int64_t now_ns;         /* the latest that any decision was made at */
    int64_t now_clock_ns;   /* when that was, by a clock that does not jump (clock.h) */
    int64_t clock_ahead_ns; /* of the wall clock before now_ns; 0: they agree */
    struct alarm_state alarms[ALARMS];
    int64_t swept_ns;      /* steady: when the housekeeping last ran */
    size_t swept[KINDS];   /* where it goes on, of kinds of which it looks at some at a time */
    size_t calls;          /* not yet answered */
    struct arena spare;    /* for the next request */
    size_t routed;         /* where the next look of the rules of routing begins (route_rules.c) */
    int64_t route_next_ns; /* steady: when that is */
    int64_t probed_ns;     /* steady: when it was last tried whether the store takes changes again */
    bool stopping;
    char broken[256]; /* why nothing may be changed any more; "": all is well */
};

/* Why changes are refused at present, for everybody's eyes; NULL: they are taken. */
const char *control_refuses(const struct control *c);
