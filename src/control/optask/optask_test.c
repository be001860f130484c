/* optask_test.c - OpTasks: keys and contents, permissions, order of steps, agents' reports. */
#include "control/optask/optask_kit_test.h"

#include <errno.h>

#include "control/watch/derived.h"

static void invalid_optask_is_rejected(void **state)
{
    static const struct {
        const char *label, *body, *want;
    } rows[] = {
        {"no script",      "{id: x, nodes: [a]}",                                       "script: missing"        },
        {"nowhere",        "{id: x, script: 'true'}",                                   "nodes: missing"         },
        {"no such node",   "{id: x, script: 'true', nodes: [zz]}",                      "there is no node zz"    },
        {"both",           "{id: x, script: 'true', nodes: [a], require: [{key: a}]}",  "either require or nodes"},
        {"init by name",   "{id: x, script: 'true', nodes: [a], init: true}",           "that join later"        },
        {"no such label",  "{id: x, script: 'true', require: [{key: no, op: Exists}]}", "matches no node"        },
        {"other hash",
         "{id: x, script: 'true', nodes: [a], sha256: "
         "'0000000000000000000000000000000000000000000000000000000000000000'}",         "another hash"           },
        {"no hash",        "{id: x, script: 'true', nodes: [a], sha256: abc}",          "another hash"           },
        {"language",       "{id: x, script: 'true', nodes: [a], language: perl}",       "language"               },
        {"timeout",        "{id: x, script: 'true', nodes: [a], timeout: 8d}",          "timeout"                },
        {"none at a time", "{id: x, script: 'true', nodes: [a], parallel: 0}",          "parallel"               },
        {"unknown key",    "{id: x, script: 'true', nodes: [a], when: now}",            "when"                   },
        {"bad key",        "{id: 'a b', script: 'true', nodes: [a]}",                   "id"                     },
    };
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        kit_call(&k, ADMIN, "POST", "/v1/optasks", rows[i].body);
        if (k.status != 400 || !strstr(k.text, rows[i].want))
            fail_msg("%s: %d %s", rows[i].label, k.status, k.text);
    }
    kit_done(&k);
}

static void key_has_one_content(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "");
    node_add(&k, "b", "");
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', nodes: [a]}");
    assert_int_equal(k.status, 201);
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{id: X, script: 'true', nodes: [a], language: shell, args: []}");
    assert_int_equal(k.status, 200);
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'false', nodes: [a]}");
    assert_int_equal(k.status, 409);
    kit_call(&k, ADMIN, "PUT", "/v1/optasks/x", "{script: 'true', args: [a], nodes: [a]}");
    assert_int_equal(k.status, 409);
    kit_call(&k, ADMIN, "PATCH", "/v1/optasks/x", "{undo: 'true'}");
    assert_int_equal(k.status, 409);
    kit_call(&k, ADMIN, "PATCH", "/v1/optasks/x", "{parallel: 3}");
    assert_int_equal(k.status, 200);
    /* With more nodes, finished steps stay finished. */
    assert_string_equal(stands(&k, "x"), "running: a=running");
    say(&k, "a", "x", "{attempt: 1, state: done}");
    assert_string_equal(stands(&k, "x"), "done: a=done");
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', nodes: [a, b]}");
    assert_int_equal(k.status, 200);
    assert_string_equal(stands(&k, "x"), "running: a=done b=running");
    /* Without a key the OpTask gets one that depends on the content. */
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{script: 'echo', ready: user, nodes: [a]}");
    assert_int_equal(k.status, 201);
    assert_int_equal(strncmp(json_string_value(json_object_get(k.body, "id")), "user-", 5), 0);
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{script: 'echo', ready: user, nodes: [a]}");
    assert_int_equal(k.status, 200);
    kit_done(&k);
}

