/* resources_test.c - free resources against requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void exact_fit_is_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        int64_t has, ratio, held, need;
        uint64_t want;
    } rows[] = {
        {"exactly",                   1000, 1000, 0,    1000, 0},
        {"one short",                 1000, 1000, 0,    1001, 1},
        {"what is left, exactly",     1000, 1000, 400,  600,  0},
        {"what is left, one short",   1000, 1000, 400,  601,  1},
        {"none of a full one",        1000, 1000, 1000, 0,    0},
        {"one of a full one",         1000, 1000, 1000, 1,    1},
        {"there is none",             0,    1000, 0,    1,    1},
        {"over-committed",            1000, 1500, 1000, 500,  0},
        {"over-committed, one short", 1000, 1500, 1000, 501,  1},
        {"under-committed",           1000, 500,  0,    501,  1},
        {"rounded down",              3,    1500, 0,    5,    1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_amount held = {"cpu", rows[i].held}, need = {"cpu", rows[i].need};
        struct berth_node n = {.id = "n1", LIST(allocatable, struct berth_amount, {"cpu", rows[i].has})};
        const struct berth_amount ratio = {"cpu", rows[i].ratio};
        n.overcommit = &ratio;
        n.overcommit_len = 1;
        kit_node(&k, n);
        kit_workload(&k, "old", 1, &(struct berth_shape){.requests = &held, .requests_len = 1});
        kit_running(&k, "old", 0, "n1", 0);
        kit_workload(&k, "web", 1, &(struct berth_shape){.requests = &need, .requests_len = 1});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "short", "cpu", rows[i].want);
    }
}

static void each_resource_is_counted(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {
        LIST(requests, struct berth_amount, {"cpu", 2000}, {"memory", 2000}, {"licence", 1}, {"fpga", 0})};
    kit_node(&k,
             (struct berth_node){.id = "n1", LIST(allocatable, struct berth_amount, {"cpu", 1000}, {"memory", 1000})});
    kit_node(&k,
             (struct berth_node){.id = "n2", LIST(allocatable, struct berth_amount, {"cpu", 2000}, {"memory", 1000})});
    kit_node(&k,
             (struct berth_node){.id = "n3", LIST(allocatable, struct berth_amount, {"cpu", 2000}, {"memory", 2000})});
    kit_workload(&k, "web", 1, &shape);
    kit_plan(&k, NULL);
    assert_int_equal(kit_refusals(&k, "web", "short", "cpu"), 1);
    assert_int_equal(kit_refusals(&k, "web", "short", "memory"), 2);
    assert_int_equal(kit_refusals(&k, "web", "short", "licence"), 3); /* no node has any */
    assert_int_equal(kit_refusals(&k, "web", "short", "fpga"), 0);
}

static void pods_resource_limits_pods_per_node(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    kit_node(&k, (struct berth_node){.id = "n1", LIST(allocatable, struct berth_amount, {"pods", 2})});
    kit_workload(&k, "web", 3, NULL);
    kit_plan(&k, NULL);
    assert_string_equal(kit_order(&k, "web"), "n1 n1");
    assert_int_equal(kit_refusals(&k, "web", "short", "pods"), 1);
}

static void consumption_counts_until_its_period_ends(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        int64_t now_ns, need;
        uint64_t want;
    } rows[] = {
        {"exactly what is left", 99,  40,  0},
        {"one short",            99,  41,  1},
        {"in the next period",   100, 100, 0},
        {"never more than all",  100, 101, 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_resource traffic = {.name = "traffic", .kind = BERTH_CUMULATIVE, .period_ns = 100};
        const struct berth_amount need = {"traffic", rows[i].need};
        kit_check(&k, berth_resource_put(k.cluster, &traffic, &k.err));
        kit_node(&k, (struct berth_node){.id = "n1",
                                         LIST(allocatable, struct berth_amount, {"traffic", 100}),
                                         LIST(consumed, struct berth_amount, {"traffic", 60})});
        kit_workload(&k, "web", 1, &(struct berth_shape){.requests = &need, .requests_len = 1});
        k.now_ns = rows[i].now_ns;
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "short", "traffic", rows[i].want);
    }
}

/* Each consumable resource has its own period; the start of each period is reported. */
static void each_resource_has_its_own_period(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        int64_t now_ns;
        uint64_t want_traffic, want_charge;
    } rows[] = {
        {"both count",      149, 1, 1},
        {"one began anew",  150, 0, 1},
        {"the longer one",  299, 0, 1},
        {"both began anew", 300, 0, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        for (int of = 0; of < 2; of++) {
            CLEANUP(kit) struct kit k = kit_new();
            struct berth_resource traffic = {.name = "traffic", .kind = BERTH_CUMULATIVE, .period_ns = 100};
            struct berth_resource charge = {.name = "charge", .kind = BERTH_CUMULATIVE, .period_ns = 300};
            const char *name = of ? "charge" : "traffic";
            const struct berth_amount need = {name, 50};
            kit_check(&k, berth_resource_put(k.cluster, &traffic, &k.err));
            kit_check(&k, berth_resource_put(k.cluster, &charge, &k.err));
            kit_node(&k, (struct berth_node){.id = "n1",
                                             LIST(allocatable, struct berth_amount, {"traffic", 100}, {"charge", 100}),
                                             LIST(consumed, struct berth_amount, {"traffic", 60}, {"charge", 60}),
                                             LIST(consumed_begun, struct berth_amount, {"traffic", 50})});
            kit_workload(&k, "web", 1, &(struct berth_shape){.requests = &need, .requests_len = 1});
            k.now_ns = rows[i].now_ns;
            kit_plan(&k, NULL);
            kit_expect(&k, rows[i].label, "short", name, of ? rows[i].want_charge : rows[i].want_traffic);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_fit_is_accepted),
        cmocka_unit_test(each_resource_is_counted),
        cmocka_unit_test(pods_resource_limits_pods_per_node),
        cmocka_unit_test(consumption_counts_until_its_period_ends),
        cmocka_unit_test(each_resource_has_its_own_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
