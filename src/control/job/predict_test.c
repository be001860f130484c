/* predict_test.c - learned run times, and when predictions are published again. */
#include "control/api/permit_kit_test.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "control/job/predict.h"
#include "core/snapshot/snapshot.h"
#include "wire/text/document.h"

#define SECOND INT64_C(1000000000)

struct learner {
    struct world w;
    int64_t now_ns;
};

/* Learns one run and applies the written documents to the state. */
static void learn_run(struct learner *l, const struct predict_run *run)
{
    struct arena arena;
    struct change c;
    arena_init(&arena);
    change_init(&c, l->w.state, &arena);
    predict_learn(&c, run);
    for (size_t i = 0; i < c.items.len; i++) {
        char *text = json_dumps(c.items.at[i].doc, JSON_COMPACT);
        world_put(&l->w, c.items.at[i].kind, c.items.at[i].id, text);
        free(text);
    }
    change_done(&c);
    arena_done(&arena);
}

static void learn(struct learner *l, const char *owner, const char *name, int64_t ms, int64_t estimate_s,
                  int64_t memory)
{
    learn_run(l, &(struct predict_run){owner, name, ms * 1000000, estimate_s * SECOND, memory, l->now_ns += SECOND});
}

static int open_learner(void **state)
{
    struct learner *l = mem_zalloc(sizeof *l);
    world_open(&l->w);
    l->now_ns = 1000 * SECOND;
    *state = l;
    return 0;
}

static int close_learner(void **state)
{
    world_done(&((struct learner *)*state)->w);
    mem_free(*state);
    return 0;
}

static void trailing_numbers_of_names_are_ignored(void **state)
{
    (void)state;
    static const struct {
        const char *name, *id;
    } rows[] = {
        {"train",                 "alice/train"      },
        {"train-0017",            "alice/train"      },
        {"train17",               "alice/train"      },
        {"a-1-2",                 "alice/a-1"        },
        {"17",                    "alice/17"         },
        {"v2-resnet",             "alice/v2-resnet"  },
        {"\xc3\xa9t\xc3\xa9 a/b", "alice/__t___a_b_%"},
        {"",                      "alice"            },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char id[OBJECT_KEY_MAX];
        size_t len = strcspn(rows[i].id, "%"); /* a hash follows */
        (void)predict_id("alice", rows[i].name, id);
        assert_memory_equal(id, rows[i].id, len);
        assert_int_equal(strlen(id), rows[i].id[len] ? len + 16 : len);
    }
}

static void quantiles_cover_the_last_runs(void **state)
{
    struct learner *l = *state;
    int64_t p50 = 0, p90 = 0;
    uint64_t version = 0;
    assert_false(predict_time(l->w.state, "alice", "train", &p50, &p90, &version));
    for (int i = 1; i <= 10; i++)
        learn(l, "alice", "train", i * 1000, 0, 0);
    assert_true(predict_time(l->w.state, "alice", "train-3", &p50, &p90, &version));
    assert_in_range(p50, 4 * SECOND, 5 * SECOND); /* published when the value last moved by a quarter */
    assert_in_range(p90, 7 * SECOND, 9 * SECOND);
    /* Only the last runs count: a program that became faster is soon predicted to be. */
    for (int i = 0; i < PREDICT_RUNS; i++)
        learn(l, "alice", "train", 100, 0, 0);
    assert_true(predict_time(l->w.state, "alice", "train", &p50, &p90, &version));
    assert_int_equal(p50, SECOND / 10);
    assert_int_equal(p90, SECOND / 10);
}

static void new_name_uses_the_owners_runs(void **state)
{
    struct learner *l = *state;
    int64_t p50 = 0, p90 = 0;
    uint64_t version = 0;
    for (int i = 0; i < 3; i++) {
        learn(l, "alice", "train", 60000, 0, 0);
        /* too few runs for a prediction */
        assert_false(predict_time(l->w.state, "alice", "never-seen", &p50, &p90, &version));
    }
    learn(l, "alice", "train", 60000, 0, 0);
    assert_true(predict_time(l->w.state, "alice", "never-seen", &p50, &p90, &version));
    assert_int_equal(p50, 60 * SECOND);
    assert_false(predict_time(l->w.state, "bob", "train", &p50, &p90, &version));
    assert_false(predict_time(l->w.state, "", "train", &p50, &p90, &version));
}

