/* journal_claims.h - what is claimed for each role of a job, as text, as last told: a base has all of them (kube/journal/journal.h).
 *
 * Told also while nothing is written, by whoever only judges: so those of roles that are gone are forgotten now and then, and there are never
 * more than about twice as many as there are roles.
 */
#pragma once

#include <stdbool.h>

#include "base/map.h"
#include "base/vec.h"
#include "kube/cache/cache.h"

struct claimed {
    char *role, *text;
};

struct journal_claims {
    VEC(struct claimed) all;
    struct map by_role;
    size_t look_len; /* so many: then those that are gone are looked for */
};

/* True: it was another before, or none. Amortised O(1). */
bool journal_claims_put(struct journal_claims *c, const struct project *p, const char *role, const char *text);
/* Forgets those of roles that the projection does not have. O(all) */
void journal_claims_trim(struct journal_claims *c, const struct project *p);
void journal_claims_done(struct journal_claims *c);
