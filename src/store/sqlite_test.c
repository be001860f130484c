/* sqlite_test.c - tests the SQLite store: opening, locking, formats, batches, compaction, backup, concurrent readers.
 */
#include "store/sqlite.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "store/store_test.h"

struct room {
    char dir[256]; /* directory of the store */
    char path[300], backup[300];
    char base[256]; /* parent of all directories */
};

static int room_setup(void **state)
{
    struct room *r = mem_zalloc(sizeof *r);
    folder_make(r->base);
    (void)snprintf(r->dir, sizeof r->dir, "%.200s/store", r->base);
    (void)snprintf(r->path, sizeof r->path, "%s/" STORE_FILE, r->dir);
    (void)snprintf(r->backup, sizeof r->backup, "%s/backup", r->base);
    *state = r;
    return 0;
}

static int room_teardown(void **state)
{
    struct room *r = *state;
    folder_remove(r->base);
    mem_free(r);
    return 0;
}

/* Opening must fail with this code and this word in the text, and must create nothing. */
static void refused(const char *dir, const struct store_options *options, int code, const char *word)
{
    struct berth_err err = {0};
    struct store *s = NULL;
    int rc = store_sqlite_open(dir, options, &s, &err);
    if (rc != -code || err.code != code || !strstr(err.text, word) || s)
        fail_msg("%d instead of %d; \"%s\" has no \"%s\"", -rc, code, err.text, word);
}

static const struct store_options create = {.create = true}, existing = {0}, readonly = {.readonly = true};

