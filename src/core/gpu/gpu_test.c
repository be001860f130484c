/* gpu_test.c - the devices that fit a pod, and the devices that it gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/gpu/gpu.h"
#include "core/scene/kit_test.h"

/* By model and memory. The third is held; of the fourth and the fifth, shares of 300 and 600 with 4 GiB are held; the
 * last is unhealthy. */
static const struct berth_gpu gpus[] = {
    {"A100", 80 * KIT_GIB, false},
    {"T4",   16 * KIT_GIB, false},
    {"T4",   16 * KIT_GIB, false},
    {"T4",   16 * KIT_GIB, false},
    {"T4",   16 * KIT_GIB, false},
    {"A100", 80 * KIT_GIB, false},
    {"A100", 80 * KIT_GIB, true },
};

static const struct {
    const char *label;
    uint32_t count, milli;
    int64_t memory;
    const char *models[2];
    size_t models_len;
    uint64_t suit, fit, pick; /* devices; pick 0: the node does not fit */
} rows[] = {
    {"a whole one",           1, 0,   0,                {NULL},         0, 0x3f, 0x23, 0x01},
    {"two",                   2, 0,   0,                {NULL},         0, 0x3f, 0x23, 0x03},
    {"three",                 3, 0,   0,                {NULL},         0, 0x3f, 0x23, 0x23},
    {"four",                  4, 0,   0,                {NULL},         0, 0x3f, 0x23, 0   },
    {"of a model",            1, 0,   0,                {"T4"},         1, 0x1e, 0x02, 0x02},
    {"two of a model",        2, 0,   0,                {"A100"},       1, 0x21, 0x21, 0x21},
    {"too many of a model",   2, 0,   0,                {"T4"},         1, 0x1e, 0x02, 0   },
    {"of either model",       3, 0,   0,                {"T4", "A100"}, 2, 0x3f, 0x23, 0x23},
    {"with memory",           2, 0,   17 * KIT_GIB,     {NULL},         0, 0x21, 0x21, 0x21},
    {"with all its memory",   1, 0,   16 * KIT_GIB,     {"T4"},         1, 0x1e, 0x02, 0x02},
    {"a share, the fullest",  1, 400, 0,                {NULL},         0, 0x3f, 0x3b, 0x10},
    {"a share, exactly",      1, 700, 0,                {NULL},         0, 0x3f, 0x2b, 0x08},
    {"a share, one too many", 1, 701, 0,                {NULL},         0, 0x3f, 0x23, 0x01},
    {"a share of a model",    1, 100, 0,                {"A100"},       1, 0x21, 0x21, 0x01},
    {"memory, exactly",       1, 100, 12 * KIT_GIB,     {NULL},         0, 0x3f, 0x3b, 0x10},
    {"memory, one too many",  1, 100, 12 * KIT_GIB + 1, {NULL},         0, 0x3f, 0x23, 0x01},
    {"more memory than any",  1, 100, 81 * KIT_GIB,     {NULL},         0, 0,    0,    0   },
};

static void node(struct kit *k, size_t row)
{
    struct berth_shape shape = {.gpu.count = rows[row].count, .gpu.milli = rows[row].milli};
    shape.gpu.memory_bytes = rows[row].memory;
    shape.gpu.models = rows[row].models;
    shape.gpu.models_len = rows[row].models_len;
    struct berth_gpu_need some = {.count = 1, .milli = 300, .memory_bytes = 4 * KIT_GIB};
    struct berth_gpu_need more = {.count = 1, .milli = 600, .memory_bytes = 4 * KIT_GIB};
    kit_node(k, (struct berth_node){.id = "n0"}); /* so that the devices of n1 do not begin at index 0 */
    kit_node(k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = ROWS(gpus)});
    kit_workload(k, "whole", 1, &(struct berth_shape){.gpu.count = 1});
    kit_running(k, "whole", 0, "n1", 1 << 2);
    kit_workload(k, "some", 1, &(struct berth_shape){.gpu = some});
    kit_running(k, "some", 0, "n1", 1 << 3);
    kit_workload(k, "more", 1, &(struct berth_shape){.gpu = more});
    kit_running(k, "more", 0, "n1", 1 << 4);
    kit_workload(k, "web", 0, &shape);
    kit_plan(k, "gpu_packing");
}

static void devices_are_accepted_fitted_and_picked(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct attempt t;
        uint64_t suit = 0, fit = 0;
        node(&k, i);
        uint32_t p = kit_position(&k, "n1"), first = k.snapshot->layout->device[p];
        kit_attempt(&k, "web", &t);
        for (uint32_t d = 0; d < ROWS(gpus); d++) {
            suit |= (uint64_t)gpu_device_suits(k.snapshot->layout, &t.k->gpu, first + d) << d;
            fit |= (uint64_t)gpu_device_fits(&t, first + d) << d;
        }
        bool fits = gpu_node_fits(&t, p);
        uint64_t pick = fits ? gpu_pick(&t, p) : 0;
        attempt_end(&t);
        if (suit != rows[i].suit || fit != rows[i].fit || fits != (rows[i].pick != 0) || pick != rows[i].pick)
            fail_msg("%s: %llx suit, %llx fit, %llx are picked", rows[i].label, (unsigned long long)suit,
                     (unsigned long long)fit, (unsigned long long)pick);
    }
}

static void pod_without_gpus_gets_no_devices(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_action a = {0};
    kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = ROWS(gpus)});
    kit_workload(&k, "web", 1, NULL);
    kit_plan(&k, NULL);
    assert_true(kit_placed(&k, "web", 0, &a));
    assert_int_equal(a.gpus, 0);
}

static void last_of_64_devices_is_picked(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_gpu many[BERTH_NODE_GPUS_MAX] = {0};
    struct berth_action a = {0};
    many[BERTH_NODE_GPUS_MAX - 1].model = "A100";
    kit_node(&k, (struct berth_node){.id = "n1", .gpus = many, .gpus_len = BERTH_NODE_GPUS_MAX});
    kit_workload(&k, "one", 1, &(struct berth_shape){.gpu.count = 1, NAMES(gpu.models, "A100")});
    kit_plan(&k, NULL);
    assert_true(kit_placed(&k, "one", 0, &a));
    assert_true(a.gpus == (uint64_t)1 << 63);
    kit_check(&k, berth_workload_remove(k.cluster, "one", &k.err));
    kit_workload(&k, "all", 1, &(struct berth_shape){.gpu.count = BERTH_NODE_GPUS_MAX});
    kit_plan(&k, NULL);
    assert_true(kit_placed(&k, "all", 0, &a));
    assert_true(a.gpus == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_accepted_fitted_and_picked),
        cmocka_unit_test(pod_without_gpus_gets_no_devices),
        cmocka_unit_test(last_of_64_devices_is_picked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
