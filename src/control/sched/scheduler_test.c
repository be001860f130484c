/* scheduler_test.c - the scheduling loop: when it plans, what it commits, how failed batches are handled, and that the
 * journal replays every decision.
 */
#include "control/api/kit_test.h"

#include <errno.h>
#include <inttypes.h>

#include "control/control_parts.h"
#include "control/journal/replay.h"
#include "control/node/lease.h"
#include "control/sched/scheduler.h"

static void cluster(struct kit *k, size_t nodes)
{
    char body[128];
    kit_open(k);
    kit_add_users(k);
    for (size_t i = 0; i < nodes; i++) {
        (void)snprintf(body, sizeof body, "{id: n%zu, allocatable: {cpu: 4, memory: 8Gi}}", i);
        CALL(k, 201, ADMIN, "POST", "/v1/nodes", body);
    }
    kit_plan(k);
}

static struct scheduler_status seen(struct kit *k)
{
    return scheduler_status(control_scheduler(k->control));
}

/* Replays all decisions so far and expects equal results. */
static void replays(struct kit *k, uint64_t cycles_min)
{
    struct replay_options options = {0};
    struct replay_result result;
    struct berth_err err;
    int rc = replay_run(k->store, &options, &result, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    assert_int_equal(result.different, 0);
    assert_true(result.cycles >= cycles_min);
}

static size_t placed(struct kit *k, const char *url)
{
    CALL(k, 200, ADMIN, "GET", url, NULL);
    return (size_t)kit_number(k, "status/placed");
}

/* Sends a request whose commit stays in the store's queue. */
static void queue(struct kit *k, const char *method, const char *path, const char *json)
{
    static const struct kit_query none = {0};
    kit_send(k, ADMIN, method, path, &none, json);
}

static void unplaced_pods_are_explained(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 2);
    CALL(&k, 201, "user:alice", "POST", "/v1/apps", "{name: web, replicas: 9, requests: {cpu: 1}}");
    kit_plan(&k);
    assert_int_equal(placed(&k, "/v1/apps/web.alice"), 8);
    assert_string_equal(kit_text(&k, "status/state"), "pending");
    assert_string_equal(kit_text(&k, "status/conditions/0/counts/0/what"), "cpu");
    assert_int_equal(kit_number(&k, "status/conditions/0/counts/0/nodes"), 2);
    CALL(&k, 200, "user:alice", "GET", "/v1/events", NULL);
    SAYS(&k, "FailedScheduling");
    CALL(&k, 200, "user:bob", "GET", "/v1/events", NULL);
    assert_null(strstr(k.text, "web.alice"));
    assert_int_equal(seen(&k).assumed, 0);
    assert_int_equal(seen(&k).pending, 1);
    replays(&k, 1);
    kit_done(&k);
}

static void unchanged_state_makes_no_plan(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}}");
    kit_plan(&k);
    uint64_t cycles = seen(&k).cycles;
    uint64_t revision = store_revision(k.store);
    kit_sleep(&k, 100);
    kit_sleep(&k, 100);
    assert_int_equal(seen(&k).cycles, cycles);
    assert_int_equal(store_revision(k.store), revision);
    /* POST /v1/schedule forces a plan and is answered when the plan is made. */
    queue(&k, "POST", "/v1/schedule", NULL);
    assert_false(k.answered);
    kit_plan(&k);
    assert_int_equal(k.status, 200);
    assert_true(kit_number(&k, "cycle") > (int64_t)cycles);
    assert_int_equal(kit_number(&k, "actions"), 0);
    assert_int_equal(store_revision(k.store), revision);
    CLEANUP(str) struct str metrics = {0};
    metrics_write(k.control->metrics, &metrics);
    assert_non_null(strstr(str_text(&metrics), "berth_cycles_total{result=\"unchanged_plan\"} "));
    assert_null(strstr(str_text(&metrics), "berth_cycles_total{result=\"unchanged_plan\"} 0\n"));
    kit_done(&k);
}

