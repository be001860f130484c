/* user_doc_test.c - documents of users, groups, roles and tokens. */
#include "wire/doc/doc_kit_test.h"
#include "wire/doc/queue_doc.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void user_document_is_read_or_refused(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g = given("{id: alice, v: 1, display: Alice B., group: staff, role: manager, level: -3, "
                           "disabled: true, created: 1, generation: 1}");
    struct user_doc d = {0};
    READ(&g, user_doc_read, &d);
    assert_string_equal(d.meta.id, "alice");
    assert_string_equal(d.group, "staff");
    assert_string_equal(d.role, "manager");
    assert_int_equal(d.level, -3);
    assert_true(d.disabled);

    static const struct refusal rows[] = {
        {"{group: staff}",           "id: missing"            },
        {"{id: a, level: 1001}",     "level: expected"        },
        {"{id: a, level: high}",     "level: expected"        },
        {"{id: a, disabled: 'yes'}", "disabled: expected true"},
        {"{id: a, password: x}",     "unknown key"            },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, user_doc_read(bad.doc, &bad.arena, &d, &bad.err));
        assert_int_equal(d.level, -3);
    }
}

static void group_document_is_read_or_refused(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: staff, display: The staff}");
    struct group_doc d = {0};
    READ(&g, group_doc_read, &d);
    assert_string_equal(d.meta.display, "The staff");
    CLEANUP(given) struct given bad = given("{id: staff, members: []}");
    assert_true(group_doc_read(bad.doc, &bad.arena, &d, &bad.err) < 0);
    CLEANUP(given) struct given none = given("{display: x}");
    assert_true(group_doc_read(none.doc, &none.arena, &d, &none.err) < 0);
    assert_string_equal(none.err.text, "id: missing");
}

static void role_document_is_read_or_refused(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: night-shift, permissions: {read: all, manage: group}}");
    struct role_doc d = {0};
    READ(&g, role_doc_read, &d);
    assert_int_equal(d.permissions_len, 2);
    assert_string_equal(d.permissions[1].key, "manage");
    assert_string_equal(d.permissions[1].value, "group");

    static const struct refusal rows[] = {
        {"{id: r, permissions: [read]}",       "permissions: expected an object" },
        {"{id: r, permissions: {read: true}}", "permissions: read: expected none"},
        {"{id: r, permissions: {read: null}}", "permissions: read: expected none"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, role_doc_read(bad.doc, &bad.arena, &d, &bad.err));
    }
}

static void token_document_is_read_or_refused(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: t1, user: alice, role: viewer, note: ci, hash: " HASH "}");
    struct token_doc d = {0};
    READ(&g, token_doc_read, &d);
    assert_string_equal(d.user, "alice");
    assert_string_equal(d.hash, HASH);
    assert_true(d.expires_ns == BERTH_NEVER_NS);
    CLEANUP(given) struct given agent = given("{id: t2, node: n1, expires: 5}");
    READ(&agent, token_doc_read, &d);
    assert_string_equal(d.node, "n1");
    assert_int_equal(d.expires_ns, 5000000000);

    static const struct refusal rows[] = {
        {"{id: t, user: a, node: n}",           "node: a token belongs to either a user or a node"},
        {"{id: t, user: a, hash: secret}",      "hash: expected 64"                               },
        {"{id: t, user: a, hash: 5}",           "hash: expected 64"                               },
        {"{id: t, user: a, expires: tomorrow}", "expires: expected a time"                        },
        {"{user: a}",                           "id: missing"                                     },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, token_doc_read(bad.doc, &bad.arena, &d, &bad.err));
        assert_null(strstr(bad.err.text, "secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_document_is_read_or_refused),
        cmocka_unit_test(group_document_is_read_or_refused),
        cmocka_unit_test(role_document_is_read_or_refused),
        cmocka_unit_test(token_document_is_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