static void published_values_stay_until_they_move(void **state)
{
    struct learner *l = *state;
    int64_t p50 = 0, p90 = 0;
    uint64_t first = 0, version = 0;
    learn(l, "alice", "train", 1000, 0, 0);
    assert_true(predict_time(l->w.state, "alice", "train", &p50, &p90, &first));
    for (int i = 0; i < 20; i++)
        learn(l, "alice", "train", 1000 + i * 10, 0, 0);
    assert_true(predict_time(l->w.state, "alice", "train", &p50, &p90, &version));
    assert_int_equal(version, first);
    for (int i = 0; i < 20; i++)
        learn(l, "alice", "train", 5000, 0, 0);
    assert_true(predict_time(l->w.state, "alice", "train", &p50, &p90, &version));
    assert_true(version > first && version < first + 5);
    assert_int_equal(p50, 5 * SECOND);
}

static void estimates_are_summed_with_run_times(void **state)
{
    struct learner *l = *state;
    learn(l, "alice", "train", 1000, 10, 0);
    learn(l, "alice", "train", 2000, 10, 0);
    learn(l, "alice", "train", 3000, 0, 0); /* without an estimate */
    CLEANUP(json) json_t *doc = object_doc(state_find(l->w.state, KIND_PREDICTION, "alice/train"));
    const json_t *said = json_object_get(doc, "estimates");
    assert_int_equal(json_integer_value(json_object_get(said, "runs")), 2);
    assert_int_equal(json_integer_value(json_object_get(said, "said_ms")), 20000);
    assert_int_equal(json_integer_value(json_object_get(said, "ran_ms")), 3000);
}

static void memory_is_predicted_too(void **state)
{
    struct learner *l = *state;
    learn(l, "alice", "train", 1000, 0, 1 << 20);
    world_put(&l->w, KIND_JOB, "1", "{\"id\": \"1\", \"name\": \"train-2\", \"owner\": \"alice\", \"v\": 1}");
    world_put(&l->w, KIND_JOB, "2", "{\"id\": \"2\", \"name\": \"train\", \"owner\": \"bob\", \"v\": 1}");
    CLEANUP(json) json_t *shown = predict_show(l->w.state, state_find(l->w.state, KIND_JOB, "1"));
    assert_int_equal(json_integer_value(json_object_get(shown, "memory")), 1 << 20);
    assert_string_equal(json_string_value(json_object_get(shown, "of")), "alice/train");
    assert_true(json_real_value(json_object_get(shown, "seconds")) == 60); /* minimum prediction */
    assert_null(predict_show(l->w.state, state_find(l->w.state, KIND_JOB, "2")));
}

static void large_array_does_not_dominate(void **state)
{
    struct learner *l = *state;
    int64_t p50 = 0, p90 = 0;
    uint64_t version = 0;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int i = 0; i < 4; i++)
            learn(l, "alice", names[n], 10000, 0, 0);
    for (int i = 0; i < 40; i++)
        learn(l, "alice", "tiny", 10, 0, 0);
    assert_true(predict_time(l->w.state, "alice", "new", &p50, &p90, &version));
    assert_int_equal(p50, 10 * SECOND);
}

