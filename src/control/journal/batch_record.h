/* batch_record.h - what the journal keeps of a decision: from what it was made, and its actions.
 *
 * "cycle": {"n", "unit", "of", "revision", "state", "now", "seed", "plan", "profile", "actions": [...]}, and once for a plan
 * "kinds" (hashes of its state by kind of document), "assumed" and "pending" (batch_reasons.h); "given_back" has the units
 * before it that came to nothing.
 */
#pragma once

#include <jansson.h>

#include "control/sched/batch.h"

/* One action as the journal has it: [op, workload, ordinal, node, instance, cause], and of what is placed [..., score,
 * rival] (berth.h). A new instance's number is 0 in a plan
 * that is not committed. */
struct unit_action {
    enum berth_op op;
    enum berth_cause cause;
    const char *workload, *node;
    uint32_t ordinal;
    uint64_t instance;
    int32_t score, rival;
};

/* Adds it to an array under way: with a comma, unless that has just begun. */
void unit_action_write(const struct unit_action *a, struct str *to);
/* Those of a plan. A new reference. */
json_t *unit_actions_of(const struct berth_plan *plan);

/* Adds {"cycle":{... without its end: actions, and what is said once, follow. */
void unit_basis_write(const struct unit_basis *basis, size_t unit, size_t of, struct str *to);
/* Units that came to nothing since the last record: something they rest on had changed, or the store refused. */
struct unit_failures {
    struct str text; /* [[cycle, unit], ... */
    size_t len, more;
};
void unit_failure_note(struct unit_failures *f, uint64_t cycle, size_t unit);
/* Adds ,"given_back":[[cycle, unit], ...] if there are some, and "given_back_more" beyond sixteen; and forgets them. */
void unit_failures_write(struct unit_failures *f, struct str *to);

/* Adds ,"kinds":{...} */
void unit_kinds_write(const struct unit_basis *basis, struct str *to);
