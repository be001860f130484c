#include "control/api/permit.h"

#include <errno.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "control/api/permit_kit_test.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

static void world_init(struct world *w)
{
    world_open(w);
    world_put(w, KIND_ROLE, "half", "{\"v\":1,\"id\":\"half\",\"permissions\":{\"read\":\"all\",\"submit\":\"own\"}}");
    world_put(w, KIND_USER, "ann", "{\"v\":1,\"id\":\"ann\",\"group\":\"red\",\"role\":\"admin\"}");
    world_put(w, KIND_USER, "mia", "{\"v\":1,\"id\":\"mia\",\"group\":\"red\",\"role\":\"manager\"}");
    world_put(w, KIND_USER, "hal", "{\"v\":1,\"id\":\"hal\",\"group\":\"red\",\"role\":\"half\"}");
    world_put(w, KIND_USER, "odd", "{\"v\":1,\"id\":\"odd\",\"role\":\"nowhere-defined\"}");
    world_put(w, KIND_NODE, "n1", "{\"v\":1,\"id\":\"n1\",\"allocatable\":{\"cpu\":4}}");
}

enum { NOW = 1000 };
static const int64_t now_ns = (int64_t)NOW * 1000000000;

/* Adds a token to the state; `serial` makes the token unique. */
static void token_add(struct world *w, unsigned char serial, const char *user, const char *node, const char *role,
                      int64_t expires_ns, char text[static TOKEN_TEXT_MAX], char id[static TOKEN_ID_LEN + 1])
{
    unsigned char random[40];
    const char *made;
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (unsigned char)(serial * 41u + i * 7u);
    CLEANUP(json)
    json_t *doc = token_make(random, user, node, role, "for a test", now_ns, expires_ns, text, &made, &arena);
    char *stored = json_dumps(doc, JSON_COMPACT);
    world_put(w, KIND_TOKEN, made, stored);
    memcpy(id, made, TOKEN_ID_LEN + 1);
    free(stored);
    arena_done(&arena);
}

/* ---- permissions of roles --------------------------------------------------------------------------------------- */

/* Per permission: o, g, x if the role has it on own objects, on objects of the own group, on objects of another
 * group. */
static const struct {
    const char *role;
    const char *read, *cluster, *submit, *manage, *nodes, *users, *system, *audit, *report;
} expected_rows[] = {
    {"admin",    "ogx", "ogx", "ogx", "ogx", "ogx", "ogx", "ogx", "ogx", "ogx"},
    {"operator", "ogx", "ogx", "ogx", "ogx", "ogx", "---", "ogx", "---", "---"},
    {"auditor",  "ogx", "ogx", "---", "---", "---", "---", "---", "ogx", "---"},
    {"manager",  "og-", "ogx", "og-", "og-", "---", "og-", "---", "---", "---"},
    {"user",     "o--", "ogx", "o--", "o--", "---", "---", "---", "---", "---"},
    {"viewer",   "og-", "ogx", "---", "---", "---", "---", "---", "---", "---"},
    {"agent",    "---", "---", "---", "---", "---", "---", "---", "---", "o--"},
};

static void every_role_and_permission(void **state)
{
    (void)state;
    static const char *const names[] = {"read",  "cluster", "submit", "manage", "nodes",
                                        "users", "system",  "audit",  "report"};
    size_t rows = sizeof expected_rows / sizeof *expected_rows;
    assert_null(role_at(rows)); /* every role has a row here */
    for (size_t r = 0; r < rows; r++) {
        const struct role *role = role_find(expected_rows[r].role);
        assert_non_null(role);
        bool agent = strcmp(role->name, "agent") == 0;
        struct caller c = {.user = agent ? "" : "me",
                           .node = agent ? "me" : "",
                           .group = agent ? "" : "red",
                           .role = role->name,
                           .token = ""};
        memcpy(c.scope, role->scope, sizeof c.scope);
        const char *const *want = &expected_rows[r].read;
        for (size_t p = 0; p < sizeof names / sizeof *names; p++) {
            int permission = permission_find(names[p]);
            assert_true(permission > PERMIT_SELF);
            char got[4] = {permit(&c, (enum permission)permission, "me", "red") ? 'o' : '-',
                           permit(&c, (enum permission)permission, "you", "red") ? 'g' : '-',
                           permit(&c, (enum permission)permission, "you", "blue") ? 'x' : '-', 0};
            if (strcmp(got, want[p]) != 0)
                fail_msg("%s: %s: expected %s, got %s", role->name, names[p], want[p], got);
            /* An object without an owner belongs to no user and no group. */
            assert_int_equal(permit(&c, (enum permission)permission, "", ""), want[p][2] == 'x');
        }
        assert_true(permit(&c, PERMIT_PUBLIC, "", ""));
        assert_true(permit(&c, PERMIT_SELF, "", ""));
    }
}

