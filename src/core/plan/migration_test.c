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

static void say(struct scene *s, uint64_t instance, enum berth_migration_phase phase, const char *to)
{
    struct berth_fact f = {.kind = BERTH_FACT_MIGRATION,
                           .subject = instance,
                           .key = to,
                           .value = berth_migration_value(phase, BERTH_CAUSE_BY_HAND),
                           .at_ns = s->now_ns};
    scene_must(s, berth_fact_put(s->c, &f, &s->err));
}

/* Returns the fact's value in the cluster; 0: none. */
static int remembered(const struct scene *s, uint64_t instance)
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
    struct scene s = scene_stage(nodes);
    scene_service(&s, "web", 2, 100, 100);
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 1, "a");
    scene_step(&s, "");
    return s;
}

static void from_the_wish_to_its_end(void **state)
{
    (void)state;
    struct scene s = web_on_a(3);
    say(&s, 2, BERTH_MIGRATION_WISHED, "c");
    scene_step(&s, "place web/1 c by-hand for 2");
    assert_int_equal(remembered(&s, 2), BERTH_MIGRATION_STARTING);
    scene_report(&s, 3, BERTH_STARTING, false);
    scene_step(&s, "");
    scene_report(&s, 3, BERTH_RUNNING, true);
    scene_step(&s, "stop web/1 a moved #2");
    assert_int_equal(remembered(&s, 2), BERTH_MIGRATION_STOPPING);
    scene_gone(&s, 2);
    scene_step(&s, "");
    assert_int_equal(remembered(&s, 2), 0);
    scene_cleanup(&s);
}

static void without_a_node_it_goes_to_any_other(void **state)
{
    (void)state;
    struct scene s = web_on_a(2);
    say(&s, 1, BERTH_MIGRATION_WISHED, "");
    scene_step(&s, "place web/0 b by-hand for 1");
    scene_cleanup(&s);
}

/* The old instance stays until the new one has a place, even if other replicas are available. */
static void it_waits_for_its_place(void **state)
{
    (void)state;
    struct scene s = web_on_a(3);
    scene_node(&s, "c", 50, 50);
    say(&s, 1, BERTH_MIGRATION_WISHED, "c");
    scene_step(&s, "");
    assert_int_equal(scene_pending(&s, "web"), 1);
    assert_int_equal(scene_reason(&s, "web", "target").nodes, 2);
    (void)scene_reason(&s, "web", "short");
    assert_int_equal(remembered(&s, 1), BERTH_MIGRATION_WISHED);
    scene_node(&s, "c", 1000, 1000);
    scene_step(&s, "place web/0 c by-hand for 1");
    scene_gone(&s, 3); /* the new instance fails; the request remains */
    scene_step(&s, "place web/0 c by-hand for 1");
    scene_must(&s, berth_node_remove(s.c, "b", &s.err));
    scene_gone(&s, 4);
    scene_must(&s, berth_node_remove(s.c, "c", &s.err));
    scene_step(&s, ""); /* its target node is gone */
    assert_int_equal(scene_pending(&s, "web"), 1);
    scene_cleanup(&s);
}

static void it_is_taken_back(void **state)
{
    (void)state;
    struct scene s = web_on_a(2);
    say(&s, 1, BERTH_MIGRATION_WISHED, "");
    scene_step(&s, "place web/0 b by-hand for 1");
    scene_report(&s, 3, BERTH_RUNNING, true); /* ready, but the old instance was not told to stop yet */
    say(&s, 1, BERTH_MIGRATION_UNDONE, "");
    scene_step(&s, "stop web/0 b undone #3");
    scene_gone(&s, 3);
    scene_step(&s, "");
    assert_int_equal(remembered(&s, 1), BERTH_MIGRATION_UNDONE);
    assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + HOUR_NS);
    s.now_ns += HOUR_NS;
    scene_step(&s, "");
    assert_int_equal(remembered(&s, 1), 0);
    scene_cleanup(&s);
}

static void a_drain_is_stronger(void **state)
{
    (void)state;
    struct scene s = web_on_a(2);
    say(&s, 1, BERTH_MIGRATION_UNDONE, "");
    scene_stage_state(&s, "a", BERTH_NODE_DRAINING);
    scene_step(&s, "place web/0 b drained for 1; place web/1 b drained for 2");
    scene_cleanup(&s);
}

/* The resources of a reserved instance are free, but its replacement already has a place elsewhere. */
static void who_is_taken_over_does_not_begin(void **state)
{
    (void)state;
    struct scene s = scene_stage(2);
    scene_service(&s, "web", 1, 100, 100);
    scene_instance(
        &s,
        (struct berth_instance){
            .workload = "web", .node = "a", .state = BERTH_RESERVED, .waits = (const uint64_t[]){99}, .waits_len = 1});
    scene_instance(
        &s, (struct berth_instance){.id = 2, .workload = "web", .node = "b", .state = BERTH_ASSIGNED, .replaces = 1});
    say(&s, 1, BERTH_MIGRATION_STARTING, "");
    scene_step(&s, "");
    scene_report(&s, 2, BERTH_RUNNING, true);
    scene_step(&s, "stop web/0 a moved #1");
    scene_cleanup(&s);
}

static void jobs_stay(void **state)
{
    (void)state;
    struct scene s = scene_stage(2);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 1});
    scene_running(&s, "job", 0, "a");
    say(&s, 1, BERTH_MIGRATION_WISHED, "b");
    scene_step(&s, "");
    scene_gone(&s, 1);
    scene_step(&s, "place job/0 a pending");
    assert_int_equal(remembered(&s, 1), 0);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_the_wish_to_its_end),
        cmocka_unit_test(without_a_node_it_goes_to_any_other),
        cmocka_unit_test(it_waits_for_its_place),
        cmocka_unit_test(it_is_taken_back),
        cmocka_unit_test(a_drain_is_stronger),
        cmocka_unit_test(who_is_taken_over_does_not_begin),
        cmocka_unit_test(jobs_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
