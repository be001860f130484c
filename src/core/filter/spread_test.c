/* spread_test.c - pods of one kind, evenly over domains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/kit_test.h"

static const char *const web_and_old[] = {"web", "old"}, *const only_old[] = {"old"};

/* Two nodes in zone a, one in zone b that has no cpu, one in no zone. */
static void nodes(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "a1", .zone = "a", .domain = "blue"});
    kit_node(k, (struct berth_node){.id = "a2", .zone = "a", .domain = "blue"});
    kit_node(k, (struct berth_node){.id = "b1", .zone = "b", LIST(allocatable, struct berth_amount, {"memory", 1})});
    kit_node(k, (struct berth_node){.id = "x1"});
}

static void the_emptiest_domain_sets_the_measure(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t in_a, in_b, skew; /* pods that are there */
        bool self, soft;           /* does the pod itself count? */
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

static void a_domain_that_cannot_take_it_sets_no_measure(void **state)
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

static void a_whole_plan_is_even(void **state)
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
        cmocka_unit_test(the_emptiest_domain_sets_the_measure),
        cmocka_unit_test(a_domain_that_cannot_take_it_sets_no_measure),
        cmocka_unit_test(a_node_without_the_label_refuses),
        cmocka_unit_test(a_whole_plan_is_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
