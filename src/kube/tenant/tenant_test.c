/* tenant_test.c - queues, groups, users, domains and policies: what is accepted, what is rejected, and their effect on
 * pods.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/object/object_kit_test.h"

#define CPU(amount) "containers: [{name: c, resources: {requests: {cpu: " amount "}}}]"

/* Puts an object with its spec as YAML flow without braces. Returns the error; "" if accepted. */
static const char *put(struct scene *s, enum kind kind, const char *name, const char *spec)
{
    static struct berth_err err;
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml, "{%s}", spec);
    json_t *root = kit_parse(yaml.at);
    err = (struct berth_err){0};
    int rc = tenants_put(s->tenants, kind, name, root, &err);
    json_decref(root);
    assert_int_equal(rc == 0, err.text[0] == 0);
    return err.text;
}

static void must(struct scene *s, enum kind kind, const char *name, const char *spec)
{
    const char *why = put(s, kind, name, spec);
    if (*why)
        fail_msg("%s %s: %s", kinds[kind].name, name, why);
}

static bool accepted(const struct scene *s, enum kind kind, const char *name)
{
    struct tenant_view view;
    (void)tenants_take_changes(s->tenants);
    assert_true(tenants_view(s->tenants, kind, name, &view));
    assert_int_equal(view.accepted, !*view.why);
    return view.accepted;
}

/* Puts a pod of ours in the queue, created at this second; with a node, it is bound there. */
static void queued(struct scene *s, const char *name, const char *queue, const char *labels, int created,
                   const char *node, const char *cpu)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: %s, namespace: default, uid: uid-%s, creationTimestamp: %d, labels: {berth.dev/queue: %s%s%s}}, "
        "spec: {schedulerName: berth, nodeName: \"%s\", containers: [{resources: {requests: {cpu: %s}}}]}}",
        name, name, created, queue, *labels ? ", " : "", labels, node, cpu);
    scene_put(s, CACHE_POD, yaml.at);
}

/* ---- accepted and rejected specs -------------------------------------------------------------------------------- */