static void recheck_time_makes_a_plan(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: later, begin: 2026-03-01T12:10:00Z, requests: {cpu: 1}}");
    kit_sleep(&k, 30);
    assert_int_equal(placed(&k, "/v1/jobs/1"), 0);
    kit_sleep(&k, 600);
    assert_int_equal(placed(&k, "/v1/jobs/1"), 1);
    replays(&k, 1);
    kit_done(&k);
}

static void conflicting_batch_is_planned_again(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 3, requests: {cpu: 1}}");
    /* The node shrinks in a transaction that is still queued when the plan is made. */
    queue(&k, "PUT", "/v1/nodes/n0/capabilities", "{\"allocatable\": {\"cpu\": 2}}");
    (void)scheduler_step(control_scheduler(k.control), k.steady_ns);
    assert_int_equal(seen(&k).actions, 3);
    assert_int_equal(seen(&k).assumed, 3);
    kit_plan(&k);
    assert_int_equal(k.status, 200);
    assert_int_equal(placed(&k, "/v1/apps/web.admin"), 2);
    assert_int_equal(seen(&k).assumed, 0);
    assert_int_equal(state_audit(control_state(k.control), NULL), 0);
    replays(&k, 1);
    kit_done(&k);
}

static void workload_deleted_during_planning_is_not_placed(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 2, requests: {cpu: 1}}");
    queue(&k, "DELETE", "/v1/apps/web", NULL);
    (void)scheduler_step(control_scheduler(k.control), k.steady_ns);
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    assert_int_equal(state_audit(control_state(k.control), NULL), 0);
    kit_done(&k);
}

static void next_plan_counts_assumed_instances(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    struct scheduler *s = control_scheduler(k.control);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: a, replicas: 3, requests: {cpu: 1}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: b, replicas: 3, stopped: true, requests: {cpu: 1}}");
    queue(&k, "POST", "/v1/apps/b/start", NULL);
    (void)scheduler_step(s, k.steady_ns);
    assert_int_equal(seen(&k).assumed, 3);
    /* `b` starts; a's batch is queued behind that and is still assumed when the next plan is made. */
    (void)scheduler_step(s, k.steady_ns);
    kit_plan(&k);
    assert_int_equal(placed(&k, "/v1/apps/a.admin"), 3);
    assert_int_equal(placed(&k, "/v1/apps/b.admin"), 1);
    assert_int_equal(state_audit(control_state(k.control), NULL), 0);
    replays(&k, 2);
    kit_done(&k);
}

static void full_disk_is_retried_with_pauses(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}}");
    store_memory_fail(k.store, ENOSPC, 1000);
    kit_plan(&k);
    assert_int_equal(placed(&k, "/v1/apps/web.admin"), 0);
    assert_int_equal(seen(&k).assumed, 0); /* rolled back */
    uint64_t cycles = seen(&k).cycles;
    kit_plan(&k);
    assert_true(seen(&k).cycles <= cycles + 2); /* retries are paused */
    CALL(&k, 503, ADMIN, "POST", "/v1/apps", "{name: other}");
    store_memory_fail(k.store, ENOSPC, 0);
    kit_sleep(&k, 11);
    assert_int_equal(placed(&k, "/v1/apps/web.admin"), 1);
    assert_int_equal(state_audit(control_state(k.control), NULL), 0);
    replays(&k, 1);
    kit_done(&k);
}

static void gang_is_one_batch(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 60);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{policy: fifo}");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: gang, replicas: 230, gang: true, requests: {cpu: 1}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: big, replicas: 20, gang: true, requests: {cpu: 1}}");
    uint64_t before = store_revision(k.store);
    kit_plan(&k);
    assert_int_equal(placed(&k, "/v1/jobs/1"), 230);
    assert_int_equal(store_revision(k.store), before + 1); /* the other 20 do not fit: all or nothing */
    assert_int_equal(placed(&k, "/v1/jobs/2"), 0);
    replays(&k, 1);
    kit_done(&k);
}

