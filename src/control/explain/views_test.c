/* views_test.c - views of the queue: order, forecasts, explanations, holders, drafts and tried policies, and what is
 * hidden of other users' work.
 */
#include "control/api/kit_test.h"

#include "control/control_parts.h"

#define ALICE "user:alice"
#define BOB "user:bob"

/* Two nodes with two GPUs each; alice's job 1 holds one node for an hour, bob's job 2 holds the other for two hours. */
static void two_busy_nodes(struct kit *k)
{
    kit_open(k);
    kit_add_users(k);
    for (int i = 1; i <= 2; i++) {
        char body[256];
        (void)snprintf(body, sizeof body,
                       "{id: n%d, state: ready, allocatable: {cpu: 8, memory: 16Gi}, gpus: [{count: 2}]}", i);
        CALL(k, 201, ADMIN, "POST", "/v1/nodes", body);
    }
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{name: first, command: [x], gpu: 2, requests: {cpu: 1}, time_limit: 1h}");
    CALL(k, 201, BOB, "POST", "/v1/jobs", "{name: second, command: [x], gpu: 2, requests: {cpu: 1}, time_limit: 2h}");
    kit_plan(k);
}

/* Adds two waiting jobs that need a node each: alice's job 3 and bob's job 4. */
static void waiting(struct kit *k)
{
    two_busy_nodes(k);
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{name: third, command: [x], gpu: 2, requests: {cpu: 2}, time_limit: 1h}");
    k->now_ns += 1000000000;
    CALL(k, 201, BOB, "POST", "/v1/jobs", "{name: fourth, command: [x], gpu: 2, time_limit: 1h}");
    kit_plan(k);
}

