/* batch_test.c - batches that end a job or come after its end; facts that need not be written. */
#include "control/api/kit_test.h"

#include "control/sched/batch.h"
#include "control/sched/batch_group.h"

#define SECOND_NS INT64_C(1000000000)

static void node_add(struct kit *k, const char *id, int cpu)
{
    char who[32], path[64], body[96];
    (void)snprintf(who, sizeof who, "node:%s", id);
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/report", id);
    (void)snprintf(body, sizeof body, "{id: %s, allocatable: {cpu: %d, memory: 8Gi}}", id, cpu);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", body);
    CALL(k, 200, who, "POST", path, "{epoch: 1, seq: 1}");
}

/* Reports all instances as running, for long enough that they may be preempted. */
static void report_all_running(struct kit *k)
{
    for (int i = 1; i <= 2; i++) {
        char body[96], path[64];
        (void)snprintf(path, sizeof path, "/v1/instances/%d", i);
        CALL(k, 200, ADMIN, "GET", path, NULL);
        (void)snprintf(path, sizeof path, "/v1/nodes/%s/report", kit_text(k, "node"));
        (void)snprintf(body, sizeof body, "{epoch: 1, seq: 2, instances: [{id: %d, state: running}]}", i);
        CALL(k, 200, ADMIN, "POST", path, body);
    }
    k->now_ns += 300 * SECOND_NS;
}

static const struct work_view *job(const struct kit *k, const char *id)
{
    const struct object *o = state_find(control_state(k->control), KIND_JOB, id);
    assert_non_null(o);
    return o->work;
}

/* Returns whether the next plan puts both actions into one batch. */
static bool same_batch(struct kit *k, enum berth_op op, const char *pod, enum berth_op other, const char *other_pod)
{
    struct state *s = control_state(k->control);
    struct berth_policy policy = {.preemption = {.on = true}};
    struct berth_snapshot *snapshot = berth_freeze(state_cluster(s), k->now_ns, 1);
    struct berth_plan *plan;
    assert_int_equal(berth_plan_make(snapshot, &policy, &plan, NULL), 0);
    struct batch_groups *groups = batch_groups_new(s);
    batch_groups_read(groups, plan);
    uint64_t a = UINT64_MAX, b = UINT64_MAX;
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action x = berth_plan_action(plan, i);
        char name[32];
        (void)snprintf(name, sizeof name, "%s/%u", x.workload, x.ordinal);
        if (x.op == op && strcmp(name, pod) == 0)
            a = batch_group_of(groups, &x);
        if (x.op == other && strcmp(name, other_pod) == 0)
            b = batch_group_of(groups, &x);
    }
    batch_groups_free(groups);
    berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    assert_true(a != UINT64_MAX && b != UINT64_MAX);
    return a && a == b;
}

/* Job 2 runs on a, and is cancelled when it is preempted there. Its second task has room on b, beside job 4's
 * reservation there. With a limit on both these are one batch, otherwise two. */
static void cancelled_job_gets_no_new_task(void **state)
{
    (void)state;
    for (int limited = 0; limited < 2; limited++) {
        struct kit k;
        kit_open(&k);
        node_add(&k, "a", 1);
        node_add(&k, "b", 2);
        if (limited)
            CALL(&k, 200, ADMIN, "PATCH", "/v1/users/admin", "{quota: {limits: {cpu: 100}}}");
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{command: [x], node: b, requests: {cpu: 2}}");
        kit_plan(&k);
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{command: [x], array: 0-1, requeue: false, requests: {cpu: 1}}");
        kit_plan(&k);
        report_all_running(&k);
        CALL(&k, 200, ADMIN, "PATCH", "/v1/nodes/b", "{allocatable: {cpu: 4, memory: 8Gi}}");
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{command: [x], node: a, priority: 5, requests: {cpu: 1}}");
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{command: [x], node: b, priority: 5, requests: {cpu: 3}}");
        assert_int_equal(same_batch(&k, BERTH_STOP, "2/0", BERTH_PLACE, "2/1"), limited);
        kit_plan(&k);
        assert_true(job(&k, "2")->cancelled);
        assert_int_equal(job(&k, "2")->instances_len, 1);
        assert_int_equal(job(&k, "2")->instances[0]->instance->state, BERTH_STOPPING);
        assert_int_equal(job(&k, "3")->instances_len, 1);
        assert_int_equal(job(&k, "4")->instances_len, 1);
        assert_int_equal(state_assumed(control_state(k.control)), 0);
        kit_done(&k);
    }
}

/* Like the test above, but job 1 on b would be stopped for that second task. */
static void no_victim_is_stopped_for_a_cancelled_job(void **state)
{
    (void)state;
    for (int limited = 0; limited < 2; limited++) {
        struct kit k;
        kit_open(&k);
        node_add(&k, "a", 1);
        node_add(&k, "b", 1);
        if (limited)
            CALL(&k, 200, ADMIN, "PATCH", "/v1/users/admin", "{quota: {limits: {cpu: 100}}}");
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs",
             "{command: [x], node: b, min_run: 60s, priority: -5, requests: {cpu: 1}}");
        kit_plan(&k);
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{command: [x], array: 0-1, preempt: cancel, requests: {cpu: 1}}");
        kit_plan(&k);
        report_all_running(&k);
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{command: [x], node: a, priority: 5, requests: {cpu: 1}}");
        assert_int_equal(same_batch(&k, BERTH_STOP, "2/0", BERTH_RESERVE, "2/1"), limited);
        kit_plan(&k);
        assert_true(job(&k, "2")->cancelled);
        assert_int_equal(job(&k, "2")->instances_len, 1);
        assert_int_equal(job(&k, "1")->instances_len, 1);
        assert_int_equal(job(&k, "1")->instances[0]->instance->state, BERTH_RUNNING);
        assert_int_equal(job(&k, "3")->instances[0]->instance->state, BERTH_RESERVED);
        assert_int_equal(state_assumed(control_state(k.control)), 0);
        kit_done(&k);
    }
}

