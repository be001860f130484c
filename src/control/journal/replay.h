/* replay.h - repeats every recorded decision from the journal, and compares the results.
 *
 * The journal has each change with its documents. With each commit batch of a plan it has the revision, time, seed and
 * profile of the decision, the assumptions at that time, the actions, and the hashes of state and plan, for the state
 * also by kind of document. Replay rebuilds the state from the records alone, or from a checkpoint and the records
 * after it, calls the same core, and compares. A decision whose state is unavailable, because segments are missing or
 * the decision began before the first record, is counted and not repeated.
 */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "journal/reader.h"
#include "store/store.h"

struct replay_difference {
    uint64_t cycle, revision, record; /* `record`: the first one of the decision */
    int64_t now_ns;                   /* time of the decision */
    const char *what;                 /* "state" or "plan" */
    uint64_t recorded, replayed;
    const char *input; /* a sentence about the first differing input; "": all inputs agree */
    const json_t *actions,
        *actions_replayed; /* [[op, workload, ordinal, node, instance, cause], ...]; NULL for "state" */
};

struct replay_options {
    uint64_t from_cycle, to_cycle; /* 0: no bound; earlier changes are applied without comparison */
    int64_t from_ns, to_ns;        /* bounds on the times of decisions; 0: no bound */
    uint64_t record;               /* only the decision with this record, made at from_ns; 0: all */
    bool (*stop)(void *ctx);       /* called with each record; true stops the replay; NULL: never */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void (*differs)(void *ctx, const struct replay_difference *d);
    void *ctx;
};

struct replay_result {
    uint64_t records, changes, cycles, different;
    uint64_t skipped; /* decisions whose state is unavailable */
    uint64_t gaps;    /* places with missing records */
};

/* Returns 0 also for differences, -EBADMSG for an unreadable record, -ETIME after `stop`. */
int replay_journal(struct journal *journal, const struct replay_options *options, struct replay_result *ret,
                   struct berth_err *err);
/* Tells whether the list contains the action. Ignores the number of a new instance, which a plan does not know, and
 * scores, which do not affect the decision. */
bool replay_action_in(const json_t *list, const json_t *action);
/* The same for the log of a store. */
int replay_run(struct store *store, const struct replay_options *options, struct replay_result *ret,
               struct berth_err *err);
