/* replay_guard.h - can a change of a journal be one that berth-kube has written?
 *
 * A file may be damaged, or made up by somebody. A projection believes what it is told: names that have the form they must have, ordinals that a job
 * can have, instances that are there once. So this is asked of every change before it is done (replay_ops.c); what documents and objects say
 * beside is for those to judge who read them.
 */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "kube/journal/journal_ops.h"

/* What is later than this is no moment. */
#define REPLAY_MOMENT_MAX (INT64_MAX / 4 * 3)

/* Instances of a base, each once. */
struct replay_numbers {
    VEC(uint64_t) at;
    struct map by_number;
    uint64_t most;
};
void replay_numbers_clear(struct replay_numbers *n);

/* -EBADMSG with what is wrong with it, as the end of a sentence. `base`: it is of a base, whose instances so far are given; those of the change are added. */
int replay_check(enum journal_word word, const char *id, const json_t *doc, bool base, struct replay_numbers *given,
                 struct berth_err *err);
