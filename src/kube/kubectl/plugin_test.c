/* plugin_test.c - the exact output of `kubectl berth` for small clusters; and that its advice is true. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/kubectl/plugin.h"
#include "kube/kubectl/plugin_job.h"
#include "kube/kubectl/plugin_list.h"
#include "kube/kubectl/plugin_lookup.h"
#include "kube/kubectl/plugin_why.h"
#include "kube/object/object_kit_test.h"

#define CPU(amount) "containers: [{name: c, resources: {requests: {cpu: " amount "}}}]"
#define NOW_NS (INT64_C(400) * 1000000000) /* pods of the kit are created at 100 s */

static void view(struct scene *s, struct plugin_view *ret)
{
    struct berth_err err = {0};
    const struct kube_profiles usual = {.own = berth_profile_find("default")};
    if (plugin_view_init(ret, s->p, s->tenants, &usual, NOW_NS, &err) < 0)
        fail_msg("%s", err.text);
}

static const char *why(struct scene *s, const char *pod)
{
    struct plugin_view v;
    struct cache_workload holder;
    char id[300];
    (void)snprintf(id, sizeof id, "default:%s", pod);
    view(s, &v);
    assert_true(cache_workload(s->p, id, &holder));
    str_clear(&s->text);
    if (*holder.node)
        plugin_why_placed(&v, &holder, &s->text);
    else
        plugin_why_pending(&v, &holder, &s->text);
    plugin_view_done(&v);
    return str_text(&s->text);
}

/* ---- pending pods ----------------------------------------------------------------------------------------------- */

static void insufficient_resources(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_node(&s, "n2", "b", "");
    scene_node(&s, "n3", "b", "taints: [{key: k, value: v, effect: NoSchedule}]");
    scene_pod(&s, "a", "", "n1", CPU("3") ", priority: 5");
    scene_pod(&s, "b", "", "n2", CPU("2"));
    scene_pod(&s, "p", "", "", CPU("3"));
    assert_string_equal(
        why(&s, "p"),
        "It requests 3 cpu.\n"
        "Position 1 of 1 pending workloads.\n"
        "\nReasons\n"
        "  - 2 of 3 nodes have too little cpu left: 3 needed, at most 2 free\n"
        "  - 1 of 3 nodes has an untolerated taint\n"
        "\nNearest nodes\n"
        "  - n3 has an untolerated taint: k\n"
        "  - n2 has 2 of cpu free, 3 needed\n"
        "  - n1 has 1 of cpu free, 3 needed\n"
        "\nBlocked by (lowest priority first)\n"
        "  cpu of n2: 2 of 4 allocated, to default/b (2, priority 0).\n"
        "  cpu of n1: 3 of 4 allocated, to default/a (3, priority 5).\n"
        "\nPreemption\n"
        "  Its priority 0 is too low to preempt other pods. With a priority above 0, it would get room on n2 by "
        "preempting default/b (priority 0).\n"
        "\nWays to start now\n"
        "  - with 2 cpu instead of 3: on n2\n"
        "  - with a toleration for all taints: on n3\n");
}

#define APART                                                                                                          \
    "affinity: {podAntiAffinity: {required: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}]}}"
#define SPREAD                                                                                                              \
    "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, " \
    "labelSelector: {matchLabels: {app: x}}}]"

