/* cache_lifecycle_test.c - pods and nodes that are added, changed and deleted; assumed pods; updates of dependent pods.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/object/object_kit_test.h"

#define CPU(amount) "containers: [{name: c, resources: {requests: {cpu: " amount "}}}]"
#define AT_HOST "topologyKey: kubernetes.io/hostname"

static int64_t held(struct scene *s, const char *node)
{
    struct berth_node_use use = {0};
    return berth_node_use(cache_cluster(s->p), node, "cpu", &use) ? use.held : -1;
}

/* Which pods hold CPU on their node. */
static void only_active_pods_hold_resources(void **state)
{
    static const struct {
        const char *label, *pod;
        int64_t want;
    } rows[] = {
        {"bound",                "spec: {nodeName: n1, " CPU("1") "}",                             1000},
        {"of another scheduler", "spec: {schedulerName: x, nodeName: n1, " CPU("1") "}",           1000},
        {"running",              "spec: {nodeName: n1, " CPU("1") "}, status: {phase: Running}",   1000},
        {"succeeded",            "spec: {nodeName: n1, " CPU("1") "}, status: {phase: Succeeded}", 0   },
        {"failed",               "spec: {nodeName: n1, " CPU("1") "}, status: {phase: Failed}",    0   },
        {"pending",              "spec: {schedulerName: berth, " CPU("1") "}",                     0   },
        {"being resized up",
         "spec: {nodeName: n1, " CPU(
             "2") "}, status: {containerStatuses: [{name: c, resources: {requests: {cpu: 1}}}]}",
         2000                                                                                          },
        {"being resized down",
         "spec: {nodeName: n1, " CPU(
             "1") "}, status: {containerStatuses: [{name: c, resources: {requests: {cpu: 3}}}]}",
         3000                                                                                          },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(scene) struct scene s;
        CLEANUP(str) struct str yaml = {0};
        scene_begin(&s);
        scene_node(&s, "n1", "a", "");
        str_addf(&yaml, "{metadata: {name: p, namespace: default}, %s}", rows[i].pod);
        scene_put(&s, CACHE_POD, yaml.at);
        if (held(&s, "n1") != rows[i].want)
            fail_msg("%s: %lld, not %lld", rows[i].label, (long long)held(&s, "n1"), (long long)rows[i].want);
        scene_put(&s, CACHE_POD, "{metadata: {name: p, namespace: default}, status: {phase: Succeeded}}");
        assert_int_equal(held(&s, "n1"), 0);
        scene_put(&s, CACHE_POD, yaml.at);
        scene_drop(&s, CACHE_POD, yaml.at);
        assert_int_equal(held(&s, "n1"), 0);
    }
}

/* A terminating pod holds its resources until it is gone; no pod is placed there before. */
static void terminating_pod_holds_resources(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_put(
        &s, CACHE_POD,
        "{metadata: {name: p, namespace: default, deletionTimestamp: 5}, spec: {schedulerName: berth, nodeName: n1, " CPU(
            "3") "}}");
    scene_pod(&s, "q", "", "", CPU("2"));
    assert_string_equal(scene_says(&s), "q=>n1"); /* reserved, not placed */
    assert_int_equal(held(&s, "n1"), 3000);
    scene_drop(&s, CACHE_POD, "{metadata: {name: p, namespace: default}}");
    assert_string_equal(scene_says(&s), "q->n1");
    scene_put(
        &s, CACHE_POD,
        "{metadata: {name: q, namespace: default, deletionTimestamp: 5}, spec: {schedulerName: berth, " CPU("2") "}}");
    assert_string_equal(scene_says(&s), ""); /* it was never bound and will not be */
}

