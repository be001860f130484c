/* control_parts.h - the inside of a control; for its own files only. */
#pragma once

#include "base/vec.h"
#include "control/control.h"
#include "control/event.h"
#include "control/idempotency.h"
#include "control/lease.h"
#include "control/limit.h"
#include "control/metrics.h"
#include "control/scheduler.h"
#include "control/watch.h"

struct control {
    struct control_env env;
    struct control_options options;
    struct store *store;
    struct store_watch *watch;
    struct state *state;
    struct watch_hub *hub;
    struct metrics *metrics;
    struct scheduler *scheduler;
    struct limits *limits;
    struct events *events;
    struct leases *leases;
    int64_t now_ns;     /* the latest that any decision was made at */
    int64_t swept_ns;   /* steady: when the housekeeping last ran */
    size_t calls;       /* not yet answered */
    struct arena spare; /* for the next request */
    bool stopping;
    char broken[256]; /* why nothing may be changed any more; "": all is well */
};

/* The wall clock, never going back. */
int64_t control_now_ns(struct control *c);