static void invalid_specs_are_rejected(void **state)
{
    static const struct {
        enum kind kind;
        const char *name, *spec, *why; /* part of the message; NULL: accepted */
    } rows[] = {
        {KIND_QUEUE,  "a",       "",                                               NULL                                 },
        {KIND_QUEUE,  "default", "priority: 3",                                    NULL                                 },
        {KIND_QUEUE,  "a.b",     "",                                               "may have only letters"              },
        {KIND_QUEUE,  "a",       "parent: a",                                      "parent: queue a does not exist"     },
        {KIND_QUEUE,  "a",       "parent: b",                                      "parent: queue b does not exist"     },
        {KIND_QUEUE,  "a",       "policy: fairy",                                  "policy: policy fairy does not exist"},
        {KIND_QUEUE,  "a",       "policy: sjf",                                    NULL                                 },
        {KIND_QUEUE,  "a",       "users: [ann]",                                   "users: user ann does not exist"     },
        {KIND_QUEUE,  "a",       "groups: [g]",                                    "groups: group g does not exist"     },
        {KIND_QUEUE,  "a",       "domains: [d]",                                   "domains: domain d does not exist"   },
        {KIND_QUEUE,  "a",       "quota: {limits: {cpus: 4}}",                     "did you mean \"cpu\"?"              },
        {KIND_QUEUE,  "a",       "quota: {limits: {cpu: 4, gpu: 8, memory: 4Gi}}", NULL                                 },
        {KIND_QUEUE,  "a",       "timeLimit: 2h, maxTime: 1h",                     "timeLimit: is longer than maxTime"  },
        {KIND_QUEUE,  "a",       "timeLimit: 30m, maxTime: 1h, priorityClass: 5",  NULL                                 },
        {KIND_QUEUE,  "a",       "time_limit: 30m, colour: red",                   "colour"                             },
        {KIND_POLICY, "p",       "formula: 'return age +'",                        "formula"                            },
        {KIND_POLICY, "p",       "formula: 'return age'",                          NULL                                 },
        {KIND_POLICY, "p",       "ranking: multifactor, weights: {agee: 1}",       "did you mean age?"                  },
        {KIND_GROUP,  "g",       "level: 101",                                     "0 to 100"                           },
        {KIND_GROUP,  "g",       "level: 5, namespaces: [default], weight: 3",     NULL                                 },
        {KIND_USER,   "ann",     "group: h",                                       "group: group h does not exist"      },
        {KIND_DOMAIN, "d",       "nodes: [n1], require: [{key: a, values: [b]}]",  "give either require or nodes"       },
        {KIND_DOMAIN, "d",       "nodes: [n1]",                                    NULL                                 },
        {KIND_QUEUE,  "a",       "quota: 3",                                       "quota: expected"                    },
        {KIND_QUEUE,  "a",       "quota: {limits: [1]}",                           "limits: expected"                   },
        {KIND_QUEUE,  "a",       "quota: {limits: {gpu: [1]}}",                    "gpu: expected"                      },
        {KIND_QUEUE,  "a",       "users: 7",                                       "no user 7"                          },
        {KIND_QUEUE,  "a",       "users: [7]",                                     "no user 7"                          },
        {KIND_QUEUE,  "a",       "parent: [b]",                                    "parent: expected"                   },
        {KIND_QUEUE,  "a",       "policy: {b: c}",                                 "policy: expected"                   },
        {KIND_GROUP,  "g",       "namespaces: 7",                                  NULL                                 },
        {KIND_DOMAIN, "d",       "require: [{key: a, op: Near}]",                  "Near"                               },
        {KIND_JOB,    "j",       "",                                               "unsupported kind"                   },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(scene) struct scene s;
        scene_begin(&s);
        const char *why = put(&s, rows[i].kind, rows[i].name, rows[i].spec);
        if (rows[i].why ? !strstr(why, rows[i].why) : *why != 0)
            fail_msg("%s %s {%s}: \"%s\"", kinds[rows[i].kind].name, rows[i].name, rows[i].spec, why);
    }
}

/* Objects come in any order; an object named by an earlier one makes that one valid. */
static void objects_in_any_order(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    assert_string_not_equal(put(&s, KIND_QUEUE, "low", "parent: mid, users: [ann]"), "");
    assert_string_not_equal(put(&s, KIND_QUEUE, "mid", "parent: top"), "");
    assert_string_not_equal(put(&s, KIND_USER, "ann", "group: g"), "");
    assert_false(accepted(&s, KIND_QUEUE, "low"));
    must(&s, KIND_QUEUE, "top", "");
    assert_true(accepted(&s, KIND_QUEUE, "mid"));
    assert_non_null(strstr(put(&s, KIND_QUEUE, "top", "parent: mid"), "queue mid is a descendant of top"));
    must(&s, KIND_QUEUE, "top", "");
    assert_false(accepted(&s, KIND_QUEUE, "low"));
    must(&s, KIND_GROUP, "g", "");
    assert_true(accepted(&s, KIND_QUEUE, "low"));
    tenants_drop(s.tenants, KIND_GROUP, "g");
    assert_false(accepted(&s, KIND_USER, "ann"));
    assert_true(accepted(&s, KIND_QUEUE, "low")); /* ann's earlier version stays in force */
    must(&s, KIND_GROUP, "g", "");
    assert_true(accepted(&s, KIND_USER, "ann"));
}

/* A spec accepted before the restart is in force again while the present one is rejected, as soon as the objects it
 * names exist. */