/* An unchanged object changes nothing; nor does a status that does not affect placement. */
static void unchanged_objects_change_nothing(void **state)
{
    CLEANUP(scene) struct scene s;
    struct cache_pod_view pod;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "p", "", "", CPU("1"));
    unsigned changes = s.changes;
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "p", "", "", CPU("1"));
    scene_put(
        &s, CACHE_POD,
        "{metadata: {name: p, namespace: default, uid: uid-p, creationTimestamp: 100}, spec: {schedulerName: berth, " CPU(
            "1") "}, status: {nominatedNodeName: n7, conditions: "
                 "[{type: Ready, status: 'False', message: no}, {type: PodScheduled, status: 'False', message: too bad}]}}");
    assert_int_equal(s.changes, changes);
    assert_true(cache_pod_find(s.p, "default:p", &pod));
    assert_string_equal(pod.nominated, "n7");
    assert_string_equal(pod.told, "too bad");
    assert_int_equal(pod.told_ns, 0);
    scene_pod(&s, "p", "app: web", "", CPU("1"));
    assert_true(s.changes > changes);
}

static void assumed(void **state)
{
    CLEANUP(scene) struct scene s;
    struct cache_pod_view pod;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "p", "", "", CPU("3"));
    scene_pod(&s, "q", "", "", CPU("3"));
    (void)cache_cluster(s.p);
    uint64_t instance = cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0);
    assert_true(instance > 0);
    assert_int_equal(cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0), 0);
    assert_int_equal(cache_assume_pod(s.p, "default:none", "n1", 0, NULL, 0), 0);
    assert_int_equal(held(&s, "n1"), 3000);
    assert_string_equal(scene_says(&s), "?q");
    scene_pod(&s, "p", "app: web", "", CPU("3")); /* changed while it was assumed */
    assert_int_equal(held(&s, "n1"), 3000);
    assert_true(cache_pod_by_instance(s.p, instance, &pod));
    assert_string_equal(pod.node, "n1");
    assert_false(pod.bound);

    cache_forget_pod(s.p, instance, INT64_C(5000000000000)); /* later than the plans of this test */
    assert_int_equal(held(&s, "n1"), 0);
    assert_false(cache_pod_by_instance(s.p, instance, &pod));
    assert_true(cache_pod_find(s.p, "default:p", &pod) && pod.failures == 1);
    assert_string_equal(scene_says(&s), "q->n1");

    scene_drop(&s, CACHE_POD, "{metadata: {name: q, namespace: default}}");
    instance = cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0);
    unsigned changes = s.changes;
    scene_pod(&s, "p", "app: web", "n1", CPU("3"));
    assert_int_equal(s.changes, changes); /* confirming a binding changes nothing */
    assert_true(cache_pod_by_instance(s.p, instance, &pod) && pod.bound);
    assert_int_equal(held(&s, "n1"), 3000);
    cache_forget_pod(s.p, instance, 0); /* a bound pod stays bound */
    assert_int_equal(held(&s, "n1"), 3000);
}

/* Another scheduler bound the assumed pod to another node. */
static void assumed_pod_bound_elsewhere(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_node(&s, "n2", "a", "");
    scene_pod(&s, "p", "", "", CPU("3"));
    (void)cache_cluster(s.p);
    assert_true(cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0) > 0);
    scene_pod(&s, "p", "", "n2", CPU("3"));
    assert_int_equal(held(&s, "n1"), 0);
    assert_int_equal(held(&s, "n2"), 3000);
    scene_put(&s, CACHE_POD, /* deleted and created again before the cache saw the deletion */
              "{metadata: {name: p, namespace: default, uid: another}, spec: {schedulerName: berth, " CPU("1") "}}");
    assert_int_equal(held(&s, "n2"), 0);
}

