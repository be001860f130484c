/* rlscheduler_test.c - tests the published protocol: by hand, and against a simple implementation on random traces. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/protocol/rlscheduler.h"
#include "sim/trace/trace_kit_test.h"

#define LEN(rows) (sizeof(rows) / sizeof *(rows))

static int play(const struct kit_job *jobs, size_t len, int64_t procs, const char *order, const char *backfill,
                struct sim_outcomes *out, struct berth_err *err)
{
    CLEANUP(sim_trace) struct sim_trace t;
    struct kit k;
    kit_trace(&t, jobs, len);
    kit_init(&k, &t, procs, order, backfill, "request");
    return sim_rlscheduler_run(&k.setup, out, err);
}

static void rules_match_hand_calculation(void **state)
{
    /* The second job is selected at 1, and can start at 100. */
    static const struct kit_job jobs[] = {
        {0, 100, 100, 3},
        {1, 50,  50,  4}, /* selected: a shorter job that arrives later does not change that */
        {2, 99,  99,  1},
        {3, 97,  97,  1}, /* 3 + 97 is 100, and not before it */
        {4, 95,  95,  1},
        {5, 10,  10,  1},
    };
    static const struct {
        const char *order, *backfill;
        int64_t want[LEN(jobs)];
    } rows[] = {
        {"fcfs", "none", {0, 100, 150, 150, 150, 150}},
        {"sjf",  "none", {0, 100, 150, 150, 150, 150}},
        {"fcfs", "easy", {0, 100, 150, 150, 4, 150}  },
        {"sjf",  "easy", {0, 100, 150, 150, 4, 150}  }, /* backfill candidates are tried in order of submission */
    };
    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        CLEANUP(sim_outcomes) struct sim_outcomes out = {0};
        struct berth_err err = {0};
        if (play(jobs, LEN(jobs), 4, rows[i].order, rows[i].backfill, &out, &err))
            fail_msg("%s", err.text);
        for (size_t j = 0; j < LEN(jobs); j++)
            if (kit_start(&out, j) != rows[i].want[j])
                fail_msg("%s %s: job %zu starts at %lld, not %lld", rows[i].order, rows[i].backfill, j + 1,
                         (long long)kit_start(&out, j), (long long)rows[i].want[j]);
    }
}

/* The selected job leaves two processors unused; other jobs may use them only until it can start. */
static void capacity_left_by_selected_job_is_not_used(void **state)
{
    static const struct kit_job jobs[] = {
        {0, 100, 100, 3},
        {1, 50,  50,  2},
        {2, 200, 200, 1},
    };
    CLEANUP(sim_outcomes) struct sim_outcomes out = {0};
    struct berth_err err = {0};
    (void)state;
    assert_int_equal(play(jobs, LEN(jobs), 4, "fcfs", "easy", &out, &err), 0);
    assert_int_equal(kit_start(&out, 2), 100);
}

static void job_that_can_never_start_is_an_error(void **state)
{
    static const struct kit_job jobs[] = {
        {0, 1, 1, 5}
    };
    struct sim_outcomes out = {0};
    struct berth_err err = {0};
    (void)state;
    assert_int_equal(play(jobs, 1, 4, "fcfs", "easy", &out, &err), -EINVAL);
    assert_string_equal(err.text, "job 1 can never start: it requests more than the machine has");
    assert_null(out.at);
}

/* ---- simple implementation -------------------------------------------------------------------------------------- */

struct naive {
    const struct kit_job *jobs;
    size_t len, arrived;
    int64_t starts[64]; /* -1: not started */
    bool over[64];
    size_t order[64], running; /* in order of starts */
    int64_t free, now;
    bool shortest;
};

static bool waits(const struct naive *n, size_t i)
{
    return i < n->arrived && n->starts[i] < 0;
}

static size_t first_waiting(const struct naive *n)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < n->arrived; i++)
        if (waits(n, i) && (best == SIZE_MAX || (n->shortest && n->jobs[i].request < n->jobs[best].request)))
            best = i;
    return best;
}

static void begin(struct naive *n, size_t i)
{
    n->starts[i] = n->now;
    n->free -= n->jobs[i].procs;
    n->order[n->running++] = i;
}

static void advance(struct naive *n)
{
    size_t first = SIZE_MAX;
    int64_t at = INT64_MAX;
    for (size_t r = 0; r < n->running; r++) {
        size_t i = n->order[r];
        if (!n->over[i] && n->starts[i] + n->jobs[i].run < at) {
            at = n->starts[i] + n->jobs[i].run;
            first = i;
        }
    }
    if (n->arrived < n->len && n->jobs[n->arrived].submit <= at) {
        n->now = n->now > n->jobs[n->arrived].submit ? n->now : n->jobs[n->arrived].submit;
        n->arrived++;
    } else {
        n->now = n->now > at ? n->now : at;
        n->over[first] = true;
        n->free += n->jobs[first].procs;
    }
}

static int64_t earliest(const struct naive *n, size_t job)
{
    int64_t best = INT64_MAX;
    for (size_t i = 0; i < n->len; i++) {
        int64_t at = n->starts[i] + n->jobs[i].request, room = n->free;
        if (n->starts[i] < 0 || n->over[i])
            continue;
        for (size_t j = 0; j < n->len; j++)
            if (n->starts[j] >= 0 && !n->over[j] && n->starts[j] + n->jobs[j].request <= at)
                room += n->jobs[j].procs;
        if (room >= n->jobs[job].procs && at < best)
            best = at;
    }
    return best;
}

static void naive_run(struct naive *n, bool backfill)
{
    for (;;) {
        while (first_waiting(n) == SIZE_MAX && n->arrived < n->len)
            advance(n);
        size_t chosen = first_waiting(n);
        if (chosen == SIZE_MAX)
            return;
        int64_t start = n->free < n->jobs[chosen].procs ? earliest(n, chosen) : 0;
        while (n->free < n->jobs[chosen].procs) {
            for (size_t i = 0; backfill && i < n->arrived; i++)
                if (waits(n, i) && n->free >= n->jobs[i].procs && n->now + n->jobs[i].request < start)
                    begin(n, i);
            advance(n);
        }
        begin(n, chosen);
    }
}

static void random_traces_agree(void **state)
{
    struct kit_job jobs[64];
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        CLEANUP(sim_outcomes) struct sim_outcomes out = {0};
        struct berth_err err = {0};
        bool shortest = seed & 1, backfill = seed & 2;
        int64_t procs = 2 + (int64_t)(seed / 4 % 12);
        size_t len = kit_random(jobs, 60, procs, seed);
        for (size_t i = 0; i < len; i++)
            jobs[i].request = jobs[i].run = jobs[i].run ? jobs[i].run : 1; /* run times are known here */
        struct naive n = {.jobs = jobs, .len = len, .free = procs, .shortest = shortest};
        for (size_t i = 0; i < len; i++)
            n.starts[i] = -1;
        naive_run(&n, backfill);
        assert_int_equal(play(jobs, len, procs, shortest ? "sjf" : "fcfs", backfill ? "easy" : "none", &out, &err), 0);
        for (size_t i = 0; i < len; i++)
            if (kit_start(&out, i) != n.starts[i])
                fail_msg("seed %llu: job %zu starts at %lld, not %lld", (unsigned long long)seed, i + 1,
                         (long long)kit_start(&out, i), (long long)n.starts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_match_hand_calculation),
        cmocka_unit_test(capacity_left_by_selected_job_is_not_used),
        cmocka_unit_test(job_that_can_never_start_is_an_error),
        cmocka_unit_test(random_traces_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