static void unknown_caller_has_only_public_permissions(void **state)
{
    (void)state;
    const struct caller nobody = {.user = "", .group = "", .role = "", .node = "", .token = ""};
    for (int p = PERMIT_PUBLIC; p < PERMISSIONS; p++) {
        assert_int_equal(permit(&nobody, (enum permission)p, "", ""), p == PERMIT_PUBLIC);
        assert_int_equal(permit(&nobody, (enum permission)p, "me", "red"), p == PERMIT_PUBLIC);
    }
    /* For a user without a group, SCOPE_GROUP reaches the user's own objects, but not objects without a group. */
    struct caller alone = {.user = "me", .group = "", .role = "manager", .node = "", .token = ""};
    alone.scope[PERMIT_READ] = SCOPE_GROUP;
    assert_true(permit(&alone, PERMIT_READ, "me", ""));
    assert_false(permit(&alone, PERMIT_READ, "you", ""));
    /* A user with the name of a node is not that node, and vice versa. */
    alone.scope[PERMIT_REPORT] = SCOPE_OWN;
    assert_false(permit(&alone, PERMIT_REPORT, "me", ""));
    struct caller agent = {.user = "", .group = "", .role = "agent", .node = "me", .token = ""};
    agent.scope[PERMIT_READ] = SCOPE_OWN;
    assert_false(permit(&agent, PERMIT_READ, "me", ""));
}

static void names_of_permissions_and_scopes_round_trip(void **state)
{
    (void)state;
    for (int p = 0; p < PERMISSIONS; p++)
        assert_int_equal(permission_find(permission_name((enum permission)p)), p);
    for (int s = SCOPE_NONE; s <= SCOPE_ALL; s++)
        assert_int_equal(scope_find(scope_name((enum scope)s)), s);
    assert_int_equal(permission_find("READ"), -1);
    assert_int_equal(permission_find(""), -1);
    assert_int_equal(scope_find("everything"), -1);
    assert_null(role_find("Admin"));
}

