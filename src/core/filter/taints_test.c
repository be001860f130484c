/* taints_test.c - taints and tolerations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void taints_need_a_toleration(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        struct berth_taint taint;
        struct berth_toleration toleration;
        uint64_t want;
    } rows[] = {
        {"same",              {"gpu", "a", BERTH_NO_SCHEDULE},        {"gpu", "a", false, BERTH_NO_SCHEDULE}, 0},
        {"any effect",        {"gpu", "a", BERTH_NO_EXECUTE},         {"gpu", "a", false, BERTH_EFFECT_ANY},  0},
        {"other effect",      {"gpu", "a", BERTH_NO_EXECUTE},         {"gpu", "a", false, BERTH_NO_SCHEDULE}, 1},
        {"other value",       {"gpu", "a", BERTH_NO_SCHEDULE},        {"gpu", "b", false, BERTH_EFFECT_ANY},  1},
        {"no value",          {"gpu", "a", BERTH_NO_SCHEDULE},        {"gpu", "", false, BERTH_EFFECT_ANY},   1},
        {"no value on both",  {"gpu", "", BERTH_NO_SCHEDULE},         {"gpu", "", false, BERTH_EFFECT_ANY},   0},
        {"whatever value",    {"gpu", "a", BERTH_NO_SCHEDULE},        {"gpu", "", true, BERTH_EFFECT_ANY},    0},
        {"other key",         {"gpu", "a", BERTH_NO_SCHEDULE},        {"cpu", "", true, BERTH_EFFECT_ANY},    1},
        {"everything",        {"gpu", "a", BERTH_NO_EXECUTE},         {"", "", true, BERTH_EFFECT_ANY},       0},
        {"all of one effect", {"gpu", "a", BERTH_NO_SCHEDULE},        {"", "", true, BERTH_NO_SCHEDULE},      0},
        {"all of the other",  {"gpu", "a", BERTH_NO_EXECUTE},         {"", "", true, BERTH_NO_SCHEDULE},      1},
        {"none",              {"gpu", "a", BERTH_NO_SCHEDULE},        {"", "", false, BERTH_EFFECT_ANY},      1},
        {"none, NoExecute",   {"gpu", "a", BERTH_NO_EXECUTE},         {"", "", false, BERTH_EFFECT_ANY},      1},
        {"none, soft taint",  {"gpu", "a", BERTH_PREFER_NO_SCHEDULE}, {"", "", false, BERTH_EFFECT_ANY},      0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape shape = {.tolerations = &rows[i].toleration};
        /* otherwise no toleration at all */
        shape.tolerations_len = *rows[i].toleration.key || rows[i].toleration.exists;
        kit_node(&k, (struct berth_node){.id = "n1", .taints = &rows[i].taint, .taints_len = 1});
        kit_workload(&k, "web", 1, &shape);
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "taint", "", rows[i].want);
    }
}

static void each_taint_needs_a_toleration(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    static const struct berth_taint taints[] = {
        {"gpu", "", BERTH_NO_SCHEDULE},
        {"old", "", BERTH_NO_EXECUTE },
    };
    static const struct berth_toleration tolerations[] = {
        {"gpu", "", true, BERTH_EFFECT_ANY},
        {"old", "", true, BERTH_EFFECT_ANY},
    };
    kit_node(&k, (struct berth_node){.id = "n1", .taints = taints, .taints_len = 2});
    kit_node(&k, (struct berth_node){.id = "n2", .taints = taints, .taints_len = 1});
    kit_node(&k, (struct berth_node){.id = "n3", .taints = taints + 1, .taints_len = 1});
    struct berth_shape one = {.tolerations = tolerations, .tolerations_len = 1};
    struct berth_shape both = {.node = "n1", .tolerations = tolerations, .tolerations_len = 2};
    kit_workload(&k, "none", 1, NULL);
    kit_workload(&k, "one", 1, &one);
    kit_workload(&k, "both", 1, &both);
    kit_plan(&k, NULL);
    assert_int_equal(kit_refusals(&k, "none", "taint", ""), 3);
    assert_string_equal(kit_node_of(&k, "one", 0), "n2");
    assert_string_equal(kit_node_of(&k, "both", 0), "n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taints_need_a_toleration),
        cmocka_unit_test(each_taint_needs_a_toleration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
