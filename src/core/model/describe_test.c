/* describe_test.c - every rule of descriptions: a violation is refused by name and changes nothing, and a value exactly
 * at the limit passes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static char name_max[BERTH_NAME_MAX + 1], name_over[BERTH_NAME_MAX + 2];
static char numbers[BERTH_LIST_MAX + 1][8]; /* "x0", "x1", ... */
static const char *numbered[BERTH_LIST_MAX + 1];

static int fill_texts(void **state)
{
    (void)state;
    memset(name_max, 'n', sizeof name_max - 1);
    memset(name_over, 'n', sizeof name_over - 1);
    for (size_t i = 0; i < ROWS(numbers); i++) {
        (void)snprintf(numbers[i], sizeof numbers[i], "x%zu", i);
        numbered[i] = numbers[i];
    }
    return 0;
}

/* Checks that the error names the object and contains `part`. */
static void refused(int rc, const struct berth_err *err, const char *who, const char *part)
{
    if (rc != -EINVAL || err->code != EINVAL)
        fail_msg("%s is not refused for: %s (%d)", who, part, rc);
    if (!strstr(err->text, who) || !strstr(err->text, part))
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", err->text, who, part);
}

static void refused_node(struct berth_node n, const char *part)
{
    struct scene s = scene_new();
    n.id = n.id ? n.id : "n1";
    refused(berth_node_put(s.c, &n, &s.err), &s.err, strlen(n.id) < 10 ? n.id : "node", part);
    assert_int_equal(berth_node_put(s.c, &n, NULL), -EINVAL);
    assert_int_equal(berth_node_remove(s.c, n.id, NULL), -ENOENT);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void accepted_node(struct berth_node n)
{
    struct scene s = scene_new();
    n.id = n.id ? n.id : "n1";
    scene_put_node(&s, n);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void refused_workload(struct berth_workload w, const char *part)
{
    struct scene s = scene_new();
    w.id = w.id ? w.id : "web";
    refused(berth_workload_put(s.c, &w, &s.err), &s.err, "workload \"", part);
    if (strlen(w.id) < 10)
        assert_non_null(strstr(s.err.text, w.id));
    assert_int_equal(berth_workload_remove(s.c, w.id, NULL), -ENOENT);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void accepted_workload(struct berth_workload w)
{
    struct scene s = scene_new();
    w.id = w.id ? w.id : "web";
    scene_put(&s, w);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void refused_shape(struct berth_shape shape, const char *part)
{
    refused_workload((struct berth_workload){.shape = shape}, part);
}

static void accepted_shape(struct berth_shape shape)
{
    accepted_workload((struct berth_workload){.shape = shape});
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static void ids_are_plain_text(void **state)
{
    static const struct {
        const char *id, *part;
    } rows[] = {
        {"",        "missing"            },
        {"a b",     "may not contain ' '"},
        {"a/b",     "may not contain '/'"},
        {"a\nb",    "control character"  },
        {"a\x7f",   "control character"  },
        {"a\xff",   "UTF-8"              },
        {name_over, "254 bytes"          },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_new();
        struct berth_node n = {.id = rows[i].id};
        struct berth_workload w = {.id = rows[i].id};
        struct berth_volume v = {.id = rows[i].id};
        struct berth_instance in = {.id = 1, .workload = rows[i].id, .node = "n1"};
        scene_node(&s, "n1", 1, 1);
        refused(berth_node_put(s.c, &n, &s.err), &s.err, "node", rows[i].part);
        refused(berth_workload_put(s.c, &w, &s.err), &s.err, "workload", rows[i].part);
        refused(berth_volume_put(s.c, &v, &s.err), &s.err, "volume", rows[i].part);
        refused(berth_instance_put(s.c, &in, &s.err), &s.err, "instance", rows[i].part);
        scene_cleanup(&s);
    }
    accepted_node((struct berth_node){.id = name_max});
    accepted_node((struct berth_node){.id = "k\xc3\xa4se"});
    accepted_workload((struct berth_workload){.id = name_max});
}

static void an_error_is_one_printable_line(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_node n = {.id = "evil\n\x1b[31m"};
    assert_int_equal(berth_node_put(s.c, &n, &s.err), -EINVAL);
    for (const char *p = s.err.text; *p; p++)
        assert_true((unsigned char)*p >= 0x20);
    assert_true(strlen(s.err.text) < BERTH_ERR_TEXT_MAX);
    scene_cleanup(&s);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

#define AMOUNT(field, resource, amount) LIST(field, struct berth_amount, {resource, amount})
#define TWICE(field, resource, a, b) LIST(field, struct berth_amount, {resource, a}, {resource, b})
#define MIB ((int64_t)1 << 20)

static void node_amounts(void **state)
{
    (void)state;
    refused_node((struct berth_node){AMOUNT(allocatable, "cpu", -1)}, "negative (-1)");
    refused_node((struct berth_node){AMOUNT(allocatable, "cpu", BERTH_AMOUNT_MAX + 1)}, "too large");
    accepted_node((struct berth_node){AMOUNT(allocatable, "cpu", BERTH_AMOUNT_MAX)});
    accepted_node((struct berth_node){AMOUNT(allocatable, "cpu", 0)});
    refused_node((struct berth_node){TWICE(allocatable, "cpu", 1, 2)}, "lists cpu twice");
    refused_node((struct berth_node){AMOUNT(allocatable, NULL, 1)}, "resource name is missing");
    refused_node((struct berth_node){AMOUNT(allocatable, name_over, 1)}, "254 bytes");
    refused_node((struct berth_node){AMOUNT(allocatable, "hugepages-2", MIB)}, "no page size");
    refused_node((struct berth_node){AMOUNT(allocatable, "hugepages-0Mi", MIB)}, "no page size");
    refused_node((struct berth_node){AMOUNT(allocatable, "hugepages-2Mi", MIB)}, "whole number of pages");
    accepted_node((struct berth_node){AMOUNT(allocatable, "hugepages-2Mi", 6 * MIB)});
    refused_node((struct berth_node){AMOUNT(consumed, "traffic", -5)}, "negative (-5)");
    refused_node((struct berth_node){TWICE(consumed, "traffic", 1, 1)}, "lists traffic twice");
}

static void node_overcommit(void **state)
{
    (void)state;
    refused_node((struct berth_node){AMOUNT(overcommit, "cpu", 0)}, "thousandths");
    refused_node((struct berth_node){AMOUNT(overcommit, "cpu", 100001)}, "thousandths");
    accepted_node((struct berth_node){AMOUNT(overcommit, "cpu", 1)});
    accepted_node((struct berth_node){AMOUNT(overcommit, "cpu", 100000)});
    refused_node((struct berth_node){AMOUNT(overcommit, "hugepages-2Mi", 2000)}, "cannot be over-committed");
    accepted_node((struct berth_node){AMOUNT(overcommit, "hugepages-2Mi", 1000)});
    refused_node((struct berth_node){AMOUNT(allocatable, "cpu", BERTH_AMOUNT_MAX), AMOUNT(overcommit, "cpu", 1001)},
                 "too large");
    accepted_node((struct berth_node){AMOUNT(allocatable, "cpu", BERTH_AMOUNT_MAX), AMOUNT(overcommit, "cpu", 1000)});
    accepted_node(
        (struct berth_node){AMOUNT(allocatable, "cpu", BERTH_AMOUNT_MAX / 2), AMOUNT(overcommit, "cpu", 2000)});
}

static void node_page_size(void **state)
{
    (void)state;
    refused_node((struct berth_node){.page_size_bytes = -1}, "page size -1 is negative");
    refused_node((struct berth_node){.page_size_bytes = 1024 * MIB, AMOUNT(allocatable, "hugepages-2Mi", 2 * MIB)},
                 "another page size");
    accepted_node((struct berth_node){.page_size_bytes = 2 * MIB, AMOUNT(allocatable, "hugepages-2Mi", 2 * MIB)});
    accepted_node((struct berth_node){.page_size_bytes = 1024 * MIB, AMOUNT(allocatable, "hugepages-2Mi", 0)});
}

static void node_labels_and_taints(void **state)
{
    (void)state;
    refused_node((struct berth_node){LIST(labels, struct berth_label, {"", "v"})}, "label key is missing");
    refused_node((struct berth_node){LIST(labels, struct berth_label, {"k", name_over})}, "value of a label");
    refused_node((struct berth_node){LIST(labels, struct berth_label, {"k", "a"}, {"k", "b"})},
                 "label k is listed twice");
    accepted_node((struct berth_node){LIST(labels, struct berth_label, {name_max, name_max}, {"k", NULL})});
    refused_node((struct berth_node){LIST(taints, struct berth_taint, {"k", "v", BERTH_EFFECT_ANY})},
                 "effect 0 of taint k");
    refused_node((struct berth_node){LIST(taints, struct berth_taint, {"k", "v", (enum berth_effect)4})}, "effect 4");
    refused_node((struct berth_node){LIST(taints, struct berth_taint, {NULL, "v", BERTH_NO_EXECUTE})},
                 "key of a taint");
    accepted_node((struct berth_node){LIST(taints, struct berth_taint, {"k", NULL, BERTH_NO_EXECUTE})});
}

static void node_other_fields(void **state)
{
    (void)state;
    static const struct berth_gpu many[BERTH_NODE_GPUS_MAX + 1];
    refused_node((struct berth_node){.state = (enum berth_node_state)5}, "state 5");
    refused_node((struct berth_node){.zone = name_over}, "zone");
    refused_node((struct berth_node){.rack = "a\tb"}, "rack has a control character at byte 2");
    refused_node((struct berth_node){.domain = "\xc3"}, "domain is not valid UTF-8");
    refused_node((struct berth_node){.arch = name_over}, "architecture");
    refused_node((struct berth_node){.gpus = many, .gpus_len = BERTH_NODE_GPUS_MAX + 1}, "65 GPUs");
    accepted_node((struct berth_node){.gpus = many, .gpus_len = BERTH_NODE_GPUS_MAX});
    refused_node((struct berth_node){LIST(gpus, struct berth_gpu, {"a", -1})}, "negative");
    refused_node((struct berth_node){LIST(gpus, struct berth_gpu, {name_over, 1})}, "model of a GPU");
    refused_node((struct berth_node){NAMES(runtimes, "oci", "oci")}, "runtimes lists oci twice");
    refused_node((struct berth_node){NAMES(runtimes, "")}, "runtimes is missing");
    refused_node((struct berth_node){LIST(images, struct berth_image, {NULL, 1})}, "name of an image");
    refused_node((struct berth_node){LIST(images, struct berth_image, {"i", -1})}, "size of an image is negative");
}

static void ports_are_in_range_and_apart(void **state)
{
    (void)state;
    refused_node((struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 0, 1})}, "not between 1 and 65535");
    refused_node((struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 65535, 2})}, "65536");
    accepted_node((struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 65535, 0})});
    accepted_node((struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 1, 65535})});
    refused_node((struct berth_node){LIST(ports, struct berth_port, {(enum berth_protocol)3, 80, 0})}, "protocol 3");
    refused_node((struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 80, 3}, {BERTH_TCP, 82, 0})},
                 "port 82 is listed twice");
    accepted_node((struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 80, 3}, {BERTH_TCP, 83, 0})});
    accepted_node((struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 80, 0, "::1"}, {BERTH_TCP, 80, 0})});
    refused_node((struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 80, 0, "0.0.0.0"}, {BERTH_TCP, 80, 0})},
                 "port 80 is listed twice");
    refused_node(
        (struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 80, 0, "::1"}, {BERTH_TCP, 80, 0, "::1"})},
        "port 80 is listed twice");
    refused_node((struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 80, 0, "a\tb"})},
                 "the address of a port");
    accepted_node((struct berth_node){LIST(ports, struct berth_port, {BERTH_TCP, 80, 3}, {BERTH_UDP, 82, 0})});
    refused_shape((struct berth_shape){LIST(ports, struct berth_port, {BERTH_SCTP, 0, 0})}, "not between");
}

