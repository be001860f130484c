/* gpu_test.c - enough free GPUs, counted one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void allocated_gpus_are_not_free(void **state)
{
    (void)state;
    /* A node has two GPUs with 16 GiB each. A pod holds this much of the first one; another pod may hold the second
     * one. */
    static const struct {
        const char *label;
        uint32_t held_milli, second;
        int64_t held_memory;
        uint32_t count, milli;
        int64_t memory;
        uint64_t want;
    } rows[] = {
        {"both",                         0,   0, 0,            2, 0,   0,               0},
        {"both, one is held",            0,   1, 0,            2, 0,   0,               1},
        {"one, the other is held",       0,   1, 0,            1, 0,   0,               0},
        {"one, the other is shared",     1,   0, 0,            1, 0,   0,               0},
        {"both, one is shared",          1,   0, 0,            2, 0,   0,               1},
        {"one, nothing is untouched",    1,   1, 0,            1, 0,   0,               1},
        {"share, exactly",               400, 1, 0,            1, 600, 0,               0},
        {"share, one short",             400, 1, 0,            1, 601, 0,               1},
        {"share, of the other",          400, 0, 0,            1, 601, 0,               0},
        {"share memory, exactly",        100, 1, 10 * KIT_GIB, 1, 100, 6 * KIT_GIB,     0},
        {"share memory, one short",      100, 1, 10 * KIT_GIB, 1, 100, 6 * KIT_GIB + 1, 1},
        {"share memory, none was asked", 100, 1, 0,            1, 100, 16 * KIT_GIB,    0},
        {"share memory, of the other",   100, 0, 10 * KIT_GIB, 1, 100, 16 * KIT_GIB,    0},
        {"no GPU",                       400, 1, 0,            0, 0,   0,               0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu gpu = {"T4", 16 * KIT_GIB}, gpus[] = {gpu, gpu};
        struct berth_gpu_need held = {.count = 1, .milli = rows[i].held_milli, .memory_bytes = rows[i].held_memory};
        struct berth_gpu_need need = {.count = rows[i].count, .milli = rows[i].milli, .memory_bytes = rows[i].memory};
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
        kit_workload(&k, "old", rows[i].held_milli != 0, &(struct berth_shape){.gpu = held});
        kit_workload(&k, "second", rows[i].second, &(struct berth_shape){.gpu.count = 1});
        if (rows[i].held_milli)
            kit_running(&k, "old", 0, "n1", 1 << 0);
        if (rows[i].second)
            kit_running(&k, "second", 0, "n1", 1 << 1);
        kit_workload(&k, "web", 1, &(struct berth_shape){.gpu = need});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "gpu", "", rows[i].want);
    }
}

static void pods_of_one_plan_count(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_gpu gpu = {"T4", 16 * KIT_GIB};
    struct berth_gpu_need share = {.count = 1, .milli = 400, .memory_bytes = KIT_GIB};
    kit_node(&k, (struct berth_node){.id = "n1", .gpus = &gpu, .gpus_len = 1});
    kit_node(&k, (struct berth_node){.id = "n2", .gpus = &gpu, .gpus_len = 1});
    kit_node(&k, (struct berth_node){.id = "n3"});
    kit_workload(&k, "web", 5, &(struct berth_shape){.gpu = share});
    kit_plan(&k, NULL);
    assert_string_equal(kit_order(&k, "web"), "n1 n1 n2 n2");
    assert_int_equal(kit_refusals(&k, "web", "gpu", ""), 2);
    assert_int_equal(kit_refusals(&k, "web", "gpu-kind", ""), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocated_gpus_are_not_free),
        cmocka_unit_test(pods_of_one_plan_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
