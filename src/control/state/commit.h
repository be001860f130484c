/* commit.h - submits a change as one transaction of the store, with a journal record of its author and reason.
 *
 * No other module writes to the store. Documents that do not change are left out.
 */
#pragma once

#include "control/control.h"
#include "control/state/change.h"

struct commit_note {
    const char *who;     /* user, "node:ID", or "berth" for the daemon itself */
    const char *verb;    /* "POST /v1/jobs", "unit", "lease" */
    const char *subject; /* "jobs/17" */
    const char *token, *remote;
    struct bytes extra; /* text of a JSON object whose members are added to the record; empty: none */
};

/* Tells whether committed instances may count for more, or against other quotas, once this change is written
 * (commit_quota.c). Instances that the change itself adds do not matter: commit batches are checked (batch_quota.c). */
bool commit_affects_quotas(struct state *s, const struct change *change);

/* Returns the number of operations; 0: nothing to write, `done` is not called. Negative as store_submit. A commit batch
 * that has only a record passes an empty change and a note with `extra`. */
int commit_submit(struct control *c, struct change *change, const struct commit_note *note, store_done *done, void *ctx,
                  struct berth_err *err);
