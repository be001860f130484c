/* sqlite_fault_test.c - tests disk failures: acknowledged data survives, reports are true, and the store recovers. */
#include "store/sqlite.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "store/failing_disk_test.h"
#include "store/store_test.h"

/* ---- every operation fails once --------------------------------------------------------------------------------- */

static const struct store_options create = {.create = true};

enum { TXNS = 10 };

struct run {
    bool opened;
    struct outcome outcomes[TXNS];
    struct str heard;
};

/* Runs a short sequence on a store: a few commits, one of them large, and a compaction. */
static void run_sequence(const char *dir, struct run *run, const char *large)
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
    store_close(s);
}

/* Returns the events after a revision; the caller frees them. */
static char *events_after(const char *heard, uint64_t revision)
{
    struct str after = {0};
    CLEANUP(mem) char *copy = mem_strdup(heard);
    char *rest = NULL;
    for (char *each = strtok_r(copy, " ", &rest); each; each = strtok_r(NULL, " ", &rest))
        if (strtoull(strrchr(each, '/') + 1, NULL, 10) > revision)
            str_addf(&after, "%s%s", after.len ? " " : "", each);
    return str_take(&after);
}

/* Checks that each acknowledged transaction is in the log at its place, and that the reported events match the
 * history. */
static void check_after_failure(const char *dir, const struct run *run, const char *label, unsigned n)
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
    /* A failed commit may be present after a restart without a report, but only as the last one. */
    CLEANUP(mem) char *past = history_text(s, "", store_compacted(s), 0);
    CLEANUP(mem) char *heard = events_after(str_text(&run->heard), store_compacted(s));
    if (strncmp(past, heard, strlen(heard)) != 0)
        fail_msg("%s %u: heard\n%s\nbut there is\n%s", label, n, heard, past);
    (void)put(s, "it-goes-on", "1");
    store_close(s);
}

static void store_survives_any_failing_operation(void **state)
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
            run_sequence(dir, &run, large);
            failed = disk_works();
            check_after_failure(dir, &run, rows[r].label, n);
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

