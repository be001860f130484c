/* upgrade_test.c - documents of earlier versions are upgraded; newer and foreign documents are rejected. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/state/upgrade.h"

/* Two steps from an invented form: names in capitals became `name`, then got a colour. */
static void lower(json_t *doc)
{
    (void)json_object_set(doc, "name", json_object_get(doc, "NAME"));
    (void)json_object_del(doc, "NAME");
}

static void colour(json_t *doc)
{
    (void)json_object_set_new(doc, "colour", json_string("blue"));
}

static const struct upgrade rows[] = {
    {1, KIND_GROUP, lower },
    {2, KIND_GROUP, colour},
    {2, KIND_USER,  colour},
};
static const struct upgrades made_up = {rows, sizeof rows / sizeof *rows, 3};

static void put(struct store *store, const char *key, const char *doc)
{
    struct store_op op = {
        .key = key, .value = {doc, strlen(doc)}
    };
    struct store_txn txn = {.ops = &op, .ops_len = 1};
    assert_int_equal(store_submit(store, &txn, NULL, NULL, NULL), 0);
    store_drain(store);
}

static int compare(void *ctx, const struct store_entry *entry)
{
    const char *const *want = ctx;
    if (strcmp(entry->key, want[0]) != 0)
        return 0;
    assert_int_equal(entry->value.len, strlen(want[1]));
    assert_memory_equal(entry->value.at, want[1], entry->value.len);
    return 1;
}

static void expect(struct store *store, const char *key, const char *doc)
{
    const char *want[] = {key, doc};
    assert_int_equal(store_range(store, "", 0, compare, want, NULL), 1);
}

static void older_documents_are_rewritten(void **state)
{
    (void)state;
    struct store *store = store_memory_new();
    put(store, "groups/a", "{\"v\":1,\"NAME\":\"x\"}");
    put(store, "groups/b", "{\"v\":2,\"name\":\"y\"}");
    put(store, "groups/c", "{\"name\":\"z\",\"v\":3}");
    put(store, "users/u", "{\"v\":1}");
    put(store, "nodes/n", "{\"v\":1,\"note\":\"\\\"v\\\":3,\"}");
    assert_int_equal(upgrade_documents(store, &made_up, NULL), 0);
    expect(store, "groups/a", "{\"v\":3,\"name\":\"x\",\"colour\":\"blue\"}");
    expect(store, "groups/b", "{\"v\":3,\"name\":\"y\",\"colour\":\"blue\"}");
    expect(store, "groups/c", "{\"name\":\"z\",\"v\":3}");
    expect(store, "users/u", "{\"v\":3,\"colour\":\"blue\"}");
    expect(store, "nodes/n", "{\"v\":3,\"note\":\"\\\"v\\\":3,\"}");
    uint64_t revision = store_revision(store);
    assert_int_equal(upgrade_documents(store, &made_up, NULL), 0);
    assert_int_equal(store_revision(store), revision); /* nothing left to upgrade */
    store_close(store);
}

static void foreign_documents_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *doc;
        int rc;
    } bad[] = {
        {"{\"v\":4}",       -ENOTSUP},
        {"{\"v\":0}",       -ENOTSUP},
        {"{\"v\":\"1\"}",   -ENOTSUP},
        {"{}",              -ENOTSUP},
        {"[]",              -EBADMSG},
        {"\x00\x01garbage", -EBADMSG},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct berth_err err;
        struct store *store = store_memory_new();
        put(store, "groups/a", "{\"v\":1,\"NAME\":\"x\"}");
        put(store, "groups/bad", *bad[i].doc ? bad[i].doc : "?");
        assert_int_equal(upgrade_documents(store, &made_up, &err), bad[i].rc);
        assert_non_null(strstr(err.text, "groups/bad"));
        expect(store, "groups/a", "{\"v\":1,\"NAME\":\"x\"}");
        store_close(store);
    }
}

static void upgrade_table_ends_at_schema_version(void **state)
{
    (void)state;
    assert_int_equal(upgrades.version, SCHEMA_VERSION);
    for (size_t i = 0; i < upgrades.len; i++)
        assert_in_range(upgrades.at[i].from, 1, SCHEMA_VERSION - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_documents_are_rewritten),
        cmocka_unit_test(foreign_documents_are_refused),
        cmocka_unit_test(upgrade_table_ends_at_schema_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
