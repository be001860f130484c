/* rank_test.c - rankings and factors over small queues, and what they must not depend on. */
#include "core/queue/rank.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/queue/factor.h"
#include "core/queue/ranking.h"
#include "core/scene/scene_test.h"

#define S SCENE_SECOND_NS
enum { JOBS_MAX = 32 };

/* ---- a queue ---------------------------------------------------------------------------------------------------- */

/* A job; most fields have defaults. */
struct job {
    const char *id, *account, *queue;
    int64_t created_s, estimate_s, cpu;
    uint32_t gpus, tasks; /* of a gang */
    struct berth_traits traits;
    int64_t deadline_s, limit_s;
};

static void put_job(struct scene *s, const struct job *j)
{
    const struct berth_amount cpu = {"cpu", j->cpu ? j->cpu : 1000};
    struct berth_workload w = {
        .id = j->id,
        .kind = BERTH_JOB,
        .replicas = j->tasks ? j->tasks : 1,
        .gang = j->tasks ? j->id : NULL,
        .created_ns = j->created_s * S,
        .queue = j->queue,
        .quotas = &j->account,
        .quotas_len = j->account != NULL,
        .estimate_ns = j->estimate_s * S,
        .limit_ns = j->limit_s * S,
        .deadline_ns = j->deadline_s * S,
        .traits = j->traits,
        .shape = {.requests = &cpu, .requests_len = 1, .gpu = {.count = j->gpus}}
    };
    scene_put(s, w);
}

/* Makes a plan of the scene and replaces its order by `o`. */
static struct berth_plan *plan_for(struct scene *s, const struct berth_order *o)
{
    scene_plan(s);
    s->p->policy.order = *o;
    s->p->ranks = NULL;
    return s->p;
}

static int64_t key_of(struct scene *s, const char *id)
{
    int64_t key;
    uint32_t at = cluster_workload_find(s->c, id);
    assert_true(at != NONE);
    scene_check(s, rank_keys(s->p, &at, 1, &key, &s->err));
    return key;
}

static int32_t factor_of(struct scene *s, const char *id, const char *factor)
{
    int32_t values[32];
    uint32_t len = rank_factors(s->p, cluster_workload_find(s->c, id), values), at = factor_find(factor);
    assert_true(at < len);
    assert_true(values[at] >= 0 && values[at] <= MILLION);
    return values[at];
}

/* Lists the jobs by key, creation and id: "a b c". Jobs of equal key and creation are joined by "=". */
static const char *order_of(struct scene *s, const struct job *jobs, size_t len, char *text)
{
    uint32_t slots[JOBS_MAX];
    int64_t keys[JOBS_MAX];
    size_t at[JOBS_MAX];
    for (size_t i = 0; i < len; i++) {
        slots[i] = cluster_workload_find(s->c, jobs[i].id);
        at[i] = i;
    }
    scene_check(s, rank_keys(s->p, slots, (uint32_t)len, keys, &s->err));
    for (size_t i = 1; i < len; i++)
        for (size_t j = i; j > 0; j--) {
            size_t a = at[j - 1], b = at[j];
            if (keys[a] > keys[b] || (keys[a] == keys[b] &&
                                      (jobs[a].created_s < jobs[b].created_s ||
                                       (jobs[a].created_s == jobs[b].created_s && strcmp(jobs[a].id, jobs[b].id) < 0))))
                break;
            at[j - 1] = b;
            at[j] = a;
        }
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += (size_t)sprintf(text + n, "%s%s", i ? " " : "", jobs[at[i]].id);
    return text;
}

static struct scene stage(void)
{
    struct scene s = scene_new();
    static const struct berth_gpu gpus[8];
    s.now_ns = 1000000 * S;
    scene_node(&s, "a", 50000, 1000);
    scene_put_node(&s, (struct berth_node){.id = "b", HAS(50000, 1000), .gpus = gpus, .gpus_len = 8});
    return s;
}

static struct scene stage_jobs(const struct job *jobs, size_t len)
{
    struct scene s = stage();
    for (size_t i = 0; i < len; i++)
        put_job(&s, &jobs[i]);
    return s;
}

/* ---- rankings --------------------------------------------------------------------------------------------------- */

