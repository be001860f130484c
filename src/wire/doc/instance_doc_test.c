/* instance_doc_test.c - documents of instances and facts read back as written; reports of agents. */
#include "wire/doc/doc_kit_test.h"

#include <errno.h>

static void documents_round_trip(void **state)
{
    (void)state;
    static const uint64_t waits[] = {3, 4};
    static const struct berth_usage usage[] = {
        {"cpu",    1500, 5, 2000, 6},
        {"memory", 1000, 0, 0,    0},
    };
    static const struct port_report ports[] = {
        {"http", 10000}
    };
    static const struct berth_amount peak[] = {
        {"memory", 2000}
    };
    static const char *const resources[] = {"io", "memory"};
    static const struct berth_label taken[] = {
        {"card", "card1"},
    };
    const struct instance_doc want = {
        .meta = {.created_ns = 77,      .generation = 2},
        .instance = { .id = 17,
                 .workload = "web.alice",
                 .ordinal = 3,
                 .node = "n1",
                 .state = BERTH_RESERVED,
                 .since_ns = -1,
                 .gpus = (uint64_t)1 << 63 | 1,
                 .replaces = 9,
                 .waits = waits,
                 .waits_len = 2,
                 .usage = usage,
                 .usage_len = 2},
        .generation = 5,
        .epoch = 3,
        .seq = 6,
        .error = "no such file",
        .started_ns = 11,
        .counted_ns = 12,
        .peak = peak,
        .peak_len = 1,
        .ports = ports,
        .ports_len = 1,
        .words = {                           .exit_reported = true,
                 .progress_reported = true,
                 .progress = 420,
                 .note = "epoch 3",
                 .unenforced = resources,
                 .unenforced_len = 2,
                 .over = resources,
                 .over_len = 1,
                 .foreign_port = 10016,
                 .exclusive = taken,
                 .exclusive_len = 1},
    };
    CLEANUP(given) struct given g = given("{}");
    json_decref(g.doc);
    g.doc = instance_doc_make(&want);
    struct instance_doc d = {0};
    READ(&g, instance_doc_read, &d);
    assert_string_equal(d.meta.id, "17");
    assert_int_equal(d.meta.created_ns, 77);
    assert_int_equal(d.meta.generation, 2);
    assert_int_equal(d.instance.id, 17);
    assert_string_equal(d.instance.workload, "web.alice");
    assert_int_equal(d.instance.ordinal, 3);
    assert_string_equal(d.instance.node, "n1");
    assert_int_equal(d.instance.state, BERTH_RESERVED);
    assert_false(d.instance.ready);
    assert_int_equal(d.instance.since_ns, -1);
    assert_true(d.instance.gpus == want.instance.gpus);
    assert_int_equal(d.instance.replaces, 9);
    assert_int_equal(d.instance.waits_len, 2);
    assert_int_equal(d.instance.waits[1], 4);
    assert_int_equal(d.instance.usage_len, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(d.instance.usage[i].resource, usage[i].resource);
        assert_int_equal(d.instance.usage[i].used, usage[i].used);
        assert_int_equal(d.instance.usage[i].used_since_ns, usage[i].used_since_ns);
        assert_int_equal(d.instance.usage[i].limit, usage[i].limit);
        assert_int_equal(d.instance.usage[i].limit_since_ns, usage[i].limit_since_ns);
    }
    assert_int_equal(d.generation, 5);
    assert_int_equal(d.epoch, 3);
    assert_int_equal(d.seq, 6);
    assert_string_equal(d.error, "no such file");
    assert_true(d.started_ns == 11 && d.counted_ns == 12 && d.peak_len == 1);
    assert_string_equal(d.peak[0].resource, "memory");
    assert_int_equal(d.peak[0].amount, 2000);
    assert_int_equal(d.ports_len, 1);
    assert_string_equal(d.ports[0].endpoint, "http");
    assert_int_equal(d.ports[0].port, 10000);
    assert_true(d.words.exit_reported && d.words.exit == 0);
    assert_int_equal(d.words.progress, 420);
    assert_string_equal(d.words.note, "epoch 3");
    assert_int_equal(d.words.unenforced_len, 2);
    assert_string_equal(d.words.unenforced[1], "memory");
    assert_string_equal(d.words.over[0], "io");
    assert_int_equal(d.words.foreign_port, 10016);
    assert_string_equal(d.words.exclusive[0].value, "card1");
}

static void a_plain_instance_is_a_short_document(void **state)
{
    (void)state;
    const struct instance_doc want = {
        .instance = {.id = 1, .workload = "7", .node = "n", .state = BERTH_RUNNING, .ready = true},
        .generation = 1,
    };
    CLEANUP(given)
    struct given g = given("{id: 1, workload: '7', ordinal: 0, node: n, state: running, ready: true, of: 1}");
    CLEANUP(json) json_t *doc = instance_doc_make(&want);
    assert_true(json_equal(doc, g.doc));
}

