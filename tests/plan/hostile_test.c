/* hostile_test.c - tests that invalid descriptions are refused by name and leave no trace.
 *
 * Each kind of description has one table; a row has a label and an invalid description, which is put into a small
 * cluster that has a plan. The call must return a negative errno, the error text must name the object, the plan must
 * stay the same and the audit must pass.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "world.h"

#define LEN(a) (sizeof(a) / sizeof *(a))
#define LIST(field, type, ...)                                                                                         \
    .field = (type[]){__VA_ARGS__}, .field##_len = sizeof((type[]){__VA_ARGS__}) / sizeof(type)
#define AMOUNTS(field, ...) LIST(field, struct berth_amount, __VA_ARGS__)

/* Filled by main; the library only reads descriptions. */
static char name_long[BERTH_NAME_MAX + 2];
static char text_million[1000001];
static struct berth_label labels_many[BERTH_LIST_MAX + 1];
static char labels_many_keys[BERTH_LIST_MAX + 1][8];
static struct berth_gpu gpus_many[BERTH_NODE_GPUS_MAX + 1];

static const struct berth_expr any_expr = {.key = "app", .match = BERTH_EXISTS};
#define ANY_TERM                                                                                                       \
    {                                                                                                                  \
        .exprs = &any_expr, .exprs_len = 1                                                                             \
    }

/* ---- a cluster that has a plan ---------------------------------------------------------------------------------- */

static struct berth_cluster *cluster_good(void)
{
    struct berth_cluster *c = berth_cluster_new();
    struct berth_node n1 = {.id = "n1",
                            AMOUNTS(allocatable, {"cpu", 4000}, {"memory", 8 * GIB}),
                            LIST(gpus, struct berth_gpu, {"T4", 16 * GIB}, {"T4", 16 * GIB})};
    struct berth_node n2 = {.id = "n2", AMOUNTS(allocatable, {"cpu", 4000}, {"memory", 8 * GIB})};
    struct berth_workload w1 = {.id = "w1", .replicas = 3, .shape = {AMOUNTS(requests, {"cpu", 1000})}};
    struct berth_workload w2 = {.id = "w2", .replicas = 1, .shape = {.gpu = {.count = 1}}};
    struct berth_workload w3 = {
        .id = "w3", .replicas = 1, .shape = {LIST(ports, const struct berth_port, {BERTH_TCP, 8000, 16})}};
    struct berth_instance i1 = {.id = 1, .workload = "w1", .node = "n1", .state = BERTH_RUNNING, .ready = true};
    struct berth_instance i2 = {.id = 2, .workload = "w2", .node = "n1", .state = BERTH_RUNNING, .gpus = 1};
    struct berth_instance i3 = {.id = 3, .workload = "w3", .node = "n1", .state = BERTH_RUNNING};

    assert_int_equal(berth_resource_put(c, &(struct berth_resource){"traffic", BERTH_CUMULATIVE, 10}, NULL), 0);
    assert_int_equal(berth_node_put(c, &n1, NULL), 0);
    assert_int_equal(berth_node_put(c, &n2, NULL), 0);
    assert_int_equal(berth_volume_put(c, &(struct berth_volume){.id = "v1"}, NULL), 0);
    assert_int_equal(berth_workload_put(c, &w1, NULL), 0);
    assert_int_equal(berth_workload_put(c, &w2, NULL), 0);
    assert_int_equal(berth_workload_put(c, &w3, NULL), 0);
    assert_int_equal(berth_instance_put(c, &i1, NULL), 0);
    assert_int_equal(berth_instance_put(c, &i2, NULL), 0);
    assert_int_equal(berth_instance_put(c, &i3, NULL), 0);
    return c;
}

