/* sqlite_format.c - the format of a store's SQLite file, and migrations from older formats. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "store/sqlite.h"

enum { APPLICATION_ID = 0x42727468 }; /* "Brth" */

/* ---- the row of meta --------------------------------------------------------------------------------------------- */

static uint64_t totals_sum(const struct totals *t)
{
    return hash_pair(hash_pair(hash_pair(t->revision, t->compacted), hash_pair(t->swept, t->digest)),
                     hash_pair(t->log_seq, t->log_chain));
}

int totals_read(struct db *db, struct totals *ret, struct berth_err *err)
{
    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db->handle,
                           "SELECT revision, compacted, swept, digest, log_seq, log_chain, sum FROM meta WHERE one = 1",
                           -1, &row, NULL) != SQLITE_OK)
        return db_failed(db, err);
    int code = sqlite3_step(row);
    if (code == SQLITE_DONE)
        return db_damaged(db, err, "the table meta is empty");
    if (code != SQLITE_ROW)
        return db_failed(db, err);

    uint64_t at[7];
    for (int i = 0; i < 7; i++)
        at[i] = (uint64_t)sqlite3_column_int64(row, i);
    struct totals t = {at[0], at[1], at[2], at[3], at[4], at[5]};
    if (at[6] != totals_sum(&t) || t.compacted > t.revision || t.revision > STORE_REVISION_MAX ||
        t.swept > place_of(t.compacted + 1, 0))
        return db_damaged(db, err, "the checksum of the table meta is wrong");
    *ret = t;
    return 0;
}

int totals_write(struct db *db, const struct totals *totals, struct berth_err *err)
{
    const uint64_t at[7] = {totals->revision, totals->compacted, totals->swept,     totals->digest,
                            totals->log_seq,  totals->log_chain, totals_sum(totals)};
    sqlite3_stmt *row = db->statements[ST_META_SET];
    for (int i = 0; i < 7; i++)
        (void)sqlite3_bind_int64(row, i + 1, (int64_t)at[i]);
    return db_run(db, ST_META_SET, err);
}

/* ---- migrations -------------------------------------------------------------------------------------------------- */

static int first_totals(struct db *db, struct berth_err *err)
{
    int rc = db_prepare(db, err);
    return rc < 0 ? rc : totals_write(db, &(struct totals){0}, err);
}

/* Row n migrates a file from format n to n + 1. A new store is an empty file that is migrated. A released row is never
 * edited, because existing files depend on it. */
static const struct {
    const char *sql;
    int (*then)(struct db *db, struct berth_err *err); /* for changes that SQL cannot express; may be NULL */
} migrations[STORE_FORMAT] = {
    {
     "CREATE TABLE change ("
        "  place INTEGER PRIMARY KEY," /* revision * 2^18 + index of the change in its transaction */
        "  key TEXT NOT NULL,"
        "  replaced INTEGER NOT NULL," /* place of the key's previous value; 0: none */
        "  created INTEGER NOT NULL,"
        "  sum INTEGER NOT NULL,"
        "  value BLOB);" /* NULL: deleted */
        "CREATE TABLE log ("
        "  seq INTEGER PRIMARY KEY,"
        "  revision INTEGER NOT NULL,"
        "  chain INTEGER NOT NULL,"
        "  record BLOB NOT NULL);"
        "CREATE TABLE meta ("
        "  one INTEGER PRIMARY KEY CHECK (one = 1),"
        "  revision INTEGER NOT NULL, compacted INTEGER NOT NULL, swept INTEGER NOT NULL, digest INTEGER NOT NULL,"
        "  log_seq INTEGER NOT NULL, log_chain INTEGER NOT NULL, sum INTEGER NOT NULL);"
        "INSERT INTO meta VALUES (1, 0, 0, 0, 0, 0, 0, 0);", first_totals,
     },
    {
     /* the tables are unchanged; older versions do not support a trimmed log */
        "",                                                      NULL,
     },
};

/* ---- recognising, migrating, creating --------------------------------------------------------------------------- */

static int check_version(const struct db *db, int64_t version, struct berth_err *err)
{
    if (version > STORE_FORMAT)
        return err_set(err, ENOTSUP,
                       "%s was made by a newer version (format %" PRId64 ", this version supports up to %d); upgrade",
                       db->path, version, STORE_FORMAT);
    return version < 0 ? db_damaged(db, err, "it has the unknown format %" PRId64, version) : 0;
}

static int32_t word_at(const unsigned char *at)
{
    return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

/* Reads only the header, because later pages may be outdated while the write-ahead log has the valid ones. */
int format_probe(const char *path, struct berth_err *err)
{
    static const char magic[16] = "SQLite format 3";
    enum { AT_VERSION = 60, AT_APPLICATION = 68 };
    CLEANUP(db) struct db db = {0};
    unsigned char header[DB_HEADER_LEN] = {0};

    int rc = db_open(&db, path, DB_FROZEN, err);
    if (rc == 0)
        rc = db_read_header(&db, header, err);
    if (rc < 0)
        return rc;
    if (memcmp(header, magic, sizeof magic) != 0 || word_at(header + AT_APPLICATION) != APPLICATION_ID)
        return err_set(err, EINVAL,
                       "%s is not a store, or its first bytes are damaged; move it away, or restore a backup", path);
    return check_version(&db, word_at(header + AT_VERSION), err);
}

int format_migrate(struct db *db, struct berth_err *err)
{
    int64_t version = 0;
    int rc = db_number(db, "PRAGMA user_version", &version, err);
    if (rc == 0)
        rc = check_version(db, version, err);
    if (rc < 0 || version == STORE_FORMAT)
        return rc;
    for (; rc == 0 && version < STORE_FORMAT; version++) {
        rc = db_exec(db, migrations[version].sql, err);
        if (rc == 0 && migrations[version].then)
            rc = migrations[version].then(db, err);
    }
    if (rc < 0)
        return rc;

    CLEANUP(str) struct str sql = {0};
    str_addf(&sql, "PRAGMA application_id = %d; PRAGMA user_version = %d;", APPLICATION_ID, STORE_FORMAT);
    return db_exec(db, sql.at, err);
}

static int fill(const char *path, struct berth_err *err)
{
    CLEANUP(db) struct db db = {0};
    int rc = db_open(&db, path, DB_WRITE, err);
    if (rc == 0)
        rc = db_exec(&db, "PRAGMA auto_vacuum = NONE; PRAGMA page_size = 4096; PRAGMA journal_mode = DELETE", err);
    if (rc == 0)
        rc = db_exec(&db, "BEGIN IMMEDIATE", err);
    if (rc == 0)
        rc = format_migrate(&db, err);
    return rc == 0 ? db_exec(&db, "COMMIT", err) : rc;
}

int format_create(struct store_folder *f, struct berth_err *err)
{
    uint64_t acked = 0;
    int rc = folder_acked(f, &acked, err);
    if (rc < 0)
        return rc;
    if (acked)
        return err_set(err, EBADMSG,
                       "%s/" STORE_FILE " is missing, but according to its folder revision %" PRIu64
                       " was acknowledged; restore a backup, or empty the folder to start a new store",
                       f->path, acked);

    CLEANUP(mem) char *path = folder_path(f, STORE_FILE), *made = folder_path(f, STORE_FILE_NEW);
    rc = folder_file_create(made, err);
    if (rc == 0)
        rc = fill(made, err);
    if (rc == 0) {
        folder_file_remove_side_files(path); /* a leftover write-ahead log must not be applied to the new store */
        rc = folder_file_publish(made, path, err);
    }
    if (rc < 0)
        folder_file_remove(made);
    return rc;
}