/* Plans use the share of the limit that runs of the name took, else runs of the owner, else of all users. */
static void plans_use_shares_of_limits(void **state)
{
    struct learner *l = *state;
    const struct state *s = l->w.state;
    const int64_t size = 4000;
    struct predict_run run = {.owner = "alice", .name = "train", .ran_ns = 201 * SECOND, .at_ns = l->now_ns};
    run.limit_ns = 1000 * SECOND;
    run.size = size;
    assert_int_equal(predict_run_ns(s, "alice", "train", 1000 * SECOND, size), 0);
    for (int i = 0; i < 8; i++)
        learn_run(l, &run);
    static const struct {
        const char *owner, *name;
        int64_t limit_s, want_s;
    } rows[] = {
        {"alice", "train-7", 1000, 301},
        {"alice", "train",   2000, 603},
        {"alice", "train",   0,    301}, /* run time of those with a limit */
        {"alice", "other",   1000, 301}, /* by the owner's runs */
        {"bob",   "train",   1000, 301}, /* by the runs of all users */
        {"bob",   "",        50,   49 }, /* at least a minute, but below the limit */
        {"",      "train",   1000, 0  },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(predict_run_ns(s, rows[i].owner, rows[i].name, rows[i].limit_s * SECOND, size),
                         rows[i].want_s * SECOND);
    run.ran_ns = run.limit_ns;
    run.name = "long";
    for (int i = 0; i < 600; i++, run.at_ns += 600 * SECOND)
        learn_run(l, &run);
    /* needs its whole limit */
    assert_int_equal(predict_run_ns(s, "alice", "long", 1000 * SECOND + 1, size), 1000 * SECOND + 1);
    run.ran_ns = 201 * SECOND;
    run.name = "train";
    learn_run(l, &run);
    /* by the runs of its own name */
    assert_in_range(predict_run_ns(s, "alice", "train", 1000 * SECOND, size), 302 * SECOND, 450 * SECOND);
}

/* Tasks of a gang end together and count as one run. */
static void tasks_of_a_gang_count_as_one_run(void **state)
{
    struct learner *l = *state;
    struct predict_run run = {.owner = "alice", .name = "train", .ran_ns = 200 * SECOND, .memory = 1 << 20};
    learn_run(l, &run);
    run.beside = true;
    run.memory = 1 << 22;
    for (int i = 0; i < 3; i++)
        learn_run(l, &run);
    CLEANUP(json) json_t *doc = object_doc(state_find(l->w.state, KIND_PREDICTION, "alice/train"));
    assert_int_equal(json_integer_value(json_object_get(doc, "runs")), 1);
    assert_int_equal(json_array_size(json_object_get(doc, "past")), 1);
    assert_int_equal(json_array_size(json_object_get(doc, "memory")), 4);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(doc, "published"), "memory")), 1 << 22);
}

static uint64_t version_of_all(const struct learner *l)
{
    return state_find(l->w.state, KIND_PREDICTION, PREDICT_ALL)->prediction->version;
}

/* The values of all users affect every waiting job, so they change rarely. */
static void values_of_all_users_change_rarely(void **state)
{
    struct learner *l = *state;
    struct predict_run run = {.owner = "alice", .ran_ns = 100 * SECOND, .at_ns = l->now_ns};
    for (int i = 0; i < 20; i++)
        learn_run(l, &run);
    assert_int_equal(version_of_all(l), 1);
    run.ran_ns = 10000 * SECOND;
    for (int i = 0; i < 5; i++)
        learn_run(l, &run);
    run.at_ns += 599 * SECOND;
    learn_run(l, &run);
    assert_int_equal(version_of_all(l), 1);
    run.at_ns += SECOND;
    learn_run(l, &run);
    assert_int_equal(version_of_all(l), 2);
}

/* All learned data is in documents: a cluster rebuilt from them has the same estimates, and waiting jobs get new
 * ones. */
static void estimates_follow_published_values(void **state)
{
    struct learner *l = *state;
    struct predict_run run = {.owner = "alice", .name = "train", .ran_ns = 200 * SECOND, .limit_ns = 1000 * SECOND};
    run.size = 2000;
    world_put(&l->w, KIND_USER, "alice", "{\"id\": \"alice\", \"v\": 1}");
    static const struct {
        const char *id, *owner, *more;
        int64_t want_s;
    } rows[] = {
        {"1", "alice", "\"name\": \"train\", \"time_limit\": \"1000s\"",                       300},
        {"2", "alice", "\"name\": \"train\", \"time_limit\": \"1000s\", \"estimate\": \"7s\"", 7  },
        {"3", "alice", "\"name\": \"new\", \"time_limit\": \"2000s\"",                         600},
        {"4", "bob",   "\"name\": \"train\", \"time_limit\": \"1000s\"",                       300}, /* by all runs */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "{\"id\": \"%s\", \"owner\": \"%s\", \"resources\": {\"cpu\": \"2\"}, \"v\": 1, %s}", rows[i].id,
                       rows[i].owner, rows[i].more);
        world_put(&l->w, KIND_JOB, rows[i].id, text);
    }
    for (int i = 0; i < 4; i++)
        learn_run(l, &run);
    struct berth_snapshot *snapshot = berth_freeze(state_cluster(l->w.state), l->now_ns, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t slot = cluster_workload_find(state_cluster(l->w.state), rows[i].id);
        assert_int_equal(snapshot_claim(snapshot, slot)->estimate_ns, rows[i].want_s * SECOND);
    }
    berth_snapshot_free(snapshot);
}