static void in_force_spec_is_restored(void **state)
{
    struct tenant_view view;
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    json_t *before = kit_parse("{parent: top, priority: 3}");
    tenants_restore_in_force(s.tenants, KIND_QUEUE, "q", before);
    assert_string_not_equal(put(&s, KIND_QUEUE, "q", "parent: nowhere"), "");
    assert_true(tenants_view(s.tenants, KIND_QUEUE, "q", &view));
    assert_null(view.in_force);
    must(&s, KIND_QUEUE, "top", "");
    assert_false(accepted(&s, KIND_QUEUE, "q"));
    assert_true(tenants_view(s.tenants, KIND_QUEUE, "q", &view));
    assert_true(json_equal(view.in_force, before));
    must(&s, KIND_QUEUE, "q", "parent: top");
    assert_string_not_equal(put(&s, KIND_QUEUE, "q", "parent: nowhere"), "");
    assert_true(tenants_view(s.tenants, KIND_QUEUE, "q", &view));
    assert_false(json_equal(view.in_force, before));
    json_decref(before);
}

/* The limits of users together must fit into the limit of their group. */
static void user_limits_fit_in_group_limit(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    must(&s, KIND_GROUP, "g", "quota: {limits: {cpu: 10}}");
    must(&s, KIND_USER, "ann", "group: g, quota: {limits: {cpu: 6}}");
    assert_non_null(strstr(put(&s, KIND_USER, "bob", "group: g, quota: {limits: {cpu: 5}}"), "at most 4 cpu"));
    assert_non_null(strstr(put(&s, KIND_GROUP, "g", "quota: {limits: {cpu: 5}}"), "more than 5 cpu"));
    must(&s, KIND_GROUP, "g", "quota: {limits: {cpu: 11}}");
    assert_true(accepted(&s, KIND_USER, "bob"));
}

/* ---- effect on pods --------------------------------------------------------------------------------------------- */

/* A group's limit holds over two queues, for pods of its namespace and of its users alike. */
static void group_limit_spans_queues(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    must(&s, KIND_GROUP, "g", "namespaces: [default], quota: {limits: {cpu: 2}}");
    must(&s, KIND_QUEUE, "x", "");
    must(&s, KIND_QUEUE, "y", "");
    must(&s, KIND_USER, "ann", "group: g");
    queued(&s, "a", "x", "", 100, "", "1");
    queued(&s, "b", "y", "berth.dev/user: ann", 101, "", "1");
    queued(&s, "c", "y", "", 102, "", "1");
    scene_pod(&s, "plain", "", "", CPU("1"));
    assert_string_equal(scene_says(&s), "?c a->n1 b->n1 plain->n1");
    assert_non_null(strstr(scene_why(&s, "c"), "quota group/g: 2 of 2 cpu are used or reserved; 1 requested"));
    must(&s, KIND_GROUP, "g", "namespaces: [default], quota: {limits: {cpu: 3}}");
    assert_string_equal(scene_says(&s), "a->n1 b->n1 c->n1 plain->n1");
    must(&s, KIND_GROUP, "g", "namespaces: [other], quota: {limits: {cpu: 1}}");
    assert_string_equal(scene_says(&s), "a->n1 b->n1 c->n1 plain->n1"); /* only ann's quota counts */
    struct tenant_use use = tenants_use(cache_last_cluster(s.p), KIND_GROUP, "g");
    assert_int_equal(use.pending, 1);
    assert_int_equal(use.running, 0);
}

/* Pods of other schedulers are not charged; pods of an unknown user to the namespace's group, which is the first
 * by name. */
