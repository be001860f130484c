/* seal_test.c - tests sealing the log and reading it again: nothing is lost or duplicated, also after crashes. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "journal/reader.h"
#include "journal/seal.h"
#include "store/store_test.h"

struct room {
    char data[256], dir[300], exported[320];
    struct store *store;
};

static int room_setup(void **state)
{
    struct room *r = mem_zalloc(sizeof *r);
    folder_make(r->data);
    (void)snprintf(r->dir, sizeof r->dir, "%s/" SHELF_FOLDER, r->data);
    (void)snprintf(r->exported, sizeof r->exported, "%s/" SHELF_EXPORTED, r->dir);
    r->store = sqlite_open_ok(r->data);
    *state = r;
    return 0;
}

static int room_teardown(void **state)
{
    struct room *r = *state;
    store_close(r->store);
    folder_remove(r->data);
    mem_free(r);
    return 0;
}

/* Record n: key n % 7 gets n; every fifth record deletes a key; tokens are left out. */
static void write_record(struct store *s, uint64_t n)
{
    CLEANUP(str) struct str text = {0};
    str_addf(&text,
             "{\"j\":1,\"kind\":\"t\",\"at\":%" PRIu64 ",\"changes\":[[\"k/%" PRIu64 "\",{\"n\":%" PRIu64
             "}],[\"tokens/x\"]",
             n * 1000, n % 7, n);
    if (n % 5 == 0)
        str_addf(&text, ",[\"k/%" PRIu64 "\",null]", (n + 1) % 7);
    str_add(&text, "]}");
    assert_int_equal(COMMIT(s, OPS(PUT("k", "v")), .record = {text.at, text.len}).rc, 0);
}

static void write_records(struct store *s, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        write_record(s, store_log_last(s) + 1);
}

static int seal(struct room *r, uint64_t bytes_max, struct segment *ret)
{
    struct berth_err err = {0};
    struct seal_options o = {.store = r->store,
                             .dir = r->dir,
                             .trimmed = store_log_trimmed(r->store),
                             .upto = store_log_last(r->store),
                             .bytes_max = bytes_max};
    int rc = seal_next(&o, ret, &err);
    if (rc < 0)
        print_message("%s\n", err.text);
    return rc;
}

/* The result of reading a whole journal. */
struct read_result {
    struct str text; /* starts and documents */
    uint64_t first, last, n;
    struct docset fold;
};

static int read_result_start(void *ctx, const struct journal_break *b)
{
    struct read_result *g = ctx;
    str_addf(&g->text, "[%d %" PRIu64 "..%" PRIu64 "]", b->start, b->before, b->first);
    docset_done(&g->fold);
    return 0;
}

static int read_result_document(void *ctx, const char *key, uint64_t revision, struct bytes doc)
{
    docset_put(&((struct read_result *)ctx)->fold, key, revision, doc);
    return 0;
}

static int read_result_record(void *ctx, const struct store_record *record)
{
    struct read_result *g = ctx;
    if (g->n++ == 0)
        g->first = record->seq;
    else if (record->seq != g->last + 1)
        str_addf(&g->text, "!%" PRIu64, record->seq);
    g->last = record->seq;
    return docset_record(&g->fold, record, NULL);
}

static void read_result_done(struct read_result *g)
{
    str_done(&g->text);
    docset_done(&g->fold);
    *g = (struct read_result){0};
}

static int read_all(const struct journal_sources *sources, const struct journal_range *range, struct read_result *g,
                    struct berth_err *err)
{
    struct journal *j = NULL;
    struct journal_visitor v = {read_result_start, read_result_document, read_result_record, NULL, g};
    int rc = journal_open(sources, &j, err);
    if (rc == 0)
        rc = journal_read(j, range, &v, err);
    journal_close(j);
    return rc;
}

#define READ(r, g)                                                                                                     \
    assert_int_equal(read_all(&(struct journal_sources){.data = (r)->data}, &(struct journal_range){0}, (g), NULL), 0)

/* Returns the state as text. */
static char *docset_text(struct docset *f)
{
    struct str text = {0};
    docset_sort(f);
    for (size_t i = 0; i < f->list.len; i++)
        str_addf(&text, "%s@%" PRIu64 "=%.*s ", f->list.at[i].key, f->list.at[i].revision, (int)f->list.at[i].len,
                 f->list.at[i].text);
    return str_take(&text);
}

/* Returns the state after this many records, computed without segments. */
static char *state_after(uint64_t n)
{
    struct store *s = store_memory_new();
    struct read_result g = {0};
    write_records(s, n);
    if (n)
        assert_int_equal(store_log(s, 1, read_result_record, &g, NULL), 0);
    char *text = docset_text(&g.fold);
    read_result_done(&g);
    store_close(s);
    return text;
}