static const struct job mixed[] = {
    {.id = "old",            .created_s = 900000,        .estimate_s = 36000,                .cpu = 1000,            .account = "user/ann"},
    {.id = "short",                      .created_s = 990000,                                    .estimate_s = 60,                              .cpu = 2000, .account = "user/bob"},
    {.id = "wide", .created_s = 980000,                           .estimate_s = 600,                                                  .cpu = 1000,                                                     .tasks = 20, .account = "user/ann"},
    {.id = "gpu",           .created_s = 985000,                          .estimate_s = 3600,.gpus = 4,.account = "user/eve"},
    {.id = "urgent",.created_s = 995000,.estimate_s = 7200,            .traits = {.urgency = 500}                                                     },
    {.id = "tried",         .created_s = 970000,                        .estimate_s = 600,                                                                 .traits = {.attained_ns = 100 * S, .urgency = -5}                                                 },
};

static void rankings_order_a_mixed_queue(void **state)
{
    (void)state;
    static const struct {
        const char *ranking, *want;
    } rows[] = {
        {"",            "old tried wide gpu short urgent"},
        {"fifo",        "old tried wide gpu short urgent"},
        {"priority",    "urgent old wide gpu short tried"},
        {"sjf",         "short tried wide gpu urgent old"},
        {"srsf",        "short tried urgent wide gpu old"},
        {"f1",          "old tried short urgent gpu wide"},
        {"f3",          "old tried wide gpu short urgent"},
        {"f4",          "tried short wide gpu urgent old"},
        {"wfp3",        "short wide tried gpu old urgent"},
        {"unicef",      "short tried wide old gpu urgent"},
        {"las",         "old wide gpu short urgent tried"},
        {"berth",       "old tried wide gpu short urgent"},
        {"drf",         "old tried gpu short urgent wide"},
        {"fair-share",  "old wide gpu short tried urgent"},
        {"multifactor", "old gpu wide short urgent tried"},
    };
    struct scene s = stage_jobs(mixed, ROWS(mixed));
    for (size_t i = 0; i < ROWS(rows); i++) {
        char got[512];
        struct berth_order o = {.ranking = {.name = rows[i].ranking}};
        plan_for(&s, &o);
        order_of(&s, mixed, ROWS(mixed), got);
        if (strcmp(got, rows[i].want) != 0)
            fail_msg("%s: %s, not %s", rows[i].ranking, got, rows[i].want);
    }
    scene_cleanup(&s);
}

/* Short jobs go before long ones, except before a long one whose patience is over; a job with a sure estimate has more
 * patience. */
static void berth_ranking_patience_ends(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {.id = "long",       .created_s = 0, .estimate_s = 100000, .cpu = 1000                    },
        {.id = "wide",       .created_s = 0, .estimate_s = 100000, .cpu = 8000                    },
        {.id = "sure",       .created_s = 0, .estimate_s = 100000, .cpu = 1000,                     .limit_s = 100000},
        {.id = "cut",                  .created_s = 0,                      .estimate_s = 100000,           .cpu = 1000, .limit_s = 101000},
        {.id = "soon", .created_s = 50000,               .estimate_s = 60,                        .cpu = 1000                                    },
        {.id = "late",       .created_s = 61000,                     .estimate_s = 60,       .cpu = 1000},
        {.id = "later",       .created_s = 121000,                     .estimate_s = 60,                       .cpu = 1000                                                   },
    };
    struct scene s = stage_jobs(jobs, ROWS(jobs));
    struct berth_order o = {.ranking = {.name = "berth"}};
    char got[512];
    plan_for(&s, &o);
    order_of(&s, jobs, ROWS(jobs), got);
    assert_string_equal(got, "soon cut long late wide later sure");
    scene_cleanup(&s);
}

/* The terms add up to the key; those of "berth" count from the moment of the plan. */
static void terms_add_up(struct scene *s, const char *ranking, double key)
{
    struct berth_rank_term terms[BERTH_RANK_TERMS_MAX];
    uint32_t len = rank_terms(s->p, cluster_workload_find(s->c, "one"), terms);
    double sum = strcmp(ranking, "berth") == 0 ? -(double)s->now_ns / S : 0;
    assert_int_equal(len > 0, strcmp(ranking, "fifo") != 0);
    for (uint32_t i = 0; i < len; i++) {
        assert_true(terms[i].name[0] && terms[i].sentence[0]);
        sum += terms[i].value * terms[i].weight;
    }
    if (sum - key > 0.002 || key - sum > 0.002)
        fail_msg("%s: the terms add up to %f, not %f", ranking, sum, key);
}

