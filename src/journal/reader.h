/* reader.h - all of a journal in order: segments, then what is still in the store's log.
 *
 * Sources are the folder of a daemon (its segments, those it exported beside them, and its log; the daemon may be running),
 * a folder of segments, single segments, and exports in JSON lines (`berth journal export`). Checksums and chains are
 * verified on the way. Where segments are missing, reading goes on at the next one, and the gap is told.
 */
#pragma once

#include "journal/shelf.h"

struct journal;

struct journal_sources {
    const char *data; /* the folder of a daemon; NULL: none */
    const char *const *files;
    size_t files_len; /* segments, folders of segments, or one file of JSON lines */
};

/* -ENOENT where there is nothing of a journal. Two kinds of source cannot be mixed: -EINVAL. */
int journal_open(const struct journal_sources *sources, struct journal **ret, struct berth_err *err);
/* The log of an open store alone; the store stays the caller's. */
struct journal *journal_of(struct store *store);
/* The segments of a folder (NULL: none) and the log of an open store, up to a record, for a thread beside the store's own
 * (store_log_beside). `trimmed` is the store's, as of now. */
int journal_beside(struct store *store, const char *dir, uint64_t trimmed, uint64_t upto, struct journal **ret,
                   struct berth_err *err);
void journal_close(struct journal *j); /* NULL is fine */
static inline void journal_cleanup(struct journal **j)
{
    journal_close(*j);
}

/* The segments, by number. */
const struct shelf *journal_shelf(const struct journal *j);
/* The last record of the log; 0: there is no log, or nothing in it. */
uint64_t journal_log_last(const struct journal *j);

/* What came before the records that follow. */
enum journal_start {
    JOURNAL_FROM_NOTHING, /* record 1 is next: there is no state */
    JOURNAL_FROM_DOCUMENTS,
    JOURNAL_FROM_UNKNOWN, /* the state is not to be had: decisions cannot be made again */
};

struct journal_break {
    enum journal_start start;
    uint64_t revision;      /* of the state */
    uint64_t before, first; /* records: the last that was read, 0 for none; the next one */
};

struct journal_visitor {
    /* Told at the beginning, and again after a gap: whatever was known is to be forgotten. Documents follow. */
    int (*start)(void *ctx, const struct journal_break *b);
    int (*document)(void *ctx, const char *key, uint64_t revision, struct bytes doc);
    int (*record)(void *ctx, const struct store_record *record);
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* records, about */
    void *ctx;
};

/* Where to begin and end; 0: no bound. Reading begins at the last state before what is asked for, so that it can be made
 * again; what is before is visited, too. */
struct journal_range {
    uint64_t from_seq, to_seq;
    int64_t from_ns, to_ns;
    bool bare; /* the records alone are wanted: begin right there, without documents */
};

/* Returns what a visitor returns if it is not 0. May be called again. */
int journal_read(struct journal *j, const struct journal_range *range, const struct journal_visitor *visitor,
                 struct berth_err *err);

/* Of a record. */
int64_t journal_record_ns(const struct store_record *record);
