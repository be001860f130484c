/* batch_parts.h - what units are made of, for batch.c and the files beside it alone: the queue of units (batch.c), steps that are
 * assumed in the cluster and given back (batch_assume.c), what is left out of a unit (batch_job_over.c), what steps write
 * (batch_build.c), and whether quotas bear it (batch_quota.c).
 */
#pragma once

#include "control/journal/batch_record.h"
#include "control/sched/batch.h"
#include "control/sched/batch_ordinals.h"
#include "control/state/change.h"
#include "core/queue/quota_ledger.h"

/* One action or fact, with all it needs when its unit's turn comes; the plan is gone by then. */
struct step {
    enum berth_op op;
    enum berth_cause cause;
    const char *workload, *node;
    uint32_t ordinal;
    uint64_t instance;
    json_t *doc;                  /* of PLACE, RESERVE: the instance's; of a fact: its own. NULL otherwise */
    const char *fact;             /* the id of a fact's document; NULL: an action */
    struct berth_fact remembered; /* that fact */
    const char *resource;         /* of ADJUST */
    int64_t limit;
    int32_t score, rival;
    bool vain; /* to be left out: its pod is of a job that is over, or it cannot be built */
};

struct unit {
    struct unit *next;
    struct units *units;
    struct arena arena;
    struct unit_basis basis;
    VEC(struct step) steps;
    struct str reasons; /* of the pods left over, on the plan's first unit */
    struct unit_taken taken;
    size_t number, of;
    bool whole;       /* all of its steps or none */
    bool frees;       /* some step makes room at once, which later ones may have been given */
    bool broken;      /* a step of a whole one could not be assumed */
    uint64_t dropped; /* state_dropped when it was assumed: if that differs by now, it stands in the cluster no more */
};

struct units {
    struct control *control;
    void (*idle)(void *ctx);
    void *ctx;
    struct unit *first, *last; /* the first one is under way, if any is */
    size_t len;
    VEC(uint64_t) own; /* revisions of our commits, growing */
    uint64_t returned; /* how often something was given back that later plans count on */
    bool failed, troubled, submitted;
    struct unit_failures failures; /* since the last record */
};

/* batch_assume.c: assumes an action in the cluster, or a fact, and adds it to the unit; what the cluster has no room for by now is
 * not added. */
void unit_assume(struct unit *u, const struct berth_action *a);
void unit_assume_fact(struct unit *u, const struct berth_fact *fact);
/* The cluster goes back to what the documents say. */
void unit_step_give_back(struct unit *u, const struct step *step);
const char *unit_instance_id(struct arena *arena, uint64_t number);

/* batch_job_over.c: marks what is to be left out (step.vain), as the state is now; returns how many steps are. */
size_t unit_over_mark(struct unit *u);

/* batch_build.c: writes the step into the change; false: something it rests on has changed since the plan was made. */
bool unit_step_build(struct unit *u, struct change *change, const struct step *s);
/* Does the step assign or reserve a place? */
bool unit_step_takes(const struct step *s);

/* batch_quota.c: rows of the ledger as they were before steps were tried on it. */
struct unit_tried {
    uint64_t id;
    struct quota_row was; /* its id is 0: there was none */
};
struct unit_trial {
    VEC(struct unit_tried) tried;
    bool takes; /* some step that was tried takes a place, and there are limits */
};
/* Tries the step on the ledger, which keeps its effect until it is undone; false: a quota would be exceeded. */
bool unit_quota_try(struct unit *u, struct unit_trial *t, const struct step *s);
/* Undoes all but the first `len` rows that were tried. */
void unit_quota_undo(struct unit *u, struct unit_trial *t, size_t len);
/* The workload that an instance is stopped for; NULL: none of this unit waits for it. */
const char *unit_stopped_for(const struct unit *u, uint64_t instance);
