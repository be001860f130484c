/* predict_test.c - tests predictors: predictions, learning, corrections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/trace/predict.h"

#define S SIM_SECOND_NS

static struct sim_job job(sym user, int64_t run, int64_t request)
{
    return (struct sim_job){.user = user, .run_ns = run * S, .request_ns = request * S, .tasks = 1};
}

static void predictors_are_found_by_name(void **state)
{
    const struct sim_predictor *p;
    size_t n = 0;
    (void)state;
    for (; (p = sim_predictor_at(n)); n++) {
        assert_ptr_equal(sim_predictor_find(p->name), p);
        assert_non_null(p->sentence);
        assert_non_null(p->predict);
    }
    assert_true(n >= 3);
    assert_null(sim_predictor_find("oracle"));
}

static void two_predictors_have_no_state(void **state)
{
    struct sim_job j = job(1, 30, 100), silent = job(1, 30, 0);
    (void)state;
    assert_int_equal(sim_predictor_find("request")->predict(NULL, &j, 0), 100 * S);
    assert_int_equal(sim_predictor_find("request")->predict(NULL, &silent, 0), INT64_MAX);
    assert_int_equal(sim_predictor_find("clairvoyant")->predict(NULL, &j, 0), 30 * S);
}

static void last2_is_the_mean_of_the_user_s_last_two(void **state)
{
    const struct sim_predictor *p = sim_predictor_find("last2");
    struct sim_trace none = {0};
    void *memory = p->begin(&none);
    struct sim_job asks = job(1, 1, 500), other = job(900, 1, 77);
    (void)state;
    struct sim_job runs[] = {job(1, 10, 0), job(1, 21, 0), job(1, 100, 0)};
    assert_int_equal(p->predict(memory, &asks, 0), 500 * S);
    p->ended(memory, &runs[0], 0);
    assert_int_equal(p->predict(memory, &asks, 0), 500 * S); /* one run is not sufficient */
    p->ended(memory, &runs[1], 0);
    assert_int_equal(p->predict(memory, &asks, 0), 15 * S); /* in whole seconds */
    p->ended(memory, &runs[2], 0);
    assert_int_equal(p->predict(memory, &asks, 0), 60 * S);
    assert_int_equal(p->predict(memory, &other, 0), 77 * S); /* users are independent */
    p->end(memory);
}

/* Corrections are added to the first prediction, not to the corrected one. */
static void corrections_grow_as_published(void **state)
{
    static const int64_t more[] = {60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000};
    int64_t predicted = 40 * S;
    uint32_t n = 0;
    (void)state;
    for (; n < sizeof more / sizeof *more; n++) {
        predicted = sim_predict_correct(predicted, n);
        assert_int_equal(predicted, (40 + more[n]) * S);
    }
    predicted = sim_predict_correct(predicted, n);
    assert_int_equal(predicted, 2 * (40 + 360000) * S);
    assert_int_equal(sim_predict_correct(predicted, n + 1), 4 * (40 + 360000) * S);
}

/* The mean share of the requested time that similar jobs used, and half as much again; all jobs together have half a
 * weight. */
static void berth_predicts_by_share_of_requested_time(void **state)
{
    const struct sim_predictor *p = sim_predictor_find("berth");
    struct sim_trace none = {0};
    void *memory = p->begin(&none);
    struct sim_job asks = job(1, 1, 1000), twice = job(1, 1, 2000), other = job(2, 1, 1000), brief = job(1, 1, 50);
    struct sim_job ran = job(1, 200, 1000), all = job(1, 1000, 1000), silent = job(1, 1, 0);
    (void)state;
    assert_true(p->again);
    assert_int_equal(p->predict(memory, &asks, 0), 1000 * S);    /* no history */
    assert_int_equal(p->predict(memory, &silent, 0), INT64_MAX); /* no history and no requested time */
    p->ended(memory, &ran, 0);
    assert_int_equal(p->predict(memory, &asks, 0), 300 * S);
    assert_int_equal(p->predict(memory, &twice, 0), 600 * S);
    assert_int_equal(p->predict(memory, &other, 0), 300 * S);  /* the mean of all users */
    assert_int_equal(p->predict(memory, &brief, 0), 49 * S);   /* at least a minute, but less than the requested time */
    assert_int_equal(p->predict(memory, &silent, 0), 300 * S); /* as long as those runs */
    p->ended(memory, &all, 0);
    /* The user's runs: 1000 once and 200 at 0.8; all runs: 600 at 0.5; together 1460 / 2.3, and half as much again. */
    assert_int_equal(p->predict(memory, &asks, 0), 952 * S);
    for (int i = 0; i < 64; i++)
        p->ended(memory, &all, 0);
    assert_int_equal(p->predict(memory, &asks, 0), 1000 * S); /* enough history */
    p->end(memory);
}

/* Jobs with a more similar size and request have more weight. */
static void berth_weights_similar_jobs_more(void **state)
{
    const struct sim_predictor *p = sim_predictor_find("berth");
    struct sim_trace none = {0};
    void *memory = p->begin(&none);
    struct sim_job asks = job(1, 1, 1000), same = job(1, 100, 1000), larger = job(1, 500, 1000);
    (void)state;
    asks.cpu_milli = same.cpu_milli = larger.cpu_milli = 1000;
    larger.tasks = 2;
    p->ended(memory, &same, 0);
    p->ended(memory, &larger, 0);
    /* 500 at 0.1, 100 at 0.8, and both at 0.25: 280 / 1.4, and half as much again. */
    assert_int_equal(p->predict(memory, &asks, 0), 300 * S);
    asks.tasks = 2; /* 500 at 1, 100 at 0.08, both at 0.25: 658 / 1.58 */
    assert_int_equal(p->predict(memory, &asks, 0), 624 * S);
    p->end(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictors_are_found_by_name),
        cmocka_unit_test(two_predictors_have_no_state),
        cmocka_unit_test(last2_is_the_mean_of_the_user_s_last_two),
        cmocka_unit_test(corrections_grow_as_published),
        cmocka_unit_test(berth_predicts_by_share_of_requested_time),
        cmocka_unit_test(berth_weights_similar_jobs_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
