/* sqlite_read.c - range and history, on the caller's thread.
 *
 * Each call reads one consistent state of the file, even if transactions commit meanwhile. The keys at revision r are
 * the present keys that were not written after r, and for every other key the value that its first change after r
 * replaced.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "store/sqlite.h"

int reading_begin(struct read_snapshot *r, struct sqlite_store *s, struct totals *ret, struct berth_err *err)
{
    bool taken = !sqlite3_get_autocommit(s->reader.handle);
    int rc = taken ? db_open(&r->extra, s->path, DB_READ, err) : 0;
    if (rc < 0)
        return rc;
    r->db = taken ? &r->extra : &s->reader;
    rc = db_exec(r->db, "BEGIN", err);
    return rc < 0 ? rc : totals_read(r->db, ret, err); /* the first read starts the transaction */
}

void reading_cleanup(struct read_snapshot *r)
{
    if (r->db)
        db_rollback(r->db);
    db_close(&r->extra);
}

/* Keys contain no byte above '~', so the keys with a prefix lie between the prefix and the prefix plus one more
 * byte. */
static void bind_prefix(sqlite3_stmt *row, int nth, const char *prefix)
{
    CLEANUP(str) struct str end = {0};
    str_addf(&end, "%s%c", prefix, '~' + 1);
    (void)sqlite3_bind_text(row, nth, prefix, -1, SQLITE_TRANSIENT);
    (void)sqlite3_bind_text(row, nth + 1, end.at, (int)end.len, SQLITE_TRANSIENT);
}

#define CHANGE_AT "SELECT " CHANGE_COLUMNS " FROM change WHERE place = ?1"

/* ---- range ------------------------------------------------------------------------------------------------------- */

struct key_collection {
    const char *prefix;
    uint64_t revision; /* filled in if it was 0 */
    uint64_t present;
    struct versions *to;
};

/* Collects the present keys, where the ledger may be read. */
static int keys_collect(struct sqlite_store *s, void *ctx, struct berth_err *err)
{
    struct key_collection *g = ctx;
    const struct totals *now = &s->ledger.now;

    g->present = now->revision;
    if (g->revision == 0)
        g->revision = now->revision;
    if (g->revision < now->compacted)
        return store_error_compacted(g->revision, now->compacted, err);
    if (g->revision > now->revision)
        return store_error_future(g->revision, now->revision, err);
    heads_collect(&s->ledger.heads, g->prefix, place_of(g->revision + 1, 0) - 1, g->to);
    return 0;
}

/* Adds the values that were replaced after the revision. */
static int keys_collect_replaced(struct db *db, const struct key_collection *g, struct berth_err *err)
{
    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    uint64_t end = place_of(g->revision + 1, 0) - 1;
    if (g->revision == g->present)
        return 0;
    if (sqlite3_prepare_v2(db->handle,
                           "SELECT key, replaced FROM change WHERE place > ?1 AND place <= ?2"
                           " AND replaced > 0 AND replaced <= ?1 AND key >= ?3 AND key < ?4",
                           -1, &row, NULL) != SQLITE_OK)
        return db_failed(db, err);
    (void)sqlite3_bind_int64(row, 1, (int64_t)end);
    (void)sqlite3_bind_int64(row, 2, (int64_t)(place_of(g->present + 1, 0) - 1));
    bind_prefix(row, 3, g->prefix);

    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(row, 0);
        if (!key)
            return db_failed(db, err);
        versions_add(g->to, key, (uint64_t)sqlite3_column_int64(row, 1));
    }
    return code == SQLITE_DONE ? 0 : db_failed(db, err);
}

static int visit_versions(struct db *db, const struct versions *found, store_visit *visit, void *ctx,
                          struct berth_err *err)
{
    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db->handle, CHANGE_AT, -1, &row, NULL) != SQLITE_OK)
        return db_failed(db, err);

    int rc = 0;
    for (size_t i = 0; i < found->list.len && rc == 0; i++) {
        const struct version *version = &found->list.at[i];
        struct history_row change = {0};
        struct bytes value = {0};
        (void)sqlite3_bind_int64(row, 1, (int64_t)version->place);
        int code = sqlite3_step(row);
        if (code == SQLITE_ROW)
            rc = change_row_read(db, row, &change, &value, err);
        else if (code != SQLITE_DONE)
            rc = db_failed(db, err);
        if (rc == 0 && (!change.key || change.gone || strcmp(change.key, version->key) != 0))
            rc = db_damaged(db, err, "the value of %.80s in revision %" PRIu64 " is missing", version->key,
                            place_revision(version->place));
        if (rc == 0) {
            struct store_entry entry = {change.key, value, change.created, place_revision(change.place)};
            rc = visit(ctx, &entry);
        }
        (void)sqlite3_reset(row);
    }
    return rc;
}

