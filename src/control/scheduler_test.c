/* scheduler_test.c - the loop: when it plans, what it commits, what becomes of a unit that fails, and that all can be
 * made again from the journal. */
#include "control/kit_test.h"

#include <errno.h>

#include "control/replay.h"
#include "control/scheduler.h"

static void cluster(struct kit *k, size_t nodes)
{
    char body[128];
    kit_open(k);
    kit_people(k);
    for (size_t i = 0; i < nodes; i++) {
        (void)snprintf(body, sizeof body, "{id: n%zu, allocatable: {cpu: 4, memory: 8Gi}}", i);
        CALL(k, 201, ADMIN, "POST", "/v1/nodes", body);
    }
    kit_plan(k);
}

static struct scheduler_seen seen(struct kit *k)
{
    return scheduler_seen(control_scheduler(k->control));
}

/* Everything decided so far comes out the same again. */
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

/* Sends a request that stays in the store's queue. */
static void queue(struct kit *k, const char *method, const char *path, const char *json)
{
    static const struct kit_query none = {0};
    kit_send(k, ADMIN, method, path, &none, json);
}

static void pods_are_placed_and_the_rest_is_explained(void **state)
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

static void nothing_new_means_no_plan(void **state)
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
    /* One call forces it, and answers when it is made. */
    queue(&k, "POST", "/v1/schedule", NULL);
    assert_false(k.answered);
    kit_plan(&k);
    assert_int_equal(k.status, 200);
    assert_true(kit_number(&k, "cycle") > (int64_t)cycles);
    assert_int_equal(kit_number(&k, "actions"), 0);
    assert_int_equal(store_revision(k.store), revision);
    kit_done(&k);
}

static void time_alone_may_make_a_plan(void **state)
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

static void a_unit_in_conflict_is_planned_again(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 3, requests: {cpu: 1}}");
    /* The node shrinks in a transaction that is on its way when the plan is made. */
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

static void a_workload_that_goes_meanwhile_is_not_placed(void **state)
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

static void the_next_plan_counts_what_is_assumed(void **state)
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
    /* `b` starts; a's unit is in the same queue behind it, and is still assumed when the next plan is made. */
    (void)scheduler_step(s, k.steady_ns);
    kit_plan(&k);
    assert_int_equal(placed(&k, "/v1/apps/a.admin"), 3);
    assert_int_equal(placed(&k, "/v1/apps/b.admin"), 1);
    assert_int_equal(state_audit(control_state(k.control), NULL), 0);
    replays(&k, 2);
    kit_done(&k);
}

static void a_full_disk_is_waited_out(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}}");
    store_memory_fail(k.store, ENOSPC, 1000);
    kit_plan(&k);
    assert_int_equal(placed(&k, "/v1/apps/web.admin"), 0);
    assert_int_equal(seen(&k).assumed, 0); /* given back */
    uint64_t cycles = seen(&k).cycles;
    kit_plan(&k);
    assert_true(seen(&k).cycles <= cycles + 2); /* with pauses */
    CALL(&k, 503, ADMIN, "POST", "/v1/apps", "{name: other}");
    store_memory_fail(k.store, ENOSPC, 0);
    kit_sleep(&k, 11);
    assert_int_equal(placed(&k, "/v1/apps/web.admin"), 1);
    assert_int_equal(state_audit(control_state(k.control), NULL), 0);
    replays(&k, 1);
    kit_done(&k);
}

static void a_gang_is_one_unit(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 60);
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: gang, replicas: 230, gang: true, requests: {cpu: 1}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: big, replicas: 20, gang: true, requests: {cpu: 1}}");
    uint64_t before = store_revision(k.store);
    kit_plan(&k);
    assert_int_equal(placed(&k, "/v1/jobs/1"), 230);
    assert_int_equal(store_revision(k.store), before + 1); /* 20 more do not fit: all or nothing */
    assert_int_equal(placed(&k, "/v1/jobs/2"), 0);
    replays(&k, 1);
    kit_done(&k);
}

static void many_actions_are_several_units(void **state)
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

static void planning_goes_on_after_a_crash(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 2, requests: {cpu: 1}}");
    (void)scheduler_step(control_scheduler(k.control), k.steady_ns);
    assert_int_equal(seen(&k).assumed, 2);
    kit_restart(&k); /* before the unit is durable */
    CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0);
    kit_plan(&k);
    assert_int_equal(placed(&k, "/v1/apps/web.admin"), 2);
    kit_restart(&k);
    uint64_t revision = store_revision(k.store);
    kit_plan(&k);
    assert_int_equal(store_revision(k.store), revision); /* nothing is left to do */
    replays(&k, 1);
    kit_done(&k);
}

static void a_node_that_falls_silent_is_lost_and_comes_back(void **state)
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
    CALL(&k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL); /* has no agent: nobody is missed */
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

static void a_restarted_daemon_grants_fresh_leases(void **state)
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

static void a_tampered_journal_is_noticed(void **state)
{
    (void)state;
    struct kit k;
    struct replay_options options = {0};
    struct replay_result result;
    cluster(&k, 2);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}}");
    /* Written past the daemon, and so in no record. */
    kit_put(&k, KIND_NODE, "n0", "{v: 1, id: n0, generation: 1, allocatable: {cpu: 100, memory: 100Gi}}");
    kit_plan(&k);
    assert_int_equal(replay_run(k.store, &options, &result, NULL), 0);
    assert_true(result.different >= 1);
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_placed_and_the_rest_is_explained),
        cmocka_unit_test(nothing_new_means_no_plan),
        cmocka_unit_test(time_alone_may_make_a_plan),
        cmocka_unit_test(a_unit_in_conflict_is_planned_again),
        cmocka_unit_test(a_workload_that_goes_meanwhile_is_not_placed),
        cmocka_unit_test(the_next_plan_counts_what_is_assumed),
        cmocka_unit_test(a_full_disk_is_waited_out),
        cmocka_unit_test(a_gang_is_one_unit),
        cmocka_unit_test(many_actions_are_several_units),
        cmocka_unit_test(planning_goes_on_after_a_crash),
        cmocka_unit_test(a_node_that_falls_silent_is_lost_and_comes_back),
        cmocka_unit_test(a_restarted_daemon_grants_fresh_leases),
        cmocka_unit_test(a_tampered_journal_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
