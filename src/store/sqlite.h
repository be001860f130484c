/* sqlite.h - internal declarations of the SQLite store.
 *
 *     sqlite.c          opening and closing; exchange between the caller's thread and the writer thread
 *     sqlite_folder.c   the directory of the store: the lock, atomic creation of files
 *     sqlite_acked.c    the mark of the last acknowledged revision, in two copies
 *     sqlite_reserve.c  reserved disk space, which is released when the disk is full, so that deletion works
 *     sqlite_db.c       a connection, its statements, its error texts
 *     sqlite_format.c   file format and tables; creation and migration
 *     sqlite_verify.c   reads the whole store: loads the present keys and verifies all checksums
 *     sqlite_writer.c   the writer thread: batches, failures, checkpoints
 *     sqlite_change.c   rows of history: written with a transaction, swept after a compaction
 *     sqlite_recover.c  reconnects after a failure
 *     sqlite_read.c     range and history
 *     sqlite_log.c      the log: reading, trimming
 *     sqlite_copy.c     backup and restore
 *
 * On disk: the table `change` is the whole history in order, and is only appended to. A row names the place that it
 * replaced, so neither reading old states nor compaction needs an index of keys. The present keys are in memory
 * (heads.h). `log` holds the records. `meta` has one row, which every commit rewrites. To change the tables, add a row
 * to the table of migrations; never edit an old row.
 *
 * There are two connections: the writer thread uses one, the caller's thread the other. The caller's connection also
 * keeps the index of the write-ahead log alive while the writer reconnects after a failure. Frames of a failed commit
 * then stay invisible and are overwritten. If they were read back from the page cache they would look valid, although
 * they may be missing on the disk.
 */
#pragma once

#include <pthread.h>
#include <sqlite3.h>

#include "store/heads.h"
#include "store/publish.h"

struct sqlite_store;

#define STORE_FILE "store.db"
#define STORE_FILE_NEW "store.db.new"

/* ---- directory -------------------------------------------------------------------------------------------------- */

enum { ACKED_COPIES = 2 };

struct store_folder {
    char *path; /* absolute */
    int fd, lock_fd;
    int acked_fd[ACKED_COPIES];
};

/* Opens DIR, and creates it if `create` is set. */
int folder_open(const char *dir, bool create, struct store_folder *ret, struct berth_err *err);
void folder_done(struct store_folder *f);
/* Returns DIR/name; the caller frees it. */
char *folder_path(const struct store_folder *f, const char *name);
bool folder_has(const struct store_folder *f, const char *name);
/* Locks the directory until folder_done. Returns -EBUSY with the pid of the owner. */
int folder_lock(struct store_folder *f, struct berth_err *err);
/* Reads the last revision known to be acknowledged; a store with a lower revision has lost data. 0: unknown, there is
 * no mark. The mark is written without sync, after its commit, so it may be too low but never too high. There are two
 * copies. Returns -EBADMSG if all existing copies are damaged. */
int folder_acked(const struct store_folder *f, uint64_t *ret, struct berth_err *err);
/* Writes the mark. The mark is only additional evidence, so a failed write is not an error. */
void folder_set_acked(struct store_folder *f, uint64_t revision);
/* Sets the mark for a store whose revision is lower on purpose. Durable on return. */
int folder_reset_acked(struct store_folder *f, uint64_t revision, struct berth_err *err);
/* Creates the file with reserved space, if it is missing. Returns -ENOSPC if there is no space for it. */
int folder_reserve(const struct store_folder *f);
/* Releases the reserved space. Returns false if there was none. */
bool folder_reserve_release(const struct store_folder *f);
/* Creates an empty file, readable only by its owner, for SQLite to fill. Replaces a leftover file. */
int folder_file_create(const char *path, struct berth_err *err);
/* folder_file_remove removes a database and SQLite's files beside it; folder_file_remove_side_files only the latter. */
void folder_file_remove(const char *path);
void folder_file_remove_side_files(const char *path);

/* ---- connection ------------------------------------------------------------------------------------------------- */

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

/* Maximum wait for locks of other processes, for example of tools that read the file. */
enum { DB_BUSY_MS = 10000 };

