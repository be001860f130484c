/* conformance_test.c - tests the contracts of store.h for every kind of store: transactions, limits, past states, the
 * log, visitors. conformance_watch_test.c tests the others.
 */
#include "store/store_test.h"

/* ---- transactions ------------------------------------------------------------------------------------------------ */

static void revisions_count_effective_transactions(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    assert_int_equal(store_revision(s), 0);
    assert_int_equal(store_compacted(s), 0);
    assert_text(range_text(s, "", 0), "");
    assert_text(history_text(s, "", 0, 0), "");
    assert_text(log_text(s, 0), "");

    assert_int_equal(put(s, "a", "1"), 1);
    assert_int_equal(put(s, "a", "1"), 2); /* the same value is written again */
    assert_int_equal(drop(s, "b"), 2);     /* the key was absent */
    struct store_result r = COMMIT(s);
    assert_int_equal(r.rc, 0);
    assert_int_equal(r.revision, 2);
    assert_int_equal(r.log_seq, 0);
    r = COMMIT(s, .record = TEXT("note")); /* a record counts as a change */
    assert_int_equal(r.revision, 3);
    assert_int_equal(r.log_seq, 1);
    r = COMMIT(s, OPS(DROP("a"), DROP("b"), PUT("c", "3")), .record = TEXT("more"));
    assert_int_equal(r.revision, 4);
    assert_int_equal(r.log_seq, 2);
    assert_int_equal(store_revision(s), 4);
    assert_text(range_text(s, "", 0), "c=3@4/4");
    assert_text(history_text(s, "", 0, 0), "a=1@1/1 a=1@1/2 -a@1/4 c=3@4/4");
}

static void revision_counts_pumped_transactions(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    struct outcome o;
    submit(s, &(struct store_txn){OPS(PUT("a", "1"))}, &o);
    assert_int_equal(store_revision(s), 0);
    assert_int_equal(o.calls, 0);
    store_drain(s);
    assert_int_equal(o.calls, 1);
    assert_int_equal(store_revision(s), 1);
    assert_int_equal(store_pump(s), 0);
}

static void keys_remember_their_creation(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    (void)put(s, "a", "1");
    (void)put(s, "b", "1");
    (void)put(s, "a", "2");
    (void)drop(s, "a");
    (void)put(s, "a", "3");
    assert_text(range_text(s, "", 0), "a=3@5/5 b=1@2/2");
    assert_text(history_text(s, "a", 0, 0), "a=1@1/1 a=2@1/3 -a@1/4 a=3@5/5");
}

static void guards_hold_or_fail(void **state)
{
    static const struct {
        const char *label;
        struct store_guard guards[3];
        size_t len;
        int rc;
        size_t failed;
    } rows[] = {
        {"present",             {{"a", 3}},                     1, 0,       0},
        {"absent",              {{"x", 0}},                     1, 0,       0},
        {"present and absent",  {{"a", 3}, {"x", 0}, {"b", 2}}, 3, 0,       0},
        {"the same twice",      {{"a", 3}, {"a", 3}},           2, 0,       0},
        {"stale",               {{"a", 1}},                     1, -EAGAIN, 0},
        {"from the future",     {{"a", 9}},                     1, -EAGAIN, 0},
        {"there after all",     {{"a", 0}},                     1, -EAGAIN, 0},
        {"gone",                {{"x", 1}},                     1, -EAGAIN, 0},
        {"deleted",             {{"d", 4}},                     1, -EAGAIN, 0},
        {"deleted is absent",   {{"d", 0}},                     1, 0,       0},
        {"the last of three",   {{"a", 3}, {"b", 2}, {"x", 7}}, 3, -EAGAIN, 2},
        {"two fail: the first", {{"a", 3}, {"b", 1}, {"x", 7}}, 3, -EAGAIN, 1},
        {"twice, one stale",    {{"a", 3}, {"a", 1}},           2, -EAGAIN, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *kind = (void *)((struct fixture *)*state)->kind;
        assert_int_equal(fixture_setup(&kind), 0);
        struct fixture *f = kind;
        (void)put(f->store, "a", "1");
        (void)put(f->store, "b", "1");
        (void)put(f->store, "a", "2");
        (void)put(f->store, "d", "1");
        (void)drop(f->store, "d");
        CLEANUP(mem) char *before = all_text(f->store);
        struct store_result r = COMMIT(f->store, .guards = rows[i].guards, .guards_len = rows[i].len,
                                       OPS(PUT("a", "new"), DROP("b"), PUT("c", "new")), .record = TEXT("r"));
        if (r.rc != rows[i].rc || r.guard != rows[i].failed)
            fail_msg("%s: rc %d, guard %zu", rows[i].label, r.rc, r.guard);
        if (r.rc == 0)
            assert_text(range_text(f->store, "", 0), "a=new@1/6 c=new@6/6");
        else
            assert_text(all_text(f->store), before); /* the transaction had no effect */
        assert_int_equal(r.log_seq, r.rc == 0 ? 1 : 0);
        (void)fixture_teardown(&kind);
    }
}

static void guards_see_earlier_submissions(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    struct outcome o[4];
    submit(s, &(struct store_txn){GUARDS({"a", 0}), OPS(PUT("a", "1"))}, &o[0]);
    submit(s, &(struct store_txn){GUARDS({"a", 0}), OPS(PUT("a", "2"))}, &o[1]);
    submit(s, &(struct store_txn){GUARDS({"a", 1}), OPS(DROP("a"))}, &o[2]);
    submit(s, &(struct store_txn){GUARDS({"a", 0}), OPS(PUT("a", "3"))}, &o[3]);
    store_drain(s);
    static const int rcs[4] = {0, -EAGAIN, 0, 0};
    static const uint64_t revisions[4] = {1, 1, 2, 3};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(o[i].result.rc, rcs[i]);
        assert_int_equal(o[i].result.revision, revisions[i]);
    }
    assert_text(history_text(s, "", 0, 0), "a=1@1/1 -a@1/2 a=3@3/3");
}