static uint64_t cluster_hash(struct berth_cluster *c)
{
    struct berth_snapshot *s = berth_freeze(c, 1000, 1);
    struct berth_plan *plan = NULL;

    assert_int_equal(berth_plan_make(s, &(struct berth_policy){0}, &plan, NULL), 0);
    uint64_t hash = berth_plan_hash(plan);
    berth_plan_free(plan);
    berth_snapshot_free(s);
    return hash;
}

/* Counts the rows that were not refused as expected, so that one run reports all of them. */
struct refusal_count {
    struct berth_cluster *cluster;
    uint64_t hash;
    size_t wrong;
};

static struct refusal_count refusal_count_start(void)
{
    struct refusal_count t = {.cluster = cluster_good()};
    t.hash = cluster_hash(t.cluster);
    return t;
}

static void refusal_count_end(struct refusal_count *t)
{
    berth_cluster_free(t->cluster);
    assert_int_equal(t->wrong, 0);
}

static bool printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20)
            return false;
    return true;
}

/* `name`: the name of the invalid object; "" if it has no printable name. */
static void expect_refusal(struct refusal_count *t, const char *label, const char *name, int rc,
                           const struct berth_err *err)
{
    const char *wrong = NULL;

    if (rc >= 0)
        wrong = "was accepted";
    else if (err->code != -rc)
        wrong = "has another code in its text";
    else if (!*err->text || !printable(err->text))
        wrong = "has no text, or an unfit one";
    else if (!strstr(err->text, name))
        wrong = "is not named";
    else if (berth_audit(t->cluster, NULL) != 0)
        wrong = "upset the audit";
    else if (cluster_hash(t->cluster) != t->hash)
        wrong = "changed the plan";
    if (!wrong)
        return;
    print_error("%s: %s (%s)\n", label, wrong, rc < 0 ? err->text : "0");
    t->wrong++;
    if (rc < 0)
        return;
    berth_cluster_free(t->cluster); /* continue without the accepted object */
    t->cluster = cluster_good();
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static const char *const names_bad[] = {
    NULL,       "",     name_long,      text_million,       "a\nb",        "tab\t",   "\x01", "caf\xe9",
    "\xc0\x80", "\xff", "\xed\xa0\x80", "\xf5\x80\x80\x80", "cut\xe2\x82", "del\x7f",
};

static void bad_names_are_refused(void **state)
{
    (void)state;
    struct refusal_count t = refusal_count_start();

    for (size_t i = 0; i < LEN(names_bad); i++) {
        struct berth_err err = {0};
        const char *name = names_bad[i];
        char label[40];
        (void)snprintf(label, sizeof label, "name %zu of a", i);
        expect_refusal(&t, label, "", berth_node_put(t.cluster, &(struct berth_node){.id = name}, &err), &err);
        expect_refusal(&t, label, "", berth_workload_put(t.cluster, &(struct berth_workload){.id = name}, &err), &err);
        expect_refusal(&t, label, "", berth_volume_put(t.cluster, &(struct berth_volume){.id = name}, &err), &err);
        expect_refusal(&t, label, "", berth_resource_put(t.cluster, &(struct berth_resource){.name = name}, &err),
                       &err);
        expect_refusal(
            &t, label, "",
            berth_instance_put(t.cluster, &(struct berth_instance){.id = 9, .workload = name, .node = "n1"}, &err),
            &err);
        expect_refusal(
            &t, label, "",
            berth_instance_put(t.cluster, &(struct berth_instance){.id = 9, .workload = "w1", .node = name}, &err),
            &err);
    }
    refusal_count_end(&t);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *label;
    struct berth_node node;
} nodes_bad[] = {
    {"state",                             {.state = (enum berth_node_state)99}                                                 },
    {"zone with a control character",     {.zone = "a\nb"}                                                                     },
    {"rack too long",                     {.rack = text_million}                                                               },
    {"domain not UTF-8",                  {.domain = "\xff"}                                                                   },
    {"arch with a control character",     {.arch = "\x02"}                                                                     },
    {"negative page size",                {.page_size_bytes = -1}                                                              },
    {"negative amount",                   {AMOUNTS(allocatable, {"cpu", -1})}                                                  },
    {"amount above the largest",          {AMOUNTS(allocatable, {"cpu", BERTH_AMOUNT_MAX + 1})}                                },
    {"resource twice",                    {AMOUNTS(allocatable, {"cpu", 1}, {"memory", 1}, {"cpu", 1})}                        },
    {"resource without a name",           {AMOUNTS(allocatable, {"", 1})}                                                      },
    {"resource with a name too long",     {AMOUNTS(allocatable, {name_long, 1})}                                               },
    {"half a huge page",                  {AMOUNTS(allocatable, {"hugepages-2Mi", MIB})}                                       },
    {"huge page of no size",              {AMOUNTS(allocatable, {"hugepages-", MIB})}                                          },
    {"ratio of 0",                        {AMOUNTS(allocatable, {"cpu", 1}), AMOUNTS(overcommit, {"cpu", 0})}                  },
    {"negative ratio",                    {AMOUNTS(allocatable, {"cpu", 1}), AMOUNTS(overcommit, {"cpu", -5})}                 },
    {"ratio twice",                       {AMOUNTS(allocatable, {"cpu", 1}), AMOUNTS(overcommit, {"cpu", 1100}, {"cpu", 1200})}},
    {"ratio on huge pages",
     {AMOUNTS(allocatable, {"hugepages-2Mi", 2 * MIB}), AMOUNTS(overcommit, {"hugepages-2Mi", 2000})}                          },
    {"ratio that overflows",
     {AMOUNTS(allocatable, {"cpu", BERTH_AMOUNT_MAX}), AMOUNTS(overcommit, {"cpu", BERTH_AMOUNT_MAX})}                         },
    {"ratio beyond the largest",          {AMOUNTS(allocatable, {"cpu", BERTH_AMOUNT_MAX}), AMOUNTS(overcommit, {"cpu", 2000})}},
    {"negative consumption",              {AMOUNTS(consumed, {"traffic", -1})}                                                 },
    {"consumption twice",                 {AMOUNTS(consumed, {"traffic", 1}, {"traffic", 2})}                                  },
    {"label twice",                       {LIST(labels, struct berth_label, {"a", "1"}, {"a", "2"})}                           },
    {"label without a key",               {LIST(labels, struct berth_label, {"", "1"})}                                        },
    {"label of a million characters",     {LIST(labels, struct berth_label, {"a", text_million})}                              },
    {"label key of a million characters", {LIST(labels, struct berth_label, {text_million, "a"})}                              },
    {"label with a control character",    {LIST(labels, struct berth_label, {"a", "1\n2"})}                                    },
    {"label not UTF-8",                   {LIST(labels, struct berth_label, {"a", "\xe9"})}                                    },
    {"too many labels",                   {.labels = labels_many, .labels_len = BERTH_LIST_MAX + 1}                            },
    {"taint without an effect",           {LIST(taints, struct berth_taint, {"a", "b", BERTH_EFFECT_ANY})}                     },
    {"taint with an unknown effect",      {LIST(taints, struct berth_taint, {"a", "b", (enum berth_effect)77})}                },
    {"taint without a key",               {LIST(taints, struct berth_taint, {"", "b", BERTH_NO_SCHEDULE})}                     },
    {"too many GPUs",                     {.gpus = gpus_many, .gpus_len = BERTH_NODE_GPUS_MAX + 1}                             },
    {"GPU of negative memory",            {LIST(gpus, struct berth_gpu, {"T4", -1})}                                           },
    {"GPU with too much memory",          {LIST(gpus, struct berth_gpu, {"T4", BERTH_AMOUNT_MAX + 1})}                         },
    {"GPU model not UTF-8",               {LIST(gpus, struct berth_gpu, {"\xff", 1})}                                          },
    {"runtime without a name",            {LIST(runtimes, const char *const, "oci", "")}                                       },
    {"image of negative size",            {LIST(images, struct berth_image, {"a", -1})}                                        },
    {"port 0",                            {LIST(ports, struct berth_port, {BERTH_TCP, 0, 1})}                                  },
    {"ports past the last",               {LIST(ports, struct berth_port, {BERTH_TCP, 65535, 2})}                              },
    {"protocol",                          {LIST(ports, struct berth_port, {(enum berth_protocol)9, 80, 1})}                    },
};

static void bad_nodes_are_refused(void **state)
{
    (void)state;
    struct refusal_count t = refusal_count_start();

    for (size_t i = 0; i < LEN(nodes_bad); i++) {
        struct berth_err err = {0};
        struct berth_node node = nodes_bad[i].node;
        node.id = "fresh-node";
        expect_refusal(&t, nodes_bad[i].label, node.id, berth_node_put(t.cluster, &node, &err), &err);
        node.id = "n2"; /* an existing node stays unchanged */
        expect_refusal(&t, nodes_bad[i].label, node.id, berth_node_put(t.cluster, &node, &err), &err);
    }
    refusal_count_end(&t);
}

/* ---- shapes and workloads --------------------------------------------------------------------------------------- */

#define EXPR(...)                                                                                                      \
    {                                                                                                                  \
        LIST(exprs, const struct berth_expr, __VA_ARGS__)                                                              \
    }
#define VALUES(...) LIST(values, const char *const, __VA_ARGS__)
#define REQUIRE(...) LIST(require, const struct berth_term, EXPR(__VA_ARGS__))

static const struct {
    const char *label;
    struct berth_shape shape;
} shapes_bad[] = {
    {"negative request",                {AMOUNTS(requests, {"cpu", -1})}                                                 },
    {"request above the largest",       {AMOUNTS(requests, {"cpu", BERTH_AMOUNT_MAX + 1})}                               },
    {"smallest integer",                {AMOUNTS(requests, {"cpu", INT64_MIN})}                                          },
    {"request twice",                   {AMOUNTS(requests, {"cpu", 1}, {"cpu", 1})}                                      },
    {"request without a name",          {AMOUNTS(requests, {NULL, 1})}                                                   },
    {"half a huge page",                {AMOUNTS(requests, {"hugepages-2Mi", 3 * MIB})}                                  },
    {"share above a whole",             {.gpu = {.count = 1, .milli = 1001}}                                             },
    {"shares of several",               {.gpu = {.count = 2, .milli = 500}}                                              },
    {"more GPUs than any node has",     {.gpu = {.count = BERTH_NODE_GPUS_MAX + 1}}                                      },
    {"negative GPU memory",             {.gpu = {.count = 1, .memory_bytes = -1}}                                        },
    {"GPU model not UTF-8",             {.gpu = {.count = 1, LIST(models, const char *const, "\xff")}}                   },
    {"negative limit",                  {LIST(limits, const struct berth_limit, {"cpu", BERTH_ABSOLUTE, -1, 0})}         },
    {"limit twice",                     {LIST(limits, const struct berth_limit, {"cpu", 0, 1, 1}, {"cpu", 0, 1, 1})}     },
    {"limit kind",                      {LIST(limits, const struct berth_limit, {"cpu", (enum berth_limit_kind)9, 1, 0})}},
    {"limit too large",                 {LIST(limits, const struct berth_limit, {"cpu", 0, 1, BERTH_AMOUNT_MAX + 1})}    },
    {"weight of 0",                     {LIST(limits, const struct berth_limit, {"cpu", BERTH_WEIGHTED, 0, 0})}          },
    {"node with a control character",   {.node = "a\tb"}                                                                 },
    {"arch too long",                   {.arch = text_million}                                                           },
    {"runtime not UTF-8",               {.runtime = "\xff"}                                                              },
    {"domain without a name",           {LIST(domains, const char *const, "")}                                           },
    {"expression without a key",        {REQUIRE({.key = "", .match = BERTH_EXISTS})}                                    },
    {"unknown operator",                {REQUIRE({.key = "a", .match = (enum berth_match)9})}                            },
    {"In without values",               {REQUIRE({.key = "a", .match = BERTH_IN})}                                       },
    {"Gt with a word",                  {REQUIRE({.key = "a", .match = BERTH_GT, VALUES("three")})}                      },
    {"Gt with half a number",           {REQUIRE({.key = "a", .match = BERTH_GT, VALUES("3x")})}                         },
    {"Lt with too large a number",      {REQUIRE({.key = "a", .match = BERTH_LT, VALUES("99999999999999999999")})}       },
    {"Lt with two values",              {REQUIRE({.key = "a", .match = BERTH_LT, VALUES("1", "2")})}                     },
    {"Lt without values",               {REQUIRE({.key = "a", .match = BERTH_LT})}                                       },
    {"value of a million characters",   {REQUIRE({.key = "a", .match = BERTH_IN, VALUES(text_million)})}                 },
    {"preference of weight 0",          {LIST(prefer, const struct berth_term, {.exprs = &any_expr, .exprs_len = 1})}    },
    {"preference too heavy",
     {LIST(prefer, const struct berth_term, {.exprs = &any_expr, .exprs_len = 1, .weight = 101})}                        },
    {"preference too light",
     {LIST(prefer, const struct berth_term, {.exprs = &any_expr, .exprs_len = 1, .weight = -101})}                       },
    {"preference of the least integer",
     {LIST(prefer, const struct berth_term, {.exprs = &any_expr, .exprs_len = 1, .weight = INT32_MIN})}                  },
    {"toleration of an unknown effect",
     {LIST(tolerations, const struct berth_toleration, {.key = "a", .effect = (enum berth_effect)9})}                    },
    {"port 0",                          {LIST(ports, const struct berth_port, {BERTH_TCP, 0, 1})}                        },
    {"ports past the last",             {LIST(ports, const struct berth_port, {BERTH_UDP, 65000, 1000})}                 },
    {"protocol",                        {LIST(ports, const struct berth_port, {(enum berth_protocol)9, 80, 1})}          },
    {"unknown volume",                  {LIST(volumes, const char *const, "no-such-volume")}                             },
    {"volume twice",                    {LIST(volumes, const char *const, "v1", "v1")}                                   },
    {"image without a name",            {LIST(images, const char *const, "")}                                            },
    {"zone not UTF-8",                  {.near_zone = "\xff"}                                                            },
    {"profile not UTF-8",               {.profile = "\xff"}                                                              },
    {"spread of no skew",               {LIST(spread, const struct berth_spread, {"zone", ANY_TERM, 0, false})}          },
    {"spread without a topology",       {LIST(spread, const struct berth_spread, {"", ANY_TERM, 1, false})}              },
    {"near without a topology",         {LIST(near, const struct berth_affinity, {"", ANY_TERM, false})}                 },
    {"near too heavy",
     {LIST(near, const struct berth_affinity, {"zone", {.exprs = &any_expr, .exprs_len = 1, .weight = 101}, false})}     },
};

static void bad_shapes_are_refused(void **state)
{
    (void)state;
    struct refusal_count t = refusal_count_start();

    for (size_t i = 0; i < LEN(shapes_bad); i++) {
        struct berth_err err = {0};
        struct berth_workload w = {.id = "fresh-load", .replicas = 1, .shape = shapes_bad[i].shape};
        expect_refusal(&t, shapes_bad[i].label, w.id, berth_workload_put(t.cluster, &w, &err), &err);
        w.id = "w1"; /* an existing workload stays unchanged */
        expect_refusal(&t, shapes_bad[i].label, w.id, berth_workload_put(t.cluster, &w, &err), &err);
        struct berth_instance in = {.id = 77,
                                    .workload = "w1",
                                    .ordinal = 1,
                                    .node = "n1",
                                    .state = BERTH_RUNNING,
                                    .shape = &shapes_bad[i].shape};
        expect_refusal(&t, shapes_bad[i].label, "77", berth_instance_put(t.cluster, &in, &err), &err);
    }
    refusal_count_end(&t);
}

static const struct {
    const char *label;
    struct berth_workload workload;
} workloads_bad[] = {
    {"kind",                          {.kind = (enum berth_workload_kind)9}                     },
    {"too many replicas",             {.replicas = BERTH_REPLICAS_MAX + 1}                      },
    {"unknown answer to loss",        {.on_lost = (enum berth_on_lost)9}                        },
    {"unknown answer to drain",       {.on_drain = (enum berth_on_drain)9}                      },
    {"negative fence",                {.fence_ns = -1}                                          },
    {"gang with a control character", {.gang = "a\nb"}                                          },
    {"gang too long",                 {.gang = text_million}                                    },
    {"label twice",                   {LIST(labels, struct berth_label, {"a", "1"}, {"a", "1"})}},
    {"label of a million characters", {LIST(labels, struct berth_label, {"a", text_million})}   },
    {"too many labels",               {.labels = labels_many, .labels_len = BERTH_LIST_MAX + 1} },
};

static void bad_workloads_are_refused(void **state)
{
    (void)state;
    struct refusal_count t = refusal_count_start();

    for (size_t i = 0; i < LEN(workloads_bad); i++) {
        struct berth_err err = {0};
        struct berth_workload w = workloads_bad[i].workload;
        w.id = "fresh-load";
        expect_refusal(&t, workloads_bad[i].label, w.id, berth_workload_put(t.cluster, &w, &err), &err);
    }
    refusal_count_end(&t);
}

/* ---- instances, volumes, resources, facts ----------------------------------------------------------------------- */

static const struct {
    const char *label;
    const char *name;
    struct berth_instance instance;
} instances_bad[] = {
    {"id of 0",                  "",             {.id = 0, .workload = "w1", .node = "n1"}                                                                        },
    {"unknown node",             "no-such-node", {.id = 5, .workload = "w1", .node = "no-such-node"}                                                              },
    {"no workload",              "5",            {.id = 5, .node = "n1"}                                                                                          },
    {"ordinal too large",        "5",            {.id = 5, .workload = "w1", .ordinal = BERTH_REPLICAS_MAX, .node = "n1"}                                         },
    {"state",                    "5",            {.id = 5, .workload = "w1", .node = "n1", .state = (enum berth_state)9}                                          },
    {"GPU beyond the node",      "5",            {.id = 5, .workload = "w2", .node = "n1", .state = BERTH_RUNNING, .gpus = 4}                                     },
    {"GPU of a node without",    "5",            {.id = 5, .workload = "w2", .node = "n2", .state = BERTH_RUNNING, .gpus = 1}                                     },
    {"more GPUs than asked for", "5",            {.id = 5, .workload = "w2", .node = "n1", .state = BERTH_RUNNING, .gpus = 3}                                     },
    {"GPU of another",           "5",            {.id = 5, .workload = "w2", .ordinal = 1, .node = "n1", .state = BERTH_RUNNING, .gpus = 1}                       },
    {"port of another",          "5",            {.id = 5, .workload = "w3", .ordinal = 1, .node = "n1", .state = BERTH_RUNNING}                                  },
    {"waits for itself",
     "5",                                        {.id = 5, .workload = "w1", .node = "n1", .state = BERTH_RESERVED, LIST(waits, const uint64_t, 5)}               },
    {"replaces itself",          "5",            {.id = 5, .workload = "w1", .node = "n1", .state = BERTH_RUNNING, .replaces = 5}                                 },
    {"negative use",
     "5",                                        {.id = 5, .workload = "w1", .node = "n1", LIST(usage, const struct berth_usage, {.resource = "cpu", .used = -1})}},
    {"negative limit",
     "5",                                        {.id = 5,
      .workload = "w1",
      .node = "n1",
      LIST(usage, const struct berth_usage, {.resource = "cpu", .limit = -1})}                                                                           },
    {"use of nothing",
     "5",                                        {.id = 5, .workload = "w1", .node = "n1", LIST(usage, const struct berth_usage, {.used = 1})}                    },
    {"use twice",
     "5",                                        {.id = 5,
      .workload = "w1",
      .node = "n1",
      LIST(usage, const struct berth_usage, {.resource = "cpu"}, {.resource = "cpu"})}                                                                   },
};

static void bad_instances_are_refused(void **state)
{
    (void)state;
    struct refusal_count t = refusal_count_start();

    for (size_t i = 0; i < LEN(instances_bad); i++) {
        struct berth_err err = {0};
        int rc = berth_instance_put(t.cluster, &instances_bad[i].instance, &err);
        expect_refusal(&t, instances_bad[i].label, instances_bad[i].name, rc, &err);
    }
    refusal_count_end(&t);
}

static void bad_volumes_resources_and_facts_are_refused(void **state)
{
    (void)state;
    const struct berth_volume volumes[] = {
        {.id = "fresh", .zone = "a\nb"        },
        {.id = "fresh", .node = "\xff"        },
        {.id = "fresh", .driver = text_million}
    };
    const struct berth_resource resources[] = {
        {.name = "fresh",           .kind = (enum berth_resource_kind)9},
        { .name = "fresh", .kind = BERTH_CUMULATIVE,                     .period_ns = -1}
    };
    struct refusal_count t = refusal_count_start();
    struct berth_err err = {0};

    for (size_t i = 0; i < LEN(volumes); i++)
        expect_refusal(&t, "volume", "fresh", berth_volume_put(t.cluster, &volumes[i], &err), &err);
    for (size_t i = 0; i < LEN(resources); i++)
        expect_refusal(&t, "resource", "fresh", berth_resource_put(t.cluster, &resources[i], &err), &err);
    struct berth_fact fact = {.kind = (enum berth_fact_kind)99, .subject = 1};
    expect_refusal(&t, "fact", "", berth_fact_put(t.cluster, &fact, &err), &err);
    refusal_count_end(&t);
}

/* ---- unknown names, and too many or too large objects ----------------------------------------------------------- */

static void removing_unknown_or_used_objects_is_refused(void **state)
{
    (void)state;
    struct refusal_count t = refusal_count_start();
    struct berth_err err = {0};

    expect_refusal(&t, "unknown node", "ghost", berth_node_remove(t.cluster, "ghost", &err), &err);
    expect_refusal(&t, "unknown workload", "ghost", berth_workload_remove(t.cluster, "ghost", &err), &err);
    expect_refusal(&t, "unknown instance", "99", berth_instance_remove(t.cluster, 99, &err), &err);
    expect_refusal(&t, "node in use", "n1", berth_node_remove(t.cluster, "n1", &err), &err);
    refusal_count_end(&t);
}

static void policies_with_unknown_names_are_refused(void **state)
{
    (void)state;
    const struct {
        const char *name;
        struct berth_profile profile;
    } rows[] = {
        {"no-such-filter", {.name = "p", LIST(filters, const char *const, "no-such-filter")}           },
        {"no-such-score",  {.name = "p", LIST(scores, const struct berth_weight, {"no-such-score", 1})}},
    };
    struct berth_cluster *c = cluster_good();
    struct berth_snapshot *s = berth_freeze(c, 1000, 1);

    for (size_t i = 0; i < LEN(rows); i++) {
        struct berth_err err = {0};
        struct berth_plan *plan = (struct berth_plan *)&err;
        struct berth_policy policy = {.profile = &rows[i].profile};
        assert_true(berth_plan_make(s, &policy, &plan, &err) < 0);
        assert_non_null(strstr(err.text, rows[i].name));
        assert_ptr_equal(plan, &err); /* the output is untouched */
    }
    berth_snapshot_free(s);
    berth_cluster_free(c);
}

static void too_many_resource_names_are_refused(void **state)
{
    (void)state;
    struct berth_cluster *c = berth_cluster_new();
    int rc = 0;
    size_t len = 0;

    for (; rc == 0 && len < 2000; len++) {
        char id[24], name[24];
        (void)snprintf(id, sizeof id, "n%zu", len);
        (void)snprintf(name, sizeof name, "r%zu", len);
        struct berth_node node = {.id = id, AMOUNTS(allocatable, {name, 1})};
        rc = berth_node_put(c, &node, NULL);
    }
    assert_true(rc < 0);
    assert_true(len <= BERTH_RESOURCES_MAX + 1);
    assert_int_equal(berth_audit(c, NULL), 0);
    berth_cluster_free(c);
}

/* Each amount is legal, but their sum exceeds an integer. The library must refuse or count them and never wrap
 * around. */
static void sums_do_not_overflow(void **state)
{
    (void)state;
    struct berth_cluster *c = berth_cluster_new();
    struct berth_node node = {.id = "n1", AMOUNTS(allocatable, {"cpu", BERTH_AMOUNT_MAX})};
    struct berth_workload w = {.id = "w1", .replicas = 3000, .shape = {AMOUNTS(requests, {"cpu", BERTH_AMOUNT_MAX})}};
    struct berth_workload small = {.id = "w2", .replicas = 1, .shape = {AMOUNTS(requests, {"cpu", 1})}};

    assert_int_equal(berth_node_put(c, &node, NULL), 0);
    assert_int_equal(berth_workload_put(c, &w, NULL), 0);
    for (uint32_t i = 0; i < 3000; i++) {
        struct berth_instance in = {.id = i + 1, .workload = "w1", .ordinal = i, .node = "n1", .state = BERTH_RUNNING};
        struct berth_err err = {0};
        if (berth_instance_put(c, &in, &err) < 0)
            assert_true(*err.text != 0);
    }
    assert_int_equal(berth_workload_put(c, &small, NULL), 0);
    struct berth_snapshot *s = berth_freeze(c, 1000, 1);
    struct berth_plan *plan = NULL;
    assert_int_equal(berth_plan_make(s, &(struct berth_policy){0}, &plan, NULL), 0);
    for (size_t i = 0; i < berth_plan_actions(plan); i++)
        assert_int_not_equal(berth_plan_action(plan, i).op, BERTH_PLACE);
    berth_plan_free(plan);
    berth_snapshot_free(s);
    berth_cluster_free(c);
}

static void long_texts_fill(void)
{
    memset(name_long, 'x', sizeof name_long - 1);
    memset(text_million, 'y', sizeof text_million - 1);
    for (size_t i = 0; i < LEN(labels_many); i++) {
        (void)snprintf(labels_many_keys[i], sizeof labels_many_keys[i], "k%u", (unsigned)i % 100000);
        labels_many[i] = (struct berth_label){labels_many_keys[i], "v"};
    }
    for (size_t i = 0; i < LEN(gpus_many); i++)
        gpus_many[i] = (struct berth_gpu){"T4", GIB};
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(bad_nodes_are_refused),
        cmocka_unit_test(bad_shapes_are_refused),
        cmocka_unit_test(bad_workloads_are_refused),
        cmocka_unit_test(bad_instances_are_refused),
        cmocka_unit_test(bad_volumes_resources_and_facts_are_refused),
        cmocka_unit_test(removing_unknown_or_used_objects_is_refused),
        cmocka_unit_test(policies_with_unknown_names_are_refused),
        cmocka_unit_test(too_many_resource_names_are_refused),
        cmocka_unit_test(sums_do_not_overflow),
    };

    long_texts_fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