static void steps_run_one_by_one_until_a_failure(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "");
    node_add(&k, "b", "");
    node_add(&k, "c", "");
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', undo: 'true', nodes: [a, b, c]}");
    assert_string_equal(stands(&k, "x"), "running: a=running b=pending c=pending");
    say(&k, "b", "x", "{attempt: 1, state: done}"); /* not started there: the report is ignored */
    say(&k, "a", "x", "{attempt: 1, state: done}");
    assert_int_equal(k.status, 200);
    assert_string_equal(stands(&k, "x"), "running: a=done b=running c=pending");
    say(&k, "a", "x", "{attempt: 1, state: failed, fault: script}"); /* late: the step is done */
    say(&k, "b", "x", "{attempt: 1, state: undoing, fault: timeout}");
    assert_string_equal(stands(&k, "x"), "running: a=done b=undoing/timeout c=pending");
    say(&k, "b", "x", "{attempt: 1, state: undone, fault: timeout, error: too long}");
    assert_string_equal(stands(&k, "x"), "stopped: a=done b=undone/timeout c=pending");
    kit_restart(&k);
    assert_string_equal(stands(&k, "x"), "stopped: a=done b=undone/timeout c=pending");
    kit_call(&k, ADMIN, "POST", "/v1/optasks/x/retry", "{nodes: [a]}");
    assert_int_equal(k.status, 409);
    kit_call(&k, ADMIN, "POST", "/v1/optasks/x/retry", "{nodes: [z]}");
    assert_int_equal(k.status, 400);
    kit_call(&k, ADMIN, "POST", "/v1/optasks/x/retry", "{}");
    assert_int_equal(k.status, 200);
    assert_string_equal(stands(&k, "x"), "running: a=done b=running c=pending");
    say(&k, "b", "x", "{attempt: 1, state: done}"); /* report of the first attempt, which has ended */
    assert_string_equal(stands(&k, "x"), "running: a=done b=running c=pending");
    kit_call(&k, ADMIN, "DELETE", "/v1/optasks/x", NULL);
    assert_int_equal(k.status, 409);
    say(&k, "b", "x", "{attempt: 2, state: done}");
    say(&k, "b", "x", "{attempt: 2, state: done}");
    assert_string_equal(stands(&k, "x"), "running: a=done b=done c=running");
    say(&k, "c", "x", "{attempt: 1, state: done}");
    assert_string_equal(stands(&k, "x"), "done: a=done b=done c=done");
    kit_call(&k, ADMIN, "POST", "/v1/optasks/x/undo", "{nodes: [a, b]}");
    assert_int_equal(k.status, 200);
    assert_string_equal(stands(&k, "x"), "running: a=undoing b=pending c=done");
    say(&k, "a", "x", "{attempt: 2, state: undone}");
    say(&k, "b", "x", "{attempt: 3, state: undone}");
    assert_string_equal(stands(&k, "x"), "running: a=undone b=undoing c=done");
    say(&k, "b", "x", "{attempt: 3, state: undone}");
    assert_string_equal(stands(&k, "x"), "done: a=undone b=undone c=done");
    kit_call(&k, ADMIN, "DELETE", "/v1/optasks/x", NULL);
    assert_int_equal(k.status, 204);
    kit_call(&k, ADMIN, "GET", "/v1/optasks/x", NULL);
    assert_int_equal(k.status, 404);
    kit_done(&k);
}

static void parallel_and_max_failures_are_followed(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "labels: {disk: ssd}");
    node_add(&k, "b", "labels: {disk: ssd}");
    node_add(&k, "c", "labels: {disk: old}");
    node_add(&k, "d", "labels: {disk: ssd}");
    kit_call(&k, ADMIN, "POST", "/v1/optasks",
             "{id: x, script: 'true', require: [{key: disk, values: [ssd]}], parallel: 2, max_failures: 1}");
    assert_int_equal(k.status, 201);
    assert_string_equal(stands(&k, "x"), "running: a=running b=running d=pending");
    say(&k, "a", "x", "{attempt: 1, state: failed, fault: no-space}");
    assert_string_equal(stands(&k, "x"), "running: a=failed/no-space b=running d=running");
    /* A node runs one step at a time. */
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{id: y, script: 'echo', nodes: [b]}");
    assert_string_equal(stands(&k, "y"), "pending: b=pending");
    say(&k, "b", "x", "{attempt: 1, state: done}");
    assert_string_equal(stands(&k, "y"), "running: b=running");
    const char *config = str_text(&control_node_config(k.control, "b")->text);
    assert_non_null(strstr(config, "\"key\":\"y\""));
    assert_null(strstr(config, "\"key\":\"x\""));
    say(&k, "b", "y", "{attempt: 1, state: done}");
    assert_null(strstr(str_text(&control_node_config(k.control, "b")->text), "optasks"));
    kit_done(&k);
}