static void lists_have_a_limit(void **state)
{
    (void)state;
    static struct berth_label labels[BERTH_LIST_MAX + 1];
    for (size_t i = 0; i < ROWS(labels); i++)
        labels[i] = (struct berth_label){numbers[i], ""};
    accepted_node((struct berth_node){.labels = labels, .labels_len = BERTH_LIST_MAX});
    refused_node((struct berth_node){.labels = labels, .labels_len = BERTH_LIST_MAX + 1}, "1025 labels");
    accepted_shape((struct berth_shape){.images = numbered, .images_len = BERTH_LIST_MAX});
    refused_shape((struct berth_shape){.images = numbered, .images_len = BERTH_LIST_MAX + 1}, "1025 images");
    refused_shape((struct berth_shape){.domains = numbered, .domains_len = BERTH_LIST_MAX + 1}, "1025 domains");
    refused_workload((struct berth_workload){.labels = labels, .labels_len = BERTH_LIST_MAX + 1}, "1025 labels");
}

/* ---- resources -------------------------------------------------------------------------------------------------- */

/* With cpu, memory and pods this is exactly the maximum number of names. */
static struct scene full_of_resources(void)
{
    struct scene s = scene_new();
    static struct berth_amount amounts[BERTH_RESOURCES_MAX - 3];
    for (size_t i = 0; i < ROWS(amounts); i++)
        amounts[i] = (struct berth_amount){numbers[i], 1};
    scene_put_node(&s, (struct berth_node){.id = "n1", .allocatable = amounts, .allocatable_len = ROWS(amounts)});
    return s;
}

