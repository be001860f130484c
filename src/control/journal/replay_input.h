/* replay_input.h - finds the input of a decision that differs from the recorded one.
 *
 * A cycle's record has a hash for each kind of document. While the hash of a kind agrees, all documents of the kind
 * agree. When it does not, the differing document is among those of the kind that were written since the last
 * agreement.
 */
#pragma once

#include "base/str.h"
#include "control/state/state.h"

enum { REPLAY_TOUCHES_MAX = 8 };

struct replay_touch {
    uint64_t record;
    char *key;
};

/* The last documents of each kind that were written since the last agreement. */
struct replay_touches {
    struct replay_touch last[KINDS][REPLAY_TOUCHES_MAX];
    uint64_t len[KINDS]; /* number of all such documents, including those that are not in `last` */
};

void replay_touches_done(struct replay_touches *t);
void replay_touch(struct replay_touches *t, enum kind kind, uint64_t record, const char *key);
/* Compares with {"jobs": "HEX", ...} and appends a sentence about the first differing kind; NULL: not recorded. */
void replay_inputs_compare(struct replay_touches *t, const struct state *s, const json_t *kinds, struct str *to);
