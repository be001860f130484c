/* queue_test.c - queues, policies, windows, domains, quotas and routes: rejected documents, and effects on the cluster.
 */
#include "control/api/kit_test.h"

#include "control/journal/replay.h"
#include "control/sched/plan_policy.h"
#include "control/state/sync.h"

#define CAROL "user:carol" /* manager of group red */
#define ALICE "user:alice" /* in group red */
#define BOB "user:bob"     /* in group blue */

static void open_world(struct kit *k)
{
    kit_open(k);
    kit_add_users(k);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 32Gi, pods: 100}, zone: z}");
    CALL(k, 201, ADMIN, "POST", "/v1/nodes",
         "{id: n2, allocatable: {cpu: 8, memory: 32Gi, pods: 100}, zone: z, labels: {rack: r2}}");
}

/* Checks that the maintained cluster equals a rebuilt one, counters included. */
static void audited(struct kit *k)
{
    struct berth_err err = {0};
    if (state_audit(control_state(k->control), &err) < 0)
        fail_msg("%s", err.text);
}

static int64_t held(struct kit *k, const char *quota, const char *resource, bool asked)
{
    struct berth_quota_use use;
    (void)berth_quota_use(state_cluster(control_state(k->control)), quota, resource, &use);
    return asked ? use.asked : use.held;
}

/* One rejected request. */
struct refused {
    const char *who, *method, *path, *body;
    int status;
    const char *words;
};

static void refuse_all(struct kit *k, const struct refused *rows, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t before = state_revision(control_state(k->control));
        CALL(k, rows[i].status, rows[i].who, rows[i].method, rows[i].path, rows[i].body);
        SAYS(k, rows[i].words);
        assert_int_equal(state_revision(control_state(k->control)), before);
    }
}

static void users_stay_within_their_group(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/groups/red",
         "{quota: {limits: {gpu: 8, cpu: 64}, totals: [{resource: gpu, hours: 100, period: 30d}]}}");
    CALL(&k, 200, CAROL, "PATCH", "/v1/users/alice", "{level: 7, weight: 2, quota: {limits: {gpu: 6, memory: 1Ti}}}");
    static const struct refused rows[] = {
        {CAROL, "PATCH", "/v1/users/carol", "{quota: {limits: {gpu: 3}}}",                                   400,
         "group red has 8 gpu, of which its other users have 6 gpu; carol can have at most 2 gpu"                                           },
        {ADMIN, "PATCH", "/v1/groups/red",  "{quota: {limits: {gpu: 5}}}",                                   400,
         "users of group red have 6 gpu together, which is more than 5 gpu"                                                                 },
        {ADMIN, "PATCH", "/v1/users/alice", "{quota: {totals: [{resource: gpu, hours: 101, period: 30d}]}}", 400,
         "100 gpu hours"                                                                                                                    },
        {ADMIN, "PATCH", "/v1/users/alice", "{quota: {totals: [{resource: gpu, hours: 1, period: 1d}]}}",    400,
         "has another period"                                                                                                               },
        {ADMIN, "PATCH", "/v1/users/alice", "{quota: {limits: {gpus: 1}}}",                                  400,
         "gpus: there is no such resource; did you mean \\\"gpu\\\"?"                                                                       },
        {CAROL, "PATCH", "/v1/groups/red",  "{level: 100}",                                                  403, "may not change group red"},
        {CAROL, "PATCH", "/v1/users/bob",   "{level: 1}",                                                    404, "no user"                 },
        {ALICE, "PATCH", "/v1/users/alice", "{level: 99}",                                                   403, "may not"                 },
    };
    refuse_all(&k, rows, COUNT(rows));
    CALL(&k, 200, CAROL, "PATCH", "/v1/users/carol", "{quota: {limits: {gpu: 2}}}");
    CALL(&k, 400, ADMIN, "POST", "/v1/users", "{id: dora, group: red, quota: {limits: {gpu: 0.5}}}");
    SAYS(&k, "dora can have at most 0 gpu");
    /* A transaction is checked as a whole. */
    CALL(&k, 200, ADMIN, "POST", "/v1/txn",
         "{changes: [{op: put, kind: user, id: alice, object: {group: red, quota: {limits: {gpu: 1}}}},"
         " {op: put, kind: user, id: carol, object: {group: red, role: manager, quota: {limits: {gpu: 7}}}}]}");
    CALL(&k, 200, ADMIN, "GET", "/v1/users/carol", NULL);
    assert_string_equal(kit_text(&k, "status/use/gpu/limit"), "7");
    audited(&k);
    kit_done(&k);
}

