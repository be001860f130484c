/* journal_claims.h - the last claim of each role of a job, as text, because a base contains all of them
 * (kube/journal/journal.h).
 *
 * Claims are recorded even while nothing is written, also by processes that only admit jobs. Claims of roles that are
 * gone are therefore removed from time to time; there are at most about twice as many claims as roles.
 */
#pragma once

#include <stdbool.h>

#include "base/map.h"
#include "base/vec.h"
#include "kube/cache/cache.h"

struct journal_claim {
    char *role, *text;
};

struct journal_claims {
    VEC(struct journal_claim) all;
    struct map by_role;
    size_t look_len; /* number of claims at which gone roles are removed */
};

/* Stores a claim; returns true if it is new or differs. Amortised O(1). */
bool journal_claims_put(struct journal_claims *c, const struct cache *p, const char *role, const char *text);
/* Removes the claims of roles that the cache does not have. O(claims) */
void journal_claims_trim(struct journal_claims *c, const struct cache *p);
void journal_claims_done(struct journal_claims *c);
