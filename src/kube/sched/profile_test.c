/* profile_test.c - scheduler names and their profiles: parsing, and the plans of pods with these names. */
#include "kube/sched/profile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kube/object/object_kit_test.h"
#include "kube/sched/plan_choice.h"
#include "kube/sched/policy.h"

/* ---- parsing ---------------------------------------------------------------------------------------------------- */

static void scheduler_names_are_parsed(void **state)
{
    static const struct {
        const char *names, *profile, *want; /* "name=profile ...", "-" for `own`; or a part of the error */
        int rc;
    } rows[] = {
        {"berth",                 "default", "berth=-",                                            0      },
        {"a,b",                   "pack",    "a=- b=-",                                            0      },
        {"berth,berth-pack=pack", "default", "berth=- berth-pack=pack",                            0      },
        {",a=pack,,b=even,",      "default", "a=pack b=even",                                      0      },
        {"a=default,b=pack",      "default", "a=- b=pack",                                         0      },
        {"a=default,b=pack",      "pack",    "a=default b=-",                                      0      },
        {"a=pack,b=pack",         "default", "a=pack b=pack",                                      0      },
        {"",                      "default", "name at least one",                                  -EINVAL},
        {",,",                    "default", "name at least one",                                  -EINVAL},
        {"a",                     "nowhere", "--profile: unknown profile 'nowhere'",               -EINVAL},
        {"a=nowhere",             "default", "--scheduler-name: unknown profile 'now",             -EINVAL},
        {"a=",                    "default", "unknown profile ''",                                 -EINVAL},
        {"=pack",                 "default", "NAME=PROFILE, such as berth-pack=pack, not '=pack'", -EINVAL},
        {"a, b",                  "default", "' b' must not contain spaces or quotes",             -EINVAL},
        {"a\"b=pack",             "default", "must not contain spaces or quotes",                  -EINVAL},
        {"a,b=pack,a=even",       "default", "has 'a' twice",                                      -EINVAL},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(str) struct str got = {0};
        struct arena arena;
        struct berth_err err = {0};
        struct kube_profiles p = {0};
        arena_init(&arena);
        assert_int_equal(kube_profiles_read(rows[i].names, rows[i].profile, &arena, &p, &err), rows[i].rc);
        for (size_t n = 0; n < p.len; n++)
            str_addf(&got, "%s%s=%s", n ? " " : "", p.names[n], *p.profiles[n] ? p.profiles[n] : "-");
        if (rows[i].rc == 0) {
            assert_string_equal(got.at, rows[i].want);
            assert_string_equal(p.own->name, rows[i].profile);
        } else if (!strstr(err.text, rows[i].want) || p.len) {
            fail_msg("'%s' gives '%s'", rows[i].names, err.text);
        }
        arena_done(&arena);
    }
}

static void too_many_names_are_rejected(void **state)
{
    CLEANUP(str) struct str names = {0};
    struct arena arena;
    struct berth_err err = {0};
    struct kube_profiles p;
    (void)state;
    arena_init(&arena);
    for (unsigned i = 0; i < 64; i++)
        str_addf(&names, "%sn%u", i ? "," : "", i);
    assert_int_equal(kube_profiles_read(names.at, "default", &arena, &p, &err), 0);
    assert_int_equal(p.len, 64);
    str_add(&names, ",more");
    assert_int_equal(kube_profiles_read(names.at, "default", &arena, &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, "more than 64 names"));
    arena_done(&arena);
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

static void policy_lists_each_profile_once(void **state)
{
    static const char *const profiles[] = {"", "pack", "even", "pack", "no-such"};
    struct kube_policy k;
    struct plan_policy p;
    (void)state;
    kube_policy_init(&k, berth_profile_find("default"), profiles, ROWS(profiles));
    kube_policy_read(&k, NULL, &p);
    assert_int_equal(p.policy.others_len, 2);
    assert_string_equal(p.policy.others[0].name, "pack");
    assert_string_equal(p.policy.others[1].name, "even");
    assert_true(p.policy.others[0].allow_over && p.policy.profile->allow_over);
    assert_ptr_equal(kube_policy_profile(&k, "even"), &k.others[1]);
    assert_ptr_equal(kube_policy_profile(&k, ""), &k.profile);
    assert_ptr_equal(kube_policy_profile(&k, NULL), &k.profile);
    plan_policy_done(&p);
}

static const char *const names[] = {"berth", "berth-pack"}, *const profiles[] = {"", "pack"};

static void stage(struct scene *s, const char *const *of)
{
    *s = (struct scene){.tenants = tenants_new(scene_changed, s)};
    s->p = cache_new(&(struct cache_config){.schedulers = names,
                                            .schedulers_len = 2,
                                            .profiles = of,
                                            .tenants = s->tenants,
                                            .changed = scene_changed,
                                            .trouble = scene_trouble,
                                            .ctx = s});
    scene_node(s, "busy", "a", "");
    scene_node(s, "idle", "a", "");
}

static void stage_pod(struct scene *s, const char *name, const char *scheduler, const char *node)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: %s, namespace: default, uid: uid-%s, creationTimestamp: 100}, spec: {schedulerName: %s, nodeName: "
        "\"%s\", containers: [{name: c, resources: {requests: {cpu: 1, memory: 2Gi}}}]}}",
        name, name, scheduler, node);
    scene_put(s, CACHE_POD, yaml.at);
}

