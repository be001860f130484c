/* spread_test.c - pods of one kind spread evenly over domains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static const char *const web_and_old[] = {"web", "old"}, *const only_old[] = {"old"};

/* Two nodes in zone a, one in zone b without cpu, one in no zone. */
static void nodes(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "a1", .zone = "a", .domain = "blue"});
    kit_node(k, (struct berth_node){.id = "a2", .zone = "a", .domain = "blue"});
    kit_node(k, (struct berth_node){.id = "b1", .zone = "b", LIST(allocatable, struct berth_amount, {"memory", 1})});
    kit_node(k, (struct berth_node){.id = "x1"});
}

static void emptiest_domain_sets_the_minimum(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t in_a, in_b, skew; /* existing pods */
        bool self, soft;           /* whether the pod itself counts */
        uint64_t want;
    } rows[] = {
        {"even",                     0, 0, 1, true,  false, 0},
        {"one above",                1, 0, 1, true,  false, 3},
        {"level again",              1, 1, 1, true,  false, 0},
        {"below the other",          0, 1, 1, true,  false, 0},
        {"a skew of two",            1, 0, 2, true,  false, 0},
        {"above a skew of two",      2, 0, 2, true,  false, 3},
        {"only others count",        1, 0, 1, false, false, 0},
        {"only others count, above", 2, 0, 1, false, false, 3},
        {"a preference",             5, 0, 1, true,  true,  0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_spread spread = {
            .topology = "zone",
            .select = TERM("app", 0, BERTH_IN, rows[i].self ? web_and_old : only_old, rows[i].self ? 2 : 1),
            .max_skew = rows[i].skew,
            .soft = rows[i].soft,
        };
        struct berth_shape shape = {
            .spread = &spread, .spread_len = 1, LIST(requests, struct berth_amount, {"cpu", 1})};
        nodes(&k);
        kit_workload(&k, "old", rows[i].in_a + rows[i].in_b, NULL);
        for (uint32_t n = 0; n < rows[i].in_a + rows[i].in_b; n++)
            kit_running(&k, "old", n, n < rows[i].in_a ? "a1" : "b1", 0);
        kit_workload(&k, "web", 1, &shape);
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "spread", "", rows[i].want);
    }
}

static void unusable_domain_does_not_set_the_minimum(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_spread spread = {.topology = "zone", .select = TERM_APP("web", 0), .max_skew = 1};
    nodes(&k);
    kit_workload(&k, "web", 3, &(struct berth_shape){.spread = &spread, .spread_len = 1, NAMES(domains, "blue")});
    kit_plan(&k, NULL);
    assert_string_equal(kit_order(&k, "web"), "a1 a1 a1");
}

static void a_node_without_the_label_refuses(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_spread spread = {.topology = "row", .select = TERM_APP("web", 0), .max_skew = 1};
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2", LIST(labels, struct berth_label, {"column", "1"})});
    kit_workload(&k, "web", 1, &(struct berth_shape){.spread = &spread, .spread_len = 1});
    kit_plan(&k, NULL);
    kit_expect(&k, "no node has a row", "spread", "", 2);
}

/* One pod in zone a, on a node of the blue pool. Zone b has a node of the blue pool, zone c only one of the red pool,
 * zone d only one with a taint. x has a zone, but no row. */
static void pools(struct kit *k)
{
    static const struct {
        const char *id, *zone, *pool;
        bool row, tainted;
    } rows[] = {
        {"a1", "a", "blue", true,  false},
        {"b1", "b", "blue", true,  false},
        {"c1", "c", "red",  true,  false},
        {"d1", "d", "blue", true,  true },
        {"x1", "x", "blue", false, false},
    };
    static const struct berth_taint taint = {"old", "", BERTH_NO_SCHEDULE};
    for (size_t i = 0; i < ROWS(rows); i++) {
        const struct berth_label labels[] = {
            {"pool", rows[i].pool},
            {"row",  "1"         },
        };
        kit_node(k, (struct berth_node){.id = rows[i].id,
                                        .zone = rows[i].zone,
                                        .labels = labels,
                                        .labels_len = rows[i].row ? 2 : 1,
                                        .taints = &taint,
                                        .taints_len = rows[i].tainted});
    }
}

