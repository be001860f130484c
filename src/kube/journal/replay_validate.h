/* replay_validate.h - validates changes of a journal before they are applied: could berth-kube have written this
 * change?
 *
 * A file may be damaged or forged. A cache trusts its inputs: names have the required form, ordinals are possible for a
 * job, instances exist once. So every change is checked before replay_ops.c applies it. The contents of documents and
 * objects are checked by their parsers.
 */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "kube/journal/journal_ops.h"

/* Latest valid time. */
#define REPLAY_MOMENT_MAX (INT64_MAX / 4 * 3)

/* The instances of a base, each at most once. */
struct replay_numbers {
    VEC(uint64_t) at;
    struct map by_number;
    uint64_t most;
};
void replay_numbers_clear(struct replay_numbers *n);

/* Returns -EBADMSG with the problem as the end of a sentence. `base`: the change is part of a base with the instances
 * in *given; those of the change are added. */
int replay_validate_change(enum journal_word word, const char *id, const json_t *doc, bool base,
                           struct replay_numbers *numbers, struct berth_err *err);