static void queues_are_a_tree(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: whole, weight: 2}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: prod, parent: whole, priority: 5}");
    CALL(&k, 201, ADMIN, "POST", "/v1/domains", "{id: east, nodes: [n1]}");
    static const struct refused rows[] = {
        {ADMIN, "POST",   "/v1/queues",       "{id: x, parent: nowhere}",          400, "there is no queue nowhere"        },
        {ADMIN, "PATCH",  "/v1/queues/whole", "{parent: prod}",                    400, "prod is a descendant of whole"    },
        {ADMIN, "PATCH",  "/v1/queues/whole", "{parent: whole}",                   400, "is a descendant of whole"         },
        {ADMIN, "POST",   "/v1/queues",       "{id: x, users: [nobody]}",          400, "users[0]: there is no user nobody"},
        {ADMIN, "POST",   "/v1/queues",       "{id: x, groups: [none]}",           400, "groups[0]: there is no group none"},
        {ADMIN, "POST",   "/v1/queues",       "{id: x, domains: [west]}",          400, "domains[0]: there is no domain"   },
        {ADMIN, "POST",   "/v1/queues",       "{id: x, policy: fifoo}",            400, "did you mean fifo?"               },
        {ADMIN, "POST",   "/v1/queues",       "{id: x, quota: {limits: {a: -1}}}", 400, "quota: limits: a"                 },
        {ADMIN, "DELETE", "/v1/queues/whole", NULL,                                409, "queue whole is the parent of prod"},
        {CAROL, "POST",   "/v1/queues",       "{id: x}",                           403, "may not"                          },
        {CAROL, "DELETE", "/v1/queues/prod",  NULL,                                403, "may not"                          },
    };
    refuse_all(&k, rows, COUNT(rows));
    char body[64];
    const char *parent = "prod";
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < COUNT(names); i++, parent = names[i - 1]) {
        (void)snprintf(body, sizeof body, "{id: %s, parent: %s}", names[i], parent);
        CALL(&k, 201, ADMIN, "POST", "/v1/queues", body);
    }
    CALL(&k, 400, ADMIN, "POST", "/v1/queues", "{id: e, parent: d}");
    SAYS(&k, "more than 6 levels");
    CALL(&k, 200, ALICE, "GET", "/v1/queues/prod", NULL);
    assert_int_equal(kit_number(&k, "status/jobs"), 0);
    /* Two queues swap places: in between there is a cycle. */
    CALL(&k, 204, ADMIN, "DELETE", "/v1/queues/d", NULL);
    CALL(&k, 200, ADMIN, "POST", "/v1/txn",
         "{changes: [{op: put, kind: queue, id: b, object: {parent: prod}},"
         " {op: put, kind: queue, id: a, object: {parent: b}}]}");
    audited(&k);
    kit_put(&k, KIND_QUEUE, "b", "{v: 1, id: b, parent: a}"); /* as a concurrent transaction might write it */
    kit_put(&k, KIND_QUEUE, "a", "{v: 1, id: a, parent: prod}");
    audited(&k);
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{queue: c, requests: {cpu: 1}}");
    assert_int_equal(held(&k, "queue/whole", "cpu", true), 1000);
    CALL(&k, 409, ADMIN, "DELETE", "/v1/queues/c", NULL);
    SAYS(&k, "is in queue c");
    audited(&k);
    kit_done(&k);
}

