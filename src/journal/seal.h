/* seal.h - seals the oldest records of the store's log in a new segment.
 *
 * Runs outside the event loop: reads the log concurrently with the store, and reads directories. A segment is written
 * under a temporary name, synced, and renamed. Only then may the caller trim its records from the log. So after a crash
 * at any time, each record is in the log, in a segment, or in both.
 *
 * Some segments begin with a checkpoint, which is made only from earlier segments: whenever the records since the last
 * checkpoint are four times the bytes of that checkpoint. So checkpoints cost less than records, and reading can begin
 * close to any record.
 */
#pragma once

#include "journal/docset.h"
#include "journal/segment.h"

enum seal_step { SEAL_BEGUN, SEAL_WRITTEN, SEAL_NAMED, SEAL_STEPS };

struct seal_options {
    struct store *store;
    const char *dir;                /* directory of the segments; created if missing */
    uint64_t trimmed, upto;         /* records of the log: the last trimmed one, the last that may be sealed */
    uint64_t bytes_max;             /* size of the records in a segment, approximate */
    bool (*keeps)(const char *key); /* see docset.h */
    /* All documents as of record `upto`, sorted; NULL: not needed. Used if segments are missing: the records before are
     * sealed as a loose segment, followed by a segment without records that begins with these documents.
     * anchor_revision is its revision. */
    const struct docset *anchor;
    uint64_t anchor_revision;
    void (*step)(void *ctx, enum seal_step step); /* for tests; NULL: no callback */
    void *ctx;
};

/* The state of the sealed segments. `last`: last record in a segment; 0: none. `rooted`: the state can be rebuilt from
 * segments. */
struct seal_status {
    uint64_t last, segments, bytes;
    int64_t to_ns;
    bool rooted;
};
int seal_status_read(const char *dir, struct seal_status *ret, struct berth_err *err);

/* Seals the next segment. Returns 1 if a segment was made, 0 if there was nothing to seal, -ENOTUNIQ if the segments
 * have another history than the log. */
int seal_next(const struct seal_options *o, struct segment *ret, struct berth_err *err);
