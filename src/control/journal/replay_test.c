/* replay_test.c - replays of journals from the log, segments, a single segment, an export, and an older version. */
#include <ftw.h>
#include <inttypes.h>
#include <unistd.h>

#include "control/api/kit_test.h"
#include "control/journal/replay.h"
#include "control/sched/scheduler.h"
#include "journal/seal.h"

struct room {
    struct kit k;
    char dir[256];
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* A cluster with some history: jobs that fit and that do not, a changed setting, and a crash. */
static int room_setup(void **state)
{
    struct room *r = mem_zalloc(sizeof *r);
    struct kit *k = &r->k;
    const char *under = getenv("TMPDIR");
    (void)snprintf(r->dir, sizeof r->dir, "%s/berth-replay-XXXXXX", under ? under : "/tmp");
    assert_non_null(mkdtemp(r->dir));
    kit_open(k);
    kit_add_users(k);
    /* Every waiting job gets a reservation, and so is part of a decision. */
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{reservations_alike: 0}");
    for (int i = 0; i < 4; i++) {
        char yaml[96];
        (void)snprintf(yaml, sizeof yaml, "{id: n%d, allocatable: {cpu: 8, memory: 8Gi}}", i);
        CALL(k, 201, ADMIN, "POST", "/v1/nodes", yaml);
    }
    for (int i = 0; i < 40; i++) {
        char yaml[160];
        (void)snprintf(yaml, sizeof yaml, "{name: j%d, command: [x], requests: {cpu: %d, memory: 100Mi}}", i,
                       1 + i % 3);
        CALL(k, 201, "user:alice", "POST", "/v1/jobs", yaml);
        kit_sleep(k, 1);
        kit_plan(k);
        if (i == 20)
            kit_restart(k);
        if (i == 30)
            CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{reservations: 200}");
    }
    *state = r;
    return 0;
}

static int room_teardown(void **state)
{
    struct room *r = *state;
    kit_done(&r->k);
    (void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(r);
    return 0;
}

static bool kept(const char *key)
{
    const char *id;
    return kind_journalled(object_key_split(key, &id));
}

static void seal_all(struct room *r, uint64_t bytes_max)
{
    struct seal_options o = {
        .store = r->k.store, .dir = r->dir, .upto = store_log_last(r->k.store), .bytes_max = bytes_max, .keeps = kept};
    struct segment made;
    int rc;
    while ((rc = seal_next(&o, &made, NULL)) == 1)
        continue;
    assert_int_equal(rc, 0);
}

/* The first difference, as text. */
struct told {
    struct str text;
};

static void tell(void *ctx, const struct replay_difference *d)
{
    struct told *t = ctx;
    if (t->text.len)
        return;
    str_addf(&t->text, "%s: %s", d->what, d->input);
}

static int replay_files(const char *const *files, size_t len, struct replay_result *ret, struct told *told,
                        struct berth_err *err)
{
    struct journal_sources sources = {.files = files, .files_len = len};
    struct replay_options options = {.differs = told ? tell : NULL, .ctx = told};
    struct journal *j = NULL;
    int rc = journal_open(&sources, &j, err);
    if (rc == 0)
        rc = replay_journal(j, &options, ret, err);
    journal_close(j);
    return rc;
}

static void segments_replay_equal_to_log(void **state)
{
    struct room *r = *state;
    struct replay_result log = {0}, all = {0}, one = {0};
    struct replay_options options = {0};
    assert_int_equal(replay_run(r->k.store, &options, &log, NULL), 0);
    assert_true(log.different == 0 && log.cycles >= 40);
    seal_all(r, 8000);
    const char *files[] = {r->dir};
    assert_int_equal(replay_files(files, 1, &all, NULL, NULL), 0);
    assert_true(all.cycles == log.cycles && all.different == 0 && all.changes == log.changes && all.skipped == 0);

    /* Each segment alone: a decision that began before the segment cannot be repeated. */
    uint64_t cycles = 0, skipped = 0, n = 1;
    for (;; n++) {
        CLEANUP(mem) char *path = shelf_path(r->dir, n);
        const char *alone[] = {path};
        if (access(path, F_OK) != 0)
            break;
        assert_int_equal(replay_files(alone, 1, &one, NULL, NULL), 0);
        assert_int_equal(one.different, 0);
        cycles += one.cycles;
        skipped += one.skipped;
    }
    assert_true(n > 3);
    assert_int_equal(cycles + skipped, log.cycles);
    assert_true(cycles > log.cycles / 8);
}

static void missing_segment_skips_only_its_decisions(void **state)
{
    struct room *r = *state;
    struct replay_result all = {0}, rest = {0};
    const char *files[] = {r->dir};
    seal_all(r, 8000);
    assert_int_equal(replay_files(files, 1, &all, NULL, NULL), 0);
    CLEANUP(mem) char *second = shelf_path(r->dir, 2);
    assert_int_equal(unlink(second), 0);
    assert_int_equal(replay_files(files, 1, &rest, NULL, NULL), 0);
    assert_true(rest.different == 0 && rest.gaps == 1 && rest.cycles < all.cycles && rest.cycles > all.cycles / 2);
}

static void time_range_starts_at_near_checkpoint(void **state)
{
    struct room *r = *state;
    struct journal_sources sources = {.files = (const char *const[]){r->dir}, .files_len = 1};
    struct replay_result all = {0}, some = {0};
    struct journal *j = NULL;
    seal_all(r, 8000);
    assert_int_equal(journal_open(&sources, &j, NULL), 0);
    assert_int_equal(replay_journal(j, &(struct replay_options){0}, &all, NULL), 0);
    int64_t now = r->k.now_ns;
    struct replay_options options = {.from_ns = now - INT64_C(10500000000), .to_ns = now - INT64_C(4500000000)};
    assert_int_equal(replay_journal(j, &options, &some, NULL), 0);
    assert_int_equal(some.cycles, 6);
    assert_true(some.different == 0 && some.skipped == 0 && some.records < all.records);
    options = (struct replay_options){.from_cycle = 3, .to_cycle = 4};
    assert_int_equal(replay_journal(j, &options, &some, NULL), 0);
    /* two daemons have cycles with these numbers */
    assert_true(some.cycles >= 2 && some.cycles <= 4 && some.different == 0);
    journal_close(j);
}

struct writing {
    FILE *out;
    uint64_t chain;
    const char *from, *to; /* `to` replaces `from`, with the same length, in record `at` */
    uint64_t at;
};

static int write_line(void *ctx, const struct store_record *record)
{
    struct writing *w = ctx;
    CLEANUP(str) struct str text = {0}, line = {0};
    struct store_record now = *record;
    str_add_bytes(&text, record->record.at, record->record.len);
    char *found = record->seq == w->at ? strstr(text.at, w->from) : NULL;
    if (found)
        memcpy(found, w->to, strlen(w->to));
    now.record = (struct bytes){text.at, text.len};
    now.chain = w->chain = store_chain(w->chain, now.seq, now.revision, now.record);
    segment_line_write(&line, &now);
    assert_int_equal(fwrite(line.at, 1, line.len, w->out), line.len);
    return 0;
}

/* A manipulated document with a correct hash chain: the next decision differs, and the document is named. */
static void first_differing_input_is_named(void **state)
{
    struct room *r = *state;
    char path[300];
    struct replay_result result = {0};
    struct told told = {0};
    (void)snprintf(path, sizeof path, "%s/out.jsonl", r->dir);
    struct writing w = {.out = fopen(path, "w"), .from = "\"cpu\":1", .to = "\"cpu\":7"};
    const char *files[] = {path};
    assert_non_null(w.out);
    assert_int_equal(store_log(r->k.store, 1, write_line, &w, NULL), 0);
    assert_int_equal(fclose(w.out), 0);
    assert_int_equal(replay_files(files, 1, &result, &told, NULL), 0);
    assert_true(result.different == 0 && result.cycles >= 40); /* an unmodified export */

    for (w.at = 1; w.at < 40 && told.text.len == 0; w.at++) {
        w.out = fopen(path, "w");
        w.chain = 0;
        assert_int_equal(store_log(r->k.store, 1, write_line, &w, NULL), 0);
        assert_int_equal(fclose(w.out), 0);
        assert_int_equal(replay_files(files, 1, &result, &told, NULL), 0);
    }
    char want[80];
    (void)snprintf(want, sizeof want, "by record %" PRIu64, w.at - 1);
    assert_true(result.different > 0);
    assert_non_null(strstr(str_text(&told.text), "state: the first input that differs is among the jobs"));
    assert_non_null(strstr(str_text(&told.text), want));
    str_done(&told.text);
}

/* Written by a version without segments. */
static void version_1_journal_is_replayed(void **state)
{
    (void)state;
    const char *source = getenv("BERTH_SOURCE");
    char path[4096];
    if (!source) {
        print_message("skip: BERTH_SOURCE is not set\n");
        skip();
    }
    (void)snprintf(path, sizeof path, "%s/tests/journal-v1.jsonl", source);
    const char *files[] = {path};
    struct replay_result result = {0};
    struct berth_err err = {0};
    if (replay_files(files, 1, &result, NULL, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(result.records, 50);
    assert_int_equal(result.cycles, 22);
    assert_int_equal(result.different, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_setup, room_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(segments_replay_equal_to_log),
        TEST(missing_segment_skips_only_its_decisions),
        TEST(time_range_starts_at_near_checkpoint),
        TEST(first_differing_input_is_named),
        cmocka_unit_test(version_1_journal_is_replayed),
    };
    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
