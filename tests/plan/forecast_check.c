/* forecast_check.c - compares start estimates of random days with the actual starts.
 *
 * Each day (days.h) runs up to a random moment. There the daemon's forecast is made (control/explain/forecast.h), which
 * gives every waiting job a start estimate. Then the day continues, and the first start of each job is compared with
 * its estimate. Each seed gives four days: run times are known, or stated by users (too short, too long, or not at
 * all); and no jobs are submitted after the forecast, or all jobs of the day are. Jobs that are submitted later can
 * overtake waiting ones, which no forecast can know.
 *
 * The error of an estimate is its distance from the start, divided by the time from the forecast to that start (at
 * least a minute). The errors of the reservations alone, without the lookahead, are printed, too. BERTH_SEED=n prints
 * the jobs of one day.
 */
/* bed: forecasts, in part */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/vec.h"
#include "bound.h"
#include "control/explain/forecast.h"
#include "core/model/cluster.h"
#include "days_world.h"

enum { FIRST_SEED = 50000, LEAST = 20, MOST = 500, SECONDS = 30, GOAL_PERCENT = 20, CLOSE_PERCENT = 10 };
#define HOUR_NS (3600 * DAY_SECOND_NS)
#define WAIT_LEAST_NS (60 * DAY_SECOND_NS)
#define STOP_NS (30 * DAY_SECOND_NS) /* a stop on these days takes up to a minute */

/* The errors of the estimates that were made in one way. */
struct errors {
    VEC(double) at;
    size_t unknown;    /* jobs that started without an estimate */
    size_t unknown_1h; /* of these, the ones that started within an hour */
};

enum world { KNOWN_CLOSED, KNOWN_OPEN, STATED_CLOSED, STATED_OPEN, WORLDS };

struct estimate_counts {
    struct errors forecast, reserved;
    /* Jobs that started; estimates that are not guesses; of these, the ones with an error of at most 10 %. */
    size_t jobs, sure, sure_close;
};

static const char *const world_names[WORLDS] = {
    [KNOWN_CLOSED] = "run times known, nothing submitted later",
    [KNOWN_OPEN] = "run times known, jobs submitted later",
    [STATED_CLOSED] = "run times as stated, nothing submitted later",
    [STATED_OPEN] = "run times as stated, jobs submitted later",
};

/* ---- one day ---------------------------------------------------------------------------------------------------- */

struct expected {
    struct day_job *job;
    int64_t start_ns, reserved_ns; /* 0: unknown */
    bool guess;
};

static bool is_waiting(const struct day_job *j)
{
    return j->there && !j->over && j->started_ns == 0;
}

/* States the exact run time of every job, and raises time limits that would stop it. */
static void state_run_times(struct day *d)
{
    for (uint32_t i = 0; i < d->jobs_len; i++) {
        struct day_job *j = &d->jobs[i];
        j->estimate_ns = j->runs_ns;
        j->limit_ns = j->limit_ns && j->limit_ns <= j->runs_ns ? j->runs_ns + DAY_SECOND_NS : j->limit_ns;
    }
}

static void submit_no_more(struct day *d)
{
    for (uint32_t i = 0; i < d->jobs_len; i++)
        if (!d->jobs[i].there)
            d->jobs[i].over = d->jobs[i].refused = true;
}

static size_t forecast(struct day *d, int64_t at_ns, struct expected *ret)
{
    struct forecast_plan p = {.snapshot = berth_freeze(d->cluster, at_ns, 0)};
    struct berth_cluster *copy = cluster_copy(d->cluster);
    struct berth_policy policy = d->policy;
    struct berth_err err;
    size_t len = 0;
    forecast_policy(&policy);
    forecast_plan_make(&p, &policy);
    assert_int_equal(p.rc, 0);
    forecast_plan_lookahead(&p, copy, &d->policy, &(struct lookahead_bounds){.stop_ns = STOP_NS});
    assert_true(p.ahead.complete);
    if (berth_audit(copy, &err) < 0)
        fail_msg("the copy: %s", err.text);
    for (uint32_t i = 0; i < d->jobs_len; i++) {
        struct day_job *j = &d->jobs[i];
        size_t row;
        if (!is_waiting(j))
            continue;
        struct expected *e = &ret[len++];
        *e = (struct expected){.job = j};
        e->start_ns = forecast_start_ns(&p, j->id, at_ns, &e->guess);
        if (forecast_find(&p, j->id, &row))
            e->reserved_ns = berth_plan_queue_position(p.plan, row).start_ns;
        else
            e->reserved_ns = forecast_starts(&p, j->id) ? at_ns : 0;
    }
    berth_cluster_free(copy);
    forecast_plan_done(&p);
    return len;
}

static double error_of(int64_t start_ns, int64_t real_ns, int64_t at_ns)
{
    int64_t wait = real_ns - at_ns, off = start_ns > real_ns ? start_ns - real_ns : real_ns - start_ns;
    return (double)off / (double)(wait > WAIT_LEAST_NS ? wait : WAIT_LEAST_NS);
}