static void resource_names_have_a_limit(void **state)
{
    (void)state;
    struct scene s = full_of_resources();
    struct berth_node n = {.id = "n2", AMOUNT(allocatable, "one-more", 1)};
    struct berth_workload w = {.id = "web", .shape = {AMOUNT(requests, "one-more", 1)}};
    struct berth_resource r = {.name = "one-more"};
    refused(berth_node_put(s.c, &n, &s.err), &s.err, "n2", "256");
    refused(berth_workload_put(s.c, &w, &s.err), &s.err, "web", "256");
    refused(berth_resource_put(s.c, &r, &s.err), &s.err, "one-more", "256");
    r.name = numbers[7];
    scene_check(&s, berth_resource_put(s.c, &r, &s.err));
    scene_node(&s, "n2", 1, 1);
    scene_cleanup(&s);
}

/* Other fields introduce names as well. */
static void resource_names_have_a_limit_everywhere(void **state)
{
    (void)state;
    struct scene s = full_of_resources();
    struct berth_workload w = {.id = "web",
                               .shape = {LIST(limits, struct berth_limit, {"one-more", BERTH_ABSOLUTE, 1, 2})}};
    struct berth_instance i = {.id = 1,
                               .workload = "web",
                               .node = "n1",
                               .state = BERTH_RUNNING,
                               LIST(usage, struct berth_usage, {.resource = "one-more", .used = 1})};
    struct berth_volume v = {.id = "disk", .driver = "csi"};
    refused(berth_workload_put(s.c, &w, &s.err), &s.err, "web", "256");
    refused(berth_instance_put(s.c, &i, &s.err), &s.err, "1", "256");
    refused(berth_volume_put(s.c, &v, &s.err), &s.err, "disk", "256");
    scene_cleanup(&s);
}

