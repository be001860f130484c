/* trace_run_test.c - tests simulated traces: small ones calculated by hand, and random ones against a simple EASY
 * implementation.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/trace/trace_kit_test.h"

#define LEN(rows) (sizeof(rows) / sizeof *(rows))

static struct sim_outcomes play(const struct kit_job *jobs, size_t len, int64_t procs, const char *order,
                                const char *backfill, const char *predictor)
{
    CLEANUP(sim_trace) struct sim_trace t;
    struct kit k;
    struct sim_outcomes out = {0};
    struct berth_err err = {0};
    kit_trace(&t, jobs, len);
    kit_init(&k, &t, procs, order, backfill, predictor);
    if (sim_trace_run(&k.setup, &out, &err))
        fail_msg("%s", err.text);
    return out;
}

/* ---- by hand ---------------------------------------------------------------------------------------------------- */

static void policies_match_hand_calculation(void **state)
{
    /* Of 4 processors 3 are in use until 100. The second job needs all 4; then follow a long job, a short job, and a
     * job that ends just in time. */
    static const struct kit_job jobs[] = {
        {0, 100, 100, 3},
        {1, 50,  60,  4},
        {2, 200, 200, 1},
        {3, 30,  40,  1},
        {4, 10,  66,  1},
    };
    static const struct {
        const char *order, *backfill, *predict;
        int64_t want[LEN(jobs)];
    } rows[] = {
        {"fcfs", "none",   "request",     {0, 100, 150, 150, 150}}, /* all wait for the second job */
        {"fcfs", "greedy", "request",     {0, 202, 2, 100, 100}  }, /* the second job waits for all others */
        {"fcfs", "easy",   "request",     {0, 100, 150, 3, 33}   }, /* 3 + 40 and 33 + 66 end by 100 */
        {"sjf",  "none",   "request",     {0, 100, 150, 3, 150}  }, /* only the fourth is shorter than the second */
        {"fcfs", "easy",   "clairvoyant", {0, 100, 150, 3, 33}   },
    };
    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        CLEANUP(sim_outcomes)
        struct sim_outcomes out = play(jobs, LEN(jobs), 4, rows[i].order, rows[i].backfill, rows[i].predict);
        for (size_t j = 0; j < LEN(jobs); j++)
            if (kit_start(&out, j) != rows[i].want[j])
                fail_msg("%s %s %s: job %zu starts at %lld, not %lld", rows[i].order, rows[i].backfill, rows[i].predict,
                         j + 1, (long long)kit_start(&out, j), (long long)rows[i].want[j]);
    }
}

/* Without history the third job has the shorter prediction. Then the first job ends early, and both predictions become
 * short. */
static void waiting_jobs_are_predicted_again(void **state)
{
    static const struct kit_job jobs[] = {
        {0, 10, 1000, 1},
        {1, 10, 1000, 1},
        {2, 10, 900,  1},
    };
    (void)state;
    CLEANUP(sim_outcomes) struct sim_outcomes known = play(jobs, LEN(jobs), 1, "berth", "berth", "request");
    assert_int_equal(kit_start(&known, 2), 10);
    CLEANUP(sim_outcomes) struct sim_outcomes learned = play(jobs, LEN(jobs), 1, "berth", "berth", "berth");
    assert_int_equal(kit_start(&learned, 1), 10);
    assert_int_equal(kit_start(&learned, 2), 20);
}

/* A job that ends as predicted frees its resources before submissions; a job that ends otherwise, after them. */
static void predicted_ends_free_resources_first(void **state)
{
    /* At 10 the first job ends; a wide job arrives, then a narrow one, which would start at once if the wide one
     * waited. */
    static const struct kit_job as_predicted[] = {
        {0,  10, 10, 2},
        {10, 10, 10, 3},
        {10, 5,  5,  1},
    };
    static const struct kit_job early[] = {
        {0,  10, 20, 2},
        {5,  10, 10, 3},
        {10, 15, 15, 1},
    };
    (void)state;
    CLEANUP(sim_outcomes) struct sim_outcomes a = play(as_predicted, 3, 3, "fcfs", "easy", "request");
    assert_int_equal(kit_start(&a, 1), 10);
    assert_int_equal(kit_start(&a, 2), 20);
    CLEANUP(sim_outcomes) struct sim_outcomes b = play(early, 3, 3, "fcfs", "easy", "request");
    /* At 10 the job arrives before the end: the second is expected at 20, but would end at 25. Then the second
     * starts. */
    assert_int_equal(kit_start(&b, 1), 10);
    assert_int_equal(kit_start(&b, 2), 20);
}

