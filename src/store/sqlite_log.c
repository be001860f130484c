/* sqlite_log.c - the log: reading, verifying, trimming.
 *
 * Records are trimmed from the beginning. The last trimmed record stays as a row without revision and bytes, so that
 * the chain of later records can be verified. A real record is never empty.
 */
#include <errno.h>
#include <inttypes.h>

#include "store/sqlite.h"

#define LOG_COLUMNS "seq, revision, chain, record"

/* Reads and verifies a row of LOG_COLUMNS, given the chain hash before it. */
static int record_row_read(const struct db *db, sqlite3_stmt *row, uint64_t chain_before, struct store_record *ret,
                           struct berth_err *err)
{
    struct store_record record = {
        .seq = (uint64_t)sqlite3_column_int64(row, 0),
        .revision = (uint64_t)sqlite3_column_int64(row, 1),
        .chain = (uint64_t)sqlite3_column_int64(row, 2),
        .record = {sqlite3_column_blob(row, 3), (size_t)sqlite3_column_bytes(row, 3)},
    };
    if (record.record.len && !record.record.at)
        return db_failed(db, err);
    if (sqlite3_column_type(row, 3) != SQLITE_BLOB ||
        record.chain != store_chain(chain_before, record.seq, record.revision, record.record))
        return db_damaged(db, err, "the hash chain of the log breaks at record %" PRIu64, record.seq);
    *ret = record;
    return 0;
}

/* Returns whether this is the empty row that trimming leaves. */
static bool row_is_stub(sqlite3_stmt *row)
{
    return sqlite3_column_int64(row, 1) == 0 && sqlite3_column_type(row, 3) == SQLITE_BLOB &&
           sqlite3_column_bytes(row, 3) == 0;
}

/* ---- verifying -------------------------------------------------------------------------------------------------- */

int log_check(struct db *db, const struct totals *disk, uint64_t *ret_trimmed, struct berth_err *err)
{
    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db->handle, "SELECT " LOG_COLUMNS " FROM log ORDER BY seq", -1, &row, NULL) != SQLITE_OK)
        return db_failed(db, err);

    int code;
    uint64_t trimmed = 0;
    struct store_record last = {0};
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_record record = {0};
        if (last.seq == 0 && row_is_stub(row)) {
            trimmed = last.seq = (uint64_t)sqlite3_column_int64(row, 0);
            last.chain = (uint64_t)sqlite3_column_int64(row, 2);
            continue;
        }
        int rc = record_row_read(db, row, last.chain, &record, err);
        if (rc < 0)
            return rc;
        if (record.seq != last.seq + 1)
            return db_damaged(db, err, "record %" PRIu64 " of the log is missing", last.seq + 1);
        if (record.revision <= last.revision || record.revision > disk->revision)
            return db_damaged(db, err, "record %" PRIu64 " of the log is out of order", record.seq);
        last = record;
    }
    if (code != SQLITE_DONE)
        return db_failed(db, err);
    if (last.seq != disk->log_seq || last.chain != disk->log_chain)
        return db_damaged(db, err, "the log ends with record %" PRIu64 " instead of %" PRIu64, last.seq, disk->log_seq);
    *ret_trimmed = trimmed;
    return 0;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* Visits the rows of one state of the file. `trimmed`: the last trimmed record known to the caller. */
static int visit_rows(struct db *db, uint64_t from_seq, uint64_t to_seq, uint64_t trimmed, store_visit_record *visit,
                      void *ctx, struct berth_err *err)
{
    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db->handle, "SELECT " LOG_COLUMNS " FROM log WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq", -1,
                           &row, NULL) != SQLITE_OK)
        return db_failed(db, err);
    bool any = from_seq == 0;
    from_seq = any ? trimmed + 1 : from_seq;
    if (from_seq <= trimmed)
        return store_error_trimmed(from_seq, trimmed, err);
    (void)sqlite3_bind_int64(row, 1, (int64_t)(from_seq - 1));
    (void)sqlite3_bind_int64(row, 2, to_seq > INT64_MAX ? INT64_MAX : (int64_t)to_seq);

    int code;
    uint64_t chain = 0;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_record record = {0};
        uint64_t seq = (uint64_t)sqlite3_column_int64(row, 0);
        if (seq >= from_seq && row_is_stub(row)) {
            if (!any)
                return store_error_trimmed(from_seq, seq, err);
            from_seq = seq + 1;
        }
        if (seq < from_seq) {
            chain = (uint64_t)sqlite3_column_int64(row, 2); /* the preceding record, for the chain */
            continue;
        }
        int rc = record_row_read(db, row, chain, &record, err);
        if (rc == 0) {
            chain = record.chain;
            rc = visit(ctx, &record);
        }
        if (rc)
            return rc;
    }
    return code == SQLITE_DONE ? 0 : db_failed(db, err);
}

int sqlite_log(struct store *base, uint64_t from_seq, store_visit_record *visit, void *ctx, struct berth_err *err)
{
    CLEANUP(reading) struct read_snapshot r = {0};
    struct totals totals = {0};
    int rc = reading_begin(&r, sqlite_of(base), &totals, err);
    if (rc < 0 || from_seq > totals.log_seq)
        return rc;
    return visit_rows(r.db, from_seq, totals.log_seq, base->log_trimmed, visit, ctx, err);
}

int sqlite_log_concurrent(struct store *base, uint64_t from_seq, uint64_t to_seq, store_visit_record *visit, void *ctx,
                          struct berth_err *err)
{
    CLEANUP(db) struct db own = {0};
    int rc = db_open(&own, sqlite_of(base)->path, DB_READ, err);
    if (rc == 0)
        rc = db_exec(&own, "BEGIN", err);
    if (rc == 0)
        rc = visit_rows(&own, from_seq, to_seq, 0, visit, ctx, err);
    if (own.handle)
        db_rollback(&own);
    return rc;
}

/* ---- trimming --------------------------------------------------------------------------------------------------- */

int sqlite_log_trim(struct store *base, uint64_t seq, struct berth_err *err)
{
    struct sqlite_store *s = sqlite_of(base);
    if (s->readonly)
        return err_set(err, EROFS, "%s is open read-only", s->path);
    (void)pthread_mutex_lock(&s->lock);
    s->trim_goal = seq;
    (void)pthread_cond_signal(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
    return 0;
}

int log_trim_step(struct db *db, uint64_t *trimmed, uint64_t goal, int rows_max, struct berth_err *err)
{
    uint64_t to = goal - *trimmed > (uint64_t)rows_max ? *trimmed + (uint64_t)rows_max : goal;
    (void)sqlite3_bind_int64(db->statements[ST_LOG_DROP], 1, (int64_t)to);
    (void)sqlite3_bind_int64(db->statements[ST_LOG_EMPTY], 1, (int64_t)to);
    int rc = db_run(db, ST_LOG_DROP, err);
    if (rc == 0)
        rc = db_run(db, ST_LOG_EMPTY, err);
    if (rc == 0)
        *trimmed = to;
    return rc;
}
