/* profile_view_test.c - workloads of one plan with different profiles: each is placed as in a plan with its profile
 * alone.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

enum { NODES = 300, WORKLOADS = 40, OTHERS = 4 };

/* None of these profiles depends on the other waiting workloads. */
static const char *const names[OTHERS + 1] = {"", "pack", "even", "best-fit", "dot-product"};

static const struct berth_profile *profile_of(const char *name)
{
    return berth_profile_find(*name ? name : "default");
}

static void others_fill(struct berth_profile others[static OTHERS])
{
    for (size_t i = 0; i < OTHERS; i++)
        others[i] = *profile_of(names[i + 1]);
}

/* ---- random clusters -------------------------------------------------------------------------------------------- */

static void draw_nodes(struct scene *s, uint64_t *seed, bool gpus)
{
    static const struct berth_gpu four[] = {
        {"x", 1},
        {"x", 1},
        {"y", 1},
        {"y", 1},
    };
    uint32_t len = 1 + scene_random_below(seed, NODES), base = 0;
    for (uint32_t i = 0; i < len; i++) {
        char id[16];
        uint32_t kind = scene_random_below(seed, 4);
        (void)snprintf(id, sizeof id, "n%04u", i);
        scene_put_node(s, (struct berth_node){.id = id,
                                              .gpus = four,
                                              .gpus_len = gpus && kind == 3 ? 4 : 0,
                                              LABEL("disk", scene_random_below(seed, 5) ? "old" : "new"),
                                              HAS(1000 + 900 * (int64_t)kind, 4000 - 700 * (int64_t)kind)});
        struct berth_shape used = {NEEDS(scene_random_below(seed, 900), scene_random_below(seed, 1500))};
        bool leaves = scene_random_below(seed, 4) == 0;
        scene_instance(s, (struct berth_instance){.workload = leaves ? "leaving" : "base",
                                                  .ordinal = leaves ? i : base++,
                                                  .node = id,
                                                  .state = leaves ? BERTH_STOPPING : BERTH_RUNNING,
                                                  .ready = true,
                                                  .shape = &used});
    }
    scene_service(s, "base", base, 0, 0);
    scene_service(s, "leaving", 0, 0, 0);
}

/* Earlier workloads have earlier creation times. */
static void draw_workload(struct scene *s, uint64_t *seed, uint32_t i, bool gpus, const char *profile)
{
    const struct berth_expr is_new = {"disk", BERTH_IN, NAMES(values, "new")};
    const struct berth_term likes = {.exprs = &is_new, .exprs_len = 1, .weight = 40};
    uint32_t draw = scene_random_below(seed, 5);
    bool takes = gpus && draw < 2;
    char id[16];
    (void)snprintf(id, sizeof id, "w%03u", i);
    scene_put(s, (struct berth_workload){
                     .id = id,
                     .replicas = 1 + scene_random_below(seed, 40),
                     .shape = {NEEDS(60 + 130 * (int64_t)draw, 700 - 120 * (int64_t)draw),
                               .gpu = {.count = takes, .milli = takes && draw ? 500 : 0}, .prefer = &likes,
                               .prefer_len = draw == 4, .profile = profile}
    });
}

/* ---- placements ------------------------------------------------------------------------------------------------- */

struct placed {
    size_t len;
    char text[WORKLOADS * 40][64];
};

static void placed_add(struct placed *to, const struct berth_plan *plan, const char *workload)
{
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        const struct berth_action a = berth_plan_action(plan, i);
        if (workload && strcmp(a.workload, workload) != 0)
            continue;
        assert_true(to->len < ROWS(to->text));
        (void)snprintf(to->text[to->len++], sizeof *to->text, "%s %s/%u %s %llx %d", berth_op_name(a.op), a.workload,
                       a.ordinal, a.node, (unsigned long long)a.gpus, a.score);
    }
}

