/* objects_test.c - every key of an entry sets its field, and defaults match the reference. */
#include "wire/doc/objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/text/document.h"

#define GI ((int64_t)1 << 30)
#define S ((int64_t)1000000000)

struct fixture {
    struct arena arena;
    struct berth_err err;
    struct reader reader;
    json_t *doc;
};

/* A row of a table that is too wide for columns. */
#define ROW(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static const json_t *given(struct fixture *f, const char *yaml)
{
    arena_init(&f->arena);
    f->err = (struct berth_err){0};
    reader_init(&f->reader, &f->arena, &f->err);
    f->doc = NULL;
    if (document_parse(yaml, strlen(yaml), "test", &f->doc, &f->err) < 0)
        fail_msg("%s", f->err.text);
    return f->doc;
}

static void done(struct fixture *f)
{
    json_decref(f->doc);
    arena_done(&f->arena);
}

#define READ(f, yaml, read, ret)                                                                                       \
    do {                                                                                                               \
        if (read(&(f)->reader, given(f, yaml), ret) < 0)                                                               \
            fail_msg("%s", (f)->err.text);                                                                             \
    } while (0)

static void node_with_all_fields_is_read(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct node_entry e = {0};
    READ(
        &f,
        "id: n\ncount: 3\nstate: draining\nsince: 100\nzone: z\nrack: 12\ndomain: d\narch: arm64\nrank: 7\n"
        "labels: {disk: ssd, gen: 3, spot: true, empty: }\n"
        "taints: ['k=v:NoSchedule', 'k:NoExecute', {key: a, value: b, effect: prefernoschedule}]\n"
        "allocatable: {cpu: 7.5, memory: 32Gi, hugepages-2Mi: 1Gi}\novercommit: {cpu: 1.5}\n"
        "consumed: {traffic: 3G}\nconsumed_since: 1970-01-01T00:01:00Z\nconsumed_begun: {traffic: 1970-01-01T00:02:00Z}\n"
        "gpus: [{count: 2, model: A100, memory: 80Gi}, {model: T4}]\nruntimes: [oci, vm]\n"
        "images: [{name: nginx, size: 180Mi}, redis]\nports: [22, 53/udp, 9000-9009, {port: 5, count: 2, protocol: sctp, address: 10.0.0.1}]\n"
        "page_size: 2Mi\n",
        node_entry_read, &e);
    const struct berth_node *n = &e.node;
    assert_string_equal(n->id, "n");
    assert_int_equal(e.count, 3);
    assert_int_equal(n->state, BERTH_NODE_DRAINING);
    assert_int_equal(n->since_ns, 100 * S);
    assert_string_equal(n->zone, "z");
    assert_string_equal(n->rack, "12");
    assert_string_equal(n->domain, "d");
    assert_string_equal(n->arch, "arm64");
    assert_int_equal(n->rank, 7);
    assert_int_equal(n->labels_len, 4);
    assert_string_equal(n->labels[1].value, "3");
    assert_string_equal(n->labels[2].value, "true");
    assert_null(n->labels[3].value);
    assert_int_equal(n->taints_len, 3);
    assert_string_equal(n->taints[0].key, "k");
    assert_string_equal(n->taints[0].value, "v");
    assert_int_equal(n->taints[0].effect, BERTH_NO_SCHEDULE);
    assert_null(n->taints[1].value);
    assert_int_equal(n->taints[1].effect, BERTH_NO_EXECUTE);
    assert_int_equal(n->taints[2].effect, BERTH_PREFER_NO_SCHEDULE);
    assert_int_equal(n->allocatable_len, 3);
    assert_string_equal(n->allocatable[0].resource, "cpu");
    assert_int_equal(n->allocatable[0].amount, 7500);
    assert_int_equal(n->allocatable[1].amount, 32 * GI);
    assert_int_equal(n->overcommit[0].amount, 1500);
    assert_int_equal(n->consumed[0].amount, 3000000000);
    assert_int_equal(n->consumed_ns, 60 * S);
    assert_int_equal(n->consumed_begun_len, 1);
    assert_string_equal(n->consumed_begun[0].resource, "traffic");
    assert_int_equal(n->consumed_begun[0].amount, 120 * S);
    assert_int_equal(n->gpus_len, 3);
    assert_string_equal(n->gpus[1].model, "A100");
    assert_int_equal(n->gpus[1].memory_bytes, 80 * GI);
    assert_string_equal(n->gpus[2].model, "T4");
    assert_int_equal(n->runtimes_len, 2);
    assert_string_equal(n->runtimes[1], "vm");
    assert_int_equal(n->images_len, 2);
    assert_int_equal(n->images[0].size_bytes, 180 * 1024 * 1024);
    assert_string_equal(n->images[1].name, "redis");
    static const struct berth_port ports[] = {
        {BERTH_TCP,  22,   0 },
        {BERTH_UDP,  53,   1 },
        {BERTH_TCP,  9000, 10},
        {BERTH_SCTP, 5,    2 }
    };
    assert_int_equal(n->ports_len, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(n->ports[i].protocol, ports[i].protocol);
        assert_int_equal(n->ports[i].port, ports[i].port);
        assert_int_equal(n->ports[i].count, ports[i].count);
        assert_string_equal(n->ports[i].address ? n->ports[i].address : "", i == 3 ? "10.0.0.1" : "");
    }
    assert_int_equal(n->page_size_bytes, 2 * 1024 * 1024);
    done(&f);
}