/* Checks parts of the explanation of a pod `p` on two nodes, with a pod `other` on n1 and `n2` as the spec of n2. */
static void each_requirement_is_named(void **state)
{
    static const struct {
        const char *label, *other, *n2, *spec;
        const char *want, *also; /* expected parts; NULL: none */
    } rows[] = {
        {"labels",        "",                                                                      "",                    "nodeSelector: {disk: ssd}",                                      "all 2 nodes do not match the required labels",
         "  - without its node selector and required node affinity: on n"                                                                                                                                                                                                                                 },
        {"neighbours",    "",                                                                      "unschedulable: true", APART,                                                            "n1 does not satisfy the required pod anti-affinity",
         "  - without its required pod affinity and anti-affinity: on n1\n"                                                                                                                                                                                                                               },
        {"spread",        "",                                                                      "unschedulable: true", SPREAD,                                                           "would violate the spread constraint",
         "  - without its required topology spread: on n1\n"                                                                                                                                                                                                                                              },
        {"ports",         "containers: [{name: c, ports: [{hostPort: 80}]}]",                      "unschedulable: true",
         "containers: [{name: c, ports: [{hostPort: 80}]}]",                                                                                                                                "n1 has the port in use",
         "  - without its host ports: on n1\n"                                                                                                                                                                                                                                                            },
        {"cordoned",      CPU("4"),                                                                "unschedulable: true", CPU("1"),
         "n2 has an untolerated taint: node.kubernetes.io/unschedulable",                                                                                                                                                                                         "  - without a request for cpu: on n1\n"},
        {"never",         CPU("3"),                                                                "unschedulable: true", CPU("2") ", priority: 7, preemptionPolicy: Never",
         "Stopping default/other (priority 0) would make room on n1, but the preemptionPolicy of the pending pod is Never.\n",
         NULL                                                                                                                                                                                                                                                                                             },
        {"nothing helps", "",                                                                      "",                    "nodeSelector: {disk: ssd}, " CPU("9"),                           "  Preemption would not help on any node.\n",
         "  None of the changes that were tried would help"                                                                                                                                                                                                                                               },
        {"two amounts",   "containers: [{name: c, resources: {requests: {cpu: 3, memory: 6Gi}}}]", "unschedulable: true",
         "containers: [{name: c, resources: {requests: {cpu: 2, memory: 4Gi}}}]",                                                                                                           "n1 has 1 of cpu free, 2 needed; has 2Gi of memory free, 4Gi needed",
         "  - with lower requests for all resources, 1 cpu, 2Gi memory: on n1\n"                                                                                                                                                                                                                          },
        {"a claim",       "",                                                                      "",                    "volumes: [{name: v, persistentVolumeClaim: {claimName: none}}]", "persistentvolumeclaim",
         NULL                                                                                                                                                                                                                                                                                             },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(scene) struct scene s;
        scene_begin(&s);
        scene_node(&s, "n1", "a", "");
        scene_node(&s, "n2", "b", rows[i].n2);
        scene_pod(&s, "other", "app: x", "n1", rows[i].other);
        scene_pod(&s, "p", "app: x", "", rows[i].spec);
        const char *text = why(&s, "p");
        if (!strstr(text, rows[i].want) || (rows[i].also && !strstr(text, rows[i].also)))
            fail_msg("%s: %s", rows[i].label, text);
    }
}

/* Every advised change makes the pod fit. */
static void advised_changes_help(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "a", "", "n1", CPU("2750m"));
    scene_pod(&s, "p", "", "", CPU("2"));
    assert_non_null(strstr(why(&s, "p"), "  - with 1.25 cpu instead of 2: on n1\n"));
    scene_pod(&s, "q", "", "", CPU("1250m"));
    assert_string_equal(scene_says(&s), "?p q->n1");
}

static void queue_position_is_explained(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "first", "", "", CPU("3"));
    scene_pod(&s, "p", "", "", CPU("3"));
    assert_string_equal(why(&s, "first"), "It requests 3 cpu.\nThe plan places it on n1 now. "
                                          "If it stays pending, check that berth-kube is running.\n");
    const char *text = why(&s, "p");
    assert_non_null(strstr(text, "Position 1 of 1 pending workloads.\n"));
    assert_non_null(
        strstr(text, "with a higher priority than the pods ahead of it in the queue, it would go to n1.\n"));
}

static void preemption_is_explained(void **state)
{
    CLEANUP(scene) struct scene s;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "low", "", "n1", CPU("3"));
    scene_pod(&s, "p", "", "", CPU("3") ", priority: 10");
    assert_string_equal(why(&s, "p"), "It requests 3 cpu.\nIt will be placed on n1 after these pods have stopped: "
                                      "default/low (priority 0).\n");
}