/* The keys of one job by every ranking: 100 s, 4 cores, created at 1000 s. */
static void keys_match_their_formulas(void **state)
{
    (void)state;
    static const struct {
        const char *ranking;
        int64_t want;
    } rows[] = {
        {"fifo",     0           },
        {"priority", 250000      },
        {"sjf",      -100000     },
        {"srsf",     -400000     }, /* 100 * 4 */
        {"f1",       -2618000    }, /* 2 * 4 + 870 * 3 */
        {"f2",       -76840000   }, /* 10 * 4 + 25600 * 3 */
        {"f3",       -20580400000}, /* 100 * 4 + 6860000 * 3 */
        {"f4",       -1590200000 }, /* 100 * 2 + 530000 * 3 */
        {"wfp3",     32000       }, /* (200 / 100)^3 * 4 */
        {"unicef",   1000        }, /* 200 / (2 * 100) */
        {"las",      -40000      }, /* 10 * 4 */
        {"berth",    -1095244    }, /* 1000 + 0.6 * 100 * cbrt(4) */
    };
    const struct job one = {
        .id = "one",
        .created_s = 1000,
        .estimate_s = 100,
        .cpu = 4000,
        .traits = {.urgency = 250, .attained_ns = 10 * S}
    };
    struct scene s = stage_jobs(&one, 1);
    s.now_ns = 1200 * S;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct berth_order o = {.ranking = {.name = rows[i].ranking}};
        plan_for(&s, &o);
        int64_t told = ranking_key_for_display(&o.ranking, key_of(&s, "one"));
        if (told != rows[i].want)
            fail_msg("%s: %lld, not %lld", rows[i].ranking, (long long)told, (long long)rows[i].want);
        terms_add_up(&s, rows[i].ranking, (double)rows[i].want / 1000);
    }
    scene_cleanup(&s);
}

/* By F1 the second job is better by less than a thousandth: 870 x log10(creation) grows in 2,800 s by a little less
 * than one second of 100,000 counts for 256 cores. */
static void close_f1_keys_differ(void **state)
{
    (void)state;
    const struct job jobs[] = {
        {.id = "first",  .created_s = 1000000000, .estimate_s = 100001, .cpu = 256000},
        {.id = "second", .created_s = 1000002800, .estimate_s = 100000, .cpu = 256000},
    };
    struct berth_order o = {.ranking = {.name = "f1"}};
    char got[512];
    struct scene s = stage_jobs(jobs, 2);
    s.now_ns = 2000000000 * S;
    plan_for(&s, &o);
    order_of(&s, jobs, 2, got);
    assert_string_equal(got, "second first");
    assert_int_equal(ranking_key_for_display(&o.ranking, key_of(&s, "first")),
                     ranking_key_for_display(&o.ranking, key_of(&s, "second")));
    scene_cleanup(&s);
}

static void multifactor_applies_weights(void **state)
{
    (void)state;
    const struct job jobs[] = {
        {.id = "a", .created_s = 1000000 - 302400, .traits = {.user_level = 10}},
        {.id = "b", .created_s = 1000000,          .traits = {.user_level = 90}},
    };
    const struct berth_weight weights[] = {
        {"age",        100},
        {"user_level", -10}
    };
    struct berth_order o = {
        .ranking = {.name = "multifactor", .weights = weights, .weights_len = 2}
    };
    struct scene s = stage_jobs(jobs, ROWS(jobs));
    plan_for(&s, &o);
    assert_int_equal(key_of(&s, "a"), 100 * 500000 - 10 * 100000);
    assert_int_equal(key_of(&s, "b"), -10 * 900000);
    int32_t told[32];
    rank_weights(s.p, NONE, told);
    for (uint32_t i = 0; i < factors_len; i++)
        assert_int_equal(told[i], i == factor_find("age") ? 100 : i == factor_find("user_level") ? -10 : 0);
    o.age_ns = 3 * 302400 * S / 2;
    plan_for(&s, &o);
    assert_int_equal(key_of(&s, "a"), 100 * 666666 - 10 * 100000);
    scene_cleanup(&s);
}

