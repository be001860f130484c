/* report_test.c - agents' reports: in order, out of order, and about instances of other nodes. */
#include "control/api/kit_test.h"

#define ALICE "user:alice"
#define N1 "node:n1"
#define N2 "node:n2"

static int open_kit(void **state)
{
    struct kit *k = mem_alloc(sizeof *k);
    kit_open(k);
    kit_add_users(k);
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

static void report(struct kit *k, int want, const char *yaml)
{
    CALL(k, want, N1, "POST", "/v1/nodes/n1/report", yaml);
}

static uint64_t revision_of(const struct kit *k)
{
    return state_revision(control_state(k->control));
}

static void only_the_nodes_agent_may_report(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *who, *url;
        int status;
    } rows[] = {
        {N1,        "/v1/nodes/n1/report", 200},
        {N1,        "/v1/nodes/n2/report", 404},
        {N2,        "/v1/nodes/n1/report", 404},
        {N1,        "/v1/nodes/n9/report", 404},
        {ALICE,     "/v1/nodes/n1/report", 403},
        {ADMIN,     "/v1/nodes/n2/report", 200},
        {"",        "/v1/nodes/n1/report", 401},
        {"node:n9", "/v1/nodes/n9/report", 401},
    };
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n2}");
    for (size_t i = 0; i < COUNT(rows); i++)
        CALL(k, rows[i].status, rows[i].who, "POST", rows[i].url, "{epoch: 1, seq: 1}");
    CALL(k, 403, N1, "GET", "/v1/nodes", NULL);
    CALL(k, 403, N1, "PUT", "/v1/nodes/n1/capabilities", "{}");
    report(k, 400, "{epoch: 1, seq: 2, labels: {a: b}}");
    report(k, 400, "{epoch: 1}");
}

static void heartbeat_writes_nothing(void **state)
{
    struct kit *k = *state;
    report(k, 200, "{epoch: 1, seq: 1}"); /* a new epoch is written */
    uint64_t revision = revision_of(k);
    CLEANUP(mem) char *config = mem_strdup(kit_text(k, "config"));
    assert_true(strlen(config) > 0);
    for (int i = 2; i < 10; i++) {
        char body[64];
        (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d, instances: []}", i);
        report(k, 200, body);
        assert_string_equal(kit_text(k, "config"), config);
    }
    assert_int_equal(revision_of(k), revision);
}