static void queue_is_in_order(void **state)
{
    struct kit k;
    (void)state;
    waiting(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/queue", NULL);
    assert_int_equal(kit_number(&k, "total"), 2);
    assert_string_equal(kit_text(&k, "items/0/id"), "3");
    assert_string_equal(kit_text(&k, "items/0/name"), "third");
    assert_string_equal(kit_text(&k, "items/0/owner"), "alice");
    assert_string_equal(kit_text(&k, "items/0/queue"), "default");
    assert_string_equal(kit_text(&k, "items/0/tier"), "by-right");
    assert_int_equal(kit_number(&k, "items/0/position"), 1);
    assert_int_equal(kit_number(&k, "items/0/asked/gpu"), 2);
    assert_string_equal(kit_text(&k, "items/1/id"), "4");
    /* Job 1 ends before job 2. */
    assert_non_null(kit_at(&k, "items/0/start"));
    assert_non_null(kit_at(&k, "items/1/start"));
    assert_true(strcmp(kit_text(&k, "items/0/start"), kit_text(&k, "items/1/start")) < 0);
    assert_true(kit_number(&k, "forecast/revision") > 0);

    CALL(&k, 200, ADMIN, "GET", "/v1/queue?limit=1", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 1);
    CALL(&k, 200, ADMIN, "GET", "/v1/queue?user=bob", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 1);
    assert_string_equal(kit_text(&k, "items/0/id"), "4");
    CALL(&k, 200, ADMIN, "GET", "/v1/queue?queue=none", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    CALL(&k, 400, ADMIN, "GET", "/v1/queue?limit=0", NULL);
    /* The waits are over all rows, whatever the limit, but only over visible workloads. */
    k.now_ns += INT64_C(60) * 1000000000;
    CALL(&k, 200, ADMIN, "GET", "/v1/queue?limit=1&waits=true", NULL);
    assert_int_equal(kit_number(&k, "waits/count"), 2);
    assert_int_equal(kit_number(&k, "waits/longest_s"), 61);
    assert_int_equal(kit_number(&k, "waits/median_s"), 61);
    CALL(&k, 200, BOB, "GET", "/v1/queue?limit=1&waits=true", NULL);
    assert_int_equal(kit_number(&k, "waits/count"), 1);
    assert_int_equal(kit_number(&k, "waits/longest_s"), 60);
    kit_done(&k);
}

/* Of other users' work the answer has the position, and the names that the setting permits. */
static void other_owners_are_shown_as_configured(void **state)
{
    static const struct {
        const char *setting, *owner, *group;
    } rows[] = {
        {"nobody", "",    ""    },
        {"group",  "",    "blue"},
        {"user",   "bob", "blue"},
    };
    struct kit k;
    (void)state;
    waiting(&k);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char body[64];
        (void)snprintf(body, sizeof body, "{holder_shown: %s}", rows[i].setting);
        CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", body);
        CALL(&k, 200, ALICE, "GET", "/v1/queue", NULL);
        assert_string_equal(kit_text(&k, "items/0/name"), "third");
        assert_string_equal(kit_text(&k, "items/1/owner"), rows[i].owner);
        assert_string_equal(kit_text(&k, "items/1/group"), rows[i].group);
        assert_null(strstr(k.text, "fourth"));
        assert_null(kit_at(&k, "items/1/id"));
        assert_null(kit_at(&k, "items/1/asked"));
        CALL(&k, 200, ALICE, "GET", "/v1/holders?node=n2", NULL);
        assert_string_equal(kit_text(&k, "items/0/owner"), rows[i].owner);
        assert_string_equal(kit_text(&k, "items/0/group"), rows[i].group);
        assert_null(strstr(k.text, "second"));
        assert_null(kit_at(&k, "items/0/workload"));
    }
    kit_done(&k);
}

static void forecasts_follow_the_state(void **state)
{
    struct kit k;
    (void)state;
    waiting(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/queue", NULL);
    int64_t revision = kit_number(&k, "forecast/revision");
    CALL(&k, 200, ADMIN, "GET", "/v1/queue", NULL);
    assert_int_equal(kit_number(&k, "forecast/revision"), revision);
    CALL(&k, 200, ALICE, "POST", "/v1/jobs/3/cancel", NULL);
    CALL(&k, 200, ADMIN, "GET", "/v1/queue", NULL);
    assert_true(kit_number(&k, "forecast/revision") > revision);
    assert_int_equal(kit_number(&k, "total"), 1);
    assert_int_equal(kit_number(&k, "items/0/position"), 1);
    kit_done(&k);
}

static void why_is_complete(void **state)
{
    struct kit k;
    (void)state;
    waiting(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/3/why", NULL);
    assert_string_equal(kit_text(&k, "state"), "pending");
    assert_int_equal(kit_number(&k, "standing/position"), 1);
    assert_int_equal(kit_number(&k, "standing/of"), 2);
    assert_true(json_array_size(kit_at(&k, "standing/factors")) > 3);
    assert_non_null(kit_at(&k, "standing/factors/0/value"));
    assert_string_equal(kit_text(&k, "reasons/0/reason"), "gpu");
    assert_int_equal(kit_number(&k, "reasons/0/nodes"), 2);
    assert_non_null(kit_at(&k, "start"));
    assert_non_null(kit_at(&k, "end"));
    /* The job waits for alice's own job, which is named. */
    assert_string_equal(kit_text(&k, "blockers/0/workload"), "1");
    assert_string_equal(kit_text(&k, "blockers/0/node"), "n1");
    assert_string_equal(kit_text(&k, "blockers/0/devices/0"), "gpu0");
    assert_null(kit_at(&k, "sooner"));

    CALL(&k, 200, ALICE, "GET", "/v1/jobs/1/why", NULL);
    assert_null(kit_at(&k, "standing"));
    CALL(&k, 404, ALICE, "GET", "/v1/jobs/4/why", NULL);
    CALL(&k, 404, ADMIN, "GET", "/v1/jobs/99/why", NULL);
    kit_done(&k);
}

/* A job with one GPU less would start at once, if a GPU is free. */
static void start_advice_is_verified_by_plan(void **state)
{
    struct kit k;
    (void)state;
    two_busy_nodes(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes",
         "{id: n3, state: ready, allocatable: {cpu: 8, memory: 16Gi}, gpus: [{count: 1}]}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{name: third, command: [x], gpu: 2, time_limit: 1h}");
    kit_plan(&k);
    int64_t before = (int64_t)state_revision(control_state(k.control));
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/3/why?suggest=1", NULL);
    assert_string_equal(kit_text(&k, "sooner/0/change"), "with 1 GPU in each pod instead of 2");
    assert_true(json_is_true(kit_at(&k, "sooner/0/now")));
    assert_true(kit_number(&k, "sooner/0/sooner_s") > 3000);
    assert_int_equal(json_array_size(kit_at(&k, "sooner")), 1); /* half the time has no effect */

    /* The cluster is unchanged. */
    struct berth_err err = {0};
    assert_int_equal(before, state_revision(control_state(k.control)));
    if (state_audit(control_state(k.control), &err) < 0)
        fail_msg("%s", err.text);
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/3", NULL);
    assert_string_equal(kit_text(&k, "status/state"), "pending");
    kit_done(&k);
}

/* A queue with a higher rank is suggested if the owner may use it. */
static void start_advice_suggests_another_queue(void **state)
{
    struct kit k;
    (void)state;
    waiting(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: fast, priority: 10}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: others, priority: 20, users: [alice]}");
    CALL(&k, 200, BOB, "GET", "/v1/jobs/4/why?suggest=1", NULL);
    SAYS(&k, "in the queue fast");
    assert_null(strstr(k.text, "in the queue others"));
    kit_done(&k);
}

static void quotas_are_named(void **state)
{
    struct kit k;
    (void)state;
    two_busy_nodes(&k);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/groups/red", "{quota: {limits: {gpu: 2}}}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{name: more, command: [x], gpu: 1}");
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/3/why", NULL);
    assert_string_equal(kit_text(&k, "quotas/0/quota"), "group/red");
    SAYS(&k, "group/red uses 2 gpu of at most 2 gpu; this job requests 1 gpu");
    kit_done(&k);
}

static void dependencies_are_named(void **state)
{
    struct kit k;
    (void)state;
    two_busy_nodes(&k);
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{name: later, command: [x], after: [{job: 1, when: ok}]}");
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/3/why", NULL);
    assert_int_equal(kit_number(&k, "after/0/job"), 1);
    assert_string_equal(kit_text(&k, "after/0/when"), "ok");
    assert_null(kit_at(&k, "standing"));
    kit_done(&k);
}

static void dry_run_includes_forecast(void **state)
{
    struct kit k;
    (void)state;
    waiting(&k);
    CALL(&k, 200, ALICE, "POST", "/v1/jobs?dry_run=true&forecast=1", "{name: more, command: [x], gpu: 2}");
    assert_int_equal(kit_number(&k, "answer/forecast/position"), 3);
    assert_int_equal(kit_number(&k, "answer/forecast/of"), 3);
    assert_non_null(kit_at(&k, "answer/forecast/start"));
    CALL(&k, 200, ALICE, "POST", "/v1/jobs?dry_run=true&forecast=1", "{name: less, command: [x], requests: {cpu: 1}}");
    assert_true(json_is_true(kit_at(&k, "answer/forecast/now")));
    CALL(&k, 200, ALICE, "POST", "/v1/jobs?dry_run=true", "{name: more, command: [x], gpu: 2}");
    assert_null(kit_at(&k, "answer/forecast"));
    CALL(&k, 400, ALICE, "POST", "/v1/jobs?dry_run=true&forecast=1", "{name: more, command: [x], gpu: -1}");

    struct berth_err err = {0};
    if (state_audit(control_state(k.control), &err) < 0)
        fail_msg("%s", err.text);
    CALL(&k, 200, ADMIN, "GET", "/v1/queue", NULL);
    assert_int_equal(kit_number(&k, "total"), 2);
    kit_done(&k);
}

/* Factors follow the present policy: a formula, or a ranking with weights of its own. */
static void queue_shows_factors(void **state)
{
    struct kit k;
    (void)state;
    waiting(&k);
    CALL(&k, 201, ADMIN, "PUT", "/v1/policies/lab", "{ranking: multifactor, weights: {time: -7}}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{policy: lab}");
    CALL(&k, 200, ADMIN, "GET", "/v1/queue?factors=true", NULL);
    size_t i, time = 0;
    json_t *factor;
    json_array_foreach(kit_at(&k, "items/0/factors"), i, factor)
    {
        if (strcmp(json_string_value(json_object_get(factor, "name")), "time") == 0)
            time = (size_t)-json_integer_value(json_object_get(factor, "weight"));
    }
    assert_int_equal(time, 7);
    CALL(&k, 201, ADMIN, "PUT", "/v1/policies/mine", "{formula: 'return -parameters'}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{policy: mine}");
    CALL(&k, 200, ADMIN, "GET", "/v1/queue?factors=true", NULL);
    assert_string_equal(kit_text(&k, "items/0/ranking"), "formula");
    assert_true(json_array_size(kit_at(&k, "items/0/factors")) > 10);
    assert_int_equal(json_array_size(kit_at(&k, "items/0/terms")), 0);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{policy: berth}");
    CALL(&k, 200, ADMIN, "GET", "/v1/queue?factors=true", NULL);
    assert_string_equal(kit_text(&k, "items/0/terms/0/name"), "waited");
    CALL(&k, 200, ADMIN, "GET", "/v1/queue", NULL);
    assert_null(kit_at(&k, "items/0/factors"));
    CALL(&k, 200, ALICE, "GET", "/v1/queue?factors=true", NULL);
    assert_non_null(kit_at(&k, "items/0/factors"));
    assert_null(kit_at(&k, "items/1/factors")); /* bob's job */
    kit_done(&k);
}

static void policies_are_tried(void **state)
{
    struct kit k;
    (void)state;
    waiting(&k);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{policy: fifo}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{name: short, command: [x], gpu: 2, time_limit: 1m}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "POST", "/v1/policies/test", "{ranking: sjf}");
    assert_string_equal(kit_text(&k, "ranking"), "sjf");
    assert_string_equal(kit_text(&k, "items/0/id"), "5");
    assert_int_equal(kit_number(&k, "items/0/position"), 1);
    assert_int_equal(kit_number(&k, "items/0/was"), 3);
    CALL(&k, 200, ADMIN, "POST", "/v1/policies/test", "{policy: fifo}");
    assert_string_equal(kit_text(&k, "items/0/id"), "3");
    CALL(&k, 200, ADMIN, "POST", "/v1/policies/test", "{formula: '-created'}");
    assert_string_equal(kit_text(&k, "ranking"), "formula");
    CALL(&k, 400, ADMIN, "POST", "/v1/policies/test", "{formula: 'age +'}");
    CALL(&k, 400, ADMIN, "POST", "/v1/policies/test", "{ranking: wishful}");
    CALL(&k, 404, ADMIN, "POST", "/v1/policies/test", "{policy: wishful}");
    /* Factors of other users' work are hidden, and nothing has changed. */
    CALL(&k, 200, ALICE, "POST", "/v1/policies/test", "{ranking: sjf}");
    assert_null(strstr(k.text, "fourth"));
    CALL(&k, 200, ADMIN, "GET", "/v1/queue", NULL);
    assert_string_equal(kit_text(&k, "items/0/id"), "3");
    kit_done(&k);
}

/* Ids are ordered as numbers: 10 after 9. Each page continues at the end of the last one, without repeats. */
static void jobs_are_listed_in_both_orders(void **state)
{
    static const struct {
        const char *query;
        int first, last;
        const char *next;
    } rows[] = {
        {"?limit=5",                        1,  5,  "5" },
        {"?order=asc&limit=5&after=5",      6,  10, "10"},
        {"?order=desc&limit=5",             12, 8,  "8" },
        {"?order=desc&limit=5&after=8",     7,  3,  "3" },
        {"?order=desc&limit=5&after=3",     2,  1,  NULL},
        {"?order=desc&limit=5&after=10",    9,  5,  "5" },
        {"?order=desc&limit=5&after=99",    12, 8,  "8" },
        {"?order=desc&limit=1&owner=bob",   2,  2,  NULL},
        {"?order=desc&limit=11&after=99",   12, 2,  "2" },
        {"?order=desc&limit=1&owner=alice", 12, 12, "12"},
    };
    struct kit k;
    (void)state;
    two_busy_nodes(&k);
    for (int i = 3; i <= 12; i++)
        CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{command: [x]}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char url[128], last[32];
        (void)snprintf(url, sizeof url, "/v1/jobs%s", rows[i].query);
        CALL(&k, 200, ADMIN, "GET", url, NULL);
        (void)snprintf(last, sizeof last, "items/%zu/id", json_array_size(kit_at(&k, "items")) - 1);
        assert_int_equal(kit_number(&k, "items/0/id"), rows[i].first);
        assert_int_equal(kit_number(&k, last), rows[i].last);
        if (rows[i].next)
            assert_string_equal(kit_text(&k, "continue"), rows[i].next);
        else
            assert_null(kit_at(&k, "continue"));
    }
    CALL(&k, 200, ADMIN, "GET", "/v1/jobs?order=desc&after=1", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    CALL(&k, 400, ADMIN, "GET", "/v1/jobs?order=newest", NULL);
    kit_done(&k);
}

/* With another node both jobs start; without the node that is free first they wait longer. */
static void what_if_adds_and_removes_nodes(void **state)
{
    static const struct {
        const char *body;
        int added, removed, starts; /* number of nodes, and of jobs that start at once */
        bool longer;
    } rows[] = {
        {"{nodes: [{like: n1, count: 2}]}",                                    2, 0, 2, false},
        {"{nodes: {like: n2, count: 1}}",                                      1, 0, 1, false},
        {"{nodes: [{label: rack=r1, count: 1}], policy: sjf}",                 1, 0, 1, false},
        {"{nodes: [{label: rack, count: 1}, {like: n1, count: 1}]}",           2, 0, 2, false},
        {"{nodes: [{label: rack=r1, count: -1}]}",                             0, 1, 0, true },
        {"{nodes: [{label: rack=r1, count: -1}, {label: rack=r1, count: 2}]}", 2, 1, 2, false},
        {"{policy: {ranking: sjf}}",                                           0, 0, 0, false},
    };
    struct kit k;
    struct berth_err err = {0};
    (void)state;
    waiting(&k);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/nodes/n1", "{labels: {rack: r1}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes",
         "{id: what-if-1, state: ready, allocatable: {cpu: 1}, labels: {rack: r2}}");
    kit_plan(&k);
    int64_t before = (int64_t)state_revision(control_state(k.control));
    for (size_t i = 0; i < COUNT(rows); i++) {
        int starts = 0;
        size_t at;
        const json_t *row;
        CALL(&k, 200, ADMIN, "POST", "/v1/what_if", rows[i].body);
        json_array_foreach(kit_at(&k, "items"), at, row) starts += json_is_true(json_object_get(row, "now"));
        assert_int_equal(kit_number(&k, "nodes/added"), rows[i].added);
        assert_int_equal(json_array_size(kit_at(&k, "nodes/removed")), rows[i].removed);
        assert_int_equal(starts, rows[i].starts);
        assert_int_equal(kit_number(&k, "waits/of"), 2);
        double now = json_real_value(kit_at(&k, "waits/now/mean_s"));
        double then = json_real_value(kit_at(&k, "waits/then/mean_s"));
        assert_true(rows[i].longer ? then > now : rows[i].starts ? then < now : then <= now);
        assert_non_null(kit_at(&k, "items/0/was_start"));
    }
    /* The least loaded node is removed first; among equal ones, the first by id. */
    CALL(&k, 200, ADMIN, "POST", "/v1/what_if", "{nodes: [{like: what-if-1, count: -1}, {like: n2, count: -1}]}");
    assert_string_equal(kit_text(&k, "nodes/removed/0"), "what-if-1");
    assert_string_equal(kit_text(&k, "nodes/removed/1"), "n1");
    CALL(&k, 200, ADMIN, "POST", "/v1/what_if", "{nodes: [{label: rack, count: -1}]}");
    assert_string_equal(kit_text(&k, "nodes/removed/0"), "what-if-1");
    /* The state is unchanged. */
    assert_int_equal(before, state_revision(control_state(k.control)));
    if (state_audit(control_state(k.control), &err) < 0)
        fail_msg("%s", err.text);
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/3", NULL);
    assert_string_equal(kit_text(&k, "status/state"), "pending");
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 3);
    /* Other users' work appears only in totals. */
    CALL(&k, 200, ALICE, "POST", "/v1/what_if", "{nodes: [{like: n1, count: 1}]}");
    assert_null(strstr(k.text, "fourth"));
    assert_int_equal(kit_number(&k, "waits/of"), 2);
    kit_done(&k);
}

