/* segment.h - a sealed part of the journal in one file: NNNNNN.seg.
 *
 * The file is a sequence of zstd frames, so `zstd -dc` prints it, with one JSON object per line. It begins and ends
 * with a skippable frame: the head describes the segment and its base, the foot its contents, with an index and
 * checksums. docs/journal.md specifies the format for other programs.
 *
 *     {"seq":N,"revision":N,"chain":"HEX","record":{...}}     a record, as it was in the log
 *     {"key":"jobs/17","revision":N,"doc":{...}}              a document of a checkpoint: the state before the records
 *
 * Segments are numbered from 1 and chained: the head has the hash of the preceding segment. Records are also chained
 * across segments, by the log's own hash. This module knows neither where segments are stored (shelf.h) nor when they
 * are made (seal.h).
 */
#pragma once

#include "base/str.h"
#include "store/store.h"

enum { SEGMENT_VERSION = 1, SEGMENT_LINE_MAX = STORE_RECORD_MAX + 4096 };

/* The state before the records of a segment. */
enum segment_base {
    SEGMENT_CONTINUES,  /* the state at the end of the preceding segment */
    SEGMENT_CHECKPOINT, /* the segment's own documents */
    SEGMENT_BEGINNING,  /* the empty state: the segment has record 1 */
    SEGMENT_LOOSE,      /* an unknown state and chain: a store was restored without its segments */
    SEGMENT_BASES
};

struct segment {
    uint64_t number;
    enum segment_base base;
    uint64_t first, last;         /* numbers of the records; no records if last is first - 1 */
    uint64_t base_revision;       /* before the first record */
    uint64_t last_revision;       /* after the last record */
    uint64_t chain_before, chain; /* chain hash of the log: before the first record, after the last */
    uint64_t previous, hash;      /* hash of the preceding segment (0: none), and of this segment */
    int64_t from_ns, to_ns;       /* times of the first and last record; 0: no records */
    uint64_t documents;           /* number of documents in the checkpoint */
    uint64_t document_bytes;      /* uncompressed size of the latest checkpoint, here or earlier */
    uint64_t record_bytes;        /* uncompressed */
    uint64_t since_bytes;         /* size of the records since the latest checkpoint, including these */
    uint64_t file_bytes;
};

/* ---- writing ---------------------------------------------------------------------------------------------------- */

struct segment_writer;

/* Creates a file, replacing a leftover. Uses of `head`: number, base, first, base_revision, chain_before, previous, and
 * from the preceding segment document_bytes and since_bytes. */
int segment_create(const char *path, const struct segment *head, struct segment_writer **ret, struct berth_err *err);
/* Adds a document of the checkpoint. Documents precede records, ordered by key. */
int segment_add_document(struct segment_writer *w, const char *key, uint64_t revision, struct bytes doc,
                         struct berth_err *err);
/* Adds the next record. Returns -EBADMSG if it is not the next one, or has a line break. */
int segment_add_record(struct segment_writer *w, const struct store_record *record, struct berth_err *err);
/* Returns the size of the records so far, in bytes. */
uint64_t segment_written(const struct segment_writer *w);
/* Writes the foot and closes the file. The caller syncs and renames the file. Frees w, also on failure. */
int segment_finish(struct segment_writer *w, struct segment *ret, struct berth_err *err);
/* Closes and removes the file, and frees w. Accepts NULL. */
void segment_abandon(struct segment_writer *w);

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* Reads head and foot. Returns -EBADMSG if the file is not a segment or is damaged there, -ENOTSUP for a newer
 * version. */
int segment_read_info(const char *path, struct segment *ret, struct berth_err *err);

/* Arguments are valid during the call. Any result but 0 ends the walk and is returned. Either function may be NULL. */
struct segment_visitor {
    int (*document)(void *ctx, const char *key, uint64_t revision, struct bytes doc);
    int (*record)(void *ctx, const struct store_record *record);
    void *ctx;
    bool skip_chain_check; /* verify only the checksums of frames, not the chain, for a file known to be good */
};

/* Visits everything in a segment. All checksums and the chain of the records are verified before or during the visit.
 * Frames of records before from_seq are verified by their checksums but not decompressed. */
int segment_walk(const char *path, uint64_t from_seq, const struct segment_visitor *visitor, struct berth_err *err);

/* A line of a segment or an export, without its line end. */
struct segment_line {
    bool document; /* otherwise a record */
    struct store_record record;
    const char *key; /* in the caller's str */
    uint64_t revision;
    struct bytes doc;
};
/* Parses a line. Returns false if it is neither a record nor a document. `key` is the buffer for the key of a
 * document. */
bool segment_line_read(struct bytes line, struct str *key, struct segment_line *ret);
/* Appends the line of a record, with its line end. */
void segment_line_write(struct str *to, const struct store_record *record);
void segment_line_write_document(struct str *to, const char *key, uint64_t revision, struct bytes doc);
