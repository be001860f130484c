/* cache_volume_test.c - nodes and volumes for pods with claims, and the reasons why such pods wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/object/object_kit_test.h"

#define USES(claim) "volumes: [{name: v, persistentVolumeClaim: {claimName: " claim "}}]"
#define BOUND "annotations: {pv.kubernetes.io/bind-completed: 'yes'}"
#define ON_HOST(name)                                                                                                              \
    "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [" name \
    "]}]}]}}"

/* Two nodes in zones a and b; the objects; then pod `p` with the claim `data`. */
struct row {
    const char *label;
    const char *class, *volume, *claim; /* NULL: none */
    const char *want;                   /* the placement, or why there is none */
};

#define CLAIM(meta, spec) "{metadata: {name: data, namespace: default, uid: u1" meta "}, spec: {" spec "}}"
#define VOLUME(labels, spec)                                                                                           \
    "{metadata: {name: pv1, labels: {" labels "}}, spec: {" spec "}, status: {phase: Available}}"
#define WAITS(more) "{metadata: {name: fast}, volumeBindingMode: WaitForFirstConsumer" more "}"
#define ASKS "storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}"
#define HAS "storageClassName: fast, accessModes: [ReadWriteOnce], capacity: {storage: 2Gi}"
#define NOTHING_TO_BIND "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
#define IMMEDIATE "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."

static const struct row rows[] = {
    {"no claim",                                                                            NULL,NULL,                         NULL, "0/2 nodes are available: persistentvolumeclaim \"data\" not found."},
    {        "bound to what can be reached everywhere",                                                                                 NULL,VOLUME("",                          ""),CLAIM(", " BOUND,"volumeName: pv1"), "n1 n2"},
    { "bound to one node",                                                                   NULL,VOLUME("",                    ON_HOST("n2")),CLAIM(", " BOUND,"volumeName: pv1"), "n2"},
    {"bound in a zone",                                                                                     NULL,VOLUME("topology.kubernetes.io/zone: b",""),CLAIM(", " BOUND,                 "volumeName: pv1"), "n2"},
    {                                                                                                                  "bound in two zones",                                                                                 NULL,VOLUME("topology.kubernetes.io/zone: a__b",""),CLAIM(", " BOUND,"volumeName: pv1"),
     "n1 n2"},
    {"bound in a zone, as they were called before",                                                                   NULL,VOLUME("failure-domain.beta.kubernetes.io/zone: b",""),
     CLAIM(", " BOUND,"volumeName: pv1"), "n2"},
    {                                                     "bound in a region that no node has",                                                                      NULL,VOLUME("topology.kubernetes.io/region: r",""),
     CLAIM(", " BOUND,                                               "volumeName: pv1"),
     "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."},
    {"bound to nothing",                                                                                  NULL,NULL,CLAIM(", " BOUND,"volumeName: pv1"),
     "0/2 nodes are available: pod has a PersistentVolumeClaim that is bound to a PersistentVolume that does not exist."},
    {"half bound",                                                                                 NULL,VOLUME("",                                                         ""),CLAIM("","volumeName: pv1"), IMMEDIATE},
    {"not bound, at once",                                                                            "{metadata: {name: fast}, volumeBindingMode: Immediate, provisioner: x}",VOLUME("",HAS),
     CLAIM("",                                                                                                                                           ASKS), IMMEDIATE},
    {                                                                                                                                                  "no class",NULL,VOLUME("",HAS),CLAIM("",ASKS), IMMEDIATE},
    {"is being deleted",                                                                            NULL, VOLUME("",                                                                                                                                                                           ""),                                                                                                                                                                                                               CLAIM(", deletionTimestamp: 3, " BOUND,                                                                                                                                                                                                              "volumeName: pv1"),
     "0/2 nodes are available: persistentvolumeclaim \"data\" is being deleted."},
    {                                                                                                                                                                                                                                            "waits, for a volume",                                                                                     WAITS(""),VOLUME("",HAS ", " ON_HOST("n2")),CLAIM("",ASKS), "n2"},
    {"waits, for a volume anywhere",           WAITS(""),VOLUME("",HAS),CLAIM("",ASKS), "n1 n2"},
    {"waits, too small",                                                                                WAITS(""),
     VOLUME("","storageClassName: fast, accessModes: [ReadWriteOnce], capacity: {storage: 1023Mi}"),CLAIM("",                                                                                                                                                                                                                              ASKS),
     NOTHING_TO_BIND},
    {                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                         "waits, another mode of access",                                                                             WAITS(""),
     VOLUME("","storageClassName: fast, accessModes: [ReadOnlyMany], capacity: {storage: 2Gi}"),                                                                                                                                                                        CLAIM("",                                                                                                                                                                                                                                                                                                          ASKS),
     NOTHING_TO_BIND},
    {                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             "waits, another class", WAITS(""),
     VOLUME("","storageClassName: slow, accessModes: [ReadWriteOnce], capacity: {storage: 2Gi}"),CLAIM("",ASKS),
     NOTHING_TO_BIND},
    {"waits, a block device",                                                                             WAITS(""),VOLUME("",HAS ", volumeMode: Block"),CLAIM("",ASKS), NOTHING_TO_BIND},
    {"waits, for another claim",                                                                            WAITS(""),VOLUME("",HAS ", claimRef: {namespace: default, name: other}"),
     CLAIM("",                       ASKS), NOTHING_TO_BIND},
    {"waits, meant for it",                                                               WAITS(""),VOLUME("", HAS ", claimRef: {namespace: default, name: data}, " ON_HOST("n1")),
     CLAIM("",                                                                                                                                                                                                                                                                                       ASKS), "n1"},
    {                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  "waits, by labels",                                                                                     WAITS(""),VOLUME("disk: ssd",HAS),CLAIM("",ASKS ", selector: {matchLabels: {disk: ssd}}"),
     "n1 n2"},
    {"waits, by other labels",                                                                      WAITS(""),VOLUME("disk: hdd",HAS),
     CLAIM("",             ASKS ", selector: {matchLabels: {disk: ssd}}"), NOTHING_TO_BIND},
    {"waits, to be made",                                                                                WAITS(", provisioner: csi.example.com"),NULL,CLAIM("",ASKS),"n1 n2"},
    {"waits, not to be made",                                                                             WAITS(", provisioner: kubernetes.io/no-provisioner"),NULL,CLAIM("",ASKS),
     NOTHING_TO_BIND},
    {"waits, to be made in a zone",
     WAITS(
         ", provisioner: csi.example.com, allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: "
         "[b]}]}]"),
     NULL,CLAIM("",ASKS),"n2"},
    {"waits, to be made in a zone or there",
     WAITS(
         ", provisioner: csi.example.com, allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: "
         "[b]}]}]"),
     VOLUME("",                                                    HAS ", " ON_HOST("n1")),                                                                                             CLAIM("",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            ASKS), "n1 n2"},
    {                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                         "is being made for a node",                                                                                 WAITS(", provisioner: csi.example.com"),                                           NULL,
     CLAIM(", annotations: {volume.kubernetes.io/selected-node: n2}",ASKS),"n2"},
};