static void resource_definitions(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_resource unknown = {"r", (enum berth_resource_kind)2, 0};
    struct berth_resource negative = {"r", BERTH_CUMULATIVE, -1};
    struct berth_resource unnamed = {NULL, BERTH_INSTANT, 0};
    struct berth_resource good = {"r", BERTH_CUMULATIVE, 0};
    refused(berth_resource_put(s.c, &unknown, &s.err), &s.err, "resource \"r\"", "kind 2");
    refused(berth_resource_put(s.c, &negative, &s.err), &s.err, "resource \"r\"", "period -1");
    refused(berth_resource_put(s.c, &unnamed, &s.err), &s.err, "resource", "missing");
    scene_check(&s, berth_resource_put(s.c, &good, &s.err));
    scene_cleanup(&s);
}

static void page_sizes_are_read_from_names(void **state)
{
    static const struct {
        const char *name;
        int64_t size;
    } rows[] = {
        {"hugepages-2Mi",       2 * MIB   },
        {"hugepages-1Gi",       1024 * MIB},
        {"hugepages-64Ki",      65536     },
        {"cpu",                 0         },
        {"hugepages",           0         },
        {"hugepages-",          -1        },
        {"hugepages-Mi",        -1        },
        {"hugepages-0Mi",       -1        },
        {"hugepages-2M",        -1        },
        {"hugepages-2MiB",      -1        },
        {"hugepages--2Mi",      -1        },
        {"hugepages-9999999Mi", -1        },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        if (describe_page_size(rows[i].name) != rows[i].size)
            fail_msg("%s: %lld", rows[i].name, (long long)describe_page_size(rows[i].name));
}

/* ---- volumes and facts ------------------------------------------------------------------------------------------ */

static void volumes(void **state)
{
    (void)state;
    struct scene s = scene_new();
    char driver[BERTH_NAME_MAX - 6 + 1];
    memset(driver, 'd', sizeof driver);
    driver[sizeof driver - 1] = '\0'; /* one byte too long with its prefix */
    struct berth_volume v = {.id = "disk", .driver = driver};
    refused(berth_volume_put(s.c, &v, &s.err), &s.err, "volume \"disk\"", "too long");
    driver[sizeof driver - 2] = '\0';
    scene_check(&s, berth_volume_put(s.c, &v, &s.err));
    v = (struct berth_volume){.id = "disk", .zone = "a\nb"};
    refused(berth_volume_put(s.c, &v, &s.err), &s.err, "volume \"disk\"", "zone");
    v = (struct berth_volume){.id = "disk", .node = name_over};
    refused(berth_volume_put(s.c, &v, &s.err), &s.err, "volume \"disk\"", "node");
    scene_cleanup(&s);
}

static void facts(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_fact f = {.kind = (enum berth_fact_kind)(BERTH_FACT_PRESSURE + 1)};
    refused(berth_fact_put(s.c, &f, &s.err), &s.err, "fact", "kind 8");
    f = (struct berth_fact){.kind = BERTH_FACT_LEDGER, .key = name_over};
    refused(berth_fact_put(s.c, &f, &s.err), &s.err, "fact", "253");
    f.key = name_max;
    scene_check(&s, berth_fact_put(s.c, &f, &s.err));
    scene_cleanup(&s);
}

/* ---- workloads -------------------------------------------------------------------------------------------------- */

static void workload_fields(void **state)
{
    (void)state;
    refused_workload((struct berth_workload){.kind = (enum berth_workload_kind)3}, "kind 3");
    refused_workload((struct berth_workload){.replicas = BERTH_REPLICAS_MAX + 1}, "10000001 replicas");
    accepted_workload((struct berth_workload){.replicas = BERTH_REPLICAS_MAX});
    refused_workload((struct berth_workload){.on_lost = (enum berth_on_lost)4}, "on_lost 4");
    refused_workload((struct berth_workload){.on_drain = (enum berth_on_drain)4}, "on_drain 4");
    refused_workload((struct berth_workload){.fence_ns = -1}, "fence time -1");
    refused_workload((struct berth_workload){.gang = "g", .replicas = 2, .gang_min = 3}, "3 of 2 tasks");
    accepted_workload((struct berth_workload){.gang = "g", .replicas = 2, .gang_min = 2});
    refused_workload((struct berth_workload){.replicas = 2, .gang_min = 1}, "without a gang");
    refused_workload((struct berth_workload){.gang = name_over}, "gang");
    refused_workload((struct berth_workload){LIST(labels, struct berth_label, {"k", "a"}, {"k", "a"})}, "twice");
}

static void shape_amounts(void **state)
{
    (void)state;
    refused_shape((struct berth_shape){AMOUNT(requests, "cpu", -1)}, "request of cpu is negative");
    refused_shape((struct berth_shape){AMOUNT(requests, "cpu", BERTH_AMOUNT_MAX + 1)}, "too large");
    accepted_shape((struct berth_shape){AMOUNT(requests, "cpu", BERTH_AMOUNT_MAX)});
    refused_shape((struct berth_shape){TWICE(requests, "cpu", 1, 1)}, "lists cpu twice");
    refused_shape((struct berth_shape){AMOUNT(requests, "hugepages-2Mi", 1)}, "whole number of pages");
    refused_shape((struct berth_shape){.gpu = {.count = 65}}, "65 GPUs");
    accepted_shape((struct berth_shape){.gpu = {.count = 64}});
    refused_shape(
        (struct berth_shape){
            .gpu = {.count = 1, .milli = 1001}
    },
        "1001 thousandths");
    accepted_shape((struct berth_shape){
        .gpu = {.count = 1, .milli = 1000}
    });
    refused_shape(
        (struct berth_shape){
            .gpu = {.count = 2, .milli = 500}
    },
        "a GPU share applies to one GPU");
    refused_shape((struct berth_shape){.gpu = {.milli = 500}}, "a GPU share applies to one GPU, not to 0");
    accepted_shape((struct berth_shape){
        .gpu = {.count = 2, .milli = 1000}
    });
    refused_shape(
        (struct berth_shape){
            .gpu = {.count = 1, .memory_bytes = -1}
    },
        "negative");
    refused_shape(
        (struct berth_shape){
            .gpu = {.count = 1, NAMES(models, "a", "a")}
    },
        "twice");
}

#define LIMIT(...) LIST(limits, struct berth_limit, __VA_ARGS__)

static void shape_limits(void **state)
{
    (void)state;
    refused_shape((struct berth_shape){LIMIT({"cpu", BERTH_ABSOLUTE, 0, 0})}, "limit of cpu is zero");
    refused_shape((struct berth_shape){LIMIT({"cpu", BERTH_ABSOLUTE, -1, 0})}, "negative");
    refused_shape((struct berth_shape){LIMIT({"cpu", BERTH_ABSOLUTE, 2, 1})}, "maximum is below the limit");
    accepted_shape((struct berth_shape){LIMIT({"cpu", BERTH_ABSOLUTE, 2, 2})});
    refused_shape((struct berth_shape){LIMIT({"cpu", (enum berth_limit_kind)2, 2, 2})}, "kind 2");
    refused_shape((struct berth_shape){LIMIT({"cpu", BERTH_ABSOLUTE, 2, 2}, {"cpu", BERTH_ABSOLUTE, 3, 3})}, "twice");
    refused_shape((struct berth_shape){AMOUNT(requests, "cpu", 3), LIMIT({"cpu", BERTH_ABSOLUTE, 2, 4})},
                  "below the request");
    accepted_shape((struct berth_shape){AMOUNT(requests, "cpu", 3), LIMIT({"cpu", BERTH_ABSOLUTE, 3, 4})});
    accepted_shape((struct berth_shape){AMOUNT(requests, "cpu", 3), LIMIT({"cpu", BERTH_WEIGHTED, 1, 0})});
}

#define EXPR(of, match, ...)                                                                                           \
    LIST(exprs, struct berth_expr,                                                                                     \
         {of, match, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)})
