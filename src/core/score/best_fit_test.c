/* best_fit_test.c - 1 less the mean of (free - need) / largest. */
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
  /* n1: 1 - (96/128 + 6/8) / 2; n2: 1 - (32/128 + 2/8) / 2; n3 would not fit: 1 - (96/128 - 2/8) / 2 */
        {"cpu and GPUs", 32000, 2, 0,   SCORE_ONE / 4,      SCORE_ONE / 4 * 3,   SCORE_ONE / 4 * 3  },
 /* n1: 1 - (96/128 + 7.5/8) / 2; n2: 1 - (32/128 + 3.5/8) / 2; n3: 1 - (96/128 - 0.5/8) / 2 */
        {"a share",      32000, 1, 500, SCORE_ONE / 32 * 5, SCORE_ONE / 32 * 21, SCORE_ONE / 32 * 21},
 /* n1: 1 - (64/128 + 8/8) / 2; n2: 1 - (0 + 4/8) / 2; n3: 1 - 64/128 / 2 */
        {"no GPU",       64000, 0, 0,   SCORE_ONE / 4,      SCORE_ONE / 4 * 3,   SCORE_ONE / 4 * 3  },
 /* n1: 1 - (128/128 + 8/8) / 2 */
        {"nothing",      0,     0, 0,   0,                  SCORE_ONE / 2,       SCORE_ONE / 2      },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape shape = {LIST(requests, struct berth_amount, {"cpu", rows[i].cpu})};
        shape.gpu.count = rows[i].gpus;
        shape.gpu.milli = rows[i].milli;
        nodes(&k);
        kit_workload(&k, "web", 0, &shape);
        kit_plan(&k, "best_fit");
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
    kit_plan(&k, "best_fit");
    assert_int_equal(kit_score(&k, "web", "n1"), SCORE_ONE / 8 * 5); /* 1 - (64/128 + 2/8) / 2 */
}

static void tightest_node_is_chosen(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {.gpu.count = 2, LIST(requests, struct berth_amount, {"cpu", 32000})};
    nodes(&k);
    kit_workload(&k, "web", 6, &shape);
    kit_plan(&k, "best_fit");
    assert_string_equal(kit_order(&k, "web"), "n2 n2 n1 n1 n1 n1");
}

/* 1 - 127/128 of the largest is better than 0, but by less than a percent: with steps of a percent, the lower rank
 * decides. */
static void steps_make_nodes_equal(void **state)
{
    (void)state;
    static const struct {
        uint32_t steps;
        int32_t n2;
        const char *want;
    } rows[] = {
        {0,   SCORE_ONE / 128,                         "n2"},
        {100, 0,                                       "n1"},
        {500, (int32_t)((int64_t)SCORE_ONE * 3 / 500), "n2"},
    };
    const struct berth_amount large = {"cpu", 128000}, small = {"cpu", 127000};
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        k.resources = cpu_and_gpu;
        k.resources_len = 1;
        k.steps = rows[i].steps;
        kit_node(&k, (struct berth_node){.id = "n1", .allocatable = &large, .allocatable_len = 1});
        kit_node(&k, (struct berth_node){.id = "n2", .rank = 1, .allocatable = &small, .allocatable_len = 1});
        kit_workload(&k, "web", 1, NULL);
        kit_plan(&k, "best_fit");
        assert_int_equal(kit_score(&k, "web", "n1"), 0);
        assert_int_equal(kit_score(&k, "web", "n2"), rows[i].n2);
        assert_string_equal(kit_node_of(&k, "web", 0), rows[i].want);
    }
}

static void missing_resource_counts_for_nothing(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {.max_per_node = 1, LIST(requests, struct berth_amount, {"cpu", 2000})};
    k.resources = cpu_and_gpu;
    k.resources_len = 2;
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_workload(&k, "web", 0, &shape);
    kit_plan(&k, "best_fit");
    assert_int_equal(kit_score(&k, "web", "n1"), SCORE_ONE / 8 * 5); /* 1 - 6/8 / 2 */
    kit_workload(&k, "web", 2, &shape);
    kit_plan(&k, "best_fit");
    assert_string_equal(kit_order(&k, "web"), "n1 n2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(score_matches_published_formula),
        cmocka_unit_test(allocated_resources_are_not_free),
        cmocka_unit_test(tightest_node_is_chosen),
        cmocka_unit_test(steps_make_nodes_equal),
        cmocka_unit_test(missing_resource_counts_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
