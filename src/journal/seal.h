/* seal.h - the beginning of the store's log becomes the next segment.
 *
 * Off the loop: reads the log beside the store, and folders. A segment is written under another name, synced, and then
 * gets its own; only after that may its records be trimmed from the log, which is the caller's to do. So at any moment a
 * crash leaves each record in the log, in a segment, or in both.
 *
 * Now and then a segment begins with a checkpoint, made from the segments before it alone: when the records since the last
 * one are four times the bytes that one had. So checkpoints cost less than records, and reading begins near to anything.
 */
#pragma once

#include "journal/docset.h"
#include "journal/segment.h"

enum seal_step { SEAL_BEGUN, SEAL_WRITTEN, SEAL_NAMED, SEAL_STEPS };

struct seal_options {
    struct store *store;
    const char *dir;                /* of the segments; made if it is not there */
    uint64_t trimmed, upto;         /* records of the log: the last that is gone, the last that may be sealed */
    uint64_t bytes_max;             /* of records in a segment, about */
    bool (*keeps)(const char *key); /* docset.h */
    /* All documents as of record `upto`, sorted; NULL: not needed. Used where segments are missing: what was before is
     * sealed loose, and a segment without records follows that begins with these. Its revision: anchor_revision. */
    const struct docset *anchor;
    uint64_t anchor_revision;
    void (*step)(void *ctx, enum seal_step step); /* for tests; NULL: nobody */
    void *ctx;
};

/* Where sealing stands. `last`: of the last segment; 0: there is none. `rooted`: the state can be made from segments. */
struct seal_standing {
    uint64_t last, segments, bytes;
    int64_t to_ns;
    bool rooted;
};
int seal_look(const char *dir, struct seal_standing *ret, struct berth_err *err);

/* 1: a segment was made; 0: there was nothing to seal. -ENOTUNIQ: the segments are of another history than the log. */
int seal_next(const struct seal_options *o, struct segment *ret, struct berth_err *err);
