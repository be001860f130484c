/* sqlite.h - the parts of the store in an SQLite file, as they see each other.
 *
 *     sqlite.c          opening and closing; handing over between the caller's thread and the writer's
 *     sqlite_folder.c   DIR: the lock, files that appear whole or not at all
 *     sqlite_acked.c    the mark of what was acknowledged, in two copies
 *     sqlite_reserve.c  room that is given up when the disk is full, so that deletion works
 *     sqlite_db.c       a connection, its statements, its errors in words
 *     sqlite_format.c   what makes a file ours; its tables; making and migrating it
 *     sqlite_verify.c   reading everything once: the present keys, and proof that nothing is damaged
 *     sqlite_writer.c   the writer's thread: batches, failures, checkpoints
 *     sqlite_change.c   rows of history: written with a transaction, swept after a compaction
 *     sqlite_recover.c  opening anew after a failure
 *     sqlite_read.c     range and history
 *     sqlite_log.c      the log: read, trimmed
 *     sqlite_copy.c     backup and restore
 *
 * On disk: `change` is all history in order, appended to; a row says which place it replaced, so that neither old
 * states nor compaction need an index of keys. The present keys are in memory (heads.h). `log` has the records. `meta`
 * has one row that every commit rewrites. To change the tables: a row in the table of migrations, never an edit of an
 * old one.
 *
 * Two connections: the writer's, used by its thread only, and the reader's, used by the caller's thread only. The
 * reader's also keeps the index of the write-ahead log alive while the writer's is opened anew after a failure: frames
 * of a commit that failed stay invisible and are written again. Read back from the page cache they would look good,
 * though the disk may not have them.
 */
#pragma once

#include <pthread.h>
#include <sqlite3.h>

#include "store/heads.h"
#include "store/publish.h"

struct sqlite_store;

#define STORE_FILE "store.db"
#define STORE_FILE_NEW "store.db.new"

/* ---- the folder -------------------------------------------------------------------------------------------------- */

enum { ACKED_COPIES = 2 };

struct folder {
    char *path; /* absolute */
    int fd, lock_fd;
    int acked_fd[ACKED_COPIES];
};

/* Opens DIR, making it if asked. */
int folder_open(const char *dir, bool create, struct folder *ret, struct berth_err *err);
void folder_done(struct folder *f);
/* DIR/name, to be freed. */
char *folder_path(const struct folder *f, const char *name);
bool folder_has(const struct folder *f, const char *name);
/* -EBUSY with the pid that has it. Held until folder_done. */
int folder_lock(struct folder *f, struct berth_err *err);
/* The last revision that is known to have been acknowledged: a store that has less lost something. 0: not known, there is
 * no mark. The mark is written without sync, after the commit it speaks of: it may lag, never lead. It has two copies;
 * -EBADMSG where none of those that are there is good. */
int folder_acked(const struct folder *f, uint64_t *ret, struct berth_err *err);
/* Evidence only: a mark that cannot be written is no failure. */
void folder_set_acked(struct folder *f, uint64_t revision);
/* For a store that has less, knowingly; on disk when it returns. */
int folder_restart_acked(struct folder *f, uint64_t revision, struct berth_err *err);
/* Makes the file that keeps room, where it is not there. -ENOSPC: there is no room for it. */
int folder_reserve(const struct folder *f);
/* Gives the room up; false: there was none. */
bool folder_reserve_release(const struct folder *f);
/* Makes an empty file that only its owner reads, for SQLite to fill, in place of a leftover. */
int folder_file_make(const char *path, struct berth_err *err);
/* Removes a database and what SQLite keeps beside it, or only the latter. */
void folder_file_remove(const char *path);
void folder_file_remove_beside(const char *path);

/* ---- a connection ------------------------------------------------------------------------------------------------ */

enum statement {
    ST_BEGIN,
    ST_COMMIT,
    ST_ROLLBACK,
    ST_CHANGE_ADD,
    ST_CHANGE_DROP,
    ST_SWEEP,
    ST_LOG_ADD,
    ST_LOG_DROP,
    ST_LOG_EMPTY,
    ST_META_SET,
    STATEMENTS_LEN
};

struct db {
    sqlite3 *handle;  /* NULL: closed */
    const char *path; /* for messages; borrowed */
    sqlite3_stmt *statements[STATEMENTS_LEN];
};