static void role_documents_are_validated(void **state)
{
    (void)state;
    static const struct {
        const char *doc, *error; /* NULL: valid */
    } rows[] = {
        {"{\"id\":\"r\",\"permissions\":{\"read\":\"all\",\"submit\":\"own\",\"nodes\":\"none\"}}", NULL                           },
        {"{\"id\":\"r\"}",                                                                          NULL                           },
        {"{\"id\":\"r\",\"permissions\":{\"fly\":\"all\"}}",                                        "unknown permission \"fly\""   },
        {"{\"id\":\"r\",\"permissions\":{\"self\":\"none\"}}",                                      "unknown permission \"self\""  },
        {"{\"id\":\"r\",\"permissions\":{\"public\":\"all\"}}",                                     "unknown permission \"public\""},
        {"{\"id\":\"r\",\"permissions\":{\"read\":\"most\"}}",                                      "found \"most\""               },
        {"{\"id\":\"r\",\"permissions\":{\"audit\":\"own\"}}",                                      "expected none or all"         },
        {"{\"id\":\"r\",\"permissions\":{\"system\":\"group\"}}",                                   "expected none or all"         },
        {"{\"id\":\"r\",\"permissions\":{\"read\":3}}",                                             "none, own, group or all"      },
        {"{\"id\":\"r\",\"permissions\":[]}",                                                       "permissions"                  },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum scope scope[PERMISSIONS] = {[PERMIT_AUDIT] = SCOPE_OWN};
        struct berth_err err = {0};
        CLEANUP(json) json_t *doc = json_loads(rows[i].doc, 0, NULL);
        int rc = role_doc_scopes(doc, scope, &err);
        if (rows[i].error) {
            assert_int_equal(rc, -EINVAL);
            assert_non_null(strstr(err.text, rows[i].error));
            assert_int_equal(scope[PERMIT_AUDIT], SCOPE_OWN); /* output unchanged on failure */
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(scope[PERMIT_AUDIT], SCOPE_NONE);
        assert_int_equal(scope[PERMIT_SELF], SCOPE_ALL);
        assert_int_equal(scope[PERMIT_READ], i == 0 ? SCOPE_ALL : SCOPE_NONE);
    }
}

static void caller_covers_only_own_scopes(void **state)
{
    (void)state;
    for (size_t a = 0; role_at(a); a++) {
        struct caller c = {.user = "me"};
        memcpy(c.scope, role_at(a)->scope, sizeof c.scope);
        assert_true(caller_covers(&c, role_at(a)->scope));
        assert_int_equal(caller_covers(&c, role_find("admin")->scope), a == 0);
    }
    struct caller manager = {.user = "me"};
    memcpy(manager.scope, role_find("manager")->scope, sizeof manager.scope);
    assert_true(caller_covers(&manager, role_find("user")->scope));
    assert_true(caller_covers(&manager, role_find("viewer")->scope));
    assert_false(caller_covers(&manager, role_find("auditor")->scope));
    assert_false(caller_covers(&manager, role_find("operator")->scope));
    assert_false(caller_covers(&manager, role_find("agent")->scope));
}

/* ---- tokens ----------------------------------------------------------------------------------------------------- */

static void token_has_scopes_of_its_user(void **state)
{
    (void)state;
    struct world w;
    struct caller c;
    char text[TOKEN_TEXT_MAX], id[TOKEN_ID_LEN + 1];
    world_init(&w);
    token_add(&w, 1, "mia", NULL, NULL, BERTH_NEVER_NS, text, id);
    assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), 0);
    assert_string_equal(c.user, "mia");
    assert_string_equal(c.group, "red");
    assert_string_equal(c.role, "manager");
    assert_string_equal(c.node, "");
    assert_string_equal(c.token, id);
    assert_memory_equal(c.scope, role_find("manager")->scope, sizeof c.scope);

    token_add(&w, 2, NULL, "n1", "agent", BERTH_NEVER_NS, text, id);
    assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), 0);
    assert_string_equal(c.user, "");
    assert_string_equal(c.node, "n1");
    assert_string_equal(c.role, "agent");
    assert_true(permit(&c, PERMIT_REPORT, "n1", ""));
    assert_false(permit(&c, PERMIT_REPORT, "n2", ""));

    token_add(&w, 3, "hal", NULL, NULL, BERTH_NEVER_NS, text, id);
    assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), 0);
    assert_int_equal(c.scope[PERMIT_READ], SCOPE_ALL);
    assert_int_equal(c.scope[PERMIT_SUBMIT], SCOPE_OWN);
    assert_int_equal(c.scope[PERMIT_MANAGE], SCOPE_NONE);
    world_done(&w);
}