static void told(struct scene *s, const struct row *r, const char *closed, bool claim_first)
{
    scene_node(s, "n1", "a", strcmp(closed, "n1") == 0 ? "taints: [{key: k, effect: NoSchedule}]" : "");
    scene_node(s, "n2", "b", strcmp(closed, "n2") == 0 ? "taints: [{key: k, effect: NoSchedule}]" : "");
    if (r->class)
        scene_put(s, CACHE_STORAGE_CLASS, r->class);
    if (r->claim && claim_first) {
        scene_put(s, CACHE_CLAIM, r->claim);
        (void)scene_says(s);
    }
    if (r->volume)
        scene_put(s, CACHE_VOLUME, r->volume);
    if (r->claim)
        scene_put(s, CACHE_CLAIM, r->claim);
}

/* The order of objects makes no difference. */
static const char *answer(struct scene *s, const struct row *r, const char *closed, bool pod_first)
{
    if (pod_first)
        scene_pod(s, "p", "", "", USES("data"));
    if (pod_first)
        (void)scene_says(s);
    told(s, r, closed, pod_first);
    if (!pod_first)
        scene_pod(s, "p", "", "", USES("data"));
    return scene_says(s);
}

static bool goes_to(struct scene *s, const struct row *r, const char *driver, const char *left, const char *open,
                    bool pod_first)
{
    char want[10];
    (void)snprintf(want, sizeof want, "p->%s", open);
    scene_begin(s);
    (void)answer(s, r, strcmp(open, "n1") == 0 ? "n2" : "n1", pod_first);
    if (driver)
        scene_put(s, CACHE_CSI_DRIVER, driver);
    if (pod_first)
        (void)scene_says(s);
    if (left)
        scene_put(s, CACHE_STORAGE_CAPACITY, left);
    return strcmp(scene_says(s), want) == 0;
}

