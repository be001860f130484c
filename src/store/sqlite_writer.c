/* sqlite_writer.c - the writer thread, which makes all changes to the file.
 *
 * The thread takes queued transactions, evaluates each in order within one SQLite transaction, commits once, and hands
 * the results back. The next batch gathers during the sync: the slower the disk, the larger the batches.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "store/sqlite.h"

/* A batch is bounded, so that its first transaction does not wait long for its last. */
enum { BATCH_TXNS_MAX = 1024, BATCH_BYTES_MAX = 16 * 1024 * 1024 };
enum { GATHER_NS = 50 * 1000 };
/* Number of changes swept per commit after a compaction: with a batch, and when the thread is idle. */
enum { SWEEP_BUSY = 256, SWEEP_IDLE = SWEEP_MAX };
/* Pages of the write-ahead log after which a checkpoint runs: immediately, or when no transaction waits. Reusing the
 * log is faster than growing it, because its size need not be synced. */
enum { WAL_BUSY_PAGES = 16384, WAL_IDLE_PAGES = 2048, WAL_RETRY_PAGES = 1024 };

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static bool is_broken(struct sqlite_store *s, struct berth_err *err)
{
    (void)pthread_mutex_lock(&s->lock);
    bool broken = s->broken[0];
    if (broken)
        (void)err_set(err, EIO, "%s", s->broken);
    (void)pthread_mutex_unlock(&s->lock);
    return broken;
}

