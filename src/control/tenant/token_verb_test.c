/* token_verb_test.c - tokens in the API: who creates, sees and revokes which, and what is never shown. */
#include "control/tenant/user_kit_test.h"

#include "control/tenant/user.h"

struct people {
    struct kit k;
    char boss[TOKEN_TEXT_MAX], ann[TOKEN_TEXT_MAX], bob[TOKEN_TEXT_MAX], op[TOKEN_TEXT_MAX], node[TOKEN_TEXT_MAX];
};

static void people_open(struct people *p)
{
    kit_open(&p->k);
    asked(&p->k, p->k.admin, "POST", "/v1/groups", "{\"id\": \"red\"}", 201);
    asked(&p->k, p->k.admin, "POST", "/v1/groups", "{\"id\": \"blue\"}", 201);
    asked(&p->k, p->k.admin, "POST", "/v1/nodes", "{\"id\": \"n1\", \"allocatable\": {\"cpu\": 4}}", 201);
    kit_user(&p->k, "boss", "red", "manager", p->boss);
    kit_user(&p->k, "ann", "red", "user", p->ann);
    kit_user(&p->k, "bob", "blue", "user", p->bob);
    kit_user(&p->k, "op", "", "operator", p->op);
    kit_token(&p->k, ":n1", p->node);
}

/* Returns the ID within a token's text. */
static const char *id_of(const char *token, char buf[static TOKEN_ID_LEN + 1])
{
    memcpy(buf, token + strlen("berth_"), TOKEN_ID_LEN);
    buf[TOKEN_ID_LEN] = '\0';
    return buf;
}

static void token_is_created_and_used(void **state)
{
    (void)state;
    struct people p;
    char token[TOKEN_TEXT_MAX], id[TOKEN_ID_LEN + 1], path[64];
    people_open(&p);
    asked(&p.k, p.ann, "POST", "/v1/tokens", "{\"note\": \"laptop\", \"ttl\": \"10m\"}", 201);
    assert_int_equal(json_object_size(p.k.body), 3); /* id, token, revision */
    assert_true(json_integer_value(json_object_get(p.k.body, "revision")) > 0);
    (void)snprintf(token, sizeof token, "%s", kit_text(p.k.body, "token"));
    assert_string_equal(kit_text(p.k.body, "id"), id_of(token, id));
    asked(&p.k, token, "GET", "/v1/whoami", NULL, 200);
    assert_string_equal(kit_text(p.k.body, "user"), "ann");

    (void)snprintf(path, sizeof path, "/v1/tokens/%s", id);
    asked(&p.k, p.ann, "GET", path, NULL, 200);
    assert_string_equal(kit_text(p.k.body, "note"), "laptop");
    assert_null(strstr(p.k.text, "hash"));
    assert_null(strstr(p.k.text, token + strlen("berth_") + TOKEN_ID_LEN + 1));

    p.k.now_ns += 599 * (int64_t)KIT_SECOND;
    asked(&p.k, token, "GET", "/v1/whoami", NULL, 200);
    p.k.now_ns += KIT_SECOND;
    asked(&p.k, token, "GET", "/v1/whoami", NULL, 401);
    asked(&p.k, p.ann, "DELETE", path, NULL, 204);
    asked(&p.k, p.ann, "GET", path, NULL, 404);
    asked(&p.k, p.ann, "DELETE", path, NULL, 404);

    /* A caller may revoke the token that it uses. */
    (void)snprintf(path, sizeof path, "/v1/tokens/%s", id_of(p.bob, id));
    asked(&p.k, p.bob, "DELETE", path, NULL, 204);
    asked(&p.k, p.bob, "GET", "/v1/whoami", NULL, 401);
    kit_close(&p.k);
}

