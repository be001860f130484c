/* replay.h - every recorded decision made again from the journal, and compared.
 *
 * The journal has each change with its documents, and with each unit of a plan the revision, the moment, the seed and the
 * profile it was decided from, what was assumed at that time, its actions, and the hashes of state and plan, of the state
 * also by kind of document. Replay rebuilds the state from the records alone, or from a checkpoint and the records after
 * it, calls the same core, and compares. Where the state is not to be had, because segments are missing or a decision was
 * begun before the first record, it is counted and not made.
 */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "journal/reader.h"
#include "store/store.h"

struct replay_difference {
    uint64_t cycle, revision, record; /* the first record of the decision */
    int64_t now_ns;                   /* the moment it was made for */
    const char *what;                 /* "state" or "plan" */
    uint64_t recorded, replayed;
    const char *input; /* the first that differs, a sentence; "": all are the same */
    const json_t *actions,
        *actions_replayed; /* [[op, workload, ordinal, node, instance, cause], ...]; NULL for "state" */
};

struct replay_options {
    uint64_t from_cycle, to_cycle; /* 0: no bound; what is before is applied, not compared */
    int64_t from_ns, to_ns;        /* of the moments of decisions; 0: no bound */
    uint64_t record;               /* only the decision that this record is of, made for from_ns; 0: all */
    bool (*stop)(void *ctx);       /* asked with each record: enough of it; NULL: never */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void (*differs)(void *ctx, const struct replay_difference *d);
    void *ctx;
};

struct replay_result {
    uint64_t records, changes, cycles, different;
    uint64_t skipped; /* decisions whose state is not to be had */
    uint64_t gaps;    /* places where records are missing */
};

/* 0 also when there are differences. -EBADMSG for a record that cannot be read, -ETIME when it was told to stop. */
int replay_journal(struct journal *journal, const struct replay_options *options, struct replay_result *ret,
                   struct berth_err *err);
/* Is an action of one list in the other? The number of an instance that was made then is not known to a plan; scores are told, not
 * decided. */
bool replay_action_in(const json_t *list, const json_t *action);
/* The same of the log of a store. */
int replay_run(struct store *store, const struct replay_options *options, struct replay_result *ret,
               struct berth_err *err);
