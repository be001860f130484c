/* openb_test.c - tests a few pods on a few GPUs, calculated by hand; the tables follow from the scores of the core. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/trace/openb.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

static const char *const t4[] = {"T4"}, *const p100[] = {"A10", "P100"};

/* Pods: a share of a GPU; two T4; none; one P100. All are equally frequent. */
/* clang-format off */
static struct openb_pod pods[] = {
    {.name = "0", .spec = "", .cpu_milli = 1000, .memory_mib = 1, .gpus = 1, .gpu_milli = 500},
    {.name = "1", .spec = "T4", .cpu_milli = 1000, .memory_mib = 1, .gpus = 2, .gpu_milli = 1000,
     .models = t4, .models_len = 1},
    {.name = "2", .spec = "", .cpu_milli = 1000, .memory_mib = 1},
    {.name = "3", .spec = "A10|P100", .cpu_milli = 1000, .memory_mib = 1, .gpus = 1, .gpu_milli = 1000,
     .models = p100, .models_len = 2},
};
/* clang-format on */

struct seen {
    size_t load;
    double allocated, fragmented, share;
};

static int run(const char *policy, uint64_t seed, const uint32_t ranks[2], uint32_t *arrivals, size_t len,
               struct openb_result *ret, struct berth_err *err)
{
    struct openb_node nodes[] = {
        {.name = "a", .model = "T4",   .cpu_milli = 4000, .memory_mib = 4, .gpus = 2, .rank = ranks[0]},
        {.name = "b", .model = "P100", .cpu_milli = 8000, .memory_mib = 4, .gpus = 1, .rank = ranks[1]},
    };
    struct openb_trace t = {nodes, ROWS(nodes), pods, ROWS(pods), arrivals, len, {0}};
    struct openb_options o = {.policy = policy, .seed = seed};
    return openb_run(&t, &o, ret, err);
}

static void expect(const char *label, const struct openb_result *r, const struct seen *want, size_t len)
{
    size_t known = 0;
    for (size_t load = 0; load < OPENB_LOADS; load++)
        known += r->at[load].pods > 0;
    for (size_t i = 0; i < len; i++) {
        size_t load = want[i].load;
        if (fabs(r->at[load].allocated - want[i].allocated) > 1e-9 ||
            fabs(r->at[load].fragmented - want[i].fragmented) > 1e-9 ||
            fabs(r->at[load].fragmented_share - want[i].share) > 1e-9)
            fail_msg("%s, at %zu: %f, %f, %f", label, load, r->at[load].allocated, r->at[load].fragmented,
                     r->at[load].fragmented_share);
    }
    assert_int_equal(known, len);
}

/* On the empty cluster, F is 1000 on node a (the CPU pod and the P100 pod can use none of its 2000) and 500 on node b.
 * With best fit the share scores 43 on both: 1 - (3000/8000 + 1500/2000) / 2 and 1 - (7000/8000 + 500/2000) / 2. So the
 * rank decides, and determines all that follows. */
static void rank_decides_between_equal_scores(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t ranks[2];
        struct seen want[3];
        size_t placed;
    } rows[] = {
  /* On node b a share leaves 500 that the other pods cannot use: F 375. Then the pair fills a; nothing is left for
   * P100. */
        {"b first", {1, 0}, {{17, 16.67, 100 * 1375.0 / 3000, 55}, {83, 83.33, 12.5, 75}, {117, 83.33, 12.5, 75}}, 3},
 /* On node a a share leaves 1500 that only another share can use: F 1125. The pair does not fit, the P100 pod does. */
        {"a first",
         {0, 1},
         {{17, 16.67, 100 * 1625.0 / 3000, 65}, {83, 16.67, 100 * 1625.0 / 3000, 65}, {117, 50, 37.5, 75}},
         3                                                                                                          },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct openb_result r;
        struct berth_err err;
        uint32_t arrivals[] = {0, 1, 2, 3};
        if (run("bestfit", 1, rows[i].ranks, arrivals, ROWS(arrivals), &r, &err))
            fail_msg("%s", err.text);
        expect(rows[i].label, &r, rows[i].want, ROWS(rows[i].want));
        assert_int_equal(r.at[83].pods, 2); /* the pod without a GPU adds no load */
        assert_int_equal(r.placed, rows[i].placed);
        assert_int_equal(r.dropped, 1);
        assert_int_equal(r.gpu_milli, 3000);
    }
}

