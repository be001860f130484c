/* profile_test.c - built-in profiles exist; unknown names and weights out of range are refused with their name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static int plan_with(struct scene *s, const struct berth_profile *profile)
{
    struct berth_snapshot *x = berth_freeze(s->c, 0, 0);
    struct berth_plan *p = NULL;
    struct berth_policy policy = {.profile = profile};
    s->err = (struct berth_err){0};
    int rc = berth_plan_make(x, &policy, &p, &s->err);
    assert_true((rc == 0) == (p != NULL)); /* untouched on failure */
    berth_plan_free(p);
    berth_snapshot_free(x);
    return rc;
}

static void refuse(struct berth_profile profile, const char *part)
{
    struct scene s = scene_new();
    profile.name = "mine";
    assert_int_equal(plan_with(&s, &profile), -EINVAL);
    if (!strstr(s.err.text, "mine") || !strstr(s.err.text, part))
        fail_msg("\"%s\" does not say \"mine\" and \"%s\"", s.err.text, part);
    scene_cleanup(&s);
}

static void allow(struct berth_profile profile)
{
    struct scene s = scene_new();
    profile.name = "mine";
    scene_check(&s, plan_with(&s, &profile));
    scene_cleanup(&s);
}

static void built_in_profiles(void **state)
{
    (void)state;
    struct scene s = scene_new();
    size_t len = 0;
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(1000, 1000), LIST(gpus, struct berth_gpu, {"x", 1})});
    scene_put(&s, (struct berth_workload){
                      .id = "w", .replicas = 1, .shape = {NEEDS(1, 1), .gpu = {.count = 1}}
    });
    assert_string_equal(berth_profile_at(0)->name, "default");
    for (const struct berth_profile *p; (p = berth_profile_at(len)) != NULL; len++) {
        assert_ptr_equal(berth_profile_find(p->name), p);
        scene_check(&s, plan_with(&s, p));
        s.profile = p->name;
        scene_expect(&s, "place w/0 a pending");
    }
    assert_true(len >= 9);
    assert_null(berth_profile_at(SIZE_MAX));
    assert_null(berth_profile_find("no such profile"));
    assert_null(berth_profile_find(""));
    scene_cleanup(&s);
}

#define SCORES(...) LIST(scores, struct berth_weight, __VA_ARGS__)

static void invalid_profiles_are_refused(void **state)
{
    (void)state;
    refuse((struct berth_profile){NAMES(filters, "resources", "nothing")}, "no filter \"nothing\"");
    refuse((struct berth_profile){SCORES({"balanced", 1}, {"best", 1})}, "no score \"best\"");
    refuse((struct berth_profile){SCORES({"balanced", 0})}, "weight 0 of balanced");
    refuse((struct berth_profile){SCORES({"balanced", -1})}, "weight -1");
    refuse((struct berth_profile){SCORES({"balanced", BERTH_WEIGHT_MAX + 1})}, "weight 101");
    refuse((struct berth_profile){SCORES({"balanced", 100}, {"spread", 100}, {"affinity", 100}, {"random", 100},
                                         {"best_fit", 100}, {"dot_product", 1})},
           "501");
    refuse((struct berth_profile){NAMES(resources, "1", "2", "3", "4", "5", "6", "7")}, "7 resources");
    refuse((struct berth_profile){.steps = 100, SCORES({"best_fit", 1}, {"balanced", 1})}, "balanced does not support");
    refuse((struct berth_profile){.steps = BERTH_STEPS_MAX + 1, SCORES({"best_fit", 1})}, "1000001 steps");
    struct berth_weight many[33];
    for (size_t i = 0; i < ROWS(many); i++)
        many[i] = (struct berth_weight){"balanced", 1};
    refuse((struct berth_profile){.scores = many, .scores_len = ROWS(many)}, "33 scores");
}

static void limit_values_are_allowed(void **state)
{
    (void)state;
    allow((struct berth_profile){SCORES({"balanced", BERTH_WEIGHT_MAX})});
    allow((struct berth_profile){
        SCORES({"balanced", 100}, {"spread", 100}, {"affinity", 100}, {"random", 100}, {"best_fit", 100})});
    allow((struct berth_profile){NAMES(resources, "1", "2", "3", "4", "5", "6")});
    allow((struct berth_profile){0});
    allow((struct berth_profile){.steps = BERTH_STEPS_MAX, SCORES({"best_fit", 1}, {"fragmentation", 1})});
    struct berth_weight many[32];
    for (size_t i = 0; i < ROWS(many); i++)
        many[i] = (struct berth_weight){"balanced", 1};
    allow((struct berth_profile){.scores = many, .scores_len = ROWS(many)});
}

static void profile_needs_a_name(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_profile none = {0};
    assert_int_equal(plan_with(&s, &none), -EINVAL);
    assert_non_null(strstr(s.err.text, "name"));
    scene_cleanup(&s);
}

