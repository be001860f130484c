/* gpu_clustering_test.c - nodes that hold pods with the same kind of GPU request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

static const struct berth_gpu gpus[8];

static void node_with_same_request_is_best(void **state)
{
    (void)state;
    /* Four GPUs each: n1 is empty; n2 holds a pod with one GPU, n3 one with half a GPU, n4 one with two, n5 one with
     * one and one with two. The largest node, n6, has eight GPUs. */
    static const struct {
        const char *label;
        uint32_t count, milli;
        int32_t want[5]; /* quarters */
    } rows[] = {
        {"a whole one",       1, 0,    {1, 3, 0, 0, 2}},
        {"the same in milli", 1, 1000, {1, 3, 0, 0, 2}},
        {"half of one",       1, 500,  {1, 0, 3, 0, 0}},
        {"another share",     1, 400,  {1, 0, 3, 0, 0}},
        {"a pair",            2, 0,    {1, 0, 0, 3, 2}},
        {"three",             3, 0,    {1, 0, 0, 0, 0}},
    };
    static const char *const names[] = {"n1", "n2", "n3", "n4", "n5"};
    static const int32_t held[] = {4000, 5000, 4500, 6000,
                                   7000}; /* GPUs of the largest node (8000) less the free GPUs of the node */
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        for (size_t n = 0; n < ROWS(names); n++)
            kit_node(&k, (struct berth_node){.id = names[n], .gpus = gpus, .gpus_len = 4});
        kit_node(&k, (struct berth_node){.id = "n6", .gpus = gpus, .gpus_len = 8});
        kit_workload(&k, "whole", 2, &(struct berth_shape){.gpu.count = 1});
        kit_running(&k, "whole", 0, "n2", 1 << 0);
        kit_running(&k, "whole", 1, "n5", 1 << 0);
        kit_workload(&k, "half", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 500});
        kit_running(&k, "half", 0, "n3", 1 << 3);
        kit_workload(&k, "pair", 2, &(struct berth_shape){.gpu.count = 2});
        kit_running(&k, "pair", 0, "n4", 3 << 1);
        kit_running(&k, "pair", 1, "n5", 3 << 1);
        kit_workload(&k, "web", 0, &(struct berth_shape){.gpu.count = rows[i].count, .gpu.milli = rows[i].milli});
        kit_plan(&k, "gpu_clustering");
        print_message("%s\n", rows[i].label);
        for (size_t n = 0; n < ROWS(names); n++)
            assert_int_equal(kit_score(&k, "web", names[n]),
                             (int64_t)SCORE_ONE * (8000 * rows[i].want[n] + held[n]) / 32000);
        assert_int_equal(kit_score(&k, "web", "n6"), SCORE_ONE / 4);
    }
}

static void steps_round_to_whole_percent(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 8});
    kit_workload(&k, "half", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 500});
    kit_running(&k, "half", 0, "n1", 1 << 0);
    kit_workload(&k, "web", 0, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 400});
    k.steps = 100;
    kit_plan(&k, "gpu_clustering");
    assert_int_equal(kit_score(&k, "web", "n1"), (int64_t)SCORE_ONE * 76 / 100); /* 75 + 25 * 500 / 8000 = 76.5 */
}

static void pods_without_gpus_have_no_score(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 4});
    kit_workload(&k, "web", 0, NULL);
    kit_plan(&k, "gpu_clustering");
    assert_int_equal(kit_score(&k, "web", "n1"), 0);
}

static void pods_of_one_plan_cluster(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
    kit_node(&k, (struct berth_node){.id = "n2", .gpus = gpus, .gpus_len = 2});
    kit_node(&k, (struct berth_node){.id = "n3", .gpus = gpus, .gpus_len = 2});
    kit_workload(&k, "old", 1, &(struct berth_shape){.gpu.count = 1});
    kit_running(&k, "old", 0, "n2", 1 << 0);
    kit_workload(&k, "web", 4, &(struct berth_shape){.gpu.count = 1});
    kit_plan(&k, "gpu_clustering");
    assert_string_equal(kit_order(&k, "web"), "n2 n1 n1 n3");
}

static void workload_with_same_request_uses_the_same_node(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 4});
    kit_node(&k, (struct berth_node){.id = "n2", .gpus = gpus, .gpus_len = 4});
    kit_workload(&k, "a", 1, &(struct berth_shape){.gpu.count = 1, .node = "n2"});
    kit_workload(&k, "b", 1, &(struct berth_shape){.gpu.count = 1, LIST(requests, struct berth_amount, {"cpu", 1})});
    kit_workload(&k, "c", 1, &(struct berth_shape){.gpu.count = 2});
    kit_plan(&k, "gpu_clustering");
    assert_string_equal(kit_node_of(&k, "b", 0), "n2");
    assert_string_equal(kit_node_of(&k, "c", 0), "n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_with_same_request_is_best),
        cmocka_unit_test(steps_round_to_whole_percent),
        cmocka_unit_test(pods_without_gpus_have_no_score),
        cmocka_unit_test(pods_of_one_plan_cluster),
        cmocka_unit_test(workload_with_same_request_uses_the_same_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
