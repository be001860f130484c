/* gpu_kind_test.c - enough GPUs of the model and the memory, free or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static const struct berth_gpu gpus[] = {
    {"A100", 80 * KIT_GIB},
    {"A100", 80 * KIT_GIB},
    {"T4",   16 * KIT_GIB},
};

static void models_and_memory_are_needed(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t count, milli;
        int64_t memory;
        const char *models[2];
        size_t models_len;
        uint64_t want;
    } rows[] = {
        {"no GPU",                   0, 0,   0,                {NULL},         0, 0},
        {"any",                      1, 0,   0,                {NULL},         0, 0},
        {"all",                      3, 0,   0,                {NULL},         0, 0},
        {"one more than all",        4, 0,   0,                {NULL},         0, 1},
        {"of this model",            2, 0,   0,                {"A100"},       1, 0},
        {"too few of this model",    2, 0,   0,                {"T4"},         1, 1},
        {"of another model",         1, 0,   0,                {"V100"},       1, 1},
        {"in another case",          2, 0,   0,                {"a100"},       1, 0},
        {"a longer name",            1, 0,   0,                {"A100X"},      1, 1},
        {"A or B, one is there",     1, 0,   0,                {"V100", "T4"}, 2, 0},
        {"A or B, mixed",            3, 0,   0,                {"T4", "A100"}, 2, 0},
        {"A or B, none is there",    1, 0,   0,                {"V100", "L4"}, 2, 1},
        {"memory, exactly",          2, 0,   80 * KIT_GIB,     {NULL},         0, 0},
        {"memory, one short",        1, 0,   80 * KIT_GIB + 1, {NULL},         0, 1},
        {"memory of too few",        3, 0,   17 * KIT_GIB,     {NULL},         0, 1},
        {"memory of the wrong one",  1, 0,   17 * KIT_GIB,     {"T4"},         1, 1},
        {"a share, of this model",   1, 500, 0,                {"T4"},         1, 0},
        {"a share, of another",      1, 1,   0,                {"V100"},       1, 1},
        {"a share, too much memory", 1, 500, 17 * KIT_GIB,     {"T4"},         1, 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape shape = {.gpu.count = rows[i].count, .gpu.milli = rows[i].milli};
        shape.gpu.memory_bytes = rows[i].memory;
        shape.gpu.models = rows[i].models;
        shape.gpu.models_len = rows[i].models_len;
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = ROWS(gpus)});
        kit_workload(&k, "web", 1, &shape);
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "gpu-kind", "", rows[i].want);
    }
}

static void nodes_without_gpus_are_counted(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2", .gpus = gpus, .gpus_len = 1});
    kit_node(&k, (struct berth_node){.id = "n3", .gpus = gpus, .gpus_len = 2});
    kit_workload(&k, "two", 1, &(struct berth_shape){.gpu.count = 2});
    kit_workload(&k, "three", 1, &(struct berth_shape){.gpu.count = 3});
    kit_plan(&k, NULL);
    assert_string_equal(kit_node_of(&k, "two", 0), "n3");
    assert_int_equal(kit_refusals(&k, "three", "gpu-kind", ""), 3);
    assert_int_equal(kit_refusals(&k, "three", "gpu", ""), 0); /* each refusal has one reason */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_and_memory_are_needed),
        cmocka_unit_test(nodes_without_gpus_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
