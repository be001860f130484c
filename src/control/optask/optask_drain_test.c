/* optask_drain_test.c - nodes that are drained for OpTasks: by one or several steps, by administrators, and lost
 * meanwhile.
 */
#include "control/optask/optask_kit_test.h"

static void node_is_drained_first(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "");
    report(&k, "a", 1);
    kit_call(&k, ADMIN, "POST", "/v1/apps", "{name: web, owner: admin, requests: {cpu: 1}}");
    kit_plan(&k);
    kit_call(&k, ADMIN, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(json_object_get(k.body, "items")), 1);
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', drain: true, nodes: [a]}");
    assert_string_equal(stands(&k, "x"), "running: a=draining");
    kit_call(&k, ADMIN, "GET", "/v1/nodes/a", NULL);
    assert_string_equal(json_string_value(json_object_get(k.body, "state")), "draining");
    /* If the OpTask is deleted before it starts, the node accepts work again. */
    kit_call(&k, ADMIN, "DELETE", "/v1/optasks/x", NULL);
    assert_int_equal(k.status, 204);
    kit_call(&k, ADMIN, "GET", "/v1/nodes/a", NULL);
    assert_string_equal(json_string_value(json_object_get(k.body, "state")), "ready");
    kit_call(&k, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', drain: true, nodes: [a]}");
    assert_string_equal(stands(&k, "x"), "running: a=draining");
    kit_call(&k, ADMIN, "DELETE", "/v1/apps/web.admin", NULL);
    kit_plan(&k);
    kit_call(&k, "node:a", "POST", "/v1/nodes/a/report",
             "{epoch: 7, seq: 2, instances: [{id: 1, state: stopped, ready: false}]}");
    assert_string_equal(stands(&k, "x"), "running: a=running");
    say(&k, "a", "x", "{attempt: 1, state: done}");
    assert_string_equal(stands(&k, "x"), "done: a=done");
    kit_call(&k, ADMIN, "GET", "/v1/nodes/a", NULL);
    assert_string_equal(json_string_value(json_object_get(k.body, "state")), "ready");
    kit_done(&k);
}

static const char *node_is(struct kit *k, const char *node)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/nodes/%s", node);
    control_pump(k->control);
    control_pump(k->control);
    CALL(k, 200, ADMIN, "GET", path, NULL);
    return kit_text(k, "state");
}

static void two_steps_drain_one_node(void **state)
{
    static const char *const orders[][2] = {
        {"x", "y"},
        {"y", "x"}
    };
    (void)state;
    for (size_t i = 0; i < COUNT(orders); i++) { /* both orders of the names */
        const char *first = orders[i][0], *second = orders[i][1];
        char body[128], path[64];
        struct kit k;
        kit_open(&k);
        node_add(&k, "a", "");
        (void)snprintf(body, sizeof body, "{id: %s, script: 'true', drain: true, nodes: [a]}", first);
        CALL(&k, 201, ADMIN, "POST", "/v1/optasks", body);
        (void)stands(&k, first);
        assert_string_equal(stands(&k, first), "running: a=running");
        (void)snprintf(body, sizeof body, "{id: %s, script: 'true', drain: true, nodes: [a]}", second);
        CALL(&k, 201, ADMIN, "POST", "/v1/optasks", body);
        assert_string_equal(stands(&k, second), "pending: a=pending");
        say(&k, "a", first, "{attempt: 1, state: done}");
        assert_string_equal(node_is(&k, "a"), "draining");
        (void)stands(&k, second);
        assert_string_equal(stands(&k, second), "running: a=running");
        assert_string_equal(node_is(&k, "a"), "draining");
        say(&k, "a", second, "{attempt: 1, state: done}");
        assert_string_equal(node_is(&k, "a"), "ready");
        /* A failed step keeps the node drained, and its deletion does not restore the node while another step needs
         * it. */
        (void)snprintf(path, sizeof path, "/v1/optasks/%s", first);
        CALL(&k, 204, ADMIN, "DELETE", path, NULL);
        (void)snprintf(body, sizeof body, "{id: %s, script: 'false', drain: true, nodes: [a]}", first);
        CALL(&k, 201, ADMIN, "POST", "/v1/optasks", body);
        (void)stands(&k, first);
        assert_string_equal(stands(&k, first), "running: a=running");
        say(&k, "a", first, "{attempt: 1, state: failed, fault: script}");
        CALL(&k, 201, ADMIN, "POST", "/v1/optasks", "{id: z, script: 'true', drain: true, nodes: [a]}");
        (void)stands(&k, "z");
        assert_string_equal(stands(&k, "z"), "running: a=running");
        CALL(&k, 204, ADMIN, "DELETE", path, NULL);
        assert_string_equal(node_is(&k, "a"), "draining");
        say(&k, "a", "z", "{attempt: 1, state: done}");
        assert_string_equal(node_is(&k, "a"), "ready");
        kit_done(&k);
    }
}

