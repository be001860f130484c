/* cluster_copy_test.c - a copy equals its original, and later changes to one do not affect the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

/* Puts everything that a cluster keeps besides its tables: quotas, gangs, ports, volumes, budgets, devices, reported
 * use, facts. */
static void fill_cluster(struct scene *s)
{
    static const struct berth_gpu gpus[] = {
        {"a100", 1 << 30},
        {"a100", 1 << 30}
    };
    static const struct berth_amount limits[] = {
        {"cpu", 3000},
        {"gpu", 2000}
    };
    static const struct berth_port port = {.port = 80};
    static const char *const user = "user/ann";
    const struct berth_label role = {"role", "web"};
    scene_node(s, "a", 4000, 4000);
    scene_put_node(s, (struct berth_node){.id = "b", HAS(4000, 4000), .gpus = gpus, .gpus_len = 2});
    scene_check(s, berth_volume_put(s->c, &(struct berth_volume){.id = "disk", .driver = "nfs"}, &s->err));
    scene_check(s, berth_quota_put(
                       s->c,
                       &(struct berth_quota){
                           .id = user, .limits = limits, .limits_len = 2, .guarantees = limits, .guarantees_len = 1},
                       &s->err));
    scene_put(s, (struct berth_workload){
                     .id = "web",
                     .replicas = 2,
                     .labels = &role,
                     .labels_len = 1,
                     .shape = {NEEDS(500, 500), .ports = &port, .ports_len = 1}
    });
    scene_put(s, (struct berth_workload){
                     .id = "train",
                     .kind = BERTH_JOB,
                     .replicas = 2,
                     .gang = "train",
                     .limit_ns = 600 * SCENE_SECOND_NS,
                     .quotas = &user,
                     .quotas_len = 1,
                     .shape = {NEEDS(1000, 500), .gpu = {.count = 1}}
    });
    scene_running_with_use(s, 1, "web", 0, "a", 700, 600);
    scene_running(s, "web", 5, "b"); /* scaled in: an instance stops */
    s->policy = berth_policy_usual();
}

static uint64_t plan_of(const struct scene *s, struct berth_cluster *c)
{
    struct berth_err err;
    struct berth_plan *p = NULL;
    struct berth_snapshot *f = berth_freeze(c, s->now_ns, s->seed);
    assert_int_equal(berth_plan_make(f, &s->policy, &p, &err), 0);
    uint64_t hash = berth_plan_hash(p);
    berth_plan_free(p);
    berth_snapshot_free(f);
    return hash;
}

static void change(struct berth_cluster *c, struct scene *s, const char *job)
{
    struct berth_err err;
    struct berth_plan *p = NULL;
    struct berth_snapshot *f = berth_freeze(c, s->now_ns, 0);
    assert_int_equal(berth_plan_make(f, &s->policy, &p, &err), 0);
    assert_int_equal(berth_apply(c, p, 1000, &err), 0);
    berth_plan_free(p);
    berth_snapshot_free(f);
    const struct berth_amount limit = {"cpu", 100};
    assert_int_equal(
        berth_quota_put(c, &(struct berth_quota){.id = "user/ann", .limits = &limit, .limits_len = 1}, &err), 0);
    assert_int_equal(berth_workload_put(c, &(struct berth_workload){.id = job, .replicas = 1}, &err), 0);
    assert_int_equal(berth_workload_remove(c, "train", &err), 0);
    assert_int_equal(berth_node_put(c, &(struct berth_node){.id = "c", HAS(4000, 4000)}, &err), 0);
    if (berth_audit(c, &err) < 0)
        fail_msg("%s", err.text);
}

static void copies_change_independently(void **state)
{
    (void)state;
    for (int copy_first = 0; copy_first < 2; copy_first++) {
        struct scene s = scene_new();
        fill_cluster(&s);
        struct berth_cluster *copy = cluster_copy(s.c);
        if (berth_audit(copy, &s.err) < 0)
            fail_msg("%s", s.err.text);
        uint64_t hash = plan_of(&s, s.c);
        assert_true(plan_of(&s, copy) == hash);
        change(copy_first ? copy : s.c, &s, "one");
        assert_true(plan_of(&s, copy_first ? s.c : copy) == hash);
        change(copy_first ? s.c : copy, &s, "other");
        scene_audit(&s);
        if (berth_audit(copy, &s.err) < 0)
            fail_msg("%s", s.err.text);
        berth_cluster_free(copy);
        scene_audit(&s);
        scene_cleanup(&s);
    }
}

static void empty_cluster_is_copied(void **state)
{
    struct scene s = scene_new();
    (void)state;
    struct berth_cluster *copy = cluster_copy(s.c);
    assert_true(plan_of(&s, copy) == plan_of(&s, s.c));
    berth_cluster_free(copy);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_change_independently),
        cmocka_unit_test(empty_cluster_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
