/* sqlite_damage_test.c - tests that any damage is rejected with an error text and without changes. */
#include "store/sqlite.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "store/store_test.h"

static const struct store_options existing = {0}, readonly = {.readonly = true};

struct blob {
    char *at;
    size_t len;
};

static struct blob file_read(const char *path)
{
    struct blob b = {0};
    FILE *f = fopen(path, "rb");
    if (!f)
        return b;
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    b.len = (size_t)ftell(f);
    b.at = mem_alloc(b.len + 1);
    rewind(f);
    assert_int_equal(fread(b.at, 1, b.len, f), b.len);
    (void)fclose(f);
    return b;
}

static struct blob blob_copy(const struct blob *from)
{
    struct blob copy = {mem_alloc(from->len), from->len};
    memcpy(copy.at, from->at, from->len);
    return copy;
}

static void file_write(const char *path, const struct blob *b)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->at, 1, b->len, f), b->len);
    assert_int_equal(fclose(f), 0);
}

/* A store to be damaged, with its undamaged contents. */
struct damaged_store {
    char dir[256], path[300], wal[320], acked[300], acked_copy[300];
    struct blob file, log, mark;
    char *all;
};

static void write_many(struct store *s)
{
    char value[400];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    for (int i = 0; i < 60; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "key/%02d", i % 17);
        assert_int_equal(COMMIT(s, OPS(PUT(key, value), PUT("always", key)), .record = TEXT(key)).rc, 0);
        if (i % 7 == 3)
            (void)drop(s, key);
    }
    assert_int_equal(store_compact(s, 20, NULL), 0);
    assert_int_equal(store_log_trim(s, 10, NULL), 0);
    (void)put(s, "last", "1");
}

static void damaged_store_paths(struct damaged_store *p)
{
    folder_make(p->dir);
    (void)snprintf(p->path, sizeof p->path, "%s/" STORE_FILE, p->dir);
    (void)snprintf(p->wal, sizeof p->wal, "%s-wal", p->path);
    (void)snprintf(p->acked, sizeof p->acked, "%s/acked", p->dir);
    (void)snprintf(p->acked_copy, sizeof p->acked_copy, "%s/acked.2", p->dir);
}

static void damaged_store_save(struct damaged_store *p)
{
    p->file = file_read(p->path);
    p->log = file_read(p->wal);
    p->mark = file_read(p->acked);
}

static int closed_setup(void **state)
{
    struct damaged_store *p = mem_zalloc(sizeof *p);
    damaged_store_paths(p);
    struct store *s = sqlite_open_ok(p->dir);
    write_many(s);
    p->all = all_text(s);
    store_close(s);
    damaged_store_save(p);
    assert_null(p->log.at);
    *state = p;
    return 0;
}

