/* admission_test.c - result of the admission check: the limit, the use and the amount that would be accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

#define HOUR_NS (3600 * SCENE_SECOND_NS)

/* A group with two users: ann has a job of two pods of 300, bob a job of one. */
static struct scene stage(struct berth_quota user, struct berth_quota group)
{
    struct scene s = scene_new();
    s.now_ns = 100 * HOUR_NS;
    user.id = "user/ann";
    user.parent = "group/g";
    group.id = "group/g";
    scene_check(&s, berth_quota_put(s.c, &user, &s.err));
    scene_check(&s, berth_quota_put(s.c, &group, &s.err));
    scene_check(&s, berth_quota_put(s.c, &(struct berth_quota){.id = "user/bob", .parent = "group/g"}, &s.err));
    scene_put(&s, (struct berth_workload){
                      .id = "there",
                      .kind = BERTH_JOB,
                      .replicas = 2,
                      NAMES(quotas, "user/ann"),
                      .estimate_ns = 2 * HOUR_NS,
                      .shape = {NEEDS(300, 1), .gpu = {.count = 1}}
    });
    scene_put(&s, (struct berth_workload){.id = "bobs",
                                          .kind = BERTH_JOB,
                                          .replicas = 1,
                                          NAMES(quotas, "user/bob"),
                                          .limit_ns = HOUR_NS,
                                          .shape = {NEEDS(300, 1)}});
    return s;
}

#define AMOUNTS(field, resource, amount) LIST(field, struct berth_amount, {resource, amount})

struct draft {
    const char *id;
    uint32_t tasks, gang_min;
    bool gang;
    int64_t cpu;
    struct berth_gpu_need gpu;
    int64_t estimate_ns, limit_ns;
};

static struct berth_admission_result judge(const struct scene *s, struct draft d)
{
    struct berth_workload w = {
        .id = d.id ? d.id : "new",
        .kind = BERTH_JOB,
        .replicas = d.tasks,
        .gang = d.gang ? "new" : NULL,
        .gang_min = d.gang_min,
        NAMES(quotas, "user/ann", "queue/unknown"),
        .estimate_ns = d.estimate_ns,
        .limit_ns = d.limit_ns,
        .shape = {NEEDS(d.cpu, 1), .gpu = d.gpu}
    };
    return berth_admission_check(s->c, &w, s->now_ns);
}

/* Returns "KIND QUOTA RESOURCE used + asked of limit, accepted", or "" if the draft is within all quotas. */
static void expect(const char *label, struct berth_admission_result v, const char *want)
{
    char got[256] = "";
    if (!v.ok)
        snprintf(got, sizeof got, "%s %s %s %lld + %lld of %lld, %lld", v.kind, v.quota, v.resource, (long long)v.used,
                 (long long)v.asked, (long long)v.limit, (long long)v.accepted);
    if (strcmp(got, want) != 0)
        fail_msg("%s: \"%s\"", label, got);
}

static void limits_and_admitted_amounts_are_checked(void **state)
{
    const struct {
        const char *label;
        struct berth_quota user, group;
        struct draft draft;
        const char *want;
    } rows[] = {
        {"nothing is limited",                            {0},                              {0},                            {.tasks = 1000, .cpu = 1000},                    ""                                   },
        {"a pod fits",                                    {AMOUNTS(limits, "cpu", 500)},    {0},                            {.tasks = 9, .cpu = 500},                        ""                                   },
        {"a pod can never fit",
         {AMOUNTS(limits, "cpu", 500)},
         {0},
         {.tasks = 1, .cpu = 501},
         "limit user/ann cpu 0 + 501 of 500, 500"                                                                                                                                                                 },
        {"a gang can never fit",
         {0},
         {AMOUNTS(limits, "cpu", 1000)},
         {.tasks = 3, .gang = true, .cpu = 400},
         "limit group/g cpu 0 + 1200 of 1000, 1000"                                                                                                                                                               },
        {"its minimum can",
         {0},
         {AMOUNTS(limits, "cpu", 1000)},
         {.tasks = 3, .gang = true, .gang_min = 2, .cpu = 400},
         ""                                                                                                                                                                                                       },
        {"no GPU at all",
         {AMOUNTS(limits, "gpu", 0)},
         {0},
         {.tasks = 1, .gpu = {.count = 1}},
         "limit user/ann gpu 0 + 1000 of 0, 0"                                                                                                                                                                    },
        {"a share of one",                                {AMOUNTS(limits, "gpu", 500)},    {0},                            {.tasks = 1, .gpu = {.count = 1, .milli = 500}}, ""                                   },
        {"no jobs",                                       {AMOUNTS(limits, "jobs", 0)},     {0},                            {.tasks = 1, .cpu = 1},                          "limit user/ann jobs 0 + 1 of 0, 0"  },
        {"all that waits counts",
         {AMOUNTS(admitted, "cpu", 1000)},
         {0},
         {.tasks = 2, .cpu = 300},
         "admitted user/ann cpu 600 + 600 of 1000, 400"                                                                                                                                                           },
        {"up to the limit",                               {AMOUNTS(admitted, "cpu", 1200)}, {0},                            {.tasks = 2, .cpu = 300},                        ""                                   },
        {"what others of the group ask for counts there",
         {0},
         {AMOUNTS(admitted, "cpu", 1000)},
         {.tasks = 1, .cpu = 200},
         "admitted group/g cpu 900 + 200 of 1000, 100"                                                                                                                                                            },
        {"GPUs",
         {AMOUNTS(admitted, "gpu", 3000)},
         {0},
         {.tasks = 2, .gpu = {.count = 1}},
         "admitted user/ann gpu 2000 + 2000 of 3000, 1000"                                                                                                                                                        },
        {"pods",                                          {0},                              {AMOUNTS(admitted, "pods", 4)}, {.tasks = 2, .cpu = 1},                          "admitted group/g pods 3 + 2 of 4, 1"},
        {"jobs",                                          {0},                              {AMOUNTS(admitted, "jobs", 2)}, {.tasks = 1, .cpu = 1},                          "admitted group/g jobs 2 + 1 of 2, 0"},
        {"what it replaces does not count",
         {AMOUNTS(admitted, "cpu", 700)},
         {0},
         {.id = "there", .tasks = 2, .cpu = 350},
         ""                                                                                                                                                                                                       },
        {"what it does not ask for does not matter",      {AMOUNTS(admitted, "gpu", 1000)}, {0},                            {.tasks = 5, .cpu = 9},                          ""                                   },
        {"too much for any number",
         {AMOUNTS(admitted, "cpu", 1000)},
         {0},
         {.tasks = BERTH_REPLICAS_MAX, .cpu = BERTH_AMOUNT_MAX},
         "admitted user/ann cpu 600 + 9223372036854775807 of 1000, 400"                                                                                                                                           },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(rows[i].user, rows[i].group);
        expect(rows[i].label, judge(&s, rows[i].draft), rows[i].want);
        scene_cleanup(&s);
    }
}