static void queue_admits_only_its_users(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/domains", "{id: east, nodes: [n1]}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues",
         "{id: prod, users: [bob], groups: [red], max_time: 2h, time_limit: 1h, domains: [east], priority_class: 50}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: own, users: [bob]}");
    static const struct refused rows[] = {
        {ALICE, "POST", "/v1/jobs", "{queue: own}",                   403, "own is not open to user alice; it is open to user bob"},
        {ALICE, "POST", "/v1/jobs", "{queue: prd}",                   400, "did you mean prod?"                                   },
        {ALICE, "POST", "/v1/jobs", "{queue: prod, time_limit: 3h}",  400, "queue prod allows at most 2h"                         },
        {ALICE, "POST", "/v1/jobs", "{queue: prod, domains: [west]}", 400, "runs jobs in east"                                    },
    };
    refuse_all(&k, rows, COUNT(rows));
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{queue: prod, requests: {cpu: 1}}");
    int64_t first = kit_number(&k, "id");
    CALL(&k, 201, BOB, "POST", "/v1/jobs", "{queue: prod}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{queue: default}");
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/jobs/%lld", (long long)kit_number(&k, "id"));
    CALL(&k, 403, ALICE, "PATCH", path, "{queue: own}");
    CALL(&k, 409, ADMIN, "DELETE", "/v1/users/bob?force=true", NULL);
    SAYS(&k, "queue own is open to user bob");
    kit_plan(&k);
    (void)snprintf(path, sizeof path, "/v1/instances?workload=%lld", (long long)first);
    CALL(&k, 200, ADMIN, "GET", path, NULL);
    assert_string_equal(kit_text(&k, "items/0/node"), "n1");
    audited(&k);
    kit_done(&k);
}

static void use_beyond_admitted_is_rejected(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/users/alice", "{quota: {limits: {cpu: 6}, admitted: {cpu: 8, jobs: 3}}}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{requests: {cpu: 2}, replicas: 3}");
    static const struct refused rows[] = {
        {ALICE, "POST",  "/v1/jobs",   "{requests: {cpu: 3}}",                    403,
         "quota user/alice: 6 cpu of 8 cpu are admitted; this job requests 3 cpu, and 2 cpu would be accepted; ask a "
         "manager of group red, or wait"                                                                                                      },
        {ALICE, "POST",  "/v1/jobs",   "{requests: {cpu: 7}}",                    403, "quota user/alice: at most 6 cpu at once"              },
        {ALICE, "PATCH", "/v1/jobs/1", "{replicas: 5}",                           403, "this job requests 10 cpu, and 8 cpu would be accepted"},
        {ALICE, "POST",  "/v1/apps",   "{name: web, requests: {cpu: 3}}",         403, "this app requests 3 cpu"                              },
        {ALICE, "POST",  "/v1/txn",
         "{changes: [{op: put, kind: app, id: a, object: {name: a, requests: {cpu: 1}}},"
         " {op: put, kind: app, id: b, object: {name: b, requests: {cpu: 2}}}]}", 403, "7 cpu of 8 cpu are admitted"                          },
    };
    refuse_all(&k, rows, COUNT(rows));
    CALL(&k, 200, ALICE, "PATCH", "/v1/jobs/1", "{display: mine}"); /* requests no more */
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{requests: {cpu: 2}}");
    CALL(&k, 200, ALICE, "POST", "/v1/jobs/1/cancel", NULL);
    assert_int_equal(held(&k, "user/alice", "cpu", true), 2000); /* ended jobs are not counted */
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{requests: {cpu: 6}}");
    CALL(&k, 403, ALICE, "POST", "/v1/jobs/1/requeue", NULL); /* a requeued job is admitted anew */
    SAYS(&k, "8 cpu of 8 cpu are admitted");
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/1", NULL);
    SAYS(&k, "\"cancelled\":true");
    audited(&k);
    kit_done(&k);
}