#define BARE(of, match) LIST(exprs, struct berth_expr, {of, match, NULL, 0})

static void refused_term(struct berth_term t, const char *part)
{
    refused_shape((struct berth_shape){.require = &t, .require_len = 1}, part);
    t.weight = 1;
    refused_shape((struct berth_shape){.prefer = &t, .prefer_len = 1}, part);
    t.weight = 0;
    struct berth_affinity near = {.topology = "zone", .select = t};
    refused_shape((struct berth_shape){.near = &near, .near_len = 1}, part);
    struct berth_spread spread = {.topology = "zone", .select = t, .max_skew = 1};
    refused_shape((struct berth_shape){.spread = &spread, .spread_len = 1}, part);
}

static void shape_terms(void **state)
{
    (void)state;
    refused_term((struct berth_term){BARE(NULL, BERTH_EXISTS)}, "label key is missing");
    refused_term((struct berth_term){BARE("k", BERTH_IN)}, "condition on k has no values");
    refused_term((struct berth_term){BARE("k", BERTH_NOT_IN)}, "condition on k has no values");
    refused_term((struct berth_term){EXPR("k", BERTH_EXISTS, "a")}, "takes no values");
    refused_term((struct berth_term){EXPR("k", BERTH_NOT_EXISTS, "a")}, "takes no values");
    refused_term((struct berth_term){EXPR("k", BERTH_GT, "a")}, "one whole number");
    refused_term((struct berth_term){EXPR("k", BERTH_LT, "1", "2")}, "one whole number");
    refused_term((struct berth_term){EXPR("k", BERTH_GT, "9223372036854775808")}, "one whole number");
    refused_term((struct berth_term){EXPR("k", (enum berth_match)6, "1")}, "unknown operator (6)");
    refused_term((struct berth_term){EXPR("k", BERTH_IN, name_over)}, "label value");
    struct berth_term good = {EXPR("k", BERTH_GT, "9223372036854775807")};
    accepted_shape((struct berth_shape){.require = &good, .require_len = 1});
}