static void quota_is_named(void **state)
{
    CLEANUP(scene) struct scene s;
    struct berth_err err = {0};
    (void)state;
    scene_begin(&s);
    json_t *spec = json_pack("{s:{s:{s:i}}}", "quota", "limits", "cpu", 1);
    if (tenants_put(s.tenants, KIND_QUEUE, "small", spec, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(spec);
    scene_node(&s, "n1", "a", "");
    scene_pod(&s, "p", "berth.dev/queue: small", "", CPU("2"));
    const char *text = why(&s, "p");
    if (!strstr(text, "; queue: small, ordered by fifo.\n") || !strstr(text, "quota queue/small: 0 of 1 cpu") ||
        !strstr(text, "  - with 1 cpu instead of 2: on n1\n"))
        fail_msg("%s", text);
}

/* ---- placed pods ------------------------------------------------------------------------------------------------ */

static void placed_pod_is_explained(void **state)
{
    static const struct {
        const char *label, *n1, *n2, *other; /* specs of the nodes, and of another pod on n1 */
        const char *want;
    } rows[] = {
        {"best",     "",                    "",                    NULL,
         "\nWhy this node\n"
         "  If the pod were placed now, n1 would be the best feasible node:\n"
         "  NODE       SCORE  least_allocated  gpu_spare\n"
         "  n1 (here)  187.5             87.5      100.0\n"
         "  n2         187.5             87.5      100.0\n"                                                            },
        {"only",     "",                    "unschedulable: true", NULL,
         "\nWhy this node\n"
         "  If the pod were placed now, n1 would be the only feasible node:\n"
         "  NODE       SCORE  least_allocated  gpu_spare\n"
         "  n1 (here)  187.5             87.5      100.0\n"                                                            },
        {"another",  "",                    "",                    CPU("2"),
         "\nWhy this node\n"
         "  If the pod were placed now, it would go to n2 instead; the cluster has changed since it was placed:\n"
         "  NODE       SCORE  least_allocated  gpu_spare\n"
         "  n2         187.5             87.5      100.0\n"
         "  n1 (here)  162.5             62.5      100.0\n"                                                            },
        {"not here", "unschedulable: true", "",                    NULL,
         "\nWhy this node\n"
         "  If the pod were placed now, n1 would not be feasible and it would go to n2; placed pods keep their node:\n"},
        {"nowhere",  "unschedulable: true", "unschedulable: true", NULL,
         "\nWhy this node\n"
         "  If the pod were placed now, no node would be feasible; placed pods keep their node.\n"                     },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(scene) struct scene s;
        scene_begin(&s);
        scene_node(&s, "n1", "a", rows[i].n1);
        scene_node(&s, "n2", "b", rows[i].n2);
        scene_pod(&s, "p", "", "n1", CPU("1"));
        if (rows[i].other)
            scene_pod(&s, "other", "", "n1", rows[i].other);
        scene_pod(&s, "waits", "", "", CPU("1") ", priority: 9"); /* pending pods do not affect the explanation */
        const char *text = why(&s, "p");
        if (strncmp(text, rows[i].want, strlen(rows[i].want)) != 0)
            fail_msg("%s: %s", rows[i].label, text);
    }
}

/* A pod whose scheduler name has a profile is explained by that profile. */
static void pod_is_explained_by_its_profile(void **state)
{
    static const char *const names[] = {"berth", "berth-pack"}, *const profiles[] = {"", "pack"};
    const struct kube_profiles two = {
        .own = berth_profile_find("default"), .names = names, .profiles = profiles, .len = 2};
    CLEANUP(scene) struct scene s = {.tenants = tenants_new(scene_changed, &s)};
    struct cache_workload holder;
    struct plugin_view v;
    (void)state;
    s.p = cache_new(&(struct cache_config){.schedulers = names,
                                           .schedulers_len = 2,
                                           .profiles = profiles,
                                           .tenants = s.tenants,
                                           .changed = scene_changed,
                                           .trouble = scene_trouble,
                                           .ctx = &s});
    scene_node(&s, "n1", "a", "");
    scene_node(&s, "n2", "b", "");
    scene_pod(&s, "other", "", "n1", CPU("2"));
    scene_put(&s, CACHE_POD,
              "{metadata: {name: p, namespace: default, uid: u}, spec: {schedulerName: berth-pack, nodeName: n1, " CPU(
                  "1") "}}");
    assert_int_equal(plugin_view_init(&v, s.p, s.tenants, &two, NOW_NS, NULL), 0);
    assert_true(cache_workload(s.p, "default:p", &holder));
    plugin_why_placed(&v, &holder, &s.text);
    assert_string_equal(s.text.at, "\nWhy this node\n"
                                   "  If the pod were placed now, n1 would be the best feasible node:\n"
                                   "  NODE       SCORE  most_allocated  gpu_spare\n"
                                   "  n1 (here)   37.5           -62.5      100.0\n"
                                   "  n2          12.5           -87.5      100.0\n"
                                   "  Profile 'pack'; a score of weight 1 gives at most 100 points.\n");
    plugin_view_done(&v);
}

/* ---- lists ------------------------------------------------------------------------------------------------------ */

static void lists(void **state)
{
    CLEANUP(scene) struct scene s;
    CLEANUP(str) struct str text = {0};
    struct plugin_view v;
    (void)state;
    scene_begin(&s);
    scene_node(&s, "n1", "a", "");
    scene_put(&s, CACHE_NODE,
              "{metadata: {name: g}, spec: {unschedulable: true}, status: {allocatable: {cpu: 8, memory: 16Gi, "
              "pods: 5, nvidia.com/gpu: 4}}}");
    scene_pod(&s, "a", "", "n1", CPU("1500m"));
    scene_pod(&s, "big", "", "", CPU("6"));
    scene_pod(&s, "fits", "", "", CPU("1"));
    scene_pod(&s, "urgent", "", "", CPU("7") ", priority: 3");
    view(&s, &v);
    plugin_queue(&v, NULL, false, &text);
    plugin_queue(&v, "elsewhere", false, &text);
    plugin_nodes(&v, false, &text);
    assert_string_equal(
        text.at,
        "#  NAMESPACE  POD OR JOB:ROLE  QUEUE  PRIORITY  AGE  WHY\n"
        "-  default    fits             -      0         5m   the plan places it on n1 now\n"
        "1  default    urgent           -      3         5m   1 of 2 nodes has an untolerated taint; 1 more\n"
        "2  default    big              -      0         5m   1 of 2 nodes has an untolerated taint; 1 more\n"
        "No pending workloads.\n"
        "NODE          CPU  REQUESTED  FREE  MEMORY  REQUESTED  FREE  PODS  USED  FREE  GPUS  REQUESTED  FREE\n"
        "g (cordoned)    8          0     8    16Gi          0  16Gi     5     0     5     4          0     4\n"
        "n1              4        1.5   2.5     8Gi          0   8Gi    10     1     9     0          0     0\n");
    str_clear(&text);
    plugin_queue(&v, NULL, true, &text);
    json_t *root = json_loads(text.at, 0, NULL);
    const json_t *second = json_array_get(json_object_get(root, "items"), 1);
    assert_string_equal(json_string_value(json_object_get(second, "name")), "urgent");
    assert_int_equal(json_integer_value(json_object_get(second, "position")), 1);
    assert_int_equal(json_integer_value(json_object_get(second, "waitedSeconds")), 300);
    json_decref(root);
    plugin_view_done(&v);
}

/* ---- explanations from objects alone ---------------------------------------------------------------------------- */

static void explanation_from_object_alone(void **state)
{
    static const struct {
        const char *pod;
        bool all; /* nothing else can be said */
        const char *want;
    } rows[] = {
        {"{metadata: {namespace: d, name: p, creationTimestamp: 1970-01-01T00:00:00Z}, spec: {schedulerName: berth, nodeName: n, "
         "priority: 3}, status: {phase: Running}}",                                                           false, "pod d/p is on n: Running; 6m old, priority 3.\n" },
        {"{metadata: {namespace: d, name: p}, spec: {schedulerName: berth}}",                                          false,
         "pod d/p is pending; 0s old, priority 0.\n"                                                                                                                            },
        {"{metadata: {namespace: d, name: p}, spec: {schedulerName: berth, nodeName: n}, status: {phase: Failed}}",
         true,                                                                                                                "pod d/p has ended: Failed; 0s old, priority 0.\n"},
        {"{metadata: {namespace: d, name: p}, spec: {schedulerName: x}, status: {conditions: [{type: PodScheduled, status: \"False\", "
         "message: no room}]}}",                                                                              true,
         "pod d/p is pending; 0s old, priority 0.\nIts schedulerName is x, which is not a Berth scheduler; "
         "Berth does not place it.\nPodScheduled condition: no room\n"                                                                                                          },
        {"{metadata: {namespace: d, name: p}, spec: {schedulerName: berth, schedulingGates: [{name: a}, {name: b}]}}",
         true,                                                                                                                "pod d/p is pending; 0s old, priority 0.\nIt has scheduling gates (a, b): it is not placed until they "
         "are removed.\n"                                                                                                                                         },
    };
    struct plugin_query a = {
        .profiles = {.names = (const char *const[]){"berth"}, .len = 1}
    };
    (void)state;
    arena_init(&a.arena);
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(str) struct str text = {0};
        json_t *pod = kit_parse(rows[i].pod);
        assert_int_equal(plugin_pod_from_object(&a, pod, NOW_NS, &text), rows[i].all);
        assert_string_equal(text.at, rows[i].want);
        json_decref(pod);
    }
    CLEANUP(str) struct str text = {0};
    json_t *job = kit_parse(
        "{metadata: {namespace: d, name: j}, spec: {queue: q}, status: {phase: Pending, pending: 4, reason: no room., "
        "conditions: [{type: Accepted, status: \"False\", message: bad.}]}}");
    plugin_job_from_object(&a.arena, job, NOW_NS, &text);
    assert_string_equal(
        text.at, "job d/j is Pending; 0s old, queue q.\n"
                 "Tasks: 4 pending, 0 running, 0 succeeded; 0 pods failed, 0 restarts.\nbad.\nReason: no room.\n");
    json_decref(job);
    arena_done(&a.arena);
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

static void command_lines(void **state)
{
    static const struct {
        const char *words[6];
        int rc;
        const char *want; /* "verb name namespace output", or a part of the error */
    } rows[] = {
        {{"why", "p", "-n", "x"},                  0,       "why p x -"                  },
        {{"-n", "x", "why", "p"},                  0,       "why p x -"                  },
        {{"--namespace=x", "queue", "-o", "json"}, 0,       "queue - x json"             },
        {{"why", "a", "b"},                        -EINVAL, "unexpected argument 'b'"    },
        {{"nodes", "-o", "wide"},                  -EINVAL, "-o must be json, not 'wide'"},
        {{"nodes", "-A"},                          -EINVAL, "-A"                         },
        {{"why", "p", "-n"},                       -EINVAL, "--namespace needs a value"  },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        char *argv[8] = {(char *)(uintptr_t) "kubectl-berth"}, got[128];
        int argc = 1;
        struct plugin_options o;
        struct berth_err err = {0};
        while (argc < 7 && rows[i].words[argc - 1]) {
            argv[argc] = (char *)(uintptr_t)rows[i].words[argc - 1];
            argc++;
        }
        int rc = plugin_options_read(argc, argv, &o, &err);
        assert_int_equal(rc, rows[i].rc);
        (void)snprintf(got, sizeof got, "%s %s %s %s", o.words[0], o.words_len > 1 ? o.words[1] : "-",
                       o.namespace ? o.namespace : "-", o.output ? o.output : "-");
        if (rc == 0)
            assert_string_equal(got, rows[i].want);
        else if (!strstr(err.text, rows[i].want))
            fail_msg("%s", err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insufficient_resources),
        cmocka_unit_test(each_requirement_is_named),
        cmocka_unit_test(advised_changes_help),
        cmocka_unit_test(queue_position_is_explained),
        cmocka_unit_test(preemption_is_explained),
        cmocka_unit_test(quota_is_named),
        cmocka_unit_test(placed_pod_is_explained),
        cmocka_unit_test(pod_is_explained_by_its_profile),
        cmocka_unit_test(lists),
        cmocka_unit_test(explanation_from_object_alone),
        cmocka_unit_test(command_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
