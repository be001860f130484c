/* gpu_spare_test.c - nodes with GPUs are kept for pods that request GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void gpu_nodes_are_kept_for_gpu_pods(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t gpus;
        int64_t cpu;
        const char *want;
    } rows[] = {
        {"no GPU",         0, 2000, "n2 n3 n1"},
        {"no room there",  0, 4001, "n3 n1"   },
        {"only room here", 0, 8000, "n1"      },
        {"a GPU",          1, 2000, "n1"      },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu gpu = {0};
        struct berth_shape shape = {.max_per_node = 1, LIST(requests, struct berth_amount, {"cpu", rows[i].cpu})};
        shape.gpu.count = rows[i].gpus;
        /* By rank alone n1 would be first. */
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = &gpu, .gpus_len = 1});
        kit_node(&k, (struct berth_node){.id = "n2", .rank = 1, LIST(allocatable, struct berth_amount, {"cpu", 4000})});
        kit_node(&k, (struct berth_node){.id = "n3", .rank = 2, LIST(allocatable, struct berth_amount, {"cpu", 6000})});
        kit_workload(&k, "web", 3, &shape);
        kit_plan(&k, "gpu_spare");
        if (strcmp(kit_order(&k, "web"), rows[i].want) != 0)
            fail_msg("%s: %s, not %s", rows[i].label, kit_order(&k, "web"), rows[i].want);
    }
}

static void nodes_without_gpus_score_equally(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_workload(&k, "web", 2, &(struct berth_shape){.max_per_node = 1});
    kit_plan(&k, "gpu_spare");
    assert_string_equal(kit_order(&k, "web"), "n1 n2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpu_nodes_are_kept_for_gpu_pods),
        cmocka_unit_test(nodes_without_gpus_score_equally),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
