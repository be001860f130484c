/* preferences_test.c - preferred labels, and soft taints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

static const struct berth_label ssd = {"disk", "ssd"}, red = {"colour", "red"};
static const struct berth_taint soft = {"old", "", BERTH_PREFER_NO_SCHEDULE};
static const struct berth_toleration any = {.exists = true};

static void score_is_weighted_share(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        int32_t of_ssd, of_red; /* weights; 0: no such preference */
        bool has_ssd, has_red, tainted, tolerated;
        int32_t want;
    } rows[] = {
        {"nothing asked for",            0,   0,    true,  true,  false, false, 0                },
        {"holds",                        7,   0,    true,  false, false, false, SCORE_ONE        },
        {"does not hold",                7,   0,    false, true,  false, false, 0                },
        {"the heavier of two",           75,  25,   true,  false, false, false, SCORE_ONE / 4 * 3},
        {"the lighter of two",           75,  25,   false, true,  false, false, SCORE_ONE / 4    },
        {"both",                         75,  25,   true,  true,  false, false, SCORE_ONE        },
        {"to be avoided",                0,   -100, false, true,  false, false, -SCORE_ONE       },
        {"avoided",                      0,   -100, true,  false, false, false, 0                },
        {"liked and to be avoided",      50,  -50,  true,  true,  false, false, 0                },
        {"liked and avoided",            50,  -50,  true,  false, false, false, SCORE_ONE / 2    },
        {"soft taint",                   0,   0,    false, false, true,  false, -SCORE_ONE       },
        {"soft taint, tolerated",        0,   0,    false, false, true,  true,  0                },
        {"soft taint outweighs",         100, 0,    true,  false, true,  false, -SCORE_ONE       },
        {"soft taint, tolerated, liked", 100, 0,    true,  false, true,  true,  SCORE_ONE        },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_label labels[2];
        struct berth_term prefer[2];
        struct berth_node n = {.id = "n1", .labels = labels, .taints = &soft, .taints_len = rows[i].tainted};
        struct berth_shape shape = {.prefer = prefer, .tolerations = &any, .tolerations_len = rows[i].tolerated};
        if (rows[i].has_ssd)
            labels[n.labels_len++] = ssd;
        if (rows[i].has_red)
            labels[n.labels_len++] = red;
        const struct berth_term for_ssd = TERM("disk", rows[i].of_ssd, BERTH_IN, &ssd.value, 1);
        const struct berth_term for_red = TERM("colour", rows[i].of_red, BERTH_IN, &red.value, 1);
        if (rows[i].of_ssd)
            prefer[shape.prefer_len++] = for_ssd;
        if (rows[i].of_red)
            prefer[shape.prefer_len++] = for_red;
        kit_node(&k, n);
        kit_workload(&k, "web", 0, &shape);
        kit_plan(&k, "preferences");
        if (kit_score(&k, "web", "n1") != rows[i].want)
            fail_msg("%s: %d, not %d", rows[i].label, kit_score(&k, "web", "n1"), rows[i].want);
    }
}

static void preferred_nodes_first_tainted_last(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_term prefer[] = {
        TERM("disk", 1, BERTH_EXISTS, NULL, 0),
        TERM("colour", -1, BERTH_EXISTS, NULL, 0),
    };
    kit_node(&k, (struct berth_node){.id = "n1", .taints = &soft, .taints_len = 1});
    kit_node(&k, (struct berth_node){.id = "n2", .labels = &red, .labels_len = 1});
    kit_node(&k, (struct berth_node){.id = "n3"});
    kit_node(&k, (struct berth_node){.id = "n4", .labels = &ssd, .labels_len = 1});
    kit_node(&k, (struct berth_node){.id = "n5"});
    kit_workload(&k, "web", 5, &(struct berth_shape){.max_per_node = 1, .prefer = prefer, .prefer_len = 2});
    kit_plan(&k, "preferences");
    assert_string_equal(kit_order(&k, "web"), "n4 n3 n5 n2 n1");
}

static void tainted_node_is_better_than_none(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1", .taints = &soft, .taints_len = 1});
    kit_workload(&k, "web", 1, NULL);
    kit_plan(&k, "preferences");
    assert_string_equal(kit_node_of(&k, "web", 0), "n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(score_is_weighted_share),
        cmocka_unit_test(preferred_nodes_first_tainted_last),
        cmocka_unit_test(tainted_node_is_better_than_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