static void shape_weights(void **state)
{
    static const struct {
        int32_t weight;
        bool require, prefer, near;
    } rows[] = {
        {0,    true,  false, true },
        {1,    false, true,  true },
        {100,  false, true,  true },
        {101,  false, false, false},
        {-1,   false, true,  false},
        {-100, false, true,  false},
        {-101, false, false, false},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct berth_term t = {BARE("k", BERTH_EXISTS), .weight = rows[i].weight};
        struct berth_affinity near = {.topology = "zone", .select = t};
        struct berth_shape require = {.require = &t, .require_len = 1}, prefer = {.prefer = &t, .prefer_len = 1};
        struct berth_shape close = {.near = &near, .near_len = 1};
        (rows[i].require ? (void)accepted_shape(require) : refused_shape(require, "weight"));
        (rows[i].prefer ? (void)accepted_shape(prefer) : refused_shape(prefer, "weight"));
        (rows[i].near ? (void)accepted_shape(close) : refused_shape(close, "weight"));
    }
}

static void shape_tolerations_and_topology_constraints(void **state)
{
    (void)state;
    const struct berth_term all = {BARE("k", BERTH_EXISTS)}, heavy = {BARE("k", BERTH_EXISTS), .weight = 1};
    refused_shape((struct berth_shape){LIST(tolerations, struct berth_toleration, {"", "v", false, BERTH_EFFECT_ANY})},
                  "key of a toleration is missing");
    accepted_shape((struct berth_shape){LIST(tolerations, struct berth_toleration, {"", "", true, BERTH_EFFECT_ANY})});
    refused_shape((struct berth_shape){LIST(tolerations, struct berth_toleration, {"k", "v", true, BERTH_EFFECT_ANY})},
                  "operator Exists has the value v");
    refused_shape(
        (struct berth_shape){LIST(tolerations, struct berth_toleration, {"k", "v", false, (enum berth_effect)4})},
        "effect 4");
    refused_shape((struct berth_shape){LIST(spread, struct berth_spread, {"zone", all, 0, false})}, "skew of 0");
    accepted_shape((struct berth_shape){LIST(spread, struct berth_spread, {"zone", all, 1, false})});
    refused_shape((struct berth_shape){LIST(spread, struct berth_spread, {"", all, 1, false})}, "topology of a spread");
    refused_shape((struct berth_shape){LIST(spread, struct berth_spread, {"zone", heavy, 1, false})}, "no weight");
    refused_shape((struct berth_shape){LIST(near, struct berth_affinity, {"", all, false})}, "topology of an affinity");
}

