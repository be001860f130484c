/* batch_record.h - the journal's record of a decision: its inputs and its actions.
 *
 * "cycle": {"n", "unit", "of", "revision", "state", "now", "seed", "plan", "profile", "actions": [...]}, and once per
 * plan "kinds" (hashes of the state by kind of document), "assumed" and "pending" (batch_reasons.h). "given_back" lists
 * earlier commit batches that failed.
 */
#pragma once

#include <jansson.h>

#include "control/sched/batch.h"

/* One action as recorded: [op, workload, ordinal, node, instance, cause], and for placements [..., score, rival]
 * (berth.h). The number of a new instance is 0 in an uncommitted plan. */
struct batch_action {
    enum berth_op op;
    enum berth_cause cause;
    const char *workload, *node;
    uint32_t ordinal;
    uint64_t instance;
    int32_t score, rival;
};

/* Appends the action to an unfinished array, with a comma if needed. */
void batch_action_write(const struct batch_action *a, struct str *to);
/* Returns the actions of a plan. A new reference. */
json_t *batch_actions_of(const struct berth_plan *plan);

/* Appends {"cycle":{... without the closing bracket: the actions and the members of the whole plan follow. */
void batch_basis_write(const struct batch_basis *basis, size_t unit, size_t of, struct str *to);
/* Commit batches that failed since the last record, because of a conflict or a refusal of the store. */
struct batch_failures {
    struct str text; /* [[cycle, unit], ... */
    size_t len, more;
};
void batch_failure_note(struct batch_failures *f, uint64_t cycle, size_t unit);
/* Appends ,"given_back":[[cycle, unit], ...] if any batch failed, and "given_back_more" beyond sixteen, and resets the
 * list. */
void batch_failures_write(struct batch_failures *f, struct str *to);

/* Appends ,"kinds":{...} */
void batch_kinds_write(const struct batch_basis *basis, struct str *to);