static void preemption(void **state)
{
    CLEANUP(scene) struct scene s;
    struct cache_pod_view low, high;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "low", "", "n1", "priority: 1, " CPU("3"));
    scene_pod(&s, "shy", "", "", "priority: 10, preemptionPolicy: Never, " CPU("3"));
    assert_string_equal(scene_says(&s), "?shy");
    scene_pod(&s, "high", "", "", "priority: 10, " CPU("2"));
    assert_string_equal(scene_says(&s), "-low ?shy high=>n1");
    assert_true(cache_pod_find(s.p, "default:low", &low));
    uint64_t victim = low.instance;
    cache_set_stopping(s.p, victim, true);
    uint64_t instance = cache_assume_pod(s.p, "default:high", "n1", 0, &victim, 1);
    assert_true(instance > 0);
    assert_string_equal(scene_says(&s), "?shy");
    cache_set_stopping(s.p, victim, false); /* the deletion failed */
    cache_set_stopping(s.p, victim, true);
    scene_drop(&s, CACHE_POD, "{metadata: {name: low, namespace: default}}");
    assert_string_equal(scene_says(&s), "?shy high->n1");
    assert_true(cache_promote_pod(s.p, instance));
    assert_false(cache_promote_pod(s.p, instance));
    assert_true(cache_pod_by_instance(s.p, instance, &high) && !high.bound);
    assert_int_equal(held(&s, "n1"), 2000);
}

static void disruption_budget_protects_pods(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_node(&s, "n2", "b", "");
    scene_pod(&s, "kept", "app: web", "n1", CPU("3"));
    scene_pod(&s, "other", "app: db", "n2", CPU("3"));
    scene_pod(&s, "high", "", "", "priority: 10, " CPU("2"));
    scene_put(
        &s, CACHE_BUDGET,
        "{metadata: {name: b, namespace: default}, spec: {selector: {matchLabels: {app: web}}}, status: {disruptionsAllowed: 0}}");
    assert_string_equal(scene_says(&s), "-other high=>n2");
    scene_drop(&s, CACHE_BUDGET, "{metadata: {name: b, namespace: default}}");
    scene_put(
        &s, CACHE_BUDGET,
        "{metadata: {name: c, namespace: default}, spec: {selector: {matchLabels: {app: db}}}, status: {disruptionsAllowed: 0}}");
    assert_string_equal(scene_says(&s), "-kept high=>n1");
    scene_put(
        &s, CACHE_BUDGET, /* in another namespace */
        "{metadata: {name: b, namespace: x}, spec: {selector: {matchLabels: {app: web}}}, status: {disruptionsAllowed: 0}}");
    assert_string_equal(scene_says(&s), "-kept high=>n1");
}

static void gated_pod_is_not_placed(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "p", "", "", "schedulingGates: [{name: g}]");
    assert_string_equal(scene_says(&s), "");
    scene_pod(&s, "p", "", "", "");
    assert_string_equal(scene_says(&s), "p->n1");
}

/* Pods may be seen before their node, and may outlive it. */
static void missing_nodes_keep_their_pods(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_pod(&s, "web", "app: web", "n1", CPU("3"));
    scene_pod(&s, "p", "", "",
              "affinity: {podAffinity: {required: [{" AT_HOST ", labelSelector: {matchLabels: {app: web}}}]}}");
    assert_string_equal(scene_why(&s, "p"), "0/0 nodes are available: there is none.");
    scene_node(&s, "n1", "a", "");
    assert_string_equal(scene_says(&s), "p->n1");
    scene_drop(&s, CACHE_NODE, "{metadata: {name: n1}}");
    assert_string_equal(scene_says(&s), "?p");
    assert_int_equal(berth_nodes(cache_cluster(s.p)), 1); /* for its pod only */
    scene_drop(&s, CACHE_POD, "{metadata: {name: web, namespace: default}}");
    assert_int_equal(held(&s, "n1"), -1);
    assert_int_equal(berth_nodes(cache_cluster(s.p)), 0);
}

