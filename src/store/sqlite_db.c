/* sqlite_db.c - a connection to an SQLite file: its settings, statements and error texts. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "store/sqlite.h"

/* FULL syncs the write-ahead log at every commit. Files are not memory-mapped, because a failing disk would then cause
 * a signal instead of an error. The writer runs checkpoints itself, when no transaction waits. */
static const char settings[] = "PRAGMA synchronous = FULL;"
                               "PRAGMA wal_autocheckpoint = 0;"
                               "PRAGMA mmap_size = 0;"
                               "PRAGMA cache_size = -16384;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA secure_delete = FAST;"
                               "PRAGMA cell_size_check = ON;"
                               "PRAGMA trusted_schema = OFF;";

static const char *const statements[STATEMENTS_LEN] = {
    [ST_BEGIN] = "BEGIN IMMEDIATE",
    [ST_COMMIT] = "COMMIT",
    [ST_ROLLBACK] = "ROLLBACK",
    [ST_CHANGE_ADD] = "INSERT INTO change (" CHANGE_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [ST_CHANGE_DROP] = "DELETE FROM change WHERE place = ?1 RETURNING sum",
    [ST_SWEEP] = "SELECT place, replaced, value IS NULL FROM change WHERE place > ?1 AND place <= ?2"
                 " ORDER BY place LIMIT ?3",
    [ST_LOG_ADD] = "INSERT INTO log (seq, revision, chain, record) VALUES (?1, ?2, ?3, ?4)",
    [ST_LOG_DROP] = "DELETE FROM log WHERE seq < ?1",
    [ST_LOG_EMPTY] = "UPDATE log SET revision = 0, record = zeroblob(0) WHERE seq = ?1",
    [ST_META_SET] = "UPDATE meta SET revision = ?1, compacted = ?2, swept = ?3, digest = ?4, log_seq = ?5,"
                    " log_chain = ?6, sum = ?7 WHERE one = 1",
};

/* Returns the errno of the system. SQLite does not report it for a failed commit, but the write-ahead log's file stores
 * it. */
static int system_error(const struct db *db, int code)
{
    int sys = sqlite3_system_errno(db->handle);
    sqlite3_file *log = NULL;
    if (sys == 0 && (code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_FSYNC)) {
        (void)sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
        if (log && log->pMethods)
            (void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &sys);
    }
    return sys;
}

int db_failed(const struct db *db, struct berth_err *err)
{
    int code = sqlite3_extended_errcode(db->handle), sys = system_error(db, code);
    const char *words = sqlite3_errmsg(db->handle);

    switch (code & 0xff) {
    case SQLITE_FULL:
        return err_set(err, ENOSPC, "%s: no space left on the disk; nothing was changed; free some space", db->path);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        if (sys == ENOSPC || sys == EDQUOT || sys == EFBIG)
            return err_set(err, ENOSPC, "%s: %s; nothing was changed; free some space", db->path, strerror(sys));
        if (sys == EACCES || sys == EPERM || sys == EROFS)
            return err_set(err, sys, "%s: %s", db->path, strerror(sys));
        if (code == SQLITE_IOERR_CORRUPTFS || code == SQLITE_IOERR_DATA)
            break;
        return err_set(err, EIO, "%s: %s%s%s; check the disk", db->path, words, sys ? ": " : "",
                       sys ? strerror(sys) : "");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return err_set(err, EBUSY, "%s: the store is locked by another program; stop that program", db->path);
    case SQLITE_NOMEM: return err_set(err, ENOMEM, "%s: out of memory", db->path);
    case SQLITE_READONLY: return err_set(err, EROFS, "%s: cannot be written: %s", db->path, words);
    case SQLITE_PERM:
    case SQLITE_AUTH: return err_set(err, EACCES, "%s: %s", db->path, words);
    }
    return db_damaged(db, err, "%s", words);
}

int db_damaged(const struct db *db, struct berth_err *err, const char *fmt, ...)
{
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return err_set(err, EBADMSG, "%s is damaged: %s; move it away and restore a backup", db->path, what);
}

/* Encodes the path as a URI, so that no character is special to SQLite. */
static void uri_of(struct str *uri, const char *path, enum db_mode mode)
{
    str_add(uri, "file:");
    for (; *path; path++) {
        if (strchr("%?#", *path))
            str_addf(uri, "%%%02x", (unsigned char)*path);
        else
            str_add_char(uri, *path);
    }
    if (mode == DB_FROZEN)
        str_add(uri, "?immutable=1");
}

int db_open(struct db *db, const char *path, enum db_mode mode, struct berth_err *err)
{
    CLEANUP(str) struct str uri = {0};
    int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (mode == DB_WRITE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);

    *db = (struct db){.path = path};
    uri_of(&uri, path, mode);
    if (sqlite3_open_v2(uri.at, &db->handle, flags, NULL) != SQLITE_OK) {
        int rc = db->handle ? db_failed(db, err) : err_set(err, ENOMEM, "%s: out of memory", path);
        db_close(db);
        return rc;
    }
    (void)sqlite3_busy_timeout(db->handle, DB_BUSY_MS);
    /* Until the file is verified, closing must not change it. */
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (mode == DB_FROZEN)
        return 0; /* the settings would read the file */
    int rc = db_exec(db, settings, err);
    if (rc < 0)
        db_close(db);
    return rc;
}

int db_read_header(struct db *db, unsigned char ret[static DB_HEADER_LEN], struct berth_err *err)
{
    sqlite3_file *file = NULL;
    (void)sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    int code = file && file->pMethods ? file->pMethods->xRead(file, ret, DB_HEADER_LEN, 0) : SQLITE_IOERR;
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) /* a short read is filled up with zeros */
        return err_set(err, EIO, "%s: cannot be read; check the disk", db->path);
    return 0;
}

int db_prepare(struct db *db, struct berth_err *err)
{
    for (size_t i = 0; i < STATEMENTS_LEN; i++)
        if (!db->statements[i] && sqlite3_prepare_v3(db->handle, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                                                     &db->statements[i], NULL) != SQLITE_OK)
            return db_failed(db, err);
    return 0;
}

void db_close(struct db *db)
{
    for (size_t i = 0; i < STATEMENTS_LEN; i++)
        sqlite3_finalize(db->statements[i]);
    (void)sqlite3_close(db->handle);
    *db = (struct db){.path = db->path};
}

int db_exec(struct db *db, const char *sql, struct berth_err *err)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_failed(db, err);
}

int db_number(struct db *db, const char *sql, int64_t *ret, struct berth_err *err)
{
    CLEANUP(stmt) sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db->handle, sql, -1, &row, NULL) != SQLITE_OK || sqlite3_step(row) != SQLITE_ROW)
        return db_failed(db, err);
    *ret = sqlite3_column_int64(row, 0);
    return 0;
}

int db_run(struct db *db, enum statement st, struct berth_err *err)
{
    sqlite3_stmt *row = db->statements[st];
    int code = sqlite3_step(row), rc = code == SQLITE_DONE ? 0 : db_failed(db, err);
    (void)sqlite3_reset(row);
    return rc;
}

void db_rollback(struct db *db)
{
    if (db->handle && !sqlite3_get_autocommit(db->handle))
        (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}
