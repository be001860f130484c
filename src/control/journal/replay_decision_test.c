/* replay_decision_test.c - replays of one decision over the API: same, different and unavailable results; one at a
 * time.
 */
#include "control/api/kit_test.h"

#include "control/control_parts.h"
#include "control/state/state.h"

#include <ftw.h>
#include <inttypes.h>

/* Makes three nodes, and jobs that are placed or wait. */
static void history(struct kit *k)
{
    kit_add_users(k);
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{reservations_alike: 0}");
    for (int i = 0; i < 3; i++) {
        char yaml[96];
        (void)snprintf(yaml, sizeof yaml, "{id: n%d, allocatable: {cpu: 8, memory: 8Gi}}", i);
        CALL(k, 201, ADMIN, "POST", "/v1/nodes", yaml);
    }
    for (int i = 0; i < 12; i++) {
        char yaml[160];
        (void)snprintf(yaml, sizeof yaml, "{name: j%d, command: [x], requests: {cpu: %d}, time_limit: 1h}", i,
                       1 + i % 5);
        CALL(k, 201, "user:alice", "POST", "/v1/jobs", yaml);
        kit_sleep(k, 1);
    }
}

/* Lists the records of decisions in the audit; returns their number. */
static size_t decisions(struct kit *k, json_int_t *ret, size_t cap)
{
    size_t i, len = 0;
    const json_t *row;
    CALL(k, 200, ADMIN, "GET", "/v1/audit?all=true&limit=1000", NULL);
    json_array_foreach(kit_at(k, "items"), i, row) if (json_is_true(json_object_get(row, "decision")) && len < cap)
        ret[len++] = json_integer_value(json_object_get(row, "seq"));
    assert_null(kit_at(k, "items/0/cycle"));
    return len;
}

static int replayed(struct kit *k, json_int_t record)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/audit/%" JSON_INTEGER_FORMAT "/replay", record);
    return kit_call(k, ADMIN, "POST", path, record % 2 ? "{}" : NULL); /* with and without a body, as clients do */
}

static void expect_equal_replays(struct kit *k, const json_int_t *records, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(replayed(k, records[i]), 200);
        if (!json_is_true(kit_at(k, "same")))
            fail_msg("record %" JSON_INTEGER_FORMAT ": %s", records[i], k->text);
        assert_int_equal(kit_number(k, "record"), records[i]);
    }
}

static void decisions_are_replayed(void **state)
{
    struct kit k;
    json_int_t records[64] = {0};
    (void)state;
    kit_open(&k);
    history(&k);
    size_t len = decisions(&k, records, COUNT(records));
    uint64_t revision = store_revision(k.store), last = store_log_last(k.store);
    assert_true(len >= 8);
    expect_equal_replays(&k, records, len);
    /* The first decision needs less history than the last, and nothing is written. */
    int64_t changes = kit_number(&k, "changes");
    assert_int_equal(replayed(&k, records[0]), 200);
    assert_true(kit_number(&k, "changes") < changes);
    assert_true(store_revision(k.store) == revision && store_log_last(k.store) == last);

    char path[64];
    (void)snprintf(path, sizeof path, "/v1/audit/%" JSON_INTEGER_FORMAT, records[0]);
    CALL(&k, 200, ADMIN, "GET", path, NULL);
    assert_int_equal(kit_number(&k, "seq"), records[0]);
    assert_string_equal(kit_text(&k, "cycle/actions/0/0"), "place");
    assert_true(json_is_string(kit_at(&k, "changes/0"))); /* only the key */
    kit_done(&k);
}

/* A record contains a plan that this build does not make, as if another build had decided. */
static void difference_is_reported(void **state)
{
    struct kit k;
    json_int_t records[64] = {0};
    char path[64];
    int done = 1;
    (void)state;
    kit_open(&k);
    history(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n9, allocatable: {cpu: 8, memory: 8Gi}}");
    kit_sleep(&k, 1);
    size_t len = decisions(&k, records, COUNT(records));
    (void)snprintf(path, sizeof path, "/v1/audit/%" JSON_INTEGER_FORMAT, records[len - 1]);
    CALL(&k, 200, ADMIN, "GET", path, NULL);
    CLEANUP(json) json_t *record = json_deep_copy(k.body);
    json_t *cycle = json_object_get(record, "cycle");
    (void)json_object_set_new(record, "at", json_integer(json_integer_value(json_object_get(cycle, "now"))));
    (void)json_object_set_new(record, "changes", json_array());
    (void)json_object_set_new(cycle, "n", json_integer(4711));
    (void)json_object_set_new(cycle, "plan", json_string("00000000deadbeef"));
    (void)json_object_set_new(cycle, "actions", json_pack("[[s, s, i, s, i, s]]", "place", "99", 0, "n0", 7, "wanted"));
    char *text = json_dumps(record, JSON_COMPACT);
    struct store_op op = {
        .key = "test/1", .value = {"{}", 2}
    };
    struct store_txn txn = {
        .ops = &op, .ops_len = 1, .record = {text, strlen(text)}
    };
    assert_int_equal(store_submit(k.store, &txn, kit_written, &done, NULL), 0);
    (void)store_pump(k.store);
    free(text);
    assert_int_equal(done, 0);

    assert_int_equal(replayed(&k, (json_int_t)store_log_last(k.store)), 200);
    assert_true(json_is_false(kit_at(&k, "same")));
    assert_string_equal(kit_text(&k, "differences/0/what"), "plan");
    assert_string_equal(kit_text(&k, "differences/0/recorded"), "00000000deadbeef");
    assert_string_equal(kit_text(&k, "differences/0/only_recorded/0/1"), "99");
    assert_true(json_array_size(kit_at(&k, "differences/0/only_replayed")) > 0);
    expect_equal_replays(&k, records, len); /* earlier decisions are not affected */
    kit_done(&k);
}