static void a_transaction_is_a_copy(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    char key[] = "a", value[] = "1", record[] = "r";
    struct store_op op = PUT(key, value);
    struct store_guard guard = {key, 0};
    struct outcome o;
    submit(s, &(struct store_txn){&guard, 1, &op, 1, TEXT(record)}, &o);
    key[0] = value[0] = record[0] = 'z';
    guard.revision = 7;
    op.gone = true;
    store_drain(s);
    assert_int_equal(o.result.rc, 0);
    assert_text(range_text(s, "", 0), "a=1@1/1");
    assert_text(log_text(s, 0), "1:r/1");
}

static int visit_bytes(void *ctx, const struct store_entry *e)
{
    struct bytes *want = ctx;
    assert_int_equal(e->value.len, want->len);
    if (want->len)
        assert_memory_equal(e->value.at, want->at, want->len);
    return 7;
}

static void values_are_bytes(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    struct bytes values[] = {
        {NULL,         0              },
        {"",           0              },
        {"\0",         1              },
        {"a\0b\xff\n", 5              },
        {NULL,         STORE_VALUE_MAX}
    };
    CLEANUP(mem) char *large = mem_alloc(STORE_VALUE_MAX);
    memset(large, 0xa5, STORE_VALUE_MAX);
    values[4].at = large;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_int_equal(COMMIT(s, OPS({"k", values[i], false})).rc, 0);
        assert_int_equal(store_range(s, "k", 0, visit_bytes, &values[i], NULL), 7);
    }
    assert_text(history_text(s, "", 1, 2), "k=@1/2"); /* an empty value is not a deletion */
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void expect_rejection(struct store *s, const char *label, const struct store_txn *txn)
{
    struct berth_err err = {0};
    struct outcome o = {0};
    int rc = store_submit(s, txn, outcome_note, &o, &err);
    if (rc != -EINVAL || !err.text[0])
        fail_msg("%s: %d %s", label, rc, err.text);
    store_drain(s);
    assert_int_equal(o.calls, 0);
}

