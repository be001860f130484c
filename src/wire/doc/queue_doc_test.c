/* queue_doc_test.c - documents of quotas, queues, policies, windows, domains and routes. */
#include "wire/doc/queue_doc.h"

#include "wire/doc/doc_kit_test.h"

#define HOUR_NS (INT64_C(3600) * 1000000000)

static void quota_document_is_read_or_refused(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g = given(
        "{id: vision, level: 7, weight: 3, quota: {limits: {gpu: 8, cpu: 64, jobs: 10}, guarantees: {gpu: 0.5},"
        " admitted: {pods: 100}, totals: [{resource: gpu, hours: 100, period: 30d}, {resource: tape, hours: 2}]}}");
    struct group_doc d = {0};
    READ(&g, group_doc_read, &d);
    assert_int_equal(d.level, 7);
    assert_int_equal(d.weight, 3);
    assert_int_equal(d.quota.limits_len, 3);
    assert_int_equal(d.quota.limits[0].amount, 8000); /* thousandths of a GPU */
    assert_int_equal(d.quota.limits[1].amount, 64000);
    assert_int_equal(d.quota.limits[2].amount, 10);
    assert_int_equal(d.quota.guarantees[0].amount, 500);
    assert_int_equal(d.quota.admitted[0].amount, 100);
    assert_int_equal(d.quota.totals_len, 2);
    assert_int_equal(d.quota.totals[0].limit, 100ll * 3600 * 1000);
    assert_int_equal(d.quota.totals[0].period_ns, 720 * HOUR_NS);
    assert_int_equal(d.quota.totals[1].limit, 7200);
    assert_string_equal(quota_amount_text("gpu", 500, &g.arena), "500m gpu");
    assert_string_equal(quota_amount_text("gpu", 8000, &g.arena), "8 gpu");

    static const struct refusal rows[] = {
        {"{id: g, quota: {limits: {gpu: -1}}}",                                              "quota: limits: gpu: expected an amount of 0"},
        {"{id: g, quota: {limits: [gpu]}}",                                                  "quota: limits: expected an object"          },
        {"{id: g, quota: {most: {}}}",                                                       "most"                                       },
        {"{id: g, quota: {totals: [{hours: 3}]}}",                                           "totals[0]: resource: missing"               },
        {"{id: g, quota: {totals: [{resource: gpu}]}}",                                      "totals[0]: hours: missing"                  },
        {"{id: g, quota: {totals: {resource: gpu, hours: 1.5}}}",                            "expected a whole number of hours"           },
        {"{id: g, quota: {totals: {resource: memory, hours: 9999}}}",                        "at most"                                    },
        {"{id: g, quota: {totals: [{resource: gpu, hours: 1}, {resource: gpu, hours: 2}]}}", "listed already"                             },
        {"{id: g, quota: {totals: {resource: gpu, hours: 1, period: 1s}}}",                  "at least a minute"                          },
        {"{id: g, level: 101}",                                                              "level: expected a whole number from 0"      },
        {"{id: g, weight: 0}",                                                               "weight: expected a whole number from 1"     },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, group_doc_read(bad.doc, &bad.arena, &d, &bad.err));
    }
}

static void queue_document_is_read_or_refused(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g = given(
        "{id: prod, parent: all, priority: 5, priority_class: 100, weight: 2, share: true, users: ann, groups: [red],"
        " domains: [east], policy: fair, time_limit: 1h, max_time: 2h, quota: {limits: {gpu: 1}}}");
    struct queue_doc d = {0};
    READ(&g, queue_doc_read, &d);
    assert_string_equal(d.parent, "all");
    assert_int_equal(d.priority_class, 100);
    assert_true(d.share);
    assert_int_equal(d.users_len, 1);
    assert_string_equal(d.domains[0], "east");
    assert_int_equal(d.time_limit_ns, HOUR_NS);
    assert_int_equal(d.max_time_ns, 2 * HOUR_NS);

    static const struct refusal rows[] = {
        {"{id: q, time_limit: 2h, max_time: 1h}", "time_limit: is longer than max_time"},
        {"{id: q, time_limit: 0s}",               "time_limit: expected a duration"    },
        {"{id: q, weight: 1000001}",              "weight: expected"                   },
        {"{id: q, jobs: 3}",                      "jobs"                               },
        {"{parent: q}",                           "id: missing"                        },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, queue_doc_read(bad.doc, &bad.arena, &d, &bad.err));
    }
}

