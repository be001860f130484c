/* disruption_budget_test.c - preemption under disruption budgets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/preempt/preempt_scene_test.h"

static void budget(struct scene *s, const char *id, const char *app, uint32_t allowed)
{
    const char *const values[] = {app};
    const struct berth_expr expr = {"app", BERTH_IN, values, 1};
    scene_check(s, berth_budget_put(s->c,
                                    &(struct berth_budget){
                                        id, {&expr, 1, 0},
                                         allowed
    },
                                    &s->err));
}

/* A job of one pod of an app, running for an hour. */
static void resident(struct scene *s, const char *id, const char *app, int32_t priority, int64_t cpu, const char *node)
{
    const struct berth_label label = {"app", app};
    scene_put(s, (struct berth_workload){.id = id,
                                         .kind = BERTH_JOB,
                                         .replicas = 1,
                                         .priority = priority,
                                         .labels = &label,
                                         .labels_len = 1,
                                         .shape = {NEEDS(cpu, 1)}});
    runs(s, id, 0, node, 60);
}

struct pod {
    const char *id, *app;
    int32_t priority;
    int64_t cpu;
    const char *node;
};

/* Budgets x and y select the apps of these names; the preemptor is one pod of 500 and priority 9. */
static void fewest_budgets_are_broken(void **state)
{
    static const struct {
        const char *label;
        uint32_t x, y;
        struct pod at[4];
        const char *never, *last; /* actions where no budget may be broken, and where budgets may be */
    } rows[] = {
        {"within the budget",
         1,                                       0,
         {{"p", "x", 1, 800, "a"}},
         "stop p/0 a preempted #1; reserve new/0 a pending after 1",                                                 "stop p/0 a preempted #1; reserve new/0 a pending after 1"                           },
        {"beyond it",                          0, 0, {{"p", "x", 1, 800, "a"}},                                  "", "stop p/0 a preempted #1; reserve new/0 a pending after 1"                           },
        {"rather one of a higher tier",
         0,                                       0,
         {{"p", "x", 1, 800, "a"}, {"q", "z", 2, 800, "b"}},
         "stop q/0 b preempted #2; reserve new/0 b pending after 2",                                                 "stop q/0 b preempted #2; reserve new/0 b pending after 2"                           },
        {"rather two than one that breaks it",
         0,                                       0,
         {{"p", "x", 1, 1000, "a"}, {"q", "z", 2, 250, "b"}, {"r", "z", 2, 250, "b"}, {"f", "z", 99, 500, "b"}},
         "stop r/0 b preempted #3; stop q/0 b preempted #2; reserve new/0 b pending after 2,3",                      "stop r/0 b preempted #3; stop q/0 b preempted #2; reserve new/0 b pending after 2,3"},
        {"of two the one that is allowed",
         1,                                       0,
         {{"p", "y", 1, 500, "a"}, {"q", "x", 1, 500, "a"}},
         "stop q/0 a preempted #2; reserve new/0 a pending after 2",                                                 "stop q/0 a preempted #2; reserve new/0 a pending after 2"                           },
        {"the fewest that break it",
         1,                                       0,
         {{"p", "x", 1, 500, "a"}, {"q", "x", 1, 500, "a"}, {"r", "y", 1, 250, "b"}, {"t", "y", 1, 700, "b"}},
         "stop q/0 a preempted #2; reserve new/0 a pending after 2",                                                 "stop q/0 a preempted #2; reserve new/0 a pending after 2"                           },
        {"one rather than two",
         0,                                       0,
         {{"p", "x", 1, 300, "a"}, {"q", "x", 1, 700, "a"}},
         "",                                                                                                         "stop q/0 a preempted #2; reserve new/0 a pending after 2"                           },
    };
    (void)state;
    for (size_t i = 0; i < 2 * ROWS(rows); i++) {
        struct scene s = stage(2);
        s.policy.preemption.break_budgets = i % 2;
        const struct pod *at = rows[i / 2].at;
        bool b = false;
        for (size_t n = 0; n < 4 && at[n].id; n++) {
            resident(&s, at[n].id, at[n].app, at[n].priority, at[n].cpu, at[n].node);
            b |= *at[n].node == 'b';
        }
        if (!b) { /* no victim there */
            scene_put(&s,
                      (struct berth_workload){.id = "rest", .replicas = 1, .priority = 99, .shape = {NEEDS(900, 1)}});
            runs(&s, "rest", 0, "b", 60);
        }
        budget(&s, "of-x", "x", rows[i / 2].x);
        budget(&s, "of-y", "y", rows[i / 2].y);
        job(&s, "new", 9, 1, 500);
        print_message("%s\n", rows[i / 2].label);
        scene_expect_and_apply(&s, i % 2 ? rows[i / 2].last : rows[i / 2].never);
        scene_cleanup(&s);
    }
}

