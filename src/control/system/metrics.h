/* metrics.h - metrics for Prometheus, in one table.
 *
 * To add a metric: a member here and a row in metrics.c (name, kind, help).
 */
#pragma once

#include "base/str.h"

enum metric {
    METRIC_REQUESTS,         /* counter; by status class: label 1 to 5 */
    METRIC_REQUEST_SECONDS,  /* histogram */
    METRIC_COMMITS,          /* counter: transactions by label 0: ok, 1: conflict, 2: failed */
    METRIC_COMMIT_SECONDS,   /* histogram: from submission to durable */
    METRIC_CYCLES,           /* counter; label 0: planned, 1: unchanged state, 2: unchanged plan */
    METRIC_CYCLE_SECONDS,    /* histogram: freeze and plan */
    METRIC_ACTIONS,          /* counter; label: enum berth_op */
    METRIC_PLACE_SECONDS,    /* histogram: from submission to placement durable */
    METRIC_UNITS_CONFLICT,   /* counter */
    METRIC_PENDING,          /* gauge: pods */
    METRIC_NODES,            /* gauge; label: enum berth_node_state */
    METRIC_INSTANCES,        /* gauge; label: enum berth_state */
    METRIC_OBJECTS,          /* gauge; label: enum kind */
    METRIC_REVISION,         /* gauge */
    METRIC_STORE_BYTES,      /* gauge */
    METRIC_WATCHERS,         /* gauge */
    METRIC_REPORTS,          /* counter; label 0: accepted, 1: stale */
    METRIC_AUTH_FAILURES,    /* counter */
    METRIC_RATE_LIMITED,     /* counter */
    METRIC_JOURNAL_SEGMENTS, /* counter */
    METRIC_JOURNAL_SECONDS,  /* histogram: CPU time of making segments */
    METRIC_CLOCK_AHEAD,      /* gauge */
    METRIC_ALARM,            /* gauge; label: enum alarm */
    METRICS
};

struct metrics;
struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);
void metric_add(struct metrics *m, enum metric metric, unsigned label, uint64_t n);
void metric_set(struct metrics *m, enum metric metric, unsigned label, double value);
void metric_observe(struct metrics *m, enum metric metric, int64_t ns);
/* Writes all metrics in the text format of Prometheus. */
void metrics_write(const struct metrics *m, struct str *to);