/* ---- factors ---------------------------------------------------------------------------------------------------- */

static void factors_have_values(void **state)
{
    (void)state;
    const struct job jobs[] = {
        {.id = "plain",            .created_s = 1000000 - 60480},
        { .id = "rich",
         .created_s = 1000000 - 9999999,
         .account = "user/ann",
         .queue = "fast",
         .estimate_s = 30 * 86400,
         .limit_s = 30 * 86400 + 5,
         .deadline_s = 1000000 + 4 * 30 * 86400,
         .gpus = 2,
         .tasks = 3,
         .traits = {.user_level = 100,
                    .group_level = 30,
                    .urgency = 1000,
                    .parameters = 1000000,
                    .attained_ns = 1,
                    .interference = 77}},
        {                   .id = "late",                                                              .created_s = 2000000,                     .queue = "slow", .estimate_s = 1, .deadline_s = 999990, .cpu = 25000},
    };
    static const struct {
        const char *factor;
        int32_t want[3];
    } rows[] = {
        {"age",          {100000, 1000000, 0}       },
        {"size",         {10000, 750000, 250000}    }, /* 1 of 100 cores; 6 of 8 GPUs; a quarter */
        {"priority",     {500000, 1000000, 500000}  },
        {"user_level",   {0, 1000000, 0}            },
        {"group_level",  {0, 300000, 0}             },
        {"queue",        {200000, 1000000, 0}       },
        {"fair_share",   {500000, 1000000, 500000}  },
        {"time",         {554490, 1000000, 0}       }, /* an hour */
        {"asked_time",   {1000000, 1000000, 1000000}},
        {"deadline",     {0, 250000, 1000000}       },
        {"parameters",   {0, 500000, 0}             },
        {"attained",     {0, 0, 0}                  },
        {"load",         {428571, 428571, 428571}   }, /* 3/4 : 1 */
        {"interference", {0, 77, 0}                 },
        {"dominant",     {10000, 750000, 250000}    },
    };
    const struct berth_queue queues[] = {
        {.id = "slow", .priority = -10},
        {.id = "fast", .priority = 40 }
    };
    const struct berth_order o = {.queues = queues, .queues_len = 2};
    struct scene s = stage_jobs(jobs, ROWS(jobs));
    plan_for(&s, &o);
    for (size_t i = 0; i < ROWS(rows); i++)
        for (size_t n = 0; n < ROWS(jobs); n++)
            if (factor_of(&s, jobs[n].id, rows[i].factor) != rows[i].want[n])
                fail_msg("%s of %s: %d, not %d", rows[i].factor, jobs[n].id, factor_of(&s, jobs[n].id, rows[i].factor),
                         rows[i].want[n]);
    assert_int_equal(ROWS(rows), factors_len); /* every factor has a row */
    scene_cleanup(&s);
}

