/* commit.h - a change becomes one transaction of the store, with the journal's record of who and why.
 *
 * The only place that writes. Documents that would stay as they are are left out.
 */
#pragma once

#include "control/control.h"
#include "control/state/change.h"

struct commit_note {
    const char *who;     /* user, "node:ID", or "berth" itself */
    const char *verb;    /* "POST /v1/jobs", "unit", "lease" */
    const char *subject; /* "jobs/17" */
    const char *token, *remote;
    struct bytes extra; /* members to add to the record: a JSON object's text; empty: none */
};

/* commit_quota.c: may instances that are committed count for more, or against other quotas, once this is written?
 * Instances that the change itself brings are no concern: units are checked (batch_quota.c). */
bool commit_moves_quotas(struct state *s, const struct change *change);

/* The number of operations; 0: nothing to write, `done` is not called. Negative as store_submit. A unit that only has a
 * record passes an empty change and a note with `extra`. */
int commit_submit(struct control *c, struct change *change, const struct commit_note *note, store_done *done, void *ctx,
                  struct berth_err *err);