static void full_disk_stops_writes_only(void **state)
{
    struct bed *b = *state;
    disk_fails(FAULT_WRITE, SQLITE_FULL, ENOSPC, NULL, 0, UINT32_MAX);
    for (int i = 0; i < 3; i++) {
        struct outcome o = try_put(b, "2");
        assert_code(o.result.rc, ENOSPC);
        assert_non_null(strstr(o.text, "until space is freed"));
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

static void failed_sync_is_rewritten(void **state)
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

static void writer_reconnects_until_the_disk_works(void **state)
{
    struct bed *b = *state;
    disk_fails(FAULT_WRITE, SQLITE_IOERR_WRITE, EIO, "-wal", 0, 1);
    struct outcome o = try_put(b, "2");
    assert_code(o.result.rc, EIO);
    /* The next batch reconnects; that fails twice. */
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

/* Fails the commit, and then the given number of reconnects. */
struct blocked {
    unsigned times;
};

static void block_opening(void *ctx)
{
    struct blocked *blocked = ctx;
    disk_fails(FAULT_OPEN, SQLITE_CANTOPEN, EIO, STORE_FILE, 0, blocked->times);
}

static void failed_reconnect_is_retried(void **state)
{
    struct bed *b = *state;
    struct blocked blocked = {3};
    disk_fails(FAULT_SYNC, SQLITE_IOERR_FSYNC, EIO, "-wal", 0, 1);
    disk.opening_ctx = &blocked;
    disk.opening = block_opening;
    for (int i = 0; i < 3; i++)
        assert_code(try_put(b, "2").result.rc, EIO);
    assert_text(range_text(b->store, "", 0), "a=1@1/1"); /* reads still work */
    assert_int_equal(try_put(b, "3").result.rc, 0);
    assert_int_equal(disk_works(), 3);
    assert_string_equal(b->heard.at, "a=1@1/1 a=3@1/2");
}

/* Writes the data of the failed commit, as if the commit had reached the disk. */
static void commit_separately(void *ctx)
{
    const struct bed *b = ctx;
    struct db db;
    struct ledger ledger = {0};
    (void)disk_works();
    assert_int_equal(db_open(&db, b->path, DB_WRITE, NULL), 0);
    assert_int_equal(db_prepare(&db, NULL), 0);
    assert_int_equal(db_run(&db, ST_BEGIN, NULL), 0);
    assert_int_equal(ledger_verify(&db, &ledger, NULL), 0);
    const struct store_txn txns[] = {
        {OPS(PUT("a", "2"), PUT("b", "")), .record = TEXT("2")},
        {OPS(DROP("b"))   }
    };
    for (size_t i = 0; i < 2; i++) {
        struct queued *q = queued_new(&txns[i], NULL, NULL);
        assert_int_equal(change_row_write(&db, &ledger, q, NULL), 0);
        queued_free(q);
    }
    assert_int_equal(totals_write(&db, &ledger.now, NULL), 0);
    assert_int_equal(db_run(&db, ST_COMMIT, NULL), 0);
    ledger_done(&ledger);
    db_close(&db);
}

static void durable_failed_commit_is_reported(void **state)
{
    struct bed *b = *state;
    disk.opening_ctx = b;
    disk.opening = commit_separately;
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

/* The same with so much data that little of it stays in the page cache; then reads fail for a while. */
struct separate_large_commit {
    const struct bed *bed;
    unsigned reads; /* number of reads that succeed */
};

enum { LARGE_TXNS = 3, LARGE_OPS = 90, LARGE_BYTES = 100000 };

static void commit_large_separately(void *ctx)
{
    const struct separate_large_commit *large = ctx;
    struct db db;
    struct ledger ledger = {0};
    CLEANUP(mem) char *value = mem_zalloc(LARGE_BYTES);
    (void)disk_works();
    assert_int_equal(db_open(&db, large->bed->path, DB_WRITE, NULL), 0);
    assert_int_equal(db_prepare(&db, NULL), 0);
    assert_int_equal(db_run(&db, ST_BEGIN, NULL), 0);
    assert_int_equal(ledger_verify(&db, &ledger, NULL), 0);
    for (int t = 0; t < LARGE_TXNS; t++) {
        struct store_op ops[LARGE_OPS];
        char keys[LARGE_OPS][8];
        for (int i = 0; i < LARGE_OPS; i++) {
            (void)snprintf(keys[i], sizeof keys[i], "k%d", i);
            ops[i] = (struct store_op){
                .key = keys[i], .value = {value, LARGE_BYTES}
            };
        }
        struct queued *q = queued_new(&(struct store_txn){.ops = ops, .ops_len = LARGE_OPS}, NULL, NULL);
        assert_int_equal(change_row_write(&db, &ledger, q, NULL), 0);
        queued_free(q);
    }
    assert_int_equal(totals_write(&db, &ledger.now, NULL), 0);
    assert_int_equal(db_run(&db, ST_COMMIT, NULL), 0);
    ledger_done(&ledger);
    db_close(&db);
    disk_fails(FAULT_READ, SQLITE_IOERR_READ, EIO, "-wal", large->reads, UINT32_MAX);
}

static void count_event(void *ctx, const struct store_event *event)
{
    unsigned *counts = ctx;
    if (event->revision >= 2 && event->revision < 2 + LARGE_TXNS)
        counts[event->revision - 2]++;
}

/* Wherever reading stops, transactions are reported completely, and finally all of them. */
static void found_transactions_are_reported_completely(void **state)
{
    struct bed *b = *state;
    unsigned failed = 1;
    for (unsigned n = 0; failed; n += 1500) {
        struct separate_large_commit large = {b, n};
        unsigned counts[LARGE_TXNS] = {0};
        struct store_watch *w = NULL;
        assert_int_equal(store_watch(b->store, "k", store_revision(b->store), count_event, counts, &w, NULL), 0);
        disk.opening_ctx = &large;
        disk.opening = commit_large_separately;
        disk_fails(FAULT_SYNC, SQLITE_IOERR_FSYNC, EIO, "-wal", 0, 1);
        assert_code(try_put(b, "2").result.rc, EIO);
        for (int i = 0; i < LARGE_TXNS; i++)
            assert_true(counts[i] == 0 || counts[i] == LARGE_OPS);
        failed = disk_works();
        assert_int_equal(try_put(b, "3").result.rc, 0);
        for (int i = 0; i < LARGE_TXNS; i++)
            assert_int_equal(counts[i], LARGE_OPS);
        assert_int_equal(bed_teardown(state), 0);
        assert_int_equal(bed_setup(state), 0);
        b = *state;
    }
}

static void delete_separately(void *ctx)
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

static void lost_data_breaks_the_store(void **state)
{
    struct bed *b = *state;
    struct berth_err err = {0};
    disk.opening_ctx = b;
    disk.opening = delete_separately;
    disk_fails(FAULT_SYNC, SQLITE_IOERR_FSYNC, EIO, "-wal", 0, 1);
    assert_code(try_put(b, "2").result.rc, EIO);
    for (int i = 0; i < 2; i++) {
        assert_code(store_submit(b->store, &(struct store_txn){OPS(PUT("a", "3"))}, NULL, NULL, &err), EIO);
        assert_non_null(strstr(err.text, "restore a backup"));
    }
    assert_code(store_compact(b->store, 1, &err), EIO);
    assert_text(range_text(b->store, "", 0), "a=1@1/1"); /* reading still works, to rescue data */
    assert_string_equal(b->heard.at, "a=1@1/1");
}

/* ---- file size limit -------------------------------------------------------------------------------------------- */

/* Runs in its own process, because a limit cannot be removed again. Returns the failed step, or 0. */
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

static void file_size_limit_acts_like_a_full_disk(void **state)
{
    (void)state;
    char dir[256];
    folder_make(dir);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(write_against_limit(dir));
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct store *s = sqlite_open_ok(dir);
    CLEANUP(mem) char *found = range_text(s, "", 0);
    assert_memory_equal(found, "a=at last@1/", 12);
    store_close(s);
    folder_remove(dir);
}

int main(void)
{
    sqlite3_vfs layer;
    if (disk_install(&layer) != SQLITE_OK)
        return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_survives_any_failing_operation),
        TEST(full_disk_stops_writes_only),
        TEST(failed_sync_is_rewritten),
        TEST(writer_reconnects_until_the_disk_works),
        TEST(failed_reconnect_is_retried),
        TEST(durable_failed_commit_is_reported),
        TEST(found_transactions_are_reported_completely),
        TEST(lost_data_breaks_the_store),
        cmocka_unit_test(file_size_limit_acts_like_a_full_disk),
    };
    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
