/* txn_test.c - transactions of several changes: all or none are applied, each with the checks of a single change. */
#include "control/api/kit_test.h"

#define ALICE "user:alice"
#define BOB "user:bob"

static int open_kit(void **state)
{
    struct kit *k = mem_alloc(sizeof *k);
    kit_open(k);
    kit_add_users(k);
    *state = k;
    return 0;
}

static int close_kit(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

static uint64_t revision_of(const struct kit *k)
{
    return state_revision(control_state(k->control));
}

static void all_changes_have_one_revision(void **state)
{
    struct kit *k = *state;
    CALL(k, 200, ADMIN, "POST", "/v1/txn",
         "{changes: [{op: put, kind: node, id: N1, object: {allocatable: {cpu: 4}}},"
         "{op: put, kind: user, id: dora, object: {group: red, role: user}},"
         "{op: put, kind: volume, id: data, object: {owner: dora}},"
         "{op: put, kind: app, id: web.dora, object: {volumes: [data]}},"
         "{op: put, kind: job, object: {owner: dora}}, {op: put, kind: job, object: {}},"
         "{op: put, kind: app, id: web.dora, object: {volumes: [data], replicas: 3}},"
         "{op: put, kind: app, id: gone, object: {}}, {op: delete, kind: app, id: gone}]}");
    assert_int_equal(json_array_size(kit_at(k, "results")), 9);
    assert_string_equal(kit_text(k, "results/0/id"), "n1");
    assert_int_equal(kit_number(k, "results/4/id"), 1);
    assert_int_equal(kit_number(k, "results/5/id"), 2);
    int64_t revision = kit_number(k, "revision");
    static const char *const there[] = {"/v1/nodes/n1",      "/v1/users/dora", "/v1/volumes/data",
                                        "/v1/apps/web.dora", "/v1/jobs/1",     "/v1/jobs/2"};
    for (size_t i = 0; i < COUNT(there); i++) {
        CALL(k, 200, ADMIN, "GET", there[i], NULL);
        assert_int_equal(kit_number(k, "revision"), revision);
    }
    CALL(k, 404, ADMIN, "GET", "/v1/apps/gone", NULL);
    CALL(k, 200, ADMIN, "GET", "/v1/apps/web.dora", NULL);
    assert_int_equal(kit_number(k, "replicas"), 3);
    assert_string_equal(kit_text(k, "group"), "red");
}

static void one_failed_change_rejects_transaction(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, BOB, "POST", "/v1/apps", "{name: web}");
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: own}");
    uint64_t revision = revision_of(k);
    static const struct {
        const char *who, *body;
        int status;
        const char *words;
    } rows[] = {
        {ALICE,     "{}",                                                                                                 400, "changes: missing"                          },
        {ALICE,     "{changes: []}",                                                                                      400, "changes: missing"                          },
        {ALICE,     "{changes: {}}",                                                                                      400, "changes: expected a list"                  },
        {ALICE,     "{changes: [{}]}",                                                                                    400, "changes[0]: op: missing"                   },
        {ALICE,     "{changes: [{op: put}]}",                                                                             400, "changes[0]: kind: missing"                 },
        {ALICE,     "{changes: [{op: post, kind: app}]}",                                                                 400, "op: expected put or delete"                },
        {ALICE,     "{changes: [{op: put, kind: app}]}",                                                                  400, "object: missing"                           },
        {ALICE,     "{changes: [{op: delete, kind: app}]}",                                                               400, "id: missing"                               },
        {ALICE,     "{changes: [{op: delete, kind: app, id: own, object: {}}]}",                                          400, "not allowed with a delete"                 },
        {ALICE,     "{changes: [{op: put, kind: app, object: []}]}",                                                      400, "expected an object"                        },
        {ALICE,     "{changes: [{op: put, kind: instance, id: 1, object: {}}]}",                                          400, "cannot be changed in a transaction"        },
        {ALICE,     "{changes: [{op: put, kind: token, id: a, object: {}}]}",                                             400, "cannot be changed in a transaction"        },
        {ALICE,     "{changes: [{op: put, kind: setting, id: system, object: {}}]}",                                      400,
         "cannot be changed in a transaction"                                                                                                                              },
        {ALICE,
         "{changes: [{op: put, kind: app, id: a, object: {}}, {op: put, kind: app, id: b, object: {replicas: x}}]}",      400, "changes[1]: replicas"                      },
        {ALICE,     "{changes: [{op: put, kind: app, id: a, object: {}}, {op: put, kind: node, id: n, object: {}}]}",     403,
         "changes[1]: role user may not create nodes"                                                                                                                      },
        {ALICE,
         "{changes: [{op: put, kind: app, id: a, object: {}}, {op: put, kind: user, id: eve, object: {role: admin}}]}",   403, "changes[1]: role user may not create users"},
        {ALICE,     "{changes: [{op: delete, kind: app, id: web.bob}]}",                                                  404, "changes[0]: no app"                        },
        {ALICE,     "{changes: [{op: delete, kind: app, id: nothing.bob}]}",                                              404, "changes[0]: no app"                        },
        {ALICE,     "{changes: [{op: put, kind: app, id: web.bob, object: {}}]}",                                         404, "changes[0]: no app"                        },
        {ALICE,     "{changes: [{op: delete, kind: app, id: own}, {op: delete, kind: app, id: own}]}",                    404,
         "changes[1]: no app"                                                                                                                                              },
        {ALICE,     "{guards: [{kind: app, id: own, revision: 1}], changes: [{op: delete, kind: app, id: own}]}",         409,
         "guards[0]: app own.alice is at revision"                                                                                                                         },
        {ALICE,     "{guards: [{kind: app, id: own, revision: 0}], changes: [{op: delete, kind: app, id: own}]}",         409,
         "guards[0]"                                                                                                                                                       },
        {ALICE,     "{guards: [{kind: app, id: web.bob, revision: 0}], changes: [{op: delete, kind: app, id: own}]}",     404,
         "guards[0]: no app"                                                                                                                                               },
        {ALICE,     "{guards: [{kind: app, id: nothing.bob, revision: 0}], changes: [{op: delete, kind: app, id: own}]}",
         404,                                                                                                                  "guards[0]: no app"                         },
        {ALICE,     "{guards: [{kind: app, id: web.bob, revision: 5}], changes: [{op: delete, kind: app, id: own}]}",     404,
         "guards[0]: no app"                                                                                                                                               },
        {ALICE,     "{guards: [{kind: app, id: nothing, revision: 5}], changes: [{op: delete, kind: app, id: own}]}",     404,
         "guards[0]"                                                                                                                                                       },
        {ALICE,     "{guards: [{kind: app, id: own}], changes: [{op: delete, kind: app, id: own}]}",                      400,
         "revision: missing"                                                                                                                                               },
        {ALICE,     "{guards: [{kind: app}], changes: [{op: delete, kind: app, id: own}]}",                               400, "id: missing"                               },
        {ALICE,     "{guards: [{kind: reply, id: a, revision: 0}], changes: [{op: delete, kind: app, id: own}]}",         400,
         "kind"                                                                                                                                                            },
        {"node:n1", "{changes: [{op: put, kind: app, id: a, object: {}}]}",                                               401, "no valid token"                            },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, rows[i].who, "POST", "/v1/txn", rows[i].body);
        SAYS(k, rows[i].words);
        assert_int_equal(revision_of(k), revision);
    }
}

