/* scheduler.h - the loop that decides: wait, freeze, plan, commit in units, again.
 *
 * It sleeps until something in the cluster changed, the moment the last plan named, or ten seconds. State unchanged before
 * that moment: nothing to do. Plan unchanged and empty: nothing to write. Else the plan's actions are assumed in the
 * cluster at once (so the next plan counts them) and committed in units: a gang, a replacement, or up to a hundred actions;
 * each unit leaves every invariant true and is guarded by the workloads, nodes, instances and ledgers it rests on. A
 * unit in conflict is given back and planned again; the others stand. One plan at a time is being made, on whatever
 * thread control_env.run offers, while commits of the last one are still under way.
 */
#pragma once

#include "control/state/state.h"

struct control;
struct scheduler;

enum { UNIT_ACTIONS_MAX = 100 };

struct scheduler *scheduler_new(struct control *control);
void scheduler_free(struct scheduler *s);

/* Something that a plan may depend on was committed. */
void scheduler_wake(struct scheduler *s);
/* Makes a plan if it is time; tells when to be called again (steady time). */
int64_t scheduler_step(struct scheduler *s, int64_t steady_ns);
/* No new plans; what the one being made wants is not done. Those who were to be called back are. */
void scheduler_stop(struct scheduler *s);

/* Calls back once after the next plan that includes everything committed so far, its units committed or failed. */
typedef void scheduler_planned(void *ctx);
void scheduler_force(struct scheduler *s, scheduler_planned *planned, void *ctx);

struct scheduler_seen {
    uint64_t cycles, plans, hash;
    uint64_t revision; /* the last plan was made from */
    int64_t now_ns;    /* of the last plan */
    int64_t recheck_ns;
    size_t placed, pending, actions;
    size_t assumed; /* instances not yet committed */
    size_t units;   /* of plans that were made, not yet committed */
    bool alarm;
    double seconds; /* of the last plan */
};
struct scheduler_seen scheduler_seen(const struct scheduler *s);
/* Why pods of a workload wait, by the last plan. False: none wait. Valid until the next plan. */
bool scheduler_pending(struct scheduler *s, const char *workload, struct berth_pending *ret);
/* Since when every plan has left pods of it over: the moment of the first of these plans; 0: of the first plan that
 * this daemon made, or none does. */
int64_t scheduler_pending_since_ns(const struct scheduler *s, const char *workload);
/* Calls back for what waits by the last plan, `cap` at most: for every n-th where there is more. Returns how many there are. */
size_t scheduler_waits(const struct scheduler *s, size_t cap, void (*tell)(void *ctx, const char *workload), void *ctx);
/* The profile that the settings name, a stored one or one built in, and its name; in the arena. */
const struct berth_profile *scheduler_profile(const struct state *s, struct arena *arena, const char **ret_name);
/* A plan is being made. */
bool scheduler_planning(const struct scheduler *s);