static void invalid_bodies_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int want;
        const char *says;
    } rows[] = {
        {"{}",                                                       201, NULL                   },
        {"{\"user\": \"ANN\"}",                                      201, NULL                   },
        {"{\"expires\": \"2030-01-01T00:00:00Z\"}",                  201, NULL                   },
        {"{\"ttl\": null, \"expires\": null, \"role\": null}",       201, NULL                   },
        {"{\"role\": \"viewer\"}",                                   201, NULL                   },
        {"{\"expires\": \"1970-01-01T00:00:00Z\"}",                  400, "must be in the future"},
        {"{\"ttl\": 0}",                                             400, "must be in the future"},
        {"{\"ttl\": \"soon\"}",                                      400, "ttl"                  },
        {"{\"ttl\": \"1h\", \"expires\": \"2030-01-01T00:00:00Z\"}", 400, "either ttl or expires"},
        {"{\"user\": \"ann\", \"node\": \"n1\"}",                    400, "node"                 },
        {"{\"hash\": \"00\"}",                                       400, "hash"                 },
        {"{\"id\": \"abcdefghijkl\"}",                               400, "id"                   },
        {"{\"note\": \"a\\nb\"}",                                    400, "note"                 },
        {"{\"role\": \"nothing-like-it\"}",                          400, "no role"              },
        {"{\"role\": \"a b\"}",                                      400, "role"                 },
        {"{\"what\": 1}",                                            400, "what"                 },
        {"{\"user\": \"bob\"}",                                      404, NULL                   },
        {"{\"user\": \"no-such-user\"}",                             404, NULL                   },
        {"{\"node\": \"n1\"}",                                       403, NULL                   },
    };
    struct people p;
    people_open(&p);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t before = store_revision(p.k.store);
        int got = ask(&p.k, p.ann, "POST", "/v1/tokens", rows[i].body);
        if (got != rows[i].want || (rows[i].says && !strstr(kit_message(&p.k), rows[i].says)))
            fail_msg("%s: expected %d, got %d %s", rows[i].body, rows[i].want, got, p.k.text);
        assert_int_equal(store_revision(p.k.store) > before, got == 201);
    }
    /* The answer contains a secret that is not stored, so it cannot be repeated. */
    p.k.idempotency_key = "once";
    asked(&p.k, p.ann, "POST", "/v1/tokens", "{}", 400);
    size_t len;
    (void)state_list(control_state(p.k.control), KIND_REPLY, &len);
    assert_int_equal(len, 0);
    /* A dry run creates no secret. */
    asked(&p.k, p.ann, "POST", "/v1/tokens?dry_run=true", "{}", 200);
    assert_null(strstr(p.k.text, "berth_"));
    assert_null(strstr(p.k.text, "hash"));
    kit_close(&p.k);
}

static size_t listed(struct people *p, const char *who, const char *query)
{
    char path[128];
    (void)snprintf(path, sizeof path, "/v1/tokens%s", query);
    asked(&p->k, who, "GET", path, NULL, 200);
    assert_null(strstr(p->k.text, "hash"));
    return json_array_size(json_object_get(p->k.body, "items"));
}

static void callers_see_only_permitted_tokens(void **state)
{
    (void)state;
    struct people p;
    char id[TOKEN_ID_LEN + 1], path[64];
    people_open(&p);
    assert_int_equal(listed(&p, p.k.admin, ""), 6); /* its own, four users', the node's */
    assert_int_equal(listed(&p, p.ann, ""), 1);
    assert_int_equal(listed(&p, p.boss, ""), 2); /* boss and ann */
    assert_int_equal(listed(&p, p.op, ""), 2);   /* its own and the node's */
    assert_int_equal(listed(&p, p.node, ""), 0);
    assert_int_equal(listed(&p, p.k.admin, "?user=ann"), 1);
    assert_int_equal(listed(&p, p.k.admin, "?node=n1"), 1);
    assert_int_equal(listed(&p, p.boss, "?user=bob"), 0);

    /* In pages, each token once. */
    char after[64] = "?limit=4";
    assert_int_equal(listed(&p, p.k.admin, after), 4);
    (void)snprintf(after, sizeof after, "?limit=4&after=%s", kit_text(p.k.body, "continue"));
    assert_int_equal(listed(&p, p.k.admin, after), 2);
    assert_null(json_object_get(p.k.body, "continue"));

    /* Another user's token gets the same answer as a token that never existed. */
    (void)snprintf(path, sizeof path, "/v1/tokens/%s", id_of(p.bob, id));
    asked(&p.k, p.ann, "GET", path, NULL, 404);
    CLEANUP(mem) char *said = mem_strdup(p.k.text);
    for (char *at; (at = strstr(said, id));)
        memcpy(at, "aaaaaaaaaaaa", TOKEN_ID_LEN);
    asked(&p.k, p.ann, "GET", "/v1/tokens/aaaaaaaaaaaa", NULL, 404);
    assert_string_equal(said, p.k.text);
    asked(&p.k, p.ann, "DELETE", path, NULL, 404);
    asked(&p.k, p.boss, "DELETE", path, NULL, 404);
    asked(&p.k, p.op, "DELETE", path, NULL, 404);
    (void)snprintf(path, sizeof path, "/v1/tokens/%s", id_of(p.ann, id));
    asked(&p.k, p.boss, "DELETE", path, NULL, 204);
    asked(&p.k, p.ann, "GET", "/v1/whoami", NULL, 401);
    kit_close(&p.k);
}

