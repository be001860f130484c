/* anti_affinity_test.c - required anti-affinity, declared by either side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void nodes(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "a1", .zone = "a"});
    kit_node(k, (struct berth_node){.id = "a2", .zone = "a"});
    kit_node(k, (struct berth_node){.id = "b1", .zone = "b"});
    kit_node(k, (struct berth_node){.id = "x1"});
}

static void anti_affinity_binds_both_sides(void **state)
{
    (void)state;
    static const struct {
        const char *label, *topology, *db_on, *pin;
        int32_t weight;
        uint64_t want;
    } rows[] = {
        {"this node",           "node", "a1", "a1", 0, 1},
        {"another node",        "node", "a2", "a1", 0, 0},
        {"this zone",           "zone", "a2", "a1", 0, 2},
        {"another zone",        "zone", "b1", "a1", 0, 0},
        {"node is in no zone",  "zone", "a1", "x1", 0, 0},
        {"both are in no zone", "zone", "x1", "x1", 0, 0},
        {"a preference",        "node", "a1", "a1", 5, 0},
    };
    for (size_t i = 0; i < 2 * ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        size_t r = i / 2;
        bool db_says = i % 2;
        struct berth_affinity apart = {.topology = rows[r].topology, .apart = true};
        apart.select = TERM_APP(db_says ? "web" : "db", rows[r].weight);
        nodes(&k);
        kit_workload(&k, "db", 1, &(struct berth_shape){.near = &apart, .near_len = db_says});
        kit_running(&k, "db", 0, rows[r].db_on, 0);
        kit_workload(&k, "web", 1, &(struct berth_shape){.node = rows[r].pin, .near = &apart, .near_len = !db_says});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[r].label, "anti-affinity", "", rows[r].want);
    }
}

static void pods_of_one_workload_stay_apart(void **state)
{
    (void)state;
    static const struct {
        const char *topology, *want;
        uint64_t refusals;
    } rows[] = {
        {"node", "x1 a1 a2 b1",    4},
        {"zone", "x1 a1 b1 x1 x1", 0}, /* a node without a zone has no neighbours */
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_affinity apart = {.topology = rows[i].topology, .select = TERM_APP("web", 0), .apart = true};
        struct berth_shape shape = {.near = &apart, .near_len = 1, LIST(requests, struct berth_amount, {"cpu", 1000})};
        nodes(&k);
        kit_workload(&k, "web", 5, &shape);
        kit_plan(&k, NULL);
        assert_string_equal(kit_order(&k, "web"), rows[i].want);
        assert_int_equal(kit_refusals(&k, "web", "anti-affinity", ""), rows[i].refusals);
    }
}

static void preferred_anti_affinity_is_not_required(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_affinity apart[] = {
        {"node", TERM_APP("db",    5), true},
        {"node", TERM_APP("noisy", 0), true},
    };
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_workload(&k, "db", 1, NULL);
    kit_running(&k, "db", 0, "n1", 0);
    kit_workload(&k, "noisy", 1, NULL);
    kit_running(&k, "noisy", 0, "n2", 0);
    kit_workload(&k, "web", 1, &(struct berth_shape){.near = apart, .near_len = 2});
    kit_plan(&k, NULL);
    assert_string_equal(kit_node_of(&k, "web", 0), "n1");
}

static void pods_of_one_plan_stay_apart(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_affinity apart = {.topology = "node", .select = TERM_APP("noisy", 0), .apart = true};
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_workload(&k, "calm", 1, &(struct berth_shape){.near = &apart, .near_len = 1});
    kit_workload(&k, "noisy", 1, NULL);
    kit_plan(&k, NULL);
    assert_string_equal(kit_node_of(&k, "calm", 0), "n1");
    assert_int_equal(kit_refusals(&k, "noisy", "anti-affinity", ""), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anti_affinity_binds_both_sides),
        cmocka_unit_test(pods_of_one_workload_stay_apart),
        cmocka_unit_test(preferred_anti_affinity_is_not_required),
        cmocka_unit_test(pods_of_one_plan_stay_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