/* Which nodes are refused besides those of full zones depends on which domains count as the emptiest. */
static void spread_nodes_policy_selects_domains(void **state)
{
    (void)state;
    static const struct {
        const char *label, *full; /* zones with a pod */
        enum berth_spread_nodes nodes;
        uint32_t min_domains;
        bool by_row; /* also spread over rows */
        uint64_t want;
    } rows[] = {
        {"possible: a and b are level",                  "abx",   BERTH_SPREAD_POSSIBLE,  0, false, 0},
        {"possible: x is empty",                         "ab",    BERTH_SPREAD_POSSIBLE,  0, false, 2},
        {"all: c and d are empty",                       "abx",   BERTH_SPREAD_ALL,       0, false, 3},
        {"all: none is empty",                           "abcdx", BERTH_SPREAD_ALL,       0, false, 0},
        {"required: d is empty",                         "abx",   BERTH_SPREAD_REQUIRED,  0, false, 3},
        {"required: the red pool is not",                "abdx",  BERTH_SPREAD_REQUIRED,  0, false, 0},
        {"tolerated: c is empty",                        "abx",   BERTH_SPREAD_TOLERATED, 0, false, 3},
        {"tolerated: d does not count",                  "abcx",  BERTH_SPREAD_TOLERATED, 0, false, 0},
        {"both: neither c nor d",                        "abx",   BERTH_SPREAD_BOTH,      0, false, 0},
        {"both: x is empty",                             "ab",    BERTH_SPREAD_BOTH,      0, false, 2},
        {"both: x has no row",                           "ab",    BERTH_SPREAD_BOTH,      0, true,  1},
        {"both: enough domains",                         "abx",   BERTH_SPREAD_BOTH,      3, false, 0},
        {"both: too few domains",                        "abx",   BERTH_SPREAD_BOTH,      4, false, 3},
        {"possible: too few domains",                    "abx",   BERTH_SPREAD_POSSIBLE,  4, false, 3},
        {"possible: too few domains, all of them empty", "",      BERTH_SPREAD_POSSIBLE,  4, false, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_spread spread[] = {
            {.topology = "zone",
             .select = TERM_APP("web", 0),
             .max_skew = 1,
             .min_domains = rows[i].min_domains,
             .nodes = rows[i].nodes},
            {.topology = "row",                  .select = TERM_APP("nobody",      0), .max_skew = 1, .nodes = rows[i].nodes},
        };
        const struct berth_term blue = TERM("pool", 0, BERTH_IN, (const char *const[]){"blue"}, 1);
        uint32_t pods = (uint32_t)strlen(rows[i].full);
        pools(&k);
        /* A request above every capacity keeps the pod waiting, so that its reasons can be read. */
        kit_workload(&k, "web", pods + 1,
                     &(struct berth_shape){.spread = spread,
                                           .spread_len = rows[i].by_row ? 2 : 1,
                                           .require = &blue,
                                           .require_len = 1,
                                           LIST(requests, struct berth_amount, {"nothing", 1})});
        for (uint32_t n = 0; n < pods; n++) {
            const char id[] = {rows[i].full[n], '1', '\0'};
            kit_running(&k, "web", n, id, 0);
        }
        kit_plan(&k, NULL);
        uint64_t nodes = kit_refusals(&k, "web", "spread", "");
        if (nodes != rows[i].want)
            fail_msg("%s: %llu nodes refuse", rows[i].label, (unsigned long long)nodes);
    }
}

static void stopping_pods_count_with_spread_all(void **state)
{
    (void)state;
    static const struct {
        enum berth_spread_nodes nodes;
        const char *want;
    } rows[] = {
        {BERTH_SPREAD_POSSIBLE, "b1 a1"},
        {BERTH_SPREAD_ALL,      "a1 b1"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_spread spread = {
            .topology = "zone", .select = TERM_APP("web", 0), .max_skew = 1, .nodes = rows[i].nodes};
        kit_node(&k, (struct berth_node){.id = "a1", .zone = "a"});
        kit_node(&k, (struct berth_node){.id = "b1", .zone = "b", .rank = 1});
        kit_workload(&k, "web", 2, &(struct berth_shape){.spread = &spread, .spread_len = 1});
        struct berth_instance old = {.id = 7, .workload = "web", .node = "a1", .state = BERTH_STOPPING};
        kit_check(&k, berth_instance_put(k.cluster, &old, &k.err));
        kit_plan(&k, "least_allocated");
        assert_string_equal(kit_order(&k, "web"), rows[i].want);
    }
}

static void plan_spreads_pods_evenly(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_spread spread = {.topology = "row", .select = TERM_APP("web", 0), .max_skew = 1};
    struct berth_shape shape = {.spread = &spread, .spread_len = 1, LIST(requests, struct berth_amount, {"cpu", 2000})};
    uint32_t in_row_1 = 0;
    kit_node(&k, (struct berth_node){.id = "n1", LIST(labels, struct berth_label, {"row", "1"})});
    kit_node(&k, (struct berth_node){.id = "n2", LIST(labels, struct berth_label, {"row", "2"})});
    kit_node(&k, (struct berth_node){.id = "n3", LIST(labels, struct berth_label, {"row", "2"})});
    kit_node(&k, (struct berth_node){.id = "n4"});
    kit_workload(&k, "web", 12, &shape); /* four to a node: row 1 is full after four, row 2 stops at five */
    kit_plan(&k, NULL);
    for (uint32_t i = 0; i < 9; i++)
        in_row_1 += strcmp(kit_node_of(&k, "web", i), "n1") == 0;
    assert_int_equal(in_row_1, 4);
    assert_string_equal(kit_node_of(&k, "web", 9), "");
    assert_int_equal(kit_refusals(&k, "web", "spread", ""), 3);
    assert_int_equal(kit_refusals(&k, "web", "short", "cpu"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emptiest_domain_sets_the_minimum),
        cmocka_unit_test(unusable_domain_does_not_set_the_minimum),
        cmocka_unit_test(a_node_without_the_label_refuses),
        cmocka_unit_test(spread_nodes_policy_selects_domains),
        cmocka_unit_test(stopping_pods_count_with_spread_all),
        cmocka_unit_test(plan_spreads_pods_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
