/* sqlite_recover.c - after a failure: reconnects, compares with the disk, and reports transactions that are durable. */
#include <errno.h>
#include <string.h>

#include "store/sqlite.h"

struct found_changes {
    struct txn_queue *to;
    VEC(struct store_op) ops;
    VEC(struct effect) effects;
    uint64_t revision;
};

static void found_changes_clear(struct found_changes *f)
{
    for (size_t i = 0; i < f->ops.len; i++) {
        mem_free((void *)f->ops.at[i].key);
        mem_free((void *)f->ops.at[i].value.at);
    }
    f->ops.len = f->effects.len = 0;
}

/* Creates a found transaction from the changes gathered so far. */
static void found_changes_end(struct found_changes *f)
{
    struct store_txn txn = {.ops = f->ops.at, .ops_len = f->ops.len};
    struct queued *q = queued_new(&txn, NULL, NULL);
    memcpy(q->effects, f->effects.at, f->effects.len * sizeof *q->effects);
    q->found = q->took_effect = true;
    q->result.revision = f->revision;
    queued_push(f->to, q);
    found_changes_clear(f);
}

static void *copy_of(const void *p, size_t len)
{
    void *copy = mem_alloc(len ? len : 1);
    if (len)
        memcpy(copy, p, len);
    return copy;
}

/* Reads the changes after a revision, as transactions without a submitter. After a failure the last one may be
 * missing. */
static int find_changes(struct db *db, uint64_t after, struct txn_queue *to, struct berth_err *err)
{
    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db->handle, "SELECT " CHANGE_COLUMNS " FROM change WHERE place > ?1 ORDER BY place", -1,
                           &row, NULL) != SQLITE_OK)
        return db_failed(db, err);
    (void)sqlite3_bind_int64(row, 1, (int64_t)(place_of(after + 1, 0) - 1));

    struct found_changes f = {.to = to};
    int rc = 0, code;
    while (rc == 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
        struct history_row change = {0};
        struct bytes value = {0};
        rc = change_row_read(db, row, &change, &value, err);
        if (rc < 0)
            break;
        if (f.ops.len && f.revision != place_revision(change.place))
            found_changes_end(&f);
        f.revision = place_revision(change.place);
        vec_push(&f.ops, ((struct store_op){
                             mem_strdup(change.key), {copy_of(value.at, value.len), value.len},
                              change.gone
        }));
        vec_push(&f.effects, ((struct effect){change.place, change.replaced, change.created}));
    }
    if (rc == 0 && code != SQLITE_DONE)
        rc = db_failed(db, err);
    if (rc == 0 && f.ops.len)
        found_changes_end(&f);
    found_changes_clear(&f);
    vec_done(&f.ops);
    vec_done(&f.effects);
    return rc;
}

/* Updates the ledger last, and completely or not at all, because contents of the ledger are never searched again. */
static int catch_up(struct sqlite_store *s, struct txn_queue *found, struct berth_err *err)
{
    struct txn_queue more = {0};
    int rc = db_exec(&s->writer, "BEGIN", err);
    if (rc == 0)
        rc = find_changes(&s->writer, s->ledger.now.revision, &more, err);
    if (rc == 0)
        rc = ledger_follow(&s->writer, &s->ledger, err);
    db_rollback(&s->writer);
    if (rc == 0)
        queued_append(found, &more);
    for (struct queued *q; (q = queued_pop(&more));)
        queued_free(q);
    return rc;
}

int sqlite_writer_connect(struct sqlite_store *s, struct txn_queue *found, struct berth_err *err)
{
    if (s->writer.handle)
        return 0;
    int rc = db_open(&s->writer, s->path, DB_WRITE, err);
    if (rc == 0)
        rc = db_prepare(&s->writer, err);
    if (rc == 0)
        rc = catch_up(s, found, err);
    if (rc == 0)
        sqlite_writer_settle(s);
    else
        db_close(&s->writer);
    return rc;
}
