/* migration_test.c - migrations of instances through the API: requested, listed, undone, refused; settings of
 * migrations.
 */
#include "control/api/kit_test.h"

#include "control/journal/replay.h"
#include "control/sched/plan_policy.h"

#define ALICE "user:alice"
#define BOB "user:bob"

/* Three nodes; web.alice with two running pods, instances 1 and 2. */
static void cluster(struct kit *k)
{
    char body[128];
    kit_open(k);
    kit_add_users(k);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(body, sizeof body, "{id: n%zu, allocatable: {cpu: 4, memory: 8Gi}}", i);
        CALL(k, 201, ADMIN, "POST", "/v1/nodes", body);
    }
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, replicas: 2, requests: {cpu: 1}}");
    kit_plan(k);
}

static const char *node_of(struct kit *k, const char *instance)
{
    char url[64];
    static char node[64];
    (void)snprintf(url, sizeof url, "/v1/instances/%s", instance);
    CALL(k, 200, ADMIN, "GET", url, NULL);
    (void)snprintf(node, sizeof node, "%s", kit_text(k, "node"));
    return node;
}

/* Reports the instance's state as the agent of its node. */
static void reported(struct kit *k, const char *instance, const char *state, unsigned seq)
{
    char url[128], who[80], body[160], node[64];
    (void)snprintf(node, sizeof node, "%s", node_of(k, instance));
    (void)snprintf(url, sizeof url, "/v1/nodes/%s/report", node);
    (void)snprintf(who, sizeof who, "node:%s", node);
    (void)snprintf(body, sizeof body, "{epoch: 1, seq: %u, instances: [{id: %s, state: %s}]}", seq, instance, state);
    CALL(k, 200, who, "POST", url, body);
}

static void replays(struct kit *k)
{
    struct replay_options options = {0};
    struct replay_result result;
    struct berth_err err;
    if (replay_run(k->store, &options, &result, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(result.different, 0);
}

/* Checks phase and progress of the only migration. */
static void moves(struct kit *k, const char *phase, int64_t progress)
{
    CALL(k, 200, ALICE, "GET", "/v1/migrations", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 1);
    assert_string_equal(kit_text(k, "items/0/phase"), phase);
    assert_int_equal(kit_number(k, "items/0/progress"), progress);
}

static void migration_runs_from_request_to_end(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k);
    reported(&k, "1", "running", 1);
    CALL(&k, 200, ALICE, "POST", "/v1/instances/1/migrate?dry_run=true", "{to: n2}");
    CALL(&k, 200, ALICE, "GET", "/v1/migrations", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    CALL(&k, 200, ALICE, "POST", "/v1/instances/1/migrate", "{to: n2}");
    moves(&k, "waiting", 0);
    assert_int_equal(kit_number(&k, "items/0/id"), 1);
    assert_string_equal(kit_text(&k, "items/0/workload"), "web.alice");
    assert_string_equal(kit_text(&k, "items/0/from"), "n0");
    assert_string_equal(kit_text(&k, "items/0/to"), "n2");
    assert_string_equal(kit_text(&k, "items/0/cause"), "by-hand");
    CALL(&k, 200, BOB, "GET", "/v1/migrations", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    kit_plan(&k);
    moves(&k, "starting", 25);
    assert_int_equal(kit_number(&k, "items/0/instance"), 3);
    CALL(&k, 409, ALICE, "POST", "/v1/instances/1/migrate", NULL);
    SAYS(&k, "already migrating");
    kit_restart(&k); /* the migration survives a restart */
    reported(&k, "3", "starting", 1);
    moves(&k, "starting", 50);
    reported(&k, "3", "running", 2);
    moves(&k, "switching", 75);
    kit_plan(&k);
    moves(&k, "stopping", 90);
    CALL(&k, 409, ALICE, "POST", "/v1/migrations/1/undo", NULL);
    SAYS(&k, "migrate the new instance back");
    reported(&k, "1", "stopped", 2);
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/migrations", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    CALL(&k, 404, ALICE, "GET", "/v1/instances/1", NULL);
    assert_string_equal(node_of(&k, "3"), "n2");
    replays(&k);
    kit_done(&k);
}

static void migration_is_undone(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k);
    CALL(&k, 200, ALICE, "POST", "/v1/instances/1/migrate", NULL);
    kit_plan(&k);
    moves(&k, "starting", 25);
    CALL(&k, 404, BOB, "POST", "/v1/migrations/1/undo", NULL);
    CALL(&k, 200, ALICE, "POST", "/v1/migrations/1/undo", NULL);
    kit_plan(&k);
    moves(&k, "undone", 100);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances/3", NULL);
    assert_string_equal(kit_text(&k, "state"), "stopping");
    CALL(&k, 200, ADMIN, "GET", "/v1/instances/1", NULL);
    assert_string_equal(kit_text(&k, "state"), "assigned");
    CALL(&k, 409, ALICE, "POST", "/v1/migrations/1/undo", NULL);
    SAYS(&k, "not migrating");
    kit_sleep(&k, 3601);
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/migrations", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    replays(&k);
    kit_done(&k);
}

/* A plan that was about to stop the old instance is made again if the migration is undone meanwhile. */
static void undo_is_never_lost(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k);
    CALL(&k, 200, ALICE, "POST", "/v1/instances/1/migrate", "{to: n2}");
    kit_plan(&k);
    reported(&k, "3", "running", 1);
    CALL(&k, 200, ALICE, "POST", "/v1/migrations/1/undo", NULL);
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances/3", NULL);
    assert_string_equal(kit_text(&k, "state"), "stopping");
    kit_done(&k);
}

static void unmovable_instance_is_rejected(void **state)
{
    static const struct {
        const char *who, *url, *body;
        int status;
        const char *says;
    } rows[] = {
        {ALICE, "/v1/instances/1/migrate",  "{to: nowhere}", 404, "nowhere"                  },
        {ALICE, "/v1/instances/1/migrate",  "{to: n0}",      409, "already on n0"            },
        {ALICE, "/v1/instances/1/migrate",  "{where: n1}",   400, "where"                    },
        {ALICE, "/v1/instances/1/migrate",  "{to: 5}",       404, "5"                        },
        {BOB,   "/v1/instances/1/migrate",  NULL,            404, "instance"                 },
        {ALICE, "/v1/instances/99/migrate", NULL,            404, "instance"                 },
        {ALICE, "/v1/instances/3/migrate",  NULL,            409, "does not belong to an app"},
        {ALICE, "/v1/migrations/1/undo",    NULL,            409, "not migrating"            },
        {ALICE, "/v1/migrations/99/undo",   NULL,            404, "instance"                 },
    };
    (void)state;
    struct kit k;
    cluster(&k);
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{name: j}");
    kit_plan(&k);
    uint64_t revision = store_revision(k.store);
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(&k, rows[i].status, rows[i].who, "POST", rows[i].url, rows[i].body);
        SAYS(&k, rows[i].says);
    }
    assert_int_equal(store_revision(k.store), revision);
    CALL(&k, 200, ALICE, "POST", "/v1/apps/web/stop", NULL);
    CALL(&k, 409, ALICE, "POST", "/v1/instances/1/migrate", NULL);
    SAYS(&k, "is stopped");
    kit_done(&k);
}

