/* fair_test.c - usage decay in numbers, the fair tree, dominant resource fairness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/model/usage.h"
#include "core/queue/factor.h"
#include "core/scene/scene_test.h"

#define S SCENE_SECOND_NS
#define GIB ((int64_t)1 << 30)
#define WEEK (7 * 86400 * S)

/* ---- past usage ------------------------------------------------------------------------------------------------- */

/* The results must be the same on every machine: stored facts depend on them. */
static void usage_decays(void **state)
{
    (void)state;
    static const struct {
        int64_t amount, from, at, half, want;
    } rows[] = {
        {1000000,         0,         0,                WEEK,          1000000       },
        {1000000,         0,         WEEK,             WEEK,          500000        },
 /* the default half-life is a week */
        {1000000,         0,         WEEK,             0,             500000        },
        {1000000,         5 * S,     2 * WEEK + 5 * S, WEEK,          250000        },
 /* usage does not grow towards the past */
        {1000000,         5 * S,     0,                WEEK,          1000000       },
        {1000000,         0,         3600 * S,         86400 * S,     971532        },
        {123456789012345, 0,         100000 * S,       3 * 86400 * S, 94488044622880},
        {INT64_MAX,       0,         1,                WEEK,          INT64_MAX / 4 }, /* saturates */
        {1,               0,         2 * WEEK,         WEEK,          0             },
        {1,               0,         WEEK / 2,         WEEK,          1             },
        {-5,              0,         1,                WEEK,          0             },
        {1000000,         INT64_MIN, INT64_MAX,        WEEK,          0             },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t got = berth_usage_decay(rows[i].amount, rows[i].from, rows[i].at, rows[i].half);
        if (got != rows[i].want)
            fail_msg("row %zu: %lld, not %lld", i, (long long)got, (long long)rows[i].want);
    }
}

static void running_pods_add_usage(void **state)
{
    (void)state;
    static const struct {
        int64_t rate, start, end, at, half, want;
    } rows[] = {
        {1000, 0,      0,        0,        WEEK,    0        },
        {1000, 10 * S, 5 * S,    20 * S,   WEEK,    0        },
        {0,    0,      WEEK,     WEEK,     WEEK,    0        },
        {1000, 0,      1 * S,    1 * S,    WEEK,    1000     }, /* usage of this moment counts in full */
        {1000, 0,      3600 * S, 3600 * S, WEEK,    3592584  },
        {1000, 0,      WEEK,     WEEK,     WEEK,    436270980}, /* half a week over ln 2 */
        {1000, 0,      WEEK,     2 * WEEK, WEEK,    218135490},
        {1000, 0,      WEEK,     2 * WEEK, 0,       218135490},
        {7,    13 * S, 99 * S,   1000 * S, 500 * S, 163      },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t got = berth_usage_add(rows[i].rate, rows[i].start, rows[i].end, rows[i].at, rows[i].half);
        if (got != rows[i].want)
            fail_msg("row %zu: %lld, not %lld", i, (long long)got, (long long)rows[i].want);
    }
}

/* Usage added in one piece or in many, now or later, is the same up to the rounding of each piece. */
static void usage_added_in_pieces_is_the_same(void **state)
{
    (void)state;
    uint64_t seed = scene_seed();
    for (int i = 0; i < 1000; i++) {
        int64_t half = (1 + (int64_t)scene_random_below(&seed, 1000000)) * S,
                rate = 1 + scene_random_below(&seed, 100000);
        int64_t end = (2 + (int64_t)scene_random_below(&seed, 1000000)) * S,
                cut = scene_random_below(&seed, (uint32_t)(end / S)) * S;
        int64_t later = end + (int64_t)scene_random_below(&seed, 1000000) * S;
        int64_t whole = berth_usage_add(rate, 0, end, later, half);
        int64_t parts = berth_usage_decay(berth_usage_add(rate, 0, cut, end, half), end, later, half) +
                        berth_usage_add(rate, cut, end, later, half);
        if (llabs(whole - parts) > 2)
            fail_msg("%lld and %lld", (long long)whole, (long long)parts);
    }
}

