/* history.h - what a daemon's journal tells of the past: jobs with their submissions, estimates and real run times, the nodes they
 * ran on, and how long they waited.
 *
 * So that it can be played again under another policy or on another cluster. Jobs that ran are taken, also those that were removed
 * since; what still runs at the end of the journal counts as ended there. Tasks that need not start together are jobs of their own.
 * An elastic job stays elastic: it needs its minimum to start, and each of its tasks held its place for its own time.
 * Nodes are those of the end. Apps and virtual machines are left out: the cluster is as if jobs had it alone.
 */
#pragma once

#include <jansson.h>

#include "journal/reader.h"
#include "sim/report/side.h"

/* One of these words and what it must be: "user=ann". */
struct sim_drop {
    const char *what, *value; /* user, group, queue, name or node */
};

/* Where and when a task ran. */
struct sim_history_place {
    uint32_t node; /* an index of the fleet's nodes; UINT32_MAX: the node is gone */
    int64_t start_ns, end_ns;
};

struct sim_history {
    struct sim_trace trace;
    struct sim_fleet fleet;
    json_t *docs; /* of nodes: what the fleet's texts point into */
    struct sim_history_run {
        int64_t start_ns, end_ns;
        size_t places, places_len; /* where its tasks stood: a range of `places` */
    } * runs;                      /* [job of the trace] */
    VEC(struct sim_history_place) places;
    size_t unrun, dropped, running; /* jobs that never ran, were left out, still run */
};

int sim_drop_parse(const char *text, struct sim_drop *ret, char buf[static 256], struct berth_err *err);

struct sim_history_options {
    const struct sim_drop *drops;
    size_t drops_len;
    int64_t from_ns, to_ns; /* only jobs submitted from then on, and up to then; 0: no bound */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

/* -EBADMSG for a record that cannot be read, -ENOENT where no job ever ran. On failure *h is empty. */
int sim_history_read(struct journal *j, const struct sim_history_options *o, struct sim_history *h,
                     struct berth_err *err);
void sim_history_done(struct sim_history *h);
/* A side that is what was: its label is "recorded". */
void sim_history_side(const struct sim_history *h, struct sim_side *s);