static void nodes_have_tokens(void **state)
{
    (void)state;
    struct people p;
    char id[TOKEN_ID_LEN + 1], path[64];
    people_open(&p);
    asked(&p.k, p.node, "GET", "/v1/whoami", NULL, 200);
    assert_string_equal(kit_text(p.k.body, "node"), "n1");
    assert_string_equal(kit_text(p.k.body, "role"), "agent");
    asked(&p.k, p.node, "POST", "/v1/tokens", "{}", 403);
    asked(&p.k, p.node, "POST", "/v1/tokens", "{\"node\": \"n1\"}", 403);
    asked(&p.k, p.op, "POST", "/v1/tokens", "{\"node\": \"N1\"}", 201);
    asked(&p.k, p.op, "POST", "/v1/tokens", "{\"node\": \"n2\"}", 404);
    asked(&p.k, p.op, "POST", "/v1/tokens", "{\"node\": \"n1\", \"role\": \"admin\"}", 400);
    asked(&p.k, p.op, "POST", "/v1/tokens", "{\"user\": \"ann\"}", 403);
    (void)snprintf(path, sizeof path, "/v1/tokens/%s", id_of(p.node, id));
    asked(&p.k, p.boss, "DELETE", path, NULL, 404);
    asked(&p.k, p.node, "DELETE", path, NULL, 404); /* an agent owns no tokens */
    asked(&p.k, p.op, "DELETE", path, NULL, 204);
    asked(&p.k, p.node, "GET", "/v1/whoami", NULL, 401);
    kit_close(&p.k);
}

/* A restricted token cannot create a less restricted one. */
static void restricted_token_stays_restricted(void **state)
{
    (void)state;
    struct people p;
    char narrow[TOKEN_TEXT_MAX], second[TOKEN_TEXT_MAX];
    people_open(&p);
    asked(&p.k, p.boss, "POST", "/v1/tokens", "{\"role\": \"user\"}", 201);
    (void)snprintf(narrow, sizeof narrow, "%s", kit_text(p.k.body, "token"));
    asked(&p.k, narrow, "POST", "/v1/tokens", "{\"role\": \"manager\"}", 403);
    asked(&p.k, narrow, "POST", "/v1/tokens", "{\"user\": \"ann\"}", 404); /* no permission over users */
    asked(&p.k, narrow, "POST", "/v1/tokens", "{}", 201);                  /* as restricted as the token itself */
    (void)snprintf(second, sizeof second, "%s", kit_text(p.k.body, "token"));
    asked(&p.k, second, "GET", "/v1/whoami", NULL, 200);
    assert_string_equal(kit_text(p.k.body, "role"), "user");
    assert_null(json_object_get(json_object_get(p.k.body, "permissions"), "users"));
    /* A role with more permissions than the user's adds nothing, so it is not rejected. */
    asked(&p.k, p.k.admin, "POST", "/v1/tokens", "{\"user\": \"ann\", \"role\": \"admin\"}", 201);
    (void)snprintf(second, sizeof second, "%s", kit_text(p.k.body, "token"));
    asked(&p.k, second, "GET", "/v1/users/bob", NULL, 404);
    asked(&p.k, second, "POST", "/v1/groups", "{\"id\": \"g\"}", 403);
    kit_close(&p.k);
}

static void number_of_tokens_is_bounded(void **state)
{
    (void)state;
    struct people p;
    people_open(&p);
    /* only the fixed limit applies */
    asked(&p.k, p.k.admin, "PATCH", "/v1/system/settings", "{\"cap_tokens\": 0}", 200);
    for (int i = 1; i < TOKENS_USER_MAX; i++)
        asked(&p.k, p.ann, "POST", "/v1/tokens", "{}", 201);
    asked(&p.k, p.ann, "POST", "/v1/tokens", "{}", 409);
    asked(&p.k, p.bob, "POST", "/v1/tokens", "{}", 201);
    kit_close(&p.k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_is_created_and_used),         cmocka_unit_test(invalid_bodies_are_rejected),
        cmocka_unit_test(callers_see_only_permitted_tokens), cmocka_unit_test(nodes_have_tokens),
        cmocka_unit_test(restricted_token_stays_restricted), cmocka_unit_test(number_of_tokens_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