/* EASY++: two short runs of a user make the third job's prediction too short; it is corrected, first by a minute. */
static void predictions_that_prove_too_short_grow(void **state)
{
    static const struct kit_job jobs[] = {
        {0,   10,  500, 1},
        {0,   10,  500, 1},
        {20,  200, 500, 2}, /* predicted: 10; corrected at 30 (to 70) and at 90 (to 310) */
        {21,  5,   5,   3}, /* the head of the queue: expected at 30, then at 90, then at 330 */
        {35,  40,  40,  1}, /* predicted: 10, to end by 90: starts at once, and runs until 75 */
        {91,  80,  80,  1}, /* predicted: (10 + 40) / 2 = 25, by 330 */
        {120, 5,   5,   1}, /* the processor is in use */
    };
    (void)state;
    CLEANUP(sim_outcomes) struct sim_outcomes out = play(jobs, LEN(jobs), 3, "sjbf", "easy", "last2");
    static const int64_t want[] = {0, 0, 20, 220, 35, 91, 171};
    for (size_t i = 0; i < LEN(want); i++)
        assert_int_equal(kit_start(&out, i), want[i]);
    assert_int_equal(out.at[2].predicted_ns, 10 * SIM_SECOND_NS);
    assert_int_equal(out.at[5].predicted_ns, 25 * SIM_SECOND_NS);
}

static void oversized_job_never_starts(void **state)
{
    static const struct kit_job jobs[] = {
        {0, 10, 10, 9},
        {1, 10, 10, 1},
    };
    (void)state;
    CLEANUP(sim_outcomes) struct sim_outcomes out = play(jobs, 2, 4, "fcfs", "easy", "request");
    assert_int_equal(kit_start(&out, 0), -1);
    assert_int_equal(kit_start(&out, 1), 1);
}

static void job_may_end_at_once_or_exceed_its_request(void **state)
{
    static const struct kit_job jobs[] = {
        {0, 0,  5, 4},
        {0, 50, 5, 4},
        {1, 5,  5, 4},
    };
    (void)state;
    CLEANUP(sim_outcomes) struct sim_outcomes out = play(jobs, 3, 4, "fcfs", "easy", "request");
    assert_int_equal(kit_start(&out, 0), 0);
    assert_int_equal(kit_start(&out, 1), 0);
    assert_int_equal(kit_start(&out, 2), 50);
}

static void time_overflow_is_an_error(void **state)
{
    static const struct kit_job jobs[] = {
        {0,          8000000000, 8000000000, 4},
        {2000000000, 2000000000, 2000000000, 4},
    };
    CLEANUP(sim_trace) struct sim_trace t;
    struct kit k;
    struct sim_outcomes out = {0};
    struct berth_err err = {0};
    (void)state;
    kit_trace(&t, jobs, 2);
    kit_init(&k, &t, 4, "fcfs", "easy", "request");
    assert_int_equal(sim_trace_run(&k.setup, &out, &err), -EOVERFLOW);
    assert_string_equal(err.text, "the trace would last for longer than 292 years");
    assert_null(out.at);
}

/* Jobs submitted at one moment keep their order, after any number of earlier jobs; here seven at a time. */
static void many_jobs_keep_their_order(void **state)
{
    enum { MANY = 10000 };
    struct kit_job *jobs = mem_array(MANY, sizeof *jobs);
    (void)state;
    for (int64_t i = 0; i < MANY; i++)
        jobs[i] = (struct kit_job){.submit = i / 7 * 7, .run = 1, .request = 1, .procs = 1};
    CLEANUP(sim_outcomes) struct sim_outcomes out = play(jobs, MANY, 1, "fcfs", "easy", "request");
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(kit_start(&out, i), i);
    mem_free(jobs);
}

/* ---- several nodes, tasks, GPUs --------------------------------------------------------------------------------- */

