/* history.h - extracts the past from a daemon's journal: jobs with their submissions, estimates and actual run times,
 * the nodes they ran on, and their waiting times.
 *
 * The result can be simulated with another policy or on another cluster. Jobs that ran are included, also deleted ones.
 * Jobs that still run at the end of the journal are treated as ended there. Tasks that need not start together become
 * separate jobs. An elastic job stays elastic: it needs its minimum to start, and each of its tasks ran for its own
 * time. Nodes are those at the end of the journal. Apps and virtual machines are left out, as if only jobs used the
 * cluster.
 */
#pragma once

#include <jansson.h>

#include "journal/reader.h"
#include "sim/report/side.h"

/* Jobs or a node to leave out, for example "user=ann". */
struct sim_exclusion {
    const char *what, *value; /* what: user, group, queue, name or node */
};

/* Node and time of a task. */
struct sim_history_task {
    uint32_t node; /* index in the fleet's nodes; UINT32_MAX: the node was deleted */
    int64_t start_ns, end_ns;
};

struct sim_history {
    struct sim_trace trace;
    struct sim_fleet fleet;
    json_t *docs; /* documents of nodes, which own the texts of the fleet */
    struct sim_history_run {
        int64_t start_ns, end_ns;
        size_t places, places_len; /* range in `places` of the job's tasks */
    } * runs;                      /* indexed by job of the trace */
    VEC(struct sim_history_task) places;
    size_t unrun, dropped, running; /* numbers of jobs that never ran, were left out, still run */
};

int sim_exclusion_parse(const char *text, struct sim_exclusion *ret, char buf[static 256], struct berth_err *err);

struct sim_history_options {
    const struct sim_exclusion *drops;
    size_t drops_len;
    int64_t from_ns, to_ns; /* only jobs submitted in this range; 0: no bound */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

/* Reads a journal. Returns -EBADMSG for an unreadable record, -ENOENT if no job ever ran. On failure *h is empty. */
int sim_history_read(struct journal *j, const struct sim_history_options *o, struct sim_history *h,
                     struct berth_err *err);
void sim_history_done(struct sim_history *h);
/* Makes a side of the recorded past, with the label "recorded". */
void sim_history_side(const struct sim_history *h, struct sim_side *s);
