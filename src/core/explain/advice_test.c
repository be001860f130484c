/* advice_test.c - changes that let more pods be placed: only what a plan proves is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

enum { ADVICE_MAX = 4, TRIES = 8 };

/* Expects all advice for the workload, joined by "; ". */
static void expect_advice(struct scene *s, const char *workload, const char *want)
{
    struct berth_policy policy = s->policy;
    struct berth_advice advice[ADVICE_MAX];
    char got[1024] = "";
    size_t at = 0, len = 0, n = 0;
    policy.profile = s->profile ? berth_profile_find(s->profile) : NULL;
    while (at < berth_plan_pendings(s->p) && strcmp(berth_plan_pending_name(s->p, at), workload) != 0)
        at++;
    assert_true(at < berth_plan_pendings(s->p));
    n = berth_plan_advise(s->p, &policy, at, TRIES, advice, ADVICE_MAX);
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(got + len, sizeof got - len, "%s%s", i ? "; " : "", advice[i].text);
    assert_string_equal(got, want);
}

/* Six nodes: two are small, one is cordoned, one is small and of another architecture. */
static struct scene stage(void)
{
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", .arch = "amd64", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "b", .arch = "amd64", HAS(1500, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "c", .arch = "amd64", HAS(4000, 4000), .state = BERTH_NODE_CORDONED});
    scene_put_node(&s, (struct berth_node){.id = "d", .arch = "arm64", HAS(1000, 4000)});
    scene_put_node(&s, (struct berth_node){.id = "e", .arch = "amd64", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "f", .arch = "amd64", HAS(1000, 1000)});
    return s;
}

static void one_pod(void **state)
{
    static const struct {
        int64_t cpu, memory;
        const char *arch, *want;
    } rows[] = {
        {2000, 1000, NULL,
         "with 1500m of cpu instead of 2, the pod starts on b; with node c uncordoned, the pod starts on c"},
        {1600, 900,  "arm64", "with 1 of cpu instead of 1600m, the pod starts on d"                        },
        {1000, 5000, NULL,    "with 4000 of memory instead of 5000, the pod starts on d"                   },
        {1000, 1000, "mips",  "on any architecture, the pod starts on d"                                   },
        {4000, 4000, "amd64", "with node c uncordoned, the pod starts on c"                                },
        {5000, 5000, "amd64", ""                                                                           },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage();
        scene_put(&s,
                  (struct berth_workload){
                      .id = "w", .replicas = 1, .shape = {NEEDS(rows[i].cpu, rows[i].memory), .arch = rows[i].arch}
        });
        scene_expect(&s, "");
        expect_advice(&s, "w", rows[i].want);
        scene_cleanup(&s);
    }
}

/* Three nodes, two of them full; the third has a taint. A gang of two does not start on one node, with or without a
 * toleration. */
static void advice_counts_the_whole_gang(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 500, 1000);
    scene_node(&s, "b", 500, 1000);
    scene_put_node(&s, (struct berth_node){.id = "c",
                                           HAS(1000, 1000),
                                           LIST(taints, struct berth_taint, {"batch", "", BERTH_NO_SCHEDULE})});
    struct berth_workload gang = {
        .id = "w", .kind = BERTH_JOB, .replicas = 2, .gang = "g", .shape = {NEEDS(1000, 100)}};
    scene_put(&s, gang);
    scene_expect(&s, "");
    expect_advice(&s, "w", "with 500m of cpu instead of 1 in each pod, all 2 pods start");
    gang.replicas = 1;
    scene_put(&s, gang);
    scene_expect(&s, "");
    expect_advice(&s, "w",
                  "with 500m of cpu instead of 1, the pod starts on a; "
                  "with a toleration for taint batch, the pod starts on c");
    scene_cleanup(&s);
}

/* Each node has room for one pod of the gang: no filter refuses a node, but fewer pods fit than the gang needs. */
static void advice_suggests_smaller_gang(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1500, 1000);
    scene_node(&s, "b", 1500, 1000);
    scene_node(&s, "c", 1500, 1000);
    scene_put(&s, (struct berth_workload){
                      .id = "w", .kind = BERTH_JOB, .replicas = 4, .gang = "g", .shape = {NEEDS(1000, 100)}});
    scene_expect(&s, "");
    expect_advice(&s, "w",
                  "with 750m of cpu instead of 1 in each pod, all 4 pods start; "
                  "as an elastic gang that starts with 3 pods instead of 4, 3 of 4 pods start");
    scene_cleanup(&s);
}

/* A change that would help alone is not reported if a quota is used up, or if another demand comes first. */
static void changes_that_do_not_help_are_not_advised(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_check(
        &s, berth_quota_put(
                s.c, &(struct berth_quota){.id = "user/ann", LIST(limits, struct berth_amount, {"cpu", 500})}, &s.err));
    scene_node(&s, "a", 900, 1000);
    scene_put(
        &s, (struct berth_workload){.id = "w", .replicas = 1, .shape = {NEEDS(1000, 100)}, NAMES(quotas, "user/ann")});
    scene_expect(&s, "");
    expect_advice(&s, "w", "");
    scene_cleanup(&s);
}

static void advice_counts_gpus_of_a_gang(void **state)
{
    static const struct berth_gpu four[] = {
        {"H100", 1, false},
        {"H100", 1, false},
        {"H100", 1, false},
        {"H100", 1, false}
    };
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(9000, 9000), .gpus = four, .gpus_len = 4});
    scene_put_node(&s, (struct berth_node){.id = "b", HAS(9000, 9000), .gpus = four, .gpus_len = 2});
    struct berth_workload w = {.id = "w", .kind = BERTH_JOB, .replicas = 3, .gang = "g", .shape = {NEEDS(100, 100)}};
    w.shape.gpu.count = 4;
    scene_put(&s, w);
    scene_expect(&s, "");
    expect_advice(&s, "w",
                  "with 2 GPUs in each pod instead of 4, all 3 pods start; "
                  "as an elastic gang that starts with 1 pod instead of 3, 1 of 3 pods starts");
    scene_cleanup(&s);
}

/* After changes were tried, the plan reports the same, and the snapshot gives the same plan. */
static void advice_leaves_plan_unchanged(void **state)
{
    (void)state;
    struct scene s = stage();
    scene_service(&s, "w", 1, 2000, 1000);
    scene_expect(&s, "");
    uint64_t hash = berth_plan_hash(s.p);
    expect_advice(&s, "w",
                  "with 1500m of cpu instead of 2, the pod starts on b; with node c uncordoned, the pod starts on c");
    assert_int_equal(berth_plan_hash(s.p), hash);
    expect_advice(&s, "w",
                  "with 1500m of cpu instead of 2, the pod starts on b; with node c uncordoned, the pod starts on c");
    struct berth_plan *again = NULL;
    scene_check(&s, berth_plan_make(s.s, &s.policy, &again, &s.err));
    assert_int_equal(berth_plan_hash(again), hash);
    berth_plan_free(again);
    scene_audit(&s);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_pod),
        cmocka_unit_test(advice_counts_the_whole_gang),
        cmocka_unit_test(advice_suggests_smaller_gang),
        cmocka_unit_test(changes_that_do_not_help_are_not_advised),
        cmocka_unit_test(advice_counts_gpus_of_a_gang),
        cmocka_unit_test(advice_leaves_plan_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
