/* image_locality_test.c - images that a node already has, by size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

#define MIB ((int64_t)1 << 20)

static void score_follows_image_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        int64_t nginx, redis; /* sizes on the node; 0: not present */
        const char *asked[2];
        size_t asked_len;
        int32_t want;
    } rows[] = {
        {"none asked for",   1024 * MIB, 0,          {NULL},             0, 0            },
        {"not there",        0,          1024 * MIB, {"nginx"},          1, 0            },
        {"half a gibibyte",  512 * MIB,  0,          {"nginx"},          1, SCORE_ONE / 2},
        {"a gibibyte",       1024 * MIB, 0,          {"nginx"},          1, SCORE_ONE    },
        {"no more than all", 8192 * MIB, 0,          {"nginx"},          1, SCORE_ONE    },
        {"one of two",       1024 * MIB, 0,          {"redis", "nginx"}, 2, SCORE_ONE / 2},
        {"both, in part",    512 * MIB,  512 * MIB,  {"redis", "nginx"}, 2, SCORE_ONE / 2},
        {"both",             1024 * MIB, 1024 * MIB, {"redis", "nginx"}, 2, SCORE_ONE    },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_image images[2];
        size_t len = 0;
        if (rows[i].nginx)
            images[len++] = (struct berth_image){"nginx", rows[i].nginx};
        if (rows[i].redis)
            images[len++] = (struct berth_image){"redis", rows[i].redis};
        kit_node(&k, (struct berth_node){.id = "n1", .images = images, .images_len = len});
        kit_workload(&k, "web", 0, &(struct berth_shape){.images = rows[i].asked, .images_len = rows[i].asked_len});
        kit_plan(&k, "image_locality");
        if (kit_score(&k, "web", "n1") != rows[i].want)
            fail_msg("%s: %d, not %d", rows[i].label, kit_score(&k, "web", "n1"), rows[i].want);
    }
}

static void node_with_most_image_bytes_is_chosen(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2", LIST(images, struct berth_image, {"nginx", 100 * MIB})});
    kit_node(&k, (struct berth_node){.id = "n3", LIST(images, struct berth_image, {"redis", 900 * MIB})});
    kit_node(&k, (struct berth_node){.id = "n4", LIST(images, struct berth_image, {"nginx", 200 * MIB})});
    kit_workload(&k, "web", 4, &(struct berth_shape){.max_per_node = 1, NAMES(images, "nginx")});
    kit_plan(&k, "image_locality");
    assert_string_equal(kit_order(&k, "web"), "n4 n2 n1 n3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(score_follows_image_sizes),
        cmocka_unit_test(node_with_most_image_bytes_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
