/* batch_group_test.c - which actions of a plan are committed together. */
#include "control/api/kit_test.h"

#include "control/sched/batch_group.h"

/* A plan of the daemon's state, made by the test instead of the scheduling loop. */
struct planned {
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
    struct batch_groups *groups;
};

static struct planned plan(struct kit *k)
{
    struct state *s = control_state(k->control);
    struct berth_policy policy = {0};
    struct planned p = {.snapshot = berth_freeze(state_cluster(s), k->now_ns, 1)};
    assert_int_equal(berth_plan_make(p.snapshot, &policy, &p.plan, NULL), 0);
    p.groups = batch_groups_new(s);
    batch_groups_read(p.groups, p.plan);
    return p;
}

static void planned_done(struct planned *p)
{
    batch_groups_free(p->groups);
    berth_plan_free(p->plan);
    berth_snapshot_free(p->snapshot);
}

/* Returns the group of the first action of this kind on this workload. */
static uint64_t group_of(const struct planned *p, enum berth_op op, const char *workload)
{
    for (size_t i = 0; i < berth_plan_actions(p->plan); i++) {
        struct berth_action a = berth_plan_action(p->plan, i);
        if (a.op == op && strcmp(a.workload, workload) == 0)
            return batch_group_of(p->groups, &a);
    }
    fail_msg("no %s of %s", berth_op_name(op), workload);
    return 0;
}

static void cluster(struct kit *k)
{
    kit_open(k);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: a, allocatable: {cpu: 8, memory: 8Gi}}");
    CALL(k, 200, "node:a", "POST", "/v1/nodes/a/report", "{epoch: 1, seq: 1}");
}

static void independent_actions_have_no_group(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 2, requests: {cpu: 1}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: db, requests: {cpu: 1}}");
    struct planned p = plan(&k);
    assert_int_equal(berth_plan_actions(p.plan), 3);
    assert_int_equal(group_of(&p, BERTH_PLACE, "web.admin"), 0);
    assert_int_equal(group_of(&p, BERTH_PLACE, "db.admin"), 0);
    planned_done(&p);
    kit_done(&k);
}

static void each_gang_is_one_group(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{replicas: 2, gang: pair, requests: {cpu: 1}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{replicas: 2, gang: pair, requests: {cpu: 1}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{replicas: 2, gang: true, requests: {cpu: 1}}");
    struct planned p = plan(&k);
    uint64_t pair = group_of(&p, BERTH_PLACE, "1"), alone = group_of(&p, BERTH_PLACE, "3");
    assert_true(pair > 0 && alone > 0);
    assert_int_equal(group_of(&p, BERTH_PLACE, "2"), pair);
    assert_int_not_equal(alone, pair);
    planned_done(&p);
    kit_done(&k);
}

/* Every node has a pod with the port: a new pod can only replace an old one, and waits for its stop. */
static void reservation_and_awaited_stop_share_a_group(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: b, allocatable: {cpu: 8, memory: 8Gi}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 2, ports: [80], requests: {cpu: 1}}");
    kit_plan(&k);
    for (int i = 1; i <= 2; i++) {
        char body[96], path[64];
        (void)snprintf(path, sizeof path, "/v1/instances/%d", i);
        CALL(&k, 200, ADMIN, "GET", path, NULL);
        (void)snprintf(path, sizeof path, "/v1/nodes/%s/report", kit_text(&k, "node"));
        (void)snprintf(body, sizeof body, "{epoch: 1, seq: 2, instances: [{id: %d, state: running}]}", i);
        CALL(&k, 200, ADMIN, "POST", path, body);
    }
    CALL(&k, 200, ADMIN, "PATCH", "/v1/apps/web", "{env: {MODE: fast}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: c, ports: [80], allocatable: {cpu: 8, memory: 8Gi}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: db, node: c, requests: {cpu: 1}}");
    struct planned p = plan(&k);
    uint64_t stop = group_of(&p, BERTH_STOP, "web.admin");
    assert_true(stop > 0);
    assert_int_equal(group_of(&p, BERTH_RESERVE, "web.admin"), stop);
    assert_int_equal(group_of(&p, BERTH_PLACE, "db.admin"), 0);
    planned_done(&p);
    kit_done(&k);
}

/* The fencing of a pod on a lost node and its new placement are committed together. */
static void lost_pod_and_replacement_share_a_group(void **state)
{
    (void)state;
    struct kit k;
    cluster(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, fence: 1m, requests: {cpu: 1}}");
    kit_plan(&k);
    kit_sleep(&k, 40);
    for (int i = 0; i < 3; i++) {
        char body[96];
        (void)snprintf(body, sizeof body, "{id: more%d, allocatable: {cpu: 8, memory: 8Gi}}", i);
        CALL(&k, 201, ADMIN, "POST", "/v1/nodes", body);
    }
    k.now_ns += INT64_C(120) * 1000000000;
    struct planned p = plan(&k);
    uint64_t lose = group_of(&p, BERTH_LOSE, "web.admin");
    assert_true(lose > 0);
    assert_int_equal(group_of(&p, BERTH_PLACE, "web.admin"), lose);
    planned_done(&p);
    kit_done(&k);
}

/* A stop under a limit and a gang that may use the freed quota are one group. Workloads that no quota counts and
 * independent pods stay apart. */
static void freed_quota_and_its_user_share_a_group(void **state)
{
    (void)state;
    for (int limited = 0; limited < 2; limited++) {
        struct kit k;
        cluster(&k);
        if (limited)
            CALL(&k, 200, ADMIN, "PATCH", "/v1/users/admin", "{quota: {limits: {cpu: 6}}}");
        CALL(&k, 201, ADMIN, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}}");
        kit_plan(&k);
        CALL(&k, 200, ADMIN, "PATCH", "/v1/apps/web", "{replicas: 0}");
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{replicas: 2, gang: true, requests: {cpu: 1}}");
        CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{requests: {cpu: 1}}");
        struct planned p = plan(&k);
        uint64_t stop = group_of(&p, BERTH_STOP, "web.admin"), gang = group_of(&p, BERTH_PLACE, "1");
        assert_true(gang > 0);
        assert_int_equal(stop, limited ? gang : 0);
        assert_int_equal(group_of(&p, BERTH_PLACE, "2"), 0);
        planned_done(&p);
        kit_done(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(independent_actions_have_no_group),
        cmocka_unit_test(each_gang_is_one_group),
        cmocka_unit_test(reservation_and_awaited_stop_share_a_group),
        cmocka_unit_test(lost_pod_and_replacement_share_a_group),
        cmocka_unit_test(freed_quota_and_its_user_share_a_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
