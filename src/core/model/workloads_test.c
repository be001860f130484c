/* workloads_test.c - workloads are added, changed and removed; labels, gangs and the defaults of fields. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static const struct workload *find(const struct scene *s, const char *id)
{
    return cluster_workload(s->c, cluster_workload_find(s->c, id));
}

static void a_workload_is_replaced_by_id(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 1, 100, 100);
    uint32_t slot = cluster_workload_find(s.c, "web");
    scene_expect_and_apply(&s, "place web/0 a pending");
    scene_service(&s, "web", 2, 200, 100);
    assert_int_equal(cluster_workload_find(s.c, "web"), slot);
    scene_expect_and_apply(&s, "place web/1 a pending"); /* running instances keep their shape */
    scene_audit(&s);
    scene_cleanup(&s);
}

static void workloads_are_removed(void **state)
{
    (void)state;
    struct scene s = scene_new();
    assert_int_equal(berth_workload_remove(s.c, "web", &s.err), -ENOENT);
    assert_non_null(strstr(s.err.text, "\"web\""));
    assert_int_equal(berth_workload_remove(s.c, NULL, &s.err), -ENOENT);
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 1, 100, 100);
    scene_running(&s, "web", 0, "a");
    scene_check(&s, berth_workload_remove(s.c, "web", &s.err));
    assert_int_equal(berth_workload_remove(s.c, "web", NULL), -ENOENT);
    scene_audit(&s);
    scene_expect_and_apply(&s, "stop web/0 a removed #1");
    scene_remove(&s, 1);
    assert_true(cluster_workload_find(s.c, "web") == NONE);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void removed_workload_may_be_put_again(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 1, 100, 100);
    scene_running(&s, "web", 0, "a");
    scene_check(&s, berth_workload_remove(s.c, "web", &s.err));
    scene_service(&s, "web", 1, 100, 100);
    scene_expect_and_apply(&s, "");
    scene_cleanup(&s);
}

static void slots_are_reused(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_put(&s, (struct berth_workload){.id = "one", .replicas = 1, .gang = "g", LABEL("app", "one"), .priority = 9});
    uint32_t slot = cluster_workload_find(s.c, "one");
    scene_check(&s, berth_workload_remove(s.c, "one", &s.err));
    scene_service(&s, "two", 1, 100, 100);
    assert_int_equal(cluster_workload_find(s.c, "two"), slot);
    assert_true(find(&s, "two")->gang == NONE);
    assert_int_equal(find(&s, "two")->label_set, 0);
    scene_audit(&s);
    scene_expect_and_apply(&s, "place two/0 a pending");
    scene_cleanup(&s);
}

static void omitted_fields_have_defaults(void **state)
{
    static const struct {
        enum berth_workload_kind kind;
        uint32_t replicas;
        const char *gang;
        enum berth_on_lost on_lost;
        enum berth_on_drain on_drain;
        uint32_t min_available;
    } rows[] = {
        {BERTH_SERVICE, 3, NULL, BERTH_LOST_REPLACE, BERTH_DRAIN_MOVE, 2},
        {BERTH_SERVICE, 1, NULL, BERTH_LOST_FENCE,   BERTH_DRAIN_MOVE, 1},
        {BERTH_JOB,     3, NULL, BERTH_LOST_FENCE,   BERTH_DRAIN_WAIT, 2},
        {BERTH_VM,      1, NULL, BERTH_LOST_FENCE,   BERTH_DRAIN_WAIT, 1},
        {BERTH_SERVICE, 3, "g",  BERTH_LOST_REPLACE, BERTH_DRAIN_WAIT, 2},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_new();
        scene_put(&s, (struct berth_workload){
                          .id = "w", .kind = rows[i].kind, .replicas = rows[i].replicas, .gang = rows[i].gang});
        const struct workload *w = find(&s, "w");
        assert_int_equal(w->on_lost, rows[i].on_lost);
        assert_int_equal(w->on_drain, rows[i].on_drain);
        assert_int_equal(w->min_available, rows[i].min_available);
        assert_true(w->fence_ns == 600 * SCENE_SECOND_NS);
        assert_int_equal(w->gang_min, rows[i].replicas);
        scene_cleanup(&s);
    }
}