static void node_and_workload_with_id_only_are_read(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct node_entry n = {0};
    READ(&f, "id: n\nlabels:\n", node_entry_read, &n);
    assert_int_equal(n.count, NO_COUNT);
    assert_int_equal(n.node.state, BERTH_NODE_READY);
    assert_int_equal(n.node.labels_len, 0);
    done(&f);

    struct workload_entry w = {0};
    READ(&f, "id: w\n", workload_entry_read, &w);
    assert_int_equal(w.count, NO_COUNT);
    assert_int_equal(w.workload.replicas, 1);
    assert_int_equal(w.workload.kind, BERTH_SERVICE);
    assert_int_equal(w.workload.shape.gpu.count, 0);
    done(&f);
}

static void workload_with_all_fields_is_read(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct workload_entry e = {0};
    READ(&f,
         "id: w\ncount: 2\nkind: job\nreplicas: 4\npriority: -5\ncreated: 50\nsuspended: true\nmin_available: 2\n"
         "on_lost: wait\non_drain: stop\nfence: 2m\ngang: g\ngang_min: 3\nlabels: {app: web}\n"
         "requests: {cpu: 500m, memory: 1Gi}\ngpu: {share: 0.25, memory: 8Gi, models: [T4, A10]}\n"
         "limits: {memory: 2Gi, cpu: {amount: 1, max: 4}, io: {weight: 20}}\n"
         "node: n1\narch: amd64\nruntime: oci\ndomains: [red, blue]\n"
         "tolerations: ['*', key, 'k=v:NoExecute', {key: a, value: '', effect: NoSchedule}]\n"
         "ports: 8080\nvolumes: data\nimages: [a, b]\nnear_zone: z1\nmax_per_node: 2\n",
         workload_entry_read, &e);
    const struct berth_workload *w = &e.workload;
    const struct berth_shape *s = &w->shape;
    assert_int_equal(e.count, 2);
    assert_int_equal(w->kind, BERTH_JOB);
    assert_int_equal(w->replicas, 4);
    assert_int_equal(w->priority, -5);
    assert_int_equal(w->created_ns, 50 * S);
    assert_true(w->suspended);
    assert_int_equal(w->min_available, 2);
    assert_int_equal(w->on_lost, BERTH_LOST_WAIT);
    assert_int_equal(w->on_drain, BERTH_DRAIN_STOP);
    assert_int_equal(w->fence_ns, 120 * S);
    assert_string_equal(w->gang, "g");
    assert_int_equal(w->gang_min, 3);
    assert_string_equal(w->labels[0].value, "web");
    assert_int_equal(s->requests_len, 2);
    assert_int_equal(s->requests[0].amount, 500);
    assert_int_equal(s->gpu.count, 1);
    assert_int_equal(s->gpu.milli, 250);
    assert_int_equal(s->gpu.memory_bytes, 8 * GI);
    assert_int_equal(s->gpu.models_len, 2);
    assert_int_equal(s->limits_len, 3);
    assert_int_equal(s->limits[0].amount, 2 * GI);
    assert_int_equal(s->limits[1].amount, 1000);
    assert_int_equal(s->limits[1].max, 4000);
    assert_int_equal(s->limits[2].kind, BERTH_WEIGHTED);
    assert_int_equal(s->limits[2].amount, 20);
    assert_string_equal(s->node, "n1");
    assert_string_equal(s->arch, "amd64");
    assert_string_equal(s->runtime, "oci");
    assert_int_equal(s->domains_len, 2);
    assert_int_equal(s->tolerations_len, 4);
    assert_true(s->tolerations[0].exists && !s->tolerations[0].key);
    assert_true(s->tolerations[1].exists);
    assert_string_equal(s->tolerations[1].key, "key");
    assert_false(s->tolerations[2].exists);
    assert_string_equal(s->tolerations[2].value, "v");
    assert_int_equal(s->tolerations[2].effect, BERTH_NO_EXECUTE);
    assert_false(s->tolerations[3].exists);
    assert_int_equal(s->ports_len, 1);
    assert_int_equal(s->ports[0].port, 8080);
    assert_string_equal(s->volumes[0], "data");
    assert_int_equal(s->images_len, 2);
    assert_string_equal(s->near_zone, "z1");
    assert_int_equal(s->max_per_node, 2);
    done(&f);
}

