/* sealer_test.c - rotation of the journal in a daemon: timing, content of segments, trimming of the log. */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/api/kit_test.h"
#include "control/journal/replay.h"
#include "control/journal/sealer.h"

#define CANARY "hunter2-of-the-journal"

struct room {
    struct kit k;
    char dir[256], journal[300];
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int room_setup(void **state)
{
    struct room *r = mem_zalloc(sizeof *r);
    const char *under = getenv("TMPDIR");
    (void)snprintf(r->dir, sizeof r->dir, "%s/berth-sealer-XXXXXX", under ? under : "/tmp");
    assert_non_null(mkdtemp(r->dir));
    (void)snprintf(r->journal, sizeof r->journal, "%s/journal", r->dir);
    kit_open(&r->k);
    r->k.journal_dir = r->journal;
    kit_restart(&r->k);
    kit_add_users(&r->k);
    CALL(&r->k, 200, ADMIN, "PATCH", "/v1/system/settings",
         "{journal_segment_s: 100, lease_s: 86400, reservations_alike: 0}"); /* each job makes a decision */
    CALL(&r->k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 8Gi}}");
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

/* Content of all segments and of the log after them. */
struct found {
    uint64_t records, segments;
    struct str text; /* all records and documents */
};

static int found_record(void *ctx, const struct store_record *record)
{
    struct found *f = ctx;
    f->records++;
    str_add_bytes(&f->text, record->record.at, record->record.len);
    str_add_char(&f->text, '\n');
    return 0;
}

static int found_document(void *ctx, const char *key, uint64_t revision, struct bytes doc)
{
    struct found *f = ctx;
    (void)revision;
    str_addf(&f->text, "%s ", key);
    str_add_bytes(&f->text, doc.at, doc.len);
    return 0;
}

static void find(const struct room *r, struct found *f)
{
    CLEANUP(shelf) struct shelf shelf = {0};
    *f = (struct found){0};
    assert_int_equal(shelf_add_folder(&shelf, r->journal, NULL), 0);
    f->segments = shelf.items.len;
    struct segment_visitor visitor = {.document = found_document, .record = found_record, .ctx = f};
    for (size_t i = 0; i < shelf.items.len; i++)
        assert_int_equal(segment_walk(shelf.items.at[i].path, 0, &visitor, NULL), 0);
}

/* Makes some history, and advances time until it is sealed. */
static void live(struct room *r, int jobs)
{
    for (int i = 0; i < jobs; i++) {
        CALL(&r->k, 201, "user:alice", "POST", "/v1/jobs", "{name: a, command: [x], requests: {cpu: 1}}");
        kit_plan(&r->k);
    }
    kit_sleep(&r->k, 101);
    kit_sleep(&r->k, 1);
}

static void old_records_are_sealed(void **state)
{
    struct room *r = *state;
    struct found f;
    live(r, 5);
    find(r, &f);
    assert_int_equal(f.segments, 1);
    assert_true(f.records > 10);
    str_done(&f.text);
    kit_sleep(&r->k, 300); /* no new records: no new segment */
    find(r, &f);
    assert_true(f.segments <= 2);
    uint64_t before = f.segments;
    str_done(&f.text);
    kit_restart(&r->k);
    live(r, 3);
    find(r, &f);
    assert_true(f.segments > before);
    assert_true(f.records <= store_log_last(r->k.store));
    str_done(&f.text);
    const char *files[] = {r->journal};
    struct journal *j = NULL;
    struct replay_result result;
    assert_int_equal(journal_open(&(struct journal_sources){.files = files, .files_len = 1}, &j, NULL), 0);
    assert_int_equal(replay_journal(j, &(struct replay_options){0}, &result, NULL), 0);
    assert_true(result.different == 0 && result.cycles >= 6 && result.gaps == 0);
    journal_close(j);
}

static void segments_contain_no_secrets(void **state)
{
    struct room *r = *state;
    struct kit *k = &r->k;
    struct found f;
    CALL(k, 201, "user:alice", "POST", "/v1/secrets", "{name: db, data: {password: " CANARY "}}");
    CALL(k, 201, ADMIN, "POST", "/v1/tokens", "{user: alice}");
    CLEANUP(mem) char *token = mem_strdup(kit_text(k, "token"));
    CALL(k, 200, "user:alice", "GET", "/v1/secrets/db", NULL);
    live(r, 3);
    live(r, 3);
    find(r, &f);
    assert_true(f.segments >= 2 && f.records > 10);
    assert_non_null(strstr(str_text(&f.text), "secrets/db.alice"));
    assert_null(strstr(str_text(&f.text), CANARY));
    assert_null(strstr(str_text(&f.text), "sealed"));
    assert_null(strstr(str_text(&f.text), token));
    assert_null(strstr(str_text(&f.text), "\"hash\""));
    str_done(&f.text);
}

static void reads_are_recorded_in_batches(void **state)
{
    struct room *r = *state;
    struct kit *k = &r->k;
    struct found f;
    CALL(k, 201, "user:alice", "POST", "/v1/jobs", "{name: a, command: [x], requests: {cpu: 100}}");
    kit_plan(k);
    for (int i = 0; i < 3; i++)
        CALL(k, 200, "user:alice", "GET", "/v1/why/jobs/1", NULL);
    CALL(k, 200, ADMIN, "GET", "/v1/jobs", NULL);
    CALL(k, 404, "user:bob", "GET", "/v1/jobs/99", NULL);
    live(r, 1);
    live(r, 1);
    find(r, &f);
    assert_non_null(strstr(str_text(&f.text), "\"kind\":\"views\""));
    assert_non_null(strstr(str_text(&f.text), "[\"alice\",\"/v1/why/jobs/1\",3,"));
    assert_non_null(strstr(str_text(&f.text), "[\"admin\",\"/v1/jobs\",1,"));
    assert_null(strstr(str_text(&f.text), "[\"bob\",\"/v1/jobs/99\""));
    str_done(&f.text);

    /* An idle daemon writes nothing, even if users read. */
    uint64_t last = 0;
    for (int i = 0; i < 8; i++) {
        last = i == 3 ? store_log_last(k->store) : last;
        CALL(k, 200, ADMIN, "GET", "/v1/jobs", NULL);
        kit_sleep(k, 61);
    }
    assert_int_equal(store_log_last(k->store), last);
}

static void refused_submissions_are_recorded(void **state)
{
    struct room *r = *state;
    struct kit *k = &r->k;
    struct found f;
    CALL(k, 201, "user:alice", "POST", "/v1/jobs", "{name: a, command: [x], requests: {cpu: 1}}");
    for (int i = 0; i < 3; i++)
        CALL(k, 400, "user:alice", "POST", "/v1/jobs", "{name: b, command: [x], queue: nowhere}");
    CALL(k, 400, "user:alice", "POST", "/v1/apps", "{name: c, replicas: x}");
    CALL(k, 400, "user:alice", "POST", "/v1/jobs?dry_run=true", "{name: draft, queue: nothere}");
    CALL(k, 404, "user:alice", "GET", "/v1/jobs/99", NULL);
    live(r, 1);
    live(r, 1);
    find(r, &f);
    assert_non_null(strstr(str_text(&f.text), "\"kind\":\"refusals\""));
    assert_non_null(strstr(str_text(&f.text), "[\"alice\",\"POST /v1/jobs\",400,\"queue: there is no queue"));
    assert_non_null(strstr(str_text(&f.text), "[\"alice\",\"POST /v1/apps\",400,\"replicas: expected"));
    const char *row = strstr(str_text(&f.text), "[\"alice\",\"POST /v1/jobs\",400,");
    const char *times = row ? strstr(row, "\",3,") : NULL;
    assert_true(times && times < strchr(row, ']')); /* one entry for all three requests */
    assert_null(strstr(str_text(&f.text), "nothere"));
    assert_null(strstr(str_text(&f.text), "[\"alice\",\"GET"));
    str_done(&f.text);
}

static void node_use_is_recorded_in_steps(void **state)
{
    struct room *r = *state;
    struct kit *k = &r->k;
    struct found f;
    static const char *const cpu[] = {"900m", "1100m", "1400m", "2100m", "1900m"};
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: busy, allocatable: {cpu: 10, memory: 10Gi}}");
    for (size_t i = 0; i < sizeof cpu / sizeof *cpu; i++) {
        char body[128];
        (void)snprintf(body, sizeof body, "{epoch: 1, seq: %zu, node: {usage: {cpu: %s, memory: 5Gi, other: 7}}}",
                       i + 1, cpu[i]);
        CALL(k, 200, "node:busy", "POST", "/v1/nodes/busy/report", body);
        live(r, 1);
    }
    find(r, &f);
    const char *first = strstr(str_text(&f.text), "[\"busy\",{\"cpu\":10,\"memory\":50}]");
    assert_non_null(first); /* 9 % is recorded as 10 %; 11 % and 14 % are equal to it */
    const char *second = strstr(first + 1, "[\"busy\",{");
    assert_non_null(second);
    assert_ptr_equal(strstr(second, "[\"busy\",{\"cpu\":20,\"memory\":50}]"), second);
    assert_null(strstr(second + 1, "[\"busy\",{"));
    str_done(&f.text);
}