static void policies_are_checked_when_written(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/policies", "{id: mine, formula: 'age + size'}");
    CALL(&k, 201, ADMIN, "POST", "/v1/policies", "{id: mix, weights: {age: 10}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: q, policy: mix}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{policy: mine}");
    static const struct refused rows[] = {
        {ADMIN, "PUT",    "/v1/policies/mine",   "{formula: 'age +'}",     400, "mula"               },
        {ADMIN, "PUT",    "/v1/policies/mix",    "{weights: {colour: 3}}", 400, "colour"             },
        {ADMIN, "PUT",    "/v1/policies/mix",    "{ranking: fastest}",     400, "fastest"            },
        {ADMIN, "DELETE", "/v1/policies/mix",    NULL,                     409, "queue q uses policy"},
        {ADMIN, "DELETE", "/v1/policies/mine",   NULL,                     409, "is in use"          },
        {ADMIN, "PATCH",  "/v1/system/settings", "{policy: mien}",         400, "did you mean mine?" },
        {ADMIN, "PATCH",  "/v1/system/settings", "{backfill_policy: sfj}", 400, "did you mean sjf?"  },
        {ADMIN, "PATCH",  "/v1/system/settings", "{charges: 'cpu'}",       400, "charges: expected"  },
        {ALICE, "POST",   "/v1/policies",        "{id: p}",                403, "may not"            },
    };
    refuse_all(&k, rows, COUNT(rows));
    struct plan_policy p;
    plan_policy_read(control_state(k.control), &p);
    assert_string_equal(p.policy.order.ranking.name, "formula");
    assert_int_equal(p.policy.order.queues_len, 1);
    assert_string_equal(p.policy.order.queues[0].ranking.name, "multifactor");
    assert_int_equal(p.policy.order.charges[1].amount, 10000);
    assert_null(p.policy.backfill.ranking.name);
    /* While one plan uses the compiled formula, another plan gets its own copy. */
    struct plan_policy other;
    plan_policy_read(control_state(k.control), &other);
    assert_ptr_not_equal(p.policy.order.ranking.ctx, other.policy.order.ranking.ctx);
    plan_policy_done(&other);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{policy: fifo, backfill_policy: mine}");
    CALL(&k, 409, ADMIN, "DELETE", "/v1/policies/mine", NULL);
    plan_policy_read(control_state(k.control), &other);
    assert_string_equal(other.policy.order.ranking.name, "fifo");
    assert_string_equal(other.policy.backfill.ranking.name, "formula");
    plan_policy_done(&other);
    CALL(&k, 200, ADMIN, "PUT", "/v1/policies/mine", "{formula: 'size'}"); /* a formula in use stays */
    assert_string_equal(p.policy.order.ranking.name, "formula");
    plan_policy_done(&p);
    kit_done(&k);
}

/* A stored formula that does not compile, as a later version might leave it, stops no plan and is reported once. */
static void uncompilable_formula_stops_no_plan(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    kit_put(&k, KIND_POLICY, "odd", "{v: 1, id: odd, formula: 'age + + nothing('}");
    kit_put(&k, KIND_SETTING, "system", "{v: 1, policy: odd}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{requests: {cpu: 1}}");
    kit_plan(&k);
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{requests: {cpu: 1}}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 2);
    CALL(&k, 200, ADMIN, "GET", "/v1/events", NULL);
    size_t told = 0, i;
    json_t *event;
    json_array_foreach(kit_at(&k, "items"), i, event)
    {
        const char *type = json_string_value(json_object_get(event, "type"));
        told += type && strcmp(type, "PolicyFailed") == 0;
    }
    assert_int_equal(told, 1);
    kit_done(&k);
}

