/* batch.h - splits the actions of a plan into commit batches, which are committed one after another.
 *
 * A commit batch is a gang, a reservation together with the stops it waits for, or up to BATCH_ACTIONS_MAX other
 * actions. All batches of a plan are assumed in the cluster when the plan is made. Each batch is submitted when the
 * previous one is done. A batch is in conflict if another writer has changed an object that the batch depends on. Pods
 * of a job that has ended, or that the batch itself ends, are left out. A failed batch is rolled back in the cluster,
 * together with the batches of later plans that build on it; the next plan places its pods again.
 */
#pragma once

#include "control/control_parts.h"
#include "control/sched/scheduler.h"

struct batches;

/* The inputs of a plan, for the revision guards and the journal. */
struct batch_basis {
    uint64_t cycle, revision, state_hash, plan_hash, seed;
    int64_t now_ns;
    uint32_t kinds[KINDS]; /* lower half of the state's hash, per kind of document */
    const char *profile;
    struct str assumed; /* JSON array of the changes assumed at the freeze: [[op, id, now, document or null], ...] */
};

struct batches *batches_new(struct control *control, void (*idle)(void *ctx), void *ctx);
void batches_free(struct batches *u);

/* Assumes and queues every action and fact of the plan. Takes ownership of `basis->assumed`. Returns the number of
 * batches. */
size_t batches_add(struct batches *u, struct berth_plan *plan, struct batch_basis *basis);
/* Returns the number of batches that are queued or being committed. */
size_t batches_len(const struct batches *u);
/* Appends a JSON array of the currently assumed changes. */
void batches_assumed(const struct batches *u, struct str *to);
/* What failed since the last call. BATCHES_CONFLICT: a batch met a conflict; plan again at once. BATCHES_STORE_FAILED:
 * the store refused a commit. */
enum batches_failure { BATCHES_OK, BATCHES_CONFLICT, BATCHES_STORE_FAILED };
enum batches_failure batches_failure(struct batches *u);
/* Returns a counter that grows whenever an assumed change is rolled back: a plan frozen earlier counts on that
 * change. */
uint64_t batches_rolled_back(const struct batches *u);