static void pods_charge_the_group_of_their_namespace(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    must(&s, KIND_GROUP, "h", "namespaces: [default]");
    must(&s, KIND_GROUP, "g", "namespaces: [x, default]");
    must(&s, KIND_USER, "ann", "");
    queued(&s, "a", "default", "berth.dev/user: Some_One.x", 100, "n1", "1");
    queued(&s, "b", "default", "berth.dev/user: ann", 100, "", "1");
    scene_put(&s, CACHE_POD,
              "{metadata: {name: f, namespace: default, uid: f, labels: {berth.dev/queue: default}}, "
              "spec: {schedulerName: other, nodeName: n1}}");
    assert_string_equal(scene_says(&s), "b->n1");
    struct tenant_use g = tenants_use(cache_last_cluster(s.p), KIND_GROUP, "g");
    struct tenant_use h = tenants_use(cache_last_cluster(s.p), KIND_GROUP, "h");
    struct tenant_use ann = tenants_use(cache_last_cluster(s.p), KIND_USER, "ann");
    assert_int_equal(g.running, 1);
    assert_int_equal(g.pending, 1);
    assert_int_equal(h.running + h.pending, 0);
    assert_int_equal(ann.pending, 1);
    tenants_drop(s.tenants, KIND_GROUP, "g");
    (void)cache_cluster(s.p);
    h = tenants_use(cache_last_cluster(s.p), KIND_GROUP, "h");
    assert_int_equal(h.running, 1);
    assert_int_equal(h.pending, 1);
}

/* A new cluster gets all quotas, a known one only the changes. */
static void new_cluster_gets_all_quotas(void **state)
{
    CLEANUP(scene) struct scene s;
    struct berth_quota_use use;
    (void)state;
    scene_begin(&s);
    must(&s, KIND_GROUP, "g", "");
    must(&s, KIND_USER, "ann", "group: g");
    must(&s, KIND_QUEUE, "q", "");
    (void)cache_cluster(s.p);
    must(&s, KIND_QUEUE, "r", "");
    for (int all = 0; all < 2; all++) {
        struct berth_cluster *cluster = berth_cluster_new();
        tenants_put_quotas(s.tenants, cluster, all);
        assert_int_equal(berth_quota_use(cluster, "group/g", "cpu", &use), all);
        assert_int_equal(berth_quota_use(cluster, "user/ann", "cpu", &use), all);
        assert_true(berth_quota_use(cluster, "queue/r", "cpu", &use));
        tenants_drop(s.tenants, KIND_QUEUE, "r");
        tenants_put_quotas(s.tenants, cluster, false);
        assert_int_equal(berth_quota_remove(cluster, "queue/r", NULL), -ENOENT);
        must(&s, KIND_QUEUE, "r", "");
        berth_cluster_free(cluster);
    }
}

/* Bound pods count, and are preempted for pods whose guarantee covers their place. */
static void borrowed_resources_are_preempted(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    must(&s, KIND_QUEUE, "x", "quota: {guarantees: {cpu: 2}}");
    must(&s, KIND_QUEUE, "y", "quota: {guarantees: {cpu: 2}}");
    for (int i = 0; i < 4; i++) {
        char name[] = "x0";
        name[1] = (char)('0' + i);
        queued(&s, name, "x", "", 100 + i, "n1", "1");
    }
    assert_string_equal(scene_says(&s), "");
    struct tenant_use use = tenants_use(cache_last_cluster(s.p), KIND_QUEUE, "x");
    assert_int_equal(use.running, 4);
    assert_int_equal(use.cpu, 4000);
    queued(&s, "y0", "y", "", 200, "", "2");
    assert_string_equal(scene_says(&s), "-x2 -x3 y0=>n1");
    queued(&s, "x4", "x", "", 201, "", "1");
    assert_string_equal(scene_says(&s), "-x2 -x3 ?x4 y0=>n1");
}