/* Usage counts from the first start, or from the end of the recorded usage. */
static void use_counts_from_first_start(void **state)
{
    (void)state;
    static const struct {
        const char *doc;
        int64_t want_s;
    } rows[] = {
        {"{id: 1, pod: a/0, node: n}",                                                               0  },
        {"{id: 1, pod: a/0, node: n, started: 1970-01-01T00:01:00Z}",                                60 },
        {"{id: 1, pod: a/0, node: n, started: 1970-01-01T00:01:00Z, counted: 1970-01-01T00:02:00Z}", 120},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        struct instance_doc d;
        READ(&g, instance_doc_read, &d);
        assert_int_equal(d.instance.counted_ns, rows[i].want_s * 1000000000);
    }
}

static void invalid_instances_are_rejected(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"{pod: a/0, node: n}",                                             "id: missing"                },
        {"{id: 0, pod: a/0, node: n}",                                      "id: missing"                },
        {"{id: '18446744073709551615', pod: a/0, node: n}",                 "id: at most"                },
        {"{id: 1, node: n}",                                                "pod: missing"               },
        {"{id: 1, pod: a/0}",                                               "node: missing"              },
        {"{id: 1, pod: a/0, node: n, state: failed}",                       "state: expected one of"     },
        {"{id: 1, pod: a/0, node: n, ports: [{port: 1}]}",                  "ports[0]: endpoint: missing"},
        {"{id: 1, pod: a/0, node: n, ports: [{endpoint: x}]}",              "ports[0]: port: missing"    },
        {"{id: 1, pod: a/0, node: n, ports: [{endpoint: x, port: 65536}]}", "ports[0]: port: expected"   },
        {"{id: 1, pod: a/0, node: n, of: -1}",                              "of: expected"               },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        struct instance_doc d = {.seq = 5};
        REFUSED(&rows[i], &g, instance_doc_read(g.doc, &g.arena, &d, &g.err));
        assert_int_equal(d.seq, 5);
    }
}

static void facts_round_trip(void **state)
{
    (void)state;
    static const struct {
        struct berth_fact fact;
        const char *id;
    } rows[] = {
        {{.kind = BERTH_FACT_MIGRATION, .subject = 17, .value = 2, .at_ns = 123}, "migration/17"},
        {{.kind = BERTH_FACT_SINCE, .key = "web/0", .value = -5, .over = true},   "since/web/0" },
        {{.kind = BERTH_FACT_SINCE, .key = "17", .value = 1},                     "since//17"   },
        {{.kind = BERTH_FACT_SINCE, .key = "/x", .value = 1},                     "since///x"   },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given("{}");
        json_decref(g.doc);
        g.doc = fact_doc_make(&rows[i].fact);
        struct doc_meta meta = {0};
        struct berth_fact fact = {0};
        READ(&g, fact_doc_read, &meta, &fact);
        assert_string_equal(meta.id, rows[i].id);
        assert_string_equal(fact_doc_id(&rows[i].fact, &g.arena), rows[i].id);
        assert_int_equal(fact.kind, rows[i].fact.kind);
        assert_int_equal(fact.subject, rows[i].fact.subject);
        assert_int_equal(fact.value, rows[i].fact.value);
        assert_int_equal(fact.at_ns, rows[i].fact.at_ns);
        assert_int_equal(fact.over, rows[i].fact.over);

        struct berth_fact named = {0};
        assert_int_equal(fact_doc_id_parse(rows[i].id, &named), 0);
        assert_int_equal(named.kind, rows[i].fact.kind);
        assert_int_equal(named.subject, rows[i].fact.subject);
        assert_string_equal(named.key ? named.key : "", rows[i].fact.key ? rows[i].fact.key : "");
    }
    static const char *const no_ids[] = {
        "", "since", "since/", "/1", "sinc/1", "since1/1", "migration/99999999999999999999"};
    for (size_t i = 0; i < COUNT(no_ids); i++) {
        struct berth_fact named = {.value = 5};
        assert_int_equal(fact_doc_id_parse(no_ids[i], &named), -EINVAL);
        assert_int_equal(named.value, 5);
    }
    struct doc_meta meta = {0};
    struct berth_fact fact = {0};
    CLEANUP(given) struct given bad = given("{value: 1}");
    assert_true(fact_doc_read(bad.doc, &bad.arena, &meta, &fact, &bad.err) < 0);
    assert_string_equal(bad.err.text, "kind: missing");
}

