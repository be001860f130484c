/* quota_move_test.c - what migrating pods count for, in the books of quotas and in plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/scene/scene_test.h"

#define CORES(field, amount) LIST(field, struct berth_amount, {"cpu", amount})

enum { NO = 0 }; /* as a size: no such instance */

static const char *const ann[] = {"user/ann"}, *const bob[] = {"user/bob"};

static void put_quota(struct scene *s, struct berth_quota q)
{
    scene_check(s, berth_quota_put(s->c, &q, &s->err));
}

static struct berth_workload service(const char *id, uint32_t pods, const char *const *quota,
                                     const struct berth_amount *core)
{
    return (struct berth_workload){
        .id = id, .replicas = pods, .quotas = quota, .quotas_len = 1, .shape = {.requests = core, .requests_len = 1}
    };
}

static const struct berth_amount one_core[] = {
    {"cpu", 1000}
};

static int64_t held(struct scene *s, const char *resource)
{
    struct berth_quota_use use;
    assert_true(berth_quota_use(s->c, "user/ann", resource, &use));
    return use.held;
}

static int64_t held_later(const struct scene *s)
{
    const struct quota *q = &s->c->quotas.at[cluster_quota_find(s->c, "user/ann")];
    for (size_t i = 0; i < q->books.len; i++)
        if (q->books.at[i].resource == RESOURCE_CPU)
            return q->books.at[i].later;
    return 0;
}

static void put_sized(struct scene *s, uint64_t id, const char *node, enum berth_state state, int64_t cores,
                      uint64_t replaces)
{
    const struct berth_amount cpu[] = {
        {"cpu", cores * 1000}
    };
    const struct berth_shape shape = {.requests = cpu, .requests_len = 1};
    const uint64_t waits[] = {99};
    if (cores == NO)
        return;
    scene_instance(s, (struct berth_instance){.id = id,
                                              .workload = "web",
                                              .node = node,
                                              .state = state,
                                              .shape = &shape,
                                              .replaces = replaces,
                                              .waits = waits,
                                              .waits_len = state == BERTH_RESERVED});
    scene_audit(s);
}

/* One pod with an old instance (7) and a replacement (8), put in either order. */
static void migrating_pod_counts_once(void **state)
{
    static const struct {
        const char *what;
        enum berth_state old, new;
        int64_t old_cores, new_cores;
        int64_t now, later; /* cores held now, and once all stops are done */
    } rows[] = {
        {"on its way",              BERTH_RUNNING,  BERTH_STARTING, 2,  2,  2, 2},
        {"to a place in time",      BERTH_RUNNING,  BERTH_RESERVED, 2,  2,  2, 2},
        {"taken over",              BERTH_STOPPING, BERTH_RUNNING,  2,  2,  2, 2},
        {"the old one has ended",   BERTH_ENDED,    BERTH_RUNNING,  2,  2,  2, 2},
        {"the old one is gone",     BERTH_RUNNING,  BERTH_RUNNING,  NO, 2,  2, 2},
        {"undone",                  BERTH_RUNNING,  BERTH_STOPPING, 2,  2,  2, 2},
        {"both stop",               BERTH_STOPPING, BERTH_STOPPING, 2,  2,  2, 0},
        {"alone and stopping",      BERTH_ENDED,    BERTH_STOPPING, 2,  2,  2, 0},
        {"grows",                   BERTH_RUNNING,  BERTH_STARTING, 2,  3,  3, 3},
        {"shrinks",                 BERTH_RUNNING,  BERTH_STARTING, 3,  2,  3, 3},
        {"has shrunk",              BERTH_STOPPING, BERTH_RUNNING,  3,  2,  3, 2},
        {"from a place in time",    BERTH_RESERVED, BERTH_STARTING, 2,  2,  2, 2},
        {"to one while it stops",   BERTH_STOPPING, BERTH_RESERVED, 2,  2,  2, 2},
        {"to one, the other ended", BERTH_ENDED,    BERTH_RESERVED, 2,  2,  0, 2},
        {"nobody follows",          BERTH_RUNNING,  BERTH_RUNNING,  2,  NO, 2, 2},
    };
    (void)state;
    for (size_t i = 0; i < 2 * ROWS(rows); i++) {
        size_t row = i / 2;
        CLEANUP(scene) struct scene s = scene_new();
        scene_node(&s, "a", 9000, 9);
        scene_node(&s, "b", 9000, 9);
        put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(limits, 9000)});
        scene_put(&s, service("web", 1, ann, one_core));
        if (i % 2)
            put_sized(&s, 8, "b", rows[row].new, rows[row].new_cores, 7);
        put_sized(&s, 7, "a", rows[row].old, rows[row].old_cores, 0);
        if (i % 2 == 0)
            put_sized(&s, 8, "b", rows[row].new, rows[row].new_cores, 7);
        if (held(&s, "cpu") != rows[row].now * 1000 || held_later(&s) != rows[row].later * 1000)
            fail_msg("%s: %lld now, %lld later", rows[row].what, (long long)held(&s, "cpu"), (long long)held_later(&s));
        assert_int_equal(held(&s, "jobs"), 1);
        /* Putting them again changes nothing, and nothing is left once both are removed. */
        put_sized(&s, 7, "a", rows[row].old, rows[row].old_cores, 0);
        put_sized(&s, 8, "b", rows[row].new, rows[row].new_cores, 7);
        assert_int_equal(held(&s, "cpu"), rows[row].now * 1000);
        for (uint64_t id = 7; id <= 8; id++)
            (void)berth_instance_remove(s.c, i % 2 ? id : 15 - id, NULL);
        scene_audit(&s);
        assert_int_equal(held(&s, "cpu") + held(&s, "jobs") + held_later(&s), 0);
    }
}