static struct store *open_as(const char *dir, const struct store_options *options)
{
    struct berth_err err = {0};
    struct store *s = NULL;
    if (store_sqlite_open(dir, options, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static void sql(const char *path, const char *text)
{
    sqlite3 *db = NULL;
    char *err = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 10000);
    if (sqlite3_exec(db, text, NULL, NULL, &err) != SQLITE_OK)
        fail_msg("%s: %s", text, err);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t sql_number(const char *path, const char *text)
{
    struct db db;
    int64_t n = 0;
    assert_int_equal(db_open(&db, path, DB_READ, NULL), 0);
    assert_int_equal(db_number(&db, text, &n, NULL), 0);
    db_close(&db);
    return n;
}

static void write_some(struct store *s)
{
    for (int i = 0; i < 5; i++) {
        char key[16], value[16];
        (void)snprintf(key, sizeof key, "k/%d", i % 3);
        (void)snprintf(value, sizeof value, "v%d", i);
        assert_int_equal(COMMIT(s, OPS(PUT(key, value)), .record = TEXT(value)).rc, 0);
    }
    (void)drop(s, "k/1");
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static void data_survives_reopening(void **state)
{
    struct room *r = *state;
    struct store *s = open_as(r->dir, &create);
    write_some(s);
    CLEANUP(mem) char *all = all_text(s);
    for (int turn = 0; turn < 3; turn++) {
        store_close(s);
        s = open_as(r->dir, turn ? &existing : &create);
        assert_text(all_text(s), all);
    }
    assert_int_equal(put(s, "new", "1"), 7);
    store_close(s);
    CLEANUP(str) struct str wal = {0};
    str_addf(&wal, "%s-wal", r->path);
    assert_int_equal(access(wal.at, F_OK), -1); /* a closed store is one file */
}

static void files_are_readable_by_owner_only(void **state)
{
    struct room *r = *state;
    static const char *const names[] = {STORE_FILE, STORE_FILE "-wal", STORE_FILE "-shm", "lock", "acked", "acked.2"};
    mode_t before = umask(0);
    struct store *s = open_as(r->dir, &create);
    struct stat st;
    write_some(s);
    assert_int_equal(stat(r->dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CLEANUP(str) struct str path = {0};
        str_addf(&path, "%s/%s", r->dir, names[i]);
        assert_int_equal(stat(path.at, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    assert_int_equal(store_backup(s, r->backup, NULL), 0);
    assert_int_equal(stat(r->backup, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    store_close(s);
    (void)umask(before);
}

static void only_one_process_may_open(void **state)
{
    struct room *r = *state;
    struct store *s = open_as(r->dir, &create);
    char word[64];
    (void)snprintf(word, sizeof word, "process %ld", (long)getpid());
    refused(r->dir, &create, EBUSY, word);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct store *other = NULL;
        _exit(store_sqlite_open(r->dir, &create, &other, NULL) == -EBUSY ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    write_some(s); /* the owner is not disturbed */
    store_close(s);
    store_close(open_as(r->dir, &existing));
}

static void missing_store_is_created_only_on_request(void **state)
{
    struct room *r = *state;
    refused(r->dir, &existing, ENOENT, r->dir);
    refused(r->dir, &readonly, ENOENT, r->dir);
    assert_int_equal(access(r->dir, F_OK), -1);
    assert_int_equal(mkdir(r->dir, 0700), 0);
    refused(r->dir, &existing, ENOENT, "no store");
    refused(r->dir, &(struct store_options){.create = true, .readonly = true}, ENOENT, "no store");
    assert_int_equal(rmdir(r->dir), 0); /* the directory is empty */
    CLEANUP(str) struct str deep = {0};
    str_addf(&deep, "%s/deeper", r->dir);
    refused(deep.at, &create, ENOENT, "cannot create");
}

static void special_characters_in_paths_work(void **state)
{
    struct room *r = *state;
    static const char *const names[] = {"a b", "q?x=1", "h#1", "p%41", "file:x", "caf\xc3\xa9"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CLEANUP(str) struct str dir = {0}, path = {0};
        str_addf(&dir, "%s/%s", r->base, names[i]);
        str_addf(&path, "%s/" STORE_FILE, dir.at);
        struct store *s = open_as(dir.at, &create);
        (void)put(s, "a", "1");
        store_close(s);
        assert_int_equal(access(path.at, F_OK), 0);
        s = open_as(dir.at, &existing);
        assert_text(range_text(s, "", 0), "a=1@1/1");
        store_close(s);
    }
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

static char *folder_text(const char *dir)
{
    struct str text = {0};
    CLEANUP(str) struct str command = {0};
    str_addf(&command, "cd '%s' && for f in $(ls -A | grep -v '^lock$'); do echo $f; cksum <$f; done", dir);
    FILE *out = popen(command.at, "r");
    char line[256];
    while (fgets(line, sizeof line, out))
        str_add(&text, line);
    assert_int_equal(pclose(out), 0);
    return str_take(&text);
}

static void foreign_files_are_rejected_unchanged(void **state)
{
    struct room *r = *state;
    static const struct {
        const char *label, *shell, *sql;
    } rows[] = {
        {"text",                      "printf 'this is no database, but a letter of some length to somebody' >%s", NULL                                                     },
        {"long text",                 "seq 1 20000 >%s",                                                           NULL                                                     },
        {"empty",                     ": >%s",                                                                     NULL                                                     },
        {"other database",            NULL,                                                                        "CREATE TABLE t (x); INSERT INTO t VALUES (1)"           },
        {"other database with a log", NULL,                                                                        "PRAGMA journal_mode = WAL; CREATE TABLE meta (one)"     },
        {"another's",                 NULL,                                                                        "PRAGMA application_id = 77; CREATE TABLE change (place)"},
    };
    assert_int_equal(mkdir(r->dir, 0700), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)unlink(r->path);
        CLEANUP(str) struct str command = {0};
        if (rows[i].shell) {
            str_addf(&command, "rm -f %s; ", r->path);
            str_addf(&command, rows[i].shell, r->path);
            assert_int_equal(system(command.at), 0);
        } else {
            sql(r->path, rows[i].sql);
        }
        CLEANUP(mem) char *before = folder_text(r->dir);
        refused(r->dir, &create, EINVAL, "not a store");
        refused(r->dir, &existing, EINVAL, r->path);
        refused(r->dir, &readonly, EINVAL, "not a store");
        assert_text(folder_text(r->dir), before);
        struct berth_err err = {0};
        CLEANUP(str) struct str other = {0};
        str_addf(&other, "%s/other", r->base);
        assert_code(store_sqlite_restore(r->path, other.at, &err), EINVAL);
        assert_non_null(strstr(err.text, "not a store"));
        assert_int_equal(access(other.at, F_OK), -1);
    }
}

static void newer_format_is_rejected(void **state)
{
    struct room *r = *state;
    store_close(open_as(r->dir, &create));
    sql(r->path, "PRAGMA user_version = 3");
    CLEANUP(mem) char *before = folder_text(r->dir);
    refused(r->dir, &create, ENOTSUP, "upgrade");
    refused(r->dir, &readonly, ENOTSUP, "upgrade");
    assert_text(folder_text(r->dir), before);
    assert_code(store_sqlite_restore(r->path, r->backup, NULL), ENOTSUP);
    sql(r->path, "PRAGMA user_version = -1");
    refused(r->dir, &create, EBADMSG, "unknown format -1");
    sql(r->path, "PRAGMA user_version = 1");
    store_close(open_as(r->dir, &readonly)); /* the tables are the same */
    assert_int_equal(sql_number(r->path, "PRAGMA user_version"), 1);
    store_close(open_as(r->dir, &existing));
    assert_int_equal(sql_number(r->path, "PRAGMA user_version"), STORE_FORMAT);
}

/* Trimming runs in steps: after each of them the log on disk is valid. */
static void trimming_reaches_the_disk(void **state)
{
    struct room *r = *state;
    struct store *s = open_as(r->dir, &create);
    for (int i = 0; i < 700; i++)
        assert_int_equal(COMMIT(s, OPS(PUT("a", "1")), .record = TEXT("r")).rc, 0);
    assert_int_equal(store_log_trim(s, 600, NULL), 0);
    (void)put(s, "b", "1"); /* trimming runs with this commit, or when the writer is idle */
    store_close(s);
    s = open_as(r->dir, &existing); /* verifies the log */
    uint64_t trimmed = store_log_trimmed(s);
    assert_true(trimmed >= 256 && trimmed <= 600);
    assert_int_equal(sql_number(r->path, "SELECT count(*) FROM log"), (int64_t)(700 - trimmed + 1));
    assert_int_equal(store_log_trim(s, 700, NULL), 0);
    for (int i = 0; i < 4; i++)
        (void)put(s, "b", "2");
    assert_text(log_text(s, 0), "");
    store_close(s);
    s = open_as(r->dir, &readonly);
    assert_int_equal(store_log_trimmed(s), 700);
    assert_int_equal(store_log_last(s), 700);
    assert_code(store_log_trim(s, 700, NULL), 0); /* nothing to do */
    store_close(s);
    sql(r->path, "DELETE FROM log");
    refused(r->dir, &existing, EBADMSG, "ends with record 0 instead of 700");
}

/* Format 0 is an empty file with our application id; every store begins as one. */
static void an_older_format_is_migrated(void **state)
{
    struct room *r = *state;
    assert_int_equal(mkdir(r->dir, 0700), 0);
    sql(r->path, "PRAGMA application_id = 1114797160");
    refused(r->dir, &readonly, ENOTSUP, "older format");
    struct store *s = open_as(r->dir, &existing);
    assert_int_equal(put(s, "a", "1"), 1);
    store_close(s);
    assert_int_equal(sql_number(r->path, "PRAGMA user_version"), STORE_FORMAT);
    s = open_as(r->dir, &existing);
    assert_text(range_text(s, "", 0), "a=1@1/1");
    store_close(s);
}

static void migration_is_atomic(void **state)
{
    struct room *r = *state;
    assert_int_equal(mkdir(r->dir, 0700), 0);
    sql(r->path, "PRAGMA application_id = 1114797160; CREATE TABLE meta (in_the_way)");
    CLEANUP(mem) char *before = folder_text(r->dir);
    refused(r->dir, &existing, EBADMSG, "meta already exists");
    assert_text(folder_text(r->dir), before);
}

/* ---- batches and compaction -------------------------------------------------------------------------------------- */

/* Counts commits in a write-ahead log: frames that have the size of the database. */
static unsigned commits_in_log(const char *store_path)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s-wal", store_path);
    FILE *f = fopen(path.at, "rb");
    assert_non_null(f);
    unsigned char head[24];
    unsigned commits = 0;
    for (long at = 32; fseek(f, at, SEEK_SET) == 0 && fread(head, sizeof head, 1, f) == 1; at += 24 + 4096)
        commits += head[4] || head[5] || head[6] || head[7];
    (void)fclose(f);
    return commits;
}

static void waiting_transactions_are_committed_together(void **state)
{
    struct room *r = *state;
    struct store *s = open_as(r->dir, &create);
    enum { TXNS = 3000 };
    CLEANUP(mem) struct outcome *o = mem_zarray(TXNS, sizeof *o);
    sqlite3 *blocker = NULL;
    (void)put(s, "a", "0");
    unsigned before = commits_in_log(r->path);
    /* Blocks commits until all transactions are submitted. */
    assert_int_equal(sqlite3_open(r->path, &blocker), SQLITE_OK);
    assert_int_equal(sqlite3_exec(blocker, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; i < TXNS; i++)
        submit(s, &(struct store_txn){GUARDS({"a", i + 1}), OPS(PUT("a", "v"))}, &o[i]);
    assert_int_equal(sqlite3_exec(blocker, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    store_drain(s);
    assert_int_equal(sqlite3_close(blocker), SQLITE_OK);
    for (size_t i = 0; i < TXNS; i++) {
        assert_int_equal(o[i].result.rc, 0); /* each saw the one before */
        assert_int_equal(o[i].result.revision, i + 2);
    }
    /* The batch that the writer had taken when it was blocked, and the rest in batches of 1024. */
    unsigned commits = commits_in_log(r->path) - before;
    assert_in_range(commits, 3, 4);
    store_close(s);
}

static void compaction_frees_disk_space_in_steps(void **state)
{
    struct room *r = *state;
    struct store *s = open_as(r->dir, &create);
    enum { TXNS = 1500 };
    CLEANUP(mem) struct outcome *o = mem_zarray(TXNS, sizeof *o);
    for (size_t i = 0; i < TXNS; i++) {
        const char *key = i % 3 ? "often" : "now-and-then";
        submit(s,
               &(struct store_txn){
                   .ops = &(struct store_op){key, TEXT("v"), i % 50 == 0},
                      .ops_len = 1
        },
               &o[i]);
    }
    store_drain(s);
    CLEANUP(mem) char *want = range_text(s, "", 0);
    uint64_t compacted = store_revision(s);
    assert_int_equal(store_compact(s, compacted, NULL), 0);
    for (int turn = 0; turn < 3; turn++) {
        /* Sweeping continues after a restart, and with every commit. */
        store_close(s);
        s = open_as(r->dir, &existing);
        assert_int_equal(store_compacted(s), compacted);
        assert_text(range_text(s, "", compacted), want);
        (void)put(s, "z", "1");
        (void)put(s, "z", "1");
    }
    for (int i = 0; i < 10; i++)
        (void)put(s, "z", "1");
    store_close(s);
    assert_int_equal(sql_number(r->path, "SELECT count(*) FROM change"), 2 + 16);
    s = open_as(r->dir, &existing);
    assert_text(range_text(s, "", compacted), want);
    CLEANUP(mem) char *z = history_text(s, "", compacted, compacted + 1);
    assert_memory_equal(z, "z=1@", 4);
    store_close(s);
}

/* ---- backup and restore ------------------------------------------------------------------------------------------ */

static void a_backup_restores(void **state)
{
    struct room *r = *state;
    CLEANUP(str) struct str second = {0};
    str_addf(&second, "%s/second", r->base);
    struct store *s = open_as(r->dir, &create);
    write_some(s);
    assert_int_equal(store_compact(s, 2, NULL), 0);
    CLEANUP(mem) char *all = all_text(s);
    assert_int_equal(store_backup(s, r->backup, NULL), 0);
    (void)put(s, "later", "1");

    struct berth_err err = {0};
    CLEANUP(mem) char *before = folder_text(r->base);
    assert_code(store_backup(s, r->backup, &err), EEXIST);
    assert_non_null(strstr(err.text, r->backup));
    assert_text(folder_text(r->base), before);
    assert_code(store_backup(s, "/nonexistent/backup", &err), ENOENT);
    assert_code(store_sqlite_restore(r->backup, r->dir, &err), EEXIST);
    store_close(s);
    assert_code(store_sqlite_restore(r->backup, r->dir, &err), EEXIST);

    assert_int_equal(store_sqlite_restore(r->backup, second.at, &err), 0);
    s = open_as(second.at, &existing);
    assert_text(all_text(s), all);
    assert_int_equal(store_compacted(s), 2);
    assert_int_equal(put(s, "goes-on", "1"), 7);
    store_close(s);
    /* The backup is unchanged: one plain file. */
    assert_int_equal(sql_number(r->backup, "SELECT revision FROM meta"), 6);
    CLEANUP(mem) char *names = folder_text(r->base);
    assert_null(strstr(names, "backup-"));
    assert_null(strstr(names, "partial"));
}

static void backup_during_writes_is_consistent(void **state)
{
    struct room *r = *state;
    struct store *s = open_as(r->dir, &create);
    enum { TXNS = 4000 };
    CLEANUP(mem) struct outcome *o = mem_zarray(TXNS, sizeof *o);
    for (size_t i = 0; i < TXNS; i++) {
        char value[16];
        (void)snprintf(value, sizeof value, "%zu", i + 1);
        submit(s, &(struct store_txn){OPS(PUT("a", value), PUT("b", value)), .record = TEXT(value)}, &o[i]);
        if (i == TXNS / 2)
            assert_int_equal(store_backup(s, r->backup, NULL), 0);
    }
    store_drain(s);
    store_close(s);
    CLEANUP(str) struct str second = {0}, want = {0};
    str_addf(&second, "%s/second", r->base);
    assert_int_equal(store_sqlite_restore(r->backup, second.at, NULL), 0);
    s = open_as(second.at, &existing);
    uint64_t n = store_revision(s);
    assert_in_range(n, 0, TXNS);
    if (n)
        str_addf(&want, "a=%" PRIu64 "@1/%" PRIu64 " b=%" PRIu64 "@1/%" PRIu64, n, n, n, n);
    assert_text(range_text(s, "", 0), str_text(&want));
    store_close(s);
}

static bool renames_fail; /* renaming fails */

/* Replaces the function of the C library. */
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (!renames_fail)
        return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
    errno = EIO;
    return -1;
}

/* Leaves the state of a crash before the store has its name. */
static void interrupted_restore_is_not_a_new_store(void **state)
{
    struct room *r = *state;
    struct store *s = open_as(r->dir, &create);
    write_some(s);
    assert_int_equal(store_backup(s, r->backup, NULL), 0);
    (void)put(s, "later", "1");
    store_close(s);
    assert_int_equal(unlink(r->path), 0);
    renames_fail = true;
    int rc = store_sqlite_restore(r->backup, r->dir, NULL);
    renames_fail = false;
    assert_code(rc, EIO);
    refused(r->dir, &create, EBADMSG, "restore a backup");
    assert_int_equal(store_sqlite_restore(r->backup, r->dir, NULL), 0);
    s = open_as(r->dir, &create);
    assert_int_equal(store_revision(s), 6);
    store_close(s);
}

static void invalid_backup_is_not_restored(void **state)
{
    struct room *r = *state;
    CLEANUP(str) struct str second = {0}, made = {0};
    struct berth_err err = {0};
    str_addf(&second, "%s/second", r->base);
    str_addf(&made, "%s/" STORE_FILE, second.at);
    assert_code(store_sqlite_restore(r->backup, second.at, &err), ENOENT);
    struct store *s = open_as(r->dir, &create);
    write_some(s);
    assert_int_equal(store_backup(s, r->backup, NULL), 0);
    assert_code(store_sqlite_restore(r->path, second.at, &err), EINVAL); /* the backup has a write-ahead log */
    assert_non_null(strstr(err.text, "in use"));
    store_close(s);
    sql(r->backup, "UPDATE change SET value = x'00' WHERE key = 'k/2'");
    assert_code(store_sqlite_restore(r->backup, second.at, &err), EBADMSG);
    assert_non_null(strstr(err.text, "checksum"));
    assert_int_equal(access(made.at, F_OK), -1);
    refused(second.at, &existing, ENOENT, "no store");
}

static void lost_store_is_not_recreated(void **state)
{
    struct room *r = *state;
    struct store *s = open_as(r->dir, &create);
    write_some(s);
    assert_int_equal(store_backup(s, r->backup, NULL), 0);
    (void)put(s, "later", "1");
    store_close(s);
    assert_int_equal(unlink(r->path), 0);
    refused(r->dir, &create, EBADMSG, "revision 7 was acknowledged");
    assert_int_equal(access(r->path, F_OK), -1);
    assert_int_equal(store_sqlite_restore(r->backup, r->dir, NULL), 0); /* an older state, but restored on request */
    s = open_as(r->dir, &create);
    assert_int_equal(store_revision(s), 6);
    store_close(s);
}

/* A write-ahead log without its store is ignored. */
static void wal_without_its_store_is_ignored(void **state)
{
    struct room *r = *state;
    CLEANUP(str) struct str wal = {0}, acked = {0}, copy = {0};
    str_addf(&wal, "%s-wal", r->path);
    str_addf(&acked, "%s/acked", r->dir);
    str_addf(&copy, "%s/acked.2", r->dir);
    struct store *s = open_as(r->dir, &create);
    (void)put(s, "kept", "1");
    assert_int_equal(store_backup(s, r->backup, NULL), 0);
    store_close(s);
    for (int turn = 0; turn < 2; turn++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            write_some(open_as(r->dir, &existing));
            _exit(0); /* without closing the store */
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(access(wal.at, F_OK), 0);
        assert_int_equal(unlink(r->path), 0);
        if (turn == 0) {
            assert_int_equal(store_sqlite_restore(r->backup, r->dir, NULL), 0);
            s = open_as(r->dir, &existing);
            assert_text(range_text(s, "", 0), "kept=1@1/1");
        } else {
            assert_int_equal(unlink(acked.at), 0);
            assert_int_equal(unlink(copy.at), 0);
            s = open_as(r->dir, &create);
            assert_text(range_text(s, "", 0), "");
        }
        store_close(s);
    }
}

/* ---- concurrent readers ----------------------------------------------------------------------------------------- */

static void reader_works_beside_the_writer(void **state)
{
    struct room *r = *state;
    struct store *s = open_as(r->dir, &create);
    write_some(s);
    struct store *tool = open_as(r->dir, &readonly);
    CLEANUP(mem) char *all = all_text(s);
    assert_text(all_text(tool), all);
    assert_int_equal(store_fd(tool), -1);

    struct berth_err err = {0};
    assert_code(store_submit(tool, &(struct store_txn){OPS(PUT("a", "1"))}, NULL, NULL, &err), EROFS);
    assert_code(store_compact(tool, 3, &err), EROFS);
    assert_int_equal(store_pump(tool), 0);
    store_drain(tool);

    (void)put(s, "k/9", "new"); /* the reader sees later writes */
    (void)drop(s, "k/0");
    CLEANUP(mem) char *now = range_text(s, "", 0), *past = range_text(s, "", 4);
    assert_text(range_text(tool, "", 0), now);
    assert_text(range_text(tool, "", 4), past);
    (void)drop(s, "k/9"); /* and deletions that were swept before its next read */
    for (int i = 0; i < 3; i++)
        (void)put(s, "k/2", "x");
    assert_int_equal(store_compact(s, 11, NULL), 0);
    (void)put(s, "k/2", "y");
    CLEANUP(mem) char *later = range_text(s, "", 0), *at = range_text(s, "", 11);
    assert_text(range_text(tool, "", 0), later);
    assert_text(range_text(tool, "", 11), at);
    assert_code(store_range(tool, "", 10, visit_entry, NULL, NULL), ESTALE);
    assert_int_equal(store_compacted(tool), 11);
    assert_int_equal(store_backup(tool, r->backup, &err), 0);
    store_close(tool);
    store_close(s);

    tool = open_as(r->dir, &readonly); /* also without a writer */
    assert_text(range_text(tool, "", 0), later);
    store_close(tool);
    store_close(open_as(r->dir, &existing));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, room_setup, room_teardown)
    const struct CMUnitTest tests[] = {
        TEST(data_survives_reopening),
        TEST(files_are_readable_by_owner_only),
        TEST(only_one_process_may_open),
        TEST(missing_store_is_created_only_on_request),
        TEST(special_characters_in_paths_work),
        TEST(foreign_files_are_rejected_unchanged),
        TEST(newer_format_is_rejected),
        TEST(trimming_reaches_the_disk),
        TEST(an_older_format_is_migrated),
        TEST(migration_is_atomic),
        TEST(waiting_transactions_are_committed_together),
        TEST(compaction_frees_disk_space_in_steps),
        TEST(a_backup_restores),
        TEST(backup_during_writes_is_consistent),
        TEST(interrupted_restore_is_not_a_new_store),
        TEST(invalid_backup_is_not_restored),
        TEST(lost_store_is_not_recreated),
        TEST(wal_without_its_store_is_ignored),
        TEST(reader_works_beside_the_writer),
    };
    return cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
}