/* A change of a namespace's labels updates the pods that select it, waiting ones and those with anti-affinity alike. */
static void namespace_labels_update_pods(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_put(&s, CACHE_NAMESPACE, "{metadata: {name: x, labels: {team: red}}}");
    scene_put(&s, CACHE_POD, "{metadata: {name: other, namespace: x, labels: {app: web}}, spec: {nodeName: n1}}");
    scene_pod(&s, "p", "", "",
              "affinity: {podAntiAffinity: {required: [{" AT_HOST
              ", labelSelector: {matchLabels: {app: web}}, namespaceSelector: {matchLabels: {team: blue}}}]}}");
    assert_string_equal(scene_says(&s), "p->n1");
    unsigned changes = s.changes;
    scene_put(&s, CACHE_NAMESPACE, "{metadata: {name: x, labels: {team: blue}}}");
    assert_true(s.changes > changes);
    assert_string_equal(scene_says(&s), "?p");
    scene_drop(&s, CACHE_NAMESPACE, "{metadata: {name: x}}");
    assert_string_equal(scene_says(&s), "p->n1");
    assert_true(cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0) > 0);
    scene_put(&s, CACHE_POD, "{metadata: {name: q, namespace: x, labels: {app: web}}, spec: {schedulerName: berth}}");
    assert_string_equal(scene_says(&s), "q->n1");
    scene_put(&s, CACHE_NAMESPACE, "{metadata: {name: x, labels: {team: blue}}}");
    assert_string_equal(scene_says(&s), "?q");
}

static void gangs(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    for (size_t i = 0; i < 2; i++)
        scene_pod(&s, names[i], "", "", "schedulingGroup: {podGroupName: g}, " CPU("2"));
    assert_string_equal(scene_why(&s, "a"), "0/1 nodes are available: waiting for the pod's pod group to appear.");
    scene_put(&s, CACHE_POD_GROUP,
              "{metadata: {name: g, namespace: default}, spec: {schedulingPolicy: {gang: {minCount: 3}}}}");
    assert_string_equal(
        scene_why(&s, "a"),
        "0/1 nodes are available: waiting for minCount pods from a gang to appear in scheduling queue.");
    for (size_t i = 2; i < 4; i++)
        scene_pod(&s, names[i], "", "", "schedulingGroup: {podGroupName: g}, " CPU("2"));
    assert_string_equal(scene_says(&s), "?a ?b ?c ?d"); /* two would fit, three are required */
    scene_node(&s, "n2", "a", "");
    assert_string_equal(scene_says(&s), "?d a->n1 b->n2 c->n1");
    assert_true(cache_assume_pod(s.p, "default:a", "n1", 0, NULL, 0) > 0);
    assert_true(cache_assume_pod(s.p, "default:b", "n2", 0, NULL, 0) > 0);
    assert_true(cache_assume_pod(s.p, "default:c", "n1", 0, NULL, 0) > 0);
    assert_string_equal(scene_says(&s), "d->n2"); /* pods beyond the minimum are placed one by one */
    scene_drop(&s, CACHE_POD, "{metadata: {name: a, namespace: default}}");
    assert_non_null(strstr(scene_says(&s), "d->"));
}

static void gang_minimum_from_label(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "a", "scheduling.x-k8s.io/pod-group: g, pod-group.scheduling.sigs.k8s.io/min-available: '2'", "",
              CPU("2"));
    scene_pod(&s, "z", "scheduling.x-k8s.io/pod-group: h", "", ""); /* without a minimum the group has no effect */
    assert_string_equal(scene_says(&s), "?a z->n1");
    scene_pod(&s, "b", "scheduling.x-k8s.io/pod-group: g, pod-group.scheduling.sigs.k8s.io/min-available: '2'", "",
              CPU("2"));
    assert_string_equal(scene_says(&s), "a->n1 b->n1 z->n1");
    scene_put(&s, CACHE_POD_GROUP,
              "{metadata: {name: g, namespace: default}, spec: {schedulingPolicy: {gang: {minCount: 3}}}}");
    assert_string_equal(scene_says(&s), "?a ?b z->n1");
    scene_drop(&s, CACHE_POD_GROUP, "{metadata: {name: g, namespace: default}}"); /* the pods' labels count again */
    assert_string_equal(scene_says(&s), "a->n1 b->n1 z->n1");
}

