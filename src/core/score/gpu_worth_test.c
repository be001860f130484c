/* gpu_worth_test.c - the node with the lowest GPU cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

static const struct berth_gpu gpu;

/* Typical pods request 810 of a GPU; the rest has no value. 900 of the GPU of n2 are free, n3 has no GPU. */
static void cluster(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "n1", .gpus = &gpu, .gpus_len = 1});
    kit_node(k, (struct berth_node){.id = "n2", .gpus = &gpu, .gpus_len = 1});
    kit_node(k, (struct berth_node){.id = "n3"});
    kit_typical(k, "usual", &(struct kit_request){.pods = 100000, .count = 1, .milli = 810});
    kit_workload(k, "old", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 100});
    kit_running(k, "old", 0, "n2", 1 << 0);
}

static void assert_near(int32_t got, double want)
{
    double off = (double)got / SCORE_ONE - want;
    if (off > 1e-5 || off < -1e-5)
        fail_msg("%f, not %f", (double)got / SCORE_ONE, want);
}

static void zero_cost_scores_one(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    cluster(&k);
    kit_workload(&k, "web", 2, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 110});
    kit_plan(&k, "gpu_worth");
    /* The first pod leaves 810 on n1, but not on n2. The second pod costs 810 on either node: n1 is fuller, and is then
     * of no other use. */
    assert_string_equal(kit_order(&k, "web"), "n1 n1");
    assert_near(kit_score(&k, "web", "n1"), 1 / (1 + 1e-4 * (0.78 + 0.78)));
    assert_near(kit_score(&k, "web", "n2"), 1 / (2 + 1e-4 * (0.9 + 0.9)));
}

static void pods_without_gpus_avoid_idle_gpus(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    cluster(&k);
    kit_workload(&k, "plain", 3, &(struct berth_shape){.max_per_node = 1});
    kit_plan(&k, "gpu_worth");
    assert_string_equal(kit_order(&k, "plain"), "n3 n2 n1");
    assert_int_equal(kit_score(&k, "plain", "n3"), SCORE_ONE);
}

/* In the default profile, a pod without GPUs uses nodes without GPUs first, and then cpu where that costs no GPU. Such
 * pods are spread evenly only where that costs nothing. */
static void default_profile_uses_gpu_cost_on_gpu_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        struct kit_request usual;
        const char *plain, *gpu;
    } rows[] = {
        {"nobody asks for GPUs",    {.pods = 9, .cpu = 10},               "n1 n2 n1 n2", ""     },
        {"all GPUs need their cpu", {.pods = 9, .count = 1, .cpu = 4000}, "n2 n2 n2 n2", "n1 n1"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu two[2] = {0};
        const struct berth_amount small = {"cpu", 500};
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = two, .gpus_len = 2});
        kit_node(&k, (struct berth_node){.id = "n2", .gpus = two, .gpus_len = 2});
        kit_node(&k, (struct berth_node){.id = "n3", .allocatable = &small, .allocatable_len = 1});
        kit_workload(&k, "old", 1, rows[i].usual.count ? &(struct berth_shape){.gpu.count = 2} : NULL);
        kit_running(&k, "old", 0, "n2", rows[i].usual.count ? 3 : 0);
        kit_typical(&k, "usual", &rows[i].usual);
        kit_pending(&k, "plain", 4, &(struct kit_request){.cpu = 1000});
        kit_pending(&k, "tiny", 1, &(struct kit_request){.cpu = 100});
        if (rows[i].usual.count)
            kit_pending(&k, "whole", 2, &(struct kit_request){.count = 1, .cpu = 4000});
        kit_plan(&k, NULL);
        if (strcmp(kit_order(&k, "plain"), rows[i].plain) != 0)
            fail_msg("%s: %s, not %s", rows[i].label, kit_order(&k, "plain"), rows[i].plain);
        assert_string_equal(kit_order(&k, "tiny"), "n3");
        if (rows[i].usual.count)
            assert_string_equal(kit_order(&k, "whole"), rows[i].gpu);
    }
}

static void without_gpus_there_is_no_score(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_workload(&k, "web", 2, &(struct berth_shape){.max_per_node = 1});
    kit_plan(&k, "gpu_worth");
    assert_int_equal(kit_score(&k, "web", "n1"), 0);
    assert_string_equal(kit_order(&k, "web"), "n1 n2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_cost_scores_one),
        cmocka_unit_test(pods_without_gpus_avoid_idle_gpus),
        cmocka_unit_test(default_profile_uses_gpu_cost_on_gpu_nodes),
        cmocka_unit_test(without_gpus_there_is_no_score),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
