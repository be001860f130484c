/* sqlite_upgrade_test.c - opens stores of each earlier format: all data is kept, and the store has the current format.
 *
 * The rows are dumps of small stores in the layout of each format, with checksums. They never change. To add a format:
 * add a row with such a dump to the table.
 */
#include "store/sqlite.h"

#include <sys/stat.h>

#include "store/store_test.h"

#define TABLES                                                                                                         \
    "CREATE TABLE change (place INTEGER PRIMARY KEY, key TEXT NOT NULL, replaced INTEGER NOT NULL,"                    \
    " created INTEGER NOT NULL, sum INTEGER NOT NULL, value BLOB);"                                                    \
    "CREATE TABLE log (seq INTEGER PRIMARY KEY, revision INTEGER NOT NULL, chain INTEGER NOT NULL,"                    \
    " record BLOB NOT NULL);"                                                                                          \
    "CREATE TABLE meta (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL,"                           \
    " compacted INTEGER NOT NULL, swept INTEGER NOT NULL, digest INTEGER NOT NULL, log_seq INTEGER NOT NULL,"          \
    " log_chain INTEGER NOT NULL, sum INTEGER NOT NULL);"

static const struct {
    int format;
    const char *sql;
    const char *acked; /* one file, or two equal ones */
    bool copy;
    const char *range, *log;
} rows[] = {
    {
     1,  TABLES "INSERT INTO change VALUES"
               " (262144, 'k/0', 0, 1, -7125254677721136657, CAST('value 0' AS BLOB)),"
               " (524288, 'k/1', 0, 2, 7016292344085724406, CAST('value 1' AS BLOB)),"
               " (786432, 'k/2', 0, 3, -4754564335009756393, CAST('value 2' AS BLOB)),"
               " (1048576, 'k/0', 262144, 1, -7912329370950946398, CAST('value 3' AS BLOB)),"
               " (1310720, 'k/1', 524288, 2, 6441225402824298794, NULL),"
               " (1572864, 'k/2', 786432, 3, 1762472373420047843, CAST('value 5' AS BLOB));"
               "INSERT INTO log VALUES"
               " (1, 1, 6822714058243252188, CAST('{\"n\":0}' AS BLOB)),"
               " (2, 2, 8010653782957733601, CAST('{\"n\":1}' AS BLOB)),"
               " (3, 3, -1446612328830293787, CAST('{\"n\":2}' AS BLOB)),"
               " (4, 4, 1888477076722729546, CAST('{\"n\":3}' AS BLOB)),"
               " (5, 5, -8329497037755996066, CAST('{\"n\":4}' AS BLOB)),"
               " (6, 6, -7244281440510982994, CAST('{\"n\":5}' AS BLOB));"
               "INSERT INTO meta VALUES"
               " (1, 6, 0, 0, -4572158263351768405, 6, -7244281440510982994, -6982514983626118416);"
               "PRAGMA application_id = 1114797160; PRAGMA user_version = 1;", "00000000000000000006 e35936cf83063582\n",
     false,                                                                           "k/0=value 3@1/4 k/2=value 5@3/6",
     "1:{\"n\":0}/1 2:{\"n\":1}/2 3:{\"n\":2}/3 4:{\"n\":3}/4 5:{\"n\":4}/5 6:{\"n\":5}/6", },
    {
     2, TABLES "INSERT INTO change VALUES"
               " (262144, 'k/0', 0, 1, -7125254677721136657, CAST('value 0' AS BLOB)),"
               " (524288, 'k/1', 0, 2, 7016292344085724406, CAST('value 1' AS BLOB)),"
               " (786432, 'k/2', 0, 3, -4754564335009756393, CAST('value 2' AS BLOB)),"
               " (1048576, 'k/0', 262144, 1, -7912329370950946398, CAST('value 3' AS BLOB)),"
               " (1310720, 'k/1', 524288, 2, 6441225402824298794, NULL),"
               " (1572864, 'k/2', 786432, 3, 1762472373420047843, CAST('value 5' AS BLOB)),"
               " (1835008, 'last', 0, 7, -1213256944566331027, CAST('1' AS BLOB));"
               "INSERT INTO log VALUES"
               " (3, 0, -1446612328830293787, CAST('' AS BLOB)),"
               " (4, 4, 1888477076722729546, CAST('{\"n\":3}' AS BLOB)),"
               " (5, 5, -8329497037755996066, CAST('{\"n\":4}' AS BLOB)),"
               " (6, 6, -7244281440510982994, CAST('{\"n\":5}' AS BLOB));"
               "INSERT INTO meta VALUES"
               " (1, 7, 0, 0, -5785415207918099432, 6, -7244281440510982994, 8041610017768792801);"
               "PRAGMA application_id = 1114797160; PRAGMA user_version = 2;",                                                                             "00000000000000000007 98f66bb0ad234436\n",
     true, "k/0=value 3@1/4 k/2=value 5@3/6 last=1@7/7",
     "4:{\"n\":3}/4 5:{\"n\":4}/5 6:{\"n\":5}/6", },
};

static void file_write(const char *dir, const char *name, const char *text)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s/%s", dir, name);
    FILE *f = fopen(path.at, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static void old_store_create(const char *dir, size_t row)
{
    CLEANUP(str) struct str path = {0};
    sqlite3 *db = NULL;
    char *err = NULL;
    str_addf(&path, "%s/" STORE_FILE, dir);
    assert_int_equal(sqlite3_open(path.at, &db), SQLITE_OK);
    if (sqlite3_exec(db, rows[row].sql, NULL, NULL, &err) != SQLITE_OK)
        fail_msg("format %d: %s", rows[row].format, err);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    file_write(dir, "acked", rows[row].acked);
    if (rows[row].copy)
        file_write(dir, "acked.2", rows[row].acked);
}

static bool is_there(const char *dir, const char *name)
{
    CLEANUP(str) struct str path = {0};
    struct stat st;
    str_addf(&path, "%s/%s", dir, name);
    return lstat(path.at, &st) == 0;
}

static void each_earlier_format_is_migrated(void **state)
{
    (void)state;
    static const struct store_options readonly = {.readonly = true};
    size_t len = sizeof rows / sizeof *rows;
    assert_int_equal(rows[len - 1].format, STORE_FORMAT); /* the next format needs a row */
    for (size_t i = 0; i < len; i++) {
        char dir[256];
        struct berth_err err = {0};
        struct store *s = NULL;
        folder_make(dir);
        old_store_create(dir, i);
        if (store_sqlite_open(dir, &readonly, &s, &err) < 0)
            fail_msg("format %d: %s", rows[i].format, err.text);
        assert_text(range_text(s, "", 0), rows[i].range);
        store_close(s);
        s = sqlite_open_ok(dir);
        assert_text(range_text(s, "", 0), rows[i].range);
        assert_text(log_text(s, 0), rows[i].log);
        assert_true(is_there(dir, "acked.2") && is_there(dir, "reserve"));
        assert_true(put(s, "new", "1") > 0);
        s = sqlite_restart(s, dir);
        assert_int_equal(store_last_errno(s), 0);
        store_close(s);
        folder_remove(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_earlier_format_is_migrated)};
    return cmocka_run_group_tests_name("upgrade", tests, NULL, NULL);
}