static void token_role_only_reduces_scopes(void **state)
{
    (void)state;
    struct world w;
    struct caller c;
    char text[TOKEN_TEXT_MAX], id[TOKEN_ID_LEN + 1];
    world_init(&w);
    token_add(&w, 1, "ann", NULL, "viewer", BERTH_NEVER_NS, text, id);
    assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), 0);
    assert_string_equal(c.role, "viewer");
    assert_memory_equal(c.scope, role_find("viewer")->scope, sizeof c.scope);

    token_add(&w, 2, "mia", NULL, "admin", BERTH_NEVER_NS, text, id); /* a wider role adds nothing */
    assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), 0);
    assert_memory_equal(c.scope, role_find("manager")->scope, sizeof c.scope);

    token_add(&w, 3, "mia", NULL, "half", BERTH_NEVER_NS, text, id); /* a role that is partly wider, partly narrower */
    assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), 0);
    assert_int_equal(c.scope[PERMIT_READ], SCOPE_GROUP);
    assert_int_equal(c.scope[PERMIT_SUBMIT], SCOPE_OWN);
    assert_int_equal(c.scope[PERMIT_USERS], SCOPE_NONE);
    assert_int_equal(c.scope[PERMIT_SELF], SCOPE_ALL);

    token_add(&w, 4, "mia", NULL, "gone", BERTH_NEVER_NS, text, id); /* an undefined role permits nothing */
    assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), -EPERM);
    world_done(&w);
}

/* Checks that every refusal has the same text, so a client learns nothing from it. */
static void refused(const struct state *s, const char *token, const char *peer, int64_t at_ns)
{
    static const char canary[] = "untouched";
    struct caller c = {.user = canary};
    struct berth_err err = {0}, missing = {0};
    assert_int_equal(caller_find(s, NULL, NULL, at_ns, &c, &missing), -EPERM);
    assert_int_equal(caller_find(s, token, peer, at_ns, &c, &err), -EPERM);
    assert_string_equal(err.text, missing.text);
    assert_ptr_equal(c.user, canary);
}

static void invalid_tokens_are_refused(void **state)
{
    (void)state;
    struct world w;
    struct caller c;
    char text[TOKEN_TEXT_MAX], id[TOKEN_ID_LEN + 1], bad[TOKEN_TEXT_MAX + 8];
    world_init(&w);
    token_add(&w, 1, "mia", NULL, NULL, BERTH_NEVER_NS, text, id);
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++) { /* every other character at every position */
        static const char others[] = "aZ09_- \n\x01\x7f\xff.=+/";
        for (size_t k = 0; k < sizeof others - 1; k++) {
            if (text[i] == others[k])
                continue;
            memcpy(bad, text, len + 1);
            bad[i] = others[k];
            refused(w.state, bad, NULL, now_ns);
        }
    }
    for (size_t i = 0; i < len; i++) { /* every shorter text */
        memcpy(bad, text, len + 1);
        bad[i] = '\0';
        refused(w.state, bad, NULL, now_ns);
        refused(w.state, text + i + 1, NULL, now_ns);
    }
    (void)snprintf(bad, sizeof bad, "%sA", text);
    refused(w.state, bad, NULL, now_ns);
    (void)snprintf(bad, sizeof bad, "%s=", text);
    refused(w.state, bad, NULL, now_ns);
    (void)snprintf(bad, sizeof bad, "BERTH%s", text + 5);
    refused(w.state, bad, NULL, now_ns);
    refused(w.state, "", NULL, now_ns);
    refused(w.state, "berth__", NULL, now_ns);

    size_t much = 1 << 20;
    char *vast = mem_alloc(much + 1);
    memset(vast, 'a', much);
    vast[much] = '\0';
    refused(w.state, vast, NULL, now_ns);
    memcpy(vast, text, len);
    refused(w.state, vast, NULL, now_ns);
    mem_free(vast);

    assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), 0); /* the unmodified token is valid */
    world_done(&w);
}

