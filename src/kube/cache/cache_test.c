/* cache_test.c - where pods can be placed, and why not: tables of small clusters as objects of the API server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/object/object_kit_test.h"

#define CPU(amount) "containers: [{name: c, resources: {requests: {cpu: " amount "}}}]"
#define SELECT(app) "labelSelector: {matchLabels: {app: " app "}}"

/* Pod `p`, nodes n1 and n2 (zones a and b), and one other pod on n1: where can `p` be placed? */
struct row {
    const char *label;
    const char *other, *other_labels; /* spec and labels of the pod on n1; NULL: no other pod */
    const char *labels, *spec;        /* of `p` */
    const char *n2;                   /* of the spec of n2 */
    const char *want;                 /* nodes that could take the pod, of "n1 n2" */
};

static void node(struct scene *s, const char *name, const char *zone, const char *spec, bool open)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: %s, labels: {kubernetes.io/hostname: %s, topology.kubernetes.io/zone: %s}}, spec: {%s}, "
        "status: {allocatable: {cpu: 4, memory: 8Gi, pods: %d}}}",
        name, name, zone, spec ? spec : "", open ? 10 : 0);
    scene_put(s, CACHE_NODE, yaml.at);
}

/* Reports whether the pod fits this node while the other node takes no pods. */
static bool fits(const struct row *r, const char *name)
{
    CLEANUP(scene) struct scene s;
    char want[16];
    bool first = strcmp(name, "n1") == 0;
    scene_begin(&s);
    node(&s, "n1", "a", NULL, first);
    node(&s, "n2", "b", r->n2, !first);
    if (r->other)
        scene_pod(&s, "other", r->other_labels ? r->other_labels : "", "n1", r->other);
    scene_pod(&s, "p", r->labels ? r->labels : "", "", r->spec);
    (void)snprintf(want, sizeof want, "p->%s", name);
    return strstr(scene_says(&s), want) != NULL;
}

static void rows_hold(const struct row *rows, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char got[16];
        bool n1 = fits(&rows[i], "n1"), n2 = fits(&rows[i], "n2");
        (void)snprintf(got, sizeof got, "%s%s%s", n1 ? "n1" : "", n1 && n2 ? " " : "", n2 ? "n2" : "");
        if (strcmp(got, rows[i].want) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", rows[i].label, got, rows[i].want);
    }
}

static void resources(void **state)
{
    static const struct row rows[] = {
        {"nothing asked for", .spec = "",           .want = "n1 n2"              },
        {"fits",              .spec = CPU("4"),     .want = "n1 n2"              },
        {"too much",          .spec = CPU("4001m"), .want = ""                   },
        {"beside another",    CPU("3"),             .spec = CPU("1500m"),          .want = "n2"},
        {"exactly beside another",                   CPU("3"),                .spec = CPU("1"),                   .want = "n1 n2"},
        {"two containers",    .spec = "containers: [{resources: {requests: {cpu: 2}}}, {resources: {requests: {cpu: 3}}}]",
         .want = ""                   },
        {"init beside nothing",          .spec = "initContainers: [{resources: {requests: {cpu: 4}}}], " CPU("2"),
         .want = "n1 n2"                   },
        {"init too large",     .spec = "initContainers: [{resources: {requests: {cpu: 5}}}], " CPU("2"),                         .want = ""                   },
        {"sidecar adds up",
         .spec = "initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 3}}}], " CPU("2"),     .want = ""},
        {"init beside the sidecar before it",
         .spec =
             "initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 2}}}, {resources: {requests: {cpu: 3}}}]",
         .want = ""                     },
        {"init before the sidecar",
         .spec =
             "initContainers: [{resources: {requests: {cpu: 3}}}, {restartPolicy: Always, resources: {requests: {cpu: 2}}}]",
         .want = "n1 n2"             },
        {"overhead",     .spec = "overhead: {cpu: 2500m}, " CPU("2"),                         .want = ""                               },
        {"pod level in place of containers",         .spec = "resources: {requests: {cpu: 2}}, " CPU("1"),     .want = "n1 n2"},
        {"pod level above",    .spec = "resources: {requests: {cpu: 5}}, " CPU("1"),                    .want = ""                                                               },
        {"extended resource that nobody has",         .spec = "containers: [{resources: {requests: {example.com/gpu: 1}}}]",
         .want = ""},
        {"memory",          .spec = "containers: [{resources: {requests: {memory: 8193Mi}}}]",                              .want = ""                                                                                                              },
    };
    (void)state;
    rows_hold(rows, ROWS(rows));
}

