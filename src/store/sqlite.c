/* sqlite.c - the SQLite store: opening, closing, and exchange with the writer thread. */
#include "store/sqlite.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- exchange with the writer thread ---------------------------------------------------------------------------- */

static int sqlite_submit(struct store *base, const struct store_txn *txn, store_done *done, void *ctx,
                         struct berth_err *err)
{
    struct sqlite_store *s = sqlite_of(base);
    if (s->readonly)
        return err_set(err, EROFS, "%s is open read-only", s->path);

    struct queued *q = queued_new(txn, done, ctx);
    int rc = 0;
    (void)pthread_mutex_lock(&s->lock);
    if (s->broken[0]) {
        rc = err_set(err, EIO, "%s", s->broken);
    } else {
        bool idle = !s->waiting.first;
        queued_push(&s->waiting, q);
        s->waiting_len++;
        q = NULL;
        if (idle)
            (void)pthread_cond_signal(&s->work);
    }
    (void)pthread_mutex_unlock(&s->lock);
    queued_free(q);
    return rc;
}

static size_t sqlite_pump(struct store *base, bool wait)
{
    struct sqlite_store *s = sqlite_of(base);
    struct txn_queue now;
    struct queued *q;
    size_t n = 0;

    if (s->readonly)
        return 0;
    (void)pthread_mutex_lock(&s->lock);
    while (wait && !s->finished.first)
        (void)pthread_cond_wait(&s->work_done, &s->lock);
    now = s->finished;
    s->finished = (struct txn_queue){0};
    base->full = s->full_shown;
    if (s->event_fd_readable) {
        eventfd_t count;
        (void)eventfd_read(s->event_fd, &count);
        s->event_fd_readable = false;
    }
    (void)pthread_mutex_unlock(&s->lock);
    while ((q = queued_pop(&now))) {
        n += !q->found;
        store_deliver(base, q);
    }
    return n;
}

static int sqlite_fd(const struct store *base)
{
    return ((const struct sqlite_store *)base)->event_fd;
}

int sqlite_call(struct sqlite_store *s, int (*run)(struct sqlite_store *s, void *ctx, struct berth_err *err), void *ctx,
                struct berth_err *err)
{
    if (s->readonly)
        return run(s, ctx, err);
    struct writer_job job = {.run = run, .ctx = ctx, .err = err};
    (void)pthread_mutex_lock(&s->lock);
    s->job = &job;
    (void)pthread_cond_signal(&s->work);
    while (!job.done)
        (void)pthread_cond_wait(&s->work_done, &s->lock);
    (void)pthread_mutex_unlock(&s->lock);
    return job.rc;
}

/* ---- simple operations ------------------------------------------------------------------------------------------ */

static uint64_t sqlite_compacted(const struct store *base)
{
    return ((const struct sqlite_store *)base)->compacted;
}

static int sqlite_compact(struct store *base, uint64_t revision, struct berth_err *err)
{
    struct sqlite_store *s = sqlite_of(base);
    if (s->readonly)
        return err_set(err, EROFS, "%s is open read-only", s->path);
    int rc = sqlite_call(s, sqlite_writer_compact, &revision, err);
    if (rc == 0)
        s->compacted = revision;
    return rc;
}