static void equal_labels_share_a_set(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put(&s, (struct berth_workload){.id = "a", LIST(labels, struct berth_label, {"x", "1"}, {"y", "2"})});
    scene_put(&s, (struct berth_workload){.id = "b", LIST(labels, struct berth_label, {"y", "2"}, {"x", "1"})});
    scene_put(&s, (struct berth_workload){.id = "c", LIST(labels, struct berth_label, {"x", "2"}, {"y", "1"})});
    assert_int_equal(find(&s, "a")->label_set, find(&s, "b")->label_set);
    assert_true(find(&s, "a")->label_set != find(&s, "c")->label_set);
    scene_put(&s, (struct berth_workload){.id = "c", LIST(labels, struct berth_label, {"x", "1"}, {"y", "2"})});
    assert_int_equal(find(&s, "a")->label_set, find(&s, "c")->label_set);
    scene_put(&s, (struct berth_workload){.id = "c"});
    assert_int_equal(find(&s, "c")->label_set, 0);
    scene_cleanup(&s);
}

static void workload_leaves_its_gang(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 100, 100);
    scene_put(&s, (struct berth_workload){.id = "w1", .replicas = 1, .gang = "g", .shape = {NEEDS(10, 10)}});
    scene_put(&s, (struct berth_workload){.id = "w2", .replicas = 1, .gang = "g", .shape = {NEEDS(500, 10)}});
    scene_expect(&s, "");
    scene_put(&s, (struct berth_workload){.id = "w2", .replicas = 1, .gang = "h", .shape = {NEEDS(500, 10)}});
    scene_expect(&s, "place w1/0 a pending");
    scene_put(&s, (struct berth_workload){.id = "w2", .replicas = 1, .gang = "g", .shape = {NEEDS(500, 10)}});
    scene_expect(&s, "");
    scene_check(&s, berth_workload_remove(s.c, "w2", &s.err));
    scene_expect_and_apply(&s, "place w1/0 a pending");
    scene_cleanup(&s);
}

/* Finished tasks beyond the requested number do not make up for missing ones. */
static void surplus_ended_tasks_do_not_count(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 2});
    scene_instance(&s, (struct berth_instance){.workload = "job", .ordinal = 5, .node = "a", .state = BERTH_ENDED});
    scene_running(&s, "job", 0, "a");
    scene_expect_and_apply(&s, "place job/1 a pending");
    scene_cleanup(&s);
}

static void task_ended_twice_counts_once(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 2});
    scene_instance(&s, (struct berth_instance){.workload = "job", .node = "a", .state = BERTH_ENDED});
    scene_instance(&s, (struct berth_instance){.workload = "job", .node = "a", .state = BERTH_ENDED});
    scene_expect_and_apply(&s, "place job/1 a pending");
    scene_cleanup(&s);
}

static void workloads_at_random(void **state)
{
    (void)state;
    static const char *const gangs[] = {NULL, NULL, "g", "h"};
    static const char *const apps[] = {"x", "y"};
    struct scene s = scene_new();
    uint64_t seed = scene_seed();
    scene_node(&s, "a", 500, 500);
    scene_node(&s, "b", 500, 500);
    for (int round = 0; round < 400; round++) {
        char id[16];
        (void)snprintf(id, sizeof id, "w%u", scene_random_below(&seed, 12));
        if (scene_random_below(&seed, 3) == 0) {
            (void)berth_workload_remove(s.c, id, NULL);
        } else {
            struct berth_label app = {"app", apps[scene_random_below(&seed, 2)]};
            scene_put(&s, (struct berth_workload){.id = id,
                                                  .replicas = scene_random_below(&seed, 4),
                                                  .labels = &app,
                                                  .labels_len = 1,
                                                  .suspended = scene_random_below(&seed, 5) == 0,
                                                  .gang = gangs[scene_random_below(&seed, 4)],
                                                  .shape = {NEEDS(1 + scene_random_below(&seed, 100), 1)}});
        }
        if (scene_random_below(&seed, 2) == 0) {
            scene_plan(&s);
            scene_apply(&s);
        }
        for (uint64_t i = 1; i < s.next && scene_random_below(&seed, 2) == 0; i++) {
            uint32_t slot = cluster_instance_find(s.c, i);
            if (slot != NONE && cluster_instance(s.c, slot)->state == BERTH_STOPPING)
                scene_remove(&s, i);
        }
        scene_audit(&s);
    }
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_workload_is_replaced_by_id),      cmocka_unit_test(workloads_are_removed),
        cmocka_unit_test(removed_workload_may_be_put_again), cmocka_unit_test(slots_are_reused),
        cmocka_unit_test(omitted_fields_have_defaults),      cmocka_unit_test(equal_labels_share_a_set),
        cmocka_unit_test(workload_leaves_its_gang),          cmocka_unit_test(surplus_ended_tasks_do_not_count),
        cmocka_unit_test(task_ended_twice_counts_once),      cmocka_unit_test(workloads_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