/* Closes the connection without changing the file, whose state is unknown. */
static void disconnect(struct sqlite_store *s)
{
    if (s->writer.handle)
        (void)sqlite3_db_config(s->writer.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    db_close(&s->writer);
}

/* Marks the store as broken: transactions in progress cannot be trusted any more, and new ones are rejected. */
static void mark_broken(struct sqlite_store *s, const struct berth_err *why)
{
    disconnect(s);
    (void)pthread_mutex_lock(&s->lock);
    if (!s->broken[0])
        memcpy(s->broken, why->text, sizeof s->broken);
    (void)pthread_mutex_unlock(&s->lock);
}

static int connect(struct sqlite_store *s, struct txn_queue *out, struct berth_err *err)
{
    if (is_broken(s, err))
        return -EIO;
    int rc = sqlite_writer_connect(s, out, err);
    if (rc == -EBADMSG) {
        mark_broken(s, err);
        rc = -EIO;
    }
    return rc;
}

/* Handles a failed commit, after everything in memory was undone. Returns the code for the submitters. */
static int recover(struct sqlite_store *s, int rc, struct txn_queue *out, const struct berth_err *err)
{
    db_rollback(&s->writer);
    switch (rc) {
    case -ENOSPC:
    case -EBUSY:
    case -ENOMEM: return rc; /* SQLite has rolled back; the connection is still usable */
    case -EBADMSG: mark_broken(s, err); return -EIO;
    default: break;
    }
    disconnect(s);
    struct berth_err again = {0};
    (void)connect(s, out, &again); /* on failure the next batch tries again */
    return rc;
}

static uint64_t trim_goal(struct sqlite_store *s)
{
    (void)pthread_mutex_lock(&s->lock);
    uint64_t goal = s->trim_goal;
    (void)pthread_mutex_unlock(&s->lock);
    return goal;
}

/* Writes a batch. An empty batch writes only pending totals, sweeping and trimming. */
static int batch_write(struct sqlite_store *s, struct txn_queue *batch, int sweep_rows, struct txn_queue *out,
                       struct totals now, struct berth_err *err)
{
    struct db *db = &s->writer;
    struct totals before = s->ledger.now;
    uint64_t trimmed = s->ledger.log_trimmed, goal = trim_goal(s);
    int rc = db_run(db, ST_BEGIN, err);

    s->ledger.now = now;
    for (struct queued *q = batch->first; q && rc == 0; q = q->next)
        rc = change_row_write(db, &s->ledger, q, err);
    if (rc == 0 && sweep_rows && change_sweep_left(&s->ledger.now))
        rc = change_sweep(db, &s->ledger.now, sweep_rows, err);
    if (rc == 0 && sweep_rows && goal > trimmed)
        rc = log_trim_step(db, &s->ledger.log_trimmed, goal, sweep_rows, err);
    if (rc == 0 && memcmp(&s->ledger.now, &before, sizeof before) != 0)
        rc = totals_write(db, &s->ledger.now, err);
    if (rc == 0)
        rc = db_run(db, ST_COMMIT, err);
    if (rc == 0) {
        heads_keep(&s->ledger.heads);
        folder_set_acked(&s->folder, s->ledger.now.revision);
        return 0;
    }
    heads_undo(&s->ledger.heads);
    s->ledger.now = before;
    s->ledger.log_trimmed = trimmed;
    return recover(s, rc, out, err);
}

/* Runs a checkpoint. A failure is harmless: the log grows, and the next checkpoint tries again. A reader may block a
 * part. */
static void checkpoint(struct sqlite_store *s)
{
    (void)sqlite3_wal_checkpoint_v2(s->writer.handle, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    s->wal_pages_tried = s->wal_pages;
}

/* On a full disk, writes deletions into the released reserve and rejects other transactions. Does not sweep, because
 * sweeping needs space. When the reserve is used up, checkpoints the write-ahead log and reuses it from its
 * beginning. */
static int batch_write_full(struct sqlite_store *s, struct txn_queue *batch, struct txn_queue *out,
                            struct berth_err *err)
{
    struct txn_queue refused = {0};
    reserve_batch_cut(batch, &refused);
    int rc = batch->first ? batch_write(s, batch, 0, out, s->ledger.now, err) : 0;
    if (rc == -ENOSPC && s->writer.handle) {
        checkpoint(s);
        rc = batch_write(s, batch, 0, out, s->ledger.now, err);
    }
    queued_append(out, &refused);
    return rc;
}

static int batch_try(struct sqlite_store *s, struct txn_queue *batch, struct txn_queue *out, struct berth_err *err)
{
    if (s->full)
        s->full = folder_reserve(&s->folder) < 0;
    if (s->full)
        return batch_write_full(s, batch, out, err);
    int rc = batch_write(s, batch, SWEEP_BUSY, out, s->ledger.now, err);
    if (rc != -ENOSPC || !folder_reserve_release(&s->folder))
        return rc;
    s->full = true;
    return batch_write_full(s, batch, out, err);
}

/* Moves the batch to `out`, finished or failed, after any transactions that were found on disk. */
static void batch_run(struct sqlite_store *s, struct txn_queue *batch, struct txn_queue *out)
{
    struct berth_err err = {0};
    int rc = connect(s, out, &err);
    if (rc == 0)
        rc = batch_try(s, batch, out, &err);
    for (struct queued *q = batch->first; q && rc < 0; q = q->next)
        queued_fail(q, -rc, err.text);
    s->idle_failed = rc < 0;
    queued_append(out, batch);
}

/* ---- between batches --------------------------------------------------------------------------------------------- */

int sqlite_writer_compact(struct sqlite_store *s, void *ctx, struct berth_err *err)
{
    struct txn_queue none = {0};
    int rc = connect(s, &s->found, err);
    if (rc < 0)
        return rc;
    struct totals now = s->ledger.now;
    now.compacted = *(const uint64_t *)ctx;
    return batch_write(s, &none, SWEEP_BUSY, &s->found, now, err);
}

static bool checkpoint_due(const struct sqlite_store *s, int pages)
{
    return s->writer.handle && s->wal_pages >= pages &&
           (s->wal_pages_tried == 0 || s->wal_pages >= s->wal_pages_tried + WAL_RETRY_PAGES);
}

static int note_wal(void *ctx, sqlite3 *handle, const char *name, int pages)
{
    struct sqlite_store *s = ctx;
    (void)handle;
    (void)name;
    if (pages < s->wal_pages)
        s->wal_pages_tried = 0; /* the log was checkpointed completely and restarted */
    s->wal_pages = pages;
    return SQLITE_OK;
}

void sqlite_writer_settle(struct sqlite_store *s)
{
    (void)sqlite3_wal_hook(s->writer.handle, note_wal, s);
    (void)sqlite3_db_config(s->writer.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
}

/* Requires the lock. */
static bool idle_due(const struct sqlite_store *s)
{
    bool sweeps = change_sweep_left(&s->ledger.now) || s->trim_goal > s->ledger.log_trimmed;
    return (sweeps && s->writer.handle && !s->idle_failed && !s->full) || checkpoint_due(s, WAL_IDLE_PAGES);
}

static void idle_run(struct sqlite_store *s)
{
    struct berth_err err = {0};
    struct txn_queue none = {0};
    if (checkpoint_due(s, WAL_IDLE_PAGES))
        checkpoint(s);
    else
        s->idle_failed = batch_write(s, &none, SWEEP_IDLE, &s->found, s->ledger.now, &err) < 0;
}

/* ---- thread ----------------------------------------------------------------------------------------------------- */

/* Requires the lock. The submitters of the last batch are about to submit again, one after another. A short wait makes
 * one commit out of two. A single submitter never waits. */
static void batch_gather(struct sqlite_store *s)
{
    if (s->batch_len <= 1 || s->waiting_len >= s->batch_len)
        return;
    (void)pthread_mutex_unlock(&s->lock);
    (void)nanosleep(&(struct timespec){.tv_nsec = GATHER_NS}, NULL);
    (void)pthread_mutex_lock(&s->lock);
}

/* Requires the lock. */
static struct txn_queue batch_take(struct sqlite_store *s)
{
    struct txn_queue batch = {0};
    size_t bytes = 0, n = 0;
    for (; s->waiting.first && n < BATCH_TXNS_MAX && bytes < BATCH_BYTES_MAX; n++) {
        struct queued *q = queued_pop(&s->waiting);
        bytes += q->bytes;
        queued_push(&batch, q);
    }
    s->waiting_len -= n;
    s->batch_len = n;
    return batch;
}

/* Requires the lock. */
static void finish(struct sqlite_store *s, struct txn_queue *out)
{
    if (!out->first)
        return;
    s->full_shown = s->full;
    queued_append(&s->finished, out);
    if (!s->event_fd_readable)
        s->event_fd_readable = eventfd_write(s->event_fd, 1) == 0;
    (void)pthread_cond_broadcast(&s->work_done);
}

static void *writer_main(void *arg)
{
    struct sqlite_store *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        struct writer_job *job = s->job;
        if (job) {
            s->job = NULL;
            (void)pthread_mutex_unlock(&s->lock);
            int rc = job->run(s, job->ctx, job->err);
            (void)pthread_mutex_lock(&s->lock);
            job->rc = rc;
            job->done = true;
            (void)pthread_cond_broadcast(&s->work_done);
        } else if (s->waiting.first) {
            batch_gather(s);
            struct txn_queue batch = batch_take(s);
            (void)pthread_mutex_unlock(&s->lock);
            batch_run(s, &batch, &s->found);
            (void)pthread_mutex_lock(&s->lock);
            finish(s, &s->found);
            if (!checkpoint_due(s, WAL_BUSY_PAGES))
                continue;
            (void)pthread_mutex_unlock(&s->lock);
            checkpoint(s);
            (void)pthread_mutex_lock(&s->lock);
            continue;
        } else if (s->stop) {
            break;
        } else if (idle_due(s)) {
            (void)pthread_mutex_unlock(&s->lock);
            idle_run(s);
            (void)pthread_mutex_lock(&s->lock);
        } else {
            (void)pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        finish(s, &s->found);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

int sqlite_writer_start(struct sqlite_store *s, struct berth_err *err)
{
    /* Other threads of the program handle signals. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&s->thread, NULL, writer_main, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code)
        return err_set(err, code, "cannot start the store's thread: %s", strerror(code));
    s->running = true;
    return 0;
}

void sqlite_writer_stop(struct sqlite_store *s)
{
    if (!s->running)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)pthread_cond_signal(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
    s->running = false;
}