static void unavailable_replays_are_explained(void **state)
{
    static const struct {
        int status;
        const char *who, *method, *path, *says;
    } rows[] = {
        {400, ADMIN,        "POST", "/v1/audit/1/replay",    "not a decision"          },
        {400, ADMIN,        "POST", "/v1/audit/some/replay", "number of a record"      },
        {400, ADMIN,        "GET",  "/v1/audit/0",           "number of a record"      },
        {404, ADMIN,        "POST", "/v1/audit/9999/replay", "no record 9999; the last"},
        {404, ADMIN,        "GET",  "/v1/audit/9999",        "no record 9999; the last"},
        {403, "user:carol", "POST", "/v1/audit/1/replay",    "may not"                 },
        {403, "user:alice", "GET",  "/v1/audit/1",           "may not"                 },
    };
    struct kit k;
    (void)state;
    kit_open(&k);
    history(&k);
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(&k, rows[i].status, rows[i].who, rows[i].method, rows[i].path, NULL);
        SAYS(&k, rows[i].says);
    }
    kit_done(&k);
}

/* ---- a worker under the control of the test --------------------------------------------------------------------- */

static struct {
    void (*work)(void *), (*after)(void *);
    void *arg;
} put_off;

static void run_later(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    (void)ctx;
    put_off.work = work;
    put_off.after = after;
    put_off.arg = arg;
}

/* Counts readings of the clock: one per record, unless the replay was stopped. */
static size_t looks;

static int64_t looked_at(void *ctx)
{
    looks++;
    return kit_steady(ctx);
}

static void send(struct kit *k, json_int_t record)
{
    static const struct kit_query none = {0};
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/audit/%" JSON_INTEGER_FORMAT "/replay", record);
    kit_send(k, ADMIN, "POST", path, &none, NULL);
}

static void only_one_replay_runs(void **state)
{
    struct kit k;
    json_int_t records[64] = {0};
    (void)state;
    kit_open(&k);
    history(&k);
    size_t len = decisions(&k, records, COUNT(records));
    k.control->env.run_slow = run_later;
    send(&k, records[len - 1]);
    assert_false(k.answered);
    CALL(&k, 429, ADMIN, "POST", "/v1/audit/1/replay", NULL); /* refused before the record is examined */
    json_decref(k.body);
    k.answered = false;
    kit_done(&k);
    assert_true(k.answered && k.status == 503); /* the first request */
}

static void waiting_request_is_answered_on_shutdown(void **state)
{
    struct kit k;
    json_int_t records[64] = {0};
    (void)state;
    kit_open(&k);
    history(&k);
    size_t len = decisions(&k, records, COUNT(records));
    k.control->env.run_slow = run_later;
    send(&k, records[len - 1]);
    put_off.work(put_off.arg);
    put_off.after(put_off.arg);
    assert_true(k.answered && json_is_true(kit_at(&k, "same")));

    /* A replay that takes too long. */
    send(&k, records[len - 1]);
    k.steady_ns += (REDECIDE_S + 1) * INT64_C(1000000000);
    put_off.work(put_off.arg);
    put_off.after(put_off.arg);
    assert_true(k.answered && k.status == 503);
    SAYS(&k, "berth replay");

    /* The daemon stops: the running replay ends at its next record, and its request is answered only once. */
    send(&k, records[len - 1]);
    control_quiesce(k.control);
    assert_true(k.answered && k.status == 503);
    SAYS(&k, "stopping");
    k.control->env.steady_ns = looked_at;
    put_off.work(put_off.arg);
    assert_int_equal(looks, 1); /* only to measure the duration */
    put_off.after(put_off.arg);
    control_free(k.control);
    store_close(k.store);
    json_decref(k.body);
}

/* ---- segments --------------------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* Earlier records are in segments, and trimmed from the log. */
static void replay_reads_segments(void **state)
{
    struct kit k;
    json_int_t records[64] = {0};
    char dir[256];
    const char *under = getenv("TMPDIR");
    (void)state;
    (void)snprintf(dir, sizeof dir, "%s/berth-redecide-XXXXXX", under ? under : "/tmp");
    assert_non_null(mkdtemp(dir));
    kit_open(&k);
    k.journal_dir = dir;
    kit_restart(&k);
    history(&k);
    size_t len = decisions(&k, records, COUNT(records));
    sealer_seal_all(k.control->sealer);
    kit_sleep(&k, 1);
    assert_int_equal(store_log_trim(k.store, (uint64_t)records[len / 2], NULL), 0);
    assert_int_equal(replayed(&k, records[0]), 410);
    SAYS(&k, "segments");
    expect_equal_replays(&k, records + len / 2 + 1, len - len / 2 - 1);
    /* Without the segments there is no initial state. */
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(replayed(&k, records[len - 1]), 410);
    SAYS(&k, "is based");
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions_are_replayed),
        cmocka_unit_test(difference_is_reported),
        cmocka_unit_test(unavailable_replays_are_explained),
        cmocka_unit_test(only_one_replay_runs),
        cmocka_unit_test(waiting_request_is_answered_on_shutdown),
        cmocka_unit_test(replay_reads_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