static void segments_are_contiguous(void **state)
{
    struct room *r = *state;
    struct segment s[4];
    assert_int_equal(seal(r, 1 << 20, &s[0]), 0); /* nothing to seal */
    write_records(r->store, 100);
    assert_int_equal(seal(r, 3000, &s[0]), 1);
    assert_int_equal(s[0].base, SEGMENT_BEGINNING);
    assert_true(s[0].first == 1 && s[0].last > 10 && s[0].last < 60 && s[0].from_ns == 1000);
    assert_int_equal(seal(r, 3000, &s[1]), 1);
    assert_int_equal(s[1].base, SEGMENT_CHECKPOINT);
    assert_true(shelf_follows(&s[0], &s[1]));
    assert_true(s[1].documents > 3 && s[1].documents <= 7);
    while (seal(r, 3000, &s[2]) == 1)
        continue;
    write_records(r->store, 50);
    struct read_result g = {0};
    READ(r, &g);
    assert_string_equal(str_text(&g.text), "[0 0..1]");
    assert_true(g.first == 1 && g.last == 150 && g.n == 150);
    CLEANUP(mem) char *state_now = docset_text(&g.fold), *want = state_after(150);
    assert_string_equal(state_now, want);
    read_result_done(&g);

    /* The result is the same after trimming. */
    assert_int_equal(store_log_trim(r->store, 100, NULL), 0);
    write_records(r->store, 1);
    READ(r, &g);
    assert_true(g.first == 1 && g.last == 151 && g.n == 151);
    read_result_done(&g);
}

/* The record of a transaction with many documents contains all of them. */
static void a_large_record_is_sealed_and_read(void **state)
{
    enum { PIECE = 1 << 20, PIECES = 20 };
    struct room *r = *state;
    struct read_result g = {0};
    CLEANUP(str) struct str text = {0};
    CLEANUP(mem) char *piece = mem_alloc(PIECE + 1);
    memset(piece, 'x', PIECE);
    piece[PIECE] = 0;
    str_add(&text, "{\"j\":2,\"kind\":\"t\",\"at\":3500,\"changes\":[");
    for (int i = 0; i < PIECES; i++)
        str_addf(&text, "%s[\"large/%d\",{\"t\":\"%s\"}]", i ? "," : "", i, piece);
    str_add(&text, "]}");
    write_records(r->store, 3);
    assert_int_equal(COMMIT(r->store, OPS(PUT("k", "v")), .record = {text.at, text.len}).rc, 0);
    write_records(r->store, 3);
    assert_int_equal(seal(r, 1 << 20, &(struct segment){0}), 1);
    while (seal(r, 1, &(struct segment){0}) == 1)
        continue;
    assert_int_equal(store_log_trim(r->store, 6, NULL), 0);
    READ(r, &g);
    assert_true(g.first == 1 && g.last == 7 && g.n == 7);
    size_t large = 0;
    for (size_t i = 0; i < g.fold.list.len; i++)
        large += g.fold.list.at[i].len > PIECE;
    assert_int_equal(large, PIECES);
    read_result_done(&g);
}

static void reading_begins_at_a_checkpoint(void **state)
{
    struct room *r = *state;
    struct segment s;
    write_records(r->store, 200);
    while (seal(r, 2000, &s) == 1)
        continue;
    struct read_result g = {0};
    struct journal_sources data = {.data = r->data};
    assert_int_equal(read_all(&data, &(struct journal_range){.from_seq = 150, .to_seq = 180}, &g, NULL), 0);
    assert_true(g.first > 100 && g.first <= 150 && g.last == 180);
    CLEANUP(mem) char *at = docset_text(&g.fold), *want = state_after(180);
    assert_string_equal(at, want);
    read_result_done(&g);
    assert_int_equal(read_all(&data, &(struct journal_range){.from_ns = 150000, .to_ns = 160000}, &g, NULL), 0);
    assert_true(g.first > 100 && g.first <= 150 && g.last == 160);
    read_result_done(&g);
    assert_int_equal(read_all(&data, &(struct journal_range){.from_seq = 150, .to_seq = 151, .bare = true}, &g, NULL),
                     0);
    assert_true(g.first == 150 && g.n == 2);
    read_result_done(&g);

    /* A single segment. */
    CLEANUP(mem) char *path = shelf_path(r->dir, 3);
    const char *files[] = {path};
    assert_int_equal(
        read_all(&(struct journal_sources){.files = files, .files_len = 1}, &(struct journal_range){0}, &g, NULL), 0);
    CLEANUP(mem) char *alone = docset_text(&g.fold), *after = state_after(g.last);
    assert_string_equal(alone, after);
    assert_true(g.first > 1 && g.last < 200);
    read_result_done(&g);
}