/* Expected use: `there` 2 x 2 h, `bobs` 1 h. */
static void totals(void **state)
{
    static const struct {
        const char *label;
        bool group;
        struct berth_total total; /* amounts in pod hours, times in hours */
        struct draft draft;       /* the same */
        const char *want;
    } rows[] = {
        {"enough is left",                         false, {"pods", 10, 3, 90, 0},  {.tasks = 3, .estimate_ns = 1}, ""                                             },
        {"not for so long",
         false,                                           {"pods", 10, 3, 90, 0},
         {.tasks = 2, .estimate_ns = 2},
         "total user/ann pods 25200 + 14400 of 36000, 10800"                                                                                                      },
        {"its limit counts where it does not say",
         false,                                           {"pods", 10, 3, 90, 0},
         {.tasks = 2, .limit_ns = 2},
         "total user/ann pods 25200 + 14400 of 36000, 10800"                                                                                                      },
        {"an hour where nothing is known",         false, {"pods", 10, 3, 90, 0},  {.tasks = 3},                   ""                                             },
        {"and not more",
         false,                                           {"pods", 10, 3, 90, 0},
         {.tasks = 4},
         "total user/ann pods 25200 + 14400 of 36000, 10800"                                                                                                      },
        {"all of the group count",
         true,                                            {"pods", 10, 3, 90, 0},
         {.tasks = 3},
         "total group/g pods 28800 + 10800 of 36000, 7200"                                                                                                        },
        {"a new period",                           false, {"pods", 10, 9, 90, 10}, {.tasks = 6},                   ""                                             },
        {"not yet",                                false, {"pods", 10, 9, 90, 11}, {.tasks = 6},                   "total user/ann pods 46800 + 21600 of 36000, 0"},
        {"what is replaced does not count",        false, {"pods", 4, 0, 90, 0},   {.id = "there", .tasks = 4},    ""                                             },
        {"what it does not ask for",               false, {"gpu", 1, 9, 90, 0},    {.tasks = 4},                   ""                                             },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct berth_total t = rows[i].total;
        t.limit *= 3600;
        t.spent *= 3600;
        t.since_ns *= HOUR_NS;
        t.period_ns *= HOUR_NS;
        struct berth_quota with = {.totals = &t, .totals_len = 1}, without = {0};
        struct draft d = rows[i].draft;
        d.estimate_ns *= HOUR_NS;
        d.limit_ns *= HOUR_NS;
        d.cpu = 1;
        struct scene s = stage(rows[i].group ? without : with, rows[i].group ? with : without);
        expect(rows[i].label, judge(&s, d), rows[i].want);
        scene_cleanup(&s);
    }
}

/* Finished tasks request nothing. */
static void finished_tasks_request_nothing(void **state)
{
    (void)state;
    struct scene s = stage((struct berth_quota){AMOUNTS(admitted, "cpu", 600)}, (struct berth_quota){0});
    scene_node(&s, "a", 1000, 1000);
    expect("before", judge(&s, (struct draft){.tasks = 1, .cpu = 300}), "admitted user/ann cpu 600 + 300 of 600, 0");
    scene_instance(&s, (struct berth_instance){.workload = "there", .node = "a", .state = BERTH_ENDED, .since_ns = 1});
    expect("one of two", judge(&s, (struct draft){.tasks = 1, .cpu = 300}), "");
    expect("itself", judge(&s, (struct draft){.id = "there", .tasks = 3, .cpu = 300}), "");
    scene_check(&s, berth_workload_remove(s.c, "there", &s.err));
    expect("removed", judge(&s, (struct draft){.tasks = 2, .cpu = 300}), "");
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_and_admitted_amounts_are_checked),
        cmocka_unit_test(totals),
        cmocka_unit_test(finished_tasks_request_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