static void drain_is_not_undone(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/drain", NULL);
    kit_plan(&k);
    moves(&k, "starting", 25);
    assert_string_equal(kit_text(&k, "items/0/cause"), "drained");
    CALL(&k, 409, ALICE, "POST", "/v1/migrations/1/undo", NULL);
    SAYS(&k, "enable it");
    kit_done(&k);
}

static void settings_become_a_policy(void **state)
{
    (void)state;
    struct kit k;
    struct plan_policy p;
    struct berth_policy usual = berth_policy_usual();
    kit_open(&k);
    kit_add_users(&k);
    plan_policy_read(control_state(k.control), &p);
    assert_int_equal(p.policy.rebalance.moves, usual.rebalance.moves);
    assert_int_equal(p.policy.pressure.high_percent, usual.pressure.high_percent);
    assert_int_equal(p.policy.pressure.hold_ns, usual.pressure.hold_ns);
    assert_true(p.policy.shed);
    assert_int_equal(p.policy.headroom.reserves_len, 0);
    plan_policy_done(&p);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings",
         "{rebalance: 'off', shed: 'off', pressure_percent: 50, pressure_low_percent: 60, headroom_percent: 5,"
         " headroom_priority: -3}");
    plan_policy_read(control_state(k.control), &p);
    assert_int_equal(p.policy.rebalance.moves, 0);
    assert_int_equal(p.policy.pressure.low_percent, 50);
    assert_false(p.policy.shed);
    assert_int_equal(p.policy.headroom.reserves_len, 2);
    assert_int_equal(p.policy.headroom.reserves[0].permille, 50);
    assert_int_equal(p.policy.headroom.priority, -3);
    plan_policy_done(&p);
    CALL(&k, 400, ADMIN, "PATCH", "/v1/system/settings", "{rebalance: maybe}");
    CALL(&k, 400, ADMIN, "PATCH", "/v1/system/settings", "{pressure_hold_s: 0}");
    kit_done(&k);
}

/* Checks why the instances of a draining node wait; NULL: no instance is left. */
static void waits(struct kit *k, const char *node, const char *what)
{
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/nodes/%s", node);
    CALL(k, 200, ADMIN, "GET", url, NULL);
    const json_t *waiting = kit_at(k, "status/drain/waiting");
    if (!what)
        assert_int_equal(json_array_size(waiting), 0);
    for (size_t i = 0; what && i < json_array_size(waiting); i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(waiting, i), "for")), what);
    assert_true(!what || json_array_size(waiting) > 0);
}

/* An instance that moves a moment later is not reported as unplaceable. */
static void drain_status_names_the_blocker(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k);
    reported(&k, "1", "running", 1);
    reported(&k, "2", "running", 1);
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/drain", NULL);
    waits(&k, "n0", "plan");
    kit_plan(&k);
    waits(&k, "n0", "min_available");
    kit_done(&k);

    kit_open(&k);
    kit_add_users(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n0, allocatable: {cpu: 4, memory: 8Gi}}");
    CALL(&k, 201, ALICE, "POST", "/v1/apps", "{name: web, replicas: 1, requests: {cpu: 1}, min_available: 1}");
    kit_plan(&k);
    reported(&k, "1", "running", 1);
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/drain", NULL);
    waits(&k, "n0", "plan");
    kit_plan(&k);
    waits(&k, "n0", "place");
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(migration_runs_from_request_to_end),
        cmocka_unit_test(migration_is_undone),
        cmocka_unit_test(undo_is_never_lost),
        cmocka_unit_test(unmovable_instance_is_rejected),
        cmocka_unit_test(drain_is_not_undone),
        cmocka_unit_test(settings_become_a_policy),
        cmocka_unit_test(drain_status_names_the_blocker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