/* The books equal a recomputation after any sequence of puts and removals. */
static void books_equal_recomputation(void **state)
{
    static const enum berth_state states[] = {BERTH_RESERVED, BERTH_ASSIGNED, BERTH_STARTING,
                                              BERTH_RUNNING,  BERTH_STOPPING, BERTH_ENDED};
    CLEANUP(scene) struct scene s = scene_new();
    uint64_t seed = 1;
    (void)state;
    scene_node(&s, "a", 900000, 9);
    scene_node(&s, "b", 900000, 9);
    put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(limits, 9000)});
    scene_put(&s, service("web", 3, ann, one_core));
    for (int i = 0; i < 20000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t draw = (uint32_t)(seed >> 33);
        uint64_t id = 1 + draw % 6, replaces = draw / 6 % 7;
        if (draw / 42 % 5 == 0)
            (void)berth_instance_remove(s.c, id, NULL);
        else
            put_sized(&s, id, draw / 210 % 2 ? "a" : "b", states[draw / 420 % 6], 1 + draw / 2520 % 3,
                      replaces == id ? 0 : replaces);
        scene_audit(&s);
    }
}

/* A service of two cores with one migrated pod is at its limit as before. */
static void migrated_pod_counts(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "a", 4000, 9);
    scene_node(&s, "b", 4000, 9);
    put_quota(&s,
              (struct berth_quota){.id = "user/ann", LIST(limits, struct berth_amount, {"cpu", 2000}, {"jobs", 1})});
    scene_put(&s, service("web", 1, ann, one_core));
    scene_running(&s, "web", 0, "a");
    scene_state(&s, "a", 4000, 9, BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "place web/0 b drained for 1");
    assert_int_equal(held(&s, "cpu"), 1000);
    scene_report(&s, 2, BERTH_RUNNING, true);
    scene_expect_and_apply(&s, "stop web/0 a moved #1");
    assert_int_equal(held_later(&s), 1000);
    scene_put(&s, service("more", 1, ann, one_core)); /* the limit of one job is reached */
    scene_expect(&s, "");
    scene_remove(&s, 1);
    scene_expect(&s, "");
    assert_int_equal(held(&s, "cpu"), 1000);
    put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(limits, 1000)});
    scene_expect(&s, "");
    put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(limits, 2000)});
    scene_expect_and_apply(&s, "place more/0 b pending");
}