/* Learns runs of a class whose name takes a second, beside these classes or alone ("[]"). */
static void class_runs(struct learner *l, int n, int64_t ms, const char *beside)
{
    for (int i = 0; i < n; i++) {
        struct arena arena;
        struct change c;
        CLEANUP(json) json_t *list = json_loads(beside, 0, NULL);
        arena_init(&arena);
        change_init(&c, l->w.state, &arena);
        struct predict_run run = {"alice", "train", ms * 1000000, 0, 0, l->now_ns += SECOND};
        predict_learn_class(&c, &run, "llm", list);
        for (size_t k = 0; k < c.items.len; k++)
            if (c.items.at[k].write) {
                char *text = json_dumps(c.items.at[k].doc, JSON_COMPACT);
                world_put(&l->w, c.items.at[k].kind, c.items.at[k].id, text);
                free(text);
            }
        change_done(&c);
        arena_done(&arena);
    }
}

static void slowed_class_has_interference(void **state)
{
    struct learner *l = *state;
    class_runs(l, 20, 1000, "[]"); /* without a prediction for the name there is nothing to compare with */
    assert_null(state_find(l->w.state, KIND_PREDICTION, PREDICT_CLASS "/llm"));
    for (int i = 0; i < 5; i++)
        learn(l, "alice", "train", 1000, 0, 0);
    class_runs(l, CLASS_RUNS_MIN, 1000, "[]");
    class_runs(l, CLASS_RUNS_MIN - 1, 1500, "[\"vision\"]");
    assert_int_equal(predict_interference(l->w.state, "llm"), 0); /* too few runs */
    class_runs(l, 1, 1500, "[\"vision\"]");
    assert_int_equal(predict_interference(l->w.state, "llm"), 500000);
    assert_int_equal(predict_interference(l->w.state, "other"), 0);
    assert_int_equal(predict_interference(l->w.state, ""), 0);
    CLEANUP(json) json_t *doc = object_doc(state_find(l->w.state, KIND_PREDICTION, PREDICT_CLASS "/llm"));
    const json_t *pair = json_object_get(json_object_get(doc, "beside"), "vision");
    assert_int_equal(json_integer_value(json_object_get(pair, "runs")), CLASS_RUNS_MIN);
    assert_int_equal(json_integer_value(json_object_get(pair, "sum")), 1500 * CLASS_RUNS_MIN);
}

static void unslowed_class_has_no_interference(void **state)
{
    struct learner *l = *state;
    for (int i = 0; i < 5; i++)
        learn(l, "alice", "train", 1000, 0, 0);
    class_runs(l, 20, 1000, "[]");
    class_runs(l, 20, 900, "[\"vision\"]"); /* even faster */
    assert_int_equal(predict_interference(l->w.state, "llm"), 0);
}

static void malformed_prediction_is_rejected(void **state)
{
    (void)state;
    struct prediction_view v;
    struct berth_err err = {0};
    static const struct {
        const char *doc, *want;
    } rows[] = {
        {"{\"published\": {\"version\": \"x\"}}",                      "published.version"},
        {"{\"published\": {\"past\": [[1, 2]]}}",                      "published.past"   },
        {"{\"published\": {\"past\": [[1, 2, -3]]}}",                  "published.past"   },
        {"{\"published\": {\"past\": [[1, 9223372036854775807, 3]]}}", "published.past"   },
        {"{\"published\": {\"past\": [[1, 2, \"3\"]]}}",               "published.past"   },
    };
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(json) json_t *bad = json_loads(rows[i].doc, 0, NULL);
        assert_int_equal(predict_read(bad, &arena, &v, &err), -EBADMSG);
        assert_non_null(strstr(err.text, rows[i].want));
    }
    arena_done(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_learner, close_learner)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(trailing_numbers_of_names_are_ignored), TEST(quantiles_cover_the_last_runs),
        TEST(new_name_uses_the_owners_runs),         TEST(published_values_stay_until_they_move),
        TEST(estimates_are_summed_with_run_times),   TEST(memory_is_predicted_too),
        TEST(large_array_does_not_dominate),         TEST(plans_use_shares_of_limits),
        TEST(tasks_of_a_gang_count_as_one_run),      TEST(values_of_all_users_change_rarely),
        TEST(estimates_follow_published_values),     TEST(slowed_class_has_interference),
        TEST(unslowed_class_has_no_interference),    TEST(malformed_prediction_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
