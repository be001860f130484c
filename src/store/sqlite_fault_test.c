/* sqlite_fault_test.c - a disk that fails: what was acknowledged is there, what was told is true, and it goes on.
 *
 * Between SQLite and the system sits a file layer of our own that makes the n-th operation of a kind fail.
 */
#include "store/sqlite.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "store/store_test.h"

/* ---- the layer --------------------------------------------------------------------------------------------------- */

enum fault { FAULT_READ, FAULT_WRITE, FAULT_SYNC, FAULT_OPEN, FAULTS_LEN };

/* The one exception to "no globals": SQLite knows a file layer by a process-wide name. Written before threads run or
 * while they wait, read under the layer's lock. */
static struct {
    pthread_mutex_t lock;
    enum fault what;
    int code;          /* 0: nothing fails */
    int error;         /* errno to go with it */
    const char *where; /* part of the file's name; NULL: any */
    unsigned after;    /* this many go well */
    unsigned times;    /* then so many fail */
    unsigned failed;
    void (*opening)(void *ctx); /* called once when store.db is opened */
    void *opening_ctx;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct layered {
    sqlite3_file base;
    const char *name;
    sqlite3_file *real;
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct layered *)file)->real;
}

static int fails(enum fault what, const char *name)
{
    int code = SQLITE_OK;
    (void)pthread_mutex_lock(&disk.lock);
    bool here = !disk.where || (name && strstr(name, disk.where));
    if (disk.code && disk.what == what && here) {
        if (disk.after) {
            disk.after--;
        } else if (disk.times) {
            disk.times--;
            disk.failed++;
            code = disk.code;
            errno = disk.error;
        }
    }
    (void)pthread_mutex_unlock(&disk.lock);
    return code;
}

static int layer_close(sqlite3_file *f)
{
    int rc = real_of(f)->pMethods->xClose(real_of(f));
    sqlite3_free(real_of(f));
    return rc;
}

static int layer_read(sqlite3_file *f, void *to, int len, sqlite3_int64 at)
{
    int code = fails(FAULT_READ, ((struct layered *)f)->name);
    return code ? code : real_of(f)->pMethods->xRead(real_of(f), to, len, at);
}

static int layer_write(sqlite3_file *f, const void *from, int len, sqlite3_int64 at)
{
    int code = fails(FAULT_WRITE, ((struct layered *)f)->name);
    if (!code)
        return real_of(f)->pMethods->xWrite(real_of(f), from, len, at);
    if (len > 1) /* torn: a part arrives */
        (void)real_of(f)->pMethods->xWrite(real_of(f), from, len / 2, at);
    return code;
}

static int layer_truncate(sqlite3_file *f, sqlite3_int64 len)
{
    return real_of(f)->pMethods->xTruncate(real_of(f), len);
}

static int layer_sync(sqlite3_file *f, int flags)
{
    int code = fails(FAULT_SYNC, ((struct layered *)f)->name);
    return code ? code : real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int layer_size(sqlite3_file *f, sqlite3_int64 *len)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), len);
}

static int layer_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int layer_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int layer_reserved(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int layer_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int layer_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int layer_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int layer_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}

static int layer_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}

static void layer_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int layer_shm_unmap(sqlite3_file *f, int remove_it)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove_it);
}

static const sqlite3_io_methods layer_methods = {
    .iVersion = 2,
    .xClose = layer_close,
    .xRead = layer_read,
    .xWrite = layer_write,
    .xTruncate = layer_truncate,
    .xSync = layer_sync,
    .xFileSize = layer_size,
    .xLock = layer_lock,
    .xUnlock = layer_unlock,
    .xCheckReservedLock = layer_reserved,
    .xFileControl = layer_control,
    .xSectorSize = layer_sector,
    .xDeviceCharacteristics = layer_traits,
    .xShmMap = layer_shm_map,
    .xShmLock = layer_shm_lock,
    .xShmBarrier = layer_shm_barrier,
    .xShmUnmap = layer_shm_unmap,
};

static int layer_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    sqlite3_vfs *real = vfs->pAppData;
    struct layered *l = (struct layered *)f;
    l->base.pMethods = NULL;
    if (flags & SQLITE_OPEN_MAIN_DB) {
        (void)pthread_mutex_lock(&disk.lock);
        void (*opening)(void *ctx) = disk.opening;
        disk.opening = NULL;
        (void)pthread_mutex_unlock(&disk.lock);
        if (opening)
            opening(disk.opening_ctx);
        int code = fails(FAULT_OPEN, name);
        if (code)
            return code;
    }
    l->name = name;
    l->real = sqlite3_malloc(real->szOsFile);
    memset(l->real, 0, (size_t)real->szOsFile);
    int rc = real->xOpen(real, name, l->real, flags, ret_flags);
    if (l->real->pMethods)
        l->base.pMethods = &layer_methods;
    else
        sqlite3_free(l->real);
    return rc;
}