static void report_is_parsed(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g = given("{epoch: 3, seq: 9, instances: [{id: 1, state: running, usage: {cpu: 500m}, "
                           "ports: [{endpoint: http, port: 10001}]}, {id: 2, state: failed, error: oom, ready: false}, "
                           "{id: 3, state: running, ready: false}]}");
    struct report_doc d = {0};
    READ(&g, report_doc_read, &d);
    assert_int_equal(d.epoch, 3);
    assert_int_equal(d.seq, 9);
    assert_int_equal(d.items_len, 3);
    assert_int_equal(d.items[0].id, 1);
    assert_int_equal(d.items[0].state, REPORT_RUNNING);
    assert_true(d.items[0].ready);
    assert_int_equal(d.items[0].usage[0].amount, 500);
    assert_int_equal(d.items[0].ports[0].port, 10001);
    assert_int_equal(d.items[1].state, REPORT_FAILED);
    assert_string_equal(d.items[1].error, "oom");
    assert_false(d.items[1].ready);
    assert_false(d.items[2].ready);

    CLEANUP(given) struct given heartbeat = given("{epoch: 3, seq: 10, instances: []}");
    READ(&heartbeat, report_doc_read, &d);
    assert_int_equal(d.items_len, 0);
    assert_false(d.machine_reported);

    CLEANUP(given)
    struct given words = given(
        "{epoch: 3, seq: 11, node: {usage: {cpu: 3, memory: 1Gi}, conditions: [{type: disk, text: full}], probed: "
        "{cpus: 4}}, instances: [{id: 2, state: failed, exit: 137, progress: 1000, note: done, unenforced: [cpu], "
        "over: [memory], exclusive: {card: card0}}]}");
    READ(&words, report_doc_read, &d);
    assert_true(d.machine_reported);
    assert_int_equal(d.usage[0].amount, 3000);
    assert_string_equal(d.conditions[0].text, "full");
    assert_int_equal(json_object_size(d.probed), 1);
    assert_int_equal(d.items[0].words.exit, 137);
    assert_int_equal(d.items[0].words.progress, 1000);
    assert_string_equal(d.items[0].words.over[0], "memory");
    assert_string_equal(d.items[0].words.exclusive[0].key, "card");
}

static void invalid_reports_are_rejected(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"{seq: 1}",                                                                      "epoch: missing"               },
        {"{epoch: 1}",                                                                    "seq: missing"                 },
        {"{epoch: 0, seq: 1}",                                                            "epoch: missing"               },
        {"{epoch: 1.5, seq: 1}",                                                          "epoch: expected"              },
        {"{epoch: 1, seq: 1, instances: {}}",                                             "instances: expected a list"   },
        {"{epoch: 1, seq: 1, instances: [{state: running}]}",                             "instances[0]: id: missing"    },
        {"{epoch: 1, seq: 1, instances: [{id: 1}]}",                                      "instances[0]: state: missing" },
        {"{epoch: 1, seq: 1, instances: [{id: 1, state: dead}]}",                         "instances[0]: state: expected"},
        {"{epoch: 1, seq: 1, instances: [{id: -1, state: ended}]}",                       "instances[0]: id: expected"   },
        {"{epoch: 1, seq: 1, labels: {}}",                                                "unknown key"                  },
        {"{epoch: 1, seq: 1, instances: [{id: 1, state: ended, exit: 256}]}",             "exit: expected"               },
        {"{epoch: 1, seq: 1, instances: [{id: 1, state: running, progress: 1001}]}",      "progress: expected"           },
        {"{epoch: 1, seq: 1, instances: [{id: 1, state: running, foreign_port: 65536}]}", "foreign_port: expected"       },
        {"{epoch: 1, seq: 1, instances: [{id: 1, state: running, foreign_port: 0}]}",     "foreign_port: expected"       },
        {"{epoch: 1, seq: 1, instances: [{id: 1, state: running, unenforced: cpu}]}",     "unenforced: expected"         },
        {"{epoch: 1, seq: 1, instances: [{id: 1, state: running, exclusive: {a: 1}}]}",   "exclusive: a: expected"       },
        {"{epoch: 1, seq: 1, node: {labels: {}}}",                                        "node: unknown key"            },
        {"{epoch: 1, seq: 1, node: {conditions: [{text: x}]}}",                           "conditions[0]: type: missing" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        struct report_doc d = {.seq = 5};
        REFUSED(&rows[i], &g, report_doc_read(g.doc, &g.arena, &d, &g.err));
        assert_int_equal(d.seq, 5);
    }
}

static void a_long_error_is_cut_at_a_character(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{epoch: 1, seq: 1, instances: [{id: 1, state: failed}]}");
    char text[600] = "";
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i + 1, "\xc3\xa9", 3); /* from an odd byte on, so that the limit is within a character */
    text[0] = '-';
    json_t *item = json_array_get(json_object_get(g.doc, "instances"), 0);
    assert_int_equal(json_object_set_new(item, "error", json_string(text)), 0);
    struct report_doc d = {0};
    READ(&g, report_doc_read, &d);
    assert_int_equal(strlen(d.items[0].error), 511);
    CLEANUP(json) json_t *valid = json_string(d.items[0].error);
    assert_non_null(valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_round_trip),
        cmocka_unit_test(a_plain_instance_is_a_short_document),
        cmocka_unit_test(use_counts_from_first_start),
        cmocka_unit_test(invalid_instances_are_rejected),
        cmocka_unit_test(facts_round_trip),
        cmocka_unit_test(report_is_parsed),
        cmocka_unit_test(invalid_reports_are_rejected),
        cmocka_unit_test(a_long_error_is_cut_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