static void invalid_keys_are_rejected(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    char key[STORE_KEY_MAX + 2];
    memset(key, 'k', sizeof key);
    key[STORE_KEY_MAX + 1] = 0;
    static const char *const bad[] = {"", " ", "a b", "a\n", "\x7f", "caf\xc3\xa9", "tab\t"};
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        const char *each = i < sizeof bad / sizeof *bad ? bad[i] : key;
        expect_rejection(s, each, &(struct store_txn){OPS(PUT(each, "v"))});
        expect_rejection(s, each, &(struct store_txn){OPS(PUT("a", "v"), DROP(each))});
        expect_rejection(s, each, &(struct store_txn){GUARDS({each, 0}), OPS(PUT("a", "v"))});
        if (*each) {
            struct store_watch *w = NULL;
            assert_code(store_range(s, each, 0, visit_entry, NULL, NULL), EINVAL);
            assert_code(store_history(s, each, 0, 0, visit_event, NULL, NULL), EINVAL);
            assert_code(store_watch(s, each, 0, add_event, NULL, &w, NULL), EINVAL);
            assert_null(w);
        }
    }
    assert_int_equal(store_revision(s), 0);
    key[STORE_KEY_MAX] = 0;
    (void)put(s, key, "long");
    (void)put(s, "!~/.:[]{}\"'\\%", "printable");
    assert_int_equal(store_revision(s), 2);
    key[STORE_KEY_MAX - 1] = 0;
    CLEANUP(mem) char *found = range_text(s, key, 0);
    assert_int_equal(strlen(found), STORE_KEY_MAX + strlen("=long@1/1"));
}

static void counts_and_sizes_are_bounded(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    CLEANUP(mem) struct store_op *ops = mem_zarray(STORE_OPS_MAX + 1, sizeof *ops);
    CLEANUP(mem) struct store_guard *guards = mem_zarray(STORE_GUARDS_MAX + 1, sizeof *guards);
    CLEANUP(mem)
    char *names = mem_alloc((STORE_GUARDS_MAX + 1) * 16), *large = mem_zalloc(STORE_VALUE_MAX + 1),
         *huge = mem_zalloc(STORE_RECORD_MAX + 1);
    for (size_t i = 0; i <= STORE_GUARDS_MAX; i++) {
        guards[i].key = names + 16 * i;
        (void)snprintf(names + 16 * i, 16, "key/%06zu", i);
        if (i <= STORE_OPS_MAX)
            ops[i] = PUT(guards[i].key, "v");
    }
    expect_rejection(s, "ops", &(struct store_txn){.ops = ops, .ops_len = STORE_OPS_MAX + 1});
    expect_rejection(s, "guards", &(struct store_txn){.guards = guards, .guards_len = STORE_GUARDS_MAX + 1});
    expect_rejection(s, "value",
                     &(struct store_txn){
                         OPS({"a", {large, STORE_VALUE_MAX + 1}, false}
                         )
    });
    expect_rejection(s, "record",
                     &(struct store_txn){
                         .record = {huge, STORE_RECORD_MAX + 1}
    });
    expect_rejection(s, "twice", &(struct store_txn){OPS(PUT("a", "1"), PUT("b", "1"), PUT("a", "2"))});
    expect_rejection(s, "twice", &(struct store_txn){OPS(PUT("a", "1"), DROP("a"))});
    enum { TOO_MUCH = STORE_TXN_BYTES_MAX / STORE_VALUE_MAX };
    for (size_t i = 0; i < TOO_MUCH; i++)
        ops[i].value = (struct bytes){large, STORE_VALUE_MAX};
    expect_rejection(s, "all together", &(struct store_txn){.ops = ops, .ops_len = TOO_MUCH});
    for (size_t i = 0; i < TOO_MUCH; i++)
        ops[i].value = TEXT("v");
    assert_int_equal(store_revision(s), 0);

    struct store_result r =
        COMMIT(s, .guards = guards, .guards_len = STORE_GUARDS_MAX, .ops = ops, .ops_len = STORE_OPS_MAX);
    assert_int_equal(r.rc, 0);
    assert_int_equal(r.revision, 1);
    char last[32], beyond[32];
    (void)snprintf(last, sizeof last, "key/%06d", STORE_OPS_MAX - 1);
    (void)snprintf(beyond, sizeof beyond, "key/%06d", STORE_OPS_MAX);
    assert_text(range_text(s, beyond, 0), "");
    CLEANUP(mem) char *found = range_text(s, last, 0);
    assert_string_equal(found + strlen(last), "=v@1/1");
    (void)put(s, beyond, "v"); /* its place does not overlap the places of the transaction before */
    assert_text(history_text(s, beyond, 0, 1), "");
}

static void full_queue_is_reported(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    CLEANUP(mem) struct outcome *o = mem_zarray(STORE_QUEUE_MAX, sizeof *o);
    struct berth_err err = {0};
    for (size_t i = 0; i < STORE_QUEUE_MAX; i++)
        submit(s, &(struct store_txn){OPS(PUT("a", "v"))}, &o[i]);
    assert_code(store_submit(s, &(struct store_txn){OPS(PUT("b", "v"))}, NULL, NULL, &err), ENOBUFS);
    assert_true(err.text[0]);
    store_drain(s);
    for (size_t i = 0; i < STORE_QUEUE_MAX; i++)
        assert_int_equal(o[i].result.revision, i + 1);
    (void)put(s, "b", "v");
    assert_text(range_text(s, "", 0), "a=v@1/16384 b=v@16385/16385");
}

