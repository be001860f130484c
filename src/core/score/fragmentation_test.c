/* fragmentation_test.c - the sigmoid of the reduction of a node's fragmentation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

static const struct berth_gpu gpu;

/* Half of the typical pods request half a GPU, the others a whole one. Half of the GPU of n2 is held; n3 has none. */
static void cluster(struct kit *k)
{
    struct berth_shape half = {.gpu.count = 1, .gpu.milli = 500}, whole = {.gpu.count = 1};
    struct berth_workload usual = {.id = "usual", .replicas = 3, .suspended = true, .shape = whole};
    kit_node(k, (struct berth_node){.id = "n1", .gpus = &gpu, .gpus_len = 1});
    kit_node(k, (struct berth_node){.id = "n2", .gpus = &gpu, .gpus_len = 1});
    kit_node(k, (struct berth_node){.id = "n3"});
    kit_check(k, berth_workload_put(k->cluster, &usual, &k->err));
    kit_workload(k, "old", 1, &half);
    kit_running(k, "old", 0, "n2", 1 << 0);
    kit_workload(k, "web", 2, &half);
}

static void score_matches_published_formula(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    cluster(&k);
    kit_node(&k, (struct berth_node){.id = "n4", .gpus = &gpu, .gpus_len = 1});
    kit_plan(&k, "fragmentation");
    /* One pod fills n2, where F falls from 500/2 to 0: a gain of 0.25 GPU. The other one breaks up n1: a loss of
     * 0.25. */
    assert_string_equal(kit_order(&k, "web"), "n2 n1");
    /* The next pod would fill n1 or break up n4. */
    assert_int_equal(kit_score(&k, "web", "n1"), 2210567); /* 1 / (1 + exp(-0.25)) */
    assert_int_equal(kit_score(&k, "web", "n4"), 1721592); /* 1 / (1 + exp(0.25)) */
    assert_int_equal(kit_score(&k, "web", "n3"), SCORE_ONE / 2);
}

static void pods_without_gpus_score_all_nodes_equally(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    cluster(&k);
    kit_workload(&k, "plain", 2, &(struct berth_shape){.max_per_node = 1});
    kit_plan(&k, "fragmentation");
    assert_int_equal(kit_score(&k, "plain", "n1"), SCORE_ONE / 2);
    assert_int_equal(kit_score(&k, "plain", "n3"), SCORE_ONE / 2);
}

static void without_gpus_there_is_no_score(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_workload(&k, "web", 2, &(struct berth_shape){.max_per_node = 1});
    kit_plan(&k, "fragmentation");
    assert_int_equal(kit_score(&k, "web", "n1"), 0);
    assert_string_equal(kit_order(&k, "web"), "n1 n2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(score_matches_published_formula),
        cmocka_unit_test(pods_without_gpus_score_all_nodes_equally),
        cmocka_unit_test(without_gpus_there_is_no_score),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