#define TAINTED "taints: [{key: k, value: v, effect: NoSchedule}]"
#define TOLERATE(what) "tolerations: [{" what "}]"

static void taints(void **state)
{
    static const struct row rows[] = {
        {"not tolerated",            .n2 = TAINTED,                                                .spec = "",                                                       .want = "n1"   },
        {"equal",                    .n2 = TAINTED,                                                .spec = TOLERATE("key: k, value: v"),                             .want = "n1 n2"},
        {"another value",            .n2 = TAINTED,                                                .spec = TOLERATE("key: k, value: w"),                             .want = "n1"   },
        {"exists",                   .n2 = TAINTED,                                                .spec = TOLERATE("key: k, operator: Exists, effect: NoSchedule"), .want = "n1 n2"},
        {"another effect",           .n2 = TAINTED,                                                .spec = TOLERATE("key: k, operator: Exists, effect: NoExecute"),
         .want = "n1"                                                                                                                                                               },
        {"everything",               .n2 = TAINTED,                                                .spec = TOLERATE("operator: Exists"),                             .want = "n1 n2"},
        {"numbers are not compared", .n2 = "taints: [{key: k, value: \"5\", effect: NoSchedule}]",
         .spec = TOLERATE("key: k, operator: Gt, value: \"3\""),                                                                                                     .want = "n1"   },
        {"no execute",               .n2 = "taints: [{key: k, effect: NoExecute}]",                .spec = "",                                                       .want = "n1"   },
        {"only preferred",           .n2 = "taints: [{key: k, effect: PreferNoSchedule}]",         .spec = "",                                                       .want = "n1 n2"},
        {"cordoned",                 .n2 = "unschedulable: true",                                  .spec = "",                                                       .want = "n1"   },
        {"cordoned and tolerated",   .n2 = "unschedulable: true",
         .spec = TOLERATE("key: node.kubernetes.io/unschedulable, operator: Exists"),                                                                                .want = "n1 n2"},
    };
    (void)state;
    rows_hold(rows, ROWS(rows));
}

#define REQUIRE(terms) "affinity: {nodeAffinity: {required: {nodeSelectorTerms: [" terms "]}}}"
#define HOST(op, ...) "{matchExpressions: [{key: kubernetes.io/hostname, operator: " op __VA_ARGS__ "}]}"

static void node_affinity_filters_nodes(void **state)
{
    static const struct row rows[] = {
        {"selector",                     .spec = "nodeSelector: {topology.kubernetes.io/zone: b}", .want = "n2"                            },
        {"selector for what is missing", .spec = "nodeSelector: {disk: ssd}",                      .want = ""                              },
        {"in",                           .spec = REQUIRE(HOST("In",                                ", values: [n1, n3]")),                   .want = "n1"},
        {"not in",                              .spec = REQUIRE(HOST("NotIn",                                                                               ", values: [n1]")),                                                              .want = "n2"},
        {"exists",                  .spec = REQUIRE(HOST("Exists")),                                                                          .want = "n1 n2"                                             },
        {"does not exist",               .spec = REQUIRE("{matchExpressions: [{key: disk, operator: DoesNotExist}]}"),
         .want = "n1 n2"},
        {"greater than text",                .spec = REQUIRE(HOST("Gt",                                                                        ", values: [\"1\"]")),                                                                                                                     .want = ""},
        {"any term",         .spec = REQUIRE(HOST("In",", values: [n1]") ", " HOST("In",", values: [n2]")), .want = "n1 n2"},
        {"selector and term",
         .spec = "nodeSelector: {topology.kubernetes.io/zone: b}, " REQUIRE(HOST("In",                                      ", values: [n1]")),                                                                                                                                                         .want = ""},
        {"no terms",                              .spec = "affinity: {nodeAffinity: {required: {nodeSelectorTerms: []}}}",                                                                    .want = ""                                                      },
        {"an empty term selects nothing",                    .spec = REQUIRE("{}, " HOST("In",                                                                            ", values: [n2]")),.want = "n2"},
        {"a term that cannot be parsed",
         .spec = REQUIRE(HOST("Near",         ", values: [n1]") ", " HOST("In",", values: [n2]")), .want = "n2"},
        {"a condition that cannot be parsed",
         .spec = REQUIRE(
             "{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n1]}, {key: disk, operator: Exists, values: [x]}]}"),
         .want = ""                                                                  },
        {"by name",    .spec = REQUIRE("{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}"),                    .want = "n2"                                                                             },
        {"not by name",                              .spec = REQUIRE("{matchFields: [{key: metadata.name, operator: NotIn, values: [n2]}]}"),
         .want = "n1"},
        {"two names are too many",
         .spec = REQUIRE("{matchFields: [{key: metadata.name, operator: In, values: [n1, n2]}]}"),                                                                              .want = ""},
    };
    (void)state;
    rows_hold(rows, ROWS(rows));
}