static void every_name_has_a_sentence(void **state)
{
    (void)state;
    const char *sentence;
    size_t names = 0, rankings = 0;
    for (; berth_factor_at(names, &sentence); names++)
        assert_true(strlen(sentence) > 10 && factor_find(berth_factor_at(names, NULL)) == names);
    for (; berth_ranking_at(rankings, &sentence); rankings++)
        assert_true(strlen(sentence) > 10);
    assert_int_equal(names, factors_len);
    assert_string_equal(berth_ranking_at(0, NULL), "fifo");
    assert_int_equal(rankings, 15);
    assert_string_equal(berth_ranking_at(14, NULL), "berth"); /* "formula" is not listed */
    assert_int_equal(factor_find("nothing"), NONE);
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

struct seen {
    int calls;
    size_t rows;
    bool fail;
    char words[256];
};

static int formula(void *ctx, const struct berth_factors *in, int64_t *keys, struct berth_err *err)
{
    struct seen *seen = ctx;
    seen->calls++;
    seen->rows += in->len;
    if (seen->fail)
        return err_set(err, EINVAL, "line 7: no");
    for (size_t i = 0; i < in->len; i++) {
        keys[i] = (int64_t)(in->waited[i] + in->runtime[i] * 1000000 + in->size[i]) + (int64_t)in->pods[i] * 100;
        assert_string_equal(in->names[0], "age");
        assert_true(in->created[i] > 0);
    }
    char *to = seen->words;
    for (size_t n = 0; n < in->word_names_len; n++) {
        to += sprintf(to, "%s:", in->word_names[n]);
        for (size_t i = 0; i < in->len; i++)
            to += sprintf(to, "%s,", in->words[n][i]);
    }
    return 0;
}

static void each_queue_has_its_ranking(void **state)
{
    (void)state;
    static const struct berth_label big[] = {
        {"type",  "train"},
        {"class", "llm"  }
    };
    static const struct berth_label shop[] = {
        {"shop", "x"}
    };
    const struct job jobs[] = {
        {.id = "a",                                 .created_s = 999000, .queue = "own", .estimate_s = 2, .traits = {.words = big, .words_len = 2}},
        {.id = "b", .created_s = 999000,                    .queue = "short",                          .estimate_s = 5},
        {.id = "c",
         .created_s = 999000,
         .queue = "own",
         .estimate_s = 3,
         .cpu = 4000,
         .traits = {.words = shop, .words_len = 1}},
        {.id = "d",                       .created_s = 999000,                                                 .queue = "unheard-of",                                                                .traits = {.urgency = 3}},
        {.id = "e", .created_s = 999000,                    .traits = {.urgency = 4}                         },
    };
    struct seen seen = {0};
    const struct berth_queue queues[] = {
        {.id = "short", .ranking = {.name = "sjf"}                                      },
        {.id = "own",   .ranking = {.name = "formula", .formula = formula, .ctx = &seen}},
        {.id = "empty", .ranking = {.name = "formula", .formula = formula, .ctx = &seen}},
    };
    const struct berth_order o = {.queues = queues, .queues_len = 3, .ranking = {.name = "priority"}};
    struct scene s = stage_jobs(jobs, ROWS(jobs));
    plan_for(&s, &o);
    uint32_t slots[ROWS(jobs)];
    int64_t keys[ROWS(jobs)];
    for (size_t i = 0; i < ROWS(jobs); i++)
        slots[i] = cluster_workload_find(s.c, jobs[i].id);
    scene_check(&s, rank_keys(s.p, slots, ROWS(jobs), keys, &s.err));
    assert_int_equal(keys[0], 2001101);
    assert_int_equal(keys[1], -5000);
    assert_int_equal(keys[2], 3001104);
    assert_int_equal(keys[3], 3000);
    assert_int_equal(keys[4], 4000);
    assert_int_equal(seen.calls, 1); /* one call for all rows, and none for an empty queue */
    assert_int_equal(seen.rows, 2);
    assert_string_equal(seen.words, "class:llm,,shop:,x,type:train,,");
    assert_int_equal(rank_queue(s.p, snapshot_claim(s.s, slots[0])), 1);
    assert_int_equal(rank_queue(s.p, snapshot_claim(s.s, slots[3])), NONE);
    assert_int_equal(rank_queue(s.p, NULL), NONE);
    assert_string_equal(rank_of_queue(s.p, 1)->name, "formula");
    assert_string_equal(rank_of_queue(s.p, NONE)->name, "priority");

    seen.fail = true;
    assert_int_equal(rank_keys(s.p, slots, ROWS(jobs), keys, &s.err), -EINVAL);
    assert_string_equal(s.err.text, "queue \"own\": line 7: no");
    scene_cleanup(&s);
}

/* More queue names than the cache holds. */
static void queue_cache_handles_many_queues(void **state)
{
    (void)state;
    enum { MANY = 150 };
    struct scene s = stage();
    struct berth_queue queues[MANY] = {0};
    char names[MANY][16];
    for (int i = 0; i < MANY; i++) {
        sprintf(names[i], "q%d", i);
        queues[i].id = names[i];
        put_job(&s, &(struct job){.id = names[i], .queue = names[i]});
    }
    const struct berth_order o = {.queues = queues, .queues_len = MANY};
    plan_for(&s, &o);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < MANY; i++) {
            uint32_t at = cluster_workload_find(s.c, names[i]);
            assert_int_equal(rank_queue(s.p, snapshot_claim(s.s, at)), i);
        }
        rank_begin(s.p);
    }
    scene_cleanup(&s);
}