static void shape_names(void **state)
{
    (void)state;
    refused_shape((struct berth_shape){.node = name_over}, "node");
    refused_shape((struct berth_shape){.arch = "\x01"}, "architecture");
    refused_shape((struct berth_shape){.runtime = "\xfe"}, "runtime");
    refused_shape((struct berth_shape){.near_zone = name_over}, "zone");
    refused_shape((struct berth_shape){.profile = name_over}, "profile");
    refused_shape((struct berth_shape){NAMES(domains, "a", "a")}, "domains lists a twice");
    refused_shape((struct berth_shape){NAMES(volumes, "disk")}, "volume \"disk\" is unknown");
    refused_shape((struct berth_shape){NAMES(images, NULL)}, "images is missing");
    accepted_shape((struct berth_shape){.node = "a node that is not there"});
}

/* ---- instances -------------------------------------------------------------------------------------------------- */

static void refused_instance(struct berth_instance i, const char *part)
{
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "n1", HAS(10, 10), LIST(gpus, struct berth_gpu, {"a", 1}, {"a", 1})});
    scene_put(&s, (struct berth_workload){.id = "plain", .replicas = 1});
    scene_put(&s, (struct berth_workload){.id = "gpus", .replicas = 1, .shape = {.gpu = {.count = 2}}});
    i.workload = i.workload ? i.workload : "plain";
    i.node = i.node ? i.node : "n1";
    refused(berth_instance_put(s.c, &i, &s.err), &s.err, "instance", part);
    assert_int_equal(berth_instance_remove(s.c, i.id, NULL), -ENOENT);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void instance_fields(void **state)
{
    (void)state;
    const uint64_t wait[] = {7};
    refused_instance((struct berth_instance){.id = 0}, "above 0");
    refused_instance((struct berth_instance){.id = 3, .state = (enum berth_state)6}, "\"3\": state 6");
    refused_instance((struct berth_instance){.id = 3, .node = "nowhere"}, "node \"nowhere\" is unknown");
    refused_instance((struct berth_instance){.id = 3, .ordinal = BERTH_REPLICAS_MAX + 1}, "ordinal 10000001");
    refused_instance((struct berth_instance){.id = 3, .replaces = 3}, "itself");
    refused_instance((struct berth_instance){.id = 3, .state = BERTH_RUNNING, .waits = wait, .waits_len = 1},
                     "not reserved");
    refused_instance((struct berth_instance){.id = 3, LIST(usage, struct berth_usage, {"cpu", -1, 0, 0, 0})},
                     "use of cpu");
    refused_instance((struct berth_instance){.id = 3, LIST(usage, struct berth_usage, {"cpu", 1, 0, -1, 0})},
                     "limit of cpu");
    refused_instance((struct berth_instance){.id = 3, LIST(usage, struct berth_usage, {"", 1, 0, 1, 0})},
                     "resource name");
    refused_instance((struct berth_instance){.id = 3, .workload = "gpus", .gpus = 5, .state = BERTH_RUNNING},
                     "GPU that node n1 does not have");
    refused_instance((struct berth_instance){.id = 3, .workload = "gpus", .gpus = 1, .state = BERTH_RUNNING},
                     "uses 1 GPUs; its shape requests 2");
    refused_instance((struct berth_instance){.id = 3, .gpus = 1, .state = BERTH_RUNNING},
                     "uses 1 GPUs; its shape requests 0");
    refused_instance(
        (struct berth_instance){
            .id = 3, .shape = &(struct berth_shape){.max_per_node = 1, .node = name_over}
    },
        "node");
}