/* ---- past states ------------------------------------------------------------------------------------------------- */

static void write_past(struct store *s)
{
    (void)put(s, "a", "1");                                                       /* 1 */
    (void)put(s, "b", "1");                                                       /* 2 */
    assert_int_equal(COMMIT(s, OPS(PUT("a", "2"), PUT("c/x", "1"))).revision, 3); /* 3 */
    (void)drop(s, "b");                                                           /* 4 */
    assert_int_equal(COMMIT(s, .record = TEXT("only a record")).revision, 5);     /* 5 */
    assert_int_equal(COMMIT(s, OPS(PUT("b", "3"), DROP("a"))).revision, 6);       /* 6 */
    (void)put(s, "c/y", "1");                                                     /* 7 */
}

static void old_states_can_be_read(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    static const char *const states[] = {
        "b=3@6/6 c/x=1@3/3 c/y=1@7/7", "a=1@1/1",           "a=1@1/1 b=1@2/2",   "a=2@1/3 b=1@2/2 c/x=1@3/3",
        "a=2@1/3 c/x=1@3/3",           "a=2@1/3 c/x=1@3/3", "b=3@6/6 c/x=1@3/3", "b=3@6/6 c/x=1@3/3 c/y=1@7/7",
    };
    write_past(s);
    for (uint64_t r = 0; r < sizeof states / sizeof *states; r++)
        assert_text(range_text(s, "", r), states[r]);
    assert_text(range_text(s, "c/", 3), "c/x=1@3/3");
    assert_text(range_text(s, "a", 4), "a=2@1/3");
    assert_text(range_text(s, "a", 6), "");
    assert_code(store_range(s, "", 8, visit_entry, NULL, NULL), EINVAL);
}