static void node_state_is_restored(void **state)
{
    static const struct {
        const char *label, *before, *meanwhile, *after;
    } rows[] = {
        {"ready",                   NULL,     NULL,      "ready"   },
        {"cordoned",                "cordon", NULL,      "cordoned"},
        {"drained by hand",         "drain",  NULL,      "draining"},
        {"cordoned meanwhile",      NULL,     "cordon",  "cordoned"},
        {"drained meanwhile",       NULL,     "drain",   "draining"},
        {"cordoned, then drained",  "cordon", "drain",   "draining"},
        {"disabled meanwhile",      NULL,     "disable", "draining"},
        {"cordoned, then taken in", "cordon", "enable",  "ready"   },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit k;
        char path[64];
        kit_open(&k);
        node_add(&k, "a", "");
        (void)snprintf(path, sizeof path, "/v1/nodes/a/%s", rows[i].before ? rows[i].before : "");
        if (rows[i].before)
            CALL(&k, 200, ADMIN, "POST", path, "{}");
        CALL(&k, 201, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', drain: true, nodes: [a]}");
        (void)stands(&k, "x");
        assert_string_equal(stands(&k, "x"), "running: a=running");
        assert_string_equal(node_is(&k, "a"), "draining");
        kit_restart(&k);
        (void)snprintf(path, sizeof path, "/v1/nodes/a/%s", rows[i].meanwhile ? rows[i].meanwhile : "");
        if (rows[i].meanwhile)
            CALL(&k, 200, ADMIN, "POST", path, "{}");
        say(&k, "a", "x", "{attempt: 1, state: done}");
        if (strcmp(node_is(&k, "a"), rows[i].after) != 0)
            fail_msg("%s: %s instead of %s", rows[i].label, kit_text(&k, "state"), rows[i].after);
        kit_done(&k);
    }
}

/* No node reports while the daemon runs. */
static void silence(struct kit *k, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        k->now_ns += 1000000000;
        k->steady_ns += 1000000000;
        control_tick(k->control);
    }
}

static void lost_node_state_is_restored(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    node_add(&k, "a", "");
    node_add(&k, "b", "");
    report(&k, "a", 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, owner: admin, requests: {cpu: 1}, node: a}");
    kit_plan(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/optasks", "{id: x, script: 'true', drain: true, timeout: 1h, nodes: [a, b]}");
    assert_string_equal(stands(&k, "x"), "running: a=draining b=pending");
    /* The OpTask does not wait for a lost node; other steps go on. */
    silence(&k, 60);
    assert_string_equal(node_is(&k, "a"), "lost");
    (void)stands(&k, "x");
    assert_string_equal(stands(&k, "x"), "running: a=pending b=running");
    CALL(&k, 204, ADMIN, "DELETE", "/v1/apps/web.admin", NULL);
    CALL(&k, 200, "node:a", "POST", "/v1/nodes/a/report",
         "{epoch: 7, seq: 2, instances: [{id: 1, state: stopped, ready: false}]}");
    assert_string_equal(node_is(&k, "a"), "ready");
    say(&k, "b", "x", "{attempt: 1, state: done}");
    (void)stands(&k, "x");
    (void)stands(&k, "x");
    assert_string_equal(stands(&k, "x"), "running: a=running b=done");
    /* The end is reported while the node is recorded as lost. */
    silence(&k, 60);
    assert_string_equal(node_is(&k, "a"), "lost");
    say(&k, "a", "x", "{attempt: 1, state: done}");
    assert_string_equal(stands(&k, "x"), "done: a=done b=done");
    assert_string_equal(node_is(&k, "a"), "lost");
    report(&k, "a", 3);
    assert_string_equal(node_is(&k, "a"), "ready");
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_is_drained_first),
        cmocka_unit_test(two_steps_drain_one_node),
        cmocka_unit_test(node_state_is_restored),
        cmocka_unit_test(lost_node_state_is_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
