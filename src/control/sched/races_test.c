/* races_test.c - regressions with concurrent, late and repeated events, and with restarts. */
#include "control/api/kit_test.h"
#include "control/state/commit.h"

#include <errno.h>
#include <inttypes.h>

#include "control/journal/replay.h"
#include "control/sched/scheduler.h"

static void node(struct kit *k, const char *id)
{
    char body[160];
    (void)snprintf(body, sizeof body, "{id: %s, allocatable: {cpu: 4, memory: 8Gi}}", id);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", body);
}

static int report(struct kit *k, const char *id, unsigned epoch, unsigned seq, const char *instances)
{
    char who[64], path[96], body[512];
    (void)snprintf(who, sizeof who, "node:%s", id);
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/report", id);
    (void)snprintf(body, sizeof body, "{epoch: %u, seq: %u, instances: [%s]}", epoch, seq, instances);
    return kit_call(k, who, "POST", path, body);
}

static const char *node_state(struct kit *k, const char *id)
{
    char path[96];
    (void)snprintf(path, sizeof path, "/v1/nodes/%s", id);
    CALL(k, 200, ADMIN, "GET", path, NULL);
    return kit_text(k, "state");
}

static void is_sound(struct kit *k)
{
    struct replay_options options = {0};
    struct replay_result result = {0};
    struct berth_err err = {0};
    if (state_audit(control_state(k->control), &err) < 0 || replay_run(k->store, &options, &result, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(result.different, 0);
}

/* ---- leases ----------------------------------------------------------------------------------------------------- */

static void readded_node_is_a_different_node(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    node(&k, "a");
    assert_int_equal(report(&k, "a", 7, 100, ""), 200);
    CALL(&k, 204, ADMIN, "DELETE", "/v1/nodes/a", NULL);
    kit_sleep(&k, 40);
    node(&k, "a");
    kit_sleep(&k, 5);
    assert_string_equal(node_state(&k, "a"), "ready"); /* not lost by the lease of the first node */
    assert_int_equal(report(&k, "a", 1, 1, ""), 200);  /* a lower epoch than the first node's agent had */
    kit_done(&k);
}

static void late_report_does_not_restore_lost_node(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    node(&k, "a");
    assert_int_equal(report(&k, "a", 1, 1, ""), 200);
    assert_int_equal(report(&k, "a", 1, 5, ""), 200);
    kit_sleep(&k, 40);
    assert_string_equal(node_state(&k, "a"), "lost");
    kit_restart(&k); /* the restarted daemon knows no heartbeat */
    assert_int_equal(report(&k, "a", 1, 4, ""), 409);
    assert_string_equal(node_state(&k, "a"), "lost");
    assert_int_equal(report(&k, "a", 1, 6, ""), 200);
    assert_string_equal(node_state(&k, "a"), "ready");
    kit_done(&k);
}

static void wall_clock_jump_ends_no_fence(void **state)
{
    (void)state;
    for (int restart = 0; restart < 2; restart++) {
        struct kit k;
        kit_open(&k);
        node(&k, "a");
        assert_int_equal(report(&k, "a", 1, 1, ""), 200);
        CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: db, fence: 5m, requests: {cpu: 1}}");
        kit_plan(&k);
        assert_int_equal(report(&k, "a", 1, 2, "{id: 1, state: running}"), 200);
        kit_sleep(&k, 40);
        assert_string_equal(node_state(&k, "a"), "lost");
        k.now_ns += INT64_C(3600) * 1000000000;
        k.jumped_ns += INT64_C(3600) * 1000000000;
        if (restart)
            kit_restart(&k);
        node(&k, "b");
        kit_sleep(&k, 60);
        CALL(&k, 200, ADMIN, "GET", "/v1/instances/1", NULL); /* its agent has fenced nothing yet */
        kit_sleep(&k, 300);
        CALL(&k, 404, ADMIN, "GET", "/v1/instances/1", NULL);
        CALL(&k, 200, ADMIN, "GET", "/v1/instances/2", NULL);
        assert_string_equal(kit_text(&k, "node"), "b");
        is_sound(&k);
        kit_done(&k);
    }
}

/* ---- the store's queue ------------------------------------------------------------------------------------------ */

/* If the store's queue is full, the daemon's own commits are repeated after a pause, not at once as after a
 * conflict. */
static void full_store_queue_is_not_a_conflict(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    node(&k, "a");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: j, command: [x], hold: true}");
    kit_plan(&k);
    kit_queue_fill(&k);
    CALL(&k, 503, ADMIN, "POST", "/v1/groups", "{id: lab}");
    SAYS(&k, "unavailable");
    struct change change;
    struct arena arena;
    struct berth_err err = {0};
    arena_init(&arena);
    change_init(&change, control_state(k.control), &arena);
    kit_queue_fill(&k);
    const struct commit_note note = {
        .who = "berth", .verb = "t", .extra = {"{\"t\":1}", 7}
    };
    assert_int_equal(commit_submit(k.control, &change, &note, kit_ignore_result, NULL, &err), -ENOBUFS);
    change_done(&change);
    arena_done(&arena);
    kit_sleep(&k, 2);
    CALL(&k, 201, ADMIN, "POST", "/v1/groups", "{id: lab}");
    is_sound(&k);
    kit_done(&k);
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

static void written_report_is_not_applied_twice(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    node(&k, "a");
    assert_int_equal(report(&k, "a", 1, 1, ""), 200);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 2, requests: {cpu: 1}}");
    kit_plan(&k);
    assert_int_equal(report(&k, "a", 1, 2, "{id: 1, state: running}, {id: 2, state: running}"), 200);
    assert_int_equal(report(&k, "a", 1, 3, "{id: 1, state: failed}, {id: 2, state: running}"), 200);
    uint64_t revision = store_revision(k.store);
    assert_int_equal(report(&k, "a", 1, 3, "{id: 1, state: failed}, {id: 2, state: running}"), 409);
    assert_int_equal(store_revision(k.store), revision);
    /* reports of a healthy instance do not end the restart pause of a failed one */
    assert_int_equal(report(&k, "a", 1, 4, "{id: 2, state: running}"), 200);
    assert_non_null(state_find(control_state(k.control), KIND_FACT, "since/web.admin"));
    kit_restart(&k);
    kit_plan(&k);
    CALL(&k, 404, ADMIN, "GET", "/v1/instances/3", NULL); /* the restart pause survives a restart of the daemon */
    is_sound(&k);
    kit_done(&k);
}