static void where_is(const struct row *r, const char *driver, const char *left, bool pod_first)
{
    CLEANUP(scene) struct scene a, b;
    char got[300];
    bool n1 = goes_to(&a, r, driver, left, "n1", pod_first), n2 = goes_to(&b, r, driver, left, "n2", pod_first);
    (void)snprintf(got, sizeof got, "%s%s%s", n1 ? "n1" : "", n1 && n2 ? " " : "", n2 ? "n2" : "");
    if (!*got) {
        scene_node(&a, "n2", "b", "");
        (void)snprintf(got, sizeof got, "%s", scene_why(&a, "p"));
    }
    if (strcmp(got, r->want) != 0)
        fail_msg("%s: \"%s\", not \"%s\"", r->label, got, r->want);
}

static void claims_restrict_nodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * ROWS(rows); i++)
        where_is(&rows[i / 2], NULL, NULL, i % 2);
}

/* In a cluster of one zone nodes may have no zone labels. */
static void volume_zones_without_node_labels(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_put(&s, CACHE_NODE, "{metadata: {name: n1}, status: {allocatable: {pods: 10}}}");
    scene_put(&s, CACHE_VOLUME, VOLUME("topology.kubernetes.io/zone: b, topology.kubernetes.io/region: r", ""));
    scene_put(&s, CACHE_CLAIM, CLAIM(", " BOUND, "volumeName: pv1"));
    scene_pod(&s, "p", "", "", USES("data"));
    assert_string_equal(scene_says(&s), "p->n1");
}

static void ephemeral(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_put(&s, CACHE_VOLUME, VOLUME("", ""));
    scene_pod(&s, "p", "", "", "volumes: [{name: scratch, ephemeral: {}}]");
    assert_string_equal(
        scene_why(&s, "p"),
        "0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-scratch\".");
    scene_put(&s, CACHE_CLAIM, "{metadata: {name: p-scratch, namespace: default, " BOUND "}, spec: {volumeName: pv1}}");
    assert_non_null(strstr(scene_why(&s, "p"), "pod is not owner"));
    scene_put(
        &s, CACHE_CLAIM,
        "{metadata: {name: p-scratch, namespace: default, ownerReferences: [{uid: uid-p, controller: true}], " BOUND
        "}, spec: {volumeName: pv1}}");
    assert_string_equal(scene_says(&s), "p->n1");
}

/* The smallest suitable volume is chosen, and is then taken. */
static void smallest_suitable_volume_is_chosen(void **state)
{
    CLEANUP(scene) struct scene s;
    struct cache_claim_volume chosen[2];
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_put(&s, CACHE_STORAGE_CLASS, WAITS(""));
    scene_put(&s, CACHE_VOLUME, "{metadata: {name: large}, spec: {" HAS "}, status: {phase: Available}}");
    scene_put(
        &s, CACHE_VOLUME,
        "{metadata: {name: small}, spec: {storageClassName: fast, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}}, status: {phase: "
        "Available}}");
    scene_put(&s, CACHE_CLAIM, CLAIM("", ASKS));
    scene_put(&s, CACHE_CLAIM, "{metadata: {name: more, namespace: default, uid: u2}, spec: {" ASKS "}}");
    scene_put(&s, CACHE_CLAIM, "{metadata: {name: third, namespace: default, uid: u3}, spec: {" ASKS "}}");
    scene_pod(&s, "p", "", "", USES("data"));
    scene_pod(&s, "q", "", "", USES("more"));
    scene_pod(&s, "r", "", "", USES("third"));
    assert_string_equal(scene_says(&s), "p->n1 q->n1 r->n1");
    uint64_t p = cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0);
    assert_int_equal(cache_claim_volumes(s.p, p, chosen, 2), 1);
    assert_string_equal(chosen[0].claim, "data");
    assert_string_equal(chosen[0].claim_uid, "u1");
    assert_string_equal(chosen[0].volume, "small");
    uint64_t q = cache_assume_pod(s.p, "default:q", "n1", 0, NULL, 0);
    assert_int_equal(cache_claim_volumes(s.p, q, chosen, 2), 1);
    assert_string_equal(chosen[0].volume, "large");
    assert_string_equal(scene_says(&s), "?r"); /* no volume is left */
    assert_int_equal(cache_assume_pod(s.p, "default:r", "n1", 0, NULL, 0), 0);
    assert_string_equal(scene_says(&s), "?r");
    cache_forget_pod(s.p, p, 0);
    assert_non_null(strstr(scene_says(&s), "r->n1"));
    uint64_t r = cache_assume_pod(s.p, "default:r", "n1", 0, NULL, 0);
    assert_int_equal(cache_claim_volumes(s.p, r, chosen, 2), 1);
    assert_string_equal(chosen[0].volume, "small");
}