static void valid_guards_accept_transaction(void **state)
{
    struct kit *k = *state;
    char body[256];
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: own}");
    (void)snprintf(body, sizeof body,
                   "{guards: [{kind: apps, id: own, revision: %lld}, {kind: app, id: other, revision: 0}], "
                   "changes: [{op: put, kind: app, id: other, object: {}}]}",
                   (long long)kit_number(k, "revision"));
    CALL(k, 200, ALICE, "POST", "/v1/txn", body);
    CALL(k, 409, ALICE, "POST", "/v1/txn", body);
    CALL(k, 200, ALICE, "GET", "/v1/apps/other", NULL);
}

static void dry_run_shows_changes_and_writes_nothing(void **state)
{
    struct kit *k = *state;
    uint64_t revision = revision_of(k);
    CALL(k, 200, ALICE, "POST", "/v1/txn?dry_run=true",
         "{changes: [{op: put, kind: job, object: {}}, {op: put, kind: job, object: {}}, {op: put, kind: app, id: a, "
         "object: {}}]}");
    assert_int_equal(json_array_size(kit_at(k, "changes")), 3);
    assert_int_equal(kit_number(k, "answer/results/0/id"), 1);
    assert_int_equal(kit_number(k, "answer/results/1/id"), 2);
    assert_int_equal(revision_of(k), revision);
}

static void recreated_object_has_higher_revision(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 4}}");
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web}");
    kit_plan(k);
    CALL(k, 200, ALICE, "POST", "/v1/txn",
         "{changes: [{op: delete, kind: app, id: web}, {op: put, kind: app, id: web, object: {weight: 5}}]}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_int_equal(kit_number(k, "generation"), 2);
    assert_int_equal(kit_number(k, "weight"), 5);
}

static void volume_is_deleted_with_its_workload(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/volumes", "{id: data}");
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{volumes: data}");
    CALL(k, 409, ALICE, "POST", "/v1/txn", "{changes: [{op: delete, kind: volume, id: data}]}");
    CALL(k, 200, ALICE, "POST", "/v1/txn",
         "{changes: [{op: delete, kind: job, id: 1}, {op: delete, kind: volume, id: data}]}");
    CALL(k, 201, ALICE, "POST", "/v1/volumes", "{id: data}");
    CALL(k, 409, ALICE, "POST", "/v1/txn",
         "{changes: [{op: put, kind: app, id: web, object: {volumes: [data]}}, {op: delete, kind: volume, id: data}]}");
    SAYS(k, "changes[1]: volume data is mounted by web.alice");
    CALL(k, 400, ALICE, "POST", "/v1/txn",
         "{changes: [{op: delete, kind: volume, id: data}, {op: put, kind: app, id: web, object: {volumes: [data]}}]}");
}

static void number_of_changes_is_bounded(void **state)
{
    struct kit *k = *state;
    CLEANUP(mem) char *body = mem_alloc(64 * 1024);
    size_t len = (size_t)sprintf(body, "{changes: [");
    for (int i = 0; i < 33; i++)
        len += (size_t)sprintf(body + len, "%s{op: delete, kind: volume, id: v%d}", i ? "," : "", i);
    (void)sprintf(body + len, "]}");
    CALL(k, 400, ALICE, "POST", "/v1/txn", body);
    SAYS(k, "33 volumes and secrets are deleted at once");
    len = (size_t)sprintf(body, "{changes: [");
    for (int i = 0; i < 1001; i++)
        len += (size_t)sprintf(body + len, "%s{op: delete, kind: app, id: a}", i ? "," : "");
    (void)sprintf(body + len, "]}");
    CALL(k, 413, ALICE, "POST", "/v1/txn", body);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_changes_have_one_revision),        TEST(one_failed_change_rejects_transaction),
        TEST(valid_guards_accept_transaction),      TEST(dry_run_shows_changes_and_writes_nothing),
        TEST(recreated_object_has_higher_revision), TEST(volume_is_deleted_with_its_workload),
        TEST(number_of_changes_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
