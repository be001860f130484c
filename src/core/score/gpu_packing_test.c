/* gpu_packing_test.c - a GPU in part use, then a node in part use, then an empty one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

static const struct berth_gpu gpus[2];

/* Two GPUs each: n1 is empty, on n2 one GPU is held, on n3 half of one; n4 has no GPU. */
static void nodes(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
    kit_node(k, (struct berth_node){.id = "n2", .gpus = gpus, .gpus_len = 2});
    kit_node(k, (struct berth_node){.id = "n3", .gpus = gpus, .gpus_len = 2});
    kit_node(k, (struct berth_node){.id = "n4", .rank = 1});
    kit_workload(k, "whole", 1, &(struct berth_shape){.gpu.count = 1});
    kit_running(k, "whole", 0, "n2", 1 << 0);
    kit_workload(k, "half", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 500});
    kit_running(k, "half", 0, "n3", 1 << 1);
}

static void partly_used_gpu_is_best(void **state)
{
    (void)state;
    static const int32_t empty = SCORE_ONE / 3, used = SCORE_ONE / 3 * 2, shared = SCORE_ONE;
    const struct {
        const char *label;
        uint32_t count, milli;
        int32_t n1, n2, n3;
        const char *want;
    } rows[] = {
        {"a share that fits",         1, 500, empty, used,  shared, "n3 n2 n1"   },
        {"a share that does not fit", 1, 501, empty, used,  used,   "n2 n3 n1"   },
        {"a whole one",               1, 0,   empty, used,  used,   "n2 n3 n1"   },
        {"two",                       2, 0,   empty, empty, empty,  "n1"         },
        {"none",                      0, 0,   0,     0,     0,      "n1 n2 n3 n4"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape shape = {.gpu.count = rows[i].count, .gpu.milli = rows[i].milli, .max_per_node = 1};
        nodes(&k);
        kit_workload(&k, "web", 0, &shape);
        kit_plan(&k, "gpu_packing");
        print_message("%s\n", rows[i].label);
        assert_int_equal(kit_score(&k, "web", "n1"), rows[i].n1);
        assert_int_equal(kit_score(&k, "web", "n2"), rows[i].n2);
        assert_int_equal(kit_score(&k, "web", "n3"), rows[i].n3);
        kit_workload(&k, "web", 4, &shape);
        kit_plan(&k, "gpu_packing");
        assert_string_equal(kit_order(&k, "web"), rows[i].want);
    }
}

static void pods_of_one_plan_fill_up(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
    kit_node(&k, (struct berth_node){.id = "n2", .gpus = gpus, .gpus_len = 2});
    kit_workload(&k, "web", 6, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 400});
    kit_plan(&k, "gpu_packing");
    assert_string_equal(kit_order(&k, "web"), "n1 n1 n1 n1 n2 n2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partly_used_gpu_is_best),
        cmocka_unit_test(pods_of_one_plan_fill_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
