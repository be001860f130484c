/* affinity_test.c - preferred affinity and anti-affinity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

/* db is on a1, noisy on a2 and b1; x1 is in no zone. */
static void nodes(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "a1", .zone = "a"});
    kit_node(k, (struct berth_node){.id = "a2", .zone = "a"});
    kit_node(k, (struct berth_node){.id = "b1", .zone = "b"});
    kit_node(k, (struct berth_node){.id = "x1"});
    kit_workload(k, "db", 1, NULL);
    kit_running(k, "db", 0, "a1", 0);
    kit_workload(k, "noisy", 2, NULL);
    kit_running(k, "noisy", 0, "a2", 0);
    kit_running(k, "noisy", 1, "b1", 0);
}

static void score_is_weighted_share(void **state)
{
    (void)state;
    static const struct {
        const char *label, *topology;
        int32_t near_db, from_noisy; /* weights; 0: no such preference */
        int32_t a1, a2, b1, x1;
    } rows[] = {
        {"near",           "node", 5,  0,  SCORE_ONE,         0,                 0, 0            },
        {"near, by zone",  "zone", 5,  0,  SCORE_ONE,         SCORE_ONE,         0, 0            },
        {"apart",          "node", 0,  5,  SCORE_ONE,         0,                 0, SCORE_ONE    },
        {"apart, by zone", "zone", 0,  5,  0,                 0,                 0, SCORE_ONE    },
        {"both",           "node", 75, 25, SCORE_ONE,         0,                 0, SCORE_ONE / 4},
        {"both, by zone",  "zone", 75, 25, SCORE_ONE / 4 * 3, SCORE_ONE / 4 * 3, 0, SCORE_ONE / 4},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_affinity near[2];
        struct berth_shape shape = {.near = near};
        const struct berth_term db = TERM_APP("db", rows[i].near_db), noisy = TERM_APP("noisy", rows[i].from_noisy);
        if (rows[i].near_db)
            near[shape.near_len++] = (struct berth_affinity){rows[i].topology, db, false};
        if (rows[i].from_noisy)
            near[shape.near_len++] = (struct berth_affinity){rows[i].topology, noisy, true};
        nodes(&k);
        kit_workload(&k, "web", 0, &shape);
        kit_plan(&k, "affinity");
        print_message("%s\n", rows[i].label);
        assert_int_equal(kit_score(&k, "web", "a1"), rows[i].a1);
        assert_int_equal(kit_score(&k, "web", "a2"), rows[i].a2);
        assert_int_equal(kit_score(&k, "web", "b1"), rows[i].b1);
        assert_int_equal(kit_score(&k, "web", "x1"), rows[i].x1);
    }
}

static void requirements_are_not_scored(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_affinity near = {"zone", TERM_APP("db", 0), false};
    nodes(&k);
    kit_workload(&k, "web", 0, &(struct berth_shape){.near = &near, .near_len = 1});
    kit_plan(&k, "affinity");
    assert_int_equal(kit_score(&k, "web", "a1"), 0);
}

static void pods_of_one_plan_count(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        bool apart;
        const char *want;
    } rows[] = {
        {"together", false, "x1 x1 x1 x1 x1"},
        {"apart",    true,  "x1 a1 a2 b1 x1"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_affinity near = {"node", TERM_APP("web", 1), rows[i].apart};
        nodes(&k);
        kit_workload(&k, "web", 5, &(struct berth_shape){.near = &near, .near_len = 1});
        kit_plan(&k, "affinity");
        if (strcmp(kit_order(&k, "web"), rows[i].want) != 0)
            fail_msg("%s: %s, not %s", rows[i].label, kit_order(&k, "web"), rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(score_is_weighted_share),
        cmocka_unit_test(requirements_are_not_scored),
        cmocka_unit_test(pods_of_one_plan_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
