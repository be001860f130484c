/* reader.h - reads a whole journal in order: first the segments, then the rest in the store's log.
 *
 * Sources are the data directory of a daemon (its segments, exported segments, and its log; the daemon may be running),
 * a directory of segments, single segments, and exports in JSON lines (`berth journal export`). Checksums and chains
 * are verified while reading. If segments are missing, reading continues at the next one, and the visitor is told of
 * the gap.
 */
#pragma once

#include "journal/shelf.h"

struct journal;

struct journal_sources {
    const char *data; /* data directory of a daemon; NULL: none */
    const char *const *files;
    size_t files_len; /* segments, directories of segments, or one file of JSON lines */
};

/* Opens a journal. Returns -ENOENT if the sources have no journal, -EINVAL if two kinds of source are mixed. */
int journal_open(const struct journal_sources *sources, struct journal **ret, struct berth_err *err);
/* Reads only the log of an open store. The caller keeps ownership of the store. */
struct journal *journal_of_store(struct store *store);
/* Reads the segments of a directory (NULL: none) and the log of an open store up to a record, on another thread than
 * the store's (store_log_concurrent). `trimmed` is the store's current value. */
int journal_concurrent(struct store *store, const char *dir, uint64_t trimmed, uint64_t upto, struct journal **ret,
                       struct berth_err *err);
void journal_close(struct journal *j); /* accepts NULL */
static inline void journal_cleanup(struct journal **j)
{
    journal_close(*j);
}

/* Returns the segments, ordered by number. */
const struct shelf *journal_shelf(const struct journal *j);
/* Returns the number of the last record of the log; 0: there is no log, or the log is empty. */
uint64_t journal_log_last(const struct journal *j);

/* The state before the records that follow. */
enum journal_start {
    JOURNAL_FROM_NOTHING, /* record 1 follows; the state is empty */
    JOURNAL_FROM_DOCUMENTS,
    JOURNAL_FROM_UNKNOWN, /* the state is unavailable; decisions cannot be replayed */
};

struct journal_break {
    enum journal_start start;
    uint64_t revision;      /* of the state */
    uint64_t before, first; /* the last record that was read (0: none), and the next one */
};

struct journal_visitor {
    /* Called at the beginning, and again after a gap. The visitor must reset its state. The documents of the state
     * follow. */
    int (*start)(void *ctx, const struct journal_break *b);
    int (*document)(void *ctx, const char *key, uint64_t revision, struct bytes doc);
    int (*record)(void *ctx, const struct store_record *record);
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* number of records, approximate */
    void *ctx;
};

/* Limits of reading; 0: no limit. Reading starts at the last known state before the range, so that the state at the
 * range can be rebuilt. Earlier records are visited, too. */
struct journal_range {
    uint64_t from_seq, to_seq;
    int64_t from_ns, to_ns;
    bool bare; /* only records: start exactly at the range, without documents */
};

/* Reads a journal; may be called again. Returns the value of a visitor that is not 0. */
int journal_read(struct journal *j, const struct journal_range *range, const struct journal_visitor *visitor,
                 struct berth_err *err);

/* Returns the time of a record. */
int64_t journal_record_ns(const struct store_record *record);