#define PORT(what) "containers: [{ports: [{hostPort: 80" what "}]}]"

static void ports(void **state)
{
    static const struct row rows[] = {
        {"the same",             PORT(""),                                                             .spec = PORT(""),                   .want = "n2"   },
        {"another protocol",     PORT(""),                                                             .spec = PORT(", protocol: UDP"),    .want = "n1 n2"},
        {"the same address",     PORT(", hostIP: 10.0.0.1"),                                           .spec = PORT(", hostIP: 10.0.0.1"), .want = "n2"   },
        {"another address",      PORT(", hostIP: 10.0.0.1"),                                           .spec = PORT(", hostIP: 10.0.0.2"), .want = "n1 n2"},
        {"all addresses",        PORT(", hostIP: 10.0.0.1"),                                           .spec = PORT(", hostIP: 0.0.0.0"),  .want = "n2"   },
        {"one of all addresses", PORT(""),                                                             .spec = PORT(", hostIP: 10.0.0.2"), .want = "n2"   },
        {"not of the host",      "containers: [{ports: [{containerPort: 80}]}]",                       .spec = PORT(""),                   .want = "n1 n2"},
        {"of what initialises",  "initContainers: [{ports: [{hostPort: 80}]}]",                        .spec = PORT(""),                   .want = "n1 n2"},
        {"of a sidecar",         "initContainers: [{restartPolicy: Always, ports: [{hostPort: 80}]}]", .spec = PORT(""),
         .want = "n2"                                                                                                                                     },
    };
    (void)state;
    rows_hold(rows, ROWS(rows));
}

#define NEAR(terms) "affinity: {podAffinity: {required: [" terms "]}}"
#define APART(terms) "affinity: {podAntiAffinity: {required: [" terms "]}}"
#define AT_HOST "topologyKey: kubernetes.io/hostname"
#define AT_ZONE "topologyKey: topology.kubernetes.io/zone"

