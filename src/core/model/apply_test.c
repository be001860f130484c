/* apply_test.c - applying a plan to its cluster; stale plans are refused; migration facts are put and removed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static int apply(struct scene *s, uint64_t first_id)
{
    return berth_apply(s->c, s->p, first_id, &s->err);
}

static void ids_are_assigned_in_order(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 3, 10, 10);
    scene_expect(&s, "place web/0 a pending; place web/1 a pending; place web/2 a pending");
    scene_check(&s, apply(&s, 100));
    for (uint64_t id = 100; id < 103; id++) {
        const struct instance *i = cluster_instance(s.c, cluster_instance_find(s.c, id));
        assert_int_equal(i->ordinal, id - 100);
        assert_int_equal(i->state, BERTH_ASSIGNED);
        assert_true(i->since_ns == s.now_ns);
    }
    assert_true(cluster_instance_find(s.c, 103) == NONE);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void ids_start_above_zero(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 1, 10, 10);
    scene_plan(&s);
    assert_int_equal(apply(&s, 0), -EINVAL);
    assert_int_equal(cluster_node(s.c, 0)->instances, 0);
    scene_check(&s, apply(&s, 1));
    scene_cleanup(&s);
}

static void used_ids_are_refused(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 3, 10, 10);
    scene_running(&s, "web", 0, "a"); /* 1 */
    scene_plan(&s);
    assert_true(apply(&s, 1) < 0);
    scene_audit(&s);
    assert_int_equal(cluster_node(s.c, 0)->instances, 1);
    scene_check(&s, apply(&s, 2));
    scene_cleanup(&s);
}

/* ---- stale plans ------------------------------------------------------------------------------------------------ */

static void remove_workload(struct scene *s)
{
    scene_check(s, berth_workload_remove(s->c, "new", &s->err));
}

static void swap_workload(struct scene *s)
{
    remove_workload(s);
    scene_service(s, "else", 1, 10, 10); /* in the same slot */
}

static void change_node(struct scene *s)
{
    scene_node(s, "b", 5, 5);
}

static void remove_node(struct scene *s)
{
    scene_check(s, berth_node_remove(s->c, "b", &s->err));
}

static void swap_node(struct scene *s)
{
    remove_node(s);
    scene_node(s, "c", 1000, 1000);
}

static void remove_instance(struct scene *s)
{
    scene_remove(s, 1);
}

static void swap_instance(struct scene *s)
{
    scene_remove(s, 1);
    scene_running(s, "old", 0, "a");
}

static void instance_ended(struct scene *s)
{
    scene_report(s, 1, BERTH_ENDED, false);
}

static void instance_reported_again(struct scene *s)
{
    scene_report(s, 1, BERTH_RUNNING, true);
}

static void workload_put_again(struct scene *s)
{
    scene_service(s, "new", 1, 600, 10);
}

static void volume_put(struct scene *s)
{
    const struct berth_volume v = {.id = "disk", .driver = "csi"};
    scene_check(s, berth_volume_put(s->c, &v, &s->err));
}

static void resource_put(struct scene *s)
{
    const struct berth_resource r = {.name = "traffic", .kind = BERTH_CUMULATIVE};
    scene_check(s, berth_resource_put(s->c, &r, &s->err));
}

static void fact_put(struct scene *s)
{
    const struct berth_fact f = {.kind = BERTH_FACT_MIGRATION, .subject = 1, .value = BERTH_MIGRATION_STARTING};
    scene_check(s, berth_fact_put(s->c, &f, &s->err));
}

static void stale_plans_are_refused(void **state)
{
    static void (*const changes[])(struct scene *) = {
        remove_workload,    swap_workload,  change_node,
        remove_node,        swap_node,      remove_instance,
        swap_instance,      instance_ended, instance_reported_again,
        workload_put_again, volume_put,     resource_put,
        fact_put,
    };
    (void)state;
    for (size_t i = 0; i < ROWS(changes); i++) {
        struct scene s = scene_new();
        scene_node(&s, "a", 500, 500);
        scene_node(&s, "b", 1000, 1000);
        scene_service(&s, "old", 1, 10, 10);
        scene_running(&s, "old", 0, "a");
        scene_service(&s, "old", 0, 10, 10);
        scene_service(&s, "new", 1, 600, 10);
        scene_expect(&s, "stop old/0 a scaled #1; place new/0 b pending");
        changes[i](&s);
        struct berth_snapshot *x = berth_freeze(s.c, 0, 0);
        struct berth_plan *p = NULL;
        scene_check(&s, berth_plan_make(x, NULL, &p, &s.err));
        uint64_t before = berth_plan_hash(p);
        berth_plan_free(p);
        berth_snapshot_free(x);
        if (apply(&s, 50) != -ESTALE)
            fail_msg("change %zu is not noticed", i);
        scene_audit(&s);
        assert_true(cluster_instance_find(s.c, 50) == NONE);
        s.now_ns = 0;
        scene_plan(&s);
        assert_true(berth_plan_hash(s.p) == before); /* nothing was changed */
        scene_cleanup(&s);
    }
}