static void many_actions_are_several_batches(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 60);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 230, requests: {cpu: 1}}");
    uint64_t before = store_revision(k.store);
    kit_plan(&k);
    assert_int_equal(placed(&k, "/v1/apps/web.admin"), 230);
    assert_int_equal(store_revision(k.store), before + 3);
    replays(&k, 1);
    kit_done(&k);
}

static void planning_continues_after_a_crash(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 2, requests: {cpu: 1}}");
    (void)scheduler_step(control_scheduler(k.control), k.steady_ns);
    assert_int_equal(seen(&k).assumed, 2);
    kit_restart(&k); /* before the batch is durable */
    CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    kit_plan(&k);
    assert_int_equal(placed(&k, "/v1/apps/web.admin"), 2);
    kit_restart(&k);
    uint64_t revision = store_revision(k.store);
    kit_plan(&k);
    assert_int_equal(store_revision(k.store), revision); /* no action is left */
    replays(&k, 1);
    kit_done(&k);
}

static void silent_node_is_lost_and_comes_back(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 3);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 2, spread: node, requests: {cpu: 1}}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report", "{epoch: 1, seq: 1, instances: [{id: 1, state: running}]}");
    kit_sleep(&k, 20);
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n0", NULL);
    assert_string_not_equal(kit_text(&k, "state"), "lost");
    kit_sleep(&k, 15);
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n0", NULL);
    assert_string_equal(kit_text(&k, "state"), "lost");
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL); /* no agent has ever reported: no heartbeat is missed */
    assert_string_not_equal(kit_text(&k, "state"), "lost");
    CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 3); /* replaced */
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report", "{epoch: 1, seq: 2, instances: []}");
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n0", NULL);
    assert_string_not_equal(kit_text(&k, "state"), "lost");
    kit_plan(&k);
    assert_int_equal(state_audit(control_state(k.control), NULL), 0);
    replays(&k, 2);
    kit_done(&k);
}

static void restarted_daemon_grants_fresh_leases(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report", "{epoch: 1, seq: 1, instances: []}");
    k.now_ns += INT64_C(3600) * 1000000000; /* the daemon was down for an hour */
    k.steady_ns += INT64_C(3600) * 1000000000;
    kit_restart(&k);
    kit_sleep(&k, 20);
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n0", NULL);
    assert_string_not_equal(kit_text(&k, "state"), "lost");
    kit_sleep(&k, 31);
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n0", NULL);
    assert_string_equal(kit_text(&k, "state"), "lost");
    kit_done(&k);
}

/* The instances of pod db/0: "number:node state, number:node state". */
static const char *db_0(struct kit *k, struct str *text)
{
    const struct object *work = state_find(control_state(k->control), KIND_APP, "db.admin");
    assert_non_null(work);
    str_clear(text);
    for (size_t i = 0; i < work->work->instances_len; i++) {
        const struct instance_view *v = work->work->instances[i]->instance;
        if (v->ordinal == 0)
            str_addf(text, "%s%" PRIu64 ":%s %s", text->len ? ", " : "", v->number, v->node,
                     berth_state_name(v->state));
    }
    return str_text(text);
}

/* Node n0 with instance 3 of db/0 is lost. An app with two replicas may have a second instance at once: instance 5 is
 * reserved on n1, where instance 2 of job 1 stops for it. Its end has been reported since the last plan. */