static void windows_and_domains(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/domains", "{id: east, nodes: [n1], keep: {cpu: 2}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/domains", "{id: west, require: {rack: r2}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/domains", "{id: zest, require: {rack: {exists: true}}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: q, domains: [west]}");
    static const struct refused rows[] = {
        {ADMIN, "POST",   "/v1/domains",           "{id: d, nodes: [n1]}",                       400, "n1 is in domain east; remove it there"     },
        {ADMIN, "POST",   "/v1/domains",           "{id: d, nodes: [n9]}",                       400, "there is no node n9"                       },
        {ADMIN, "DELETE", "/v1/domains/west",      NULL,                                         409, "queue q uses domain west"                  },
        {ADMIN, "PATCH",  "/v1/nodes/n1",          "{domain: west}",                             400, "n1 is in domain east, which lists the node"},
        {ADMIN, "PUT",    "/v1/nodes/n2/settings", "{labels: {rack: r2}, domain: east}",         400,
         "n2 is in domain west, whose `require` matches the labels of the node"                                                                   },
        {ADMIN, "POST",   "/v1/nodes",             "{id: n7, labels: {rack: r2}, domain: east}", 400, "n7 is in domain west"                      },
        {ADMIN, "POST",   "/v1/windows",
         "{id: w, start: '2026-03-02T00:00:00Z', duration: 1h, nodes: [n9], maintenance: true}", 400,
         "there is no node n9"                                                                                                                    },
        {ADMIN, "POST",   "/v1/windows",
         "{id: w, start: '2026-03-02T00:00:00Z', duration: 1h, nodes: [n1], users: [zoe]}",      400,
         "there is no user zoe"                                                                                                                   },
        {ADMIN, "POST",   "/v1/windows",
         "{id: w, start: '2020-03-02T00:00:00Z', duration: 1h, nodes: [n1], users: [bob]}",      400, "end: is in the past"                       },
    };
    refuse_all(&k, rows, COUNT(rows));
    CALL(&k, 200, ALICE, "GET", "/v1/domains/zest", NULL);
    assert_string_equal(kit_text(&k, "status/elsewhere/0/domain"), "west");
    /* The domain in a node's document counts if no domain has the node. */
    CALL(&k, 200, ADMIN, "PATCH", "/v1/nodes/n1", "{domain: east}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/nodes/n1", "{domain: null}");
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n7, domain: east}");
    CALL(&k, 200, ALICE, "GET", "/v1/domains/east", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "status/nodes")), 2);
    CALL(&k, 204, ADMIN, "DELETE", "/v1/nodes/n7", NULL);
    /* A node joins and leaves domains when its labels change. */
    CALL(&k, 200, ADMIN, "PATCH", "/v1/nodes/n2", "{labels: {rack: r3}}");
    CALL(&k, 200, ALICE, "GET", "/v1/domains/zest", NULL);
    assert_string_equal(kit_text(&k, "status/nodes/0"), "n2");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{queue: q, requests: {cpu: 1}}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 0); /* west has no node */
    CALL(&k, 200, ADMIN, "PUT", "/v1/domains/west", "{nodes: [n2]}");
    audited(&k);
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_string_equal(kit_text(&k, "items/0/node"), "n2");

    CALL(&k, 201, ADMIN, "POST", "/v1/windows",
         "{id: w, start: '2026-03-01T13:00:00Z', duration: 1h, nodes: [n1], users: [bob], groups: [red]}");
    struct plan_policy p;
    plan_policy_read(control_state(k.control), &p);
    assert_int_equal(p.policy.windows_len, 1);
    assert_int_equal(p.policy.windows[0].quotas_len, 2);
    assert_string_equal(p.policy.windows[0].quotas[1], "group/red");
    assert_int_equal(p.policy.headroom.reserves_len, 1);
    assert_string_equal(p.policy.headroom.reserves[0].domain, "east");
    plan_policy_done(&p);
    kit_done(&k);
}

static void jobs_are_routed(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: big}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: late}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: closed, users: [bob]}");
    static const struct refused rows[] = {
        {ALICE, "PUT", "/v1/routes", "{rules: []}",                                                                 403, "may not"          },
        {ADMIN, "PUT", "/v1/routes", "{rules: [{queue: bgi}]}",                                                     400, "did you mean big?"},
        {ADMIN, "PUT", "/v1/routes", "{rules: [{when: {queue: big}, queue: late}]}",                                400, "add waited"       },
        {ADMIN, "PUT", "/v1/routes",
         "{rules: [{when: {queue: big, waited: 1h}, queue: late}, {when: {queue: late, waited: 2h}, queue: big}]}", 400,
         "form a loop"                                                                                                                      },
        {ADMIN, "PUT", "/v1/routes", "{rules: [{when: {size: 3}, queue: big}]}",                                    400, "size"             },
    };
    refuse_all(&k, rows, COUNT(rows));
    CALL(&k, 200, ADMIN, "PUT", "/v1/routes",
         "{rules: [{when: {pods_min: 3}, queue: closed}, {when: {pods_min: 3}, queue: big},"
         " {when: {queue: big, waited: 1m}, queue: late}]}");
    CALL(&k, 409, ADMIN, "DELETE", "/v1/queues/big", NULL);
    /* the queue "closed" is not open to her */
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{replicas: 3, requests: {cpu: 100}}");
    CALL(&k, 201, BOB, "POST", "/v1/jobs", "{replicas: 3}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{replicas: 3, queue: late}");
    static const char *const queues[] = {"big", "closed", "", "late"};
    for (size_t i = 0; i < COUNT(queues); i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "/v1/jobs/%zu", i + 1);
        CALL(&k, 200, ADMIN, "GET", path, NULL);
        assert_string_equal(kit_text(&k, "queue"), queues[i]);
    }
    kit_sleep(&k, 50);
    CALL(&k, 200, ADMIN, "GET", "/v1/jobs/1", NULL);
    assert_string_equal(kit_text(&k, "queue"), "big");
    kit_sleep(&k, 30);
    CALL(&k, 200, ADMIN, "GET", "/v1/jobs/1", NULL);
    assert_string_equal(kit_text(&k, "queue"), "late");
    assert_int_equal(kit_number(&k, "generation"), 1);
    CALL(&k, 200, ADMIN, "GET", "/v1/events", NULL);
    SAYS(&k, "moved from queue big to late");
    audited(&k);
    kit_done(&k);
}

