/* state_test.c - only ready nodes get new pods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void only_ready_nodes_take_pods(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        enum berth_node_state node;
        uint64_t want;
    } rows[] = {
        {"ready",    BERTH_NODE_READY,    0},
        {"joining",  BERTH_NODE_JOINING,  1},
        {"cordoned", BERTH_NODE_CORDONED, 1},
        {"draining", BERTH_NODE_DRAINING, 1},
        {"lost",     BERTH_NODE_LOST,     1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        kit_node(&k, (struct berth_node){.id = "n1", .state = rows[i].node});
        kit_workload(&k, "web", 1, NULL);
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "state", "", rows[i].want);
    }
}

static void each_node_is_counted(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1", .state = BERTH_NODE_JOINING});
    kit_node(&k, (struct berth_node){.id = "n2", .state = BERTH_NODE_CORDONED});
    kit_node(&k, (struct berth_node){.id = "n3"});
    kit_workload(&k, "web", 1, &(struct berth_shape){.node = "n1"});
    kit_plan(&k, NULL);
    assert_int_equal(kit_refusals(&k, "web", "state", ""), 2);
    assert_int_equal(kit_refusals(&k, "web", "name", ""), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_ready_nodes_take_pods),
        cmocka_unit_test(each_node_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