static void reserve_beside_a_lost_instance(struct kit *k)
{
    CLEANUP(str) struct str text = {0};
    cluster(k, 4);
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{preempt_min_run_s: 0}");
    CALL(k, 201, ADMIN, "POST", "/v1/jobs", "{command: [x], node: n1, priority: -5, requests: {cpu: 4}}");
    CALL(k, 201, ADMIN, "POST", "/v1/jobs", "{command: [x], node: n2, priority: 5, requests: {cpu: 4}}");
    kit_plan(k);
    CALL(k, 201, ADMIN, "POST", "/v1/apps", "{name: db, replicas: 2, max_per_node: 1, requests: {cpu: 3}}");
    kit_plan(k);
    assert_string_equal(db_0(k, &text), "3:n0 assigned");
    CALL(k, 200, ADMIN, "POST", "/v1/nodes/n0/report", "{epoch: 1, seq: 1, instances: [{id: 3, state: running}]}");
    kit_sleep(k, 35);
    assert_string_equal(db_0(k, &text), "3:n0 running, 5:n1 reserved");
    CALL(k, 200, ADMIN, "POST", "/v1/nodes/n1/report",
         "{epoch: 1, seq: 1, instances: [{id: 2, state: ended, exit: 0}]}");
}

static void a_promotion_conflicts_with_a_change_of_its_workload(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *json;
        const char *planned, *ended; /* after the plans; after the end of instance 3 as well */
    } rows[] = {
        {"POST",  "/v1/apps/db/scale", "{\"replicas\": 1}",        "3:n0 stopping",                ""             },
        {"POST",  "/v1/apps/db/scale", "{\"replicas\": 0}",        "3:n0 stopping",                ""             },
        {"PATCH", "/v1/apps/db",       "{\"on_lost\": \"fence\"}", "3:n0 stopping, 5:n1 reserved", "5:n1 assigned"},
        {"PATCH", "/v1/apps/db",       "{\"display\": \"DB\"}",    "3:n0 running, 5:n1 assigned",  "5:n1 assigned"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(str) struct str text = {0};
        struct kit k;
        print_message("# %s\n", rows[i].json);
        reserve_beside_a_lost_instance(&k);
        /* The request is in the store's queue when the plan assigns the reserved place. */
        queue(&k, rows[i].method, rows[i].path, rows[i].json);
        (void)scheduler_step(control_scheduler(k.control), k.steady_ns);
        assert_int_equal(seen(&k).actions, 1);
        kit_plan(&k);
        assert_int_equal(k.status, 200);
        assert_string_equal(db_0(&k, &text), rows[i].planned);
        CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report",
             "{epoch: 1, seq: 2, instances: [{id: 3, state: ended, exit: 0}]}");
        kit_plan(&k);
        assert_string_equal(db_0(&k, &text), rows[i].ended);
        assert_int_equal(seen(&k).assumed, 0);
        assert_int_equal(state_audit(control_state(k.control), NULL), 0);
        replays(&k, 1);
        kit_done(&k);
    }
}

/* Makes a plan when the request is answered, before later events of the store are delivered. */
static void plan_when_answered(void *ctx, struct answer *answer)
{
    struct kit *k = ctx;
    assert_int_equal(answer->status, 200);
    (void)scheduler_step(control_scheduler(k->control), k->steady_ns);
}

static void plan_on_rolled_back_change_is_discarded(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 4);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps",
         "{name: web, replicas: 4, on_lost: fence, fence: 1s, ports: [80], requests: {cpu: 3}}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report", "{epoch: 1, seq: 1, instances: []}");
    kit_plan(&k);
    for (int i = 0; i < 31; i++) {
        k.now_ns += INT64_C(1000000000);
        k.steady_ns += INT64_C(1000000000);
        (void)leases_expire(k.control, k.steady_ns);
    }
    (void)store_pump(k.store);
    k.now_ns += INT64_C(2000000000);
    k.steady_ns += INT64_C(2000000000);
    /* The node is back, but the plan that declares its pod lost was made before. The next plan knows about the node but
     * counts the pod as gone: it would place a second pod beside the one that still runs. */
    struct request_input back = {.method = "POST",
                                 .path = "/v1/nodes/n0/report",
                                 .peer = ADMIN,
                                 .remote = "192.0.2.1",
                                 .body = "{\"epoch\": 1, \"seq\": 2, \"instances\": []}"};
    back.body_len = strlen(back.body);
    control_handle(k.control, &back, plan_when_answered, &k);
    (void)scheduler_step(control_scheduler(k.control), k.steady_ns);
    assert_int_equal(seen(&k).actions, 1);
    (void)store_pump(k.store);
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 4);
    assert_int_equal(seen(&k).assumed, 0);
    assert_int_equal(state_audit(control_state(k.control), NULL), 0);
    replays(&k, 1);
    kit_done(&k);
}

