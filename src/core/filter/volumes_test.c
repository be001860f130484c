/* volumes_test.c - volumes that cannot be reached, or are mounted on another node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void nodes(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "n1", .zone = "a"});
    kit_node(k, (struct berth_node){.id = "n2", .zone = "b"});
    kit_node(k, (struct berth_node){.id = "n3"});
}

static void volumes_need_reach_and_free_use(void **state)
{
    (void)state;
    static const struct {
        const char *label, *zone, *node; /* of the volume */
        bool shared;
        const char *mounted; /* by a pod on this node */
        uint64_t want;       /* number of nodes that refuse the pod */
    } rows[] = {
        {"everywhere",                   NULL, NULL, false, NULL, 0},
        {"in this zone",                 "a",  NULL, false, NULL, 0},
        {"in another zone",              "b",  NULL, false, NULL, 2},
        {"in a zone without nodes",      "c",  NULL, false, NULL, 3},
        {"on this node",                 NULL, "n1", false, NULL, 0},
        {"on another node",              NULL, "n3", false, NULL, 2},
        {"on this node of another zone", "b",  "n1", false, NULL, 3},
        {"in use elsewhere",             NULL, NULL, false, "n2", 2},
        {"in use here",                  NULL, NULL, false, "n1", 0},
        {"shared, in use elsewhere",     NULL, NULL, true,  "n2", 0},
        {"shared, in another zone",      "b",  NULL, true,  "n2", 2},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_volume v = {.id = "v1", .zone = rows[i].zone, .node = rows[i].node, .shared = rows[i].shared};
        struct berth_shape shape = {NAMES(volumes, "v1")};
        nodes(&k);
        kit_volume(&k, v);
        kit_workload(&k, "old", rows[i].mounted != NULL, &shape);
        if (rows[i].mounted)
            kit_running(&k, "old", 0, rows[i].mounted, 0);
        shape.node = "n1";
        kit_workload(&k, "web", 1, &shape);
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "volume", "v1", rows[i].want);
    }
}

static void each_volume_is_counted(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    nodes(&k);
    kit_volume(&k, (struct berth_volume){.id = "v1", .zone = "a"});
    kit_volume(&k, (struct berth_volume){.id = "v2", .node = "n2"});
    kit_workload(&k, "web", 1, &(struct berth_shape){NAMES(volumes, "v1", "v2")});
    kit_plan(&k, NULL);
    assert_int_equal(kit_refusals(&k, "web", "volume", "v1"), 2);
    assert_int_equal(kit_refusals(&k, "web", "volume", "v2"), 2);
}

static void pods_of_one_plan_share_the_volume_node(void **state)
{
    (void)state;
    static const struct {
        bool shared;
        const char *want;
    } rows[] = {
        {false, "n1 n1 n1"},
        {true,  "n1 n2 n3"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape shape = {NAMES(volumes, "v1"), LIST(requests, struct berth_amount, {"cpu", 1000})};
        kit_node(&k, (struct berth_node){.id = "n1"});
        kit_node(&k, (struct berth_node){.id = "n2"});
        kit_node(&k, (struct berth_node){.id = "n3"});
        kit_volume(&k, (struct berth_volume){.id = "v1", .shared = rows[i].shared});
        kit_workload(&k, "web", 3, &shape);
        kit_plan(&k, NULL);
        assert_string_equal(kit_order(&k, "web"), rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(volumes_need_reach_and_free_use),
        cmocka_unit_test(each_volume_is_counted),
        cmocka_unit_test(pods_of_one_plan_share_the_volume_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