static void late_reports_change_nothing(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *body;
        int status;
    } rows[] = {
        {"{epoch: 5, seq: 3}", 200},
        {"{epoch: 5, seq: 4}", 200},
        {"{epoch: 5, seq: 4}", 409},
        {"{epoch: 5, seq: 2}", 409},
        {"{epoch: 4, seq: 9}", 409},
        {"{epoch: 5, seq: 5}", 200},
        {"{epoch: 6, seq: 1}", 200},
        {"{epoch: 5, seq: 6}", 409},
        {"{epoch: 6, seq: 2}", 200},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        report(k, rows[i].status, rows[i].body);
    assert_int_equal(kit_number(k, "revision"), INT64_MIN);
    report(k, 409, "{epoch: 6, seq: 2}");
    assert_string_equal(kit_text(k, "error/code"), "conflict");
    kit_restart(k);
    report(k, 409, "{epoch: 5, seq: 99}"); /* the epoch is durable */
    report(k, 200, "{epoch: 6, seq: 3}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_int_equal(kit_number(k, "epoch"), 6);
}

static void instance_passes_through_its_states(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}, endpoints: [http]}");
    kit_plan(k);
    static const struct {
        const char *item;
        bool changes;
        const char *state;
        bool ready;
    } rows[] = {
        {"{id: 1, state: starting}",                                        true,  "starting", false},
        {"{id: 1, state: starting}",                                        false, "starting", false},
        {"{id: 1, state: starting, ready: true}",                           false, "starting", false},
        {"{id: 1, state: running, ready: false}",                           true,  "running",  false},
        {"{id: 1, state: running}",                                         true,  "running",  true },
        {"{id: 1, state: running, ports: [{endpoint: http, port: 10000}]}", true,  "running",  true },
        {"{id: 1, state: running, ports: [{endpoint: http, port: 10000}]}", false, "running",  true },
        {"{id: 1, state: running, usage: {cpu: 500m}}",                     true,  "running",  true },
        {"{id: 1, state: running, usage: {cpu: 510m}}",                     false, "running",  true },
        {"{id: 1, state: running, usage: {cpu: 550m}}",                     false, "running",  true },
        {"{id: 1, state: running, usage: {cpu: 551m}}",                     true,  "running",  true },
        {"{id: 1, state: running, usage: {made-up: 5, memory: 1Mi}}",       true,  "running",  true },
        {"{id: 1, state: running, usage: {gpu-memory: 5Gi}}",               false, "running",  true },
        {"{id: 1, state: running, usage: {cpu: 99999999999}}",              true,  "running",  true },
        {"{id: 1, state: starting, error: crashed}",                        true,  "starting", false},
        {"{id: 1, state: running}",                                         true,  "running",  true },
        {"{id: 1, state: stopping}",                                        true,  "stopping", false},
        {"{id: 1, state: running}",                                         false, "stopping", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char body[512];
        uint64_t revision = revision_of(k);
        k->now_ns += 1000000000;
        (void)snprintf(body, sizeof body, "{epoch: 1, seq: %zu, instances: [%s]}", i + 1, rows[i].item);
        report(k, 200, body);
        assert_int_equal(json_array_size(kit_at(k, "unknown")), 0);
        if ((revision_of(k) > revision) != (rows[i].changes || i == 0))
            fail_msg("row %zu: revision %llu", i, (unsigned long long)revision_of(k));
        CALL(k, 200, ALICE, "GET", "/v1/instances/1", NULL);
        assert_string_equal(kit_text(k, "state"), rows[i].state);
        assert_int_equal(json_is_true(kit_at(k, "ready")), rows[i].ready);
        assert_null(kit_at(k, "usage/made-up"));
    }
    assert_string_equal(kit_text(k, "usage/memory/used"), "1Mi");
    assert_int_equal(kit_number(k, "ports/0/port"), 10000);
    assert_null(kit_at(k, "error"));
    assert_string_equal(kit_text(k, "since"), "2026-03-01T12:00:17.02Z");
    report(k, 200, "{epoch: 1, seq: 100, instances: [{id: 1, state: stopped}]}");
    CALL(k, 404, ALICE, "GET", "/v1/instances/1", NULL);
    report(k, 200, "{epoch: 1, seq: 101, instances: [{id: 1, state: running}]}");
    assert_int_equal(kit_number(k, "unknown/0"), 1);
}

static void only_ended_tasks_are_kept(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}}");
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{replicas: 2, requests: {cpu: 1}}");
    kit_plan(k);
    CALL(k, 200, ALICE, "GET", "/v1/instances?workload=1", NULL);
    int64_t task = kit_number(k, "items/0/id"), other = kit_number(k, "items/1/id");
    CALL(k, 200, ALICE, "GET", "/v1/instances?workload=web.alice", NULL);
    int64_t app = kit_number(k, "items/0/id");
    char body[256], url[64];
    (void)snprintf(body, sizeof body,
                   "{epoch: 1, seq: 1, instances: [{id: %lld, state: ended}, {id: %lld, state: failed, error: oom}, "
                   "{id: %lld, state: ended}, {id: 77, state: running}]}",
                   (long long)task, (long long)other, (long long)app);
    report(k, 200, body);
    assert_int_equal(json_array_size(kit_at(k, "unknown")), 1);
    assert_int_equal(kit_number(k, "unknown/0"), 77);
    (void)snprintf(url, sizeof url, "/v1/instances/%lld", (long long)task);
    CALL(k, 200, ALICE, "GET", url, NULL);
    assert_string_equal(kit_text(k, "state"), "ended");
    (void)snprintf(url, sizeof url, "/v1/instances/%lld", (long long)other);
    CALL(k, 404, ALICE, "GET", url, NULL);
    (void)snprintf(url, sizeof url, "/v1/instances/%lld", (long long)app);
    CALL(k, 404, ALICE, "GET", url, NULL);
    CALL(k, 200, ALICE, "GET", "/v1/events", NULL);
    SAYS(k, "oom");
    CALL(k, 200, "user:bob", "GET", "/v1/events", NULL);
    assert_null(strstr(k->text, "oom"));
    /* An ended instance cannot run again or end twice. */
    uint64_t revision = revision_of(k);
    (void)snprintf(body, sizeof body, "{epoch: 1, seq: 2, instances: [{id: %lld, state: ended}]}", (long long)task);
    report(k, 200, body);
    assert_int_equal(json_array_size(kit_at(k, "unknown")), 0);
    (void)snprintf(body, sizeof body, "{epoch: 1, seq: 3, instances: [{id: %lld, state: running}]}", (long long)task);
    report(k, 200, body);
    assert_int_equal(kit_number(k, "unknown/0"), task);
    assert_int_equal(revision_of(k), revision);
    kit_sleep(k, 11); /* the failed pods are placed again after a pause */
    CALL(k, 200, ALICE, "GET", "/v1/instances?state=assigned", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 2);
}