/* Each daemon numbers its cycles from 1. */
static void plans_of_all_daemons_are_replayed(void **state)
{
    (void)state;
    struct kit k;
    struct replay_options options = {0};
    struct replay_result result;
    cluster(&k, 2);
    for (int i = 0; i < 3; i++) {
        kit_restart(&k);
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: a, requests: {cpu: 1}}");
        kit_plan(&k);
    }
    assert_int_equal(replay_run(k.store, &options, &result, NULL), 0);
    assert_int_equal(result.cycles, 3);
    assert_int_equal(result.different, 0);
    kit_done(&k);
}

/* A stopping daemon receives no more reports. */
static void stopping_daemon_declares_no_node_lost(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report", "{epoch: 1, seq: 1, instances: []}");
    uint64_t revision = store_revision(k.store);
    control_quiesce(k.control);
    kit_sleep(&k, 100);
    assert_int_equal(store_revision(k.store), revision);
    kit_done(&k);
}

static size_t count(struct kit *k, enum kind kind)
{
    size_t len;
    (void)state_list(control_state(k->control), kind, &len);
    return len;
}

static void unneeded_records_are_swept(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 2, requests: {cpu: 1}}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report",
         "{epoch: 1, seq: 1, instances: [{id: 1, state: running}, {id: 2, state: failed, error: no}]}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/apps/web", "{command: [a]}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/apps/web", "{command: [b]}");
    assert_int_equal(count(&k, KIND_FACT), 0); /* a change of the app ends the restart pause of its failed pod */
    assert_true(count(&k, KIND_SPEC) >= 2);
    kit_sleep(&k, 5);
    kit_plan(&k);
    k.steady_ns += INT64_C(60000000000);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report",
         "{epoch: 1, seq: 2, instances: [{id: 3, state: failed, error: no}]}");
    control_tick(k.control);
    kit_plan(&k);
    assert_int_equal(count(&k, KIND_SPEC), 1); /* the running pod was placed from this spec */
    assert_int_equal(count(&k, KIND_FACT), 1);
    CALL(&k, 204, ADMIN, "DELETE", "/v1/apps/web", NULL);
    k.steady_ns += INT64_C(60000000000);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report", "{epoch: 1, seq: 3, instances: []}");
    control_tick(k.control);
    kit_plan(&k);
    assert_int_equal(count(&k, KIND_FACT), 0);
    assert_true(count(&k, KIND_SPEC) >= 1);
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report",
         "{epoch: 1, seq: 4, instances: [{id: 1, state: stopped}, {id: 3, state: stopped}]}");
    k.steady_ns += INT64_C(60000000000);
    control_tick(k.control);
    kit_plan(&k);
    assert_int_equal(count(&k, KIND_SPEC), 0);
    assert_int_equal(state_audit(control_state(k.control), NULL), 0);
    kit_done(&k);
}

