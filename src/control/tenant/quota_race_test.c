/* quota_race_test.c - no order of commits exceeds a quota, even if what a plan counts on is gone, or counts for another
 * quota, before its batch is committed.
 */
#include "control/api/kit_test.h"

#include "control/control_parts.h"
#include "control/journal/replay.h"
#include "control/sched/scheduler.h"

static void node(struct kit *k, const char *id)
{
    char body[160], who[32], path[64];
    (void)snprintf(body, sizeof body, "{id: %s, allocatable: {cpu: 8, memory: 8Gi}}", id);
    (void)snprintf(who, sizeof who, "node:%s", id);
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/report", id);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", body);
    CALL(k, 200, who, "POST", path, "{epoch: 1, seq: 1}");
}

static size_t placed(struct kit *k, const char *app)
{
    const struct object *o = state_find(control_state(k->control), KIND_APP, app);
    assert_non_null(o);
    size_t n = 0;
    for (size_t i = 0; i < o->work->instances_len; i++)
        n += o->work->instances[i]->instance->state != BERTH_STOPPING;
    return n;
}

static void is_sound(struct kit *k)
{
    struct replay_options options = {0};
    struct replay_result result = {0};
    struct berth_err err = {0};
    if (state_audit(control_state(k->control), &err) < 0 || replay_run(k->store, &options, &result, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(result.different, 0);
    assert_int_equal(state_assumed(control_state(k->control)), 0);
}

/* ---- a delayed plan --------------------------------------------------------------------------------------------- */

static struct {
    void (*after)(void *);
    void *arg;
} late;

static void run_late(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    (void)ctx;
    work(arg);
    late.after = after;
    late.arg = arg;
}

/* Makes a plan from the present state and holds its result back. */
static void plan_begin(struct kit *k)
{
    late.after = NULL;
    k->control->env.run = run_late;
    k->now_ns += 1000000;
    k->steady_ns += 1000000;
    (void)scheduler_step(control_scheduler(k->control), k->steady_ns);
    assert_non_null(late.after);
}

/* Delivers the plan: its first batch is submitted. */
static void plan_end(struct kit *k)
{
    k->control->env.run = kit_run;
    late.after(late.arg);
}

/* The app uses more than the limit, which was lowered since. A migration needs no more quota as long as the old
 * instance exists. During planning the node restarts without the old instance; the new one alone would then exceed the
 * limit. */
static void migration_from_a_gone_instance_counts(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    node(&k, "a");
    node(&k, "b");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/users/admin", "{quota: {limits: {cpu: 4}}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, requests: {cpu: 2}}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances/1", NULL);
    char who[32], path[64], on[8];
    (void)snprintf(on, sizeof on, "%s", kit_text(&k, "node"));
    (void)snprintf(who, sizeof who, "node:%s", on);
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/report", on);
    CALL(&k, 200, who, "POST", path, "{epoch: 1, seq: 2, instances: [{id: 1, state: running, ready: true}]}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/users/admin", "{quota: {limits: {cpu: 1}}}");
    kit_plan(&k);
    char drain[64];
    (void)snprintf(drain, sizeof drain, "/v1/nodes/%s/drain", on);
    CALL(&k, 200, ADMIN, "POST", drain, NULL);
    plan_begin(&k);
    CALL(&k, 200, who, "POST", path, "{epoch: 2, seq: 1, instances: [{id: 1, state: failed}]}");
    CALL(&k, 404, ADMIN, "GET", "/v1/instances/1", NULL);
    plan_end(&k);
    kit_plan(&k);
    assert_int_equal(placed(&k, "web.admin"), 0);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/users/admin", "{quota: {limits: {cpu: 2}}}");
    kit_sleep(&k, 60);
    assert_int_equal(placed(&k, "web.admin"), 1);
    is_sound(&k);
    kit_done(&k);
}

/* A queued transaction makes bob's use count for the group red; the batch for alice is submitted after it. */
static void use_moved_to_another_quota_counts(void **state)
{
    static const struct {
        const char *label, *url, *body, *undo;
    } rows[] = {
        {"a user changes the group", "/v1/users/bob",    "{group: red}",    "{group: blue}"  },
        {"a queue gets a parent",    "/v1/queues/lower", "{parent: upper}", "{parent: other}"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit k;
        struct kit_query none = {0};
        bool queue = i == 1;
        kit_open(&k);
        kit_add_users(&k);
        node(&k, "a");
        CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: upper, quota: {limits: {cpu: 2}}}");
        CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: other}");
        CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: lower, parent: other}");
        CALL(&k, 200, ADMIN, "PATCH", "/v1/groups/red", "{quota: {limits: {cpu: 2}}}");
        CALL(&k, 201, "user:bob", "POST", "/v1/jobs", "{command: [x], queue: lower, requests: {cpu: 2}}");
        kit_plan(&k);
        CALL(&k, 201, "user:alice", "POST", "/v1/jobs",
             queue ? "{command: [x], queue: upper, requests: {cpu: 1}}" : "{command: [x], requests: {cpu: 1}}");
        plan_begin(&k);
        CLEANUP(json) json_t *doc = NULL;
        assert_int_equal(yaml_parse(rows[i].body, strlen(rows[i].body), "body", &doc, NULL), 0);
        char *body = json_dumps(doc, JSON_COMPACT);
        kit_send(&k, ADMIN, "PATCH", rows[i].url, &none, body);
        assert_false(k.answered);
        plan_end(&k); /* submitted after the transaction */
        for (int n = 0; n < 100 && !k.answered; n++)
            (void)store_pump(k.store);
        free(body);
        if (k.status != 200)
            fail_msg("%s: %s", rows[i].label, k.text);
        kit_plan(&k);
        const struct object *job = state_find(control_state(k.control), KIND_JOB, "2");
        if (job->work->instances_len)
            fail_msg("%s: 3 of 2 cpu are held", rows[i].label);
        CALL(&k, 200, ADMIN, "PATCH", rows[i].url, rows[i].undo);
        kit_plan(&k);
        assert_int_equal(state_find(control_state(k.control), KIND_JOB, "2")->work->instances_len, 1);
        is_sound(&k);
        kit_done(&k);
    }
}

/* A batch that places nothing under a quota, or stays within it, does not write the quota ledger. */
static void ledger_is_written_only_when_counts_change(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    kit_add_users(&k);
    node(&k, "a");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/groups/red", "{quota: {limits: {cpu: 4}}}");
    const struct object *before = state_find(control_state(k.control), KIND_LEDGER, LEDGER_QUOTAS);
    uint64_t revision = before ? before->revision : 0;
    CALL(&k, 201, "user:alice", "POST", "/v1/jobs", "{command: [x], requests: {cpu: 1}}");
    kit_plan(&k);
    assert_int_equal(state_find(control_state(k.control), KIND_JOB, "1")->work->instances_len, 1);
    const struct object *after = state_find(control_state(k.control), KIND_LEDGER, LEDGER_QUOTAS);
    assert_int_equal(after ? after->revision : 0, revision);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/users/bob", "{group: red}"); /* bob uses nothing */
    after = state_find(control_state(k.control), KIND_LEDGER, LEDGER_QUOTAS);
    assert_int_equal(after ? after->revision : 0, revision);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/users/alice", "{group: blue}");
    after = state_find(control_state(k.control), KIND_LEDGER, LEDGER_QUOTAS);
    assert_non_null(after);
    assert_true(after->revision > revision);
    is_sound(&k);
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(migration_from_a_gone_instance_counts),
        cmocka_unit_test(use_moved_to_another_quota_counts),
        cmocka_unit_test(ledger_is_written_only_when_counts_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
