/* conformance_watch_test.c - tests the contracts of store.h about callbacks: order, watches, the descriptor. */
#include "store/store_test.h"

#include <poll.h>

/* ---- order of callbacks ----------------------------------------------------------------------------------------- */

struct trace {
    struct store *store;
    struct str text;
    struct store_watch *watch, *other;
    unsigned left; /* number of remaining actions */
};

static void trace_event(void *ctx, const struct store_event *e)
{
    struct trace *t = ctx;
    assert_int_equal(store_revision(t->store), e->revision);
    add_event(&t->text, e);
}

static void trace_done(void *ctx, const struct store_result *r)
{
    struct trace *t = ctx;
    str_addf(&t->text, " done:%d/%" PRIu64, r->rc, r->revision);
    assert_int_equal(store_pump(t->store), 0); /* pumping does nothing inside a callback */
}

static void events_come_before_done(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    struct trace t = {.store = s};
    assert_int_equal(store_watch(s, "", 0, trace_event, &t, &t.watch, NULL), 0);
    const struct store_txn txns[] = {
        {OPS(PUT("a",  "1"), PUT("b", "1"))},
        {GUARDS({"a", 9}),     OPS(PUT("a", "2"))},
        {OPS(DROP("x"))           },
        {OPS(DROP("a"),DROP("x"), PUT("b", "2"))},
        {.record = TEXT("r")           },
    };
    for (size_t i = 0; i < sizeof txns / sizeof *txns; i++)
        assert_int_equal(store_submit(s, &txns[i], trace_done, &t, NULL), 0);
    store_drain(s);
    assert_string_equal(t.text.at, "a=1@1/1 b=1@1/1 done:0/1 done:-11/1 done:0/1 -a@1/2 b=2@1/2 done:0/2 done:0/3");
    str_done(&t.text);
}

static void submit_again(void *ctx, const struct store_result *r)
{
    struct trace *t = ctx;
    str_addf(&t->text, " %" PRIu64, r->revision);
    if (t->left--)
        assert_int_equal(store_submit(t->store, &(struct store_txn){OPS(PUT("a", "v"))}, submit_again, t, NULL), 0);
}

static void done_callback_may_submit_again(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    struct trace t = {.store = s, .left = 3};
    assert_int_equal(store_submit(s, &(struct store_txn){OPS(PUT("a", "v"))}, submit_again, &t, NULL), 0);
    store_drain(s);
    assert_string_equal(t.text.at, " 1 2 3 4");
    str_done(&t.text);
}

static void submit_for_ever(void *ctx, const struct store_result *r)
{
    struct trace *t = ctx;
    assert_int_equal(r->rc, 0);
    t->left++;
    int rc = store_submit(t->store, &(struct store_txn){OPS(PUT("a", "v"))}, submit_for_ever, t, NULL);
    str_addf(&t->text, "%d", rc);
}

static void close_waits_and_rejects_new_transactions(void **state)
{
    struct fixture *f = *state;
    struct trace t = {.store = f->store};
    for (int i = 0; i < 3; i++)
        assert_int_equal(store_submit(f->store, &(struct store_txn){OPS(PUT("a", "v"))}, submit_for_ever, &t, NULL), 0);
    store_close(f->store);
    assert_int_equal(t.left, 3); /* every callback was called; none could submit again */
    assert_string_equal(t.text.at, "-108-108-108");
    str_done(&t.text);
    store_close(NULL);
    f->store = NULL;
}

static void descriptor_is_readable_when_pump_is_due(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    struct outcome o;
    struct pollfd fd = {store_fd(s), POLLIN, 0};
    if (fd.fd >= 0)
        assert_int_equal(poll(&fd, 1, 0), 0);
    submit(s, &(struct store_txn){OPS(PUT("a", "1"))}, &o);
    if (fd.fd >= 0)
        assert_int_equal(poll(&fd, 1, 60000), 1);
    assert_int_equal(store_pump(s), 1);
    assert_int_equal(o.calls, 1);
    if (fd.fd >= 0)
        assert_int_equal(poll(&fd, 1, 0), 0);
}

/* ---- watches ----------------------------------------------------------------------------------------------------- */

static void watches_report_their_prefix_from_their_revision(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    static const struct {
        const char *prefix;
        uint64_t from;
        const char *past, *all;
    } rows[] = {
        {"",    0, "a/1=1@1/1 b/1=1@2/2 a/1=2@1/3", "a/1=1@1/1 b/1=1@2/2 a/1=2@1/3 -a/1@1/4 a/2=3@4/4 b/1=2@2/5"},
        {"a/",  0, "a/1=1@1/1 a/1=2@1/3",           "a/1=1@1/1 a/1=2@1/3 -a/1@1/4 a/2=3@4/4"                    },
        {"a/",  1, "a/1=2@1/3",                     "a/1=2@1/3 -a/1@1/4 a/2=3@4/4"                              },
        {"a/1", 3, "",                              "-a/1@1/4"                                                  },
        {"b",   3, "",                              "b/1=2@2/5"                                                 },
 /* only future events */
        {"",    4, "",                              "b/1=2@2/5"                                                 },
        {"",    9, "",                              ""                                                          },
        {"c",   0, "",                              ""                                                          },
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    struct str heard[ROWS] = {{0}};
    struct store_watch *watches[ROWS] = {0};
    (void)put(s, "a/1", "1");
    (void)put(s, "b/1", "1");
    (void)put(s, "a/1", "2");
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(store_watch(s, rows[i].prefix, rows[i].from, add_event, &heard[i], &watches[i], NULL), 0);
        assert_non_null(watches[i]);
        assert_string_equal(str_text(&heard[i]), rows[i].past); /* before store_watch returned */
    }
    assert_int_equal(COMMIT(s, OPS(DROP("a/1"), PUT("a/2", "3"))).revision, 4);
    (void)put(s, "b/1", "2");
    for (size_t i = 0; i < ROWS; i++) {
        assert_string_equal(str_text(&heard[i]), rows[i].all);
        store_unwatch(watches[i]);
    }
    (void)put(s, "a/1", "unheard");
    for (size_t i = 0; i < ROWS; i++) {
        assert_string_equal(str_text(&heard[i]), rows[i].all);
        str_done(&heard[i]);
    }
    store_unwatch(NULL);
}