static void revoked_and_expired_tokens_are_refused(void **state)
{
    (void)state;
    struct world w;
    struct caller c;
    char text[TOKEN_TEXT_MAX], id[TOKEN_ID_LEN + 1], late[TOKEN_TEXT_MAX], late_id[TOKEN_ID_LEN + 1];
    char node[TOKEN_TEXT_MAX], node_id[TOKEN_ID_LEN + 1], odd[TOKEN_TEXT_MAX], odd_id[TOKEN_ID_LEN + 1];
    world_init(&w);
    token_add(&w, 1, "mia", NULL, NULL, BERTH_NEVER_NS, text, id);
    token_add(&w, 2, "mia", NULL, NULL, now_ns, late, late_id);
    token_add(&w, 3, NULL, "n1", NULL, BERTH_NEVER_NS, node, node_id);
    token_add(&w, 4, "odd", NULL, NULL, BERTH_NEVER_NS, odd, odd_id);

    assert_int_equal(caller_find(w.state, late, NULL, now_ns - 1, &c, NULL), 0);
    assert_true(token_is_valid(w.state, late_id, now_ns - 1));
    refused(w.state, late, NULL, now_ns);
    assert_false(token_is_valid(w.state, late_id, now_ns));
    refused(w.state, odd, NULL, now_ns); /* the role of its user is undefined */

    assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), 0);
    assert_true(token_is_valid(w.state, id, now_ns));
    world_put(&w, KIND_USER, "mia",
              "{\"v\":1,\"id\":\"mia\",\"group\":\"red\",\"role\":\"manager\",\"disabled\":true}");
    refused(w.state, text, NULL, now_ns);
    assert_false(token_is_valid(w.state, id, now_ns));
    world_put(&w, KIND_USER, "mia", "{\"v\":1,\"id\":\"mia\",\"group\":\"red\",\"role\":\"manager\"}");
    assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), 0);
    world_drop(&w, KIND_USER, "mia");
    refused(w.state, text, NULL, now_ns);
    assert_false(token_is_valid(w.state, id, now_ns));

    assert_int_equal(caller_find(w.state, node, NULL, now_ns, &c, NULL), 0);
    world_drop(&w, KIND_NODE, "n1");
    refused(w.state, node, NULL, now_ns);

    world_put(&w, KIND_USER, "mia", "{\"v\":1,\"id\":\"mia\",\"role\":\"user\"}");
    world_drop(&w, KIND_TOKEN, id);
    refused(w.state, text, NULL, now_ns);
    assert_false(token_is_valid(w.state, id, now_ns));
    assert_false(token_is_valid(w.state, "nosuchtoken1", now_ns));
    world_done(&w);
}

static void certificates_identify_users_and_nodes(void **state)
{
    (void)state;
    struct world w;
    struct caller c;
    char text[TOKEN_TEXT_MAX], id[TOKEN_ID_LEN + 1];
    world_init(&w);
    assert_int_equal(caller_find(w.state, NULL, "node:n1", now_ns, &c, NULL), 0);
    assert_string_equal(c.node, "n1");
    assert_string_equal(c.token, "");
    assert_true(caller_unchanged(w.state, &c, now_ns));
    assert_int_equal(caller_find(w.state, NULL, "user:ann", now_ns, &c, NULL), 0);
    assert_string_equal(c.user, "ann");
    refused(w.state, NULL, "node:n2", now_ns);
    refused(w.state, NULL, "user:n1", now_ns);
    refused(w.state, NULL, "node:ann", now_ns);
    refused(w.state, NULL, "ann", now_ns);
    refused(w.state, NULL, "user:", now_ns);
    refused(w.state, NULL, "", now_ns);
    refused(w.state, "berth_wrong", "user:ann", now_ns); /* a certificate does not make up for a wrong token */
    token_add(&w, 1, "mia", NULL, NULL, BERTH_NEVER_NS, text, id);
    assert_int_equal(caller_find(w.state, text, "user:ann", now_ns, &c, NULL), 0);
    assert_string_equal(c.user, "mia");
    world_done(&w);
}

