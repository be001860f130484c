/* migration_test.c - migrations that users request and undo, and their facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

#define HOUR_NS (3600 * SCENE_SECOND_NS)

static void put_migration_fact(struct scene *s, uint64_t instance, enum berth_migration_phase phase, const char *to)
{
    struct berth_fact f = {.kind = BERTH_FACT_MIGRATION,
                           .subject = instance,
                           .key = to,
                           .value = berth_migration_value(phase, BERTH_CAUSE_MANUAL),
                           .at_ns = s->now_ns};
    scene_check(s, berth_fact_put(s->c, &f, &s->err));
}

/* Returns the fact's value in the cluster; 0: none. */
static int migration_fact_of(const struct scene *s, uint64_t instance)
{
    for (uint32_t i = 0; i < s->c->facts.len; i++) {
        const struct fact *f = pages_at(&s->c->facts, i);
        if (f->live && f->kind == BERTH_FACT_MIGRATION && f->subject == instance)
            return (int)berth_migration_phase(f->value);
    }
    return 0;
}

static struct scene web_on_a(size_t nodes)
{
    struct scene s = scene_with_nodes(nodes);
    scene_service(&s, "web", 2, 100, 100);
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 1, "a");
    scene_expect_and_apply(&s, "");
    return s;
}

static void requested_migration_completes(void **state)
{
    (void)state;
    struct scene s = web_on_a(3);
    put_migration_fact(&s, 2, BERTH_MIGRATION_REQUESTED, "c");
    scene_expect_and_apply(&s, "place web/1 c by-hand for 2");
    assert_int_equal(migration_fact_of(&s, 2), BERTH_MIGRATION_STARTING);
    scene_report(&s, 3, BERTH_STARTING, false);
    scene_expect_and_apply(&s, "");
    scene_report(&s, 3, BERTH_RUNNING, true);
    scene_expect_and_apply(&s, "stop web/1 a moved #2");
    assert_int_equal(migration_fact_of(&s, 2), BERTH_MIGRATION_STOPPING);
    scene_remove(&s, 2);
    scene_expect_and_apply(&s, "");
    assert_int_equal(migration_fact_of(&s, 2), 0);
    scene_cleanup(&s);
}

static void migration_without_target_goes_to_another_node(void **state)
{
    (void)state;
    struct scene s = web_on_a(2);
    put_migration_fact(&s, 1, BERTH_MIGRATION_REQUESTED, "");
    scene_expect_and_apply(&s, "place web/0 b by-hand for 1");
    scene_cleanup(&s);
}

/* The old instance stays until the new one has a place, even if other replicas are available. */
static void migration_waits_for_a_place(void **state)
{
    (void)state;
    struct scene s = web_on_a(3);
    scene_node(&s, "c", 50, 50);
    put_migration_fact(&s, 1, BERTH_MIGRATION_REQUESTED, "c");
    scene_expect_and_apply(&s, "");
    assert_int_equal(scene_pending(&s, "web"), 1);
    assert_int_equal(scene_reason(&s, "web", "target").nodes, 2);
    (void)scene_reason(&s, "web", "short");
    assert_int_equal(migration_fact_of(&s, 1), BERTH_MIGRATION_REQUESTED);
    scene_node(&s, "c", 1000, 1000);
    scene_expect_and_apply(&s, "place web/0 c by-hand for 1");
    scene_remove(&s, 3); /* the new instance fails; the request remains */
    scene_expect_and_apply(&s, "place web/0 c by-hand for 1");
    scene_check(&s, berth_node_remove(s.c, "b", &s.err));
    scene_remove(&s, 4);
    scene_check(&s, berth_node_remove(s.c, "c", &s.err));
    scene_expect_and_apply(&s, ""); /* its target node is gone */
    assert_int_equal(scene_pending(&s, "web"), 1);
    scene_cleanup(&s);
}

static void migration_is_undone(void **state)
{
    (void)state;
    struct scene s = web_on_a(2);
    put_migration_fact(&s, 1, BERTH_MIGRATION_REQUESTED, "");
    scene_expect_and_apply(&s, "place web/0 b by-hand for 1");
    scene_report(&s, 3, BERTH_RUNNING, true); /* ready, but the old instance was not told to stop yet */
    put_migration_fact(&s, 1, BERTH_MIGRATION_UNDONE, "");
    scene_expect_and_apply(&s, "stop web/0 b undone #3");
    scene_remove(&s, 3);
    scene_expect_and_apply(&s, "");
    assert_int_equal(migration_fact_of(&s, 1), BERTH_MIGRATION_UNDONE);
    assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + HOUR_NS);
    s.now_ns += HOUR_NS;
    scene_expect_and_apply(&s, "");
    assert_int_equal(migration_fact_of(&s, 1), 0);
    scene_cleanup(&s);
}

static void drain_overrides_undo(void **state)
{
    (void)state;
    struct scene s = web_on_a(2);
    put_migration_fact(&s, 1, BERTH_MIGRATION_UNDONE, "");
    scene_set_node_state(&s, "a", BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "place web/0 b drained for 1; place web/1 b drained for 2");
    scene_cleanup(&s);
}

/* The resources of a reserved instance are free, but its replacement already has a place elsewhere. */
static void replaced_reserved_instance_is_not_promoted(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    scene_service(&s, "web", 1, 100, 100);
    scene_instance(
        &s,
        (struct berth_instance){
            .workload = "web", .node = "a", .state = BERTH_RESERVED, .waits = (const uint64_t[]){99}, .waits_len = 1});
    scene_instance(
        &s, (struct berth_instance){.id = 2, .workload = "web", .node = "b", .state = BERTH_ASSIGNED, .replaces = 1});
    put_migration_fact(&s, 1, BERTH_MIGRATION_STARTING, "");
    scene_expect_and_apply(&s, "");
    scene_report(&s, 2, BERTH_RUNNING, true);
    scene_expect_and_apply(&s, "stop web/0 a moved #1");
    scene_cleanup(&s);
}

static void jobs_are_not_migrated(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(2);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 1});
    scene_running(&s, "job", 0, "a");
    put_migration_fact(&s, 1, BERTH_MIGRATION_REQUESTED, "b");
    scene_expect_and_apply(&s, "");
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "place job/0 a pending");
    assert_int_equal(migration_fact_of(&s, 1), 0);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requested_migration_completes),
        cmocka_unit_test(migration_without_target_goes_to_another_node),
        cmocka_unit_test(migration_waits_for_a_place),
        cmocka_unit_test(migration_is_undone),
        cmocka_unit_test(drain_overrides_undo),
        cmocka_unit_test(replaced_reserved_instance_is_not_promoted),
        cmocka_unit_test(jobs_are_not_migrated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