static void plan_is_applied_once(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "old", 1, 10, 10);
    scene_instance(&s, (struct berth_instance){.workload = "old", .node = "a", .state = BERTH_RUNNING});
    scene_check(&s, berth_workload_remove(s.c, "old", &s.err));
    scene_expect_and_apply(&s, "stop old/0 a removed #1");
    assert_int_equal(cluster_instance(s.c, cluster_instance_find(s.c, 1))->state, BERTH_STOPPING);
    scene_cleanup(&s);
}

/* Also if no id would be reused. */
static void applied_plan_is_stale(void **state)
{
    static const uint32_t fresh[] = {0, 1};
    (void)state;
    for (size_t i = 0; i < ROWS(fresh); i++) {
        struct scene s = scene_new();
        scene_node(&s, "a", 1000, 1000);
        scene_service(&s, "old", 1, 10, 10);
        scene_running(&s, "old", 0, "a");
        scene_service(&s, "old", 0, 10, 10);
        scene_service(&s, "new", fresh[i], 10, 10);
        scene_expect(&s, fresh[i] ? "stop old/0 a scaled #1; place new/0 a pending" : "stop old/0 a scaled #1");
        scene_check(&s, apply(&s, 50));
        assert_int_equal(apply(&s, 60), -ESTALE);
        assert_true(cluster_instance_find(s.c, 60) == NONE);
        assert_int_equal(cluster_node(s.c, 0)->instances, 1 + fresh[i]);
        scene_audit(&s);
        scene_expect(&s, "");
        scene_cleanup(&s);
    }
}

/* ---- what actions do -------------------------------------------------------------------------------------------- */

static void adjusted_limits_are_stored(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape shape = {LIST(limits, struct berth_limit, {"cpu", BERTH_ABSOLUTE, 100, 200})};
    const struct berth_usage u = {"cpu", 100, 0, 0, 0};
    scene_node(&s, "a", 1000, 1000);
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = shape});
    scene_instance(
        &s, (struct berth_instance){.workload = "w", .node = "a", .state = BERTH_RUNNING, .usage = &u, .usage_len = 1});
    scene_expect_and_apply(&s, "adjust w/0 a busy #1 cpu=125");
    const struct instance *i = cluster_instance(s.c, cluster_instance_find(s.c, 1));
    const struct usage *now = pages_at(&s.c->usages, i->usage);
    assert_int_equal(now->limit, 125);
    assert_true(now->limit_since_ns == s.now_ns);
    scene_cleanup(&s);
}

static void reserved_instance_keeps_its_waits(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "old", 2, 500, 10);
    scene_running(&s, "old", 0, "a");
    scene_running(&s, "old", 1, "a");
    scene_service(&s, "old", 0, 500, 10);
    scene_service(&s, "new", 1, 1000, 10);
    scene_expect_and_apply(&s, "stop old/0 a scaled #1; stop old/1 a scaled #2; reserve new/0 a pending after 1,2");
    const struct instance *i = cluster_instance(s.c, cluster_instance_find(s.c, 3));
    assert_int_equal(i->state, BERTH_RESERVED);
    const struct instance_wait *first = pages_at(&s.c->waits, i->waits), *second = pages_at(&s.c->waits, first->more);
    assert_int_equal(first->id, 1);
    assert_int_equal(second->id, 2);
    assert_true(second->more == NONE);
    scene_cleanup(&s);
}

/* ---- facts ------------------------------------------------------------------------------------------------------ */