static void layer_install(sqlite3_vfs *vfs)
{
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    *vfs = *real;
    vfs->szOsFile = sizeof(struct layered);
    vfs->zName = "failing";
    vfs->pNext = NULL;
    vfs->pAppData = real; /* what the methods of the real one never look at */
    vfs->xOpen = layer_open;
    assert_int_equal(sqlite3_vfs_register(vfs, 1), SQLITE_OK);
}

static void disk_fails(enum fault what, int code, int error, const char *where, unsigned after, unsigned times)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.what = what;
    disk.code = code;
    disk.error = error;
    disk.where = where;
    disk.after = after;
    disk.times = times;
    disk.failed = 0;
    (void)pthread_mutex_unlock(&disk.lock);
}

static unsigned disk_works(void)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.code = 0;
    unsigned failed = disk.failed;
    (void)pthread_mutex_unlock(&disk.lock);
    return failed;
}

/* ---- every operation in turn ------------------------------------------------------------------------------------- */

static const struct store_options create = {.create = true};

enum { TXNS = 10 };

struct run {
    bool opened;
    struct outcome outcomes[TXNS];
    struct str heard;
};

/* A short life of a store: a few commits, one of them large, a compaction, a restart in between. */
static void live(const char *dir, struct run *run, const char *large)
{
    struct store *s = NULL;
    struct store_watch *w = NULL;
    struct berth_err err = {0};
    if (store_sqlite_open(dir, &create, &s, &err) < 0) {
        assert_true(err.text[0]);
        return;
    }
    run->opened = true;
    assert_int_equal(store_watch(s, "", store_revision(s), add_event, &run->heard, &w, NULL), 0);
    for (size_t i = 0; i < TXNS; i++) {
        char key[8];
        (void)snprintf(key, sizeof key, "k%zu", i % 4);
        struct store_op ops[] = {
            {key, i == 5 ? TEXT(large) : TEXT(key), i == 7},
            PUT("all", key)
        };
        submit(s, &(struct store_txn){.ops = ops, .ops_len = 2, .record = TEXT(key)}, &run->outcomes[i]);
        if (i % 3 == 0)
            store_drain(s);
        if (i == 6)
            (void)store_compact(s, store_revision(s) / 2, NULL);
    }
    store_drain(s);
    (void)disk_works; /* reading may fail too, so it is compared below */
    store_close(s);
}

/* Each acknowledged transaction is in the log at its place; what was heard is what history says. */
static void judge(const char *dir, const struct run *run, const char *label, unsigned n)
{
    struct berth_err err = {0};
    struct store *s = NULL;
    if (store_sqlite_open(dir, &create, &s, &err) < 0)
        fail_msg("%s %u: %s", label, n, err.text);
    CLEANUP(mem) char *log = log_text(s, 0);
    CLEANUP(str) struct str padded = {0};
    str_addf(&padded, " %s ", log);
    uint64_t last = 0;
    for (size_t i = 0; i < TXNS && run->opened; i++) {
        const struct outcome *o = &run->outcomes[i];
        if (o->calls != 1)
            fail_msg("%s %u: transaction %zu was told of %u times", label, n, i, o->calls);
        if (o->result.rc) {
            if (!o->text[0])
                fail_msg("%s %u: no word about %d", label, n, o->result.rc);
            continue;
        }
        char want[64];
        (void)snprintf(want, sizeof want, " %" PRIu64 ":k%zu/%" PRIu64 " ", o->result.log_seq, i % 4,
                       o->result.revision);
        if (!strstr(padded.at, want))
            fail_msg("%s %u: acknowledged, but lost:%sin%s", label, n, want, padded.at);
        if (o->result.revision <= last)
            fail_msg("%s %u: revisions go back", label, n);
        last = o->result.revision;
    }
    if (store_revision(s) < last)
        fail_msg("%s %u: revision", label, n);
    /* A commit that failed may be there after a restart, unheard: but only at the very end. */
    CLEANUP(mem) char *past = history_text(s, "", store_compacted(s), 0);
    const char *heard = str_text(&run->heard);
    for (const char *at = heard; at && *at && store_compacted(s) == 0; at = NULL)
        if (strncmp(past, heard, strlen(heard)) != 0)
            fail_msg("%s %u: heard\n%s\nbut there is\n%s", label, n, heard, past);
    (void)put(s, "it-goes-on", "1");
    store_close(s);
}

