/* memory_test.c - tests features of the memory store: losing unpumped transactions, failing on demand. */
#include "store/store_test.h"

static void crash_loses_transactions_not_pumped(void **state)
{
    (void)state;
    struct store *s = store_memory_new();
    struct outcome o;
    assert_int_equal(COMMIT(s, OPS(PUT("a", "1")), .record = TEXT("r")).rc, 0);
    submit(s, &(struct store_txn){OPS(PUT("a", "2"))}, &o);
    struct store *after = store_memory_crash(s);
    assert_int_equal(store_revision(after), 1);
    assert_text(range_text(after, "", 0), "a=1@1/1");
    assert_text(log_text(after, 0), "1:r/1");
    store_drain(after);
    assert_text(range_text(after, "", 0), "a=1@1/1"); /* the copy has no unfinished transaction */

    store_drain(s); /* the two stores are independent */
    assert_int_equal(put(after, "b", "3"), 2);
    assert_text(range_text(s, "", 0), "a=2@1/2");
    assert_text(range_text(after, "", 0), "a=1@1/1 b=3@2/2");
    store_close(s);
    assert_text(history_text(after, "", 0, 0), "a=1@1/1 b=3@2/2"); /* shared values outlive the first store */
    store_close(after);
}

static void a_crash_keeps_compaction(void **state)
{
    (void)state;
    struct store *s = store_memory_new();
    for (int i = 0; i < 3; i++)
        (void)put(s, "a", "v");
    (void)put(s, "b", "v");
    (void)drop(s, "b");
    uint64_t before = store_size(s);
    assert_int_equal(store_compact(s, 5, NULL), 0);
    assert_true(store_size(s) < before);
    struct store *after = store_memory_crash(s);
    assert_int_equal(store_size(after), store_size(s));
    CLEANUP(mem) char *want = all_text(s);
    assert_text(all_text(after), want);
    assert_int_equal(store_compacted(after), 5);
    assert_int_equal(COMMIT(after, GUARDS({"a", 3}, {"b", 0}), OPS(PUT("b", "w"))).rc, 0);
    store_close(s);
    store_close(after);
}

struct crasher {
    struct store *store, *copy;
};

static void crash_now(void *ctx, const struct store_event *e)
{
    struct crasher *c = ctx;
    if (e->revision == 2)
        c->copy = store_memory_crash(c->store);
}

static void crash_inside_callback_keeps_the_reported_change(void **state)
{
    (void)state;
    struct crasher c = {.store = store_memory_new()};
    struct store_watch *w = NULL;
    struct outcome o[3];
    assert_int_equal(store_watch(c.store, "", 0, crash_now, &c, &w, NULL), 0);
    for (size_t i = 0; i < 3; i++)
        submit(c.store, &(struct store_txn){OPS(PUT("a", "v"))}, &o[i]);
    store_drain(c.store);
    assert_int_equal(store_revision(c.store), 3);
    assert_int_equal(store_revision(c.copy), 2);
    assert_text(range_text(c.copy, "", 0), "a=v@1/2");
    store_close(c.store);
    store_close(c.copy);
}

static void store_fails_on_demand(void **state)
{
    (void)state;
    struct store *s = store_memory_new();
    CLEANUP(str) struct str heard = {0};
    struct store_watch *w = NULL;
    struct outcome o[4];
    (void)put(s, "a", "1");
    assert_int_equal(store_watch(s, "", 1, add_event, &heard, &w, NULL), 0);
    store_memory_fail(s, ENOSPC, 2);
    for (size_t i = 0; i < 4; i++)
        submit(s, &(struct store_txn){GUARDS({"a", i == 3 ? 2 : 1}), OPS(PUT("a", "2")), .record = TEXT("r")}, &o[i]);
    store_drain(s);
    for (size_t i = 0; i < 2; i++) {
        assert_code(o[i].result.rc, ENOSPC);
        assert_true(o[i].text[0]);
    }
    assert_int_equal(o[2].result.rc, 0);
    assert_int_equal(o[2].result.revision, 2);
    assert_int_equal(o[2].result.log_seq, 1);
    assert_int_equal(o[3].result.revision, 3);
    assert_string_equal(heard.at, "a=2@1/2 a=2@1/3");
    store_close(s);
}

/* Uses 256 MiB, so it runs in memory only. */
static void queue_is_bounded_by_bytes(void **state)
{
    (void)state;
    struct store *s = store_memory_new();
    CLEANUP(mem) char *large = mem_zalloc(STORE_VALUE_MAX);
    struct store_op ops[7];
    struct outcome o[8];
    size_t taken = 0;
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g"};
    for (size_t i = 0; i < 7; i++)
        ops[i] = (struct store_op){
            keys[i], {large, STORE_VALUE_MAX},
             false
        };
    store_memory_fail(s, EIO, 8);
    struct store_txn txn = {.ops = ops, .ops_len = 7};
    while (taken < 8 && store_submit(s, &txn, outcome_note, &o[taken], NULL) == 0)
        taken++;
    assert_int_equal(taken, STORE_QUEUE_BYTES_MAX / (7 * STORE_VALUE_MAX));
    store_drain(s);
    assert_int_equal(store_submit(s, &txn, NULL, NULL, NULL), 0);
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crash_loses_transactions_not_pumped),
        cmocka_unit_test(a_crash_keeps_compaction),
        cmocka_unit_test(crash_inside_callback_keeps_the_reported_change),
        cmocka_unit_test(store_fails_on_demand),
        cmocka_unit_test(queue_is_bounded_by_bytes),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
