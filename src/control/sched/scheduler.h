/* scheduler.h - the scheduling loop: wait, freeze, plan, commit in batches, repeat.
 *
 * The loop sleeps until the cluster changes, until the time that the last plan named, or for ten seconds. It makes no
 * plan while the state is unchanged before that time, and writes nothing if the plan is empty. Otherwise the plan's
 * actions are assumed in the cluster at once, so that the next plan counts them, and are committed in batches: a gang,
 * a replacement, or up to a hundred actions. Each batch keeps every invariant and is guarded by the revisions of the
 * workloads, nodes, instances and ledgers it depends on. A batch in conflict is rolled back and planned again; the
 * other batches stay. Only one plan is made at a time, on a thread that control_env.run provides, while the previous
 * plan's commits may still be in progress.
 */
#pragma once

#include "control/state/state.h"

struct control;
struct scheduler;

enum { BATCH_ACTIONS_MAX = 100 };

struct scheduler *scheduler_new(struct control *control);
void scheduler_free(struct scheduler *s);

/* Tells the scheduler that a change was committed on which a plan may depend. */
void scheduler_wake(struct scheduler *s);
/* Makes a plan if one is due. Returns when to call again (steady time). */
int64_t scheduler_step(struct scheduler *s, int64_t steady_ns);
/* Starts no new plan and discards the plan being made. Runs the callbacks of scheduler_force. */
void scheduler_stop(struct scheduler *s);

/* Calls back once, after the batches of the next plan that includes everything committed so far are committed or have
 * failed. */
typedef void scheduler_planned_fn(void *ctx);
void scheduler_force(struct scheduler *s, scheduler_planned_fn *planned, void *ctx);

struct scheduler_status {
    uint64_t cycles, plans, hash;
    uint64_t revision; /* state revision of the last plan */
    int64_t now_ns;    /* time of the last plan */
    int64_t recheck_ns;
    size_t placed, pending, actions;
    size_t assumed; /* instances that are not yet committed */
    size_t batches; /* batches that are not yet committed */
    bool alarm;
    double seconds; /* duration of the last plan */
};
struct scheduler_status scheduler_status(const struct scheduler *s);
/* Gets why pods of a workload wait, by the last plan. Returns false if none wait. `ret` is valid until the next
 * plan. */
bool scheduler_pending(struct scheduler *s, const char *workload, struct berth_pending *ret);
/* Returns the time of the first plan since which every plan has left pods of the workload unplaced. 0: no pods are
 * unplaced, or they have been unplaced since the first plan of this daemon. */
int64_t scheduler_pending_since_ns(const struct scheduler *s, const char *workload);
/* Calls back for at most `cap` workloads that wait by the last plan, evenly sampled if there are more. Returns how many
 * wait. */
size_t scheduler_each_waiting(const struct scheduler *s, size_t cap, void (*tell)(void *ctx, const char *workload),
                              void *ctx);
/* Returns the profile that the settings name, stored or built in, and its name; in the arena. */
const struct berth_profile *scheduler_profile(const struct state *s, struct arena *arena, const char **ret_name);
/* Returns whether a plan is being made. */
bool scheduler_planning(const struct scheduler *s);