static void any_operation_may_fail(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        enum fault what;
        int code, error;
        unsigned times;
    } rows[] = {
        {"write",        FAULT_WRITE, SQLITE_IOERR_WRITE, EIO,    1         },
        {"write and on", FAULT_WRITE, SQLITE_IOERR_WRITE, EIO,    UINT32_MAX},
        {"full",         FAULT_WRITE, SQLITE_FULL,        ENOSPC, 1         },
        {"full and on",  FAULT_WRITE, SQLITE_FULL,        ENOSPC, UINT32_MAX},
        {"sync",         FAULT_SYNC,  SQLITE_IOERR_FSYNC, EIO,    1         },
        {"sync and on",  FAULT_SYNC,  SQLITE_IOERR_FSYNC, EIO,    UINT32_MAX},
        {"read",         FAULT_READ,  SQLITE_IOERR_READ,  EIO,    1         },
        {"read and on",  FAULT_READ,  SQLITE_IOERR_READ,  EIO,    UINT32_MAX},
        {"open",         FAULT_OPEN,  SQLITE_CANTOPEN,    EIO,    1         },
    };
    char large[20000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        unsigned failed = 1, refused = 0;
        for (unsigned n = 0; failed; n++) {
            struct run run = {0};
            char dir[256];
            folder_make(dir);
            disk_fails(rows[r].what, rows[r].code, rows[r].error, NULL, n, rows[r].times);
            live(dir, &run, large);
            failed = disk_works();
            judge(dir, &run, rows[r].label, n);
            for (size_t i = 0; i < TXNS; i++)
                refused += run.outcomes[i].result.rc != 0;
            str_done(&run.heard);
            folder_remove(dir);
            assert_true(n < 2000);
        }
        if (rows[r].what == FAULT_WRITE || rows[r].what == FAULT_SYNC)
            assert_true(refused > 0);
    }
}

/* ---- single failures --------------------------------------------------------------------------------------------- */

struct bed {
    char dir[256], path[300];
    struct store *store;
    struct store_watch *watch;
    struct str heard;
};

static int bed_setup(void **state)
{
    struct bed *b = mem_zalloc(sizeof *b);
    folder_make(b->dir);
    (void)snprintf(b->path, sizeof b->path, "%s/" STORE_FILE, b->dir);
    b->store = sqlite_open_ok(b->dir);
    assert_int_equal(store_watch(b->store, "", 0, add_event, &b->heard, &b->watch, NULL), 0);
    (void)put(b->store, "a", "1");
    *state = b;
    return 0;
}

static int bed_teardown(void **state)
{
    struct bed *b = *state;
    (void)disk_works();
    store_close(b->store);
    str_done(&b->heard);
    folder_remove(b->dir);
    mem_free(b);
    return 0;
}

static struct outcome try_put(struct bed *b, const char *value)
{
    struct outcome o;
    submit(b->store, &(struct store_txn){OPS(PUT("a", value)), .record = TEXT(value)}, &o);
    store_drain(b->store);
    assert_int_equal(o.calls, 1);
    return o;
}

static void a_full_disk_stops_writing_only(void **state)
{
    struct bed *b = *state;
    disk_fails(FAULT_WRITE, SQLITE_FULL, ENOSPC, NULL, 0, UINT32_MAX);
    for (int i = 0; i < 3; i++) {
        struct outcome o = try_put(b, "2");
        assert_code(o.result.rc, ENOSPC);
        assert_non_null(strstr(o.text, "make room"));
        assert_text(range_text(b->store, "", 0), "a=1@1/1");
        assert_text(history_text(b->store, "", 0, 0), "a=1@1/1");
        assert_text(log_text(b->store, 0), "");
    }
    assert_code(store_compact(b->store, 1, NULL), ENOSPC);
    assert_int_equal(store_compacted(b->store), 0);
    (void)disk_works();
    struct outcome o = try_put(b, "3");
    assert_int_equal(o.result.rc, 0);
    assert_int_equal(o.result.revision, 2);
    assert_int_equal(o.result.log_seq, 1);
    assert_string_equal(b->heard.at, "a=1@1/1 a=3@1/2");
    b->store = sqlite_restart(b->store, b->dir);
    assert_text(range_text(b->store, "", 0), "a=3@1/2");
}

