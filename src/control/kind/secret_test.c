/* secret_test.c - secrets: written, used and deleted, and never readable. */
#include "control/api/kit_test.h"

#define ALICE "user:alice"
#define BOB "user:bob"
#define CAROL "user:carol"
#define N1 "node:n1"
#define N2 "node:n2"
#define PLAIN "hunter2-of-the-tests"

static int open_kit(void **state)
{
    struct kit *k = mem_alloc(sizeof *k);
    kit_open(k);
    kit_add_users(k);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 8Gi}}");
    CALL(k, 201, ALICE, "POST", "/v1/secrets", "{name: db, data: {password: " PLAIN ", user: alice}}");
    *state = k;
    return 0;
}

static int close_kit(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

static int log_look(void *ctx, const struct store_record *record)
{
    ++*(size_t *)ctx;
    assert_null(memmem(record->record.at, record->record.len, PLAIN, strlen(PLAIN)));
    return 0;
}

static int entry_look(void *ctx, const struct store_entry *entry)
{
    ++*(size_t *)ctx;
    assert_null(memmem(entry->value.at, entry->value.len, PLAIN, strlen(PLAIN)));
    assert_null(strstr(entry->key, PLAIN));
    return 0;
}

/* Checks that neither the store nor its log contains the text. */
static void store_is_clean(struct kit *k)
{
    size_t records = 0, entries = 0;
    struct berth_err err = {0};
    assert_true(store_log(k->store, 1, log_look, &records, &err) >= 0);
    assert_true(store_range(k->store, "", 0, entry_look, &entries, &err) >= 0);
    assert_true(records > 0 && entries > 0);
}

static void no_answer_contains_the_text(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *who, *method, *url, *body;
        int status;
    } rows[] = {
        {ALICE, "GET",  "/v1/secrets",                 NULL,                                    200},
        {ALICE, "GET",  "/v1/secrets/db",              NULL,                                    200},
        {ADMIN, "GET",  "/v1/secrets/db.alice",        NULL,                                    200},
        {ADMIN, "GET",  "/v1/audit",                   NULL,                                    200},
        {ALICE, "GET",  "/v1/users/alice/export",      NULL,                                    200},
        {ALICE, "PUT",  "/v1/secrets/db?dry_run=true", "{data: {password: " PLAIN ", b: x}}",   200},
        {ALICE, "PUT",  "/v1/secrets/db",              "{data: {password: {a: " PLAIN "}}}",    400},
        {ALICE, "POST", "/v1/secrets",                 "{name: x, data: [" PLAIN "]}",          400},
        {ALICE, "POST", "/v1/secrets",                 "{name: x, data: {'" PLAIN " ': a}}",    400},
        {BOB,   "GET",  "/v1/secrets/db.alice",        NULL,                                    404},
        {ALICE, "POST", "/v1/txn",
         "{changes: [{op: put, kind: secret, id: db, object: {data: {password: " PLAIN "}}}]}", 200},
        {ALICE, "GET",  "/v1/events",                  NULL,                                    200},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, rows[i].who, rows[i].method, rows[i].url, rows[i].body);
        if (strstr(k->text, PLAIN) || strstr(k->text, "sealed"))
            fail_msg("%s %s: %s", rows[i].method, rows[i].url, k->text);
    }
    CALL(k, 200, ALICE, "GET", "/v1/secrets/db", NULL);
    assert_int_equal(kit_number(k, "keys/password"), strlen(PLAIN));
    assert_int_equal(kit_number(k, "keys/user"), INT64_MIN); /* the transaction has replaced it */
    store_is_clean(k);
}

static void unchanged_secret_writes_nothing(void **state)
{
    struct kit *k = *state;
    CALL(k, 200, ALICE, "GET", "/v1/secrets/db", NULL);
    int64_t revision = kit_number(k, "revision"), generation = kit_number(k, "generation");
    CALL(k, 200, ALICE, "PUT", "/v1/secrets/db", "{data: {password: " PLAIN ", user: alice}}");
    CALL(k, 200, ALICE, "PUT", "/v1/secrets/db", "{keys: {password: 3}}"); /* the document as it was read */
    CALL(k, 200, ALICE, "GET", "/v1/secrets/db", NULL);
    assert_int_equal(kit_number(k, "revision"), revision);
    CALL(k, 200, ALICE, "PUT", "/v1/secrets/db", "{data: {password: other}}");
    CALL(k, 200, ALICE, "GET", "/v1/secrets/db", NULL);
    assert_int_equal(kit_number(k, "generation"), generation + 1);
    k->key = "k1";
    CALL(k, 400, ALICE, "PUT", "/v1/secrets/db", "{data: {password: other}}");
    SAYS(k, "Idempotency-Key");
    CALL(k, 400, ALICE, "POST", "/v1/secrets", "{name: empty}");
    SAYS(k, "data: missing");
}