static void unschedulable_messages(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_node(&s, "n2", "a", "unschedulable: true");
    scene_node(&s, "n3", "a", "taints: [{key: k, effect: NoSchedule}]");
    scene_pod(&s, "full", "app: web", "n1", CPU("4"));
    scene_pod(&s, "p", "", "", CPU("2"));
    assert_string_equal(scene_why(&s, "p"),
                        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 "
                        "node(s) were unschedulable.");
    scene_pod(&s, "q", "", "", "nodeSelector: {disk: ssd}, tolerations: [{operator: Exists}]");
    assert_string_equal(scene_why(&s, "q"),
                        "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.");
    scene_pod(&s, "d", "", "", "resourceClaims: [{name: gpu}]");
    assert_non_null(strstr(scene_why(&s, "d"), "resource claims are not supported"));
    scene_pod(&s, "r", "", "", "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]");
    assert_string_equal(scene_why(&s, "r"), "0/3 nodes are available: persistentvolumeclaim \"data\" not found.");
}

/* After many pods have come and gone the cluster is replaced by an equal one. */
static void cluster_is_replaced_after_many_pods(void **state)
{
    CLEANUP(scene) struct scene s;
    CLEANUP(str) struct str bytes = {0};
    struct cache_pod_view pod;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_node(&s, "n2", "a", "");
    scene_pod(&s, "low", "app: web", "n1", "priority: 1, " CPU("4"));
    scene_pod(&s, "kept", "app: db", "n2", "priority: 1, " CPU("3"));
    scene_put(
        &s, CACHE_BUDGET,
        "{metadata: {name: b, namespace: default}, spec: {selector: {matchLabels: {app: db}}}, status: {disruptionsAllowed: 0}}");
    scene_pod(&s, "high", "", "", "priority: 10, " CPU("2"));
    scene_pod(&s, "way", "", "", CPU("1"));
    assert_string_equal(scene_says(&s), "-low high=>n1 way->n2");
    uint64_t assumed = cache_assume_pod(s.p, "default:way", "n2", 0, NULL, 0);
    kit_object(&bytes, CACHE_POD, "{spec: {nodeName: n1}}");
    for (unsigned i = 0; i < 60000; i++) {
        struct kube_object o = {"x", "brief", "u", i, proto_reader(str_text(&bytes), bytes.len), NULL};
        cache_object_put(s.p, CACHE_POD, &o);
        cache_object_drop(s.p, CACHE_POD, &o);
    }
    assert_string_equal(scene_says(&s), "-low high=>n1");
    assert_int_equal(held(&s, "n2"), 4000);
    assert_true(cache_pod_by_instance(s.p, assumed, &pod) && strcmp(pod.node, "n2") == 0);
    cache_forget_pod(s.p, assumed, 0);
    assert_int_equal(held(&s, "n2"), 3000);
}

/* An invalid object leaves the previous version in force and is reported. */
static void malformed_objects_are_ignored(void **state)
{
    static const uint8_t cut[] = {0x0a, 0x7f, 0x01};
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "p", "", "n1", CPU("1"));
    for (enum cache_kind k = 0; k <= CACHE_POD_GROUP; k++) {
        unsigned changes = s.changes;
        const char *name = k == CACHE_NODE ? "n1" : "p";
        s.trouble[0] = 0;
        cache_object_put(s.p, k,
                         &(struct kube_object){"default", name, "uid-p", 1, proto_reader(cut, sizeof cut), NULL});
        assert_non_null(strstr(s.trouble, "malformed"));
        assert_int_equal(s.changes, changes);
    }
    assert_int_equal(held(&s, "n1"), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_active_pods_hold_resources),
        cmocka_unit_test(terminating_pod_holds_resources),
        cmocka_unit_test(unchanged_objects_change_nothing),
        cmocka_unit_test(assumed),
        cmocka_unit_test(preemption),
        cmocka_unit_test(assumed_pod_bound_elsewhere),
        cmocka_unit_test(disruption_budget_protects_pods),
        cmocka_unit_test(gated_pod_is_not_placed),
        cmocka_unit_test(namespace_labels_update_pods),
        cmocka_unit_test(missing_nodes_keep_their_pods),
        cmocka_unit_test(gangs),
        cmocka_unit_test(gang_minimum_from_label),
        cmocka_unit_test(cluster_is_replaced_after_many_pods),
        cmocka_unit_test(unschedulable_messages),
        cmocka_unit_test(malformed_objects_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