static void lost_node_fails_its_step(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "");
    node_add(&k, "b", "");
    report(&k, "a", 1);
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', timeout: 60s, nodes: [a, b]}");
    assert_string_equal(stands(&k, "x"), "running: a=running b=pending");
    for (int i = 0; i < 120; i++) { /* the daemon runs all the time */
        k.now_ns += 1000000000;
        k.steady_ns += 1000000000;
        control_tick(k.control);
    }
    assert_string_equal(stands(&k, "x"), "stopped: a=failed/lost b=pending");
    /* The node comes back and reports that the step is done. */
    report(&k, "a", 2);
    say(&k, "a", "x", "{attempt: 1, state: done}");
    assert_string_equal(stands(&k, "x"), "running: a=done b=running");
    kit_done(&k);
}

static void undo_does_not_continue_the_rollout(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "");
    node_add(&k, "b", "");
    node_add(&k, "c", "");
    CALL(&k, 201, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', undo: 'true', nodes: [a, b, c]}");
    (void)stands(&k, "x");
    say(&k, "a", "x", "{attempt: 1, state: done}");
    (void)stands(&k, "x");
    say(&k, "b", "x", "{attempt: 1, state: failed, fault: script, error: no}");
    assert_string_equal(stands(&k, "x"), "stopped: a=done b=failed/script c=pending");
    CALL(&k, 200, ADMIN, "POST", "/v1/optasks/x/undo", "{nodes: [b]}");
    assert_string_equal(stands(&k, "x"), "running: a=done b=undoing/script c=pending");
    say(&k, "b", "x", "{attempt: 2, state: undone}");
    assert_string_equal(stands(&k, "x"), "stopped: a=done b=undone/script c=pending");
    kit_restart(&k);
    assert_string_equal(stands(&k, "x"), "stopped: a=done b=undone/script c=pending");
    /* An undo of the whole OpTask also ends its pending steps. */
    CALL(&k, 200, ADMIN, "POST", "/v1/optasks/x/undo", "{}");
    assert_string_equal(stands(&k, "x"), "running: a=undoing b=undone/script c=undone");
    say(&k, "a", "x", "{attempt: 2, state: undone}");
    assert_string_equal(stands(&k, "x"), "undone: a=undone b=undone/script c=undone");
    /* After a retry the rollout goes on. */
    CALL(&k, 200, ADMIN, "POST", "/v1/optasks/x/retry", "{nodes: [b]}");
    assert_string_equal(stands(&k, "x"), "running: a=undone b=running c=undone");
    say(&k, "b", "x", "{attempt: 3, state: done}");
    assert_string_equal(stands(&k, "x"), "done: a=undone b=done c=undone");
    /* A step that waits for its retry is undone, too. */
    CALL(&k, 200, ADMIN, "POST", "/v1/optasks/x/retry", "{nodes: [a, c]}");
    assert_string_equal(stands(&k, "x"), "running: a=running b=done c=pending");
    say(&k, "a", "x", "{attempt: 3, state: failed, fault: script, error: no}");
    CALL(&k, 200, ADMIN, "POST", "/v1/optasks/x/retry", "{nodes: [a]}");
    CALL(&k, 200, ADMIN, "POST", "/v1/optasks/x/undo", "{}");
    assert_string_equal(stands(&k, "x"), "running: a=undoing b=pending c=undone");
    say(&k, "a", "x", "{attempt: 4, state: undone}");
    assert_string_equal(stands(&k, "x"), "running: a=undone b=undoing c=undone");
    kit_done(&k);
}