/* Volume attachments occur only in nodes and volumes. */
static void volume_attachments_cannot_be_requested(void **state)
{
    (void)state;
    accepted_node((struct berth_node){AMOUNT(allocatable, "attach-csi", 4)});
    refused_shape((struct berth_shape){AMOUNT(requests, "attach-csi", 1)}, "attach-csi cannot be requested");
    refused_shape((struct berth_shape){LIMIT({"attach-csi", BERTH_ABSOLUTE, 1, 2})}, "attach-csi cannot be requested");
    refused_shape((struct berth_shape){LIMIT({"attach-csi", BERTH_WEIGHTED, 1, 0})}, "attach-csi cannot be requested");
    refused_instance((struct berth_instance){.id = 3, LIST(usage, struct berth_usage, {"attach-csi", 1, 0, 1, 0})},
                     "attach-csi cannot be requested");
    refused_instance(
        (struct berth_instance){.id = 3, .shape = &(struct berth_shape){AMOUNT(requests, "attach-csi", 1)}},
        "attach-csi cannot be requested");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_plain_text),
        cmocka_unit_test(an_error_is_one_printable_line),
        cmocka_unit_test(node_amounts),
        cmocka_unit_test(node_overcommit),
        cmocka_unit_test(node_page_size),
        cmocka_unit_test(node_labels_and_taints),
        cmocka_unit_test(node_other_fields),
        cmocka_unit_test(ports_are_in_range_and_apart),
        cmocka_unit_test(lists_have_a_limit),
        cmocka_unit_test(resource_names_have_a_limit),
        cmocka_unit_test(resource_names_have_a_limit_everywhere),
        cmocka_unit_test(resource_definitions),
        cmocka_unit_test(page_sizes_are_read_from_names),
        cmocka_unit_test(volumes),
        cmocka_unit_test(facts),
        cmocka_unit_test(workload_fields),
        cmocka_unit_test(shape_amounts),
        cmocka_unit_test(shape_limits),
        cmocka_unit_test(shape_terms),
        cmocka_unit_test(shape_weights),
        cmocka_unit_test(shape_tolerations_and_topology_constraints),
        cmocka_unit_test(shape_names),
        cmocka_unit_test(instance_fields),
        cmocka_unit_test(volume_attachments_cannot_be_requested),
    };
    return cmocka_run_group_tests(tests, fill_texts, NULL);
}