static void text_cut_within_a_character_is_valid_utf8(void **state)
{
    (void)state;
    struct kit k;
    char body[1024];
    cluster(&k, 1);
    /* The text has two-byte characters and is cut within one of them: errors at 80 bytes, events at 240. */
    (void)snprintf(body, sizeof body, "{id: ab, name: a%s%s%s%s}",
                   "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9",
                   "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9",
                   "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9",
                   "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9");
    CALL(&k, 400, ADMIN, "POST", "/v1/apps", body);
    SAYS(&k, "does not match ab");
    for (size_t shift = 0; shift < 2; shift++) {
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: a, requests: {cpu: 1}}");
        kit_plan(&k);
        size_t len =
            (size_t)snprintf(body, sizeof body, "{epoch: 1, seq: %zu, instances: [{id: %zu, state: failed, error: \"%s",
                             shift + 1, shift + 1, shift ? "x" : "");
        for (size_t i = 0; i < 150; i++)
            len += (size_t)snprintf(body + len, sizeof body - len, "\u00e9");
        (void)snprintf(body + len, sizeof body - len, "\"}]}");
        CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report", body);
        CALL(&k, 200, ADMIN, "GET", "/v1/events?limit=100", NULL);
        SAYS(&k, "\"Failed\"");
        (void)snprintf(body, sizeof body, "instance %zu on n0", shift + 1);
        SAYS(&k, body);
    }
    kit_done(&k);
}

static void suspended_daemon_declares_no_node_lost(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        int away_s, well_s, lost_s;
    } rows[] = {
        {"{lease_s: 30}", 100, 20, 12}, /* stopped by a debugger, swapped out, ... */
        {"{lease_s: 3}",  3,   2,  3 }, /* the machine paused for a moment */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kit k;
        cluster(&k, 1);
        CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", rows[i].settings);
        CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n0/report", "{epoch: 1, seq: 1, instances: []}");
        kit_sleep(&k, 1);
        k.now_ns += rows[i].away_s * INT64_C(1000000000);
        k.steady_ns += rows[i].away_s * INT64_C(1000000000);
        kit_sleep(&k, rows[i].well_s);
        CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n0", NULL);
        assert_string_not_equal(kit_text(&k, "state"), "lost");
        kit_sleep(&k, rows[i].lost_s);
        CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n0", NULL);
        assert_string_equal(kit_text(&k, "state"), "lost");
        kit_done(&k);
    }
}

static void tampered_store_is_detected_by_replay(void **state)
{
    (void)state;
    struct kit k;
    struct replay_options options = {0};
    struct replay_result result;
    cluster(&k, 2);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}}");
    /* Written to the store behind the daemon's back, so in no journal record. */
    kit_put(&k, KIND_NODE, "n0", "{v: 1, id: n0, generation: 1, allocatable: {cpu: 100, memory: 100Gi}}");
    kit_plan(&k);
    assert_int_equal(replay_run(k.store, &options, &result, NULL), 0);
    assert_true(result.different >= 1);
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unplaced_pods_are_explained),
        cmocka_unit_test(unchanged_state_makes_no_plan),
        cmocka_unit_test(recheck_time_makes_a_plan),
        cmocka_unit_test(conflicting_batch_is_planned_again),
        cmocka_unit_test(workload_deleted_during_planning_is_not_placed),
        cmocka_unit_test(next_plan_counts_assumed_instances),
        cmocka_unit_test(full_disk_is_retried_with_pauses),
        cmocka_unit_test(gang_is_one_batch),
        cmocka_unit_test(many_actions_are_several_batches),
        cmocka_unit_test(planning_continues_after_a_crash),
        cmocka_unit_test(silent_node_is_lost_and_comes_back),
        cmocka_unit_test(restarted_daemon_grants_fresh_leases),
        cmocka_unit_test(a_promotion_conflicts_with_a_change_of_its_workload),
        cmocka_unit_test(plan_on_rolled_back_change_is_discarded),
        cmocka_unit_test(plans_of_all_daemons_are_replayed),
        cmocka_unit_test(stopping_daemon_declares_no_node_lost),
        cmocka_unit_test(unneeded_records_are_swept),
        cmocka_unit_test(text_cut_within_a_character_is_valid_utf8),
        cmocka_unit_test(suspended_daemon_declares_no_node_lost),
        cmocka_unit_test(tampered_store_is_detected_by_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