/* Filters for capacity apply even if a profile leaves them out. */
static void capacity_filters_always_apply(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_profile arch_only = {.name = "mine", NAMES(filters, "arch")};
    struct berth_policy policy = {.profile = &arch_only};
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(100, 100), LIST(gpus, struct berth_gpu, {"x", 1})});
    scene_state(&s, "b", 100, 100, BERTH_NODE_CORDONED);
    scene_service(&s, "cpu", 1, 200, 1);
    scene_put(&s, (struct berth_workload){.id = "gpu", .replicas = 2, .shape = {.gpu = {.count = 1}}});
    scene_put(&s, (struct berth_workload){
                      .id = "port", .replicas = 2, .shape = {LIST(ports, struct berth_port, {BERTH_TCP, 80, 1})}});
    scene_put(&s, (struct berth_workload){.id = "one", .replicas = 2, .shape = {.max_per_node = 1}});
    s.s = berth_freeze(s.c, 0, 0);
    scene_check(&s, berth_plan_make(s.s, &policy, &s.p, &s.err));
    assert_int_equal(scene_pending(&s, "cpu"), 1);
    assert_int_equal(scene_pending(&s, "gpu"), 1);
    assert_int_equal(scene_pending(&s, "port"), 1);
    assert_int_equal(scene_pending(&s, "one"), 0); /* its filter was left out */
    scene_cleanup(&s);
}

/* Two volumes of a driver of which the node attaches one. */
static void attach_filter_always_applies(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_profile labels_only = {.name = "mine", NAMES(filters, "labels")};
    struct berth_policy policy = {.profile = &labels_only};
    scene_put_node(&s, (struct berth_node){.id = "a", LIST(allocatable, struct berth_amount, {"attach-csi", 1})});
    for (const char *id = "v\0w\0"; *id; id += 2) {
        const struct berth_volume v = {.id = id, .driver = "csi"};
        scene_check(&s, berth_volume_put(s.c, &v, &s.err));
        scene_put(&s, (struct berth_workload){
                          .id = id, .replicas = 1, .shape = {.volumes = &v.id, .volumes_len = 1}
        });
    }
    s.s = berth_freeze(s.c, 0, 0);
    scene_check(&s, berth_plan_make(s.s, &policy, &s.p, &s.err));
    assert_int_equal(berth_plan_actions(s.p), 1);
    assert_int_equal(scene_pending(&s, "w"), 1);
    scene_check(&s, berth_apply(s.c, s.p, 1, &s.err));
    assert_int_equal(berth_nodes_over_capacity(s.c), 0);
    scene_audit(&s);
    scene_cleanup(&s);
}

/* Returns the hash of the plan of a small cluster with one score over cpu, memory and licences; no node has
 * licences. */
static uint64_t plan_with_licences(const char *score, bool once_asked_for)
{
    struct scene s = scene_new();
    struct berth_profile profile = {
        .name = "mine", SCORES({score, 3}, {"least_allocated", 1}), NAMES(resources, "cpu", "licence", "memory")};
    struct berth_policy policy = {.profile = &profile};
    for (int64_t i = 0; i < 6; i++) {
        const char id[] = {(char)('a' + i), '\0'};
        scene_node(&s, id, 1000 + i * 300, 3000 - i * 400);
    }
    if (once_asked_for) {
        struct berth_shape shape = {LIST(requests, struct berth_amount, {"cpu", 10}, {"licence", 1})};
        scene_put(&s, (struct berth_workload){.id = "old", .replicas = 1, .shape = shape});
        scene_check(&s, berth_workload_remove(s.c, "old", &s.err));
    }
    scene_service(&s, "web", 9, 200, 150);
    scene_service(&s, "db", 3, 100, 400);
    s.s = berth_freeze(s.c, 0, 0);
    scene_check(&s, berth_plan_make(s.s, &policy, &s.p, &s.err));
    assert_int_equal(berth_plan_actions(s.p), 12);
    uint64_t hash = berth_plan_hash(s.p);
    scene_cleanup(&s);
    return hash;
}

static void absent_resource_does_not_affect_scores(void **state)
{
    (void)state;
    const char *score;
    for (size_t i = 0; (score = berth_score_at(i, NULL)) != NULL; i++)
        if (plan_with_licences(score, false) != plan_with_licences(score, true))
            fail_msg("%s: the plan is another one", score);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_profiles),
        cmocka_unit_test(invalid_profiles_are_refused),
        cmocka_unit_test(limit_values_are_allowed),
        cmocka_unit_test(profile_needs_a_name),
        cmocka_unit_test(capacity_filters_always_apply),
        cmocka_unit_test(attach_filter_always_applies),
        cmocka_unit_test(absent_resource_does_not_affect_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