/* Leaves the files of a killed process: most data is in the write-ahead log. */
static int killed_setup(void **state)
{
    struct damaged_store *p = mem_zalloc(sizeof *p);
    damaged_store_paths(p);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        write_many(sqlite_open_ok(p->dir));
        _exit(0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    damaged_store_save(p);
    assert_true(p->log.len > 100000);
    struct store *s = sqlite_open_ok(p->dir);
    p->all = all_text(s);
    store_close(s);
    *state = p;
    return 0;
}

static void damaged_store_restore(const struct damaged_store *p)
{
    folder_file_remove(p->path);
    file_write(p->path, &p->file);
    if (p->log.at)
        file_write(p->wal, &p->log);
    file_write(p->acked, &p->mark);
    file_write(p->acked_copy, &p->mark);
}

static int damaged_store_teardown(void **state)
{
    struct damaged_store *p = *state;
    folder_remove(p->dir);
    mem_free(p->file.at);
    mem_free(p->log.at);
    mem_free(p->mark.at);
    mem_free(p->all);
    mem_free(p);
    return 0;
}

static void assert_unchanged(const char *path, const struct blob *before)
{
    struct blob now = file_read(path);
    assert_int_equal(now.len, before->len);
    assert_memory_equal(now.at, before->at, now.len);
    mem_free(now.at);
}

/* Opens the store. Returns true if it was rejected with a text and without changes; otherwise it must be complete. */
static bool rejected_or_complete(const struct damaged_store *p, const struct store_options *options,
                                 struct berth_err *err)
{
    struct store *s = NULL;
    struct blob before = file_read(p->path), log = file_read(p->wal);
    int rc = store_sqlite_open(p->dir, options, &s, err);
    if (rc == 0) {
        assert_text(all_text(s), p->all);
        store_close(s);
    } else {
        assert_null(s);
        assert_true(rc == -EBADMSG || rc == -EINVAL || rc == -ENOTSUP);
        assert_non_null(strstr(err->text, p->path));
        assert_true(strstr(err->text, "restore a backup") || strstr(err->text, "upgrade"));
        assert_unchanged(p->path, &before);
        if (log.len)
            assert_unchanged(p->wal, &log);
    }
    mem_free(before.at);
    mem_free(log.at);
    return rc < 0;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void edited_rows_are_rejected(void **state)
{
    struct damaged_store *p = *state;
    static const struct {
        const char *sql, *word;
    } rows[] = {
        {"UPDATE change SET value = x'00' WHERE key = 'last'",                                                  "checksum"                         },
 /* the same byte, but as text */
        {"UPDATE change SET value = '1' WHERE key = 'last'",                                                    "checksum"                         },
        {"UPDATE change SET value = NULL WHERE key = 'last'",                                                   "checksum"                         },
        {"UPDATE change SET value = x'' WHERE value IS NULL",                                                   "checksum"                         },
        {"UPDATE change SET key = 'lost' WHERE key = 'last'",                                                   "checksum"                         },
        {"UPDATE change SET key = CAST(key AS BLOB) WHERE key = 'last'",                                        "checksum"                         },
        {"UPDATE change SET key = '' WHERE key = 'last'",                                                       "checksum"                         },
        {"UPDATE change SET created = created + 1 WHERE key = 'last'",                                          "checksum"                         },
        {"UPDATE change SET replaced = 1 WHERE key = 'last'",                                                   "checksum"                         },
        {"UPDATE change SET sum = sum + 1 WHERE key = 'last'",                                                  "checksum"                         },
        {"UPDATE change SET place = place + 1 WHERE key = 'last'",                                              "checksum"                         },
        {"DELETE FROM change WHERE key = 'last'",                                                               "missing"                          },
        {"DELETE FROM change WHERE place = (SELECT min(place) FROM change)",                                    ""                                 },
        {"DELETE FROM change WHERE place = (SELECT min(place) FROM change WHERE replaced IN"
         " (SELECT place FROM change))",                                                               "does not follow"                  },
        {"DELETE FROM change WHERE place = (SELECT max(place) FROM change WHERE value IS NULL)",                ""                                 },
        {"DELETE FROM change",                                                                                  "missing"                          },
        {"INSERT INTO change SELECT place + 1, key, place, created, sum, value FROM change WHERE key = 'last'",
         "checksum"                                                                                                                                },
        {"UPDATE log SET record = x'00' WHERE seq = 11",                                                        "log breaks at record 11"          },
        {"UPDATE log SET record = x'00' WHERE seq = 10",                                                        "log breaks at record 10"          },
        {"UPDATE log SET chain = chain + 1 WHERE seq = 10",                                                     "log breaks at record 11"          },
        {"UPDATE log SET revision = 1 WHERE seq = 10",                                                          "log breaks at record 10"          },
        {"UPDATE log SET record = x'', revision = 0 WHERE seq = 11",                                            "log breaks at record 11"          },
        {"UPDATE log SET record = CAST(record AS TEXT) WHERE seq = 17",                                         "log breaks at record 17"          },
        {"UPDATE log SET revision = revision + 1 WHERE seq = 30",                                               "log breaks at record 30"          },
        {"UPDATE log SET chain = chain + 1 WHERE seq = 60",                                                     "log breaks at record 60"          },
        {"UPDATE log SET seq = 61 WHERE seq = 60",                                                              "log breaks at record 61"          },
        {"DELETE FROM log WHERE seq = 10",                                                                      "log breaks at record 11"          },
        {"DELETE FROM log WHERE seq = 30",                                                                      "log breaks at record 31"          },
        {"DELETE FROM log WHERE seq = 60",                                                                      "ends with record 59 instead of 60"},
        {"DELETE FROM log",                                                                                     "ends with record 0 instead of 60" },
        {"UPDATE meta SET revision = revision + 1",                                                             "meta"                             },
        {"UPDATE meta SET compacted = compacted + 1",                                                           "meta"                             },
        {"UPDATE meta SET swept = swept - 1",                                                                   "meta"                             },
        {"UPDATE meta SET digest = digest + 1",                                                                 "meta"                             },
        {"UPDATE meta SET log_seq = log_seq - 1",                                                               "meta"                             },
        {"UPDATE meta SET log_chain = log_chain + 1",                                                           "meta"                             },
        {"UPDATE meta SET sum = sum + 1",                                                                       "meta"                             },
        {"DELETE FROM meta",                                                                                    "meta is empty"                    },
        {"DROP TABLE change",                                                                                   "change"                           },
        {"DROP TABLE log",                                                                                      "log"                              },
        {"DROP TABLE meta",                                                                                     "meta"                             },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        damaged_store_restore(p);
        sqlite3 *db = NULL;
        char *text = NULL;
        assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
        if (sqlite3_exec(db, rows[i].sql, NULL, NULL, &text) != SQLITE_OK || sqlite3_total_changes(db) == 0)
            if (strncmp(rows[i].sql, "DROP", 4) != 0 || text)
                fail_msg("%s: %s", rows[i].sql, text ? text : "changes nothing");
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        const struct store_options *const options[] = {&readonly, &existing};
        for (size_t o = 0; o < 2; o++) {
            struct berth_err err = {0};
            if (!rejected_or_complete(p, options[o], &err) || !strstr(err.text, rows[i].word))
                fail_msg("%s: \"%s\" has no \"%s\"", rows[i].sql, err.text, rows[i].word);
        }
    }
    damaged_store_restore(p);
    struct berth_err err = {0};
    assert_false(rejected_or_complete(p, &existing, &err));
}

/* Rows with valid checksums that contradict each other, as after a lost write. */
static void inconsistent_rows_are_rejected(void **state)
{
    struct damaged_store *p = *state;
    struct db db;
    struct ledger ledger = {0};
    struct berth_err err = {0};
    damaged_store_restore(p);
    assert_int_equal(db_open(&db, p->path, DB_WRITE, NULL), 0);
    assert_int_equal(db_prepare(&db, NULL), 0);
    assert_int_equal(ledger_verify(&db, &ledger, NULL), 0);
    ledger.now.revision--; /* the table of changes has one revision more than meta */
    assert_int_equal(totals_write(&db, &ledger.now, NULL), 0);
    db_close(&db);
    ledger_done(&ledger);
    assert_true(rejected_or_complete(p, &existing, &err));
    assert_non_null(strstr(err.text, "out of order"));
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void flipped_bytes_are_rejected_or_harmless(void **state)
{
    struct damaged_store *p = *state;
    enum { FLIPS = 400 };
    unsigned refused = 0;
    for (uint64_t i = 0; i < FLIPS; i++) {
        struct berth_err err = {0};
        uint64_t dice = hash_u64(i + 1);
        size_t at = i < 100 ? i : dice % p->file.len; /* every byte of the header, then random ones */
        damaged_store_restore(p);
        struct blob bad = blob_copy(&p->file);
        bad.at[at] = (char)(bad.at[at] ^ (1 << dice % 8));
        file_write(p->path, &bad);
        mem_free(bad.at);
        refused += rejected_or_complete(p, i % 2 ? &existing : &readonly, &err);
    }
    assert_true(refused > FLIPS / 4); /* other flips hit free space and counters */
}

/* No row is damaged: only SQLite's own check finds this. */
static void wrong_free_page_list_is_rejected(void **state)
{
    struct damaged_store *p = *state;
    struct berth_err err = {0};
    enum { AT_FREE_PAGES = 36 };
    damaged_store_restore(p);
    struct blob bad = blob_copy(&p->file);
    bad.at[AT_FREE_PAGES + 3]++;
    file_write(p->path, &bad);
    mem_free(bad.at);
    assert_true(rejected_or_complete(p, &existing, &err));
    assert_non_null(strstr(err.text, "reelist"));
}

static void truncated_file_is_rejected(void **state)
{
    struct damaged_store *p = *state;
    const size_t lengths[] = {
        0, 1, 15, 99, 100, 1000, 4095, 4096, 8192, p->file.len / 2, p->file.len - 4096, p->file.len - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct berth_err err = {0};
        damaged_store_restore(p);
        assert_int_equal(truncate(p->path, (off_t)lengths[i]), 0);
        if (!rejected_or_complete(p, &existing, &err))
            fail_msg("%zu of %zu bytes were taken for whole", lengths[i], p->file.len);
    }
}

/* ---- the write-ahead log ----------------------------------------------------------------------------------------- */

static void missing_acknowledged_end_is_detected(void **state)
{
    struct damaged_store *p = *state;
    struct berth_err err = {0};
    damaged_store_restore(p);
    assert_false(rejected_or_complete(p, &existing, &err));
    for (size_t len = 0; len < p->log.len; len += p->log.len / 13 + 1) {
        damaged_store_restore(p);
        assert_int_equal(truncate(p->wal, (off_t)len), 0);
        assert_true(rejected_or_complete(p, &existing, &err));
        assert_non_null(strstr(err.text, "was acknowledged"));
    }
    damaged_store_restore(p);
    assert_int_equal(unlink(p->wal), 0);
    assert_true(rejected_or_complete(p, &existing, &err));
    for (uint64_t i = 0; i < 100 && p->log.len; i++) {
        uint64_t dice = hash_u64(i);
        damaged_store_restore(p);
        struct blob bad = blob_copy(&p->log);
        bad.at[dice % bad.len] ^= 0x10;
        file_write(p->wal, &bad);
        mem_free(bad.at);
        (void)rejected_or_complete(p, i % 2 ? &existing : &readonly, &err);
    }
}

static const char *const bad_marks[] = {
    "",
    "x",
    "00000000000000000007",
    "99999999999999999999 0000000000000000\n",
    "00000000000000000000 0000000000000000\n", /* a mark of revision 0 with a wrong hash */
};
enum { BAD_MARKS = sizeof bad_marks / sizeof *bad_marks };

static void mark_write(const char *path, const char *mark)
{
    file_write(path, &(struct blob){(char *)mark, strlen(mark)});
}

/* One valid copy of the mark is sufficient, and repairs the other one. */
static void one_damaged_mark_is_repaired(void **state)
{
    struct damaged_store *p = *state;
    for (size_t i = 0; i < BAD_MARKS; i++)
        for (int second = 0; second < 2; second++) {
            struct berth_err err = {0};
            damaged_store_restore(p);
            mark_write(second ? p->acked_copy : p->acked, bad_marks[i]);
            assert_false(rejected_or_complete(p, &existing, &err));
            assert_unchanged(p->acked, &p->mark);
            assert_unchanged(p->acked_copy, &p->mark);
        }
}

/* An unreadable mark could have shown that data is missing. */
static void damaged_marks_are_rejected(void **state)
{
    struct damaged_store *p = *state;
    for (size_t i = 0; i < BAD_MARKS; i++)
        for (int alone = 0; alone < 2; alone++) {
            struct berth_err err = {0};
            damaged_store_restore(p);
            mark_write(p->acked, bad_marks[i]);
            mark_write(p->acked_copy, bad_marks[i]);
            if (alone) /* as in stores of earlier versions */
                assert_int_equal(unlink(p->acked_copy), 0);
            struct store *store = NULL;
            assert_int_equal(store_sqlite_open(p->dir, i % 2 ? &existing : &readonly, &store, &err), -EBADMSG);
            assert_non_null(strstr(err.text, "acked"));
            assert_unchanged(p->path, &p->file);
        }
    /* The remedy in the error text works. */
    struct berth_err err = {0};
    assert_int_equal(unlink(p->acked), 0);
    assert_false(rejected_or_complete(p, &existing, &err));
    assert_unchanged(p->acked, &p->mark);
    assert_unchanged(p->acked_copy, &p->mark);
}

/* The second copy alone proves that data at the end is missing. */
static void second_mark_proves_missing_data(void **state)
{
    struct damaged_store *p = *state;
    struct berth_err err = {0};
    damaged_store_restore(p);
    assert_int_equal(truncate(p->wal, 0), 0);
    assert_int_equal(unlink(p->acked), 0);
    assert_true(rejected_or_complete(p, &existing, &err));
    assert_non_null(strstr(err.text, "was acknowledged"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(edited_rows_are_rejected, closed_setup, damaged_store_teardown),
        cmocka_unit_test_setup_teardown(inconsistent_rows_are_rejected, closed_setup, damaged_store_teardown),
        cmocka_unit_test_setup_teardown(flipped_bytes_are_rejected_or_harmless, closed_setup, damaged_store_teardown),
        cmocka_unit_test_setup_teardown(wrong_free_page_list_is_rejected, closed_setup, damaged_store_teardown),
        cmocka_unit_test_setup_teardown(truncated_file_is_rejected, closed_setup, damaged_store_teardown),
        cmocka_unit_test_setup_teardown(missing_acknowledged_end_is_detected, killed_setup, damaged_store_teardown),
        cmocka_unit_test_setup_teardown(one_damaged_mark_is_repaired, closed_setup, damaged_store_teardown),
        cmocka_unit_test_setup_teardown(damaged_marks_are_rejected, closed_setup, damaged_store_teardown),
        cmocka_unit_test_setup_teardown(second_mark_proves_missing_data, killed_setup, damaged_store_teardown),
    };
    return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