static void instances_of_other_nodes_are_not_changed(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web}");
    kit_plan(k);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n2}");
    uint64_t revision = revision_of(k);
    CALL(k, 200, N2, "POST", "/v1/nodes/n2/report", "{epoch: 1, seq: 1, instances: [{id: 1, state: stopped}]}");
    assert_int_equal(kit_number(k, "unknown/0"), 1);
    assert_int_equal(revision_of(k), revision + 1); /* only the epoch is written */
    CALL(k, 200, ALICE, "GET", "/v1/instances/1", NULL);
    assert_string_equal(kit_text(k, "state"), "assigned");
}

/* Returns how many port conflict events the caller sees. */
static size_t conflicts(struct kit *k, const char *who)
{
    size_t len = 0;
    CALL(k, 200, who, "GET", "/v1/events", NULL);
    for (const char *at = k->text; (at = strstr(at, "PortConflict")); at++)
        len++;
    return len;
}

/* Both owners get one event, which does not name the other side. An app that is not on the node gets none. */
static void port_conflicts_are_reported(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}, endpoints: [http]}");
    kit_plan(k);
    CALL(k, 201, "user:bob", "POST", "/v1/jobs", "{name: evil, requests: {cpu: 1}}");
    kit_plan(k);
    CALL(k, 201, ADMIN, "POST", "/v1/apps",
         "{name: far, requests: {cpu: 64}, endpoints: [http]}"); /* fits on no node */
    kit_plan(k);
    report(k, 200, "{epoch: 1, seq: 1, instances: [{id: 1, state: running}, {id: 2, state: running}]}");
    report(k, 200, "{epoch: 1, seq: 2, instances: [{id: 2, state: running, foreign_port: 10003}]}");
    assert_int_equal(conflicts(k, ALICE), 1);
    SAYS(k, "another workload on n1 claims port 10003, which is reserved for this one");
    assert_null(strstr(k->text, "evil"));
    assert_int_equal(conflicts(k, "user:bob"), 1);
    SAYS(k, "instance 2 on n1 claims port 10003, which is reserved for another app");
    assert_null(strstr(k->text, "web"));
    report(k, 200, "{epoch: 1, seq: 3, instances: [{id: 2, state: running, foreign_port: 10003, note: on}]}");
    assert_int_equal(conflicts(k, ALICE), 1);
    report(k, 200, "{epoch: 1, seq: 4, instances: [{id: 2, state: running, foreign_port: 10020}]}");
    assert_int_equal(conflicts(k, ADMIN), 3); /* another event for the job only */
    assert_int_equal(conflicts(k, ALICE), 1);
    report(k, 400, "{epoch: 1, seq: 5, instances: [{id: 2, state: running, foreign_port: 70000}]}");
}

static void same_report_is_not_applied_twice(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web}");
    kit_plan(k);
    report(k, 200, "{epoch: 1, seq: 5, instances: [{id: 1, state: running}]}");
    report(k, 409, "{epoch: 1, seq: 5, instances: [{id: 1, state: starting}]}");
    report(k, 409, "{epoch: 1, seq: 4, instances: [{id: 1, state: starting}]}");
    kit_restart(k);
    report(k, 409, "{epoch: 1, seq: 5, instances: [{id: 1, state: starting}]}");
    report(k, 200, "{epoch: 2, seq: 1, instances: [{id: 1, state: starting}]}");
    CALL(k, 200, ALICE, "GET", "/v1/instances/1", NULL);
    assert_string_equal(kit_text(k, "state"), "starting");
    assert_int_equal(kit_number(k, "seq"), 1);
    assert_int_equal(kit_number(k, "epoch"), 2);
}

static void dry_run_does_not_renew_the_lease(void **state)
{
    struct kit *k = *state;
    CALL(k, 200, N1, "POST", "/v1/nodes/n1/report?dry_run=true", "{epoch: 1, seq: 5}");
    report(k, 200, "{epoch: 1, seq: 5}");
}

