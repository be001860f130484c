/* plan_view.h - prints a plan: a table of actions, pending work with reasons, and a summary line. */
#pragma once

#include "berth.h"
#include "cli/lib/cli.h"

struct plan_view {
    const struct cli *cli;
    struct berth_plan *plan;
    uint64_t nodes; /* of the cluster */
    bool all;       /* prints every action and every pending workload */
};

/* Prints the actions; groups them if there are more than fit on a screen, unless `all`. */
void plan_view_actions(const struct plan_view *v);
/* Prints counts by action and cause. */
void plan_view_counts(const struct plan_view *v);
/* Prints each workload with pending pods: every reason with its number of nodes. */
void plan_view_pending(const struct plan_view *v);
/* Prints "Planned 37 actions for 40 nodes in 0.2 ms; 2 pods pending." */
void plan_view_summary(const struct plan_view *v, double seconds, int64_t now_ns);

/* Prints one pending workload; `full` adds how many nodes are rejected for one reason only. */
void plan_view_reasons(const struct plan_view *v, const struct berth_pending *pending, bool full);

/* Writes what an action says beyond pod and node: "replaces #12", "waits for #3, #4". Returns buf. */
const char *action_note(const struct berth_action *action, char *buf, size_t size);

uint64_t plan_pending_pods(struct berth_plan *plan);
