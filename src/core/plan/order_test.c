/* order_test.c - order of workloads: priority, then creation time, then id; gangs stay together. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static void expect_order(struct scene *s, const char *want)
{
    char got[SCENE_TEXT_MAX] = "";
    size_t len = 0;
    scene_plan(s);
    for (size_t i = 0; i < berth_plan_actions(s->p); i++)
        len +=
            (size_t)snprintf(got + len, sizeof got - len, "%s%s", len ? " " : "", berth_plan_action(s->p, i).workload);
    assert_string_equal(got, want);
}

static void put(struct scene *s, const char *id, int32_t priority, int64_t created_ns, const char *gang)
{
    scene_put(s, (struct berth_workload){.id = id,
                                         .replicas = 1,
                                         .priority = priority,
                                         .created_ns = created_ns,
                                         .gang = gang,
                                         .shape = {NEEDS(10, 10)}});
}

static void priority_then_creation_then_id(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 100000, 100000);
    put(&s, "z", 5, 1, NULL);
    put(&s, "a", 0, 3, NULL);
    put(&s, "b", 0, 3, NULL);
    put(&s, "c", 0, 2, NULL);
    put(&s, "d", -5, 0, NULL);
    put(&s, "e", 0, -7, NULL);
    put(&s, "f", INT32_MAX, INT64_MAX, NULL);
    put(&s, "g", INT32_MIN, INT64_MIN, NULL);
    put(&s, "h", 0, INT64_MAX, NULL);
    put(&s, "i", 0, INT64_MIN, NULL);
    expect_order(&s, "f z i e c a b h d g");
    scene_cleanup(&s);
}

static void ids_are_compared_as_bytes(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 100000, 100000);
    put(&s, "b", 0, 0, NULL);
    put(&s, "B", 0, 0, NULL);
    put(&s, "a10", 0, 0, NULL);
    put(&s, "a1", 0, 0, NULL);
    put(&s, "a2", 0, 0, NULL);
    put(&s, "\xc3\xa4", 0, 0, NULL);
    expect_order(&s, "B a1 a10 a2 b \xc3\xa4");
    scene_cleanup(&s);
}

static void gang_is_ordered_by_its_first_member(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 100000, 100000);
    put(&s, "a", 0, 0, NULL);
    put(&s, "b", 9, 0, "g");
    put(&s, "c", 5, 0, NULL);
    put(&s, "d", -9, 0, "g");
    put(&s, "e", 3, 0, "g");
    put(&s, "f", 4, 0, "h");
    put(&s, "x", 4, 0, NULL);
    put(&s, "y", 4, 0, "h");
    expect_order(&s, "b e d c f y x a");
    scene_cleanup(&s);
}

static void order_does_not_depend_on_put_order(void **state)
{
    (void)state;
    uint64_t seed = scene_seed(), want = 0;
    for (int round = 0; round < 20; round++) {
        struct scene s = scene_new();
        uint32_t at[50];
        for (uint32_t i = 0; i < 50; i++)
            at[i] = i;
        for (uint32_t i = 49; i > 0; i--) {
            uint32_t j = scene_random_below(&seed, i + 1), swap = at[i];
            at[i] = at[j];
            at[j] = swap;
        }
        scene_node(&s, "n", 300, 100000); /* room for some of the workloads */
        for (uint32_t i = 0; i < 50; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "w%u", at[i]);
            put(&s, id, (int32_t)(at[i] % 3), at[i] % 4, at[i] % 5 == 0 ? "g" : NULL);
        }
        scene_plan(&s);
        assert_int_equal(berth_plan_actions(s.p), 30);
        if (round)
            assert_true(berth_plan_hash(s.p) == want);
        want = berth_plan_hash(s.p);
        scene_cleanup(&s);
    }
}

static void settled_workloads_are_skipped(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    put(&s, "settled", 0, 0, NULL);
    put(&s, "missing", 0, 0, NULL);
    scene_running(&s, "settled", 0, "a");
    expect_order(&s, "missing");
    assert_int_equal(berth_plan_stats(s.p).searches, 1);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(priority_then_creation_then_id),      cmocka_unit_test(ids_are_compared_as_bytes),
        cmocka_unit_test(gang_is_ordered_by_its_first_member), cmocka_unit_test(order_does_not_depend_on_put_order),
        cmocka_unit_test(settled_workloads_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