static void invalid_requests_are_refused(void **state)
{
    static const struct {
        int status;
        const char *body, *says;
    } rows[] = {
        {400, "{}",                                                        "no change to try"           },
        {400, "{nodes: []}",                                               "no change to try"           },
        {400, "{nodes: [{count: 1}]}",                                     "either `like`"              },
        {400, "{nodes: [{like: n1, label: a, count: 1}]}",                 "either `like`"              },
        {400, "{nodes: [{like: n1}]}",                                     "count: expected the number" },
        {400, "{nodes: [{like: n1, count: 501}]}",                         "at most 500"                },
        {400, "{nodes: [{like: n1, count: 300}, {like: n1, count: 300}]}", "500 nodes are allowed"      },
        {400, "{nodes: [{like: n1, count: -3}]}",                          "only 2 such nodes are ready"},
        {400, "{nodes: [{label: '=x', count: -1}]}",                       "expected KEY=VALUE"         },
        {400, "{nodes: [{like: n1, count: 1, size: 2}]}",                  "size"                       },
        {400, "{policy: 7}",                                               "name of a policy"           },
        {404, "{policy: wishful}",                                         "no policy"                  },
        {404, "{nodes: [{like: n9, count: 1}]}",                           "no node"                    },
        {404, "{nodes: [{label: rack=r9, count: 1}]}",                     "no node has the label"      },
    };
    struct kit k;
    (void)state;
    two_busy_nodes(&k);
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(&k, rows[i].status, ADMIN, "POST", "/v1/what_if", rows[i].body);
        SAYS(&k, rows[i].says);
    }
    kit_done(&k);
}

