/* profile_test.c - built-in profiles are found; names that do not exist and weights out of range are refused by name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene_test.h"

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
    scene_must(&s, plan_with(&s, &profile));
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
        scene_must(&s, plan_with(&s, p));
        s.profile = p->name;
        scene_see(&s, "place w/0 a pending");
    }
    assert_true(len >= 9);
    assert_null(berth_profile_at(SIZE_MAX));
    assert_null(berth_profile_find("no such profile"));
    assert_null(berth_profile_find(""));
    scene_cleanup(&s);
}

#define SCORES(...) LIST(scores, struct berth_weight, __VA_ARGS__)

static void what_is_refused(void **state)
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
    struct berth_weight many[33];
    for (size_t i = 0; i < ROWS(many); i++)
        many[i] = (struct berth_weight){"balanced", 1};
    refuse((struct berth_profile){.scores = many, .scores_len = ROWS(many)}, "33 scores");
}

static void what_is_just_allowed(void **state)
{
    (void)state;
    allow((struct berth_profile){SCORES({"balanced", BERTH_WEIGHT_MAX})});
    allow((struct berth_profile){
        SCORES({"balanced", 100}, {"spread", 100}, {"affinity", 100}, {"random", 100}, {"best_fit", 100})});
    allow((struct berth_profile){NAMES(resources, "1", "2", "3", "4", "5", "6")});
    allow((struct berth_profile){0});
    struct berth_weight many[32];
    for (size_t i = 0; i < ROWS(many); i++)
        many[i] = (struct berth_weight){"balanced", 1};
    allow((struct berth_profile){.scores = many, .scores_len = ROWS(many)});
}

static void a_profile_has_a_name(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_profile none = {0};
    assert_int_equal(plan_with(&s, &none), -EINVAL);
    assert_non_null(strstr(s.err.text, "name"));
    scene_cleanup(&s);
}

/* Whatever is left out, nothing is promised twice. */
static void capacity_is_never_left_out(void **state)
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
    scene_must(&s, berth_plan_make(s.s, &policy, &s.p, &s.err));
    assert_int_equal(scene_pending(&s, "cpu"), 1);
    assert_int_equal(scene_pending(&s, "gpu"), 1);
    assert_int_equal(scene_pending(&s, "port"), 1);
    assert_int_equal(scene_pending(&s, "one"), 0); /* this one was left out */
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_profiles),          cmocka_unit_test(what_is_refused),
        cmocka_unit_test(what_is_just_allowed),       cmocka_unit_test(a_profile_has_a_name),
        cmocka_unit_test(capacity_is_never_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