static void tasks_start_together_on_several_nodes(void **state)
{
    static const struct berth_amount has[] = {
        {"cpu", 4000}
    };
    static const struct berth_gpu gpus[2] = {{0}};
    static const struct berth_node nodes[] = {
        {.id = "a", .allocatable = has, .allocatable_len = 1, .gpus = gpus, .gpus_len = 2},
        {.id = "b", .allocatable = has, .allocatable_len = 1, .gpus = gpus, .gpus_len = 2},
    };
    CLEANUP(sim_trace) struct sim_trace t;
    CLEANUP(sim_outcomes) struct sim_outcomes out = {0};
    struct kit k;
    struct berth_err err = {0};
    (void)state;
    sim_trace_init(&t);
    struct sim_job j = {.id = 1, .run_ns = 10 * SIM_SECOND_NS, .request_ns = 10 * SIM_SECOND_NS, .tasks = 1, .gpus = 1};
    sim_trace_add(&t, &j); /* one GPU of one node */
    j.id = 2;
    j.tasks = 2;
    j.gpus = 2;
    sim_trace_add(&t, &j); /* both nodes completely */
    j.id = 3;
    j.tasks = 3;
    j.gpus = 1;
    sim_trace_add(&t, &j); /* fits beside the first */
    kit_init(&k, &t, 1, "fcfs", "easy", "request");
    k.setup.nodes = nodes;
    k.setup.nodes_len = 2;
    k.setup.points = true;
    assert_int_equal(sim_trace_run(&k.setup, &out, &err), 0);
    assert_int_equal(kit_start(&out, 0), 0);
    assert_int_equal(kit_start(&out, 1), 10);
    assert_int_equal(kit_start(&out, 2), 0);
    struct sim_summary m = sim_summarise(&t, &out, true);
    assert_true(fabs(m.utilisation - 1) < 1e-12);
    assert_int_equal(out.capacity, 4000);
    assert_int_equal(out.points_len, 3);
    assert_int_equal(out.points[0].held, 4000);
    assert_int_equal(out.points[0].waiting, 1);
    assert_int_equal(out.points[1].running, 1);
    assert_int_equal(out.points[2].held, 0);
}

/* A job of a higher priority preempts another, which starts again. */
static void preempted_job_starts_again(void **state)
{
    static const struct kit_job jobs[] = {
        {0,   1000, 1000, 4},
        {500, 100,  100,  4},
    };
    CLEANUP(sim_trace) struct sim_trace t;
    CLEANUP(sim_outcomes) struct sim_outcomes out = {0};
    struct kit k;
    struct berth_err err = {0};
    (void)state;
    kit_trace(&t, jobs, 2);
    t.jobs[1].priority = 10;
    kit_init(&k, &t, 4, "fcfs", "easy", "request");
    k.policy.preemption = (struct berth_preemption){.on = true};
    assert_int_equal(sim_trace_run(&k.setup, &out, &err), 0);
    assert_int_equal(kit_start(&out, 1), 500);
    assert_int_equal(kit_start(&out, 0), 600);
    assert_int_equal(out.at[0].stops, 1);
    assert_int_equal(out.at[0].end_ns, 1600 * SIM_SECOND_NS);
}

/* An elastic job starts with the tasks that fit, gives tasks to a job of a higher priority, and gets them back. */
static void elastic_jobs_shrink_and_grow(void **state)
{
    static const struct kit_job jobs[] = {
        {0,   1000, 1000, 1},
        {500, 100,  100,  2},
    };
    CLEANUP(sim_trace) struct sim_trace t;
    CLEANUP(sim_outcomes) struct sim_outcomes out = {0};
    struct kit k;
    struct berth_err err = {0};
    (void)state;
    kit_trace(&t, jobs, 2);
    t.jobs[0].tasks = 6;
    t.jobs[0].tasks_min = 2;
    t.jobs[1].priority = 10;
    kit_init(&k, &t, 4, "fcfs", "easy", "request");
    k.policy.preemption = (struct berth_preemption){.on = true};
    k.setup.points = true;
    assert_int_equal(sim_trace_run(&k.setup, &out, &err), 0);
    assert_int_equal(kit_start(&out, 0), 0);
    assert_int_equal(kit_start(&out, 1), 500);
    assert_int_equal(out.at[0].stops, 0);
    assert_int_equal(out.at[0].end_ns, 1000 * SIM_SECOND_NS);
    assert_int_equal(out.points_len, 4);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(out.points[i].held, 4000);
        assert_int_equal(out.points[i].waiting, 0);
    }
    assert_int_equal(out.points[1].running, 2);
    assert_int_equal(out.points[3].held, 0);
    /* Two of the six tasks never fitted, two more did not for 100 s. */
    assert_true(fabs(out.at[0].missing_s - 2200) < 1e-9);
    struct sim_summary m = sim_summarise(&t, &out, false);
    assert_true(fabs(m.utilisation - 1) < 1e-12);
}