static void invalid_orders_are_rejected(void **state)
{
    (void)state;
    static const struct berth_weight good[] =
        {
            {"age",  100 },
            {"size", -100}
    },
                                     unknown[] = {{"beauty", 1}}, zero[] = {{"age", 0}}, large[] = {{"age", 101}},
                                     small[] = {{"age", -101}}, twice[] = {{"age", 1}, {"age", 2}};
    static const struct berth_queue nameless[] =
        {
            {0}
    },
                                    same[] = {{.id = "a"}, {.id = "a"}},
                                    wrong[] = {{.id = "a", .ranking = {.name = "best"}}};
    static const struct berth_amount charge[] =
        {
            {"cpu", -1}
    },
                                     of_nothing[] = {{"", 1}};
    const struct {
        const char *want; /* NULL: accepted */
        struct berth_order o;
    } rows[] = {
        {NULL,                                                                   {0}                                                 },
        {NULL,                                                                   {.ranking = {.name = "multifactor"}}                },
        {NULL,                                                                   {.ranking = {"multifactor", good, 2, NULL, NULL}}   },
        {NULL,                                                                   {.ranking = {.name = "formula", .formula = formula}}},
        {"policy: there is no ranking \"best\"",                                 {.ranking = {.name = "best"}}                       },
        {"policy: ranking \"formula\" needs a formula",                          {.ranking = {.name = "formula"}}                    },
        {"policy: there is no factor \"beauty\"",                                {.ranking = {"multifactor", unknown, 1, NULL, NULL}}},
        {"policy: factor \"age\": weight 0: expected -100 to 100, and not 0",
         {.ranking = {"multifactor", zero, 1, NULL, NULL}}                                                                           },
        {"policy: factor \"age\": weight 101: expected -100 to 100, and not 0",
         {.ranking = {"multifactor", large, 1, NULL, NULL}}                                                                          },
        {"policy: factor \"age\": weight -101: expected -100 to 100, and not 0",
         {.ranking = {"multifactor", small, 1, NULL, NULL}}                                                                          },
        {"policy: factor \"age\" has two weights",                               {.ranking = {"multifactor", twice, 2, NULL, NULL}}  },
        {"policy: ranking \"fifo\" takes no weights; only \"multifactor\" does",
         {.ranking = {"", good, 2, NULL, NULL}}                                                                                      },
        {"policy: a queue without a name",                                       {.queues = nameless, .queues_len = 1}               },
        {"policy: queue \"a\" is listed twice",                                  {.queues = same, .queues_len = 2}                   },
        {"policy: queue \"a\": there is no ranking \"best\"",                    {.queues = wrong, .queues_len = 1}                  },
        {"policy: a half-life, an age or a maximum wait is negative",            {.age_ns = -1}                                      },
        {"policy: the charge for cpu is out of range",                           {.charges = charge, .charges_len = 1}               },
        {"policy: a charge for a resource without a name",                       {.charges = of_nothing, .charges_len = 1}           },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct berth_err err = {0};
        int rc = rank_check(&rows[i].o, &err);
        assert_int_equal(rc, rows[i].want ? -EINVAL : 0);
        assert_string_equal(err.text, rows[i].want ? rows[i].want : "");
    }
}

/* ---- what a key must not depend on ------------------------------------------------------------------------------ */

static const char *const pure[] = {"multifactor", "fair-share", "drf", "wfp3", "las", "f2"};