static void changed_caller_is_detected(void **state)
{
    (void)state;
    static const char *const after[] = {
        "{\"v\":1,\"id\":\"mia\",\"group\":\"blue\",\"role\":\"manager\"}",
        "{\"v\":1,\"id\":\"mia\",\"group\":\"red\",\"role\":\"user\"}",
        "{\"v\":1,\"id\":\"mia\",\"group\":\"red\",\"role\":\"manager\",\"disabled\":true}",
    };
    struct world w;
    char text[TOKEN_TEXT_MAX], id[TOKEN_ID_LEN + 1];
    world_init(&w);
    token_add(&w, 1, "mia", NULL, NULL, BERTH_NEVER_NS, text, id);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        struct caller c;
        assert_int_equal(caller_find(w.state, text, NULL, now_ns, &c, NULL), 0);
        char user[64], group[64], role[64], token[64];
        (void)snprintf(user, sizeof user, "%s", c.user);
        (void)snprintf(group, sizeof group, "%s", c.group);
        (void)snprintf(role, sizeof role, "%s", c.role);
        (void)snprintf(token, sizeof token, "%s", c.token);
        c.user = user, c.group = group, c.role = role, c.token = token; /* copies, as a stream keeps them */
        assert_true(caller_unchanged(w.state, &c, now_ns));
        world_put(&w, KIND_USER, "mia", after[i]);
        assert_false(caller_unchanged(w.state, &c, now_ns));
        world_put(&w, KIND_USER, "mia", "{\"v\":1,\"id\":\"mia\",\"group\":\"red\",\"role\":\"manager\"}");
        assert_true(caller_unchanged(w.state, &c, now_ns));
    }
    world_done(&w);
}

static void created_tokens_can_be_parsed(void **state)
{
    (void)state;
    unsigned char random[40], hash[TOKEN_HASH_LEN], want[TOKEN_HASH_LEN];
    char text[TOKEN_TEXT_MAX], id[TOKEN_ID_LEN + 1], hex[2 * TOKEN_HASH_LEN + 1], folded[ID_MAX + 1];
    const char *made;
    struct arena arena;
    arena_init(&arena);
    for (unsigned fill = 0; fill < 256; fill++) { /* covers '_' and '-' of base64 */
        memset(random, (int)fill, sizeof random);
        random[0] = (unsigned char)(255 - fill);
        CLEANUP(json) json_t *doc = token_make(random, "mia", "", "viewer", NULL, now_ns, now_ns, text, &made, &arena);
        assert_true(token_read(text, id, hash));
        assert_string_equal(id, made);
        assert_int_equal(id_fold("id", id, folded, NULL), 0);
        assert_string_equal(folded, id);
        (void)crypto_generichash(want, sizeof want, random + 8, 32, NULL, 0);
        assert_memory_equal(hash, want, sizeof want);
        assert_string_equal(json_string_value(json_object_get(doc, "hash")),
                            sodium_bin2hex(hex, sizeof hex, want, sizeof want));
        char *stored = json_dumps(doc, JSON_COMPACT);
        assert_null(strstr(stored, text + strlen("berth_") + TOKEN_ID_LEN + 1));
        assert_null(json_object_get(doc, "node"));
        assert_null(json_object_get(doc, "note"));
        free(stored);
        struct token_doc back;
        assert_int_equal(token_doc_read(doc, &arena, &back, NULL), 0);
        assert_string_equal(back.user, "mia");
        assert_string_equal(back.role, "viewer");
        assert_true(back.expires_ns == now_ns);
    }
    arena_done(&arena);
}

static int start(void **state)
{
    (void)state;
    return sodium_init() < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_role_and_permission),
        cmocka_unit_test(unknown_caller_has_only_public_permissions),
        cmocka_unit_test(names_of_permissions_and_scopes_round_trip),
        cmocka_unit_test(role_documents_are_validated),
        cmocka_unit_test(caller_covers_only_own_scopes),
        cmocka_unit_test(token_has_scopes_of_its_user),
        cmocka_unit_test(token_role_only_reduces_scopes),
        cmocka_unit_test(invalid_tokens_are_refused),
        cmocka_unit_test(revoked_and_expired_tokens_are_refused),
        cmocka_unit_test(certificates_identify_users_and_nodes),
        cmocka_unit_test(changed_caller_is_detected),
        cmocka_unit_test(created_tokens_can_be_parsed),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