/* ---- the planner decides ---------------------------------------------------------------------------------------- */

/* Last come, first served. */
static int backwards(void *ctx, const struct berth_factors *in, int64_t *keys, struct berth_err *err)
{
    (void)ctx;
    (void)err;
    for (size_t i = 0; i < in->len; i++)
        keys[i] = (int64_t)(in->created[i] * 1000);
    return 0;
}

/* Another ranking or score in the planner gives other results. The engine itself has neither. */
static void planner_decides_simulated_starts(void **state)
{
    static const struct kit_job jobs[] = {
        {0, 10, 10, 4},
        {1, 10, 10, 4},
        {2, 10, 10, 4},
        {3, 10, 10, 4},
    };
    CLEANUP(sim_trace) struct sim_trace t;
    CLEANUP(sim_outcomes) struct sim_outcomes first = {0}, last = {0};
    struct kit k;
    struct berth_err err = {0};
    (void)state;
    kit_trace(&t, jobs, LEN(jobs));
    kit_init(&k, &t, 4, "fcfs", "easy", "request");
    assert_int_equal(sim_trace_run(&k.setup, &first, &err), 0);
    k.policy.order.ranking = (struct berth_ranking){.name = "formula", .formula = backwards};
    assert_int_equal(sim_trace_run(&k.setup, &last, &err), 0);
    assert_int_equal(kit_start(&first, 1), 10);
    assert_int_equal(kit_start(&first, 3), 30);
    assert_int_equal(kit_start(&last, 1), 30);
    assert_int_equal(kit_start(&last, 3), 10);
    k.policy.order.ranking = (struct berth_ranking){.name = "no such"};
    CLEANUP(sim_outcomes) struct sim_outcomes none = {0};
    assert_int_equal(sim_trace_run(&k.setup, &none, &err), -EINVAL);
    assert_null(none.at);
}

