/* allocated_test.c - least and most allocated: the node with the larger or the smaller free share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static const char *const scores[] = {"least_allocated", "most_allocated"};

static void free_share_decides_the_node(void **state)
{
    (void)state;
    /* n1 is large, n2 is as large but half of its cpu is held, n3 is small, n4 has no memory. */
    static const struct {
        const char *label;
        int64_t cpu, memory; /* requested by each pod */
        const char *want[2]; /* [score] */
    } rows[] = {
        {"both",        1000, 1000, {"n1 n2 n3", "n3 n2 n1"}      },
        {"only cpu",    1000, 0,    {"n1 n3 n2 n4", "n4 n2 n3 n1"}},
        {"only memory", 0,    2000, {"n1 n2 n3", "n3 n2 n1"}      },
        {"nothing",     0,    0,    {"n1 n3 n2 n4", "n4 n2 n1 n3"}},
    };
    for (size_t n = 0; n < 2 * ROWS(rows); n++) {
        size_t i = n / 2, score = n % 2;
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape held = {LIST(requests, struct berth_amount, {"cpu", 4000})};
        struct berth_shape shape = {
            .max_per_node = 1, LIST(requests, struct berth_amount, {"cpu", rows[i].cpu}, {"memory", rows[i].memory})};
        kit_node(&k, (struct berth_node){.id = "n1",
                                         LIST(allocatable, struct berth_amount, {"cpu", 8000}, {"memory", 8000})});
        kit_node(&k, (struct berth_node){.id = "n2",
                                         LIST(allocatable, struct berth_amount, {"cpu", 8000}, {"memory", 8000})});
        kit_node(&k, (struct berth_node){.id = "n3",
                                         LIST(allocatable, struct berth_amount, {"cpu", 2000}, {"memory", 2000})});
        kit_node(&k, (struct berth_node){.id = "n4", LIST(allocatable, struct berth_amount, {"cpu", 8000})});
        kit_workload(&k, "old", 1, &held);
        kit_running(&k, "old", 0, "n2", 0);
        kit_workload(&k, "web", 4, &shape);
        kit_plan(&k, scores[score]);
        if (strcmp(kit_order(&k, "web"), rows[i].want[score]) != 0)
            fail_msg("%s, %s: %s, not %s", scores[score], rows[i].label, kit_order(&k, "web"), rows[i].want[score]);
    }
}

static void equal_nodes_come_by_rank_and_id(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {.max_per_node = 1, LIST(requests, struct berth_amount, {"cpu", 1000})};
    kit_node(&k, (struct berth_node){.id = "n3"});
    kit_node(&k, (struct berth_node){.id = "n1", .rank = 1});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_workload(&k, "web", 3, &shape);
    for (size_t i = 0; i < ROWS(scores); i++) {
        kit_plan(&k, scores[i]);
        assert_string_equal(kit_order(&k, "web"), "n2 n3 n1");
    }
}

static void pods_of_one_plan_count(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {LIST(requests, struct berth_amount, {"cpu", 2000})};
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_workload(&k, "web", 6, &shape);
    kit_plan(&k, "least_allocated");
    assert_string_equal(kit_order(&k, "web"), "n1 n2 n1 n2 n1 n2");
    kit_plan(&k, "most_allocated");
    assert_string_equal(kit_order(&k, "web"), "n1 n1 n1 n1 n2 n2");
}

static void profile_selects_resources(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {.max_per_node = 1, LIST(requests, struct berth_amount, {"licence", 5})};
    k.resources = (const char *const[]){"licence", "nobody-has-it"};
    k.resources_len = 2;
    kit_node(&k, (struct berth_node){.id = "n1", LIST(allocatable, struct berth_amount, {"licence", 20}, {"cpu", 1})});
    kit_node(&k, (struct berth_node){.id = "n2", LIST(allocatable, struct berth_amount, {"licence", 5}, {"cpu", 1})});
    kit_node(&k, (struct berth_node){.id = "n3", LIST(allocatable, struct berth_amount, {"licence", 100})});
    kit_workload(&k, "web", 3, &shape);
    kit_plan(&k, "least_allocated");
    assert_string_equal(kit_order(&k, "web"), "n3 n1 n2");
    kit_plan(&k, "most_allocated");
    assert_string_equal(kit_order(&k, "web"), "n2 n1 n3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_share_decides_the_node),
        cmocka_unit_test(equal_nodes_come_by_rank_and_id),
        cmocka_unit_test(pods_of_one_plan_count),
        cmocka_unit_test(profile_selects_resources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