static void a_failed_sync_is_not_believed(void **state)
{
    struct bed *b = *state;
    disk_fails(FAULT_SYNC, SQLITE_IOERR_FSYNC, EIO, "-wal", 0, 1);
    struct outcome o = try_put(b, "2");
    assert_int_equal(disk_works(), 1);
    assert_code(o.result.rc, EIO);
    assert_non_null(strstr(o.text, "check the disk"));
    assert_text(range_text(b->store, "", 0), "a=1@1/1");
    o = try_put(b, "3");
    assert_int_equal(o.result.rc, 0);
    assert_int_equal(o.result.revision, 2);
    assert_string_equal(b->heard.at, "a=1@1/1 a=3@1/2");
    b->store = sqlite_restart(b->store, b->dir);
    assert_text(history_text(b->store, "", 0, 0), "a=1@1/1 a=3@1/2");
}

static void it_tries_again_until_the_disk_is_back(void **state)
{
    struct bed *b = *state;
    disk_fails(FAULT_WRITE, SQLITE_IOERR_WRITE, EIO, "-wal", 0, 1);
    disk.opening = NULL;
    struct outcome o = try_put(b, "2");
    assert_code(o.result.rc, EIO);
    /* The connection is opened anew by the next batch; that fails twice. */
    disk_fails(FAULT_WRITE, SQLITE_IOERR_WRITE, EIO, "-wal", 0, 1);
    o = try_put(b, "3");
    assert_code(o.result.rc, EIO);
    disk_fails(FAULT_SYNC, SQLITE_IOERR_FSYNC, EIO, "-wal", 0, 1);
    o = try_put(b, "4");
    assert_code(o.result.rc, EIO);
    (void)disk_works();
    assert_text(range_text(b->store, "", 0), "a=1@1/1");
    assert_int_equal(try_put(b, "5").result.revision, 2);
    assert_string_equal(b->heard.at, "a=1@1/1 a=5@1/2");
}

/* Fails the commit, and then the opening of the connection as often as told. */
struct blocked {
    unsigned times;
};

static void block_opening(void *ctx)
{
    struct blocked *blocked = ctx;
    disk_fails(FAULT_OPEN, SQLITE_CANTOPEN, EIO, STORE_FILE, 0, blocked->times);
}

static void a_connection_that_cannot_be_opened_is_tried_later(void **state)
{
    struct bed *b = *state;
    struct blocked blocked = {3};
    disk_fails(FAULT_SYNC, SQLITE_IOERR_FSYNC, EIO, "-wal", 0, 1);
    disk.opening_ctx = &blocked;
    disk.opening = block_opening;
    for (int i = 0; i < 3; i++)
        assert_code(try_put(b, "2").result.rc, EIO);
    assert_text(range_text(b->store, "", 0), "a=1@1/1"); /* reads go on */
    assert_int_equal(try_put(b, "3").result.rc, 0);
    assert_int_equal(disk_works(), 3);
    assert_string_equal(b->heard.at, "a=1@1/1 a=3@1/2");
}

/* Does what the failed commit was to do, as if it had reached the disk after all. */
static void commit_beside(void *ctx)
{
    const struct bed *b = ctx;
    struct db db;
    struct ledger ledger = {0};
    (void)disk_works();
    assert_int_equal(db_open(&db, b->path, DB_WRITE, NULL), 0);
    assert_int_equal(db_prepare(&db, NULL), 0);
    assert_int_equal(db_run(&db, ST_BEGIN, NULL), 0);
    assert_int_equal(verify(&db, &ledger, NULL), 0);
    const struct store_txn txns[] = {
        {OPS(PUT("a", "2"), PUT("b", "")), .record = TEXT("2")},
        {OPS(DROP("b"))   }
    };
    for (size_t i = 0; i < 2; i++) {
        struct queued *q = queued_new(&txns[i], NULL, NULL);
        assert_int_equal(change_write(&db, &ledger, q, NULL), 0);
        queued_free(q);
    }
    assert_int_equal(totals_write(&db, &ledger.now, NULL), 0);
    assert_int_equal(db_run(&db, ST_COMMIT, NULL), 0);
    ledger_done(&ledger);
    db_close(&db);
}