static void workloads_use_only_their_owners_secrets(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *who, *body, *words;
    } rows[] = {
        {ALICE, "{name: a, files: [{path: /p, secret: no, key: password}]}",       "has no secret \\\"no\\\""      },
        {ALICE, "{name: a, files: [{path: /p, secret: db, key: pass}]}",           "has no key \\\"pass\\\""       },
        {BOB,   "{name: a, files: [{path: /p, secret: db.alice, key: password}]}", "has no secret \\\"db.alice\\\""},
        {BOB,   "{name: a, files: [{path: /p, secret: db, key: password}]}",       "has no secret \\\"db\\\""      },
        {ADMIN, "{name: a, files: [{path: /p, secret: db.alice, key: password}]}", "has no secret"                 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, 400, rows[i].who, "POST", "/v1/apps", rows[i].body);
        SAYS(k, rows[i].words);
    }
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, files: [{path: /p, secret: db, key: password}]}");
    CALL(k, 409, ALICE, "DELETE", "/v1/secrets/db", NULL);
    SAYS(k, "is used by web.alice");
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/web", "{files: null}");
    CALL(k, 204, ALICE, "DELETE", "/v1/secrets/db", NULL);
    CALL(k, 404, ALICE, "GET", "/v1/secrets/db", NULL);
}

static void agent_gets_secrets_of_its_instances_only(void **state)
{
    struct kit *k = *state;
    static const char url[] = "/v1/nodes/n1/secrets/db.alice";
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n2, allocatable: {cpu: 8}, state: cordoned}");
    CALL(k, 201, BOB, "POST", "/v1/secrets", "{name: db, data: {password: of-bob}}");
    CALL(k, 404, N1, "GET", url, NULL);
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, files: [{path: /p, secret: db, key: password}]}");
    CALL(k, 404, N1, "GET", url, NULL); /* not placed yet */
    kit_plan(k);
    CALL(k, 200, N1, "GET", url, NULL);
    assert_string_equal(kit_text(k, "data/password"), PLAIN);
    static const struct {
        const char *who, *url;
        int status;
    } rows[] = {
        {N1,    "/v1/nodes/n1/secrets/db.bob",   404},
        {N1,    "/v1/nodes/n1/secrets/db",       404},
        {N2,    "/v1/nodes/n1/secrets/db.alice", 404},
        {N2,    "/v1/nodes/n2/secrets/db.alice", 404},
        {ADMIN, "/v1/nodes/n1/secrets/db.alice", 403},
        {ALICE, "/v1/nodes/n1/secrets/db.alice", 403},
        {N1,    "/v1/secrets/db.alice",          403},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, rows[i].who, "GET", rows[i].url, NULL);
        assert_null(strstr(k->text, PLAIN));
    }
    CALL(k, 200, N1, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 1, instances: [{id: 1, state: running}]}");
    CALL(k, 200, N1, "GET", url, NULL);
    CALL(k, 200, ALICE, "POST", "/v1/apps/web/stop", NULL);
    kit_plan(k);
    CALL(k, 404, N1, "GET", url, NULL); /* stopping */
    store_is_clean(k);
}

static void secrets_are_deleted_with_their_owner(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, files: [{path: /p, secret: db, key: password}]}");
    CALL(k, 409, ADMIN, "DELETE", "/v1/users/alice", NULL);
    CALL(k, 204, ADMIN, "DELETE", "/v1/users/alice?force=true", NULL);
    CALL(k, 404, ADMIN, "GET", "/v1/secrets/db.alice", NULL);
}

static void another_key_opens_nothing(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, files: [{path: /p, secret: db, key: password}]}");
    kit_plan(k);
    k->other_key = true;
    kit_restart(k);
    CALL(k, 503, N1, "GET", "/v1/nodes/n1/secrets/db.alice", NULL);
    SAYS(k, "set the secret again");
    CALL(k, 200, ALICE, "PUT", "/v1/secrets/db", "{data: {password: again}}");
    CALL(k, 200, N1, "GET", "/v1/nodes/n1/secrets/db.alice", NULL);
    assert_string_equal(kit_text(k, "data/password"), "again");
}

/* The sealed text contains its secret's ID: a writer of the store cannot replace it by another secret's. */
static void sealed_text_is_bound_to_its_secret(void **state)
{
    struct kit *k = *state;
    char doc[4096];
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, files: [{path: /p, secret: db, key: password}]}");
    CALL(k, 201, BOB, "POST", "/v1/secrets", "{name: db, data: {password: of-bob}}");
    kit_plan(k);
    CLEANUP(json) json_t *bobs = object_doc(state_find(control_state(k->control), KIND_SECRET, "db.bob"));
    (void)snprintf(doc, sizeof doc, "{v: 1, id: db.alice, name: db, owner: alice, keys: {password: 6}, sealed: '%s'}",
                   json_string_value(json_object_get(bobs, "sealed")));
    kit_put(k, KIND_SECRET, "db.alice", doc);
    CALL(k, 503, N1, "GET", "/v1/nodes/n1/secrets/db.alice", NULL);
    assert_null(strstr(k->text, "of-bob"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
    const struct CMUnitTest tests[] = {
        CASE(no_answer_contains_the_text),
        CASE(unchanged_secret_writes_nothing),
        CASE(workloads_use_only_their_owners_secrets),
        CASE(agent_gets_secrets_of_its_instances_only),
        CASE(secrets_are_deleted_with_their_owner),
        CASE(another_key_opens_nothing),
        CASE(sealed_text_is_bound_to_its_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