/* A formula that compiles, and fails for some jobs. */
static void failing_formula_stops_no_plan(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/policies",
         "{id: odd, formula: 'if pods == 7 then return nil + 1 end return size'}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{policy: odd}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{requests: {cpu: 1}, replicas: 7, gang: true}");
    CALL(&k, 201, BOB, "POST", "/v1/jobs", "{requests: {cpu: 1}, replicas: 2}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(&k, "items")), 9);
    CALL(&k, 200, ADMIN, "GET", "/v1/events", NULL);
    SAYS(&k, "the formula fails");
    kit_done(&k);
}

/* A job's order in the cluster is updated when a queue's policy, priority class or level changes. */
static void job_order_follows_changes(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    static const struct {
        const char *method, *path, *body;
    } changes[] = {
        {"PATCH",  "/v1/queues/q",          "{priority_class: 100}"                      },
        {"PATCH",  "/v1/queues/q",          "{priority_class: null, priority: 5}"        },
        {"PUT",    "/v1/queues/q",          "{time_limit: 1h, quota: {limits: {cpu: 8}}}"},
        {"PATCH",  "/v1/system/settings",   "{policy: levels}"                           },
        {"PATCH",  "/v1/users/bob",         "{level: 90}"                                },
        {"PATCH",  "/v1/groups/red",        "{level: 80}"                                },
        {"PATCH",  "/v1/users/bob",         "{level: 0, weight: 4, group: red}"          },
        {"PATCH",  "/v1/users/bob",         "{group: null}"                              },
        {"POST",   "/v1/users/bob/disable", NULL                                         },
        {"POST",   "/v1/users/bob/enable",  NULL                                         },
        {"PATCH",  "/v1/groups/red",        "{level: 0, quota: {limits: {cpu: 9}}}"      },
        {"PUT",    "/v1/policies/levels",   "{weights: {age: 1}}"                        },
        {"PATCH",  "/v1/jobs/2",            "{queue: default}"                           },
        {"DELETE", "/v1/queues/q",          NULL                                         },
    };
    CALL(&k, 201, ADMIN, "POST", "/v1/policies", "{id: levels, weights: {user_level: 50, group_level: 50}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: q}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{requests: {cpu: 4}, replicas: 9}");
    CALL(&k, 201, BOB, "POST", "/v1/jobs", "{requests: {cpu: 3}, replicas: 9, queue: q}");
    for (size_t i = 0; i < COUNT(changes); i++) {
        int status = kit_call(&k, ADMIN, changes[i].method, changes[i].path, changes[i].body);
        if (status != 200 && status != 204)
            fail_msg("%s %s: %s", changes[i].path, changes[i].body, k.text);
        struct berth_err err = {0};
        if (state_audit(control_state(k.control), &err) < 0)
            fail_msg("%s %s: %s", changes[i].path, changes[i].body, err.text);
    }
    kit_done(&k);
}

static void priority_class_goes_first(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: urgent, priority_class: 10}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{requests: {cpu: 1}, replicas: 16, priority: 9}");
    CALL(&k, 201, BOB, "POST", "/v1/jobs", "{requests: {cpu: 1}, replicas: 16, queue: urgent}");
    kit_plan(&k);
    assert_int_equal(held(&k, "queue/urgent", "cpu", false), 16000);
    assert_int_equal(held(&k, "queue/default", "cpu", false), 0);
    kit_done(&k);
}

