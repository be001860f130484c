/* change_test.c - a change shows its own writes, guards what it reads, and hides secrets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/state/change.h"

struct bench {
    struct store *store;
    struct state *state;
    struct arena arena;
    struct change change;
};

static void bench_init(struct bench *b)
{
    static const char group[] = "{\"v\":1,\"id\":\"lab\",\"display\":\"Lab\"}";
    struct store_op op = {
        .key = "groups/lab", .value = {group, sizeof group - 1}
    };
    struct store_txn txn = {.ops = &op, .ops_len = 1};
    *b = (struct bench){.store = store_memory_new()};
    assert_int_equal(store_submit(b->store, &txn, NULL, NULL, NULL), 0);
    store_drain(b->store);
    assert_int_equal(state_load(b->store, &b->state, NULL), 0);
    arena_init(&b->arena);
    change_init(&b->change, b->state, &b->arena);
}

static void bench_cleanup(struct bench *b)
{
    change_done(&b->change);
    arena_done(&b->arena);
    state_free(b->state);
    store_close(b->store);
}

#define BENCH __attribute__((cleanup(bench_cleanup))) struct bench

static const struct change_item *item(struct bench *b, const char *id)
{
    for (size_t i = 0; i < b->change.items.len; i++)
        if (strcmp(b->change.items.at[i].id, id) == 0)
            return &b->change.items.at[i];
    fail_msg("no item %s", id);
    return NULL;
}

static void read_objects_are_guarded(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    assert_non_null(change_read(&b.change, KIND_GROUP, "lab"));
    assert_null(change_read(&b.change, KIND_GROUP, "none"));
    assert_true(change_guard(&b.change, KIND_GROUP, "lab"));
    assert_false(change_guard(&b.change, KIND_GROUP, "nowhere"));
    assert_true(change_empty(&b.change));
    assert_int_equal(item(&b, "lab")->revision, 1);
    assert_true(item(&b, "lab")->guarded);
    assert_int_equal(item(&b, "none")->revision, 0);
    assert_true(item(&b, "nowhere")->guarded);
}

static void change_reads_its_own_writes(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    change_put(&b.change, KIND_GROUP, "new", json_pack("{s:s}", "id", "new"));
    assert_int_equal(json_integer_value(json_object_get(change_read(&b.change, KIND_GROUP, "new"), "v")), 1);
    json_t *doc = change_edit(&b.change, KIND_GROUP, "lab");
    (void)json_object_set_new(doc, "display", json_string("Other"));
    assert_string_equal(json_string_value(json_object_get(change_read(&b.change, KIND_GROUP, "lab"), "display")),
                        "Other");
    assert_false(change_empty(&b.change));
    change_delete(&b.change, KIND_GROUP, "lab");
    assert_null(change_read(&b.change, KIND_GROUP, "lab"));
    assert_null(change_edit(&b.change, KIND_GROUP, "lab"));
    assert_int_equal(item(&b, "lab")->revision, 1);
    assert_int_equal(item(&b, "new")->revision, 0);
    /* The state is unchanged. */
    assert_non_null(state_find(b.state, KIND_GROUP, "lab"));
}

static void counters_are_not_guarded(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    change_put_unguarded(&b.change, KIND_COUNTER, "jobs", json_pack("{s:i}", "last", 3));
    assert_false(item(&b, "jobs")->guarded);
    change_put(&b.change, KIND_GROUP, "lab", json_object());
    change_put_unguarded(&b.change, KIND_GROUP, "lab", json_object());
    assert_true(item(&b, "lab")->guarded); /* an existing guard stays */
}

static void client_guard_is_checked(void **state)
{
    (void)state;
    BENCH b;
    struct berth_err err;
    bench_init(&b);
    assert_int_equal(change_expect(&b.change, KIND_GROUP, "lab", 1, &err), 0);
    assert_int_equal(change_expect(&b.change, KIND_GROUP, "none", 0, &err), 0);
    assert_int_equal(change_expect(&b.change, KIND_GROUP, "lab", 2, &err), -EAGAIN);
    assert_non_null(strstr(err.text, "revision 1, not 2"));
    assert_int_equal(change_expect(&b.change, KIND_GROUP, "none", 2, &err), -EAGAIN);
}

static void a_dry_run_shows_no_secret(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    change_put(&b.change, KIND_TOKEN, "t", json_pack("{s:s, s:s}", "user", "u", "hash", "5ec7e7"));
    change_put(&b.change, KIND_GROUP, "lab", json_pack("{s:s}", "display", "New"));
    change_put(&b.change, KIND_COUNTER, "jobs", json_object());
    json_t *shown = change_show(&b.change);
    char *text = json_dumps(shown, JSON_COMPACT);
    assert_int_equal(json_array_size(shown), 2);
    assert_null(strstr(text, "5ec7e7"));
    assert_non_null(strstr(text, "\"before\":{\"v\":1,\"id\":\"lab\",\"display\":\"Lab\"}"));
    assert_non_null(strstr(text, "\"after\":{\"display\":\"New\",\"v\":1}"));
    free(text);
    json_decref(shown);
}

static void lookup_with_many_items(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    for (int i = 0; i < 5000; i++)
        change_put(&b.change, KIND_GROUP, arena_fmt(&b.arena, "g%d", i), json_object());
    for (int i = 0; i < 5000; i++)
        assert_non_null(change_read(&b.change, KIND_GROUP, arena_fmt(&b.arena, "g%d", i)));
    assert_int_equal(b.change.items.len, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_objects_are_guarded),  cmocka_unit_test(change_reads_its_own_writes),
        cmocka_unit_test(counters_are_not_guarded),  cmocka_unit_test(client_guard_is_checked),
        cmocka_unit_test(a_dry_run_shows_no_secret), cmocka_unit_test(lookup_with_many_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