static uint64_t sqlite_size(const struct store *base)
{
    static const char *const names[] = {STORE_FILE, STORE_FILE "-wal"};
    const struct sqlite_store *s = (const struct sqlite_store *)base;
    uint64_t sum = 0;
    struct stat st;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (fstatat(s->folder.fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
            sum += (uint64_t)st.st_size;
    return sum;
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

static void sqlite_close(struct store *base)
{
    struct sqlite_store *s = sqlite_of(base);
    sqlite_writer_stop(s);
    assert(!s->waiting.first);
    struct queued *q;
    while ((q = queued_pop(&s->finished)))
        queued_free(q); /* found on disk recently: no submitter waits */
    /* The writer's connection is closed last: the last connection checkpoints the write-ahead log and removes it. */
    db_close(&s->reader);
    db_close(&s->writer);
    if (s->event_fd >= 0)
        (void)close(s->event_fd);
    (void)pthread_cond_destroy(&s->work);
    (void)pthread_cond_destroy(&s->work_done);
    (void)pthread_mutex_destroy(&s->lock);
    ledger_done(&s->ledger);
    folder_done(&s->folder);
    store_base_done(&s->base);
    mem_free(s->path);
    mem_free(s);
}

static const struct store_ops sqlite_ops = {
    .close = sqlite_close,
    .submit = sqlite_submit,
    .fd = sqlite_fd,
    .pump = sqlite_pump,
    .compacted = sqlite_compacted,
    .range = sqlite_range,
    .history = sqlite_history,
    .log = sqlite_log,
    .log_concurrent = sqlite_log_concurrent,
    .log_trim = sqlite_log_trim,
    .compact = sqlite_compact,
    .backup = sqlite_backup,
    .size = sqlite_size,
};

/* Checks that the store has everything that was acknowledged. SQLite truncates a damaged end of a write-ahead log
 * without an error. */
static int check_acked(const struct sqlite_store *s, uint64_t acked, struct berth_err *err)
{
    uint64_t revision = s->ledger.now.revision;
    if (revision >= acked)
        return 0;
    return err_set(err, EBADMSG,
                   "%s is damaged: it ends with revision %" PRIu64 ", but %" PRIu64
                   " was acknowledged; move it away and restore a backup",
                   s->path, revision, acked);
}

static int use_wal(struct db *db, struct berth_err *err)
{
    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db->handle, "PRAGMA journal_mode = WAL", -1, &row, NULL) != SQLITE_OK ||
        sqlite3_step(row) != SQLITE_ROW)
        return db_failed(db, err);
    const char *mode = (const char *)sqlite3_column_text(row, 0);
    bool wal = mode && strcmp(mode, "wal") == 0;
    if (sqlite3_step(row) != SQLITE_DONE) /* an unfinished statement would keep its locks */
        return db_failed(db, err);
    if (!wal)
        return err_set(err, ENOTSUP, "%s: the file system does not support shared memory; use a local disk", db->path);
    return 0;
}

/* Checkpoints and truncates the write-ahead log. This writes and syncs data again that a failing disk may have left
 * only in the page cache. A reading tool may block a part of it; the wait for tools is short. */
static int checkpoint_and_truncate(struct db *db, struct berth_err *err)
{
    enum { PATIENCE_MS = 1000 };
    (void)sqlite3_busy_timeout(db->handle, PATIENCE_MS);
    int rc = db_exec(db, "PRAGMA main.wal_checkpoint(TRUNCATE)", err);
    (void)sqlite3_busy_timeout(db->handle, DB_BUSY_MS);
    return rc;
}

static int open_readonly(struct sqlite_store *s, uint64_t acked, struct berth_err *err)
{
    int64_t version = 0;
    int rc = db_open(&s->reader, s->path, DB_READ, err);
    if (rc == 0)
        rc = db_exec(&s->reader, "BEGIN", err);
    if (rc == 0)
        rc = db_number(&s->reader, "PRAGMA user_version", &version, err);
    if (rc == 0 && version < STORE_FORMAT_READ)
        rc = err_set(err, ENOTSUP, "%s has an older format; open it once for writing to upgrade it", s->path);
    if (rc == 0)
        rc = ledger_verify(&s->reader, &s->ledger, err);
    if (rc == 0)
        rc = check_acked(s, acked, err);
    db_rollback(&s->reader);
    return rc;
}

static int open_writable(struct sqlite_store *s, uint64_t acked, struct berth_err *err)
{
    struct totals totals;
    int rc = db_open(&s->writer, s->path, DB_WRITE, err);
    if (rc == 0)
        rc = ledger_verify_migrated(&s->writer, &s->ledger, err);
    if (rc == 0)
        rc = check_acked(s, acked, err);
    if (rc == 0)
        rc = use_wal(&s->writer, err);
    if (rc == 0)
        rc = checkpoint_and_truncate(&s->writer, err);
    if (rc == 0)
        rc = db_prepare(&s->writer, err);
    if (rc == 0)
        rc = db_open(&s->reader, s->path, DB_READ, err);
    if (rc == 0)
        rc = totals_read(&s->reader, &totals, err); /* from now on the reader holds the log's index, see sqlite.h */
    if (rc < 0)
        return rc;
    sqlite_writer_settle(s);
    folder_set_acked(&s->folder, s->ledger.now.revision);
    s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->event_fd < 0)
        return err_set(err, errno, "cannot make an event descriptor: %s", strerror(errno));
    return 0;
}

/* Frees what a failed attempt to open has left. */
static void open_reset(struct sqlite_store *s)
{
    db_close(&s->reader);
    db_close(&s->writer);
    ledger_done(&s->ledger);
    s->ledger = (struct ledger){0};
}

static int open_folder(struct sqlite_store *s, const char *dir, const struct store_options *options,
                       struct berth_err *err)
{
    bool create = options->create && !options->readonly;
    int rc = folder_open(dir, create, &s->folder, err);
    if (rc < 0)
        return rc;
    s->path = folder_path(&s->folder, STORE_FILE);
    bool there = folder_has(&s->folder, STORE_FILE);
    if (!there && !create)
        return err_set(err, ENOENT, "there is no store in %s", dir);
    if (there)
        rc = format_probe(s->path, err);
    if (rc == 0 && !s->readonly)
        rc = folder_lock(&s->folder, err);
    if (rc == 0 && !folder_has(&s->folder, STORE_FILE))
        rc = format_create(&s->folder, err);
    if (rc < 0)
        return rc;
    /* Read before the store, because the store grows if another process writes it. */
    uint64_t acked = 0;
    rc = folder_acked(&s->folder, &acked, err);
    if (rc < 0)
        return rc;
    if (s->readonly)
        return open_readonly(s, acked, err);
    rc = open_writable(s, acked, err);
    if (rc == -ENOSPC && folder_reserve_release(&s->folder)) {
        open_reset(s);
        s->full = true;
        rc = open_writable(s, acked, err);
    }
    if (rc == 0 && !s->full)
        s->full = folder_reserve(&s->folder) == -ENOSPC;
    s->base.full = s->full_shown = s->full;
    return rc == 0 ? sqlite_writer_start(s, err) : rc;
}

int store_sqlite_open(const char *dir, const struct store_options *options, struct store **ret, struct berth_err *err)
{
    struct sqlite_store *s = mem_zalloc(sizeof *s);
    store_base_init(&s->base, &sqlite_ops);
    s->readonly = options->readonly;
    s->event_fd = -1;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->work, NULL);
    (void)pthread_cond_init(&s->work_done, NULL);

    int rc = open_folder(s, dir, options, err);
    if (rc < 0) {
        sqlite_close(&s->base);
        return rc;
    }
    s->base.revision = s->ledger.now.revision;
    s->base.log_seq = s->ledger.now.log_seq;
    s->base.log_trimmed = s->ledger.log_trimmed;
    s->compacted = s->ledger.now.compacted;
    *ret = &s->base;
    return 0;
}