static void report_during_queued_stop_is_applied(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    node(&k, "a");
    assert_int_equal(report(&k, "a", 1, 1, ""), 200);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 2, max_per_node: 2, requests: {cpu: 1}}");
    kit_plan(&k);
    assert_int_equal(report(&k, "a", 1, 2, "{id: 1, state: running}, {id: 2, state: running}"), 200);
    CALL(&k, 200, ADMIN, "POST", "/v1/apps/web/scale", "{replicas: 1}");
    (void)scheduler_step(control_scheduler(k.control), k.steady_ns); /* the stop is queued, with no request before it */
    size_t assumed = state_assumed(control_state(k.control));
    assert_int_equal(assumed, 1);
    assert_int_equal(report(&k, "a", 1, 3,
                            "{id: 1, state: running, usage: {cpu: 900m}}, {id: 2, state: running, "
                            "usage: {cpu: 900m}}"),
                     200);
    kit_plan(&k);
    is_sound(&k);
    kit_done(&k);
}

/* ---- final states, reservations --------------------------------------------------------------------------------- */

static void finished_task_outlives_its_node(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    node(&k, "a");
    node(&k, "b");
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/b/cordon", NULL);
    assert_int_equal(report(&k, "a", 1, 1, ""), 200);
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{command: [/bin/true], requests: {cpu: 1}}");
    kit_plan(&k);
    assert_int_equal(report(&k, "a", 1, 2, "{id: 1, state: ended}"), 200);
    CALL(&k, 204, ADMIN, "DELETE", "/v1/nodes/a", NULL); /* no instance is left on the node */
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/b/enable", NULL);
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/jobs/1", NULL);
    assert_string_equal(kit_text(&k, "status/state"), "ended");
    CALL(&k, 404, ADMIN, "GET", "/v1/instances/2", NULL);
    is_sound(&k);
    kit_restart(&k);
    kit_plan(&k);
    CALL(&k, 404, ADMIN, "GET", "/v1/instances/2", NULL);
    kit_done(&k);
}

static void idempotency_key_covers_requests_without_change(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 1}");
    k.key = "once";
    CALL(&k, 200, ADMIN, "POST", "/v1/apps/web/start", NULL); /* the app is started already */
    CALL(&k, 200, ADMIN, "POST", "/v1/apps/web/stop", NULL);
    k.key = "once";
    CALL(&k, 200, ADMIN, "POST", "/v1/apps/web/start", NULL); /* same key: the first answer is repeated */
    CALL(&k, 200, ADMIN, "GET", "/v1/apps/web", NULL);
    assert_true(json_is_true(kit_at(&k, "stopped")));
    k.key = "once";
    CALL(&k, 409, ADMIN, "POST", "/v1/apps/web/restart", NULL);
    kit_done(&k);
}

static void forced_plan_request_is_answered_when_stopping(void **state)
{
    (void)state;
    static const struct kit_query none = {0};
    struct kit k;
    kit_open(&k);
    kit_plan(&k);
    kit_send(&k, ADMIN, "POST", "/v1/schedule", &none, NULL);
    assert_false(k.answered);
    control_quiesce(k.control);
    assert_true(k.answered);
    assert_int_equal(k.status, 503);
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readded_node_is_a_different_node),
        cmocka_unit_test(late_report_does_not_restore_lost_node),
        cmocka_unit_test(wall_clock_jump_ends_no_fence),
        cmocka_unit_test(full_store_queue_is_not_a_conflict),
        cmocka_unit_test(written_report_is_not_applied_twice),
        cmocka_unit_test(report_during_queued_stop_is_applied),
        cmocka_unit_test(finished_task_outlives_its_node),
        cmocka_unit_test(idempotency_key_covers_requests_without_change),
        cmocka_unit_test(forced_plan_request_is_answered_when_stopping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
