/* per_node_test.c - the maximum number of pods of a workload per node. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void existing_pods_count(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t most, there, others;
        uint64_t want;
    } rows[] = {
        {"no limit",             0, 5, 0, 0},
        {"the first",            1, 0, 0, 0},
        {"one is there",         1, 1, 0, 1},
        {"the last",             3, 2, 0, 0},
        {"as many as allowed",   3, 3, 0, 1},
        {"more than allowed",    1, 2, 0, 1},
        {"of others any number", 1, 0, 3, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        kit_node(&k, (struct berth_node){.id = "n1"});
        kit_workload(&k, "web", 1 + rows[i].there, &(struct berth_shape){.max_per_node = rows[i].most});
        for (uint32_t n = 0; n < rows[i].there; n++)
            kit_running(&k, "web", 1 + n, "n1", 0);
        kit_workload(&k, "old", rows[i].others, NULL);
        for (uint32_t n = 0; n < rows[i].others; n++)
            kit_running(&k, "old", n, "n1", 0);
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "per-node", "", rows[i].want);
    }
}

static void pods_of_one_plan_count(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_workload(&k, "web", 5, &(struct berth_shape){.max_per_node = 2});
    kit_plan(&k, NULL);
    assert_string_equal(kit_order(&k, "web"), "n1 n1 n2 n2");
    assert_int_equal(kit_refusals(&k, "web", "per-node", ""), 2);
}

static void workloads_of_equal_shape_count_separately(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {.max_per_node = 1};
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_workload(&k, "a", 2, &shape);
    kit_workload(&k, "b", 2, &shape);
    kit_plan(&k, NULL);
    assert_string_equal(kit_order(&k, "a"), "n1");
    assert_string_equal(kit_order(&k, "b"), "n1");
}

static void limit_above_maximum_is_rejected(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_workload w = {.id = "web", .replicas = 1, .shape = {.max_per_node = BERTH_REPLICAS_MAX}};
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_check(&k, berth_workload_put(k.cluster, &w, &k.err));
    kit_plan(&k, NULL);
    assert_string_equal(kit_order(&k, "web"), "n1");
    w.shape.max_per_node = BERTH_REPLICAS_MAX + 1;
    assert_int_equal(berth_workload_put(k.cluster, &w, &k.err), -EINVAL);
    assert_non_null(strstr(k.err.text, "10000001 pods per node"));
    w.shape.max_per_node = UINT32_MAX;
    assert_int_equal(berth_workload_put(k.cluster, &w, &k.err), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(existing_pods_count),
        cmocka_unit_test(pods_of_one_plan_count),
        cmocka_unit_test(workloads_of_equal_shape_count_separately),
        cmocka_unit_test(limit_above_maximum_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
