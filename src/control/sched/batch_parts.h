/* batch_parts.h - internals of commit batches, only for batch.c and the files beside it: the queue of batches
 * (batch.c), steps that are assumed in the cluster and rolled back (batch_assume.c), steps that are left out of a batch
 * (batch_ended_jobs.c), the documents that steps write (batch_build.c), and the quota check of steps (batch_quota.c).
 */
#pragma once

#include "control/journal/batch_record.h"
#include "control/sched/batch.h"
#include "control/sched/batch_ordinals.h"
#include "control/state/change.h"
#include "core/queue/quota_ledger.h"

/* One action or fact, with all data needed to commit it later, when the plan has been freed. */
struct batch_step {
    enum berth_op op;
    enum berth_cause cause;
    const char *workload, *node;
    uint32_t ordinal;
    uint64_t instance;
    json_t *doc;                  /* PLACE, RESERVE: the instance's document; fact: the fact's document; else NULL */
    const char *fact;             /* ID of the fact's document; NULL: the step is an action */
    struct berth_fact remembered; /* the fact itself, if `fact` is set */
    const char *resource;         /* ADJUST only */
    int64_t limit;
    int32_t score, rival;
    bool omitted; /* left out: the pod's job has ended, or the step cannot be built */
};

struct batch {
    struct batch *next;
    struct batches *batches;
    struct arena arena;
    struct batch_basis basis;
    VEC(struct batch_step) steps;
    struct str reasons; /* why pods stay unplaced; set on the plan's first batch */
    struct batch_used_ordinals taken;
    size_t number, of;
    bool whole;  /* all steps are committed, or none */
    bool frees;  /* some step frees resources at once; later batches may use them */
    bool broken; /* the batch is whole and one of its steps could not be assumed */
    /* state_assumption_losses() when the batch was assumed; if the value has changed, the batch is no longer assumed in
     * the cluster */
    uint64_t dropped;
};

struct batches {
    struct control *control;
    void (*idle)(void *ctx);
    void *ctx;
    struct batch *first, *last; /* the first batch is being committed if `submitted` */
    size_t len;
    VEC(uint64_t) own; /* revisions of this queue's own commits, ascending */
    uint64_t returned; /* number of rollbacks that later plans may depend on */
    bool failed, troubled, submitted;
    struct batch_failures failures; /* failures since the last journal record */
};

/* batch_assume.c: assumes an action or a fact in the cluster and adds it to the batch. An action that the cluster no
 * longer has room for is not added. */
void batch_assume(struct batch *u, const struct berth_action *a);
void batch_assume_fact(struct batch *u, const struct berth_fact *fact);
/* Rolls the step back: the cluster shows the documents' state again. */
void batch_step_roll_back(struct batch *u, const struct batch_step *step);
const char *batch_instance_id(struct arena *arena, uint64_t number);

/* batch_ended_jobs.c: marks the steps to be left out (step.vain) by the present state. Returns the number of marked
 * steps. */
size_t batch_mark_ended(struct batch *u);

/* batch_build.c: writes the step into the change. Returns false if an object that the step depends on has changed since
 * the plan was made. */
bool batch_step_build(struct batch *u, struct change *change, const struct batch_step *s);
/* Returns whether the step places or promotes an instance, or makes a reservation. */
bool batch_step_places(const struct batch_step *s);

/* batch_quota.c: rows of the quota ledger from before the trial, to undo it. */
struct batch_quota_undo {
    uint64_t id;
    struct quota_row was; /* id 0: there was no row */
};
struct batch_quota_trial {
    VEC(struct batch_quota_undo) tried;
    bool takes; /* limits exist, and some tried step places an instance */
};
/* Applies the step to the ledger, until batch_quota_undo. Returns false if a quota would be exceeded. */
bool batch_quota_try(struct batch *u, struct batch_quota_trial *t, const struct batch_step *s);
/* Undoes all tried rows except the first `len`. */
void batch_quota_undo(struct batch *u, struct batch_quota_trial *t, size_t len);
/* Returns the workload for which the instance is stopped; NULL: no step of this batch waits for the instance. */
const char *batch_stopped_for(const struct batch *u, uint64_t instance);
