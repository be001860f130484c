/* sqlite_change.c - rows of history: written with a transaction, deleted after a compaction. */
#include <assert.h>
#include <string.h>

#include "store/sqlite.h"

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int write_change(struct db *db, const struct store_op *op, const struct effect *effect, uint64_t *digest,
                        struct berth_err *err)
{
    struct history_row change = {effect->place, effect->replaced, effect->created, op->key, op->gone};
    uint64_t sum = change_row_sum(&change, op->value);
    sqlite3_stmt *row = db->statements[ST_CHANGE_ADD];

    /* Binds by reference, because the transaction outlives the statement. A failed bind is detected when the statement
     * runs. */
    (void)sqlite3_bind_int64(row, 1, (int64_t)change.place);
    (void)sqlite3_bind_text(row, 2, op->key, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(row, 3, (int64_t)change.replaced);
    (void)sqlite3_bind_int64(row, 4, (int64_t)change.created);
    (void)sqlite3_bind_int64(row, 5, (int64_t)sum);
    if (op->gone)
        (void)sqlite3_bind_null(row, 6);
    else if (op->value.len == 0)
        (void)sqlite3_bind_zeroblob(row, 6, 0);
    else
        (void)sqlite3_bind_blob(row, 6, op->value.at, (int)op->value.len, SQLITE_STATIC);
    *digest += sum;
    return db_run(db, ST_CHANGE_ADD, err);
}

static int write_record(struct db *db, struct queued *q, struct totals *now, struct berth_err *err)
{
    struct bytes record = q->txn.record;
    sqlite3_stmt *row = db->statements[ST_LOG_ADD];

    now->log_seq++;
    now->log_chain = store_chain(now->log_chain, now->log_seq, now->revision, record);
    q->result.log_seq = now->log_seq;
    (void)sqlite3_bind_int64(row, 1, (int64_t)now->log_seq);
    (void)sqlite3_bind_int64(row, 2, (int64_t)now->revision);
    (void)sqlite3_bind_int64(row, 3, (int64_t)now->log_chain);
    (void)sqlite3_bind_blob(row, 4, record.at, (int)record.len, SQLITE_STATIC);
    return db_run(db, ST_LOG_ADD, err);
}

int change_row_write(struct db *db, struct ledger *ledger, struct queued *q, struct berth_err *err)
{
    struct totals *now = &ledger->now;
    int rc = 0;

    if (now->revision >= STORE_REVISION_MAX)
        return db_damaged(db, err, "the store has no revisions left");
    if (!heads_apply(&ledger->heads, q, now->revision + 1))
        return 0;
    now->revision++;
    for (size_t i = 0; i < q->txn.ops_len && rc == 0; i++)
        if (q->effects[i].place)
            rc = write_change(db, &q->txn.ops[i], &q->effects[i], &now->digest, err);
    return rc == 0 && q->txn.record.len ? write_record(db, q, now, err) : rc;
}

/* ---- sweeping ---------------------------------------------------------------------------------------------------- */

static int drop_change(struct db *db, uint64_t place, uint64_t *digest, struct berth_err *err)
{
    sqlite3_stmt *row = db->statements[ST_CHANGE_DROP];
    (void)sqlite3_bind_int64(row, 1, (int64_t)place);
    int rc = 0, code = sqlite3_step(row);
    if (code == SQLITE_ROW) {
        *digest -= (uint64_t)sqlite3_column_int64(row, 0);
        code = sqlite3_step(row);
    } else if (code == SQLITE_DONE) {
        rc = db_damaged(db, err, "a change that should be compacted is missing");
    }
    if (rc == 0 && code != SQLITE_DONE)
        rc = db_failed(db, err);
    (void)sqlite3_reset(row);
    return rc;
}

bool change_sweep_left(const struct totals *now)
{
    return now->swept < place_of(now->compacted + 1, 0) - 1 && now->compacted > 0;
}

struct swept {
    uint64_t place, replaced;
    bool gone;
};

int change_sweep(struct db *db, struct totals *now, int rows_max, struct berth_err *err)
{
    uint64_t end = place_of(now->compacted + 1, 0) - 1;
    struct swept rows[SWEEP_MAX];
    int len = 0, code, rc = 0;
    sqlite3_stmt *row = db->statements[ST_SWEEP];

    assert(rows_max > 0 && rows_max <= SWEEP_MAX);
    (void)sqlite3_bind_int64(row, 1, (int64_t)now->swept);
    (void)sqlite3_bind_int64(row, 2, (int64_t)end);
    (void)sqlite3_bind_int(row, 3, rows_max);
    /* Reads first, then deletes: a table must not change during a walk through it. */
    while ((code = sqlite3_step(row)) == SQLITE_ROW)
        rows[len++] = (struct swept){(uint64_t)sqlite3_column_int64(row, 0), (uint64_t)sqlite3_column_int64(row, 1),
                                     sqlite3_column_int(row, 2)};
    if (code != SQLITE_DONE)
        rc = db_failed(db, err);
    (void)sqlite3_reset(row);
    for (int i = 0; i < len && rc == 0; i++) {
        if (rows[i].replaced)
            rc = drop_change(db, rows[i].replaced, &now->digest, err);
        if (rc == 0 && rows[i].gone)
            rc = drop_change(db, rows[i].place, &now->digest, err);
    }
    if (rc == 0)
        now->swept = len < rows_max ? end : rows[len - 1].place;
    return rc;
}