static void lost_node_returns_to_its_state(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *verb, *while_lost, *state;
    } rows[] = {
        {"enable", NULL,     "ready"   },
        {"cordon", NULL,     "cordoned"},
        {"enable", "drain",  "draining"},
        {"drain",  "enable", "ready"   },
    };
    int seq = 1;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char body[64], url[64];
        (void)snprintf(url, sizeof url, "/v1/nodes/n1/%s", rows[i].verb);
        CALL(k, 200, ADMIN, "POST", url, NULL);
        (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d}", seq++);
        report(k, 200, body);
        kit_sleep(k, 31);
        CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
        assert_string_equal(kit_text(k, "state"), "lost");
        if (rows[i].while_lost) {
            (void)snprintf(url, sizeof url, "/v1/nodes/n1/%s", rows[i].while_lost);
            CALL(k, 200, ADMIN, "POST", url, NULL);
            CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
            assert_string_equal(kit_text(k, "state"), "lost");
        }
        (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d}", seq++);
        report(k, 200, body);
        CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
        assert_string_equal(kit_text(k, "state"), rows[i].state);
        assert_null(kit_at(k, "was"));
    }
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n2, state: joining}");
    CALL(k, 200, N2, "POST", "/v1/nodes/n2/report", "{epoch: 1, seq: 1}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n2", NULL);
    assert_string_equal(kit_text(k, "state"), "ready");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
static void failed_pod_is_retried_after_a_pause(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 4}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n1/report",
         "{epoch: 1, seq: 1, instances: [{id: 1, state: failed, error: no such file}]}");
    kit_sleep(&k, 5);
    CALL(&k, 200, ADMIN, "GET", "/v1/apps/web", NULL);
    assert_int_equal(kit_number(&k, "status/placed"), 0);
    assert_string_equal(kit_text(&k, "status/state"), "backing-off");
    CALL(&k, 200, ADMIN, "GET", "/v1/why/app/web", NULL);
    SAYS(&k, "Failed once");
    kit_sleep(&k, 6);
    CALL(&k, 200, ADMIN, "GET", "/v1/apps/web", NULL);
    assert_int_equal(kit_number(&k, "status/instances/0/id"), 2);
    /* The second pause is twice as long. */
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 2, instances: [{id: 2, state: ended}]}");
    kit_sleep(&k, 15);
    CALL(&k, 200, ADMIN, "GET", "/v1/apps/web", NULL);
    assert_int_equal(kit_number(&k, "status/placed"), 0);
    kit_sleep(&k, 6);
    /* A ready instance ends the pause. */
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 3, instances: [{id: 3, state: running}]}");
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 4, instances: [{id: 3, state: failed}]}");
    kit_sleep(&k, 11);
    CALL(&k, 200, ADMIN, "GET", "/v1/apps/web", NULL);
    assert_int_equal(kit_number(&k, "status/instances/0/id"), 4);
    kit_done(&k);
}

static void changed_app_is_retried_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *body;
    } rows[] = {
        {"PATCH", "/v1/apps/web",         "{command: [/bin/true]}"},
        {"POST",  "/v1/apps/web/restart", NULL                    },
        {"POST",  "/v1/apps/web/start",   NULL                    },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit k;
        kit_open(&k);
        CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 4}}");
        CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, command: [/bin/treu], requests: {cpu: 1}}");
        kit_plan(&k);
        CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n1/report",
             "{epoch: 1, seq: 1, instances: [{id: 1, state: failed, error: no such file}]}");
        kit_sleep(&k, 1);
        CALL(&k, 200, ADMIN, "GET", "/v1/apps/web", NULL);
        assert_string_equal(kit_text(&k, "status/state"), "backing-off");
        CALL(&k, 200, ADMIN, rows[i].method, rows[i].path, rows[i].body);
        kit_sleep(&k, 1);
        CALL(&k, 200, ADMIN, "GET", "/v1/apps/web", NULL);
        assert_int_equal(kit_number(&k, "status/instances/0/id"), 2);
        kit_done(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_pod_is_retried_after_a_pause),
        cmocka_unit_test(changed_app_is_retried_at_once),
        TEST(only_the_nodes_agent_may_report),
        TEST(heartbeat_writes_nothing),
        TEST(late_reports_change_nothing),
        TEST(instance_passes_through_its_states),
        TEST(only_ended_tasks_are_kept),
        TEST(instances_of_other_nodes_are_not_changed),
        TEST(port_conflicts_are_reported),
        TEST(same_report_is_not_applied_twice),
        TEST(dry_run_does_not_renew_the_lease),
        TEST(lost_node_returns_to_its_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
