/* replay_input.h - which input of a decision is not what it was when it was recorded.
 *
 * A cycle's record has a hash for each kind of document. While a replay agrees with it, what it has read of that kind is
 * right; where it does not, the document that differs is among those of the kind written since.
 */
#pragma once

#include "base/str.h"
#include "control/state/state.h"

enum { REPLAY_TOUCHES_MAX = 8 };

struct replay_touch {
    uint64_t record;
    char *key;
};

/* The last documents of each kind that were written since it agreed. */
struct replay_touches {
    struct replay_touch last[KINDS][REPLAY_TOUCHES_MAX];
    uint64_t len[KINDS]; /* of all, also those that are not kept */
};

void replay_touches_done(struct replay_touches *t);
void replay_touch(struct replay_touches *t, enum kind kind, uint64_t record, const char *key);
/* Compares with {"jobs": "HEX", ...} and adds a sentence about the first kind that differs; NULL: it was not recorded. */
void replay_inputs_compare(struct replay_touches *t, const struct state *s, const json_t *kinds, struct str *to);