static void expect_same_placements(const struct placed *got, const struct placed *want, uint64_t seed, const char *what)
{
    for (size_t i = 0; i < got->len && i < want->len; i++)
        if (strcmp(got->text[i], want->text[i]) != 0)
            fail_msg("seed %llu, %s: '%s' and not '%s'", (unsigned long long)seed, what, got->text[i], want->text[i]);
    if (got->len != want->len)
        fail_msg("seed %llu, %s: %zu actions and not %zu", (unsigned long long)seed, what, got->len, want->len);
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

/* If all workloads name one profile, the plan equals that of a policy with this profile as its own. */
static void profile_of_all_workloads_equals_policy_profile(void **state)
{
    (void)state;
    static struct placed got, want;
    uint64_t seed = scene_seed();
    const struct berth_profile *profile;
    for (size_t at = 0; (profile = berth_profile_at(at % 10)) && at < 40; at++) {
        uint64_t first = seed;
        struct scene s = scene_new();
        got.len = want.len = 0;
        draw_nodes(&s, &seed, true);
        for (uint32_t i = 0; i < WORKLOADS / 2; i++)
            draw_workload(&s, &seed, i, true, profile->name);
        s.profile = profile->name;
        scene_plan(&s);
        placed_add(&want, s.p, NULL);
        s.profile = at % 3 ? "pack" : "default";
        s.policy.others = profile;
        s.policy.others_len = 1;
        scene_plan(&s);
        placed_add(&got, s.p, NULL);
        expect_same_placements(&got, &want, first, profile->name);
        scene_apply(&s);
        scene_cleanup(&s);
    }
}

/* A plan with many profiles equals, workload by workload, plans with the profile of each. */
static void each_workload_with_its_own_profile(void **state)
{
    (void)state;
    static struct placed got, want;
    struct berth_profile others[OTHERS];
    uint64_t seed = scene_seed();
    others_fill(others);
    for (int round = 0; round < 60; round++) {
        uint64_t first = seed, again;
        struct scene one = scene_new(), all = scene_new();
        got.len = want.len = 0;
        again = seed;
        draw_nodes(&one, &again, false);
        draw_nodes(&all, &seed, false);
        for (uint32_t i = 0; i < WORKLOADS; i++) {
            const char *name = names[scene_random_below(&seed, OTHERS + 1)];
            char id[16];
            again = seed;
            draw_workload(&all, &seed, i, false, name);
            draw_workload(&one, &again, i, false, "");
            (void)snprintf(id, sizeof id, "w%03u", i);
            one.profile = profile_of(name)->name;
            scene_plan(&one);
            placed_add(&want, one.p, id);
            scene_check(&one, berth_apply(one.c, one.p, one.next, &one.err));
            one.next += berth_plan_actions(one.p);
        }
        all.policy.others = others;
        all.policy.others_len = OTHERS;
        scene_plan(&all);
        placed_add(&got, all.p, NULL);
        expect_same_placements(&got, &want, first, "all at once");
        scene_cleanup(&one);
        scene_cleanup(&all);
    }
}

/* Two equal profiles are interchangeable. */
static void equal_profiles_are_interchangeable(void **state)
{
    (void)state;
    static struct placed got, want;
    uint64_t seed = scene_seed();
    for (size_t at = 0; at < 60; at++) {
        struct berth_profile twin = *berth_profile_at(at % 10);
        uint64_t first = seed;
        struct scene s = scene_new();
        got.len = want.len = 0;
        draw_nodes(&s, &seed, true);
        for (uint32_t i = 0; i < WORKLOADS; i++)
            draw_workload(&s, &seed, i, true, scene_random_below(&seed, 2) ? "twin" : "");
        s.profile = twin.name;
        scene_plan(&s);
        placed_add(&want, s.p, NULL);
        twin.name = "twin";
        s.policy.others = &twin;
        s.policy.others_len = 1;
        scene_plan(&s);
        placed_add(&got, s.p, NULL);
        expect_same_placements(&got, &want, first, s.profile);
        scene_apply(&s);
        scene_cleanup(&s);
    }
}

/* The order of profiles in a policy does not matter. */
static void profile_order_does_not_matter(void **state)
{
    (void)state;
    static struct placed got, want;
    static const char *const memory[] = {"memory"};
    struct berth_profile there[OTHERS], back[OTHERS];
    uint64_t seed = scene_seed();
    others_fill(there);
    there[0] = *berth_profile_find("gpu-worth");
    there[1] = *berth_profile_find("default");
    there[0].resources = there[2].resources = memory;
    there[0].resources_len = there[2].resources_len = 1;
    for (size_t i = 0; i < OTHERS; i++)
        back[OTHERS - 1 - i] = there[i];
    for (size_t round = 0; round < 40; round++) {
        uint64_t first = seed;
        struct scene s = scene_new();
        got.len = want.len = 0;
        draw_nodes(&s, &seed, true);
        for (uint32_t i = 0; i < WORKLOADS; i++)
            draw_workload(&s, &seed, i, true, there[scene_random_below(&seed, OTHERS)].name);
        s.policy.others = there;
        s.policy.others_len = OTHERS;
        scene_plan(&s);
        placed_add(&want, s.p, NULL);
        s.policy.others = back;
        scene_plan(&s);
        placed_add(&got, s.p, NULL);
        expect_same_placements(&got, &want, first, "backwards");
        scene_apply(&s);
        scene_cleanup(&s);
    }
}

/* Rebalancing depends on the policy's own profile, whichever profile was used last. */
static void rebalancing_uses_the_policys_own_profile(void **state)
{
    (void)state;
    struct scene s = scene_with_nodes(3);
    s.policy.rebalance = berth_policy_usual().rebalance;
    s.policy.others = berth_profile_find("pack");
    s.policy.others_len = 1;
    scene_service(&s, "web", 4, 10, 10);
    for (uint32_t i = 0; i < 4; i++)
        scene_running_with_use(&s, i + 1, "web", i, "a", 200, 10);
    scene_put(&s, (struct berth_workload){
                      .id = "x", .replicas = 1, .priority = -1, .shape = {NEEDS(10, 10), .profile = "pack"}
    });
    scene_expect_and_apply(&s, "place x/0 a pending; place web/0 b moved for 1");
    scene_cleanup(&s);
}

/* A workload that names no profile, or one the policy does not have, gets the policy's own. */
static void unknown_profile_is_the_policys_own(void **state)
{
    (void)state;
    static const struct {
        const char *profile, *want;
    } rows[] = {
        {NULL,     "place web/0 b pending"},
        {"",       "place web/0 b pending"},
        {"absent", "place web/0 b pending"},
        {"pack",   "place web/0 a pending"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_with_nodes(2);
        scene_service(&s, "old", 1, 100, 100);
        scene_running(&s, "old", 0, "a");
        scene_put(&s, (struct berth_workload){
                          .id = "web", .replicas = 1, .shape = {NEEDS(100, 100), .profile = rows[i].profile}
        });
        s.policy.others = berth_profile_find("pack");
        s.policy.others_len = 1;
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* The filters are always those of the policy's own profile. */
static void filters_are_the_policys_own(void **state)
{
    (void)state;
    const struct berth_profile careless = {.name = "careless",
                                           NAMES(filters, "resources"),
                                           LIST(scores, struct berth_weight, {"most_allocated", 1}),
                                           .allow_over = true};
    const struct berth_taint taint = {.key = "k", .effect = BERTH_NO_SCHEDULE};
    struct scene s = scene_with_nodes(1);
    scene_put_node(&s, (struct berth_node){.id = "b", HAS(100, 1000), .taints = &taint, .taints_len = 1});
    scene_put(&s, (struct berth_workload){
                      .id = "web", .replicas = 1, .shape = {NEEDS(100, 100), .profile = "careless"}
    });
    s.policy.others = &careless;
    s.policy.others_len = 1;
    scene_expect_and_apply(&s, "place web/0 a pending");
    scene_cleanup(&s);
}

static void invalid_profiles_are_named(void **state)
{
    (void)state;
    static const struct berth_weight odd = {"no-such-score", 1};
    static const struct berth_profile twice[] =
        {
            {.name = "a"},
            {.name = "a"}
    },
                                      nameless[] = {{.name = ""}},
                                      unknown[] = {{.name = "a", .scores = &odd, .scores_len = 1}}, many[17] = {{0}};
    static const struct {
        const struct berth_profile *others;
        size_t len;
        const char *text;
    } rows[] = {
        {twice,    2,  "\"a\" is listed twice"   },
        {nameless, 1,  "has no name"             },
        {unknown,  1,  "there is no score"       },
        {many,     17, "more than 16 additional "},
    };
    struct scene s = scene_with_nodes(1);
    s.s = berth_freeze(s.c, s.now_ns, 0);
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct berth_plan *plan = NULL;
        const struct berth_policy policy = {.others = rows[i].others, .others_len = rows[i].len};
        assert_int_equal(berth_plan_make(s.s, &policy, &plan, &s.err), -EINVAL);
        assert_null(plan);
        if (!strstr(s.err.text, rows[i].text))
            fail_msg("'%s' does not say '%s'", s.err.text, rows[i].text);
    }
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_profiles_are_interchangeable),
        cmocka_unit_test(profile_order_does_not_matter),
        cmocka_unit_test(rebalancing_uses_the_policys_own_profile),
        cmocka_unit_test(profile_of_all_workloads_equals_policy_profile),
        cmocka_unit_test(each_workload_with_its_own_profile),
        cmocka_unit_test(unknown_profile_is_the_policys_own),
        cmocka_unit_test(filters_are_the_policys_own),
        cmocka_unit_test(invalid_profiles_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