/* A change that is durable but not pumped is reported once, by the pump. */
static void new_watch_reports_each_change_once(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    CLEANUP(str) struct str heard = {0};
    struct store_watch *w = NULL;
    struct outcome o;
    (void)put(s, "a", "1");
    submit(s, &(struct store_txn){OPS(PUT("a", "2"))}, &o);
    struct pollfd fd = {store_fd(s), POLLIN, 0};
    if (fd.fd >= 0)
        assert_int_equal(poll(&fd, 1, 60000), 1);
    assert_int_equal(store_watch(s, "", 0, add_event, &heard, &w, NULL), 0);
    assert_string_equal(heard.at, "a=1@1/1");
    store_drain(s);
    assert_string_equal(heard.at, "a=1@1/1 a=2@1/2");
    store_unwatch(w);
}

static void end_itself(void *ctx, const struct store_event *e)
{
    struct trace *t = ctx;
    add_event(&t->text, e);
    if (--t->left == 0)
        store_unwatch(t->watch);
}

static void a_watch_may_end_itself(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    struct trace t = {.store = s, .left = 2};
    assert_int_equal(store_watch(s, "", 0, end_itself, &t, &t.watch, NULL), 0);
    assert_int_equal(COMMIT(s, OPS(PUT("a", "1"), PUT("b", "1"), PUT("c", "1"))).rc, 0);
    (void)put(s, "d", "1");
    assert_string_equal(t.text.at, "a=1@1/1 b=1@1/1");

    str_clear(&t.text); /* and during past events */
    t.left = 3;
    assert_int_equal(store_watch(s, "", 0, end_itself, &t, &t.watch, NULL), 0);
    assert_null(t.watch);
    (void)put(s, "e", "1");
    assert_string_equal(t.text.at, "a=1@1/1 b=1@1/1 c=1@1/1");
    str_done(&t.text);
}

static void end_other(void *ctx, const struct store_event *e)
{
    struct trace *t = ctx;
    add_event(&t->text, e);
    store_unwatch(t->other);
    t->other = NULL;
}

static void a_watch_may_end_another(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    struct trace t = {.store = s};
    CLEANUP(str) struct str before = {0}, after = {0};
    struct store_watch *w = NULL;
    assert_int_equal(store_watch(s, "", 0, add_event, &before, &w, NULL), 0);
    assert_int_equal(store_watch(s, "", 0, end_other, &t, &t.watch, NULL), 0);
    assert_int_equal(store_watch(s, "", 0, add_event, &after, &t.other, NULL), 0);
    (void)put(s, "a", "1");
    (void)put(s, "a", "2");
    assert_string_equal(before.at, "a=1@1/1 a=2@1/2");
    assert_string_equal(str_text(&t.text), "a=1@1/1 a=2@1/2");
    assert_string_equal(str_text(&after), "");
    str_done(&t.text);
}

struct adder {
    struct store *store;
    struct str past, now; /* events of watches that start at revision 0 and at the present */
    struct store_watch *watches[2];
};

static void add_watches(void *ctx, const struct store_event *e)
{
    struct adder *a = ctx;
    if (a->watches[0] || e->revision < 2)
        return;
    assert_int_equal(store_watch(a->store, "", 0, add_event, &a->past, &a->watches[0], NULL), 0);
    assert_int_equal(store_watch(a->store, "", store_revision(a->store), add_event, &a->now, &a->watches[1], NULL), 0);
}

static void a_watch_may_be_added_by_another(void **state)
{
    struct store *s = ((struct fixture *)*state)->store;
    struct adder a = {.store = s};
    struct store_watch *w = NULL;
    assert_int_equal(store_watch(s, "", 0, add_watches, &a, &w, NULL), 0);
    (void)put(s, "a", "1");
    /* the watches are added at the first of these */
    assert_int_equal(COMMIT(s, OPS(PUT("a", "2"), PUT("b", "2"))).rc, 0);
    (void)put(s, "c", "3");
    assert_string_equal(str_text(&a.past), "a=1@1/1 a=2@1/2 b=2@2/2 c=3@3/3");
    assert_string_equal(str_text(&a.now), "c=3@3/3");
    str_done(&a.past);
    str_done(&a.now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_before_done),
        cmocka_unit_test(done_callback_may_submit_again),
        cmocka_unit_test(close_waits_and_rejects_new_transactions),
        cmocka_unit_test(descriptor_is_readable_when_pump_is_due),
        cmocka_unit_test(watches_report_their_prefix_from_their_revision),
        cmocka_unit_test(new_watch_reports_each_change_once),
        cmocka_unit_test(a_watch_may_end_itself),
        cmocka_unit_test(a_watch_may_end_another),
        cmocka_unit_test(a_watch_may_be_added_by_another),
    };
    return run_over_kinds("conformance of watches", tests, sizeof tests / sizeof *tests);
}
