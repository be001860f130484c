/* dry_run.h - what the server would make of manifests: one transaction, checked by it and, unless it is meant, thrown away.
 *
 * The documents see each other, so a user may be in a group that comes with it.
 */
#pragma once

#include "cli/lib/api.h"
#include "cli/show/manifest.h"

enum outcome { OUTCOME_CREATED, OUTCOME_CHANGED, OUTCOME_UNCHANGED, OUTCOMES };

struct review_item {
    char id[ID_TEXT_MAX]; /* as the server has it: NAME.OWNER, the number of a new job */
    enum outcome outcome;
    const json_t *before, *after; /* NULL: not there; both NULL where nothing changes */
};

struct review {
    struct review_item *items; /* as many as manifests */
    json_t *body;              /* of the answer; the items point into it */
};

/* Asks without changing anything. What is wrong is in *ret_trouble, with the manifest's place. Returns an enum exit_code. */
int review_make(struct api *a, const struct manifest *at, size_t len, struct review *ret,
                struct api_trouble *ret_trouble);
/* Does it, all or nothing. */
int review_commit(struct api *a, const struct manifest *at, size_t len, struct api_trouble *ret_trouble);
void review_done(struct review *r);
static inline void review_cleanup(struct review *r)
{
    review_done(r);
}
