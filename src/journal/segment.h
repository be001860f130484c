/* segment.h - a closed piece of the journal in one file: NNNNNN.seg.
 *
 * The file is a series of zstd frames, so `zstd -dc` prints it: one JSON object in each line. A frame that zstd skips
 * stands at each end: the head says what the segment is and what it goes on from, the foot what is in it, with an index
 * and checksums. docs/journal.md has the format for other programs.
 *
 *   {"seq":N,"revision":N,"chain":"HEX","record":{...}}     a record, as the log had it
 *   {"key":"jobs/17","revision":N,"doc":{...}}              of a checkpoint: before the records, the state they begin from
 *
 * Segments are numbered from 1 and chained: the head has the hash of the segment before it. Records are chained, too, by
 * the log's own hash, over the ends of segments. Nothing here knows where segments lie (shelf.h) or when they are made
 * (seal.h).
 */
#pragma once

#include "base/str.h"
#include "store/store.h"

enum { SEGMENT_VERSION = 1, SEGMENT_LINE_MAX = STORE_RECORD_MAX + 4096 };

/* What the records of a segment begin from. */
enum segment_base {
    SEGMENT_GOES_ON,    /* from where the segment before it ends */
    SEGMENT_CHECKPOINT, /* from its own documents */
    SEGMENT_BEGINNING,  /* from nothing: it has record 1 */
    SEGMENT_LOOSE,      /* from what is not known here, the chain neither: a store was restored without its segments */
    SEGMENT_BASES
};

struct segment {
    uint64_t number;
    enum segment_base base;
    uint64_t first, last;         /* records; none if last is first - 1 */
    uint64_t base_revision;       /* that they begin from */
    uint64_t last_revision;       /* after the last one */
    uint64_t chain_before, chain; /* of the log: before the first record, after the last */
    uint64_t previous, hash;      /* of the segment before it; 0: there is none. Of this one */
    int64_t from_ns, to_ns;       /* of the first and last record; 0: it has none */
    uint64_t documents;           /* of the checkpoint */
    uint64_t document_bytes;      /* of its last checkpoint, or the last one before it, unpacked */
    uint64_t record_bytes;        /* unpacked */
    uint64_t since_bytes;         /* of records since the last checkpoint, these included */
    uint64_t file_bytes;
};

/* ---- writing ------------------------------------------------------------------------------------------------------ */

struct segment_writer;

/* Begins a file, in place of a leftover. Of `head`: number, base, first, base_revision, chain_before, previous, and of the
 * segment before it document_bytes and since_bytes. */
int segment_create(const char *path, const struct segment *head, struct segment_writer **ret, struct berth_err *err);
/* Documents come first, in order of keys. */
int segment_add_document(struct segment_writer *w, const char *key, uint64_t revision, struct bytes doc,
                         struct berth_err *err);
/* The next record: -EBADMSG if it is not that, or has a line break. */
int segment_add_record(struct segment_writer *w, const struct store_record *record, struct berth_err *err);
/* Bytes of records so far. */
uint64_t segment_written(const struct segment_writer *w);
/* Writes the foot and closes; whoever gives it its name syncs it. Frees w, also on failure. */
int segment_finish(struct segment_writer *w, struct segment *ret, struct berth_err *err);
/* Closes, removes and frees. NULL is fine. */
void segment_abandon(struct segment_writer *w);

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* Head and foot. -EBADMSG for what is no segment, or is damaged there; -ENOTSUP for a newer version. */
int segment_look(const char *path, struct segment *ret, struct berth_err *err);

/* What is visited lives until the call returns; anything but 0 ends the walk and is returned. Either may be NULL. */
struct segment_visitor {
    int (*document)(void *ctx, const char *key, uint64_t revision, struct bytes doc);
    int (*record)(void *ctx, const struct store_record *record);
    void *ctx;
    bool unchained; /* it is known to be good: checksums of frames will do */
};

/* Visits everything in it, with every checksum, and the chain of the records, verified first or on the way. Frames of
 * records before from_seq are proved by their checksums and not unpacked. */
int segment_walk(const char *path, uint64_t from_seq, const struct segment_visitor *visitor, struct berth_err *err);

/* One line, without its end, of a segment or an export. */
struct segment_line {
    bool document; /* else a record */
    struct store_record record;
    const char *key; /* in the caller's str */
    uint64_t revision;
    struct bytes doc;
};
/* False: it is neither. `key` is used for the key of a document. */
bool segment_line_read(struct bytes line, struct str *key, struct segment_line *ret);
/* Adds the line of a record, and its end. */
void segment_line_write(struct str *to, const struct store_record *record);
void segment_line_write_document(struct str *to, const char *key, uint64_t revision, struct bytes doc);
