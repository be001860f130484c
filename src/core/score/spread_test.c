/* spread_test.c - spread as a preference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

/* Zone a holds two pods on a1, zone b one, zone c none; x1 is in no zone. */
static void nodes(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "a1", .zone = "a"});
    kit_node(k, (struct berth_node){.id = "a2", .zone = "a"});
    kit_node(k, (struct berth_node){.id = "b1", .zone = "b"});
    kit_node(k, (struct berth_node){.id = "c1", .zone = "c"});
    kit_node(k, (struct berth_node){.id = "x1"});
    kit_workload(k, "old", 3, NULL);
    kit_running(k, "old", 0, "a1", 0);
    kit_running(k, "old", 1, "a1", 0);
    kit_running(k, "old", 2, "b1", 0);
}

static void fewer_pods_score_higher(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    static const struct {
        const char *node;
        int32_t by_zone, by_both; /* the second is the mean of zone and node */
    } rows[] = {
        {"a1", SCORE_ONE / 3, SCORE_ONE / 3                  },
        {"a2", SCORE_ONE / 3, (SCORE_ONE / 3 + SCORE_ONE) / 2},
        {"b1", SCORE_ONE / 2, SCORE_ONE / 2                  },
        {"c1", SCORE_ONE,     SCORE_ONE                      },
        {"x1", 0,             SCORE_ONE / 2                  },
    };
    const struct berth_spread spread[] = {
        {"zone", TERM_APP("old", 0), 1, true},
        {"node", TERM_APP("old", 0), 1, true},
    };
    nodes(&k);
    kit_workload(&k, "zone", 0, &(struct berth_shape){.spread = spread, .spread_len = 1});
    kit_workload(&k, "both", 0, &(struct berth_shape){.spread = spread, .spread_len = 2});
    kit_plan(&k, "spread");
    for (size_t i = 0; i < ROWS(rows); i++) {
        print_message("%s\n", rows[i].node);
        assert_int_equal(kit_score(&k, "zone", rows[i].node), rows[i].by_zone);
        assert_int_equal(kit_score(&k, "both", rows[i].node), rows[i].by_both);
    }
}

static void a_requirement_is_not_scored(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_spread spread = {"zone", TERM_APP("old", 0), 1, false};
    nodes(&k);
    kit_workload(&k, "web", 0, &(struct berth_shape){.spread = &spread, .spread_len = 1});
    kit_plan(&k, "spread");
    assert_int_equal(kit_score(&k, "web", "c1"), 0);
}

static void pods_of_one_plan_count(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const char *const both[] = {"old", "web"};
    const struct berth_spread spread = {"zone", TERM("app", 0, BERTH_IN, both, 2), 1, true};
    nodes(&k);
    kit_workload(&k, "web", 6, &(struct berth_shape){.spread = &spread, .spread_len = 1});
    kit_plan(&k, "spread");
    assert_string_equal(kit_order(&k, "web"), "c1 b1 c1 a1 b1 c1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_pods_score_higher),
        cmocka_unit_test(a_requirement_is_not_scored),
        cmocka_unit_test(pods_of_one_plan_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