/* Order of pods: by queue, by the queue's policy, by the default policy; without policies by creation. */
static void order(void **state)
{
    static const struct {
        const char *x, *y, *policy; /* specs of queues; formula of the default policy */
        const char *want;
    } rows[] = {
        {"",                          "",                 NULL,             "?b ?c a->n1"},
        {"",                          "priority: 1",      NULL,             "?a ?b c->n1"},
        {"priority: -1",              "",                 NULL,             "?a ?b c->n1"},
        {"",                          "",                 "return -waited", "?a ?b c->n1"},
        {"policy: late, priority: 1", "",                 NULL,             "?a ?c b->n1"},
        {"parent: y, priority: 1",    "policy: late",     NULL,             "?a ?c b->n1"},
        {"",                          "priorityClass: 5", NULL,             "?a ?b c->n1"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(scene) struct scene s;
        char spec[100];
        scene_begin(&s);
        scene_node(&s, "n1", "a", "");
        must(&s, KIND_POLICY, "late", "formula: 'return -waited'");
        (void)snprintf(spec, sizeof spec, "formula: '%s'", rows[i].policy ? rows[i].policy : "");
        if (rows[i].policy)
            must(&s, KIND_POLICY, "default", spec);
        must(&s, KIND_QUEUE, "y", rows[i].y);
        must(&s, KIND_QUEUE, "x", rows[i].x);
        queued(&s, "a", "x", "", 100, "", "4");
        queued(&s, "b", "x", "", 200, "", "4");
        queued(&s, "c", "y", "", 300, "", "4");
        if (strcmp(scene_says(&s), rows[i].want) != 0)
            fail_msg("row %zu: %s", i, str_text(&s.text));
    }
}

/* A pod in a queue gets a reservation that no other pod takes; a pod in no queue is overtaken by any pod that fits. */
static void reservations_only_in_queues(void **state)
{
    static const struct {
        const char *queue; /* of the large pod; NULL: none */
        const char *want;
    } rows[] = {
        {"default", "?large ?small"   },
        {"q",       "?large ?small"   },
        {NULL,      "?large small->n1"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(scene) struct scene s;
        scene_begin(&s);
        scene_node(&s, "n1", "a", "");
        must(&s, KIND_QUEUE, "q", "");
        queued(&s, "holds", "q", "", 100, "n1", "2");
        if (rows[i].queue)
            queued(&s, "large", rows[i].queue, "", 99, "", "4");
        else
            scene_pod(&s, "large", "", "", CPU("4"));
        queued(&s, "small", "q", "", 102, "", "1");
        if (strcmp(scene_says(&s), rows[i].want) != 0)
            fail_msg("row %zu: %s", i, str_text(&s.text));
    }
}

/* A bad formula is reported, and the old one stays in force. */
static void bad_formula_keeps_the_old_one(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    must(&s, KIND_POLICY, "default", "formula: 'return -waited'");
    assert_string_not_equal(put(&s, KIND_POLICY, "default", "formula: 'return waited +'"), "");
    assert_false(accepted(&s, KIND_POLICY, "default"));
    queued(&s, "a", "default", "", 100, "", "4");
    queued(&s, "b", "default", "", 200, "", "4");
    assert_string_equal(scene_says(&s), "?a b->n1");
    must(&s, KIND_POLICY, "default", "formula: 'return waited'");
    assert_string_equal(scene_says(&s), "?b a->n1");
    tenants_drop(s.tenants, KIND_POLICY, "default");
    assert_string_equal(scene_says(&s), "?b a->n1");
}

/* Nodes of a domain, by name and by label; a queue with domains. */
static void domains(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_node(&s, "n2", "b", "");
    must(&s, KIND_DOMAIN, "left", "nodes: [n1]");
    must(&s, KIND_DOMAIN, "right", "require: [{key: topology.kubernetes.io/zone, values: [b]}]");
    must(&s, KIND_QUEUE, "x", "domains: [right]");
    queued(&s, "a", "x", "", 100, "", "1");
    queued(&s, "b", "x", "", 101, "", "4");
    assert_string_equal(scene_says(&s), "?b a->n2");
    assert_int_equal(cache_domain_nodes(s.p, "left"), 1);
    assert_int_equal(cache_domain_nodes(s.p, "right"), 1);
    assert_non_null(strstr(put(&s, KIND_DOMAIN, "other", "nodes: [n1]"), "n1 is in domain left"));
    must(&s, KIND_QUEUE, "x", "domains: [right, left]");
    assert_string_equal(scene_says(&s), "a->n1 b->n2");
    must(&s, KIND_DOMAIN, "left", "nodes: [n9]");
    assert_string_equal(scene_says(&s), "?b a->n2");
    assert_int_equal(cache_domain_nodes(s.p, "left"), 0);
}

/* Messages for a pod that may not be placed at present. */
static void pending_messages_name_the_reason(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    queued(&s, "a", "gone", "", 100, "", "1");
    assert_string_equal(scene_why(&s, "a"),
                        "0/1 nodes are available: queue gone does not exist; choose another queue.");
    must(&s, KIND_USER, "ann", "");
    must(&s, KIND_QUEUE, "gone", "users: [ann]");
    assert_non_null(strstr(scene_why(&s, "a"), "queue gone does not accept jobs of this namespace"));
    queued(&s, "b", "gone", "berth.dev/user: bob", 100, "", "1");
    assert_non_null(strstr(scene_why(&s, "b"), "queue gone does not accept jobs of user bob"));
    queued(&s, "c", "gone", "berth.dev/user: ann", 100, "", "1");
    assert_string_equal(scene_says(&s), "?a ?b c->n1");
    must(&s, KIND_GROUP, "g", "namespaces: [default]");
    must(&s, KIND_QUEUE, "gone", "groups: [g]");
    assert_string_equal(scene_says(&s), "a->n1 b->n1 c->n1");
    tenants_drop(s.tenants, KIND_QUEUE, "gone");
    assert_string_equal(scene_says(&s), "?a ?b ?c");
}

/* GPU quotas limit the vendor resources that pods request. */
static void gpu_quota_limits_vendor_resources(void **state)
{
    static const char gpu[] = "{metadata: {name: %s, namespace: default, uid: uid-%s, creationTimestamp: 1, labels: "
                              "{berth.dev/queue: x}}, spec: {schedulerName: berth, containers: [{resources: {requests: "
                              "{nvidia.com/gpu: 2}}}]}}";
    static const char *const names[] = {"a", "b"};
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_put(&s, CACHE_NODE,
              "{metadata: {name: n1}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10, nvidia.com/gpu: 8}}}");
    must(&s, KIND_QUEUE, "x", "quota: {limits: {gpu: '3'}}");
    for (size_t i = 0; i < ROWS(names); i++) {
        char yaml[400];
        (void)snprintf(yaml, sizeof yaml, gpu, names[i], names[i]);
        scene_put(&s, CACHE_POD, yaml);
    }
    assert_string_equal(scene_says(&s), "?b a->n1");
    assert_int_not_equal(cache_assume_pod(s.p, "default:a", "n1", 0, NULL, 0), 0);
    (void)cache_cluster(s.p);
    struct tenant_use use = tenants_use(cache_last_cluster(s.p), KIND_QUEUE, "x");
    assert_int_equal(use.gpu_milli, 2000);
    assert_int_equal(use.running, 1);
    assert_int_equal(use.pending, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_specs_are_rejected),
        cmocka_unit_test(objects_in_any_order),
        cmocka_unit_test(user_limits_fit_in_group_limit),
        cmocka_unit_test(group_limit_spans_queues),
        cmocka_unit_test(borrowed_resources_are_preempted),
        cmocka_unit_test(order),
        cmocka_unit_test(bad_formula_keeps_the_old_one),
        cmocka_unit_test(domains),
        cmocka_unit_test(pending_messages_name_the_reason),
        cmocka_unit_test(gpu_quota_limits_vendor_resources),
        cmocka_unit_test(reservations_only_in_queues),
        cmocka_unit_test(new_cluster_gets_all_quotas),
        cmocka_unit_test(pods_charge_the_group_of_their_namespace),
        cmocka_unit_test(in_force_spec_is_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