static void kill_self(void *ctx, enum seal_step step)
{
    if (step == *(enum seal_step *)ctx)
        _exit(7);
}

/* The process ends between any two steps; the next process continues. */
static void crash_loses_and_duplicates_nothing(void **state)
{
    struct room *r = *state;
    for (unsigned at = 0; at <= SEAL_STEPS; at++) {
        write_records(r->store, 40);
        store_close(r->store);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            enum seal_step step = (enum seal_step)at;
            struct store *s = sqlite_open_ok(r->data);
            struct segment made;
            struct seal_options o = {.store = s,
                                     .dir = r->dir,
                                     .trimmed = store_log_trimmed(s),
                                     .upto = store_log_last(s),
                                     .bytes_max = 1500,
                                     .step = kill_self,
                                     .ctx = &step};
            while (seal_next(&o, &made, NULL) == 1 && store_log_trim(s, made.last, NULL) == 0) {
                struct store_txn txn = {OPS(PUT("k", "v"))};
                (void)store_submit(s, &txn, NULL, NULL, NULL);
            }
            (void)kill(getpid(), SIGKILL); /* the log is trimmed as far as the segments go */
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(at < SEAL_STEPS ? WIFEXITED(status) && WEXITSTATUS(status) == 7 : WIFSIGNALED(status));
        r->store = sqlite_open_ok(r->data);
        struct read_result g = {0};
        READ(r, &g);
        assert_string_equal(str_text(&g.text), "[0 0..1]");
        assert_true(g.n == 40 * (at + 1) && g.last == g.n);
        read_result_done(&g);
        struct segment s;
        while (seal(r, 1500, &s) == 1)
            continue;
        READ(r, &g);
        assert_string_equal(str_text(&g.text), "[0 0..1]");
        assert_true(g.n == 40 * (at + 1));
        read_result_done(&g);
    }
}

static void old_segments_are_exported_and_readable(void **state)
{
    struct room *r = *state;
    struct segment s;
    size_t moved = 0;
    write_records(r->store, 300);
    while (seal(r, 2000, &s) == 1)
        continue;
    struct shelf_retention keep = {.dir = r->dir, .exported = r->exported, .before_ns = 0, .bytes_max = UINT64_MAX};
    assert_int_equal(shelf_retain(&keep, &moved, NULL), 0);
    assert_int_equal(moved, 0);
    keep.before_ns = 100000;
    assert_int_equal(shelf_retain(&keep, &moved, NULL), 0);
    assert_true(moved > 0 && moved < s.number - 1);
    struct read_result g = {0};
    READ(r, &g);
    assert_true(g.n == 300);
    read_result_done(&g);
    keep.bytes_max = 1;
    assert_int_equal(shelf_retain(&keep, &moved, NULL), 0);
    assert_true(moved > 0);
    READ(r, &g);
    assert_true(g.n == 300);
    read_result_done(&g);
    write_records(r->store, 10); /* the base of the next checkpoint was kept */
    assert_int_equal(seal(r, 2000, &s), 1);
    assert_int_not_equal(s.base, SEGMENT_LOOSE);

    /* Segments that cannot be moved stay. */
    write_records(r->store, 100);
    while (seal(r, 2000, &s) == 1)
        continue;
    struct berth_err err = {0};
    keep.exported = "/dev/null/nowhere";
    assert_true(shelf_retain(&keep, &moved, &err) < 0);
    assert_non_null(strstr(err.text, "nowhere"));
    READ(r, &g);
    assert_true(g.n == 410);
    read_result_done(&g);
}

/* A directory entry without a file belongs to a segment that was moved meanwhile; of two copies the exported one is
 * used. */
static void moved_segments_are_read(void **state)
{
    struct room *r = *state;
    struct segment s;
    write_records(r->store, 100);
    while (seal(r, 2000, &s) == 1)
        continue;
    CLEANUP(mem) char *first = shelf_path(r->dir, 1), *copy = shelf_path(r->exported, 1);
    CLEANUP(mem) char *gone = shelf_path(r->dir, 999);
    assert_int_equal(mkdir(r->exported, 0700), 0);
    assert_int_equal(link(first, copy), 0);
    assert_int_equal(symlink("nowhere", gone), 0);
    struct journal *j = NULL;
    assert_int_equal(journal_open(&(struct journal_sources){.data = r->data}, &j, NULL), 0);
    assert_string_equal(journal_shelf(j)->items.at[0].path, copy);
    journal_close(j);
    struct read_result g = {0};
    READ(r, &g);
    assert_true(g.n == 100);
    read_result_done(&g);
}

