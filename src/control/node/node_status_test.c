/* node_status_test.c - the reported status of nodes, and the hash of their configuration. */
#include "control/api/kit_test.h"
#include "control/node/node_status.h"

#define N1 "node:n1"

static int open_kit(void **state)
{
    struct kit *k = mem_alloc(sizeof *k);
    kit_open(k);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 8Gi}}");
    *state = k;
    return 0;
}

static int close_kit(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

static void report(struct kit *k, const char *yaml)
{
    CALL(k, 200, N1, "POST", "/v1/nodes/n1/report", yaml);
}

static void reported_status_is_shown(void **state)
{
    struct kit *k = *state;
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_null(kit_at(k, "status/heard"));
    report(k, "{epoch: 1, seq: 1, node: {usage: {cpu: 1500m, memory: 1Gi}, conditions: [{type: disk, text: full}]}}");
    assert_int_equal(kit_number(k, "lease_ns"), 30000000000);
    uint64_t revision = state_revision(control_state(k->control));
    report(k, "{epoch: 1, seq: 2}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(k, "status/usage/cpu"), "1.5");
    assert_string_equal(kit_text(k, "status/usage/memory"), "1Gi");
    assert_string_equal(kit_text(k, "status/conditions/0/type"), "disk");
    assert_string_equal(kit_text(k, "status/heard"), "2026-03-01T12:00:00Z");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes", NULL);
    assert_string_equal(kit_text(k, "items/0/status/usage/cpu"), "1.5");
    CALL(k, 200, N1, "POST", "/v1/nodes/n1/report?dry_run=true", "{epoch: 1, seq: 3, node: {usage: {cpu: 9}}}");
    report(k, "{epoch: 1, seq: 4, node: {usage: {cpu: 2}}}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(k, "status/usage/cpu"), "2");
    assert_null(kit_at(k, "status/usage/memory"));
    assert_int_equal(json_array_size(kit_at(k, "status/conditions")), 0);
    assert_true(state_revision(control_state(k->control)) == revision); /* nothing of it is written */
    /* A new node of that name has not reported yet. */
    CALL(k, 204, ADMIN, "DELETE", "/v1/nodes/n1", NULL);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_null(kit_at(k, "status/usage"));
}

static void config_hash_follows_instances(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *method, *url, *body;
        bool plan, differs;
    } rows[] = {
        {"POST",   "/v1/groups",            "{id: blue}",                      false, false},
        {"POST",   "/v1/apps",              "{name: web, requests: {cpu: 1}}", true,  true },
        {"PATCH",  "/v1/apps/web",          "{display: pictures}",             true,  false},
        {"PUT",    "/v1/apps/web/settings", "{size: 3}",                       true,  true },
        {"POST",   "/v1/apps/web/stop",     NULL,                              true,  true },
        {"DELETE", "/v1/apps/web",          NULL,                              true,  false},
    };
    char known[64] = "";
    report(k, "{epoch: 1, seq: 1}");
    (void)snprintf(known, sizeof known, "%s", kit_text(k, "config"));
    for (size_t i = 0; i < COUNT(rows); i++) {
        char body[64];
        (void)kit_call(k, ADMIN, rows[i].method, rows[i].url, rows[i].body);
        assert_true(k->status < 300);
        if (rows[i].plan)
            kit_plan(k);
        (void)snprintf(body, sizeof body, "{epoch: 1, seq: %zu}", i + 2);
        report(k, body);
        if ((strcmp(kit_text(k, "config"), known) != 0) != rows[i].differs)
            fail_msg("row %zu", i);
        (void)snprintf(known, sizeof known, "%s", kit_text(k, "config"));
    }
}

static void prometheus_metrics_are_served(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1}");
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n2}");
    struct node_statuses *l = node_statuses_new();
    const struct state *s = control_state(k.control);
    static const struct berth_amount usage[] = {
        {"cpu",    1500},
        {"a\"b\\", 7   },
    };
    static const struct node_condition wrong[] = {
        {"disk", "full"},
    };
    struct report_doc said = {
        .usage = usage, .usage_len = 2, .conditions = wrong, .conditions_len = 1, .machine_reported = true};
    node_statuses_report(l, state_find(s, KIND_NODE, "n1"), &said, 5);
    CLEANUP(str) struct str text = {0};
    node_statuses_metrics(l, s, &text);
    assert_non_null(strstr(text.at, "berth_node_used{node=\"n1\",resource=\"cpu\"} 1500\n"));
    assert_non_null(strstr(text.at, "berth_node_used{node=\"n1\",resource=\"a\\\"b\\\\\"} 7\n"));
    assert_non_null(strstr(text.at, "berth_node_conditions{node=\"n1\"} 1\n"));
    assert_null(strstr(text.at, "n2"));
    node_statuses_free(l);
    kit_done(&k);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
    const struct CMUnitTest tests[] = {
        CASE(reported_status_is_shown),
        CASE(config_hash_follows_instances),
        cmocka_unit_test(prometheus_metrics_are_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
