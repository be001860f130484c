/* labels_test.c - required conditions on node labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void conditions_hold_or_refuse(void **state)
{
    (void)state;
    static const struct {
        const char *label, *has; /* the value of the node's label; NULL: it has none */
        enum berth_match match;
        const char *values[2];
        size_t values_len;
        uint64_t want;
    } rows[] = {
        {"in",                       "ssd", BERTH_IN,         {"ssd"},        1, 0},
        {"in, second value",         "ssd", BERTH_IN,         {"hdd", "ssd"}, 2, 0},
        {"in, other value",          "hdd", BERTH_IN,         {"ssd"},        1, 1},
        {"in, missing",              NULL,  BERTH_IN,         {"ssd"},        1, 1},
        {"in, empty value",          "",    BERTH_IN,         {""},           1, 0},
        {"in, missing is not empty", NULL,  BERTH_IN,         {""},           1, 1},
        {"not in",                   "hdd", BERTH_NOT_IN,     {"ssd", "nvm"}, 2, 0},
        {"not in, second value",     "nvm", BERTH_NOT_IN,     {"ssd", "nvm"}, 2, 1},
        {"not in, missing",          NULL,  BERTH_NOT_IN,     {"ssd"},        1, 0},
        {"exists",                   "x",   BERTH_EXISTS,     {NULL},         0, 0},
        {"exists, empty value",      "",    BERTH_EXISTS,     {NULL},         0, 0},
        {"exists, missing",          NULL,  BERTH_EXISTS,     {NULL},         0, 1},
        {"exists not",               NULL,  BERTH_NOT_EXISTS, {NULL},         0, 0},
        {"exists not, there",        "",    BERTH_NOT_EXISTS, {NULL},         0, 1},
        {"greater",                  "10",  BERTH_GT,         {"9"},          1, 0},
        {"greater, equal",           "9",   BERTH_GT,         {"9"},          1, 1},
        {"greater, negative",        "-3",  BERTH_GT,         {"-4"},         1, 0},
        {"greater, no number",       "9x",  BERTH_GT,         {"1"},          1, 1},
        {"greater, missing",         NULL,  BERTH_GT,         {"1"},          1, 1},
        {"less",                     "9",   BERTH_LT,         {"10"},         1, 0},
        {"less, equal",              "10",  BERTH_LT,         {"10"},         1, 1},
        {"less, missing",            NULL,  BERTH_LT,         {"10"},         1, 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_label disk = {"disk", rows[i].has};
        const struct berth_term term = TERM("disk", 0, rows[i].match, rows[i].values, rows[i].values_len);
        kit_node(&k, (struct berth_node){.id = "n1", .labels = &disk, .labels_len = rows[i].has != NULL});
        kit_workload(&k, "web", 1, &(struct berth_shape){.require = &term, .require_len = 1});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "labels", "", rows[i].want);
    }
}

static void all_of_a_term_and_any_of_the_terms(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const char *const red[] = {"red"};
    const struct berth_expr both[] = {
        {"disk",   BERTH_EXISTS, NULL, 0},
        {"colour", BERTH_IN,     red,  1},
    };
    const struct berth_term one_of[] = {
        {both,     2, 0},
        {both + 1, 1, 0},
        {both,     2, 0},
    };
    kit_node(&k, (struct berth_node){.id = "n1", LIST(labels, struct berth_label, {"colour", "red"})});
    kit_node(&k, (struct berth_node){.id = "n2", LIST(labels, struct berth_label, {"disk", "ssd"})});
    kit_node(&k, (struct berth_node){.id = "n3"});
    kit_workload(&k, "both", 1, &(struct berth_shape){.require = one_of, .require_len = 1});
    kit_workload(&k, "second", 1, &(struct berth_shape){.require = one_of, .require_len = 2});
    kit_workload(&k, "first", 1, &(struct berth_shape){.require = one_of + 1, .require_len = 2});
    kit_plan(&k, NULL);
    assert_int_equal(kit_refusals(&k, "both", "labels", ""), 3);
    assert_string_equal(kit_node_of(&k, "second", 0), "n1");
    assert_string_equal(kit_node_of(&k, "first", 0), "n1");
}

static void empty_term_matches_no_node(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_term none = {0};
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_workload(&k, "web", 1, &(struct berth_shape){.require = &none, .require_len = 1});
    kit_plan(&k, NULL);
    assert_int_equal(kit_refusals(&k, "web", "labels", ""), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_hold_or_refuse),
        cmocka_unit_test(all_of_a_term_and_any_of_the_terms),
        cmocka_unit_test(empty_term_matches_no_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