static void ranges_are_in_byte_order(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    static const char *const keys[] = {"b", "a~", "a", "a/", "B", "a!", "a/b", "aa", "~", "!"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        (void)put(s, keys[i], "");
    assert_text(range_text(s, "", 0), "!=@10/10 B=@5/5 a=@3/3 a!=@6/6 a/=@4/4 a/b=@7/7 aa=@8/8 a~=@2/2 b=@1/1 ~=@9/9");
    assert_text(range_text(s, "a", 0), "a=@3/3 a!=@6/6 a/=@4/4 a/b=@7/7 aa=@8/8 a~=@2/2");
    assert_text(range_text(s, "a/", 0), "a/=@4/4 a/b=@7/7");
    assert_text(range_text(s, "a~", 0), "a~=@2/2");
}

static int visit_replaced(void *ctx, const struct store_event *e)
{
    struct str *to = ctx;
    str_addf(to, "%s%s:", to->len ? " " : "", e->key);
    if (e->replaced.at)
        add_bytes(to, e->replaced);
    else
        str_add(to, "none");
    return 0;
}

static char *replaced_text(struct store *s, const char *prefix, uint64_t from)
{
    struct str found = {0};
    return walked(&found, store_history(s, prefix, from, 0, visit_replaced, &found, NULL));
}

/* Also reports values that were written before the remaining history. */
static void history_reports_replaced_values(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    (void)put(s, "a", "1");
    (void)put(s, "b", "");
    (void)put(s, "a", "2");
    (void)drop(s, "b");
    (void)put(s, "b", "3");
    (void)drop(s, "a");
    assert_text(replaced_text(s, "", 0), "a:none b:none a:1 b: b:none a:2");
    assert_text(replaced_text(s, "a", 2), "a:1 a:2");
    assert_int_equal(store_compact(s, 4, NULL), 0);
    store_drain(s);
    assert_text(replaced_text(s, "", 4), "b:none a:2");
}

static void history_has_bounds(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    write_past(s);
    assert_text(history_text(s, "", 0, 2), "a=1@1/1 b=1@2/2");
    assert_text(history_text(s, "", 2, 4), "a=2@1/3 c/x=1@3/3 -b@2/4");
    assert_text(history_text(s, "", 4, 5), "");
    assert_text(history_text(s, "", 5, 0), "b=3@6/6 -a@1/6 c/y=1@7/7");
    assert_text(history_text(s, "c/", 0, 99), "c/x=1@3/3 c/y=1@7/7");
    assert_text(history_text(s, "", 7, 0), "");
    assert_text(history_text(s, "", 99, 0), "");
    assert_text(history_text(s, "", 5, 3), "");
    assert_text(history_text(s, "", 3, 3), "");
}

static void compaction_deletes_history_only(void **state)
{
    struct fixture *f = *state;
    write_past(f->store);
    CLEANUP(mem) char *present = range_text(f->store, "", 0), *log = log_text(f->store, 0);
    static const char *const later = "b=3@6/6 -a@1/6 c/y=1@7/7";
    for (int turn = 0; turn < 2; turn++) {
        struct store *s = f->store;
        struct berth_err err = {0};
        struct store_watch *w = NULL;
        CLEANUP(str) struct str heard = {0};
        if (turn == 0) {
            assert_code(store_compact(s, 8, &err), EINVAL); /* not known yet */
            assert_int_equal(store_compact(s, 0, &err), 0);
            assert_int_equal(store_compacted(s), 0);
            assert_int_equal(store_compact(s, 4, &err), 0);
            assert_int_equal(store_compact(s, 2, &err), 0); /* already compacted */
        }
        assert_int_equal(store_compacted(s), 4);
        assert_text(range_text(s, "", 0), present);
        assert_text(range_text(s, "", 4), "a=2@1/3 c/x=1@3/3");
        assert_text(range_text(s, "", 6), "b=3@6/6 c/x=1@3/3");
        assert_text(history_text(s, "", 4, 0), later);
        assert_text(log_text(s, 0), log);
        for (uint64_t r = 1; r < 4; r++) {
            assert_code(store_range(s, "", r, visit_entry, NULL, &err), ESTALE);
            assert_true(err.text[0]);
        }
        for (uint64_t r = 0; r < 4; r++) {
            assert_code(store_history(s, "", r, 0, visit_event, NULL, &err), ESTALE);
            assert_code(store_watch(s, "", r, add_event, &heard, &w, &err), ESTALE);
            assert_null(w);
        }
        assert_int_equal(store_watch(s, "", 4, add_event, &heard, &w, NULL), 0);
        assert_string_equal(heard.at, later);
        store_unwatch(w);
        f->store = f->kind->restart(f->store, f->dir);
    }
    assert_int_equal(store_compact(f->store, 7, NULL), 0);
    assert_text(range_text(f->store, "", 0), present);
    assert_text(range_text(f->store, "", 7), present);
    assert_text(history_text(f->store, "", 7, 0), "");
    (void)drop(f->store, "b");
    (void)put(f->store, "b", "4");
    assert_text(history_text(f->store, "", 7, 0), "-b@6/8 b=4@9/9");
    assert_text(range_text(f->store, "", 8), "c/x=1@3/3 c/y=1@7/7");
}

/* ---- the log ----------------------------------------------------------------------------------------------------- */

static void records_are_numbered_and_chained(void **state)
{
    struct fixture *f = *state;
    struct store *s = f->store, *twin = store_memory_new(), *other = store_memory_new();
    const struct store_txn txns[] = {
        {OPS(PUT("a",      "1")),                   .record = TEXT("first")},
        {OPS(PUT("b",                "1"))                            },
        {.record = TEXT("second")               },
        {GUARDS({"a", 7}), .record = TEXT("never")},
        {OPS(DROP("x")),   .record = {"\0\1", 2}},
    };
    for (size_t i = 0; i < sizeof txns / sizeof *txns; i++) {
        (void)commit(s, &txns[i]);
        (void)commit(twin, &txns[i]);
        if (i != 1)
            (void)commit(other, &txns[i]);
    }
    assert_text(log_text(s, 2), "2:second/3 3:\0\1/4");
    for (int turn = 0; turn < 2; turn++) {
        s = f->store;
        CLEANUP(mem) char *chain = chain_text(s), *twins = chain_text(twin), *others = chain_text(other);
        assert_int_equal(strlen(chain), 3 * 17);
        assert_string_equal(chain, twins); /* the same for every kind */
        assert_memory_equal(chain, others, 17);
        assert_memory_not_equal(chain + 17, others + 17, 17); /* the chain covers revisions */
        assert_memory_not_equal(chain + 34, others + 34, 17); /* and all earlier records */
        assert_text(log_text(s, 4), "");
        assert_text(log_text(s, 99), "");
        CLEANUP(mem) char *all = log_text(s, 0);
        assert_text(log_text(s, 1), all);
        f->store = f->kind->restart(f->store, f->dir);
    }
    assert_int_equal(COMMIT(f->store, .record = TEXT("more")).log_seq, 4);
    store_close(twin);
    store_close(other);
}

static int visit_record_bytes(void *ctx, const struct store_record *record)
{
    const struct bytes *want = ctx;
    assert_int_equal(record->record.len, want->len);
    assert_memory_equal(record->record.at, want->at, want->len);
    return 7;
}

/* The record of a transaction with many values contains all of them. */
static void records_may_be_larger_than_values(void **state)
{
    struct fixture *f = *state;
    struct bytes large = {.len = 2 * STORE_VALUE_MAX + 1};
    CLEANUP(mem) char *text = mem_alloc(large.len);
    memset(text, 'r', large.len);
    large.at = text;
    assert_int_equal(COMMIT(f->store, OPS(PUT("a", "1")), .record = large).rc, 0);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(store_log(f->store, 1, visit_record_bytes, &large, NULL), 7);
        f->store = f->kind->restart(f->store, f->dir);
    }
}