static void retry_of_named_nodes_ignores_known_failures(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "");
    node_add(&k, "b", "");
    node_add(&k, "c", "");
    node_add(&k, "d", "");
    CALL(&k, 201, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', parallel: 3, nodes: [a, b, c, d]}");
    (void)stands(&k, "x");
    say(&k, "a", "x", "{attempt: 1, state: failed, fault: script}");
    say(&k, "b", "x", "{attempt: 1, state: failed, fault: script}");
    say(&k, "c", "x", "{attempt: 1, state: failed, fault: script}");
    assert_string_equal(stands(&k, "x"), "stopped: a=failed/script b=failed/script c=failed/script d=pending");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/optasks/x", "{parallel: 1}");
    CALL(&k, 200, ADMIN, "POST", "/v1/optasks/x/retry", "{nodes: [a, b]}");
    CALL(&k, 200, ADMIN, "GET", "/v1/optasks/x", NULL);
    assert_string_equal(kit_text(&k, "status/state"),
                        "pending"); /* not "stopped": clients that wait for the OpTask go on waiting */
    assert_string_equal(stands(&k, "x"), "running: a=running b=pending c=failed/script d=pending");
    /* one failure more than was known: b does not start */
    say(&k, "a", "x", "{attempt: 2, state: failed, fault: script}");
    assert_string_equal(stands(&k, "x"), "stopped: a=failed/script b=pending c=failed/script d=pending");
    CALL(&k, 200, ADMIN, "POST", "/v1/optasks/x/retry", "{nodes: [a]}");
    assert_string_equal(stands(&k, "x"), "running: a=running b=pending c=failed/script d=pending");
    say(&k, "a", "x", "{attempt: 3, state: done}");
    assert_string_equal(stands(&k, "x"), "running: a=done b=running c=failed/script d=pending");
    say(&k, "b", "x", "{attempt: 2, state: done}");
    assert_string_equal(stands(&k, "x"), "stopped: a=done b=done c=failed/script d=pending");
    CALL(&k, 200, ADMIN, "POST", "/v1/optasks/x/retry", "{}");
    (void)stands(&k, "x");
    say(&k, "c", "x", "{attempt: 2, state: done}");
    assert_string_equal(stands(&k, "x"), "running: a=done b=done c=done d=running");
    kit_done(&k);
}

static void orphan_step_is_deleted(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    kit_agents(&k);
    const struct machine m = joined(&k, "n1", "{}");
    /* The state after an OpTask was deleted while a node joined. */
    kit_put(&k, KIND_OPSTEP, "n1/gone", "{v: 1, optask: gone, node: n1, attempt: 0, state: pending, init: true}");
    ASK(&k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 1, instances: []}");
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(&k, "state"), "ready");
    control_pump(k.control);
    control_pump(k.control);
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_null(kit_at(&k, "status/optasks"));
    kit_done(&k);
}

static void permissions_are_checked(void **state)
{
    static const struct {
        const char *who, *role;
        int see, make;
    } rows[] = {
        {"ada",  "admin",    200, 201},
        {"otto", "operator", 200, 403},
        {"moni", "manager",  403, 403},
        {"ulf",  "user",     403, 403},
    };
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        char body[160], who[40];
        (void)snprintf(body, sizeof body, "{id: %s, role: %s}", rows[i].who, rows[i].role);
        kit_call(&k, ADMIN, "POST", "/v1/users", body);
        assert_int_equal(k.status, 201);
        (void)snprintf(who, sizeof who, "user:%s", rows[i].who);
        kit_call(&k, who, "GET", "/v1/optasks", NULL);
        assert_int_equal(k.status, rows[i].see);
        (void)snprintf(body, sizeof body, "{id: by-%s, script: 'true', nodes: [a]}", rows[i].who);
        kit_call(&k, who, "POST", "/v1/optasks", body);
        assert_int_equal(k.status, rows[i].make);
    }
    /* A transaction needs the permission over nodes, too. */
    CALL(&k, 201, ADMIN, "POST", "/v1/roles", "{id: people, permissions: {users: all}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/users", "{id: pia, role: people}");
    static const char change[] = "{changes: [{op: put, kind: optask, id: t, object: {script: 'true', nodes: [a]}}]}";
    CALL(&k, 403, "user:pia", "POST", "/v1/txn", change);
    CALL(&k, 200, ADMIN, "POST", "/v1/txn", change);
    assert_string_equal(stands(&k, "t"), "pending: a=pending");
    say(&k, "b", "by-ada", "{attempt: 1, state: done}"); /* no such node */
    assert_int_not_equal(k.status, 200);
    kit_call(&k, "node:a", "POST", "/v1/nodes/a/optasks/nope", "{attempt: 1, state: done}");
    assert_int_equal(k.status, 404);
    say(&k, "a", "by-ada", "{attempt: 1, state: pending}");
    assert_int_equal(k.status, 400);
    kit_done(&k);
}