/* The same pods with another score of the core give another table: the simulation itself places nothing. */
static void scores_come_from_the_core(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        double allocated; /* at 83 %, if the share arrives before the pair */
        double after;     /* if the pod without a GPU arrived before */
    } rows[] = {
        {"bestfit",       16.67, 16.67}, /* equal at first; then 50 to 43 */
  /* 1 - (4/8 * 1/8 + 2/2 * .5/2) / 2 to 1 - (8/8 * 1/8 + 1/2 * .5/2) / 2: 84 to 87 */
        {"dotprod",       83.33, 83.33},
        {"packing",       83.33, 83.33}, /* 33 less its GPUs: b is better, 32 to 31 */
        {"clustering",    83.33, 83.33}, /* b has less free capacity: 25 + 25 * 1000 / 2000 */
        {"fgd",           83.33, 83.33}, /* F falls by 125 on b and grows by 125 on a */
        {"fragmentation", 16.67, 16.67}, /* knows only pods that have arrived: shares lose nothing on either node */
        {"pack",          16.67, 16.67}, /* a has fewer cores */
        {"berth",         83.33, 83.33}, /* either node loses half a GPU; b has fewer idle ones */
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct openb_result r = {0}, after = {0};
        struct berth_err err;
        uint32_t arrivals[] = {2, 0, 1};
        const uint32_t ranks[] = {0, 1};
        if (run(rows[i].policy, 1, ranks, arrivals + 1, 2, &r, &err) ||
            run(rows[i].policy, 1, ranks, arrivals, 3, &after, &err))
            fail_msg("%s", err.text);
        if (fabs(r.at[83].allocated - rows[i].allocated) > 1e-9 || fabs(after.at[83].allocated - rows[i].after) > 1e-9)
            fail_msg("%s: %f, after another %f", rows[i].policy, r.at[83].allocated, after.at[83].allocated);
    }
}

static void random_policy_is_reproducible(void **state)
{
    (void)state;
    size_t full = 0;
    for (uint64_t seed = 1; seed <= 32; seed++) {
        struct openb_result r, again;
        uint32_t arrivals[] = {0, 1};
        assert_int_equal(run("random", seed, (const uint32_t[]){0, 1}, arrivals, ROWS(arrivals), &r, NULL), 0);
        assert_int_equal(run("random", seed, (const uint32_t[]){0, 1}, arrivals, ROWS(arrivals), &again, NULL), 0);
        assert_memory_equal(&r, &again, sizeof r);
        full += r.placed == 2;
    }
    assert_true(full > 4 && full < 28);
}

static void loads_above_the_table_are_not_recorded(void **state)
{
    (void)state;
    struct openb_result r;
    uint32_t arrivals[] = {1, 1, 1};
    assert_int_equal(run("bestfit", 1, (const uint32_t[]){0, 1}, arrivals, ROWS(arrivals), &r, NULL), 0);
    assert_int_equal(r.at[67].pods, 1);
    assert_int_equal(r.at[130].pods, 0); /* 133 % and 200 % */
    assert_int_equal(r.dropped, 2);
}

static void invalid_runs_are_rejected(void **state)
{
    (void)state;
    struct openb_result r;
    struct berth_err err = {0};
    uint32_t arrivals[] = {0};
    assert_int_equal(run("best", 1, (const uint32_t[]){0, 1}, arrivals, 1, &r, &err), -EINVAL);
    assert_non_null(strstr(err.text, "\"best\""));
    assert_non_null(strstr(err.text, "fgd"));
    assert_non_null(strstr(err.text, "gpu-packing"));
    struct openb_node plain = {.name = "a", .model = "", .cpu_milli = 1000};
    struct openb_trace t = {&plain, 1, pods, ROWS(pods), arrivals, 1, {0}};
    assert_int_equal(openb_run(&t, &(struct openb_options){.policy = "fgd"}, &r, &err), -EINVAL);
    assert_non_null(strstr(err.text, "GPU"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_decides_between_equal_scores), cmocka_unit_test(scores_come_from_the_core),
        cmocka_unit_test(random_policy_is_reproducible),     cmocka_unit_test(loads_above_the_table_are_not_recorded),
        cmocka_unit_test(invalid_runs_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
