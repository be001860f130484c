/* replay.h - every recorded decision made again from the journal, and compared.
 *
 * The journal (the store's log) has each change with its documents, and with each unit of a plan the revision, the moment,
 * the seed and the profile it was decided from, what was assumed at that time, and the hashes of state and plan. Replay
 * rebuilds the state from the records alone, calls the same core, and compares both hashes.
 */
#pragma once

#include "base/err.h"
#include "store/store.h"

struct replay_difference {
    uint64_t cycle, revision;
    const char *what; /* "state" or "plan" */
    uint64_t recorded, replayed;
};

struct replay_options {
    uint64_t from_cycle, to_cycle; /* 0: no bound; what is before is applied, not compared */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    /* Told of each difference, with the plan made now. */
    void (*differs)(void *ctx, const struct replay_difference *d);
    void *ctx;
};

struct replay_result {
    uint64_t records, changes, cycles, different;
};

/* 0 also when there are differences. -EBADMSG for a record that cannot be read. */
int replay_run(struct store *store, const struct replay_options *options, struct replay_result *ret,
               struct berth_err *err);