/* How long others may hold a lock: tools that read, or that somebody has opened by hand. */
enum { DB_BUSY_MS = 10000 };

enum db_mode {
    DB_WRITE,
    DB_READ,
    DB_FROZEN, /* reads the file alone, as if nobody wrote it: no lock, no file beside it */
};

int db_open(struct db *db, const char *path, enum db_mode mode, struct berth_err *err);
/* Makes the kept statements, as far as they are not. */
int db_prepare(struct db *db, struct berth_err *err);
void db_close(struct db *db);
int db_exec(struct db *db, const char *sql, struct berth_err *err);
/* The first bytes of the file itself, whatever the write-ahead log says; not by opening it once more, as closing it would
 * drop the locks that this process has on it. */
enum { DB_HEADER_LEN = 100 };
int db_read_header(struct db *db, unsigned char ret[static DB_HEADER_LEN], struct berth_err *err);
/* The first column of the first row. */
int db_number(struct db *db, const char *sql, int64_t *ret, struct berth_err *err);
/* Runs a kept statement to its end and makes it ready for the next time. */
int db_run(struct db *db, enum statement st, struct berth_err *err);
/* What SQLite last failed with, as an errno and a sentence. */
int db_failed(const struct db *db, struct berth_err *err);
int db_damaged(const struct db *db, struct berth_err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Gives up an open transaction, if there is one. */
void db_rollback(struct db *db);

static inline void db_cleanup(struct db *db)
{
    db_close(db);
}

static inline void stmt_cleanup(sqlite3_stmt **stmt)
{
    sqlite3_finalize(*stmt);
}

/* ---- format and contents ----------------------------------------------------------------------------------------- */

/* Format 2: the log may begin with an empty record (sqlite_log.c). Format 1 can be read as it is. */
enum { STORE_FORMAT = 2, STORE_FORMAT_READ = 1 };

/* The row of `meta`. */
struct totals {
    uint64_t revision, compacted;
    uint64_t swept;  /* changes up to this place were looked at after a compaction */
    uint64_t digest; /* sum of all checksums of changes */
    uint64_t log_seq, log_chain;
};

/* What a store is, as one thread sees it. */
struct ledger {
    struct heads heads;
    struct totals now;
    uint64_t log_trimmed; /* the record that is kept empty, for the chain; 0: none */
};

/* Is the file ours, and not from the future? Changes nothing, not even beside it. */
int format_probe(const char *path, struct berth_err *err);
/* Makes DIR/store.db. */
int format_create(struct folder *f, struct berth_err *err);
/* Brings the open file to the present format; within the caller's transaction. */
int format_migrate(struct db *db, struct berth_err *err);

int totals_read(struct db *db, struct totals *ret, struct berth_err *err);
int totals_write(struct db *db, const struct totals *totals, struct berth_err *err);

uint64_t change_row_sum(const struct change *change, struct bytes value);
/* Columns that change_row_read takes, in its order. */
#define CHANGE_COLUMNS "place, key, replaced, created, sum, value"
/* Reads and checks a row; what it points to lives until the next step. */
int change_row_read(const struct db *db, sqlite3_stmt *row, struct change *ret, struct bytes *ret_value,
                    struct berth_err *err);

/* Reads all of a store within the caller's transaction, or refuses it. */
int ledger_verify(struct db *db, struct ledger *ret, struct berth_err *err);
/* Brings a ledger up to what is on disk by now. */
int ledger_follow(struct db *db, struct ledger *ledger, struct berth_err *err);
/* Migrates, verifies, and commits; or leaves the file as it was. */
int ledger_verify_migrated(struct db *db, struct ledger *ret, struct berth_err *err);

static inline void ledger_done(struct ledger *ledger)
{
    heads_done(&ledger->heads);
}

static inline struct ledger ledger_take(struct ledger *ledger)
{
    struct ledger taken = *ledger;
    *ledger = (struct ledger){0};
    return taken;
}

static inline void ledger_cleanup(struct ledger *ledger)
{
    ledger_done(ledger);
}

/* ---- the store --------------------------------------------------------------------------------------------------- */

/* Something to be done on the writer's thread between two batches, while the caller waits. */
struct job {
    int (*run)(struct sqlite_store *s, void *ctx, struct berth_err *err);
    void *ctx;
    struct berth_err *err;
    int rc;
    bool done;
};

struct sqlite_store {
    struct store base;
    struct folder folder;
    char *path;
    bool readonly;
    uint64_t compacted; /* as the caller's thread knows it */
    struct db reader;

    pthread_t thread;
    bool running;
    int event_fd;
    pthread_mutex_t lock;
    pthread_cond_t work, news;
    /* Under the lock. */
    struct queue waiting, finished;
    size_t waiting_len;
    struct job *job;
    bool stop;
    uint64_t trim_goal;              /* records up to this one shall go */
    bool full_told;                  /* `full`, for the caller's thread */
    bool told;                       /* the event descriptor is readable */
    char broken[BERTH_ERR_TEXT_MAX]; /* why nothing is taken any more; empty: all is well */

    /* The writer's own, once its thread runs. */
    struct ledger ledger;
    struct db writer;
    struct queue found; /* ready to be told */
    size_t batch_len;   /* of the last batch */
    int wal_pages, wal_pages_tried;
    bool full;        /* the reserve is given up: only what deletes is taken */
    bool idle_failed; /* sweeping waits for a batch that succeeds */
};

static inline struct sqlite_store *sqlite_of(struct store *s)
{
    return (struct sqlite_store *)s;
}

/* Runs something where the ledger and the writer's connection may be used. */
int sqlite_call(struct sqlite_store *s, int (*run)(struct sqlite_store *s, void *ctx, struct berth_err *err), void *ctx,
                struct berth_err *err);

/* Begins with the writer's connection open and settled, and the ledger filled. */
int sqlite_writer_start(struct sqlite_store *s, struct berth_err *err);
/* Ends the thread; nothing waits by now. */
void sqlite_writer_stop(struct sqlite_store *s);
/* For the writer's connection to a file that is known to be good. */
void sqlite_writer_settle(struct sqlite_store *s);
/* Opens the writer's connection if it is closed. What is on disk beyond the ledger is added to `found`. -EBADMSG: the
 * disk has not what it had. */
int sqlite_writer_connect(struct sqlite_store *s, struct queue *found, struct berth_err *err);
/* A job; ctx: the revision. */
int sqlite_writer_compact(struct sqlite_store *s, void *ctx, struct berth_err *err);

/* On a full disk: moves what deletes nothing from the batch to `out`, failed. */
void reserve_batch_cut(struct queue *batch, struct queue *out);

/* Evaluates a transaction and, if it happens, writes its rows and counts them in the ledger. */
int change_row_write(struct db *db, struct ledger *ledger, struct queued *q, struct berth_err *err);
enum { SWEEP_MAX = 2048 };
/* Forgets what the next changes up to the compacted revision have replaced, and deletions among them. */
int change_sweep(struct db *db, struct totals *now, int rows_max, struct berth_err *err);
bool change_sweep_left(const struct totals *now);

/* A step towards a log without records up to `goal`: the last one that goes stays, emptied, for its chain. */
int log_trim_step(struct db *db, uint64_t *trimmed, uint64_t goal, int rows_max, struct berth_err *err);
/* Verifies the log; *ret_trimmed as in the ledger. */
int log_check(struct db *db, const struct totals *disk, uint64_t *ret_trimmed, struct berth_err *err);

/* A state of the file, held still. A visitor may read too: it gets a connection of its own. */
struct reading {
    struct db *db;
    struct db extra;
};
int reading_begin(struct reading *r, struct sqlite_store *s, struct totals *ret, struct berth_err *err);
void reading_cleanup(struct reading *r);

int sqlite_range(struct store *s, const char *prefix, uint64_t revision, store_visit *visit, void *ctx,
                 struct berth_err *err);
int sqlite_history(struct store *s, const char *prefix, uint64_t from, uint64_t to, store_visit_event *visit, void *ctx,
                   struct berth_err *err);
int sqlite_log(struct store *s, uint64_t from_seq, store_visit_record *visit, void *ctx, struct berth_err *err);
int sqlite_log_beside(struct store *s, uint64_t from_seq, uint64_t to_seq, store_visit_record *visit, void *ctx,
                      struct berth_err *err);
int sqlite_log_trim(struct store *s, uint64_t seq, struct berth_err *err);
int sqlite_backup(struct store *s, const char *path, struct berth_err *err);