/* On a, the victim's budget may be used up; on b, a pod keeps the new one away by anti-affinity. */
static void clearing_a_node_is_preferred_to_breaking_a_budget(void **state)
{
    static const struct {
        const char *label;
        bool clears;
        uint32_t allowed;
        const char *want;
    } rows[] = {
        {"one is allowed", true,  1, "stop p/0 a preempted #1; reserve new/0 a pending after 1"},
        {"none is",        true,  0, "stop q/0 b preempted #2; reserve new/0 b pending after 2"},
        {"nor clearing",   false, 0, "stop p/0 a preempted #1; reserve new/0 a pending after 1"},
    };
    const char *const values[] = {"new"};
    const struct berth_expr expr = {"app", BERTH_IN, values, 1};
    const struct berth_affinity away = {
        .topology = "node", .select = {&expr, 1, 0},
             .apart = true
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(2);
        s.policy.preemption.break_budgets = true;
        s.policy.preemption.clears = rows[i].clears;
        resident(&s, "p", "x", 1, 800, "a");
        scene_put(&s, (struct berth_workload){
                          .id = "q",
                          .kind = BERTH_JOB,
                          .replicas = 1,
                          .priority = 2,
                          .shape = {NEEDS(100, 1), .near = &away, .near_len = 1}
        });
        runs(&s, "q", 0, "b", 60);
        budget(&s, "of-x", "x", rows[i].allowed);
        scene_put(&s, (struct berth_workload){.id = "new",
                                              .kind = BERTH_JOB,
                                              .replicas = 1,
                                              .priority = 9,
                                              LABEL("app", "new"),
                                              .shape = {NEEDS(500, 1)}});
        print_message("%s\n", rows[i].label);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

static void preemptions_use_up_budgets(void **state)
{
    (void)state;
    struct scene s = stage(3);
    static const char *const ids[] = {"p", "q", "r"}, *const nodes[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++)
        resident(&s, ids[i], "x", 1, 800, nodes[i]);
    budget(&s, "of-x", "x", 2);
    job(&s, "new", 9, 3, 600);
    scene_expect_and_apply(&s, "stop r/0 c preempted #3; reserve new/0 c pending after 3; stop q/0 b preempted #2; "
                               "reserve new/1 b pending after 2");
    scene_cleanup(&s);
}

/* A gang that is not placed gives back the disruptions that it would have used. */
static void undone_stops_return_disruptions(void **state)
{
    (void)state;
    struct scene s = stage(2);
    resident(&s, "p", "x", 1, 800, "a");
    resident(&s, "q", "x", 1, 800, "b");
    budget(&s, "of-x", "x", 1);
    gang(&s, "both", 9, 2, 2, 600);
    job(&s, "one", 8, 1, 600);
    scene_expect_and_apply(&s, "stop q/0 b preempted #2; reserve one/0 b pending after 2");
    scene_cleanup(&s);
}

static void budgets_are_put_replaced_and_removed(void **state)
{
    (void)state;
    struct scene s = stage(1);
    resident(&s, "p", "x", 1, 800, "a");
    job(&s, "new", 9, 1, 500);
    budget(&s, "one", "x", 1);
    budget(&s, "two", "x", 0);
    scene_expect_and_apply(&s, ""); /* both budgets must allow a disruption */
    budget(&s, "two", "y", 0);
    budget(&s, "one", "x", 0);
    scene_expect_and_apply(&s, "");
    scene_check(&s, berth_budget_remove(s.c, "one", &s.err));
    scene_expect_and_apply(&s, "stop p/0 a preempted #1; reserve new/0 a pending after 1");
    assert_int_equal(berth_budget_remove(s.c, "one", &s.err), -ENOENT);
    assert_int_equal(berth_budget_put(s.c, &(struct berth_budget){.id = ""}, &s.err), -EINVAL);
    assert_int_equal(berth_budget_put(s.c,
                                      &(struct berth_budget){
                                          .id = "x", .select = {NULL, 0, 7}
    },
                                      &s.err),
                     -EINVAL);
    assert_int_equal(berth_budget_put(s.c, &(struct berth_budget){.id = "x", .allowed = UINT32_MAX}, &s.err), -EINVAL);
    scene_cleanup(&s);
}

/* A term without an `in` is checked against all label sets; an empty term selects nothing. */
static void budget_selectors_match(void **state)
{
    static const struct berth_expr has_app = {"app", BERTH_EXISTS, NULL, 0},
                                   no_app = {"app", BERTH_NOT_EXISTS, NULL, 0};
    static const struct {
        struct berth_term select;
        bool counts;
    } rows[] = {
        {{&has_app, 1, 0}, true },
        {{&no_app, 1, 0},  false},
        {{NULL, 0, 0},     false},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(1);
        resident(&s, "p", "x", 1, 800, "a");
        scene_check(&s, berth_budget_put(s.c, &(struct berth_budget){"all", rows[i].select, 0}, &s.err));
        job(&s, "new", 9, 1, 500);
        scene_expect_and_apply(&s, rows[i].counts ? "" : "stop p/0 a preempted #1; reserve new/0 a pending after 1");
        scene_cleanup(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewest_budgets_are_broken),
        cmocka_unit_test(clearing_a_node_is_preferred_to_breaking_a_budget),
        cmocka_unit_test(preemptions_use_up_budgets),
        cmocka_unit_test(undone_stops_return_disruptions),
        cmocka_unit_test(budgets_are_put_replaced_and_removed),
        cmocka_unit_test(budget_selectors_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