int sqlite_range(struct store *base, const char *prefix, uint64_t revision, store_visit *visit, void *ctx,
                 struct berth_err *err)
{
    struct sqlite_store *s = sqlite_of(base);
    CLEANUP(reading) struct read_snapshot r = {0};
    CLEANUP(versions) struct versions found;
    struct key_collection g = {.prefix = prefix, .revision = revision, .to = &found};
    struct totals totals = {0};
    int rc;

    versions_init(&found);
    if (s->readonly) {
        /* Another process writes the store, so the ledger is updated to the state that is read. */
        rc = reading_begin(&r, s, &totals, err);
        if (rc == 0)
            rc = ledger_follow(r.db, &s->ledger, err);
        if (rc == 0)
            rc = keys_collect(s, &g, err);
        s->compacted = s->ledger.now.compacted;
    } else {
        /* The keys are collected before the state is opened. The state then has every value of these keys, because
         * compaction does not go beyond the pumped revision. */
        rc = sqlite_call(s, keys_collect, &g, err);
        if (rc == 0)
            rc = reading_begin(&r, s, &totals, err);
    }
    if (rc == 0)
        rc = keys_collect_replaced(r.db, &g, err);
    if (rc)
        return rc;
    versions_sort(&found);
    return visit_versions(r.db, &found, visit, ctx, err);
}

/* ---- history ----------------------------------------------------------------------------------------------------- */

/* Reads the value that a change replaced, if any; valid until the row is reset. */
static int replaced_read(struct db *db, sqlite3_stmt *row, const struct history_row *change, struct bytes *ret,
                         struct berth_err *err)
{
    struct history_row before = {0};
    if (!change->replaced)
        return 0;
    (void)sqlite3_bind_int64(row, 1, (int64_t)change->replaced);
    int code = sqlite3_step(row);
    if (code == SQLITE_DONE)
        return db_damaged(db, err, "what revision %" PRIu64 " replaced of %.80s is missing",
                          place_revision(change->place), change->key);
    int rc = code == SQLITE_ROW ? change_row_read(db, row, &before, ret, err) : db_failed(db, err);
    if (rc == 0 && !ret->at)
        ret->at = ""; /* present, but empty */
    return rc;
}

static int event_visit(struct db *db, sqlite3_stmt *row, sqlite3_stmt *before, store_visit_event *visit, void *ctx,
                       struct berth_err *err)
{
    struct history_row change = {0};
    struct bytes value = {0}, replaced = {0};
    int rc = change_row_read(db, row, &change, &value, err);
    if (rc == 0)
        rc = replaced_read(db, before, &change, &replaced, err);
    if (rc == 0) {
        struct store_event event = {change.key, value, change.gone, change.created, place_revision(change.place),
                                    replaced};
        rc = visit(ctx, &event);
    }
    (void)sqlite3_reset(before);
    return rc;
}

int sqlite_history(struct store *base, const char *prefix, uint64_t from, uint64_t to, store_visit_event *visit,
                   void *ctx, struct berth_err *err)
{
    struct sqlite_store *s = sqlite_of(base);
    CLEANUP(reading) struct read_snapshot r = {0};
    struct totals totals = {0};
    int rc = reading_begin(&r, s, &totals, err);
    if (rc < 0)
        return rc;
    if (from < totals.compacted)
        return store_error_compacted(from, totals.compacted, err);
    if (to == 0 || to > totals.revision)
        to = totals.revision;
    if (from >= to)
        return 0;

    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    CLEANUP(stmt) sqlite3_stmt *before = NULL;
    if (sqlite3_prepare_v2(r.db->handle,
                           "SELECT " CHANGE_COLUMNS " FROM change WHERE place >= ?1 AND place < ?2"
                           " AND key >= ?3 AND key < ?4 ORDER BY place",
                           -1, &row, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(r.db->handle, CHANGE_AT, -1, &before, NULL) != SQLITE_OK)
        return db_failed(r.db, err);
    (void)sqlite3_bind_int64(row, 1, (int64_t)place_of(from + 1, 0));
    (void)sqlite3_bind_int64(row, 2, (int64_t)place_of(to + 1, 0));
    bind_prefix(row, 3, prefix);

    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        rc = event_visit(r.db, row, before, visit, ctx, err);
        if (rc)
            return rc;
    }
    return code == SQLITE_DONE ? 0 : db_failed(r.db, err);
}
