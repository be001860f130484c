/* random_test.c - random scores depend only on the seed, the workload and the node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

static const char *const names[] = {"n1", "n2", "n3", "n4"};

static void nodes(struct kit *k, size_t len)
{
    for (size_t i = 0; i < len; i++)
        kit_node(k, (struct berth_node){.id = names[i]});
}

static void random_score_depends_on_seed_workload_and_node(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit few = kit_new(), many = kit_new();
    few.seed = many.seed = 42;
    nodes(&few, 2);
    nodes(&many, 4);
    kit_workload(&few, "web", 0, NULL);
    kit_workload(&many, "db", 0, NULL);
    kit_workload(&many, "web", 0, &(struct berth_shape){LIST(requests, struct berth_amount, {"cpu", 1})});
    kit_plan(&few, "random");
    kit_plan(&many, "random");
    int32_t throw = kit_score(&few, "web", "n1");
    assert_int_equal(throw, kit_score(&few, "web", "n1"));
    assert_int_equal(throw, kit_score(&many, "web", "n1")); /* other workloads and nodes do not matter */
    assert_int_not_equal(throw, kit_score(&few, "web", "n2"));
    assert_int_not_equal(throw, kit_score(&many, "db", "n1"));
    few.seed = 43;
    kit_plan(&few, "random");
    assert_int_not_equal(throw, kit_score(&few, "web", "n1"));
}

static void random_scores_let_every_node_win(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    uint32_t wins[ROWS(names)] = {0};
    nodes(&k, ROWS(names));
    kit_workload(&k, "web", 1, NULL);
    for (k.seed = 0; k.seed < 200; k.seed++) {
        kit_plan(&k, "random");
        for (size_t i = 0; i < ROWS(names); i++) {
            assert_in_range(kit_score(&k, "web", names[i]), 0, SCORE_ONE);
            wins[i] += strcmp(kit_node_of(&k, "web", 0), names[i]) == 0;
        }
    }
    for (size_t i = 0; i < ROWS(names); i++)
        assert_in_range(wins[i], 25, 75); /* of 200; 50 is the mean, 6 the deviation */
}

static void highest_random_score_wins(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    nodes(&k, ROWS(names));
    kit_workload(&k, "web", ROWS(names), &(struct berth_shape){.max_per_node = 1});
    kit_plan(&k, "random");
    for (uint32_t i = 1; i < ROWS(names); i++)
        assert_true(kit_score(&k, "web", kit_node_of(&k, "web", i - 1)) >=
                    kit_score(&k, "web", kit_node_of(&k, "web", i)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_score_depends_on_seed_workload_and_node),
        cmocka_unit_test(random_scores_let_every_node_win),
        cmocka_unit_test(highest_random_score_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
