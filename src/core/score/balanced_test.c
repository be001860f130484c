/* balanced_test.c - even use of resources. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

static void score_follows_mean_deviation(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        int64_t has_cpu, has_memory, cpu, memory;
        int32_t want;
    } rows[] = {
        {"in proportion",       8000, 4000, 4000, 2000, SCORE_ONE        },
        {"a quarter apart",     8000, 8000, 4000, 2000, SCORE_ONE / 8 * 7},
        {"nothing left of one", 4000, 8000, 4000, 2000, SCORE_ONE / 8 * 5},
        {"all of one",          4000, 8000, 4000, 0,    SCORE_ONE / 2    },
        {"has none of one",     8000, 0,    4000, 0,    SCORE_ONE / 4 * 3},
        {"has none of either",  0,    0,    0,    0,    SCORE_ONE        },
        {"asks for nothing",    8000, 4000, 0,    0,    SCORE_ONE        },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape shape = {
            LIST(requests, struct berth_amount, {"cpu", rows[i].cpu}, {"memory", rows[i].memory})};
        kit_node(&k, (struct berth_node){.id = "n1",
                                         LIST(allocatable, struct berth_amount, {"cpu", rows[i].has_cpu},
                                              {"memory", rows[i].has_memory})});
        kit_workload(&k, "web", 0, &shape);
        kit_plan(&k, "balanced");
        if (kit_score(&k, "web", "n1") != rows[i].want)
            fail_msg("%s: %d, not %d", rows[i].label, kit_score(&k, "web", "n1"), rows[i].want);
    }
}

static void evenly_used_node_is_chosen(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape held = {LIST(requests, struct berth_amount, {"cpu", 4000})};
    struct berth_shape shape = {.max_per_node = 1,
                                LIST(requests, struct berth_amount, {"cpu", 1000}, {"memory", KIT_GIB})};
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_node(&k, (struct berth_node){.id = "n3"});
    kit_workload(&k, "old", 1, &held);
    kit_running(&k, "old", 0, "n1", 0);
    kit_workload(&k, "web", 3, &shape);
    kit_plan(&k, "balanced");
    assert_string_equal(kit_order(&k, "web"), "n2 n3 n1");
}

static void one_resource_is_always_balanced(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {.max_per_node = 1, LIST(requests, struct berth_amount, {"cpu", 1000})};
    k.resources = (const char *const[]){"cpu"};
    k.resources_len = 1;
    kit_node(&k, (struct berth_node){.id = "n1", LIST(allocatable, struct berth_amount, {"cpu", 2000})});
    kit_node(&k, (struct berth_node){.id = "n2", LIST(allocatable, struct berth_amount, {"cpu", 1000})});
    kit_workload(&k, "web", 2, &shape);
    kit_plan(&k, "balanced");
    assert_string_equal(kit_order(&k, "web"), "n1 n2");
    assert_int_equal(kit_score(&k, "web", "n1"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(score_follows_mean_deviation),
        cmocka_unit_test(evenly_used_node_is_chosen),
        cmocka_unit_test(one_resource_is_always_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
