/* preempt_blockers_test.c - preemption with the rules of Kubernetes: victims for a pod that finds no place, for lack of
 * room or because of other pods.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/preempt/preempt_scene_test.h"

static const char *const x_value[] = {"x"}, *const new_value[] = {"new"};
static const struct berth_expr is_x = {"app", BERTH_IN, x_value, 1}, is_new = {"app", BERTH_IN, new_value, 1};

enum tied { FREE, APART_NODE, APART_TWICE, APART_ZONE, SPREAD, NEVER };

/* A pod of an app. `tied`: its constraint selects pods of app x, or for a resident those of app new. */
static void pod(struct scene *s, const char *id, const char *app, int32_t priority, int64_t cpu, enum tied tied)
{
    const struct berth_expr *other = app[0] == 'n' ? &is_x : &is_new;
    const struct berth_label label = {"app", app};
    const struct berth_affinity once = {
        .topology = tied == APART_ZONE ? "zone" : "node", .select = {other, 1, 0},
                   .apart = true
    };
    const struct berth_affinity apart[] = {once, once};
    const struct berth_spread spread = {
        .topology = "zone", .select = {&is_x, 1, 0},
             .max_skew = 1, .nodes = BERTH_SPREAD_REQUIRED
    };
    struct berth_workload w = {.id = id,
                               .kind = BERTH_JOB,
                               .replicas = 1,
                               .priority = priority,
                               .never_preempts = tied == NEVER,
                               .labels = &label,
                               .labels_len = 1,
                               .shape = {NEEDS(cpu, 1)}};
    w.shape.near = apart;
    w.shape.near_len = tied == APART_TWICE ? 2 : tied == APART_NODE || tied == APART_ZONE;
    w.shape.spread = &spread;
    w.shape.spread_len = tied == SPREAD;
    scene_put(s, w);
}

struct resident {
    const char *id, *app;
    int32_t priority;
    int64_t cpu;
    const char *node;
    enum tied tied;
};

/* Nodes a and b of zone one, c of zone two, 1000 each. c is full and stays so, and b if b_full. The preemptor `new`
 * needs 400 and has priority 9. */