static void trimming_keeps_the_chain(void **state)
{
    struct fixture *f = *state;
    struct store *s = f->store, *twin = store_memory_new();
    static const char *const notes[] = {"one", "two", "three", "four"};
    for (size_t i = 0; i < 4; i++) {
        (void)COMMIT(s, OPS(PUT("a", notes[i])), .record = TEXT(notes[i]));
        (void)COMMIT(twin, OPS(PUT("a", notes[i])), .record = TEXT(notes[i]));
    }
    assert_int_equal(store_log_trimmed(s), 0);
    assert_code(store_log_trim(s, 5, NULL), EINVAL); /* no such record yet */
    assert_int_equal(store_log_trim(s, 2, NULL), 0);
    assert_int_equal(store_log_trim(s, 1, NULL), 0); /* already trimmed */
    assert_int_equal(store_log_trimmed(s), 2);
    for (int turn = 0; turn < 2; turn++) {
        s = f->store;
        assert_text(log_text(s, 0), "3:three/3 4:four/4");
        assert_text(log_text(s, 3), "3:three/3 4:four/4");
        assert_text(log_text(s, 2), "!116");
        assert_text(log_text(s, 1), "!116");
        assert_text(range_text(s, "", 0), turn ? "a=four@1/4 b=1@5/5" : "a=four@1/4");
        assert_int_equal(store_log_last(s), 4);
        (void)put(s, "b", "1"); /* this commit finishes the trimming */
        f->store = f->kind->restart(f->store, f->dir);
    }
    s = f->store;
    assert_int_equal(store_log_trim(s, 4, NULL), 0);
    assert_text(log_text(s, 0), "");
    (void)put(s, "b", "1");
    (void)put(twin, "b", "1");
    (void)put(twin, "b", "1");
    (void)put(twin, "b", "1");
    f->store = s = f->kind->restart(s, f->dir);
    assert_int_equal(COMMIT(s, .record = TEXT("five")).log_seq, 5);
    assert_int_equal(COMMIT(twin, .record = TEXT("five")).log_seq, 5);
    CLEANUP(mem) char *chain = chain_text(s), *all = chain_text(twin);
    assert_string_equal(chain, all + 4 * 17); /* the same as with all records */
    store_close(twin);
}

static void log_can_be_read_concurrently(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    for (int i = 0; i < 4; i++)
        (void)COMMIT(s, .record = TEXT("r"));
    struct str found = {0};
    assert_text(walked(&found, store_log_concurrent(s, 2, 3, visit_record, &found, NULL)), "2:r/2 3:r/3");
    assert_text(walked(&found, store_log_concurrent(s, 4, 99, visit_record, &found, NULL)), "4:r/4");
    assert_text(walked(&found, store_log_concurrent(s, 0, 1, visit_record, &found, NULL)), "1:r/1");
    assert_text(walked(&found, store_log_concurrent(s, 5, 9, visit_record, &found, NULL)), "");
}

/* ---- visitors ---------------------------------------------------------------------------------------------------- */

struct stopper {
    unsigned calls, stop_at;
    int with;
};

