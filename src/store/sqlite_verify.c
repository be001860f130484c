/* sqlite_verify.c - reads a whole store: loads the present keys and proves that nothing is damaged.
 *
 * Every change has a checksum and names the change that it replaced. The sum of the checksums must match `meta`, so no
 * change is missing. The log is chained. SQLite's own check verifies the page structure.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "store/sqlite.h"

uint64_t change_row_sum(const struct history_row *change, struct bytes value)
{
    uint64_t h = hash_pair(hash_pair(change->place, change->replaced), change->created);
    h = hash_bytes(change->key, strlen(change->key), h);
    return hash_bytes(value.at, value.len, hash_pair(h, change->gone));
}

int change_row_read(const struct db *db, sqlite3_stmt *row, struct history_row *ret, struct bytes *ret_value,
                    struct berth_err *err)
{
    int type = sqlite3_column_type(row, 5);
    struct history_row change = {
        .place = (uint64_t)sqlite3_column_int64(row, 0),
        .replaced = (uint64_t)sqlite3_column_int64(row, 2),
        .created = (uint64_t)sqlite3_column_int64(row, 3),
        .gone = type == SQLITE_NULL,
    };
    bool text = sqlite3_column_type(row, 1) == SQLITE_TEXT;
    change.key = text ? (const char *)sqlite3_column_text(row, 1) : "";
    struct bytes value = {sqlite3_column_blob(row, 5), (size_t)sqlite3_column_bytes(row, 5)};
    if (!change.key || (value.len && !value.at))
        return db_failed(db, err);
    if (!text || !store_key_valid(change.key, (size_t)sqlite3_column_bytes(row, 1)) ||
        (type != SQLITE_NULL && type != SQLITE_BLOB) ||
        (uint64_t)sqlite3_column_int64(row, 4) != change_row_sum(&change, value))
        return db_damaged(db, err, "the checksum of a change in revision %" PRIu64 " is wrong",
                          place_revision(change.place));
    *ret = change;
    *ret_value = value;
    return 0;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Number of rows after which a full load frees its undo memory. */
enum { LOAD_KEEP = 4096 };

/* Loads the changes after a place; the caller keeps or undoes them. Sums up their checksums. */
static int load_rows(struct db *db, struct heads *heads, const struct totals *disk, uint64_t after,
                     uint64_t *ret_digest, struct berth_err *err)
{
    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db->handle, "SELECT " CHANGE_COLUMNS " FROM change WHERE place > ?1 ORDER BY place", -1,
                           &row, NULL) != SQLITE_OK)
        return db_failed(db, err);
    (void)sqlite3_bind_int64(row, 1, (int64_t)after);

    int code;
    uint64_t last = after, digest = 0;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct history_row change = {0};
        struct bytes value = {0};
        int rc = change_row_read(db, row, &change, &value, err);
        if (rc < 0)
            return rc;
        uint64_t revision = place_revision(change.place);
        const char *wrong = change.place <= last || revision == 0 || revision > disk->revision
                                ? "is out of order"
                                : heads_load(heads, &change, disk->swept);
        if (wrong)
            return db_damaged(db, err, "the change of %.80s in revision %" PRIu64 " %s", change.key, revision, wrong);
        last = change.place;
        if (after == 0 && heads->undo.len >= LOAD_KEEP)
            heads_keep(heads); /* an initial load needs no undo */
        digest += (uint64_t)sqlite3_column_int64(row, 4);
    }
    if (code != SQLITE_DONE)
        return db_failed(db, err);
    *ret_digest = digest;
    return 0;
}

static int load_changes(struct db *db, struct heads *heads, const struct totals *disk, uint64_t after,
                        uint64_t *ret_digest, struct berth_err *err)
{
    int rc = load_rows(db, heads, disk, after, ret_digest, err);
    if (rc == 0)
        heads_keep(heads);
    else
        heads_undo(heads);
    return rc;
}

static int check_pages(struct db *db, struct berth_err *err)
{
    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db->handle, "PRAGMA quick_check(1)", -1, &row, NULL) != SQLITE_OK ||
        sqlite3_step(row) != SQLITE_ROW)
        return db_failed(db, err);
    const char *found = (const char *)sqlite3_column_text(row, 0);
    if (!found)
        return db_failed(db, err);
    return strcmp(found, "ok") == 0 ? 0 : db_damaged(db, err, "%s", found);
}

int ledger_verify(struct db *db, struct ledger *ret, struct berth_err *err)
{
    CLEANUP(ledger) struct ledger made = {0};
    uint64_t digest = 0;
    int rc = totals_read(db, &made.now, err);
    if (rc == 0)
        rc = check_pages(db, err);
    if (rc == 0)
        rc = load_changes(db, &made.heads, &made.now, 0, &digest, err);
    if (rc == 0 && digest != made.now.digest)
        rc = db_damaged(db, err, "changes are missing or outdated");
    if (rc == 0)
        rc = log_check(db, &made.now, &made.log_trimmed, err);
    if (rc < 0)
        return rc;
    *ret = ledger_take(&made);
    return 0;
}

int ledger_follow(struct db *db, struct ledger *ledger, struct berth_err *err)
{
    struct totals disk = {0};
    uint64_t digest = 0;
    int rc = totals_read(db, &disk, err);
    if (rc < 0 || disk.revision == ledger->now.revision) {
        if (rc == 0)
            ledger->now = disk;
        return rc;
    }
    if (disk.revision < ledger->now.revision)
        return db_damaged(db, err, "the store has revision %" PRIu64 ", but %" PRIu64 " was acknowledged",
                          disk.revision, ledger->now.revision);
    if (disk.compacted > ledger->now.revision) {
        /* Deletions may have been swept already, so everything is loaded again. */
        struct ledger whole = {0};
        rc = ledger_verify(db, &whole, err);
        if (rc == 0) {
            ledger_done(ledger);
            *ledger = whole;
        }
        return rc;
    }
    rc = load_changes(db, &ledger->heads, &disk, place_of(ledger->now.revision + 1, 0) - 1, &digest, err);
    if (rc == 0)
        ledger->now = disk;
    return rc;
}

int ledger_verify_migrated(struct db *db, struct ledger *ret, struct berth_err *err)
{
    struct ledger made = {0};
    int rc = db_exec(db, "BEGIN IMMEDIATE", err);
    if (rc == 0)
        rc = format_migrate(db, err);
    if (rc == 0)
        rc = ledger_verify(db, &made, err);
    if (rc == 0)
        rc = db_exec(db, "COMMIT", err);
    if (rc < 0) {
        db_rollback(db);
        ledger_done(&made);
        return rc;
    }
    *ret = made;
    return 0;
}