/* The job's node is lost, and the job must not be requeued, not even on the free node. */
static void job_failed_with_its_node_gets_no_new_task(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    node_add(&k, "a", 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{command: [x], requeue: false, fence: 25s, requests: {cpu: 1}}");
    kit_plan(&k);
    kit_sleep(&k, 40);
    for (const char *id = "b\0c\0d\0"; *id; id += 2)
        node_add(&k, id, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{command: [x], node: b, requests: {cpu: 1}}");
    k.now_ns += 20 * SECOND_NS;
    assert_true(same_batch(&k, BERTH_LOSE, "1/0", BERTH_PLACE, "1/0"));
    k.now_ns -= 20 * SECOND_NS;
    kit_sleep(&k, 20);
    assert_true(job(&k, "1")->failed);
    assert_int_equal(job(&k, "1")->instances_len, 0);
    assert_int_equal(job(&k, "2")->instances_len, 1);
    kit_done(&k);
}

/* ---- facts ------------------------------------------------------------------------------------------------------ */

static void idle(void *ctx)
{
    ++*(int *)ctx;
}

struct fact_plan {
    struct berth_cluster *cluster;
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
};

/* Makes a plan with one fact only: pressure on a node since `now_ns`, or the end of that pressure. */
static struct fact_plan fact_plan_make(int64_t now_ns, bool over)
{
    static const struct berth_amount has[] = {
        {"memory", 100}
    };
    static const struct berth_amount used[] = {
        {"memory", 99}
    };
    struct berth_fact fact = {.kind = BERTH_FACT_PRESSURE, .key = "a", .value = 1, .at_ns = now_ns};
    struct berth_policy policy = berth_policy_usual();
    struct fact_plan r = {.cluster = berth_cluster_new()};
    struct berth_node node = {.id = "a", .allocatable = has, .allocatable_len = 1};
    if (!over) {
        node.used = used;
        node.used_len = 1;
    } else {
        assert_int_equal(berth_fact_put(r.cluster, &fact, NULL), 0);
    }
    assert_int_equal(berth_node_put(r.cluster, &node, NULL), 0);
    r.snapshot = berth_freeze(r.cluster, now_ns, 1);
    assert_int_equal(berth_plan_make(r.snapshot, &policy, &r.plan, NULL), 0);
    assert_int_equal(berth_plan_actions(r.plan), 0);
    assert_int_equal(berth_plan_facts(r.plan), 1);
    return r;
}

/* A fact that equals its document is not written. It is settled when its batch is done, unless a later batch assumes it
 * too: then that batch settles it. */
static void unwritten_fact_is_settled(void **state)
{
    (void)state;
    struct kit k;
    int idles = 0;
    kit_open(&k);
    node_add(&k, "a", 1);
    struct state *s = control_state(k.control);
    struct batches *batches = batches_new(k.control, idle, &idles);
    for (int over = 0; over < 2; over++) {
        struct fact_plan r = fact_plan_make(k.now_ns, over);
        struct berth_fact fact = berth_plan_fact(r.plan, 0);
        struct arena arena;
        arena_init(&arena);
        const char *id = fact_doc_id(&fact, &arena);
        for (int turn = 0; turn < 3; turn++) { /* 0: written; 1: unchanged; 2: unchanged in two batches */
            for (int n = 0; n <= turn / 2; n++) {
                struct batch_basis basis = {.cycle = (uint64_t)(1 + turn + n),
                                            .revision = state_revision(s),
                                            .profile = "",
                                            .now_ns = k.now_ns};
                assert_int_equal(batches_add(batches, r.plan, &basis), 1);
            }
            assert_true(state_is_assumed(s, KIND_FACT, id));
            for (size_t left = batches_len(batches); left > 0; left = batches_len(batches)) {
                CLEANUP(str) struct str told = {0};
                assert_true(state_is_assumed(s, KIND_FACT, id));
                batches_assumed(batches, &told);
                assert_non_null(strstr(str_text(&told), id));
                (void)store_pump(k.store);
                assert_true(batches_len(batches) == left - 1);
            }
            CLEANUP(str) struct str told = {0};
            batches_assumed(batches, &told);
            assert_string_equal(str_text(&told), "[]");
            assert_false(state_is_assumed(s, KIND_FACT, id));
            assert_int_equal(state_find(s, KIND_FACT, id) == NULL, over);
            assert_int_equal(batches_failure(batches), BATCHES_OK);
        }
        arena_done(&arena);
        berth_plan_free(r.plan);
        berth_snapshot_free(r.snapshot);
        berth_cluster_free(r.cluster);
    }
    assert_int_equal(idles, 6);
    batches_free(batches);
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancelled_job_gets_no_new_task),
        cmocka_unit_test(no_victim_is_stopped_for_a_cancelled_job),
        cmocka_unit_test(job_failed_with_its_node_gets_no_new_task),
        cmocka_unit_test(unwritten_fact_is_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