/* Two pods are placed at once with one claim: each must be put into the cluster again because of the other, and again
 * when the claim is bound. Both request a plan. */
static void two_pods_share_one_claim(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_put(&s, CACHE_STORAGE_CLASS, WAITS(""));
    scene_put(&s, CACHE_VOLUME, "{metadata: {name: v1}, spec: {" HAS "}, status: {phase: Available}}");
    scene_put(&s, CACHE_CLAIM, CLAIM("", ASKS));
    scene_pod(&s, "p", "", "", USES("data"));
    scene_pod(&s, "q", "", "", USES("data"));
    assert_string_equal(scene_says(&s), "p->n1 q->n1");
    unsigned changes = s.changes;
    uint64_t p = cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0);
    uint64_t q = cache_assume_pod(s.p, "default:q", "n1", 0, NULL, 0);
    assert_true(p > 0 && q > 0);
    assert_true(s.changes > changes);
    assert_string_equal(scene_says(&s), "");
    changes = s.changes;
    scene_put(&s, CACHE_CLAIM, CLAIM(", " BOUND, ASKS ", volumeName: v1"));
    assert_true(s.changes > changes);
    assert_true(cache_volumes_are_bound(s.p, p) && cache_volumes_are_bound(s.p, q));
}

/* While the volume is to be provisioned for another pod, only that pod's node is possible; when that pod goes, every
 * node is. */
static void pod_waits_for_volume_of_another_pod(void **state)
{
    CLEANUP(scene) struct scene s;
    struct cache_pod_view holder;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_node(&s, "n2", "b", "");
    scene_put(&s, CACHE_STORAGE_CLASS, WAITS(", provisioner: csi.example.com"));
    scene_put(&s, CACHE_CLAIM, CLAIM("", ASKS));
    scene_pod(&s, "holder", "", "n1", "");
    assert_true(cache_pod_find(s.p, "default:holder", &holder));
    scene_pod(&s, "p", "", "", USES("data"));
    (void)cache_cluster(s.p);
    assert_true(cache_assume_pod(s.p, "default:p", "n1", 0, &holder.instance, 1) > 0); /* reserved */
    scene_pod(&s, "q", "", "", USES("data") ", nodeSelector: {topology.kubernetes.io/zone: b}");
    assert_non_null(strstr(scene_says(&s), "?q"));
    scene_drop(&s, CACHE_POD, "{metadata: {name: p, namespace: default}}");
    assert_string_equal(scene_says(&s), "q->n2");
}

/* Two claims that each have a volume on either node, but no node has two volumes. */
static void no_node_has_both_volumes(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_node(&s, "n2", "b", "");
    scene_put(&s, CACHE_STORAGE_CLASS, WAITS(""));
    scene_put(&s, CACHE_VOLUME,
              "{metadata: {name: v1}, spec: {" HAS ", " ON_HOST("n1") "}, status: {phase: Available}}");
    scene_put(&s, CACHE_VOLUME,
              "{metadata: {name: v2}, spec: {" HAS ", " ON_HOST("n2") "}, status: {phase: Available}}");
    scene_put(&s, CACHE_CLAIM, CLAIM("", ASKS));
    scene_put(&s, CACHE_CLAIM, "{metadata: {name: more, namespace: default, uid: u2}, spec: {" ASKS "}}");
    scene_pod(
        &s, "p", "", "",
        "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}, {name: w, persistentVolumeClaim: {claimName: more}}]");
    assert_non_null(strstr(scene_says(&s), "p->n"));
    unsigned changes = s.changes;
    assert_int_equal(cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0), 0);
    assert_true(s.changes > changes); /* a new plan is requested */
    assert_string_equal(scene_says(&s), "p->n2");
    assert_int_equal(cache_assume_pod(s.p, "default:p", "n2", 0, NULL, 0), 0);
    assert_string_equal(scene_says(&s), "?p");
    scene_put(&s, CACHE_VOLUME,
              "{metadata: {name: v3}, spec: {" HAS ", " ON_HOST("n1") "}, status: {phase: Available}}");
    assert_non_null(strstr(scene_says(&s), "p->n"));
    assert_true(cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0) > 0);
}