/* A queue inherits missing values from its parent, and changes of the parent reach the jobs below. */
static void queues_inherit(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/domains", "{id: east, nodes: [n1]}");
    CALL(&k, 201, ADMIN, "POST", "/v1/domains", "{id: west, nodes: [n2]}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: top, groups: [red], max_time: 2h, domains: [east], policy: sjf}");
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: low, parent: top, max_time: 3h}");
    CALL(&k, 403, BOB, "POST", "/v1/jobs", "{queue: low}");
    CALL(&k, 400, ALICE, "POST", "/v1/jobs", "{queue: low, time_limit: 150m}");
    SAYS(&k, "allows at most 2h");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{queue: low, requests: {cpu: 1}, replicas: 2}");
    struct plan_policy p;
    plan_policy_read(control_state(k.control), &p);
    assert_string_equal(p.policy.order.queues[0].id, "low");
    assert_string_equal(p.policy.order.queues[0].ranking.name, "sjf");
    plan_policy_done(&p);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/queues/top", "{domains: [west]}");
    audited(&k);
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_string_equal(kit_text(&k, "items/0/node"), "n2");
    kit_done(&k);
}

/* Borrowed resources are returned to the group with the guarantee. */
static void guarantees_are_kept(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/groups/red", "{quota: {guarantees: {cpu: 8}}}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/groups/blue", "{quota: {guarantees: {cpu: 8}}}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{preempt_min_run_s: 0}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{requests: {cpu: 1}, replicas: 16}");
    kit_plan(&k);
    assert_int_equal(held(&k, "group/red", "cpu", false), 16000);
    CALL(&k, 201, BOB, "POST", "/v1/jobs", "{requests: {cpu: 1}, replicas: 8}");
    kit_plan(&k);
    size_t i, stopping = 0;
    json_t *one;
    CALL(&k, 200, ADMIN, "GET", "/v1/instances?workload=1", NULL);
    json_array_foreach(kit_at(&k, "items"), i, one) stopping +=
        strcmp(json_string_value(json_object_get(one, "state")), "stopping") == 0;
    assert_int_equal(stopping, 8);
    kit_done(&k);
}

/* A limit and a window affect the plan, and a replay decides the same. */
static void plans_follow_limits_and_windows(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/users/alice", "{quota: {limits: {cpu: 3}}}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{replicas: 5, requests: {cpu: 1}}");
    kit_plan(&k);
    assert_int_equal(held(&k, "user/alice", "cpu", false), 3000);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/users/alice", "{quota: {limits: {cpu: 4}}}");
    kit_plan(&k);
    assert_int_equal(held(&k, "user/alice", "cpu", false), 4000);
    CALL(&k, 201, ADMIN, "POST", "/v1/windows",
         "{id: w, start: '2026-03-01T12:10:00Z', duration: 1h, require: {rack: r2}, maintenance: true}");
    CALL(&k, 201, BOB, "POST", "/v1/jobs", "{replicas: 20, requests: {cpu: 1}, time_limit: 1h}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/instances?workload=2", NULL);
    size_t i, on_n2 = 0;
    json_t *one;
    json_array_foreach(kit_at(&k, "items"), i, one) on_n2 +=
        strcmp(json_string_value(json_object_get(one, "node")), "n2") == 0;
    assert_int_equal(on_n2, 0);
    audited(&k);
    struct replay_options options = {0};
    struct replay_result result = {0};
    struct berth_err err = {0};
    assert_int_equal(replay_run(k.store, &options, &result, &err), 0);
    assert_true(result.cycles > 1);
    assert_int_equal(result.different, 0);
    kit_restart(&k);
    audited(&k);
    assert_int_equal(held(&k, "user/alice", "cpu", false), 4000);
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_stay_within_their_group),
        cmocka_unit_test(queues_are_a_tree),
        cmocka_unit_test(queue_admits_only_its_users),
        cmocka_unit_test(use_beyond_admitted_is_rejected),
        cmocka_unit_test(policies_are_checked_when_written),
        cmocka_unit_test(uncompilable_formula_stops_no_plan),
        cmocka_unit_test(windows_and_domains),
        cmocka_unit_test(jobs_are_routed),
        cmocka_unit_test(failing_formula_stops_no_plan),
        cmocka_unit_test(job_order_follows_changes),
        cmocka_unit_test(priority_class_goes_first),
        cmocka_unit_test(queues_inherit),
        cmocka_unit_test(guarantees_are_kept),
        cmocka_unit_test(plans_follow_limits_and_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