static int stop(struct stopper *st)
{
    return ++st->calls == st->stop_at ? st->with : 0;
}

static int stop_entry(void *ctx, const struct store_entry *e)
{
    (void)e;
    return stop(ctx);
}

static int stop_event(void *ctx, const struct store_event *e)
{
    (void)e;
    return stop(ctx);
}

static int stop_record(void *ctx, const struct store_record *r)
{
    (void)r;
    return stop(ctx);
}

static void visitor_can_end_the_iteration(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    for (int i = 0; i < 4; i++) {
        char key[2] = {(char)('a' + i), 0};
        assert_int_equal(COMMIT(s, OPS(PUT(key, "v")), .record = TEXT("r")).rc, 0);
    }
    static const int codes[] = {1, -ENOENT};
    for (size_t i = 0; i < 2; i++) {
        struct stopper st = {0, 2, codes[i]};
        assert_int_equal(store_range(s, "", 0, stop_entry, &st, NULL), codes[i]);
        st.calls = 0;
        assert_int_equal(store_history(s, "", 0, 0, stop_event, &st, NULL), codes[i]);
        st.calls = 0;
        assert_int_equal(store_log(s, 0, stop_record, &st, NULL), codes[i]);
        assert_int_equal(st.calls, 2);
    }
}

struct nested {
    struct store *store;
    struct str text;
};

static int read_within(void *ctx, const struct store_entry *e)
{
    struct nested *n = ctx;
    (void)put(n->store, "new", e->key); /* writes during the visit */
    CLEANUP(mem) char *now = range_text(n->store, "new", 0), *past = history_text(n->store, "new", 2, 0);
    str_addf(&n->text, "%s: %s | %s\n", e->key, now, past);
    assert_int_equal(store_compact(n->store, 2, NULL), 0);
    return 0;
}

static void a_visitor_may_use_the_store(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    struct nested n = {.store = s};
    (void)put(s, "a", "1");
    (void)put(s, "b", "1");
    assert_int_equal(store_range(s, "", 0, read_within, &n, NULL), 0);
    assert_string_equal(n.text.at, "a: new=a@3/3 | new=a@3/3\nb: new=b@3/4 | new=a@3/3 new=b@3/4\n");
    str_done(&n.text);
}

static void sizes_grow_and_backups_need_files(void **state)
{
    struct fixture *f = *state;
    uint64_t before = store_size(f->store);
    CLEANUP(mem) char *large = mem_zalloc(1 << 20);
    CLEANUP(str) struct str path = {0};
    assert_int_equal(COMMIT(f->store, OPS({
                                          "k", {large, 1 << 20},
                                           false
    }))
                         .rc,
                     0);
    assert_true(store_size(f->store) >= before + (1 << 20));
    str_addf(&path, "%s/backup", f->dir);
    assert_int_equal(store_backup(f->store, path.at, NULL), f->kind->files ? 0 : -ENOTSUP);
    assert_int_equal(access(path.at, F_OK), f->kind->files ? 0 : -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(revisions_count_effective_transactions),
        cmocka_unit_test(revision_counts_pumped_transactions),
        cmocka_unit_test(keys_remember_their_creation),
        cmocka_unit_test(guards_hold_or_fail),
        cmocka_unit_test(guards_see_earlier_submissions),
        cmocka_unit_test(a_transaction_is_a_copy),
        cmocka_unit_test(values_are_bytes),
        cmocka_unit_test(invalid_keys_are_rejected),
        cmocka_unit_test(counts_and_sizes_are_bounded),
        cmocka_unit_test(full_queue_is_reported),
        cmocka_unit_test(old_states_can_be_read),
        cmocka_unit_test(ranges_are_in_byte_order),
        cmocka_unit_test(history_has_bounds),
        cmocka_unit_test(history_reports_replaced_values),
        cmocka_unit_test(compaction_deletes_history_only),
        cmocka_unit_test(records_are_numbered_and_chained),
        cmocka_unit_test(records_may_be_larger_than_values),
        cmocka_unit_test(trimming_keeps_the_chain),
        cmocka_unit_test(log_can_be_read_concurrently),
        cmocka_unit_test(visitor_can_end_the_iteration),
        cmocka_unit_test(a_visitor_may_use_the_store),
        cmocka_unit_test(sizes_grow_and_backups_need_files),
    };
    return run_over_kinds("conformance", tests, sizeof tests / sizeof *tests);
}