static void policy_document_is_read_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *doc, *ranking;
    } good[] = {
        {"{id: p}",                              "fifo"       },
        {"{id: p, weights: {age: 10, size: 1}}", "multifactor"},
        {"{id: p, weights: {size: -100}}",       "multifactor"},
        {"{id: p, formula: 'return age'}",       "formula"    },
        {"{id: p, ranking: sjf}",                "sjf"        },
    };
    struct policy_doc d = {0};
    for (size_t i = 0; i < COUNT(good); i++) {
        CLEANUP(given) struct given g = given(good[i].doc);
        READ(&g, policy_doc_read, &d);
        assert_string_equal(d.ranking, good[i].ranking);
    }
    static const struct refusal rows[] = {
        {"{id: p, ranking: formula}",                "formula: missing"                        },
        {"{id: p, ranking: sjf, formula: 'x'}",      "formula: is only for the ranking formula"},
        {"{id: p, ranking: sjf, weights: {age: 1}}", "weights: are only for the ranking"       },
        {"{id: p, weights: {age: 0}}",               "weights: age: expected a whole number"   },
        {"{id: p, weights: {age: -101}}",            "weights: age: expected a whole number"   },
        {"{id: p, formula: 3}",                      "formula: expected the text"              },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, policy_doc_read(bad.doc, &bad.arena, &d, &bad.err));
    }
}

static void window_document_is_read_or_refused(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: w, start: 100, duration: 1h, nodes: [n1], users: [ann], note: demo}");
    struct window_doc d = {0};
    READ(&g, window_doc_read, &d);
    assert_int_equal(d.end_ns - d.start_ns, HOUR_NS);
    CLEANUP(given) struct given off = given("{id: w, start: 100, end: 200, require: {rack: r1}, maintenance: true}");
    READ(&off, window_doc_read, &d);
    assert_int_equal(d.require_len, 1);

    static const struct refusal rows[] = {
        {"{id: w, end: 200, nodes: [a], maintenance: true}",                              "start: missing"         },
        {"{id: w, start: 100, nodes: [a], maintenance: true}",                            "end: missing"           },
        {"{id: w, start: 100, end: 200, duration: 1h, nodes: [a], maintenance: true}",    "either duration or end" },
        {"{id: w, start: 100, end: 100, nodes: [a], maintenance: true}",                  "end: is not after start"},
        {"{id: w, start: 100, end: 200, maintenance: true}",                              "nodes: missing"         },
        {"{id: w, start: 100, end: 200, nodes: [a], require: {r: a}, maintenance: true}", "either require or nodes"},
        {"{id: w, start: 100, end: 200, nodes: [a]}",                                     "users: missing"         },
        {"{id: w, start: 100, end: 200, nodes: [a], users: [b], maintenance: true}",
         "users and groups are not allowed"                                                                        },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, window_doc_read(bad.doc, &bad.arena, &d, &bad.err));
    }
}

static void domain_document_is_read_or_refused(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: east, require: {zone: [a, b]}, keep: {cpu: 8}}");
    struct domain_doc d = {0};
    READ(&g, domain_doc_read, &d);
    assert_int_equal(d.keep[0].amount, 8000);
    static const struct refusal row = {"{id: d, nodes: [a], require: {zone: b}}", "either require or nodes"};
    CLEANUP(given) struct given bad = given(row.doc);
    REFUSED(&row, &bad, domain_doc_read(bad.doc, &bad.arena, &d, &bad.err));
}

static void routes(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{rules: [{when: {gpus_min: 8, waited: 1h}, queue: big}, {queue: small}]}");
    struct routes_doc d = {0};
    READ(&g, routes_doc_read, &d);
    assert_int_equal(d.rules_len, 2);
    assert_int_equal(d.rules[0].gpus_min, 8);
    assert_int_equal(d.rules[0].waited_ns, HOUR_NS);
    assert_int_equal(d.rules[1].gpus_min, -1);
    assert_string_equal(d.rules[1].to, "small");
    static const struct refusal rows[] = {
        {"{rules: [{when: {gpus_min: 8}}]}",            "rules[0]: queue: missing"                  },
        {"{rules: [{when: {gpus_min: -8}, queue: q}]}", "rules[0]: when: gpus_min: expected a whole"},
        {"{rules: [{when: {colour: red}, queue: q}]}",  "colour"                                    },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, routes_doc_read(bad.doc, &bad.arena, &d, &bad.err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quota_document_is_read_or_refused),  cmocka_unit_test(queue_document_is_read_or_refused),
        cmocka_unit_test(policy_document_is_read_or_refused), cmocka_unit_test(window_document_is_read_or_refused),
        cmocka_unit_test(domain_document_is_read_or_refused), cmocka_unit_test(routes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
