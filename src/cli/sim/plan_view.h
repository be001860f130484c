/* plan_view.h - a plan as people read it: a table of actions, what is pending and why, one line in the end. */
#pragma once

#include "berth.h"
#include "cli/lib/cli.h"

struct plan_view {
    const struct cli *cli;
    struct berth_plan *plan;
    uint64_t nodes; /* of the cluster */
    bool all;       /* every action and every pending workload, however many */
};

/* The actions; more than fit on a screen are folded unless `all`. */
void plan_view_actions(const struct plan_view *v);
/* Counts by action and cause. */
void plan_view_counts(const struct plan_view *v);
/* Each workload with pods left over: every reason with its nodes. */
void plan_view_pending(const struct plan_view *v);
/* "Planned 37 actions for 40 nodes in 0.2 ms; 2 pods pending." */
void plan_view_summary(const struct plan_view *v, double seconds, int64_t now_ns);

/* One pending workload; in full also says how many nodes refuse for one reason only. */
void plan_view_reasons(const struct plan_view *v, const struct berth_pending *pending, bool full);

/* What an action says beyond its pod and node: "takes over from #12", "waits for #3, #4". Returns buf. */
const char *action_note(const struct berth_action *action, char *buf, size_t size);

uint64_t plan_pending_pods(struct berth_plan *plan);