/* Clusters filled in another order, with other slots for everything, give the same keys. */
static void keys_do_not_depend_on_insertion_order(void **state)
{
    (void)state;
    struct scene a = stage_jobs(mixed, ROWS(mixed)), b = stage();
    const struct berth_quota quota = {.id = "user/eve", .parent = "group/x", .weight = 3};
    scene_check(&b, berth_quota_put(b.c, &quota, &b.err));
    for (size_t i = ROWS(mixed); i-- > 0;)
        put_job(&b, &mixed[i]);
    scene_check(&a, berth_quota_put(a.c, &quota, &a.err));
    for (size_t r = 0; r < ROWS(pure); r++) {
        struct berth_order o = {.ranking = {.name = pure[r]}};
        plan_for(&a, &o);
        plan_for(&b, &o);
        for (size_t i = 0; i < ROWS(mixed); i++)
            assert_int_equal(key_of(&a, mixed[i].id), key_of(&b, mixed[i].id));
    }
    scene_cleanup(&a);
    scene_cleanup(&b);
}

/* Starting or stopping pods does not change any key at the same moment, and no key changes until the next time step. */
static void keys_do_not_depend_on_placements(void **state)
{
    (void)state;
    struct scene s = stage_jobs(mixed, ROWS(mixed));
    s.now_ns = 1000003 * S + 5;
    int64_t before[ROWS(pure)][ROWS(mixed)];
    scene_instance(&s,
                   (struct berth_instance){
                       .workload = "old", .node = "a", .state = BERTH_RUNNING, .ready = true, .since_ns = 999000 * S});
    for (int round = 0; round < 4; round++) {
        for (size_t r = 0; r < ROWS(pure); r++) {
            struct berth_order o = {.ranking = {.name = pure[r]}};
            plan_for(&s, &o);
            for (size_t i = 0; i < ROWS(mixed); i++) {
                int64_t key = key_of(&s, mixed[i].id);
                if (round && key != before[r][i])
                    fail_msg("round %d: %s of %s: %lld, not %lld", round, pure[r], mixed[i].id, (long long)key,
                             (long long)before[r][i]);
                before[r][i] = key;
            }
        }
        if (round == 0) { /* a plan places some pods */
            scene_plan(&s);
            scene_check(&s, berth_apply(s.c, s.p, s.next, &s.err));
        } else if (round == 1) { /* another plan stops the instance that has run for long */
            instance_set_state(s.c, cluster_instance_find(s.c, 1), BERTH_STOPPING, s.now_ns);
        } else {
            s.now_ns = 1000010 * S - 1;
        }
    }
    scene_cleanup(&s);
}

static void timed_rankings_recheck_at_next_step(void **state)
{
    (void)state;
    static const struct {
        const char *ranking;
        bool timed;
    } rows[] = {
        {"fifo",        false},
        {"priority",    false},
        {"sjf",         false},
        {"drf",         false},
        {"las",         false},
        {"f1",          false},
        {"wfp3",        true },
        {"unicef",      true },
        {"fair-share",  true },
        {"multifactor", true },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_new(); /* without a node all jobs wait */
        s.now_ns = 1003 * S + 7;
        for (size_t n = 0; n < 2; n++) {
            struct berth_order o = {.ranking = {.name = rows[i].ranking}};
            put_job(&s, &(struct job){.id = n ? "b" : "a", .created_s = 500});
            plan_for(&s, &o);
            s.p->recheck_ns = BERTH_NEVER_NS;
            rank_recheck(s.p);
            bool want = rows[i].timed && n == 1; /* a job that waits alone cannot be overtaken */
            if (berth_plan_recheck_ns(s.p) != (want ? 1010 * S : BERTH_NEVER_NS))
                fail_msg("%s: looks again at %lld", rows[i].ranking, (long long)berth_plan_recheck_ns(s.p));
        }
        scene_cleanup(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rankings_order_a_mixed_queue),
        cmocka_unit_test(berth_ranking_patience_ends),
        cmocka_unit_test(keys_match_their_formulas),
        cmocka_unit_test(close_f1_keys_differ),
        cmocka_unit_test(multifactor_applies_weights),
        cmocka_unit_test(factors_have_values),
        cmocka_unit_test(every_name_has_a_sentence),
        cmocka_unit_test(each_queue_has_its_ranking),
        cmocka_unit_test(queue_cache_handles_many_queues),
        cmocka_unit_test(invalid_orders_are_rejected),
        cmocka_unit_test(keys_do_not_depend_on_insertion_order),
        cmocka_unit_test(keys_do_not_depend_on_placements),
        cmocka_unit_test(timed_rankings_recheck_at_next_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
