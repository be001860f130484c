/* dot_product_test.c - 1 less the mean of (free / largest) * (need / largest). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

static const struct berth_gpu gpus[8];
static const char *const cpu_and_gpu[] = {"cpu", "gpu"};

/* n1 has 128 cores and 8 GPUs, n2 half of both, n3 as many cores as n1 and no GPU. */
static void nodes(struct kit *k)
{
    const struct berth_amount large = {"cpu", 128000}, small = {"cpu", 64000};
    k->resources = cpu_and_gpu;
    k->resources_len = 2;
    kit_node(k,
             (struct berth_node){.id = "n1", .allocatable = &large, .allocatable_len = 1, .gpus = gpus, .gpus_len = 8});
    kit_node(k,
             (struct berth_node){.id = "n2", .allocatable = &small, .allocatable_len = 1, .gpus = gpus, .gpus_len = 4});
    kit_node(k, (struct berth_node){.id = "n3", .allocatable = &large, .allocatable_len = 1});
}

static void score_matches_published_formula(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        int64_t cpu;
        uint32_t gpus, milli;
        int32_t n1, n2, n3;
    } rows[] = {
  /* n1: 1 - (1 * 1/4 + 1 * 1/4) / 2; n2: 1 - (1/2 * 1/4 + 1/2 * 1/4) / 2; n3: 1 - (1 * 1/4 + 0) / 2 */
        {"cpu and GPUs", 32000, 2, 0,   SCORE_ONE / 4 * 3,   SCORE_ONE / 8 * 7,   SCORE_ONE / 8 * 7},
 /* n1: 1 - (1 * 1/4 + 1 * 1/16) / 2; n2: 1 - (1/2 * 1/4 + 1/2 * 1/16) / 2; n3: 1 - 1/4 / 2 */
        {"a share",      32000, 1, 500, SCORE_ONE / 32 * 27, SCORE_ONE / 64 * 59, SCORE_ONE / 8 * 7},
 /* n1, n3: 1 - (1 * 1/2) / 2; n2: 1 - (1/2 * 1/2) / 2 */
        {"no GPU",       64000, 0, 0,   SCORE_ONE / 4 * 3,   SCORE_ONE / 8 * 7,   SCORE_ONE / 4 * 3},
        {"nothing",      0,     0, 0,   SCORE_ONE,           SCORE_ONE,           SCORE_ONE        },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape shape = {LIST(requests, struct berth_amount, {"cpu", rows[i].cpu})};
        shape.gpu.count = rows[i].gpus;
        shape.gpu.milli = rows[i].milli;
        nodes(&k);
        kit_workload(&k, "web", 0, &shape);
        kit_plan(&k, "dot_product");
        print_message("%s\n", rows[i].label);
        assert_int_equal(kit_score(&k, "web", "n1"), rows[i].n1);
        assert_int_equal(kit_score(&k, "web", "n2"), rows[i].n2);
        assert_int_equal(kit_score(&k, "web", "n3"), rows[i].n3);
    }
}

static void allocated_resources_are_not_free(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape held = {.gpu.count = 4, LIST(requests, struct berth_amount, {"cpu", 32000})};
    struct berth_shape shape = {.gpu.count = 2, LIST(requests, struct berth_amount, {"cpu", 32000})};
    nodes(&k);
    kit_workload(&k, "old", 1, &held);
    kit_running(&k, "old", 0, "n1", 0xf);
    kit_workload(&k, "web", 0, &shape);
    kit_plan(&k, "dot_product");
    assert_int_equal(kit_score(&k, "web", "n1"), SCORE_ONE / 32 * 27); /* 1 - (3/4 * 1/4 + 1/2 * 1/4) / 2 */
}

static void least_aligned_node_is_chosen(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {.max_per_node = 1, LIST(requests, struct berth_amount, {"cpu", 32000})};
    nodes(&k);
    kit_workload(&k, "web", 3, &shape);
    kit_plan(&k, "dot_product");
    assert_string_equal(kit_order(&k, "web"), "n2 n3 n1"); /* n3 and n1 are equal: fewer devices come first */
}

static void missing_resource_counts_for_nothing(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {LIST(requests, struct berth_amount, {"cpu", 2000})};
    k.resources = cpu_and_gpu;
    k.resources_len = 2;
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_workload(&k, "web", 0, &shape);
    kit_plan(&k, "dot_product");
    assert_int_equal(kit_score(&k, "web", "n1"), SCORE_ONE / 8 * 7); /* 1 - (1 * 1/4) / 2 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(score_matches_published_formula),
        cmocka_unit_test(allocated_resources_are_not_free),
        cmocka_unit_test(least_aligned_node_is_chosen),
        cmocka_unit_test(missing_resource_counts_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