enum db_mode {
    DB_WRITE,
    DB_READ,
    DB_FROZEN, /* reads only the file, as if no process wrote it: no lock, no other file */
};

int db_open(struct db *db, const char *path, enum db_mode mode, struct berth_err *err);
/* Prepares all statements that are not prepared yet. */
int db_prepare(struct db *db, struct berth_err *err);
void db_close(struct db *db);
int db_exec(struct db *db, const char *sql, struct berth_err *err);
/* Reads the first bytes of the file itself, ignoring the write-ahead log. Does not open the file again, because closing
 * it would release this process's locks on it. */
enum { DB_HEADER_LEN = 100 };
int db_read_header(struct db *db, unsigned char ret[static DB_HEADER_LEN], struct berth_err *err);
/* Returns the first column of the first row. */
int db_number(struct db *db, const char *sql, int64_t *ret, struct berth_err *err);
/* Runs a prepared statement to completion and resets it. */
int db_run(struct db *db, enum statement st, struct berth_err *err);
/* Translates SQLite's last error to an errno and a text. */
int db_failed(const struct db *db, struct berth_err *err);
int db_damaged(const struct db *db, struct berth_err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Rolls back an open transaction, if there is one. */
void db_rollback(struct db *db);

static inline void db_cleanup(struct db *db)
{
    db_close(db);
}

static inline void stmt_cleanup(sqlite3_stmt **stmt)
{
    sqlite3_finalize(*stmt);
}

/* ---- format and contents ---------------------------------------------------------------------------------------- */

/* Format 2: the log may begin with an empty record (sqlite_log.c). Format 1 is readable without migration. */
enum { STORE_FORMAT = 2, STORE_FORMAT_READ = 1 };

/* The row of `meta`. */
struct totals {
    uint64_t revision, compacted;
    uint64_t swept;  /* changes up to this place were swept after a compaction */
    uint64_t digest; /* sum of the checksums of all changes */
    uint64_t log_seq, log_chain;
};

/* The state of a store, as one thread sees it. */
struct ledger {
    struct heads heads;
    struct totals now;
    uint64_t log_trimmed; /* the empty record that is kept for the chain; 0: none */
};

/* Checks that the file is a store of a known format. Changes no file. */
int format_probe(const char *path, struct berth_err *err);
/* Creates DIR/store.db. */
int format_create(struct store_folder *f, struct berth_err *err);
/* Migrates the open file to the current format, within the caller's transaction. */
int format_migrate(struct db *db, struct berth_err *err);

int totals_read(struct db *db, struct totals *ret, struct berth_err *err);
int totals_write(struct db *db, const struct totals *totals, struct berth_err *err);

uint64_t change_row_sum(const struct history_row *change, struct bytes value);
/* Columns for change_row_read, in its order. */
#define CHANGE_COLUMNS "place, key, replaced, created, sum, value"
/* Reads and verifies a row. Its texts are valid until the next step of the statement. */
int change_row_read(const struct db *db, sqlite3_stmt *row, struct history_row *ret, struct bytes *ret_value,
                    struct berth_err *err);

/* Reads and verifies a whole store, within the caller's transaction. */
int ledger_verify(struct db *db, struct ledger *ret, struct berth_err *err);
/* Updates a ledger to the current state on disk. */
int ledger_follow(struct db *db, struct ledger *ledger, struct berth_err *err);
/* Migrates, verifies and commits; on failure the file is unchanged. */
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

/* ---- store ------------------------------------------------------------------------------------------------------ */

/* A task for the writer thread, run between two batches while the caller waits. */
struct writer_job {
    int (*run)(struct sqlite_store *s, void *ctx, struct berth_err *err);
    void *ctx;
    struct berth_err *err;
    int rc;
    bool done;
};

struct sqlite_store {
    struct store base;
    struct store_folder folder;
    char *path;
    bool readonly;
    uint64_t compacted; /* as known to the caller's thread */
    struct db reader;

    pthread_t thread;
    bool running;
    int event_fd;
    pthread_mutex_t lock;
    pthread_cond_t work, work_done;
    /* Protected by the lock. */
    struct txn_queue waiting, finished;
    size_t waiting_len;
    struct writer_job *job;
    bool stop;
    uint64_t trim_goal;              /* records up to this one are to be trimmed */
    bool full_shown;                 /* copy of `full` for the caller's thread */
    bool event_fd_readable;          /* the event descriptor is readable */
    char broken[BERTH_ERR_TEXT_MAX]; /* why the store rejects everything; empty: the store works */

    /* Used only by the writer thread, once it runs. */
    struct ledger ledger;
    struct db writer;
    struct txn_queue found; /* transactions to be delivered */
    size_t batch_len;       /* size of the last batch */
    int wal_pages, wal_pages_tried;
    bool full;        /* the reserve is released: only transactions that delete are accepted */
    bool idle_failed; /* sweeping waits for a successful batch */
};

static inline struct sqlite_store *sqlite_of(struct store *s)
{
    return (struct sqlite_store *)s;
}

/* Runs a function where the ledger and the writer's connection may be used, and waits for it. */
int sqlite_call(struct sqlite_store *s, int (*run)(struct sqlite_store *s, void *ctx, struct berth_err *err), void *ctx,
                struct berth_err *err);

/* Starts the writer thread. The writer's connection must be open and set up, and the ledger filled. */
int sqlite_writer_start(struct sqlite_store *s, struct berth_err *err);
/* Stops the thread; the queue must be empty. */
void sqlite_writer_stop(struct sqlite_store *s);
/* Finishes the setup of the writer's connection to a verified file. */
void sqlite_writer_settle(struct sqlite_store *s);
/* Opens the writer's connection if it is closed. Transactions on disk that are missing in the ledger are added to
 * `found`. Returns -EBADMSG if data is missing on the disk. */
int sqlite_writer_connect(struct sqlite_store *s, struct txn_queue *found, struct berth_err *err);
/* Compacts, as a task for sqlite_call; ctx: the revision. */
int sqlite_writer_compact(struct sqlite_store *s, void *ctx, struct berth_err *err);

/* On a full disk: moves transactions without deletions from the batch to `out`, as failed. */
void reserve_batch_cut(struct txn_queue *batch, struct txn_queue *out);

/* Evaluates a transaction. If it takes effect, writes its rows and updates the ledger. */
int change_row_write(struct db *db, struct ledger *ledger, struct queued *q, struct berth_err *err);
enum { SWEEP_MAX = 2048 };
/* Deletes the rows that the next changes up to the compacted revision have replaced, and these changes if they are
 * deletions. */
int change_sweep(struct db *db, struct totals *now, int rows_max, struct berth_err *err);
bool change_sweep_left(const struct totals *now);

/* Removes the next log records up to `goal`. The last removed record stays as an empty row, for its chain hash. */
int log_trim_step(struct db *db, uint64_t *trimmed, uint64_t goal, int rows_max, struct berth_err *err);
/* Verifies the log; *ret_trimmed as in the ledger. */
int log_check(struct db *db, const struct totals *disk, uint64_t *ret_trimmed, struct berth_err *err);

/* A consistent state of the file, held by a read transaction. A nested read gets its own connection. */
struct read_snapshot {
    struct db *db;
    struct db extra;
};
int reading_begin(struct read_snapshot *r, struct sqlite_store *s, struct totals *ret, struct berth_err *err);
void reading_cleanup(struct read_snapshot *r);

int sqlite_range(struct store *s, const char *prefix, uint64_t revision, store_visit *visit, void *ctx,
                 struct berth_err *err);
int sqlite_history(struct store *s, const char *prefix, uint64_t from, uint64_t to, store_visit_event *visit, void *ctx,
                   struct berth_err *err);
int sqlite_log(struct store *s, uint64_t from_seq, store_visit_record *visit, void *ctx, struct berth_err *err);
int sqlite_log_concurrent(struct store *s, uint64_t from_seq, uint64_t to_seq, store_visit_record *visit, void *ctx,
                          struct berth_err *err);
int sqlite_log_trim(struct store *s, uint64_t seq, struct berth_err *err);
int sqlite_backup(struct store *s, const char *path, struct berth_err *err);
