/* affinity_test.c - required affinity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void nodes(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "a1", .zone = "a", .rack = "a1"});
    kit_node(k, (struct berth_node){.id = "a2", .zone = "a", .rack = "a2"});
    kit_node(k, (struct berth_node){.id = "b1", .zone = "b", .rack = "b1"});
    kit_node(k, (struct berth_node){.id = "x1"});
}

static void affinity_needs_domain_with_selected_pods(void **state)
{
    (void)state;
    static const struct {
        const char *label, *topology, *near, *db_on, *pin;
        uint64_t want;
    } rows[] = {
        {"this node",                    "node", "db",   "a2", "a2", 0},
        {"another node",                 "node", "db",   "a2", "a1", 3},
        {"this zone",                    "zone", "db",   "a2", "a1", 0},
        {"another zone",                 "zone", "db",   "b1", "a1", 3},
        {"another rack",                 "rack", "db",   "a2", "a1", 3},
        {"they are in no zone",          "zone", "db",   "x1", "x1", 4},
        {"node is in no zone",           "zone", "db",   "a1", "x1", 2},
        {"there are no such pods",       "zone", "ldap", "a1", "a1", 4},
        {"itself, the first",            "zone", "web",  "a1", "b1", 0},
        {"itself, node is in no zone",   "zone", "web",  "a1", "x1", 1},
        {"itself, nobody has the label", "row",  "web",  "a1", "a1", 4},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_affinity near = {.topology = rows[i].topology, .select = TERM_APP(rows[i].near, 0)};
        nodes(&k);
        kit_workload(&k, "db", 1, NULL);
        kit_running(&k, "db", 0, rows[i].db_on, 0);
        kit_workload(&k, "web", 1, &(struct berth_shape){.node = rows[i].pin, .near = &near, .near_len = 1});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "affinity", "", rows[i].want);
    }
}

/* Pods in no zone do not count for the affinity: the next pod may use any node with a zone. */
static void first_pod_needs_a_domain(void **state)
{
    (void)state;
    static const struct {
        const char *there, *want;
    } rows[] = {
        {"x1", "a1"},
        {"b1", "b1"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_affinity near = {.topology = "zone", .select = TERM_APP("web", 0)};
        nodes(&k);
        kit_workload(&k, "web", 2, &(struct berth_shape){.near = &near, .near_len = 1});
        kit_running(&k, "web", 0, rows[i].there, 0);
        kit_plan(&k, "least_allocated");
        assert_string_equal(kit_node_of(&k, "web", 1), rows[i].want);
    }
}

static void preferred_affinity_refuses_no_node(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_affinity near = {.topology = "zone", .select = TERM_APP("db", 1)};
    nodes(&k);
    kit_workload(&k, "web", 1, &(struct berth_shape){.node = "x1", .near = &near, .near_len = 1});
    kit_plan(&k, NULL);
    assert_string_equal(kit_node_of(&k, "web", 0), "x1");
}

static void later_pods_follow_the_first(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_affinity near = {.topology = "zone", .select = TERM_APP("web", 0)};
    struct berth_shape shape = {.near = &near, .near_len = 1, LIST(requests, struct berth_amount, {"cpu", 4000})};
    nodes(&k);
    kit_workload(&k, "web", 5, &shape); /* two fit on a node */
    kit_plan(&k, NULL);
    assert_string_equal(kit_order(&k, "web"), "a1 a2 a1 a2");
    assert_int_equal(kit_refusals(&k, "web", "affinity", ""), 2);

    kit_workload(&k, "web", 3, &shape);
    kit_running(&k, "web", 2, "b1", 0);
    kit_plan(&k, NULL);
    assert_string_equal(kit_order(&k, "web"), "b1");
}

static void pods_of_one_plan_satisfy_affinity(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_affinity near = {.topology = "zone", .select = TERM_APP("db", 0)};
    nodes(&k);
    kit_workload(&k, "app", 1, &(struct berth_shape){.near = &near, .near_len = 1}); /* it is tried first */
    kit_workload(&k, "db", 1, &(struct berth_shape){.node = "b1"});
    kit_plan(&k, NULL);
    assert_string_equal(kit_node_of(&k, "app", 0), "b1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(affinity_needs_domain_with_selected_pods), cmocka_unit_test(first_pod_needs_a_domain),
        cmocka_unit_test(preferred_affinity_refuses_no_node),       cmocka_unit_test(later_pods_follow_the_first),
        cmocka_unit_test(pods_of_one_plan_satisfy_affinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