/* Expects one fact in the plan at this moment; `value` 0: none. */
static void expect_fact(struct scene *s, int64_t value, bool over)
{
    scene_plan(s);
    assert_int_equal(berth_plan_facts(s->p), value ? 1 : 0);
    if (!value)
        return;
    struct berth_fact f = berth_plan_fact(s->p, 0);
    assert_int_equal(f.kind, BERTH_FACT_MIGRATION);
    assert_int_equal(f.subject, 1);
    assert_int_equal(berth_migration_phase(f.value), value);
    assert_int_equal(f.value >> 8, over && value == f.value ? 0 : BERTH_CAUSE_DRAINED);
    assert_true(f.at_ns == s->now_ns);
    assert_int_equal(f.over, over);
}

static void migration_fact_is_stored(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_node(&s, "b", 1000, 1000);
    scene_service(&s, "web", 1, 10, 10);
    scene_running(&s, "web", 0, "a");
    scene_state(&s, "a", 1000, 1000, BERTH_NODE_DRAINING);
    expect_fact(&s, BERTH_MIGRATION_STARTING, false);
    scene_expect_and_apply(&s, "place web/0 b drained for 1");
    s.now_ns += SCENE_SECOND_NS;
    expect_fact(&s, 0, false); /* known already */
    scene_report(&s, 2, BERTH_RUNNING, true);
    expect_fact(&s, BERTH_MIGRATION_STOPPING, false);
    scene_expect_and_apply(&s, "stop web/0 a moved #1");
    expect_fact(&s, 0, false);
    scene_remove(&s, 1);
    expect_fact(&s, BERTH_MIGRATION_STOPPING, true);
    scene_expect_and_apply(&s, "");
    expect_fact(&s, 0, false);
    scene_cleanup(&s);
}

static void stored_fact_affects_later_plans(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_fact f = {.kind = BERTH_FACT_MIGRATION, .subject = 1, .value = BERTH_MIGRATION_STARTING, .at_ns = 5};
    scene_node(&s, "a", 1000, 1000);
    scene_check(&s, berth_fact_put(s.c, &f, &s.err));
    expect_fact(&s, BERTH_MIGRATION_STARTING, true); /* there is no such instance */
    scene_check(&s, apply(&s, 1));
    expect_fact(&s, 0, false);
    scene_cleanup(&s);
}

static void replacement_gone(struct scene *s)
{
    scene_remove(s, 2);
}

static void replacement_stopping(struct scene *s)
{
    scene_report(s, 2, BERTH_STOPPING, false);
}

static void replacement_unwanted(struct scene *s)
{
    scene_state(s, "b", 1000, 1000, BERTH_NODE_DRAINING); /* this plan stops it */
}

/* The drain is cancelled, and the replacement does not start. */
static void fact_of_abandoned_migration_is_closed(void **state)
{
    static void (*const ways[])(struct scene *) = {replacement_gone, replacement_stopping, replacement_unwanted};
    (void)state;
    for (size_t i = 0; i < ROWS(ways); i++) {
        struct scene s = scene_new();
        scene_node(&s, "a", 1000, 1000);
        scene_node(&s, "b", 1000, 1000);
        scene_service(&s, "web", 1, 10, 10);
        scene_running(&s, "web", 0, "a");
        scene_state(&s, "a", 1000, 1000, BERTH_NODE_DRAINING);
        scene_expect_and_apply(&s, "place web/0 b drained for 1");
        scene_state(&s, "a", 1000, 1000, BERTH_NODE_READY);
        expect_fact(&s, 0, false); /* the migration goes on */
        ways[i](&s);
        s.now_ns += SCENE_SECOND_NS;
        expect_fact(&s, BERTH_MIGRATION_STARTING, true);
        scene_apply(&s);
        expect_fact(&s, 0, false);
        scene_cleanup(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_assigned_in_order),
        cmocka_unit_test(ids_start_above_zero),
        cmocka_unit_test(used_ids_are_refused),
        cmocka_unit_test(stale_plans_are_refused),
        cmocka_unit_test(plan_is_applied_once),
        cmocka_unit_test(applied_plan_is_stale),
        cmocka_unit_test(adjusted_limits_are_stored),
        cmocka_unit_test(reserved_instance_keeps_its_waits),
        cmocka_unit_test(migration_fact_is_stored),
        cmocka_unit_test(stored_fact_affects_later_plans),
        cmocka_unit_test(fact_of_abandoned_migration_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