static void victims_for_one_pod(void **state)
{
    static const struct {
        const char *label;
        enum tied tied;
        const char *app; /* of the new one */
        bool b_full;
        struct resident at[4];
        const char *want;
    } rows[] = {
        {"the lowest, and no more than needed",
         FREE,                                                         "new",
         true,                                                                       {{"p", "y", 1, 300, "a", FREE}, {"q", "y", 2, 300, "a", FREE}, {"r", "y", 3, 300, "a", FREE}},
         "stop p/0 a preempted #1; reserve new/0 a pending after 1"                                                                                                                                        },
        {"nobody, where that is not enough",
         FREE,                                                         "new",
         true,                                                                       {{"p", "y", 1, 300, "a", FREE}, {"q", "y", 9, 700, "a", FREE}},
         ""                                                                                                                                                                                                },
        {"nobody, for one that stops nobody",              NEVER,      "new", true,  {{"p", "y", 1, 900, "a", FREE}},                                                               ""                     },
        {"nobody, where there is room",                    FREE,       "new", false, {{"p", "y", 1, 900, "a", FREE}},                                                               "place new/0 b pending"},
        {"who must stay apart from it",
         APART_NODE,                                                   "new",
         true,                                                                       {{"p", "x", 1, 100, "a", FREE}},
         "stop p/0 a preempted #1; reserve new/0 a pending after 1"                                                                                                                                        },
        {"who says to stay apart from it",
         FREE,                                                         "new",
         true,                                                                       {{"p", "x", 1, 100, "a", APART_NODE}},
         "stop p/0 a preempted #1; reserve new/0 a pending after 1"                                                                                                                                        },
        {"who says so twice",
         FREE,                                                         "new",
         true,                                                                       {{"p", "x", 1, 100, "a", APART_TWICE}},
         "stop p/0 a preempted #1; reserve new/0 a pending after 1"                                                                                                                                        },
        {"only who is in the way",
         APART_NODE,                                                   "new",
         true,                                                                       {{"p", "y", 1, 100, "a", FREE}, {"q", "x", 2, 100, "a", FREE}, {"r", "y", 1, 100, "a", FREE}},
         "stop q/0 a preempted #2; reserve new/0 a pending after 2"                                                                                                                                        },
        {"who is in the way, and who takes the room",
         APART_NODE,                                                   "new",
         true,                                                                       {{"p", "y", 2, 500, "a", FREE}, {"q", "x", 1, 100, "a", FREE}, {"r", "y", 3, 400, "a", FREE}},
         "stop q/0 a preempted #2; stop p/0 a preempted #1; reserve new/0 a pending after 1,2"                                                                                                             },
        {"nobody of its own priority",                     APART_NODE, "new", true,  {{"p", "x", 9, 100, "a", FREE}},                                                               ""                     },
        {"nobody, where another stays that is in the way",
         APART_NODE,                                                   "new",
         true,                                                                       {{"p", "x", 1, 100, "a", FREE}, {"q", "x", 9, 100, "a", FREE}},
         ""                                                                                                                                                                                                },
        {"in a zone: the only one there",
         APART_ZONE,                                                   "new",
         true,                                                                       {{"p", "x", 1, 100, "a", FREE}},
         "stop p/0 a preempted #1; reserve new/0 a pending after 1"                                                                                                                                        },
        {"in a zone: not of two nodes at once",
         APART_ZONE,                                                   "new",
         false,                                                                      {{"p", "x", 1, 100, "a", FREE}, {"q", "x", 1, 100, "b", FREE}},
         ""                                                                                                                                                                                                },
        {"who makes the spread uneven",
         SPREAD,                                                       "x",
         true,                                                                       {{"p", "y", 1, 100, "a", FREE}, {"q", "x", 2, 100, "a", FREE}},
         "stop q/0 a preempted #2; reserve new/0 a pending after 2"                                                                                                                                        },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = {0};
        s = scene_new();
        s.now_ns = 12 * 60 * MINUTE_NS;
        s.policy.preemption =
            (struct berth_preemption){.on = true, .services = true, .clears = true, .break_budgets = true};
        static const char *const nodes[] = {"a", "b", "c"}, *const zones[] = {"one", "one", "two"};
        for (size_t n = 0; n < 3; n++)
            scene_put_node(
                &s, (struct berth_node){.id = nodes[n],
                                        .zone = zones[n],
                                        LIST(allocatable, struct berth_amount, {"cpu", 1000}, {"memory", 1000})});
        for (size_t n = 0; n < 4 && rows[i].at[n].id; n++) {
            const struct resident *r = &rows[i].at[n];
            pod(&s, r->id, r->app, r->priority, r->cpu, r->tied);
            runs(&s, r->id, 0, r->node, 60);
        }
        pod(&s, "c-full", "z", 99, 900, FREE);
        runs(&s, "c-full", 0, "c", 60);
        if (rows[i].b_full) {
            pod(&s, "b-full", "z", 99, 900, FREE);
            runs(&s, "b-full", 0, "b", 60);
        }
        pod(&s, "new", rows[i].app, 9, 400, rows[i].tied);
        print_message("%s\n", rows[i].label);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* A pod that preempts nothing still comes before those behind it. */
static void never_preempting_pod_keeps_queue_position(void **state)
{
    (void)state;
    struct scene s = stage(1);
    job(&s, "old", 5, 1, 900);
    runs(&s, "old", 0, "a", 60);
    pod(&s, "new", "new", 9, 600, NEVER);
    job(&s, "later", 8, 1, 600);
    scene_expect_and_apply(&s,
                           "stop old/0 a preempted #1; reserve later/0 a pending after 1"); /* `later` may preempt */
    scene_cleanup(&s);

    s = stage(1);
    job(&s, "old", 9, 1, 900);
    runs(&s, "old", 0, "a", 60);
    pod(&s, "new", "new", 9, 600, NEVER);
    job(&s, "later", 8, 1, 600);
    scene_expect_and_apply(&s, "");
    scene_report(&s, 1, BERTH_ENDED, false);
    scene_expect_and_apply(&s, "place new/0 a pending");
    scene_cleanup(&s);
}

/* A reservation is promoted when the instances that it waits for have stopped, though these kept the pod away by a
 * constraint. */
static void reservation_is_promoted_after_blockers_stop(void **state)
{
    (void)state;
    struct scene s = stage(1);
    s.policy.preemption.clears = true;
    pod(&s, "p", "x", 1, 100, FREE);
    runs(&s, "p", 0, "a", 60);
    pod(&s, "new", "new", 9, 400, APART_NODE);
    scene_expect_and_apply(&s, "stop p/0 a preempted #1; reserve new/0 a pending after 1");
    scene_expect_and_apply(&s, "");
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "promote new/0 a pending #2");
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(victims_for_one_pod),
        cmocka_unit_test(never_preempting_pod_keeps_queue_position),
        cmocka_unit_test(reservation_is_promoted_after_blockers_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