static void what_turns_out_durable_is_told(void **state)
{
    struct bed *b = *state;
    disk.opening_ctx = b;
    disk.opening = commit_beside;
    disk_fails(FAULT_SYNC, SQLITE_IOERR_FSYNC, EIO, "-wal", 0, 1);
    struct outcome o = try_put(b, "2");
    assert_code(o.result.rc, EIO);
    assert_string_equal(b->heard.at, "a=1@1/1 a=2@1/2 b=@2/2 -b@2/3");
    assert_int_equal(store_revision(b->store), 3);
    assert_text(range_text(b->store, "", 0), "a=2@1/2");
    o = try_put(b, "4");
    assert_int_equal(o.result.revision, 4);
    assert_int_equal(o.result.log_seq, 2);
    b->store = sqlite_restart(b->store, b->dir);
    assert_text(history_text(b->store, "", 0, 0), "a=1@1/1 a=2@1/2 b=@2/2 -b@2/3 a=4@1/4");
}

static void lose_beside(void *ctx)
{
    const struct bed *b = ctx;
    struct db db;
    struct totals totals;
    (void)disk_works();
    assert_int_equal(db_open(&db, b->path, DB_WRITE, NULL), 0);
    assert_int_equal(db_prepare(&db, NULL), 0);
    assert_int_equal(totals_read(&db, &totals, NULL), 0);
    totals.revision--;
    assert_int_equal(totals_write(&db, &totals, NULL), 0);
    db_close(&db);
}

static void a_disk_that_forgot_is_given_up(void **state)
{
    struct bed *b = *state;
    struct berth_err err = {0};
    disk.opening_ctx = b;
    disk.opening = lose_beside;
    disk_fails(FAULT_SYNC, SQLITE_IOERR_FSYNC, EIO, "-wal", 0, 1);
    assert_code(try_put(b, "2").result.rc, EIO);
    for (int i = 0; i < 2; i++) {
        assert_code(store_submit(b->store, &(struct store_txn){OPS(PUT("a", "3"))}, NULL, NULL, &err), EIO);
        assert_non_null(strstr(err.text, "restore a backup"));
    }
    assert_code(store_compact(b->store, 1, &err), EIO);
    assert_text(range_text(b->store, "", 0), "a=1@1/1"); /* to save what can be saved */
    assert_string_equal(b->heard.at, "a=1@1/1");
}

/* ---- a limit of the system ------------------------------------------------------------------------------------------ */

/* In a process of its own, as a limit cannot be taken back for others. Returns what went wrong, or 0. */
static int write_against_limit(const char *dir)
{
    struct store *s = NULL;
    struct rlimit limit = {256 * 1024, RLIM_INFINITY};
    char value[4096];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    (void)signal(SIGXFSZ, SIG_IGN);
    if (store_sqlite_open(dir, &create, &s, NULL) < 0 || setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return 1;
    uint64_t good = 0;
    struct outcome o = {0};
    for (int i = 0; i < 1000 && o.result.rc == 0; i++) {
        good = o.result.revision;
        if (store_submit(s, &(struct store_txn){OPS(PUT("a", value))}, outcome_note, &o, NULL) < 0)
            return 2;
        store_drain(s);
    }
    fprintf(stderr, "%d %s %d\n", o.result.rc, o.text, (int)good);
    if (o.result.rc != -ENOSPC || good < 10)
        return 3;
    struct str found = {0};
    if (store_range(s, "", 0, visit_entry, &found, NULL) < 0 || store_revision(s) != good)
        return 4;
    limit.rlim_cur = RLIM_INFINITY;
    if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return 5;
    if (store_submit(s, &(struct store_txn){OPS(PUT("a", "at last"))}, outcome_note, &o, NULL) < 0)
        return 6;
    store_drain(s);
    if (o.result.rc != 0 || o.result.revision != good + 1)
        return 7;
    store_close(s);
    str_done(&found);
    return 0;
}

static void a_file_that_may_not_grow_is_a_full_disk(void **state)
{
    struct bed *b = *state;
    CLEANUP(str) struct str dir = {0};
    str_addf(&dir, "%s/limited", b->dir);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(write_against_limit(dir.at));
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct store *s = sqlite_open_ok(dir.at);
    CLEANUP(mem) char *found = range_text(s, "", 0);
    assert_memory_equal(found, "a=at last@1/", 12);
    store_close(s);
}

int main(void)
{
    sqlite3_vfs layer;
    layer_install(&layer);
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_operation_may_fail),
        TEST(a_full_disk_stops_writing_only),
        TEST(a_failed_sync_is_not_believed),
        TEST(it_tries_again_until_the_disk_is_back),
        TEST(a_connection_that_cannot_be_opened_is_tried_later),
        TEST(what_turns_out_durable_is_told),
        TEST(a_disk_that_forgot_is_given_up),
        TEST(a_file_that_may_not_grow_is_a_full_disk),
    };
    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
