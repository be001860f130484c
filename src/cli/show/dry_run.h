/* dry_run.h - manifests checked by the server as one transaction, which is discarded in a dry run.
 *
 * The documents of a transaction see each other: a user may be in a group of the same transaction.
 */
#pragma once

#include "cli/lib/api.h"
#include "cli/show/manifest.h"

enum review_outcome { OUTCOME_CREATED, OUTCOME_CHANGED, OUTCOME_UNCHANGED, OUTCOMES };

struct review_item {
    char id[ID_TEXT_MAX]; /* as assigned by the server: NAME.OWNER, or the number of a new job */
    enum review_outcome outcome;
    const json_t *before, *after; /* NULL: the object does not exist; both NULL: unchanged */
};

struct review {
    struct review_item *items; /* one per manifest */
    json_t *body;              /* body of the answer; the items point into it */
};

/* Sends a dry run, which changes nothing. An error is returned in *ret_trouble, with the manifest's file and line.
 * Returns an enum exit_code. */
int review_make(struct api *a, const struct manifest *at, size_t len, struct review *ret,
                struct api_error *ret_trouble);
/* Commits the transaction: all documents or none. */
int review_commit(struct api *a, const struct manifest *at, size_t len, struct api_error *ret_trouble);
void review_done(struct review *r);
static inline void review_cleanup(struct review *r)
{
    review_done(r);
}
