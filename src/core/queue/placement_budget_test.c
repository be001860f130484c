/* placement_budget_test.c - the placement budget of an account. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static const char *const ann[] = {"user/ann"}, *const bob[] = {"user/bob"};

static struct scene world(uint32_t budget)
{
    struct scene s = scene_new();
    s.policy.starting = budget;
    for (int n = 0; n < 4; n++) {
        static const char *const names[] = {"a", "b", "c", "d"};
        scene_node(&s, names[n], 100000, 100000);
    }
    return s;
}

static void work(struct scene *s, const char *id, uint32_t replicas, const char *const *account, const char *gang,
                 int64_t created_ns)
{
    scene_put(s, (struct berth_workload){.id = id,
                                         .kind = BERTH_JOB,
                                         .replicas = replicas,
                                         .gang = gang,
                                         .gang_min = gang ? replicas : 0,
                                         .created_ns = created_ns,
                                         .quotas = account,
                                         .quotas_len = account ? 1 : 0,
                                         .shape = {NEEDS(10, 10)}});
}

/* Returns how many pods of a workload the plan places; then applies it and checks that the next plan at this moment is
 * empty. */
static size_t step(struct scene *s, const char *workload)
{
    size_t placed = 0;
    scene_plan(s);
    for (size_t i = 0; i < berth_plan_actions(s->p); i++) {
        struct berth_action a = berth_plan_action(s->p, i);
        placed += a.op == BERTH_PLACE && strcmp(a.workload, workload) == 0;
    }
    scene_apply(s);
    scene_audit(s);
    scene_plan(s);
    assert_int_equal(berth_plan_actions(s->p), 0);
    return placed;
}

/* Nodes start all instances assigned to them. */
static void all_start(struct scene *s, uint64_t from, uint64_t to)
{
    for (uint64_t id = from; id < to; id++)
        scene_report(s, id, BERTH_STARTING, false);
}

static void pods_beyond_budget_wait_for_nodes_to_start(void **state)
{
    (void)state;
    struct scene s = world(3);
    work(&s, "many", 8, ann, NULL, 1);
    work(&s, "later", 2, bob, NULL, 2);
    work(&s, "free", 5, NULL, NULL, 3);
    scene_plan(&s);
    assert_int_equal(berth_plan_stats(s.p).placed, 3 + 2 + 5);
    assert_int_equal(scene_pending(&s, "many"), 5);
    assert_string_equal(scene_reason(&s, "many", "starting").reason, "starting");
    assert_int_equal(step(&s, "many"), 3);
    all_start(&s, 1, 11);
    assert_int_equal(step(&s, "many"), 3);
    all_start(&s, 11, 14);
    assert_int_equal(step(&s, "many"), 2);
    assert_int_equal(scene_pending(&s, "many"), 0);
    scene_cleanup(&s);
}

static void gang_larger_than_budget_starts_whole(void **state)
{
    (void)state;
    struct scene s = world(3);
    work(&s, "one", 1, ann, NULL, 1);
    work(&s, "gang", 5, ann, "g", 2);
    assert_int_equal(step(&s, "gang"), 0); /* a pod of ann's is about to start */
    all_start(&s, 1, 2);
    assert_int_equal(step(&s, "gang"), 5); /* more than the budget, but nothing else of the account is about to start */
    work(&s, "next", 1, ann, NULL, 3);
    assert_int_equal(step(&s, "next"), 0);
    all_start(&s, 2, 7);
    assert_int_equal(step(&s, "next"), 1);
    scene_cleanup(&s);
}

/* With every budget, as many pods are placed in the end as without one. */
static void every_budget_places_all_pods(void **state)
{
    (void)state;
    for (uint32_t budget = 0; budget < 7; budget++) {
        struct scene s = world(budget);
        uint64_t next = 1;
        work(&s, "a1", 7, ann, NULL, 1);
        work(&s, "a2", 4, ann, "g", 2);
        work(&s, "b1", 9, bob, NULL, 3);
        work(&s, "b2", 3, bob, "h", 4);
        for (int rounds = 0; rounds < 30; rounds++) {
            scene_plan(&s);
            size_t placed = (size_t)berth_plan_stats(s.p).placed;
            scene_apply(&s);
            scene_audit(&s);
            all_start(&s, next, next + placed);
            next += placed;
        }
        assert_int_equal(next, 1 + 7 + 4 + 9 + 3);
        scene_cleanup(&s);
    }
}

/* Pods beyond the placement budget preempt nothing and reserve nothing. */
static void pods_beyond_budget_preempt_nothing(void **state)
{
    (void)state;
    struct scene s = scene_new();
    s.policy.starting = 1;
    s.policy.preemption.on = true;
    scene_node(&s, "a", 30, 30);
    work(&s, "low", 2, bob, NULL, 1);
    scene_running(&s, "low", 0, "a");
    scene_running(&s, "low", 1, "a");
    scene_put(&s, (struct berth_workload){.id = "high",
                                          .kind = BERTH_JOB,
                                          .replicas = 3,
                                          .priority = 5,
                                          .created_ns = 2,
                                          .quotas = ann,
                                          .quotas_len = 1,
                                          .shape = {NEEDS(10, 10)}});
    scene_plan(&s);
    for (size_t i = 0; i < berth_plan_actions(s.p); i++)
        assert_int_equal(berth_plan_action(s.p, i).op, BERTH_PLACE);
    assert_int_equal(berth_plan_stats(s.p).placed, 1);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_beyond_budget_wait_for_nodes_to_start),
        cmocka_unit_test(gang_larger_than_budget_starts_whole),
        cmocka_unit_test(every_budget_places_all_pods),
        cmocka_unit_test(pods_beyond_budget_preempt_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
