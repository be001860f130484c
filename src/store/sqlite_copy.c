/* sqlite_copy.c - backup and restore: a store in one plain file, verified before it gets its final name. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "store/sqlite.h"

/* Copies all pages of one state to an empty file. Does not sync; folder_file_publish syncs the file later. */
static int copy_pages(struct db *from, const char *path, struct berth_err *err)
{
    CLEANUP(db) struct db to = {0};
    int rc = db_open(&to, path, DB_WRITE, err);
    if (rc == 0)
        rc = db_exec(&to, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF", err);
    if (rc < 0)
        return rc;
    sqlite3_backup *backup = sqlite3_backup_init(to.handle, "main", from->handle, "main");
    if (!backup)
        return db_failed(&to, err);
    (void)sqlite3_backup_step(backup, -1);
    /* The target's connection has the errors of both sides. */
    if (sqlite3_backup_finish(backup) != SQLITE_OK)
        return db_failed(&to, err);
    /* The copied header says that the file has a write-ahead log. The copy has none, and must be readable without
     * one. */
    return db_exec(&to, "PRAGMA journal_mode = DELETE", err);
}

/* Copies and verifies; *ret: the revision of the copy. */
static int copy_and_verify(struct db *from, const char *path, uint64_t *ret, struct berth_err *err)
{
    CLEANUP(db) struct db copy = {0};
    CLEANUP(ledger) struct ledger ledger = {0};
    int rc = folder_file_create(path, err);
    if (rc == 0)
        rc = copy_pages(from, path, err);
    if (rc == 0)
        rc = db_open(&copy, path, DB_WRITE, err);
    if (rc == 0)
        rc = ledger_verify_migrated(&copy, &ledger, err);
    if (rc == 0)
        *ret = ledger.now.revision;
    return rc;
}

static int refuse_existing(const char *path, struct berth_err *err)
{
    return err_set(err, EEXIST, "%s already exists; choose another name or move it away", path);
}

int sqlite_backup(struct store *base, const char *path, struct berth_err *err)
{
    const struct sqlite_store *s = sqlite_of(base);
    CLEANUP(db) struct db from = {0};
    CLEANUP(str) struct str partial = {0};
    struct stat st;
    uint64_t revision;

    if (lstat(path, &st) == 0)
        return refuse_existing(path, err);
    int rc = db_open(&from, s->path, DB_READ, err);
    if (rc < 0)
        return rc;
    str_addf(&partial, "%s.partial-%ld", path, (long)getpid());
    rc = copy_and_verify(&from, partial.at, &revision, err);
    if (rc == 0)
        rc = folder_file_publish(partial.at, path, err);
    folder_file_remove(partial.at);
    return rc;
}

/* Rejects the file of a store in use, which is incomplete without its write-ahead log. */
static int check_alone(const char *backup, struct berth_err *err)
{
    CLEANUP(str) struct str wal = {0};
    struct stat st;
    str_addf(&wal, "%s-wal", backup);
    if (stat(wal.at, &st) == 0 && st.st_size > 0)
        return err_set(err, EINVAL, "%s is a store in use, not a backup (%s exists); make a backup of it first", backup,
                       wal.at);
    return stat(backup, &st) < 0 ? err_set(err, errno, "cannot open %s: %s", backup, strerror(errno)) : 0;
}

static int restore_into(struct store_folder *f, const char *backup, struct berth_err *err)
{
    CLEANUP(mem) char *path = folder_path(f, STORE_FILE), *made = folder_path(f, STORE_FILE_NEW);
    CLEANUP(db) struct db from = {0};
    if (folder_has(f, STORE_FILE))
        return refuse_existing(path, err);
    int rc = folder_lock(f, err);
    if (rc == 0 && folder_has(f, STORE_FILE))
        rc = refuse_existing(path, err); /* created between the two checks */
    if (rc == 0)
        rc = db_open(&from, backup, DB_FROZEN, err);
    if (rc < 0)
        return rc;
    uint64_t revision = 0;
    rc = copy_and_verify(&from, made, &revision, err);
    /* A restore accepts the loss of data after the backup, so the mark is reset. The mark is written first and stays: a
     * crash before the store has its name then leaves a directory without its store, not one that is taken for new. */
    if (rc == 0)
        rc = folder_reset_acked(f, revision, err);
    if (rc == 0) {
        folder_file_remove_side_files(path);
        rc = folder_file_publish(made, path, err);
    }
    folder_file_remove(made);
    return rc;
}

static void folder_cleanup(struct store_folder *f)
{
    folder_done(f);
}

int store_sqlite_restore(const char *backup, const char *dir, struct berth_err *err)
{
    CLEANUP(folder) struct store_folder folder = {0};
    int rc = check_alone(backup, err);
    if (rc == 0)
        rc = format_probe(backup, err);
    if (rc == 0)
        rc = folder_open(dir, true, &folder, err);
    if (rc == 0)
        rc = restore_into(&folder, backup, err);
    return rc;
}