static void pod_cost_follows_charges(void **state)
{
    (void)state;
    static const struct berth_amount charges[] = {
        {"gpu",      3000},
        {"licences", 7   }
    };
    static const struct berth_order own = {.charges = charges, .charges_len = 2};
    static const struct berth_amount some[] = {
        {"cpu",      2500   },
        {"memory",   6 * GIB},
        {"licences", 2      }
    };
    const struct {
        const struct berth_order *o;
        struct berth_shape shape;
        int64_t want;
    } rows[] = {
        {NULL, {0},                                                                              0               },
 /* 2.5 + 6 / 4 */
        {NULL, {.requests = some, .requests_len = 3},                                            4000            },
        {NULL, {.gpu = {.count = 2}},                                                            20000           },
        {NULL, {.gpu = {.count = 1, .milli = 250}},                                              2500            },
        {&own, {.requests = some, .requests_len = 3, .gpu = {.count = 1}},                       3014            },
        {NULL, {.requests = &(struct berth_amount){"cpu", BERTH_AMOUNT_MAX}, .requests_len = 1}, BERTH_AMOUNT_MAX},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_int_equal(berth_usage_rate(&rows[i].shape, rows[i].o), rows[i].want);
}

/* ---- the tree --------------------------------------------------------------------------------------------------- */

static void put_quota(struct scene *s, const char *id, const char *parent, uint32_t weight)
{
    const struct berth_quota q = {.id = id, .parent = parent, .weight = weight};
    scene_check(s, berth_quota_put(s->c, &q, &s->err));
}

static void put_use(struct scene *s, const char *id, int64_t amount, int64_t at_ns)
{
    const struct berth_fact f = {.kind = BERTH_FACT_USAGE, .key = id, .value = amount, .at_ns = at_ns};
    scene_check(s, berth_fact_put(s->c, &f, &s->err));
}

static void put_job(struct scene *s, const char *id, const char *account, int64_t created_s, int64_t cpu,
                    int64_t memory)
{
    scene_put(s, (struct berth_workload){.id = id,
                                         .kind = BERTH_JOB,
                                         .replicas = 1,
                                         .created_ns = created_s * S,
                                         .quotas = &account,
                                         .quotas_len = 1,
                                         .shape = {NEEDS(cpu, memory)}});
}

static int32_t fair_of(struct scene *s, const char *job)
{
    int32_t values[32];
    (void)rank_factors(s->p, cluster_workload_find(s->c, job), values);
    return values[factor_find("fair_share")];
}

/* Expects the fourths of the factor fair_share for each account, as in "x:3 y:1 z:1", or those of the factor `of`. */
static void expect(struct scene *s, const char *label, int of, const char *want)
{
    char got[256] = "";
    size_t n = 0;
    scene_plan(s);
    s->p->ranks = NULL;
    for (const char *id = "abcdef"; *id; id++) {
        const char job[] = {*id, '\0'};
        if (cluster_workload_find(s->c, job) != NONE)
            n += (size_t)sprintf(got + n, "%s%s:%d", n ? " " : "", job, (fair_of(s, job) * of + 500000) / 1000000);
    }
    if (strcmp(got, want) != 0)
        fail_msg("%s: %s, not %s", label, got, want);
}

/* One job for each of four users: a and b of the group g, c and d of the group h. */
static struct scene families(uint32_t g, uint32_t h)
{
    struct scene s = scene_new();
    put_quota(&s, "group/g", "", g);
    put_quota(&s, "group/h", "", h);
    put_quota(&s, "user/a", "group/g", 1);
    put_quota(&s, "user/b", "group/g", 1);
    put_quota(&s, "user/c", "group/h", 1);
    put_quota(&s, "user/d", "group/h", 1);
    put_quota(&s, "queue/q", "", 50); /* the account of no job */
    put_job(&s, "a", "user/a", 1, 1, 1);
    put_job(&s, "b", "user/b", 1, 1, 1);
    put_job(&s, "c", "user/c", 1, 1, 1);
    put_job(&s, "d", "user/d", 1, 1, 1);
    return s;
}

static void least_used_account_is_first(void **state)
{
    (void)state;
    struct scene s = families(1, 1);
    expect(&s, "nobody used anything", 4, "a:4 b:4 c:4 d:4");
    put_use(&s, "user/a", 1000, s.now_ns);
    expect(&s, "one did: after its sibling, and its group after the other", 4, "a:1 b:2 c:4 d:4");
    put_use(&s, "user/c", 3000, s.now_ns);
    expect(&s, "the other group used more", 4, "a:3 b:4 c:1 d:2");
    put_quota(&s, "group/h", "", 4);
    expect(&s, "but is to have four times as much", 4, "a:1 b:2 c:3 d:4");
    put_use(&s, "user/a", 4000, s.now_ns);
    put_use(&s, "user/c", 4000, s.now_ns);
    put_quota(&s, "group/h", "", 1);
    expect(&s, "groups that stand equal are one", 4, "a:2 b:4 c:2 d:4");
    put_use(&s, "user/a", 4000, s.now_ns - WEEK);
    expect(&s, "use fades", 4, "a:3 b:4 c:1 d:2");
    scene_cleanup(&s);
}

static void share_told(void *ctx, const struct berth_share *share)
{
    char *to = ctx;
    (void)sprintf(to + strlen(to), "%s*%u:%d:%d ", share->quota, share->weight, (int)share->used, share->factor);
}

/* berth_plan_shares reports the values that plans use: accounts only, past usage and running pods. */
static void shares_report_usage_and_factor(void **state)
{
    (void)state;
    char told[512] = "";
    struct scene s = families(1, 3);
    scene_node(&s, "n", 1000, 1000);
    put_use(&s, "user/a", 4000, s.now_ns);
    put_job(&s, "long", "user/b", 1, 10, 0);
    scene_instance(&s, (struct berth_instance){
                           .workload = "long", .node = "n", .state = BERTH_RUNNING, .since_ns = s.now_ns - 100 * S});
    scene_plan(&s);
    berth_plan_shares(s.p, share_told, told);
    static const char *const want[] = {"user/a*1:4000:250000 ", "user/b*1:1000:500000 ", "user/c*1:0:1000000 ",
                                       "user/d*1:0:1000000 "};
    for (size_t i = 0; i < ROWS(want); i++)
        if (!strstr(told, want[i]))
            fail_msg("no %s in %s", want[i], told);
    assert_null(strstr(told, "group/"));
    assert_null(strstr(told, "queue/"));
    scene_cleanup(&s);
}

static void account_with_children_ranks_with_its_best_child(void **state)
{
    (void)state;
    struct scene s = families(1, 1);
    put_job(&s, "e", "group/g", 1, 1, 1);
    put_job(&s, "f", "user/alone", 1, 1, 1);
    put_use(&s, "user/a", 10, s.now_ns);
    put_use(&s, "user/c", 10, s.now_ns);
    put_use(&s, "user/d", 30, s.now_ns);
    put_use(&s, "user/alone", 20, s.now_ns);
    expect(&s, "e is of the group itself, f of none", 6, "a:5 b:6 c:2 d:1 e:6 f:3");
    put_use(&s, "group/g", 1000, s.now_ns);
    expect(&s, "what the group itself used counts for all below", 6, "a:2 b:3 c:5 d:4 e:3 f:6");
    scene_cleanup(&s);
}

/* A running pod counts from its start, at its cost. */
static void running_pods_count_as_usage(void **state)
{
    (void)state;
    struct scene s = families(1, 1);
    scene_node(&s, "n", 1000, 1000);
    put_job(&s, "long", "user/a", 1, 100, 0);
    put_job(&s, "dear", "user/c", 1, 300, 0);
    const struct berth_instance runs[] = {
        {.workload = "long", .node = "n", .state = BERTH_RUNNING, .since_ns = s.now_ns - 400 * S},
        {.workload = "dear", .node = "n", .state = BERTH_RUNNING, .since_ns = s.now_ns - 100 * S},
    };
    for (size_t i = 0; i < ROWS(runs); i++)
        scene_instance(&s, runs[i]);
    expect(&s, "400 x 100 and 100 x 300", 4, "a:1 b:2 c:3 d:4");
    struct berth_instance later = runs[0];
    later.id = 1;
    later.counted_ns = s.now_ns - 200 * S;
    scene_instance(&s, later);
    expect(&s, "half of it is in a fact already", 4, "a:3 b:4 c:1 d:2");
    put_use(&s, "user/a", 20000, s.now_ns - 200 * S);
    expect(&s, "which is there", 4, "a:1 b:2 c:3 d:4");
    later.counted_ns = 0;
    later.state = BERTH_STARTING;
    scene_instance(&s, later);
    put_use(&s, "user/a", 0, s.now_ns);
    expect(&s, "what only starts has used nothing", 4, "a:4 b:4 c:1 d:2");
    scene_state(&s, "n", 1000, 1000, BERTH_NODE_LOST);
    expect(&s, "of a lost node nobody knows", 4, "a:4 b:4 c:4 d:4");
    scene_cleanup(&s);
}

/* ---- dominant resources ----------------------------------------------------------------------------------------- */

/* The example of Ghodsi et al.: 9 cores and 18 units of memory; tasks of (1, 4) and of (3, 1). The first user gets
 * three tasks for every two of the second. */
static void drf_matches_the_paper(void **state)
{
    (void)state;
    static const char *const ids[] = {"a1", "a2", "a3", "a4", "b1", "b2", "b3"};
    struct scene s = scene_new();
    scene_node(&s, "n", 9, 18);
    for (size_t i = 0; i < ROWS(ids); i++)
        put_job(&s, ids[i], *ids[i] == 'a' ? "user/a" : "user/b", 100 - (int64_t)i, *ids[i] == 'a' ? 1 : 3,
                *ids[i] == 'a' ? 4 : 1);
    const struct {
        const char *id;
        int64_t before; /* of the dominant resource, in 18ths */
    } want[] = {
        {"a4", 0 },
        {"a3", 4 },
        {"a2", 8 },
        {"a1", 12},
        {"b3", 0 },
        {"b2", 6 },
        {"b1", 12},
    };
    for (int weight = 1; weight <= 2; weight++) {
        put_quota(&s, "user/b", "", (uint32_t)weight);
        scene_plan(&s);
        s.p->policy.order.ranking.name = "drf";
        s.p->ranks = NULL;
        for (size_t i = 0; i < ROWS(want); i++) {
            uint32_t at = cluster_workload_find(s.c, want[i].id);
            int64_t key, share = want[i].before * 1000000000 / 18 / (*want[i].id == 'b' ? weight : 1);
            scene_check(&s, rank_keys(s.p, &at, 1, &key, &s.err));
            if (llabs(key + share) > 1)
                fail_msg("%s: %lld, not %lld", want[i].id, (long long)key, (long long)-share);
        }
    }
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_decays),
        cmocka_unit_test(running_pods_add_usage),
        cmocka_unit_test(usage_added_in_pieces_is_the_same),
        cmocka_unit_test(pod_cost_follows_charges),
        cmocka_unit_test(least_used_account_is_first),
        cmocka_unit_test(shares_report_usage_and_factor),
        cmocka_unit_test(account_with_children_ranks_with_its_best_child),
        cmocka_unit_test(running_pods_count_as_usage),
        cmocka_unit_test(drf_matches_the_paper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