static void pod_affinity_filters_nodes(void **state)
{
    static const struct row rows[] = {
        {"near",                   "",                                                          "app: web", .spec = NEAR("{" AT_HOST ", " SELECT("web") "}"), .want = "n1"                                                                               },
        {"near, by zone",          "",                                                          "app: web", .spec = NEAR("{" AT_ZONE ", " SELECT("web") "}"), .want = "n1"                                                                               },
        {"near what is not there", "",                                                          "app: db",  .spec = NEAR("{" AT_HOST ", " SELECT("web") "}"), .want = ""                                                                                 },
        {"the first of its kind",  "",                                                          "app: db",  "app: web",                                       NEAR("{" AT_HOST ", " SELECT("web") "}"),                                                    .want = "n1 n2"},
        {"not the first",                        "",                                                                     "app: web",                                                      "app: web",                        NEAR("{" AT_HOST ", " SELECT("web") "}"),                                                    .want = "n1"},
        {"without the topology",            "",                                                                       "app: web",                                                            .spec = NEAR("{topologyKey: rack, " SELECT("web") "}"),                                                                                               .want = ""                                                      },
        {"all terms on one pod",              "",                                                                         "app: web",
         .spec = NEAR("{" AT_HOST ", " SELECT("web") "}, {" AT_ZONE ", labelSelector: {matchLabels: {tier: x}}}"),
         .want = ""},
        {"all terms on this pod",               "",                                                                          "app: web, tier: x",
         .spec = NEAR("{" AT_HOST ", " SELECT("web") "}, {" AT_ZONE ", labelSelector: {matchLabels: {tier: x}}}"),
         .want = "n1"                                                                                                                                         },
        {"no selector selects nothing",             "",                                                                        "app: web",                                                      .spec = NEAR("{" AT_HOST "}"),                                                                                        .want = ""},
        {"an empty selector selects all",              "",                                                                         "app: web",                                                     .spec = NEAR("{" AT_HOST ", labelSelector: {}}"),
         .want = "n1"                                               },
        {"apart",             "",                                                                        "app: web",                                                                            .spec = APART("{" AT_HOST ", " SELECT("web") "}"),                                                                                                              .want = "n2"                                                                        },
        {"apart from others",            "",                                                                       "app: db",                                                               .spec = APART("{" AT_HOST ", " SELECT("web") "}"),.want = "n1 n2"},
        {"the other says so",         APART("{" AT_HOST ", " SELECT("web") "}"),                                                                    "",                                                            "app: web",                                                                       "",                                                                                                                                                                     .want = "n2"},
        {"the other means others",                      APART("{" AT_HOST ", " SELECT("db") "}"),                                                                     "",                                                                               "app: web",                                  "",.want = "n1 n2"},
        {"apart, of any term",              "",                                                                       "app: web",
         .spec = APART("{" AT_HOST ", " SELECT("db") "}, {" AT_HOST ", " SELECT("web") "}"),   .want = "n2"                                                                                                                                                                               },
        {"in another namespace",              "",    "app: web",
         .spec = APART("{" AT_HOST ", namespaces: [kube-system], " SELECT("web") "}"),                                                .want = "n1 n2"},
        {"in all namespaces",              "",          "app: web",     .spec = APART("{" AT_HOST ", namespaceSelector: {}, " SELECT("web") "}"),
         .want = "n2"                                                                                                                                        },
        {"only preferred",              "","app: web",
         .spec = "affinity: {podAntiAffinity: {preferred: [{weight: 5, podAffinityTerm: {" AT_HOST
                 ", " SELECT("web") "}}]}}",
         .want = "n1 n2"                                                                         },
    };
    (void)state;
    rows_hold(rows, ROWS(rows));
}

#define SPREAD(what) "topologySpreadConstraints: [{maxSkew: 1, " AT_ZONE ", whenUnsatisfiable: DoNotSchedule" what "}]"

static void topology_spread_filters_nodes(void **state)
{
    static const struct row rows[] = {
        {"to the emptier zone",             "",                                                                          "app: web",                 "app: web", SPREAD(", " SELECT("web")), .want = "n2"},
        {"others do not count",       "",                                                                      "app: db",                                                                                                "app: web", SPREAD(", " SELECT("web")), .want = "n1 n2"},
        {"it does not count itself",                         "",                      "app: web","app: db", SPREAD(", " SELECT("web")), .want = "n1 n2"},
        {"only preferred",                  "",                                                                                             "app: web",                                                                                              "app: web",
         "topologySpreadConstraints: [{maxSkew: 1, " AT_ZONE ", whenUnsatisfiable: ScheduleAnyway, " SELECT("web") "}]",
         .want = "n1 n2"},
        {"an empty selector counts nobody",                       "",                                                                    "app: web",                                                                                                                              "app: web", SPREAD(", labelSelector: {}"), .want = "n1 n2"},
        {"by the value of a label",                                 "",                                                                                             "app: web, version: x",                                                                                                    "app: web, version: y",
         SPREAD(", " SELECT("web") ", matchLabelKeys: [version]"), .want = "n1 n2"},
        {"by the same value of a label",                       "", "app: web, version: x",                                                                                                                            "app: web, version: x",
         SPREAD(", " SELECT("web") ", matchLabelKeys: [version]"), .want = "n2"},
        {"too few domains", "",                                                    "app: web", "app: web", SPREAD(", minDomains: 3, " SELECT("web")), .want = "n2"},
        {"no such topology",    .spec = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, " SELECT("web") "}]",
         .want = ""                                                                                         },
    };
    (void)state;
    rows_hold(rows, ROWS(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources),
        cmocka_unit_test(taints),
        cmocka_unit_test(node_affinity_filters_nodes),
        cmocka_unit_test(ports),
        cmocka_unit_test(pod_affinity_filters_nodes),
        cmocka_unit_test(topology_spread_filters_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
