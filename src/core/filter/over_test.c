/* over_test.c - a node whose capacity fell below what it holds gets nothing new until it has room again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

/* Node n1 with this amount of a resource. */
static void node_with(struct kit *k, const char *resource, int64_t amount)
{
    kit_node(k, (struct berth_node){.id = "n1", LIST(allocatable, struct berth_amount, {resource, amount})});
}

static void node_above_capacity_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *label, *resource;
        int64_t held, has;
        uint64_t want;
    } rows[] = {
        {"exactly full",      "cpu",     2000, 2000, 0},
        {"one too much",      "cpu",     2000, 1999, 1},
        {"nothing left",      "cpu",     2000, 0,    1},
        {"of memory",         "memory",  1000, 999,  1},
        {"of something else", "licence", 2,    1,    1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape holds = {LIST(requests, struct berth_amount, {rows[i].resource, rows[i].held})};
        node_with(&k, rows[i].resource, rows[i].held);
        kit_workload(&k, "old", 1, &holds);
        kit_running(&k, "old", 0, "n1", 0);
        node_with(&k, rows[i].resource, rows[i].has);
        kit_workload(&k, "web", 1, NULL); /* requests nothing */
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "over", "", rows[i].want);
    }
}

/* allow_over, as in Kubernetes: only the requested resources must be free. */
static void allow_over_ignores_unrequested_resources(void **state)
{
    (void)state;
    static const struct {
        const char *label, *asks;
        bool allow, placed;
    } rows[] = {
        {"asks for something else", "memory", true,  true },
        {"asks for what is short",  "cpu",    true,  false},
        {"not allowed",             "memory", false, false},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape holds = {LIST(requests, struct berth_amount, {"cpu", 2000})};
        struct berth_shape asks = {LIST(requests, struct berth_amount, {rows[i].asks, 1})};
        const struct berth_weight weight = {"least_allocated", 1};
        const struct berth_profile profile = {
            .name = "test", .scores = &weight, .scores_len = 1, .allow_over = rows[i].allow};
        const struct berth_policy policy = {.profile = &profile};
        kit_node(&k, (struct berth_node){.id = "n1"});
        kit_workload(&k, "old", 1, &holds);
        kit_running(&k, "old", 0, "n1", 0);
        kit_node(&k, (struct berth_node){.id = "n1",
                                         LIST(allocatable, struct berth_amount, {"cpu", 1000}, {"memory", KIT_GIB})});
        kit_workload(&k, "web", 1, &asks);
        k.snapshot = berth_freeze(k.cluster, 0, 0);
        kit_check(&k, berth_plan_make(k.snapshot, &policy, &k.plan, &k.err));
        if ((*kit_node_of(&k, "web", 0) != '\0') != rows[i].placed)
            fail_msg("%s", rows[i].label);
    }
}

static void node_with_room_again_accepts_pods(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape holds = {LIST(requests, struct berth_amount, {"cpu", 2000})};
    node_with(&k, "cpu", 2000);
    kit_workload(&k, "old", 1, &holds);
    kit_running(&k, "old", 0, "n1", 0);
    node_with(&k, "cpu", 1000);
    kit_check(&k, berth_workload_remove(k.cluster, "old", &k.err));
    kit_check(&k, berth_instance_remove(k.cluster, 1, &k.err));
    kit_workload(&k, "web", 1, NULL);
    kit_plan(&k, NULL);
    assert_string_equal(kit_node_of(&k, "web", 0), "n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_above_capacity_refuses),
        cmocka_unit_test(allow_over_ignores_unrequested_resources),
        cmocka_unit_test(node_with_room_again_accepts_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