static void holders_of_node_are_listed(void **state)
{
    struct kit k;
    (void)state;
    two_busy_nodes(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/holders?node=n1", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 1);
    assert_string_equal(kit_text(&k, "items/0/workload"), "1");
    assert_string_equal(kit_text(&k, "items/0/owner"), "alice");
    assert_non_null(kit_at(&k, "items/0/until"));
    CALL(&k, 200, ADMIN, "GET", "/v1/holders?device=n1/gpu1", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 1);
    CALL(&k, 200, ADMIN, "GET", "/v1/holders?device=n1/gpu5", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    CALL(&k, 404, ADMIN, "GET", "/v1/holders?node=n9", NULL);
    CALL(&k, 400, ADMIN, "GET", "/v1/holders", NULL);
    CALL(&k, 400, ADMIN, "GET", "/v1/holders?device=n1", NULL);
    CALL(&k, 400, ADMIN, "GET", "/v1/holders?node=n1&at=tomorrow", NULL);
    kit_done(&k);
}

static void holders_of_all_nodes_are_listed(void **state)
{
    struct kit k;
    (void)state;
    two_busy_nodes(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/holders?all=true", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 2);
    assert_string_equal(kit_text(&k, "items/0/node"), "n1");
    assert_string_equal(kit_text(&k, "items/1/node"), "n2");
    assert_non_null(kit_at(&k, "items/1/devices"));
    assert_null(kit_at(&k, "continue"));
    /* In pages. */
    CALL(&k, 200, ADMIN, "GET", "/v1/holders?all=true&limit=1", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 1);
    assert_string_equal(kit_text(&k, "continue"), "n1");
    CALL(&k, 200, ADMIN, "GET", "/v1/holders?all=true&limit=1&after=n1", NULL);
    assert_string_equal(kit_text(&k, "items/0/node"), "n2");
    assert_null(kit_at(&k, "continue"));
    CALL(&k, 200, ADMIN, "GET", "/v1/holders?all=true&after=n2", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    CALL(&k, 400, ADMIN, "GET", "/v1/holders?all=true&limit=0", NULL);
    CALL(&k, 400, ADMIN, "GET", "/v1/holders?all=true&node=n1", NULL);
    CALL(&k, 400, ADMIN, "GET", "/v1/holders?all=true&device=n1/gpu0", NULL);
    CALL(&k, 400, ADMIN, "GET", "/v1/holders?all=true&at=2026-03-01T10:00:30Z", NULL);
    /* Other users' work is hidden as for a single node. */
    CALL(&k, 200, ALICE, "GET", "/v1/holders?all=true", NULL);
    assert_string_equal(kit_text(&k, "items/0/owner"), "alice");
    assert_null(kit_at(&k, "items/1/owner"));
    assert_null(kit_at(&k, "items/1/workload"));
    kit_done(&k);
}

static void past_holders_are_listed(void **state)
{
    struct kit k;
    char url[128];
    (void)state;
    two_busy_nodes(&k);
    kit_put(&k, KIND_USAGE_RECORD, "1",
            "{v: 1, instance: 77, kind: job, workload: '9', name: old, owner: alice, group: red, node: n1, ordinal: 0, "
            "outcome: ended, seconds: 60, gpus: [1], start: '2026-03-01T10:00:00Z', end: '2026-03-01T10:01:00Z'}");
    (void)snprintf(url, sizeof url, "/v1/holders?device=n1/gpu1&at=%s", "2026-03-01T10:00:30Z");
    CALL(&k, 200, ADMIN, "GET", url, NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 1);
    assert_string_equal(kit_text(&k, "items/0/name"), "old");
    CALL(&k, 200, BOB, "GET", url, NULL);
    assert_string_equal(kit_text(&k, "items/0/group"), "red");
    assert_null(strstr(k.text, "old"));
    (void)snprintf(url, sizeof url, "/v1/holders?device=n1/gpu0&at=%s", "2026-03-01T10:00:30Z");
    CALL(&k, 200, ADMIN, "GET", url, NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    (void)snprintf(url, sizeof url, "/v1/holders?node=n1&at=%s", "2026-03-01T10:01:00Z");
    CALL(&k, 200, ADMIN, "GET", url, NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    kit_done(&k);
}

static void use_is_summed_by_domain(void **state)
{
    struct kit k;
    (void)state;
    two_busy_nodes(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/use", NULL);
    assert_int_equal(kit_number(&k, "total/nodes"), 2);
    assert_true(json_real_value(kit_at(&k, "total/cpu/there")) == 16);
    assert_true(json_real_value(kit_at(&k, "total/cpu/held")) == 2);
    assert_true(json_real_value(kit_at(&k, "total/gpu/there")) == 4);
    assert_true(json_real_value(kit_at(&k, "total/gpu/held")) == 4);
    assert_int_equal(json_array_size(kit_at(&k, "domains")), 1);
    kit_done(&k);
}

/* ---- on another thread, as in berthd ---------------------------------------------------------------------------- */

static struct {
    void (*work)(void *), (*after)(void *);
    void *arg;
    size_t len;
} put_off;

static void run_later(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    (void)ctx;
    assert_int_equal(put_off.len, 0); /* one run at a time */
    put_off.work = work;
    put_off.after = after;
    put_off.arg = arg;
    put_off.len = 1;
}

static void run_now(void)
{
    assert_int_equal(put_off.len, 1);
    put_off.len = 0;
    put_off.work(put_off.arg);
    put_off.after(put_off.arg);
}

struct asked_for {
    int status;
    int64_t total;
};

static void answered(void *ctx, struct answer *answer)
{
    struct asked_for *a = ctx;
    assert_int_equal(a->status, 0);
    a->status = answer->status;
    a->total = json_integer_value(json_object_get(answer->body, "total"));
}

static void ask(struct kit *k, const char *method, const char *path, const char *body, struct asked_for *ret)
{
    struct request_input request = {.method = method, .path = path, .peer = ADMIN, .remote = "192.0.2.1", .body = body};
    request.body_len = body ? strlen(body) : 0;
    *ret = (struct asked_for){0};
    control_handle(k->control, &request, answered, ret);
}

static void requests_wait_for_the_worker(void **state)
{
    struct asked_for a[4];
    struct kit k;
    (void)state;
    waiting(&k);
    k.control->env.run_slow = run_later;
    ask(&k, "GET", "/v1/queue", NULL, &a[0]);
    ask(&k, "GET", "/v1/queue", NULL, &a[1]);
    ask(&k, "POST", "/v1/policies/test", "{\"ranking\": \"sjf\"}", &a[2]);
    ask(&k, "GET", "/v1/jobs/3/why", NULL, &a[3]);
    assert_int_equal(a[0].status, 0);
    CALL(&k, 200, ALICE, "POST", "/v1/jobs/3/cancel", NULL); /* while the forecast is being made */
    run_now();                                               /* answers all requests that wait for the outlook */
    assert_int_equal(a[0].status, 200);
    assert_int_equal(a[0].total, 2);
    assert_int_equal(a[1].status, 200);
    assert_int_equal(a[3].status, 200);
    assert_int_equal(a[2].status, 0);
    run_now(); /* the next run had been started */
    assert_int_equal(a[2].status, 200);
    assert_int_equal(put_off.len, 0);
    kit_done(&k);
}

/* Waiting requests are answered when the daemon stops; the running forecast is dropped, whether it ends before or
 * after. */
static void waiting_requests_are_answered_on_shutdown(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        struct asked_for a[2];
        struct kit k;
        waiting(&k);
        k.control->env.run_slow = run_later;
        ask(&k, "GET", "/v1/queue", NULL, &a[0]);
        ask(&k, "POST", "/v1/policies/test", "{\"ranking\": \"sjf\"}", &a[1]);
        control_quiesce(k.control);
        assert_int_equal(a[0].status, 503);
        assert_int_equal(a[1].status, 503);
        if (ends)
            run_now();
        put_off.len = 0;
        control_free(k.control);
        store_close(k.store);
        json_decref(k.body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_is_in_order),
        cmocka_unit_test(other_owners_are_shown_as_configured),
        cmocka_unit_test(forecasts_follow_the_state),
        cmocka_unit_test(why_is_complete),
        cmocka_unit_test(start_advice_is_verified_by_plan),
        cmocka_unit_test(start_advice_suggests_another_queue),
        cmocka_unit_test(quotas_are_named),
        cmocka_unit_test(dependencies_are_named),
        cmocka_unit_test(dry_run_includes_forecast),
        cmocka_unit_test(queue_shows_factors),
        cmocka_unit_test(policies_are_tried),
        cmocka_unit_test(what_if_adds_and_removes_nodes),
        cmocka_unit_test(invalid_requests_are_refused),
        cmocka_unit_test(jobs_are_listed_in_both_orders),
        cmocka_unit_test(holders_of_node_are_listed),
        cmocka_unit_test(holders_of_all_nodes_are_listed),
        cmocka_unit_test(past_holders_are_listed),
        cmocka_unit_test(use_is_summed_by_domain),
        cmocka_unit_test(requests_wait_for_the_worker),
        cmocka_unit_test(waiting_requests_are_answered_on_shutdown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
