/* name_test.c - the required node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void only_the_named_node_is_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *label, *named, *want;
        uint64_t refusals;
    } rows[] = {
        {"none named",           "",   "n1", 0},
        {"the first",            "n1", "n1", 0},
        {"the last",             "n3", "n3", 0},
        {"unknown",              "n4", "",   3},
        {"a part of a name",     "n",  "",   3},
        {"names differ in case", "N1", "",   3},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        kit_node(&k, (struct berth_node){.id = "n1"});
        kit_node(&k, (struct berth_node){.id = "n2"});
        kit_node(&k, (struct berth_node){.id = "n3"});
        kit_workload(&k, "web", 1, &(struct berth_shape){.node = rows[i].named});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "name", "", rows[i].refusals);
        assert_string_equal(kit_node_of(&k, "web", 0), rows[i].want);
    }
}

static void a_named_node_may_be_full(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {.node = "n1", LIST(requests, struct berth_amount, {"cpu", 8001})};
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_workload(&k, "web", 1, &shape);
    kit_plan(&k, NULL);
    assert_int_equal(kit_refusals(&k, "web", "name", ""), 1);
    assert_int_equal(kit_refusals(&k, "web", "short", "cpu"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_named_node_is_accepted),
        cmocka_unit_test(a_named_node_may_be_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