static void joining_node_waits_for_init_steps(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    kit_agents(&k);
    node_add(&k, "old", "");
    CALL(&k, 201, ADMIN, "POST", "/v1/optasks", "{id: first, script: 'true', init: true}");
    CALL(&k, 201, ADMIN, "POST", "/v1/optasks",
         "{id: other, script: 'true', init: true, require: [{key: disk, values: [no]}]}");
    assert_string_equal(stands(&k, "first"), "waiting:");
    const struct machine m = joined(&k, "n1", "{labels: {disk: ssd}}");
    assert_string_equal(stands(&k, "first"), "pending: n1=pending");
    assert_string_equal(stands(&k, "other"), "waiting:");
    ASK(&k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 1, instances: []}");
    ASK(&k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 2, instances: []}");
    assert_string_equal(stands(&k, "first"), "running: n1=running");
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(&k, "state"), "joining");
    assert_string_equal(kit_text(&k, "status/optasks/0/optask"), "first");
    ASK(&k, 200, &m, "POST", "/v1/nodes/n1/optasks/first", "{attempt: 1, state: failed, fault: network}");
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n1/optasks", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 1);
    assert_string_equal(kit_text(&k, "items/0/optask"), "first");
    assert_string_equal(kit_text(&k, "items/0/state"), "failed");
    assert_string_equal(kit_text(&k, "items/0/fault"), "network");
    assert_int_equal(kit_number(&k, "items/0/attempt"), 1);
    ASK(&k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 3, instances: []}");
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(&k, "state"), "joining");
    CALL(&k, 200, ADMIN, "POST", "/v1/optasks/first/retry", "{}");
    assert_string_equal(stands(&k, "first"), "running: n1=running");
    ASK(&k, 200, &m, "POST", "/v1/nodes/n1/optasks/first", "{attempt: 2, state: done}");
    ASK(&k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 4, instances: []}");
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(&k, "state"), "ready");
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n1/optasks", NULL);
    assert_string_equal(kit_text(&k, "items/0/state"), "done"); /* the step is listed even when it is done */
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/old/optasks", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    CALL(&k, 204, ADMIN, "DELETE", "/v1/nodes/n1", NULL);
    CALL(&k, 404, ADMIN, "GET", "/v1/nodes/n1/optasks", NULL);
    assert_string_equal(stands(&k, "first"), "waiting:");
    kit_done(&k);
}

static void full_disk_is_retried_with_pauses(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "");
    CALL(&k, 201, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', nodes: [a]}");
    store_memory_fail(k.store, ENOSPC, 5);
    kit_plan(&k);
    /* after five tries without a pause the step would run */
    assert_string_equal(stands(&k, "x"), "pending: a=pending");
    kit_sleep(&k, 12);
    assert_string_equal(stands(&k, "x"), "running: a=running");
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_optask_is_rejected),
        cmocka_unit_test(key_has_one_content),
        cmocka_unit_test(steps_run_one_by_one_until_a_failure),
        cmocka_unit_test(parallel_and_max_failures_are_followed),
        cmocka_unit_test(lost_node_fails_its_step),
        cmocka_unit_test(undo_does_not_continue_the_rollout),
        cmocka_unit_test(retry_of_named_nodes_ignores_known_failures),
        cmocka_unit_test(orphan_step_is_deleted),
        cmocka_unit_test(permissions_are_checked),
        cmocka_unit_test(joining_node_waits_for_init_steps),
        cmocka_unit_test(full_disk_is_retried_with_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