/* A store that was restored from a backup has lost its segments. */
static void journal_restarts_without_its_segments(void **state)
{
    struct room *r = *state;
    struct segment s;
    write_records(r->store, 60);
    while (seal(r, 2000, &s) == 1)
        continue;
    assert_int_equal(store_log_trim(r->store, 40, NULL), 0);
    write_records(r->store, 1);
    folder_remove(r->dir);
    CLEANUP(docset) struct docset now = {0};
    docset_put(&now, "k/1", 61, (struct bytes){"{}", 2});
    docset_sort(&now);
    struct seal_options o = {.store = r->store,
                             .dir = r->dir,
                             .trimmed = 40,
                             .upto = 61,
                             .bytes_max = 2000,
                             .anchor = &now,
                             .anchor_revision = 61};
    assert_int_equal(seal_next(&o, &s, NULL), 1);
    assert_true(s.base == SEGMENT_LOOSE && s.first == 41);
    while (s.last < 61)
        assert_int_equal(seal_next(&o, &s, NULL), 1);
    assert_int_equal(seal_next(&o, &s, NULL), 1);
    assert_true(s.base == SEGMENT_CHECKPOINT && s.first == 62 && s.last == 61 && s.documents == 1);
    assert_int_equal(seal_next(&o, &s, NULL), 0);
    write_records(r->store, 9);
    assert_int_equal(seal(r, 2000, &s), 1);
    struct read_result g = {0};
    READ(r, &g);
    assert_string_equal(str_text(&g.text), "[2 0..41][1 61..62]");
    assert_true(g.n == 30 && g.last == 70);
    read_result_done(&g);
    o.upto = 50; /* the log is older than the segments */
    assert_code(seal_next(&o, &s, NULL), ENOTUNIQ);
}

static void damage_is_found(void **state)
{
    struct room *r = *state;
    struct segment s;
    write_records(r->store, 80);
    while (seal(r, 4000, &s) == 1)
        continue;
    CLEANUP(mem) char *path = shelf_path(r->dir, 2);
    const char *files[] = {path};
    struct journal_sources one = {.files = files, .files_len = 1};
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    int fd = open(path, O_RDWR);
    for (off_t at = 0; at < st.st_size; at += 1 + st.st_size / 400) {
        unsigned char byte = 0;
        struct read_result g = {0};
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        struct berth_err err = {0};
        if (read_all(&one, &(struct journal_range){0}, &g, &err) == 0)
            fail_msg("byte %ld of %ld", (long)at, (long)st.st_size);
        read_result_done(&g);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    struct read_result g = {0};
    assert_int_equal(read_all(&one, &(struct journal_range){0}, &g, NULL), 0);
    read_result_done(&g);
    assert_int_equal(ftruncate(fd, st.st_size - 1), 0);
    struct berth_err err = {0};
    assert_code(read_all(&one, &(struct journal_range){0}, &g, &err), EBADMSG);
    (void)close(fd);
    read_result_done(&g);
}

/* A segment in the middle is missing: reading continues at the next known state. */
static void gap_is_reported(void **state)
{
    struct room *r = *state;
    struct segment s, third;
    write_records(r->store, 200);
    while (seal(r, 2000, &s) == 1)
        continue;
    CLEANUP(mem) char *second = shelf_path(r->dir, 2), *path = shelf_path(r->dir, 3);
    assert_int_equal(segment_read_info(path, &third, NULL), 0);
    assert_int_equal(unlink(second), 0);
    struct read_result g = {0};
    READ(r, &g);
    CLEANUP(str) struct str want = {0};
    str_addf(&want, "[0 0..1][1 %" PRIu64 "..%" PRIu64 "]!%" PRIu64, g.first - 1 + (third.first - 1 - (200 - g.n)),
             third.first, third.first);
    assert_string_equal(str_text(&g.text), want.at);
    CLEANUP(mem) char *at = docset_text(&g.fold), *all = state_after(200);
    assert_string_equal(at, all);
    read_result_done(&g);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_setup, room_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(segments_are_contiguous),
        TEST(a_large_record_is_sealed_and_read),
        TEST(reading_begins_at_a_checkpoint),
        TEST(crash_loses_and_duplicates_nothing),
        TEST(old_segments_are_exported_and_readable),
        TEST(moved_segments_are_read),
        TEST(journal_restarts_without_its_segments),
        TEST(damage_is_found),
        TEST(gap_is_reported),
    };
    return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