static void score_decides_the_node(void **state)
{
    static const struct berth_amount has[] = {
        {"cpu",    4000},
        {"memory", 4000},
    };
    static const struct berth_node nodes[] = {
        {.id = "a", .allocatable = has, .allocatable_len = 2},
        {.id = "b", .allocatable = has, .allocatable_len = 2},
    };
    static const struct kit_job jobs[] = {
        {0, 100, 100, 1},
        {1, 100, 100, 1},
        {2, 100, 100, 4},
    };
    static const struct berth_weight packs[] =
        {
            {"most_allocated", 1}
    },
                                     spreads[] = {{"least_allocated", 1}};
    static const struct berth_profile pack = {.name = "pack", .scores = packs, .scores_len = 1};
    static const struct berth_profile spread = {.name = "spread", .scores = spreads, .scores_len = 1};
    CLEANUP(sim_trace) struct sim_trace t;
    CLEANUP(sim_outcomes) struct sim_outcomes packed = {0}, spread_out = {0};
    struct kit k;
    struct berth_err err = {0};
    (void)state;
    kit_trace(&t, jobs, LEN(jobs));
    kit_init(&k, &t, 4, "fcfs", "easy", "request");
    k.setup.nodes = nodes;
    k.setup.nodes_len = 2;
    k.policy.profile = &pack;
    assert_int_equal(sim_trace_run(&k.setup, &packed, &err), 0);
    k.policy.profile = &spread;
    assert_int_equal(sim_trace_run(&k.setup, &spread_out, &err), 0);
    assert_int_equal(packed.at[0].node, packed.at[1].node);
    assert_int_equal(kit_start(&packed, 2), 2);
    assert_int_not_equal(spread_out.at[0].node, spread_out.at[1].node);
    assert_int_equal(kit_start(&spread_out, 2), 100);
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static void numbers_match_hand_calculation(void **state)
{
    /* Two processors. Waits 0, 0, 20; runs 20, 5, 10; slowdowns 1, 1, 3. */
    static const struct kit_job jobs[] = {
        {0, 20, 20, 1},
        {0, 5,  5,  1},
        {0, 10, 10, 2},
    };
    CLEANUP(sim_trace) struct sim_trace t;
    CLEANUP(sim_outcomes) struct sim_outcomes out = {0};
    struct kit k;
    struct berth_err err = {0};
    (void)state;
    kit_trace(&t, jobs, LEN(jobs));
    kit_init(&k, &t, 2, "fcfs", "easy", "request");
    assert_int_equal(sim_trace_run(&k.setup, &out, &err), 0);
    struct sim_summary m = sim_summarise(&t, &out, false);
    assert_int_equal(m.jobs, 3);
    assert_true(fabs(m.average_bounded_slowdown - 5.0 / 3) < 1e-12);
    assert_true(fabs(m.max_bounded_slowdown - 3) < 1e-12);
    assert_true(fabs(m.rms_bounded_slowdown - sqrt(11.0 / 3)) < 1e-12);
    assert_true(fabs(m.mean_wait_s - 20.0 / 3) < 1e-12);
    assert_true(m.max_wait_s == 20);
    assert_true(m.makespan_s == 30);
    assert_true(fabs(m.mean_completion_s - 55.0 / 3) < 1e-12);
    assert_true(m.p99_completion_s == 30);
    assert_true(fabs(m.utilisation - 45.0 / 60) < 1e-12);
    assert_true(m.queue_median == 1);
}

/* ---- simple EASY implementation --------------------------------------------------------------------------------- */

struct naive_job {
    struct kit_job is;
    int64_t predicted, start; /* -1: not started */
    bool over;
    int grown;
};

struct naive {
    struct naive_job jobs[64];
    size_t len;
    int64_t procs, now;
    bool shortest;
};

/* Returns the processors that are free from `at` on, by predictions; a job predicted to end at that time uses none. */
static int64_t naive_free(const struct naive *n, int64_t at)
{
    int64_t held = 0;
    for (size_t i = 0; i < n->len; i++) {
        const struct naive_job *j = &n->jobs[i];
        if (j->start >= 0 && !j->over && j->start + j->predicted > at)
            held += j->is.procs;
    }
    return n->procs - held;
}

static struct naive_job *naive_waits(struct naive *n, size_t i)
{
    struct naive_job *j = &n->jobs[i];
    return j->start < 0 && j->is.submit <= n->now && j->predicted ? j : NULL;
}

/* Returns the first moment from now on at which the head of the queue fits. */
static int64_t naive_shadow(const struct naive *n, int64_t procs)
{
    int64_t best = INT64_MAX;
    for (size_t i = 0; i < n->len; i++) {
        const struct naive_job *j = &n->jobs[i];
        int64_t at = j->start + j->predicted;
        if (j->start >= 0 && !j->over && at > n->now && at < best && naive_free(n, at) >= procs)
            best = at;
    }
    return best;
}

static struct naive_job *naive_next(struct naive *n, const struct naive_job *head, const bool *tried)
{
    struct naive_job *best = NULL;
    for (size_t i = 0; i < n->len; i++) {
        struct naive_job *j = naive_waits(n, i);
        if (!j || j == head || tried[i])
            continue;
        if (!best || (n->shortest && j->predicted < best->predicted))
            best = j;
    }
    return best;
}

static void naive_decide(struct naive *n)
{
    struct naive_job *head = NULL;
    bool tried[64] = {false};
    for (size_t i = 0; i < n->len && !head; i++) {
        struct naive_job *j = naive_waits(n, i);
        if (j && naive_free(n, n->now) >= j->is.procs)
            j->start = n->now;
        else
            head = j;
    }
    if (!head)
        return;
    int64_t shadow = naive_shadow(n, head->is.procs);
    for (struct naive_job *j; (j = naive_next(n, head, tried));) {
        tried[j - n->jobs] = true;
        int64_t extra = naive_free(n, shadow) - head->is.procs;
        bool in_time = n->now + j->predicted <= shadow, beside = j->is.procs <= extra;
        if (naive_free(n, n->now) >= j->is.procs && (in_time || beside))
            j->start = n->now;
    }
}

/* Doubles the prediction, up to the requested time. */
static int64_t twice(int64_t predicted, int64_t request)
{
    return 2 * predicted < request ? 2 * predicted : request;
}

static void naive_moment(struct naive *n, int64_t (*predict)(const struct kit_job *job))
{
    for (size_t i = 0; i < n->len; i++) {
        struct naive_job *j = &n->jobs[i];
        if (j->start >= 0 && !j->over && j->start + j->predicted == n->now && j->predicted < j->is.run)
            j->predicted = twice(j->predicted, j->is.request);
    }
    for (size_t i = 0; i < n->len; i++)
        if (n->jobs[i].is.submit == n->now && n->jobs[i].predicted == 0) {
            n->jobs[i].predicted = predict(&n->jobs[i].is);
            naive_decide(n);
        }
    for (bool more = true; more;) { /* in order of their starts, including jobs that start now and end immediately */
        struct naive_job *first = NULL;
        for (size_t i = 0; i < n->len; i++) {
            struct naive_job *j = &n->jobs[i];
            if (j->start >= 0 && !j->over && j->start + j->is.run == n->now && (!first || j->start < first->start))
                first = j;
        }
        more = first != NULL;
        if (more) {
            first->over = true;
            naive_decide(n);
        }
    }
}

static int64_t half(const struct kit_job *j)
{
    return j->request > 1 ? j->request / 2 : 1;
}

static int64_t whole(const struct kit_job *j)
{
    return j->request;
}

static int64_t exact(const struct kit_job *j)
{
    return j->run;
}

static int64_t half_predict(void *state, const struct sim_job *job, int64_t now_ns)
{
    const struct kit_job j = {.request = job->request_ns / SIM_SECOND_NS};
    (void)state;
    (void)now_ns;
    return half(&j) * SIM_SECOND_NS;
}

static int64_t half_correct(void *state, const struct sim_job *job, int64_t predicted_ns, uint32_t times)
{
    (void)state;
    (void)times;
    return twice(predicted_ns, job->request_ns);
}

static void random_traces_agree(const char *order, const char *predictor, int64_t (*predict)(const struct kit_job *job))
{
    static const struct sim_predictor halves = {.name = "half", .predict = half_predict, .correct = half_correct};
    struct kit_job jobs[64];
    for (uint64_t seed = 1; seed <= 150; seed++) {
        CLEANUP(sim_trace) struct sim_trace t;
        CLEANUP(sim_outcomes) struct sim_outcomes out = {0};
        struct kit k;
        struct berth_err err = {0};
        struct naive n = {.procs = 2 + (int64_t)seed % 15, .shortest = strcmp(order, "sjbf") == 0};
        n.len = kit_random(jobs, 60, n.procs, seed);
        for (size_t i = 0; i < n.len; i++) {
            if (jobs[i].run == 0)
                jobs[i].run = 1; /* several jobs with run time 0 would have no defined order */
            n.jobs[i] = (struct naive_job){.is = jobs[i], .start = -1};
        }
        kit_trace(&t, jobs, n.len);
        kit_init(&k, &t, n.procs, order, "easy", predict == half ? "request" : predictor);
        if (predict == half)
            k.setup.predictor = &halves;
        assert_int_equal(sim_trace_run(&k.setup, &out, &err), 0);
        for (; n.now < 4000; n.now++)
            naive_moment(&n, predict);
        for (size_t i = 0; i < n.len; i++)
            if (kit_start(&out, i) != n.jobs[i].start)
                fail_msg("%s, %s, seed %llu: job %zu starts at %lld, by the textbook at %lld", order, predictor,
                         (unsigned long long)seed, i + 1, (long long)kit_start(&out, i), (long long)n.jobs[i].start);
    }
}

static void easy_matches_simple_implementation(void **state)
{
    (void)state;
    random_traces_agree("fcfs", "request", whole);
    random_traces_agree("fcfs", "clairvoyant", exact);
    random_traces_agree("sjbf", "clairvoyant", exact);
    random_traces_agree("sjbf", "request", whole);
    random_traces_agree("fcfs", "half the request", half);
    random_traces_agree("sjbf", "half the request", half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_match_hand_calculation),
        cmocka_unit_test(waiting_jobs_are_predicted_again),
        cmocka_unit_test(predicted_ends_free_resources_first),
        cmocka_unit_test(predictions_that_prove_too_short_grow),
        cmocka_unit_test(oversized_job_never_starts),
        cmocka_unit_test(job_may_end_at_once_or_exceed_its_request),
        cmocka_unit_test(time_overflow_is_an_error),
        cmocka_unit_test(many_jobs_keep_their_order),
        cmocka_unit_test(tasks_start_together_on_several_nodes),
        cmocka_unit_test(preempted_job_starts_again),
        cmocka_unit_test(elastic_jobs_shrink_and_grow),
        cmocka_unit_test(planner_decides_simulated_starts),
        cmocka_unit_test(score_decides_the_node),
        cmocka_unit_test(numbers_match_hand_calculation),
        cmocka_unit_test(easy_matches_simple_implementation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