/* Stopping the old instance frees nothing for others: the new one counts from then on. */
static void end_of_migration_frees_nothing(void **state)
{
    for (int limited = 0; limited < 2; limited++) {
        CLEANUP(scene) struct scene s = scene_new();
        (void)state;
        scene_node(&s, "a", 1000, 9);
        scene_node(&s, "b", 1000, 9);
        put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(limits, limited ? 1000 : 2000)});
        scene_put(&s, service("web", 1, ann, one_core));
        scene_running(&s, "web", 0, "a");
        scene_instance(&s, (struct berth_instance){
                               .workload = "web", .node = "b", .state = BERTH_RUNNING, .ready = true, .replaces = 1});
        scene_put(&s, service("more", 1, ann, one_core));
        scene_expect_and_apply(&s, limited ? "stop web/0 a moved #1"
                                           : "stop web/0 a moved #1; reserve more/0 a pending after 1");
    }
}

/* Both pods were placed with two cores and now request three: there is room to grow one of them. */
static void migration_to_larger_shape_needs_room(void **state)
{
    static const struct berth_amount two[] =
        {
            {"cpu", 2000}
    },
                                     three[] = {{"cpu", 3000}};
    const struct berth_shape was = {.requests = two, .requests_len = 1};
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "a", 16000, 9);
    scene_node(&s, "b", 16000, 9);
    put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(limits, 5000)});
    struct berth_workload web = service("web", 2, ann, three);
    web.min_available = 2;
    scene_put(&s, web);
    for (uint32_t i = 0; i < 2; i++)
        scene_instance(&s, (struct berth_instance){.workload = "web",
                                                   .ordinal = i,
                                                   .node = "a",
                                                   .state = BERTH_RUNNING,
                                                   .ready = true,
                                                   .outdated = true,
                                                   .shape = &was});
    scene_plan(&s);
    assert_int_equal(berth_plan_actions(s.p), 1);
    struct berth_action a = berth_plan_action(s.p, 0);
    assert_true(a.op == BERTH_PLACE && a.replaces > 0);
    scene_apply(&s);
    assert_int_equal(held(&s, "cpu"), 5000);
    put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(limits, 6000)});
    scene_plan(&s);
    assert_int_equal(berth_plan_actions(s.p), 1);
    scene_apply(&s);
    assert_int_equal(held(&s, "cpu"), 6000);
}

/* A guaranteed pod stays guaranteed after a migration: no borrowed share is left behind, and the pod is not
 * guaranteed twice. */
static void migrated_pod_stays_guaranteed(void **state)
{
    for (int moved = 0; moved < 2; moved++) {
        CLEANUP(scene) struct scene s = scene_new();
        (void)state;
        s.policy.preemption.on = true;
        scene_node(&s, "a", 2000, 9);
        put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(guarantees, 1000)});
        put_quota(&s, (struct berth_quota){.id = "user/bob", CORES(guarantees, 1000)});
        struct berth_workload lent = service("lent", 2, ann, one_core);
        lent.kind = BERTH_JOB;
        scene_put(&s, lent);
        scene_instance(
            &s,
            (struct berth_instance){
                .workload = "lent", .node = "a", .state = BERTH_RUNNING, .since_ns = 1, .replaces = moved ? 77 : 0});
        scene_instance(&s, (struct berth_instance){
                               .workload = "lent", .ordinal = 1, .node = "a", .state = BERTH_RUNNING, .since_ns = 1});
        struct berth_workload own = service("own", 1, bob, one_core);
        own.kind = BERTH_JOB;
        scene_put(&s, own);
        scene_expect(&s, "stop lent/1 a preempted #2; reserve own/0 a pending after 2");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(migrating_pod_counts_once),
        cmocka_unit_test(books_equal_recomputation),
        cmocka_unit_test(migrated_pod_counts),
        cmocka_unit_test(end_of_migration_frees_nothing),
        cmocka_unit_test(migration_to_larger_shape_needs_room),
        cmocka_unit_test(migrated_pod_stays_guaranteed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