static void provisioned_on_the_node(void **state)
{
    CLEANUP(scene) struct scene s;
    struct cache_claim_volume chosen[2];
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_put(&s, CACHE_STORAGE_CLASS, WAITS(", provisioner: csi.example.com"));
    scene_put(&s, CACHE_CLAIM, CLAIM("", ASKS));
    scene_pod(&s, "p", "", "", USES("data"));
    (void)cache_cluster(s.p);
    uint64_t p = cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0);
    assert_int_equal(cache_claim_volumes(s.p, p, chosen, 2), 1);
    assert_string_equal(chosen[0].volume, "");
}

/* A pod that mounts a claim twice has one volume. */
static void claim_mounted_twice_counts_once(void **state)
{
    CLEANUP(scene) struct scene s;
    struct cache_claim_volume chosen[2];
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_put(&s, CACHE_STORAGE_CLASS, WAITS(""));
    scene_put(&s, CACHE_VOLUME, "{metadata: {name: v1}, spec: {" HAS "}, status: {phase: Available}}");
    scene_put(&s, CACHE_VOLUME, "{metadata: {name: v2}, spec: {" HAS "}, status: {phase: Available}}");
    scene_put(&s, CACHE_CLAIM, CLAIM("", ASKS));
    scene_pod(
        &s, "p", "", "",
        "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}, {name: w, persistentVolumeClaim: {claimName: data}}]");
    (void)cache_cluster(s.p);
    uint64_t p = cache_assume_pod(s.p, "default:p", "n1", 0, NULL, 0);
    assert_int_equal(cache_claim_volumes(s.p, p, chosen, 2), 1);
    assert_string_equal(chosen[0].volume, "v1");
}

/* ReadWriteOncePod: the second pod waits until the first is gone, on every node. */
static void rwop_claim_admits_one_pod(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_node(&s, "n2", "b", "");
    scene_put(&s, CACHE_VOLUME, VOLUME("", "accessModes: [ReadWriteOncePod]"));
    scene_put(&s, CACHE_CLAIM, CLAIM(", " BOUND, "volumeName: pv1, accessModes: [ReadWriteOncePod]"));
    scene_pod(&s, "p", "", "n1", USES("data"));
    scene_pod(&s, "q", "", "", USES("data"));
    assert_string_equal(scene_says(&s), "?q");
    scene_drop(&s, CACHE_POD, "{metadata: {name: p, namespace: default}}");
    scene_pod(&s, "r", "", "", USES("data"));
    const char *says = scene_says(&s);
    assert_true(strstr(says, "?r") && strstr(says, "q->n"));
}

/* A driver's volume limit of a node; a volume counts once however many pods there use it. */
static void driver_volume_limit(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    for (int c = '1'; c <= '3'; c++) {
        CLEANUP(str) struct str yaml = {0};
        str_addf(&yaml, "{metadata: {name: pv%c}, spec: {csi: {driver: d, volumeHandle: /h/%c}}}", c, c);
        scene_put(&s, CACHE_VOLUME, yaml.at);
        str_clear(&yaml);
        str_addf(&yaml, "{metadata: {name: c%c, namespace: default, " BOUND "}, spec: {volumeName: pv%c}}", c, c);
        scene_put(&s, CACHE_CLAIM, yaml.at);
    }
    scene_pod(&s, "a", "", "n1", USES("c1"));
    scene_pod(&s, "b", "", "", USES("c1"));
    scene_pod(&s, "c", "", "", USES("c2"));
    scene_pod(&s, "d", "", "", USES("c3"));
    assert_string_equal(scene_says(&s), "b->n1 c->n1 d->n1");
    unsigned changes = s.changes;
    scene_put(&s, CACHE_CSI_NODE,
              "{metadata: {name: n1}, spec: {drivers: [{name: d, nodeID: x, allocatable: {count: 2}}]}}");
    assert_true(s.changes > changes);
    assert_string_equal(scene_says(&s), "?d b->n1 c->n1");
    assert_string_equal(scene_why(&s, "d"), "0/1 nodes are available: 1 node(s) exceed max volume count.");
    scene_put(&s, CACHE_CSI_NODE, "{metadata: {name: n1}, spec: {drivers: [{name: d, nodeID: x}]}}");
    assert_string_equal(scene_says(&s), "b->n1 c->n1 d->n1");
}

#define ATTACHED(name, node)                                                                                           \
    "{metadata: {name: at-" name "-" node "}, spec: {attacher: d, nodeName: " node                                     \
    ", source: {persistentVolumeName: pv" name "}}}"

