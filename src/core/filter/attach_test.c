/* attach_test.c - the number of volumes of a driver that a node can attach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void volumes(struct kit *k)
{
    kit_volume(k, (struct berth_volume){.id = "s1", .driver = "ssd", .shared = true});
    kit_volume(k, (struct berth_volume){.id = "s2", .driver = "ssd", .shared = true});
    kit_volume(k, (struct berth_volume){.id = "s3", .driver = "ssd", .shared = true});
    kit_volume(k, (struct berth_volume){.id = "h1", .driver = "hdd", .shared = true});
    kit_volume(k, (struct berth_volume){.id = "plain", .shared = true});
}

static void a_volume_counts_once_per_node(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        int64_t limit; /* of the node, for ssd */
        const char *held[2];
        size_t held_len;
        const char *asked[2];
        size_t asked_len;
        uint64_t want;
    } rows[] = {
        {"none attached",             1, {NULL},       0, {"s1"},       1, 0},
        {"exactly",                   2, {"s1"},       1, {"s2"},       1, 0},
        {"one too many",              2, {"s1", "s2"}, 2, {"s3"},       1, 1},
        {"is attached already",       2, {"s1", "s2"}, 2, {"s1"},       1, 0},
        {"both are attached already", 2, {"s1", "s2"}, 2, {"s2", "s1"}, 2, 0},
        {"one of two is attached",    2, {"s1"},       1, {"s1", "s2"}, 2, 0},
        {"two, room for one",         2, {"s1"},       1, {"s2", "s3"}, 2, 1},
        {"none at all",               0, {NULL},       0, {"s1"},       1, 1},
        {"another driver",            2, {"s1", "s2"}, 2, {"h1"},       1, 0},
        {"no driver",                 0, {NULL},       0, {"plain"},    1, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        volumes(&k);
        kit_node(
            &k, (struct berth_node){.id = "n1", LIST(allocatable, struct berth_amount, {"attach-ssd", rows[i].limit})});
        kit_workload(&k, "old", 1, &(struct berth_shape){.volumes = rows[i].held, .volumes_len = rows[i].held_len});
        kit_running(&k, "old", 0, "n1", 0);
        kit_workload(&k, "web", 1, &(struct berth_shape){.volumes = rows[i].asked, .volumes_len = rows[i].asked_len});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "attach", "", rows[i].want);
    }
}

static void node_without_limit_attaches_any_number(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    volumes(&k);
    kit_node(&k, (struct berth_node){.id = "n1", LIST(allocatable, struct berth_amount, {"attach-ssd", 2})});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_workload(&k, "web", 1, &(struct berth_shape){NAMES(volumes, "s1", "s2", "s3")});
    kit_plan(&k, NULL);
    assert_string_equal(kit_node_of(&k, "web", 0), "n2");
}

static void pods_of_one_plan_count(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    volumes(&k);
    kit_node(&k, (struct berth_node){.id = "n1", LIST(allocatable, struct berth_amount, {"attach-ssd", 1})});
    kit_workload(&k, "a", 3, &(struct berth_shape){NAMES(volumes, "s1")});
    kit_workload(&k, "b", 1, &(struct berth_shape){NAMES(volumes, "s2")});
    kit_workload(&k, "c", 1, &(struct berth_shape){NAMES(volumes, "s1")});
    kit_plan(&k, NULL);
    assert_string_equal(kit_order(&k, "a"), "n1 n1 n1");
    assert_int_equal(kit_refusals(&k, "b", "attach", ""), 1);
    assert_string_equal(kit_order(&k, "c"), "n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_volume_counts_once_per_node),
        cmocka_unit_test(node_without_limit_attaches_any_number),
        cmocka_unit_test(pods_of_one_plan_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