/* "pod:node ..." in the order of the plan. */
static void planned(struct scene *s, const char *want)
{
    struct kube_policy k;
    struct plan_policy policy;
    struct kube_choice choice;
    struct berth_err err = {0};
    str_clear(&s->text);
    kube_policy_init(&k, berth_profile_find("default"), profiles, 2);
    kube_policy_read(&k, s->tenants, &policy);
    if (kube_choose(cache_cluster(s->p), 1, &policy.policy, &choice, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < berth_plan_actions(choice.plan); i++) {
        const struct berth_action a = berth_plan_action(choice.plan, i);
        str_addf(&s->text, "%s%s:%s", i ? " " : "", strchr(a.workload, ':') + 1, a.node);
    }
    assert_string_equal(str_text(&s->text), want);
    kube_choice_done(&choice);
    plan_policy_done(&policy);
}

/* One plan places each pod by the profile of its scheduler name; a pod of another scheduler is not placed, but its
 * resources count. */
static void pod_is_placed_by_profile_of_its_scheduler_name(void **state)
{
    CLEANUP(scene) struct scene s;
    struct cache_pod_view pod;
    (void)state;
    stage(&s, profiles);
    stage_pod(&s, "old", "somebody", "busy");
    stage_pod(&s, "older", "berth", "busy");
    stage_pod(&s, "a", "berth", "");
    stage_pod(&s, "b", "berth-pack", "");
    stage_pod(&s, "c", "somebody", "");
    stage_pod(&s, "d", "berth-pac", "");
    planned(&s, "a:idle b:busy");
    assert_true(cache_pod_find(s.p, "default:b", &pod));
    assert_string_equal(pod.scheduler, "berth-pack");
    assert_false(cache_pod_find(s.p, "default:c", &pod));
}

/* If some pods stay pending, the number placed counts more than where: profiles of names are varied like the own
 * one. */
static void named_profiles_are_varied_too(void **state)
{
    static const char *const spreads[] = {"", "even"};
    CLEANUP(scene) struct scene s;
    struct kube_policy k;
    struct plan_policy policy;
    struct kube_choice choice;
    (void)state;
    stage(&s, spreads);
    stage_pod(&s, "a", "berth-pack", "");
    stage_pod(&s, "b", "berth-pack", "");
    scene_put(&s, CACHE_POD,
              "{metadata: {name: c, namespace: default, uid: u, creationTimestamp: 200}, spec: {schedulerName: berth, "
              "containers: [{name: c, resources: {requests: {cpu: 4}}}]}}"); /* a whole node */
    kube_policy_init(&k, berth_profile_find("pack"), spreads, 2);
    kube_policy_read(&k, s.tenants, &policy);
    assert_int_equal(kube_choose(cache_cluster(s.p), 1, &policy.policy, &choice, NULL), 0);
    assert_int_equal(berth_plan_pendings(choice.plan), 0);
    kube_choice_done(&choice);
    plan_policy_done(&policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scheduler_names_are_parsed),
        cmocka_unit_test(too_many_names_are_rejected),
        cmocka_unit_test(policy_lists_each_profile_once),
        cmocka_unit_test(pod_is_placed_by_profile_of_its_scheduler_name),
        cmocka_unit_test(named_profiles_are_varied_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