/* Attached volumes count even if no pod uses them, and once if one does. */
static void node_attachments_unused_count(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_put(&s, CACHE_CSI_NODE,
              "{metadata: {name: n1}, spec: {drivers: [{name: d, nodeID: x, allocatable: {count: 2}}]}}");
    scene_put(&s, CACHE_ATTACHMENT, ATTACHED("1", "n1")); /* before its volume is known */
    for (int c = '1'; c <= '3'; c++) {
        CLEANUP(str) struct str yaml = {0};
        str_addf(&yaml, "{metadata: {name: pv%c}, spec: {csi: {driver: d, volumeHandle: h%c}}}", c, c);
        scene_put(&s, CACHE_VOLUME, yaml.at);
        str_clear(&yaml);
        str_addf(&yaml, "{metadata: {name: c%c, namespace: default, " BOUND "}, spec: {volumeName: pv%c}}", c, c);
        scene_put(&s, CACHE_CLAIM, yaml.at);
    }
    scene_pod(&s, "a", "", "n1", USES("c1"));
    scene_pod(&s, "p", "", "", USES("c2"));
    assert_string_equal(scene_says(&s), "p->n1"); /* the pod there uses the attached volume */
    unsigned changes = s.changes;
    scene_put(&s, CACHE_ATTACHMENT, ATTACHED("3", "n1"));
    assert_true(s.changes > changes);
    assert_string_equal(scene_why(&s, "p"), "0/1 nodes are available: 1 node(s) exceed max volume count.");
    scene_put(&s, CACHE_ATTACHMENT,
              "{metadata: {name: at-3-n1}, spec: {attacher: d, nodeName: n2, source: "
              "{persistentVolumeName: pv3}}}"); /* on another node */
    assert_string_equal(scene_says(&s), "p->n1");
    scene_put(&s, CACHE_ATTACHMENT, ATTACHED("3", "n1"));
    assert_string_equal(scene_says(&s), "?p");
    scene_drop(&s, CACHE_POD, "{metadata: {name: a, namespace: default}}"); /* the volume it used is still attached */
    assert_string_equal(scene_says(&s), "?p");
    changes = s.changes;
    scene_drop(&s, CACHE_ATTACHMENT, ATTACHED("3", "n1"));
    assert_true(s.changes > changes);
    assert_string_equal(scene_says(&s), "p->n1");
    scene_put(&s, CACHE_ATTACHMENT, ATTACHED("3", "n1"));
    scene_pod(&s, "b", "", "n1", USES("c1"));
    assert_string_equal(scene_says(&s), "?p"); /* one volume is used, one is not */
    scene_drop(&s, CACHE_VOLUME, "{metadata: {name: pv3}}");
    assert_string_equal(scene_says(&s), "p->n1"); /* the volume of the attachment is unknown */
}