static void gpu_requests_have_short_forms(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        uint32_t count, milli;
    } rows[] = {
        {"{id: w, gpu: 2}",                     2, 0   },
        {"{id: w, gpu: 0.5}",                   1, 500 },
        {"{id: w, gpu: {model: T4}}",           1, 0   },
        {"{id: w, gpu: {count: 8, model: T4}}", 8, 0   },
        {"{id: w, gpu: {share: 1}}",            1, 1000},
        {"{id: w, gpu: {share: 100m}}",         1, 100 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f = {0};
        struct workload_entry e = {0};
        char yaml[128];
        (void)snprintf(yaml, sizeof yaml, "# not JSON\n%s", rows[i].yaml);
        READ(&f, yaml, workload_entry_read, &e);
        assert_int_equal(e.workload.shape.gpu.count, rows[i].count);
        assert_int_equal(e.workload.shape.gpu.milli, rows[i].milli);
        done(&f);
    }
}

/* Returns a term as text: "disk In ssd,nvme; gen Gt 3". */
static const char *term_text(const struct berth_term *t, char *buf, size_t size)
{
    static const char *const ops[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
    size_t at = 0;
    buf[0] = 0;
    for (size_t i = 0; i < t->exprs_len; i++) {
        const struct berth_expr *e = &t->exprs[i];
        at += (size_t)snprintf(buf + at, size - at, "%s%s %s", i ? "; " : "", e->key, ops[e->match]);
        for (size_t v = 0; v < e->values_len; v++)
            at += (size_t)snprintf(buf + at, size - at, "%c%s", v ? ',' : ' ', e->values[v]);
    }
    return buf;
}

static void conditions_have_long_and_short_forms(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *want; /* terms in parentheses */
    } rows[] = {
        ROW("require: {disk: ssd}", "(disk In ssd)"),
        ROW("require: {disk: [ssd, nvme], gen: 3}", "(disk In ssd,nvme; gen In 3)"),
        ROW("require: {gen: {gt: 3, lt: 9}, spot: {exists: false}}", "(gen Gt 3; gen Lt 9; spot DoesNotExist)"),
        ROW("require: {gen: {in: a, not_in: [b, c], exists: true}}", "(gen In a; gen NotIn b,c; gen Exists)"),
        ROW("require: [{key: disk, values: ssd}, {key: gen, op: Gt, values: [3]}]", "(disk In ssd; gen Gt 3)"),
        ROW("require: [{key: spot, op: doesnotexist}]", "(spot DoesNotExist)"),
        ROW("require: {any: [{disk: ssd}, {disk: hdd, gen: {gt: 3}}]}", "(disk In ssd)(disk In hdd; gen Gt 3)"),
        ROW("require: {any: [[{key: a, op: Exists}], {b: c}]}", "(a Exists)(b In c)"),
        ROW("require: {any: [x, y]}", "(any In x,y)"),
        ROW("require: {any: [{a: b}], c: d}", NULL),
        ROW("require: {}", "()"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f = {0};
        struct workload_entry e = {0};
        char yaml[256], got[512] = "", one[256];
        (void)snprintf(yaml, sizeof yaml, "id: w\n%s\n", rows[i].yaml);
        int rc = workload_entry_read(&f.reader, given(&f, yaml), &e);
        for (size_t t = 0; rc == 0 && t < e.workload.shape.require_len; t++) {
            size_t at = strlen(got);
            (void)snprintf(got + at, sizeof got - at, "(%s)", term_text(&e.workload.shape.require[t], one, sizeof one));
        }
        if ((rc < 0) != !rows[i].want || (rc == 0 && strcmp(got, rows[i].want) != 0))
            fail_msg("%s: %s %s", rows[i].yaml, got, f.err.text);
        done(&f);
    }
}

static void preferences_have_weights(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct workload_entry e = {0};
    char buf[256];
    READ(&f, "id: w\nprefer: [{weight: 10, select: {disk: ssd}}, {weight: -3, select: {spot: {exists: true}}}]\n",
         workload_entry_read, &e);
    assert_int_equal(e.workload.shape.prefer_len, 2);
    assert_int_equal(e.workload.shape.prefer[0].weight, 10);
    assert_string_equal(term_text(&e.workload.shape.prefer[0], buf, sizeof buf), "disk In ssd");
    assert_int_equal(e.workload.shape.prefer[1].weight, -3);
    done(&f);
    READ(&f, "id: w\nprefer: {disk: ssd}\n", workload_entry_read, &e);
    assert_int_equal(e.workload.shape.prefer_len, 1);
    assert_int_equal(e.workload.shape.prefer[0].weight, 1);
    done(&f);
    READ(&f, "id: w\nprefer: {weight: 7, select: {disk: ssd}}\n", workload_entry_read, &e);
    assert_int_equal(e.workload.shape.prefer_len, 1);
    assert_int_equal(e.workload.shape.prefer[0].weight, 7);
    done(&f);
}

static void spread_near_and_apart(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct workload_entry e = {0};
    char buf[256];
    READ(
        &f,
        "id: w\nspread: [zone, {topology: rack, max_skew: 3, soft: true, select: {tier: front}, min_domains: 2, nodes: both}]\n"
        "apart: node\nnear: [{topology: zone, select: {app: db}, weight: 50}]\nlabels: {app: web, tier: front}\n",
        workload_entry_read, &e);
    const struct berth_shape *s = &e.workload.shape;
    assert_int_equal(s->spread_len, 2);
    assert_string_equal(s->spread[0].topology, "zone");
    assert_int_equal(s->spread[0].max_skew, 1);
    assert_string_equal(term_text(&s->spread[0].select, buf, sizeof buf), "app In web; tier In front");
    assert_int_equal(s->spread[1].max_skew, 3);
    assert_true(s->spread[1].soft);
    assert_int_equal(s->spread[0].min_domains, 0);
    assert_int_equal(s->spread[0].nodes, BERTH_SPREAD_POSSIBLE);
    assert_int_equal(s->spread[1].min_domains, 2);
    assert_int_equal(s->spread[1].nodes, BERTH_SPREAD_BOTH);
    assert_string_equal(term_text(&s->spread[1].select, buf, sizeof buf), "tier In front");
    assert_int_equal(s->near_len, 2);
    assert_false(s->near[0].apart);
    assert_int_equal(s->near[0].select.weight, 50);
    assert_string_equal(term_text(&s->near[0].select, buf, sizeof buf), "app In db");
    assert_true(s->near[1].apart);
    assert_string_equal(s->near[1].topology, "node");
    assert_int_equal(s->near[1].select.weight, 0);
    assert_string_equal(term_text(&s->near[1].select, buf, sizeof buf), "app In web; tier In front");
    done(&f);
}

static void instance_entry_is_read(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct berth_instance i = {0};
    READ(&f,
         "id: 7\npod: web/3\nnode: n\nstate: reserved\nsince: 9\ngpus: [0, 63]\nreplaces: '18446744073709551615'\n"
         "waits: [5, 6]\nusage: {cpu: {used: 500m, since: 1, limit: 2, limit_since: 2}}\nshape: {requests: {cpu: 1}}\n",
         instance_entry_read, &i);
    assert_int_equal(i.id, 7);
    assert_string_equal(i.workload, "web");
    assert_int_equal(i.ordinal, 3);
    assert_string_equal(i.node, "n");
    assert_int_equal(i.state, BERTH_RESERVED);
    assert_false(i.ready);
    assert_int_equal(i.since_ns, 9 * S);
    assert_true(i.gpus == ((uint64_t)1 << 63 | 1));
    assert_true(i.replaces == UINT64_MAX);
    assert_int_equal(i.waits_len, 2);
    assert_int_equal(i.waits[1], 6);
    assert_int_equal(i.usage_len, 1);
    assert_int_equal(i.usage[0].used, 500);
    assert_int_equal(i.usage[0].used_since_ns, S);
    assert_int_equal(i.usage[0].limit, 2000);
    assert_int_equal(i.usage[0].limit_since_ns, 2 * S);
    assert_int_equal(i.shape->requests[0].amount, 1000);
    done(&f);

    READ(&f, "id: 7\nworkload: web\nordinal: 4\nnode: n\n", instance_entry_read, &i);
    assert_int_equal(i.ordinal, 4);
    assert_int_equal(i.state, BERTH_RUNNING);
    assert_true(i.ready);
    assert_null(i.shape);
    done(&f);
    READ(&f, "id: 7\npod: web/0\nnode: n\nready: false\n", instance_entry_read, &i);
    assert_false(i.ready);
    done(&f);
    READ(&f, "id: 7\npod: web/0\nnode: n\nstate: starting\n", instance_entry_read, &i);
    assert_false(i.ready);
    done(&f);
}

static void resources_volumes_and_facts(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct berth_resource r = {0};
    READ(&f, "name: traffic\nkind: cumulative\nperiod: 30d\n", resource_entry_read, &r);
    assert_string_equal(r.name, "traffic");
    assert_int_equal(r.kind, BERTH_CUMULATIVE);
    assert_int_equal(r.period_ns, 30 * 86400 * S);
    done(&f);
    struct berth_volume v = {0};
    READ(&f, "id: v\nzone: z\nnode: n\ndriver: disk\nshared: true\n", volume_entry_read, &v);
    assert_string_equal(v.id, "v");
    assert_string_equal(v.zone, "z");
    assert_string_equal(v.node, "n");
    assert_string_equal(v.driver, "disk");
    assert_true(v.shared);
    done(&f);
    struct berth_fact t = {0};
    READ(&f, "kind: migration\nsubject: 4\nkey: k\nvalue: -1\nat: 3\nover: true\n", fact_entry_read, &t);
    assert_int_equal(t.kind, BERTH_FACT_MIGRATION);
    assert_string_equal(fact_kind_name(t.kind), "migration");
    assert_int_equal(t.subject, 4);
    assert_string_equal(t.key, "k");
    assert_int_equal(t.value, -1);
    assert_int_equal(t.at_ns, 3 * S);
    assert_true(t.over);
    done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_with_all_fields_is_read),
        cmocka_unit_test(node_and_workload_with_id_only_are_read),
        cmocka_unit_test(workload_with_all_fields_is_read),
        cmocka_unit_test(gpu_requests_have_short_forms),
        cmocka_unit_test(conditions_have_long_and_short_forms),
        cmocka_unit_test(preferences_have_weights),
        cmocka_unit_test(spread_near_and_apart),
        cmocka_unit_test(instance_entry_is_read),
        cmocka_unit_test(resources_volumes_and_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