static void count(struct errors *e, int64_t start_ns, int64_t real_ns, int64_t at_ns)
{
    if (start_ns) {
        vec_push(&e->at, error_of(start_ns, real_ns, at_ns));
        return;
    }
    e->unknown++;
    e->unknown_1h += real_ns - at_ns <= HOUR_NS;
}

static void compare(const struct day *d, const struct expected *all, size_t len, int64_t at_ns,
                    struct estimate_counts *to)
{
    for (size_t i = 0; i < len; i++) {
        int64_t real = all[i].job->started_ns;
        if (!real)
            continue; /* its time limit ended it, or it never started */
        to->jobs++;
        count(&to->forecast, all[i].start_ns, real, at_ns);
        count(&to->reserved, all[i].reserved_ns, real, at_ns);
        bool sure = all[i].start_ns && !all[i].guess;
        to->sure += sure;
        to->sure_close += sure && error_of(all[i].start_ns, real, at_ns) * 100 <= CLOSE_PERCENT;
        if (d->is_verbose || (!all[i].start_ns && real - at_ns <= HOUR_NS))
            print_message(
                "seed %" PRIu64 " at %.0f s: job %s expected in %.0f s%s, reserved in %.0f s, started in %.0f s\n",
                d->seed, (double)at_ns / 1e9, all[i].job->id,
                all[i].start_ns ? (double)(all[i].start_ns - at_ns) / 1e9 : -1.0, all[i].guess ? " (guess)" : "",
                all[i].reserved_ns ? (double)(all[i].reserved_ns - at_ns) / 1e9 : -1.0, (double)(real - at_ns) / 1e9);
    }
}

static void day_run(uint64_t seed, enum world world, bool is_verbose, struct estimate_counts *to)
{
    struct day d;
    struct expected all[DAY_JOBS_MAX];
    day_make(&d, seed);
    d.unchecked = true;
    d.pause_ns = 0; /* the daemon plans after each event without a pause */
    int64_t at_ns = DAY_SECOND_NS * rng_range(&d.rng, 2 * 3600, 22 * 3600);
    if (world == KNOWN_CLOSED || world == KNOWN_OPEN)
        state_run_times(&d);
    bool ok = day_run_until(&d, at_ns);
    size_t len = ok ? forecast(&d, at_ns, all) : 0;
    if (world == KNOWN_CLOSED || world == STATED_CLOSED)
        submit_no_more(&d);
    ok = ok && day_run_until(&d, BERTH_NEVER_NS);
    if (!ok)
        fail_msg("seed %" PRIu64 ": %s", seed, d.failure);
    d.is_verbose = is_verbose;
    compare(&d, all, len, at_ns, to);
    berth_cluster_free(d.cluster);
    mem_free(d.jobs);
}

/* ---- many days -------------------------------------------------------------------------------------------------- */

static int numbers_compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Returns a quantile of the errors in percent; 0 if there are none. Sorts the errors. */
static double quantile(struct errors *e, unsigned percent)
{
    if (e->at.len == 0)
        return 0;
    qsort(e->at.at, e->at.len, sizeof *e->at.at, numbers_compare);
    return 100 * e->at.at[(e->at.len - 1) * percent / 100];
}

static double share_close(const struct errors *e)
{
    size_t close = 0;
    for (size_t i = 0; i < e->at.len; i++)
        close += e->at.at[i] * 100 <= CLOSE_PERCENT;
    return e->at.len ? 100 * (double)close / (double)e->at.len : 100;
}

static void print_row(const char *name, struct errors *e)
{
    print_message(
        "  %-18s median %6.1f %%, p90 %7.1f %%, within 10 %%: %5.1f %%, unknown %zu (%zu start within the hour)\n",
        name, quantile(e, 50), quantile(e, 90), share_close(e), e->unknown, e->unknown_1h);
}

static void start_estimates_are_close(void **state)
{
    struct bound bound = {.least = LEAST, .most = MOST, .seconds = SECONDS};
    struct estimate_counts all[WORLDS] = {0};
    const char *one = getenv("BERTH_SEED");
    size_t days = 0;
    (void)state;
    bound_begin(&bound);
    for (; one ? days < 1 : bound_goes_on(&bound, days); days++)
        for (unsigned w = 0; w < WORLDS; w++)
            day_run(one ? strtoull(one, NULL, 10) : FIRST_SEED + days, (enum world)w, one, &all[w]);
    print_message("%zu days\n", days);
    for (unsigned w = 0; w < WORLDS; w++) {
        print_message(
            "%s: %zu jobs that waited and started; %zu estimates are no guess, %.1f %% of them within 10 %%\n",
            world_names[w], all[w].jobs, all[w].sure,
            all[w].sure ? 100 * (double)all[w].sure_close / (double)all[w].sure : 100);
        print_row("forecast", &all[w].forecast);
        print_row("reservations alone", &all[w].reserved);
    }
    double p90 = quantile(&all[KNOWN_CLOSED].forecast, 90);
    size_t unknown = 0;
    for (unsigned w = 0; w < WORLDS; w++) {
        unknown += all[w].forecast.unknown_1h;
        vec_done(&all[w].forecast.at);
        vec_done(&all[w].reserved.at);
    }
    assert_int_equal(unknown, 0);
    assert_true(one || p90 <= GOAL_PERCENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_estimates_are_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