/* Attachments whose volume or driver is unknown do not count. */
static void unknown_attachments_do_not_count(void **state)
{
    static const struct {
        const char *label, *attachment, *want;
    } some[] = {
        {"as it should be",
         "{metadata: {name: x}, spec: {attacher: d, nodeName: n1, source: {persistentVolumeName: pv1}}}",          "?p"   },
        {"of another driver",
         "{metadata: {name: x}, spec: {attacher: e, nodeName: n1, source: {persistentVolumeName: pv1}}}",          "p->n1"},
        {"of nobody",          "{metadata: {name: x}, spec: {nodeName: n1, source: {persistentVolumeName: pv1}}}", "p->n1"},
        {"without a volume",   "{metadata: {name: x}, spec: {attacher: d, nodeName: n1, source: {}}}",             "p->n1"},
        {"no such volume",
         "{metadata: {name: x}, spec: {attacher: d, nodeName: n1, source: {persistentVolumeName: pv9}}}",          "p->n1"},
        {"no volume of CSI's",
         "{metadata: {name: x}, spec: {attacher: d, nodeName: n1, source: {persistentVolumeName: plain}}}",        "p->n1"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(some); i++) {
        CLEANUP(scene) struct scene s;
        scene_begin(&s);
        scene_node(&s, "n1", "a", "");
        scene_put(&s, CACHE_CSI_NODE,
                  "{metadata: {name: n1}, spec: {drivers: [{name: d, nodeID: x, allocatable: {count: 1}}]}}");
        scene_put(&s, CACHE_VOLUME, "{metadata: {name: pv1}, spec: {csi: {driver: d, volumeHandle: h1}}}");
        scene_put(&s, CACHE_VOLUME, "{metadata: {name: pv2}, spec: {csi: {driver: d, volumeHandle: h2}}}");
        scene_put(&s, CACHE_VOLUME, "{metadata: {name: plain}, spec: {}}");
        scene_put(&s, CACHE_CLAIM, CLAIM(", " BOUND, "volumeName: pv2"));
        scene_put(&s, CACHE_ATTACHMENT, some[i].attachment);
        scene_pod(&s, "p", "", "", USES("data"));
        const char *got = scene_says(&s);
        if (strcmp(got, some[i].want) != 0)
            fail_msg("%s: %s", some[i].label, got);
    }
}

#define LEFT(more) "{metadata: {name: left, namespace: kube-system}, storageClassName: fast, " more "}"
#define IN_ZONE(z) "nodeTopology: {matchLabels: {topology.kubernetes.io/zone: " z "}}"
#define FULL "0/2 nodes are available: 2 node(s) did not have enough free storage."

#define TELLS "{metadata: {name: csi.example.com}, spec: {storageCapacity: true}}"

/* Free storage as the driver reports it: a claim of 1 Gi, nodes n1 and n2 in zones a and b. */
static void csi_storage_capacity_filters_nodes(void **state)
{
    static const struct {
        const char *label, *driver, *left, *want;
    } some[] = {
        {"nothing is known of the driver", NULL,                                                                NULL,                                                                             "n1 n2"},
        {"it does not say",                "{metadata: {name: csi.example.com}, spec: {attachRequired: true}}", NULL,                                                                             "n1 n2"},
        {"another driver",                 "{metadata: {name: other}, spec: {storageCapacity: true}}",          NULL,                                                                             "n1 n2"},
        {"there is none",                  TELLS,                                                               NULL,                                                                             FULL   },
        {"in one zone",                    TELLS,                                                               LEFT("capacity: 1Gi, " IN_ZONE("b")),                                             "n2"   },
        {"too little",                     TELLS,                                                               LEFT("capacity: 1023Mi, " IN_ZONE("b")),                                          FULL   },
        {"in all, not for one",            TELLS,                                                               LEFT("capacity: 9Gi, maximumVolumeSize: 500Mi, " IN_ZONE("b")),                   FULL   },
        {"for one",                        TELLS,                                                               LEFT("capacity: 1Mi, maximumVolumeSize: 5Gi, " IN_ZONE("a")),                     "n1"   },
        {"on every node",                  TELLS,                                                               LEFT("capacity: 1Gi, nodeTopology: {}"),                                          "n1 n2"},
        {"on no node",                     TELLS,                                                               LEFT("capacity: 1Gi"),                                                            FULL   },
        {"how much, is not said",          TELLS,                                                               LEFT(IN_ZONE("a")),                                                               FULL   },
        {"another class",                  TELLS,                                                               "{metadata: {name: x}, storageClassName: slow, capacity: 1Gi, nodeTopology: {}}",
         FULL                                                                                                                                                                                            },
    };
    (void)state;
    for (size_t i = 0; i < 2 * ROWS(some); i++) {
        const struct row r = {some[i / 2].label, WAITS(", provisioner: csi.example.com"), NULL, CLAIM("", ASKS),
                              some[i / 2].want};
        where_is(&r, some[i / 2].driver, some[i / 2].left, i % 2);
    }
}

/* In-tree volumes named in pods: one pod on the node has the first list, a new pod the second. */
static void in_tree_disks_conflict(void **state)
{
    static const struct {
        const char *label, *held, *wanted, *want;
    } some[] = {
        {"both write",         "gcePersistentDisk: {pdName: d}",                      "gcePersistentDisk: {pdName: d}",                 "?p"   },
        {"one reads",          "gcePersistentDisk: {pdName: d}",                      "gcePersistentDisk: {pdName: d, readOnly: true}", "?p"   },
        {"the other reads",    "gcePersistentDisk: {pdName: d, readOnly: true}",      "gcePersistentDisk: {pdName: d}",                 "?p"   },
        {"both read",          "gcePersistentDisk: {pdName: d, readOnly: true}",
         "gcePersistentDisk: {pdName: d, readOnly: true}",                                                                              "p->n1"},
        {"others",             "gcePersistentDisk: {pdName: d}",                      "gcePersistentDisk: {pdName: e}",                 "p->n1"},
        {"never twice",        "awsElasticBlockStore: {volumeID: d, readOnly: true}",
         "awsElasticBlockStore: {volumeID: d, readOnly: true}",                                                                         "?p"   },
        {"by name",            "iscsi: {iqn: d, lun: 1}",                             "iscsi: {iqn: d, lun: 2}",                        "?p"   },
        {"a monitor of both",  "rbd: {monitors: [a, b], pool: x, image: i}",
         "rbd: {monitors: [b, c], pool: x, image: i}",                                                                                  "?p"   },
        {"no monitor of both", "rbd: {monitors: [a], pool: x, image: i}",             "rbd: {monitors: [b], pool: x, image: i}",
         "p->n1"                                                                                                                               },
        {"another pool",       "rbd: {monitors: [a], pool: x, image: i}",             "rbd: {monitors: [a], pool: y, image: i}",        "p->n1"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(some); i++) {
        CLEANUP(scene) struct scene s;
        CLEANUP(str) struct str held = {0}, wanted = {0};
        scene_begin(&s);
        scene_node(&s, "n1", "a", "");
        str_addf(&held, "volumes: [{name: v, %s}]", some[i].held);
        str_addf(&wanted, "volumes: [{name: w, %s}]", some[i].wanted);
        scene_pod(&s, "h", "", "n1", held.at);
        scene_pod(&s, "p", "", "", wanted.at);
        const char *got = scene_says(&s);
        if (strcmp(got, some[i].want) != 0)
            fail_msg("%s: %s", some[i].label, got);
    }
}

/* Volumes migrated to CSI drivers count as the driver's, on a node with a limit of one volume. */
static void migrated_volumes_count(void **state)
{
    static const struct {
        const char *label, *driver, *held, *volume, *want;
    } some[] = {
        {"another disk",         "pd.csi.storage.gke.io", "gcePersistentDisk: {pdName: d}",          "gcePersistentDisk: {pdName: e}",
         "?p"                                                                                                                                 },
        {"the same",             "pd.csi.storage.gke.io", "gcePersistentDisk: {pdName: d}",          "gcePersistentDisk: {pdName: d}",
         "p->n1"                                                                                                                              },
        {"its name with a zone", "ebs.csi.aws.com",       "awsElasticBlockStore: {volumeID: vol-1}",
         "awsElasticBlockStore: {volumeID: 'aws://a/vol-1'}",                                                                          "p->n1"},
        {"of another driver",    "ebs.csi.aws.com",       "gcePersistentDisk: {pdName: d}",          "gcePersistentDisk: {pdName: e}",
         "p->n1"                                                                                                                              },
        {"by its second name",   "disk.csi.azure.com",    "azureDisk: {diskName: a, diskURI: u}",
         "azureDisk: {diskName: b, diskURI: u}",                                                                                       "p->n1"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(some); i++) {
        CLEANUP(scene) struct scene s;
        CLEANUP(str) struct str text = {0};
        scene_begin(&s);
        scene_node(&s, "n1", "a", "");
        str_addf(&text, "{metadata: {name: n1}, spec: {drivers: [{name: %s, nodeID: x, allocatable: {count: 1}}]}}",
                 some[i].driver);
        scene_put(&s, CACHE_CSI_NODE, text.at);
        str_clear(&text);
        str_addf(&text, "volumes: [{name: v, %s}]", some[i].held);
        scene_pod(&s, "h", "", "n1", text.at);
        str_clear(&text);
        str_addf(&text, "{metadata: {name: pv1}, spec: {%s}}", some[i].volume);
        scene_put(&s, CACHE_VOLUME, text.at);
        scene_put(&s, CACHE_CLAIM, CLAIM(", " BOUND, "volumeName: pv1"));
        scene_pod(&s, "p", "", "", USES("data"));
        const char *got = scene_says(&s);
        if (strcmp(got, some[i].want) != 0)
            fail_msg("%s: %s", some[i].label, got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_restrict_nodes),
        cmocka_unit_test(volume_zones_without_node_labels),
        cmocka_unit_test(ephemeral),
        cmocka_unit_test(smallest_suitable_volume_is_chosen),
        cmocka_unit_test(two_pods_share_one_claim),
        cmocka_unit_test(pod_waits_for_volume_of_another_pod),
        cmocka_unit_test(no_node_has_both_volumes),
        cmocka_unit_test(provisioned_on_the_node),
        cmocka_unit_test(rwop_claim_admits_one_pod),
        cmocka_unit_test(driver_volume_limit),
        cmocka_unit_test(csi_storage_capacity_filters_nodes),
        cmocka_unit_test(in_tree_disks_conflict),
        cmocka_unit_test(migrated_volumes_count),
        cmocka_unit_test(claim_mounted_twice_counts_once),
        cmocka_unit_test(node_attachments_unused_count),
        cmocka_unit_test(unknown_attachments_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
