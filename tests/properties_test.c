/* properties_test.c - thousands of random clusters; see properties.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "properties.h"

static void every_cluster_has_the_properties(void **state)
{
    (void)state;
    assert_int_equal(seeds_check(1, 3000), 0);
}

/* A resource that becomes known after a freeze has no column yet; it was once taken for the GPUs' one. */
static void what_nobody_has_is_nowhere(void **state)
{
    (void)state;
    struct berth_cluster *c = berth_cluster_new();
    const struct berth_gpu gpus[] = {
        {"T4", GIB},
        {"T4", GIB}
    };
    const struct berth_amount wants[] = {
        {"example.com/fpga", 1}
    };
    struct berth_node node = {.id = "n1", .gpus = gpus, .gpus_len = 2};
    struct berth_workload w = {
        .id = "w1", .replicas = 3, .shape = {.requests = wants, .requests_len = 1}
    };
    struct berth_plan *plan = NULL;

    assert_int_equal(berth_node_put(c, &node, NULL), 0);
    berth_snapshot_free(berth_freeze(c, 1, 1));
    assert_int_equal(berth_workload_put(c, &w, NULL), 0);
    struct berth_snapshot *s = berth_freeze(c, 1, 1);
    assert_int_equal(berth_plan_make(s, NULL, &plan, NULL), 0);
    assert_int_equal(berth_plan_actions(plan), 0);
    berth_plan_free(plan);
    berth_snapshot_free(s);
    berth_cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_has_is_nowhere),
        cmocka_unit_test(every_cluster_has_the_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