static void ignore_result(void *ctx, const struct store_result *result)
{
    (void)ctx;
    assert_int_equal(result->rc, 0);
}

static void sealed_records_are_trimmed_from_log(void **state)
{
    struct room *r = *state;
    struct kit *k = &r->k;
    static const char note[] = "{\"j\":2,\"kind\":\"t\",\"at\":1,\"changes\":[]}";
    struct store_txn txn = {
        .record = {note, sizeof note - 1}
    };
    for (int i = 0; i < SEALER_KEEP + 500; i++) {
        assert_int_equal(store_submit(k->store, &txn, ignore_result, NULL, NULL), 0);
        if (i % 1000 == 0)
            store_drain(k->store);
    }
    store_drain(k->store);
    live(r, 1);
    uint64_t last = store_log_last(k->store), trimmed = store_log_trimmed(k->store);
    assert_true(trimmed >= 400 && trimmed <= last - SEALER_KEEP);
    CALL(k, 200, ADMIN, "GET", "/v1/audit", NULL);
    CALL(k, 410, ADMIN, "GET", "/v1/audit?from=1", NULL);
    assert_non_null(strstr(k->text, "berth journal show"));

    /* The segments are lost: new segments start from the present documents. */
    kit_restart(k);
    (void)nftw(r->journal, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    kit_restart(k);
    live(r, 4);
    live(r, 4);
    const char *files[] = {r->journal};
    struct journal *j = NULL;
    struct replay_result result;
    assert_int_equal(journal_open(&(struct journal_sources){.files = files, .files_len = 1}, &j, NULL), 0);
    assert_int_equal(replay_journal(j, &(struct replay_options){0}, &result, NULL), 0);
    assert_true(result.different == 0 && result.cycles >= 4);
    journal_close(j);
}

/* Requests that are counted but never logged. */
static void much_fails(struct room *r)
{
    enum { TRIES = 30, BYTES = 100000 };
    CLEANUP(str) struct str body = {0};
    str_add(&body, "{command: [");
    for (int i = 0; i < BYTES / 100; i++)
        str_addf(&body, "%s%0100d", i ? ", a" : "a", i);
    str_add(&body, "]}");
    for (int i = 0; i < TRIES; i++) {
        store_memory_fail(r->k.store, ENOSPC, 1);
        CALL(&r->k, 503, "user:alice", "POST", "/v1/jobs", str_text(&body));
    }
}

/* Records that are smaller than the estimate at start. */
static void many_are_small(struct room *r)
{
    static const char note[] = "{\"j\":2,\"kind\":\"t\",\"at\":1,\"changes\":[]}";
    struct store_txn txn = {
        .record = {note, sizeof note - 1}
    };
    for (int i = 0; i < 3000; i++)
        assert_int_equal(store_submit(r->k.store, &txn, ignore_result, NULL, NULL), 0);
    store_drain(r->k.store);
    kit_restart(&r->k);
}

static void wrong_byte_estimate_makes_no_small_segments(void **state)
{
    static void (*const miscounts[])(struct room * r) = {much_fails, many_are_small};
    struct room *r = *state;
    struct found f;
    CALL(&r->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{journal_segment_s: 86400, journal_segment_mb: 1}");
    for (size_t i = 0; i < COUNT(miscounts); i++) {
        miscounts[i](r);
        for (int second = 0; second < 10; second++) {
            CALL(&r->k, 201, "user:alice", "POST", "/v1/jobs", "{name: a, command: [x], requests: {cpu: 1}}");
            kit_sleep(&r->k, 1);
        }
        find(r, &f);
        str_done(&f.text);
        if (f.segments > i + 1)
            fail_msg("case %zu: %" PRIu64 " segments", i, f.segments);
    }
}

static void failed_export_keeps_segments(void **state)
{
    struct room *r = *state;
    struct found f;
    CALL(&r->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{journal_keep_s: 1, journal_export: /dev/null/nowhere}");
    for (int i = 0; i < 4; i++)
        live(r, 3);
    find(r, &f);
    uint64_t segments = f.segments, records = f.records;
    str_done(&f.text);
    assert_true(segments >= 4);
    CALL(&r->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{journal_export: ''}");
    uint64_t left = segments;
    for (int i = 0; i < 8 && left >= segments; i++) {
        /* until there is a checkpoint; then earlier segments may be removed */
        live(r, 3);
        find(r, &f);
        left = f.segments;
        str_done(&f.text);
    }
    assert_true(left < segments);
    CLEANUP(shelf) struct shelf moved = {0};
    char exported[320];
    (void)snprintf(exported, sizeof exported, "%s/exported", r->journal);
    assert_int_equal(shelf_add_folder(&moved, exported, NULL), 0);
    assert_true(moved.items.len > 0);
    assert_true(records > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_setup, room_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(old_records_are_sealed),        TEST(segments_contain_no_secrets),
        TEST(reads_are_recorded_in_batches), TEST(refused_submissions_are_recorded),
        TEST(node_use_is_recorded_in_steps), TEST(sealed_records_are_trimmed_from_log),
        TEST(failed_export_keeps_segments),  TEST(wrong_byte_estimate_makes_no_small_segments),
    };
    return cmocka_run_group_tests_name("sealer", tests, NULL, NULL);
}
