/* jobs.c - latency from submission to the start of a job, and the throughput of short jobs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/agent/agent.h"
#include "wire/text/document.h"

#define LATENCY_S_GOAL 0.100
#define JOBS_PER_S_GOAL 150.0
#define PATIENCE_NS (300 * SECOND_NS)

#define SMALL "\"resources\":{\"cpu\":\"1m\",\"memory\":\"1Mi\"}"
/* The job prints its start time, by the same clock that is read before the submission. */
#define JOB_CLOCK "{\"name\":\"clock\",\"command\":[\"/bin/date\",\"+%s%N\"]," SMALL "}"
#define JOB_TRUE "{\"name\":\"true\",\"command\":[\"/bin/true\"]," SMALL "}"

enum { CLIENTS = 8, ROUNDS_MAX = 5 };

static int64_t wall_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* ---- from a submission to exec ---------------------------------------------------------------------------------- */

/* Returns the only instance of a job that succeeded; 0 with err->code 0: the job has not ended yet. */
static uint64_t instance_ended(const struct bench_node *n, json_int_t job, struct berth_err *err)
{
    char path[80];
    uint64_t id = 0;

    err->code = 0;
    (void)snprintf(path, sizeof path, "/v1/instances?workload=%" JSON_INTEGER_FORMAT, job);
    json_t *list = bench_run_ask(&n->run, "GET", path, NULL, 200, err);
    const json_t *one = json_array_get(json_object_get(list, "items"), 0);
    const char *state = json_string_value(json_object_get(json_object_get(one, "status"), "state"));
    if (!state)
        state = json_string_value(json_object_get(one, "state"));
    if (state && strcmp(state, "ended") == 0)
        id = (uint64_t)json_integer_value(json_object_get(one, "id"));
    json_decref(list);
    return id;
}

/* Returns the start time that the job printed; 0: nothing yet. */
static int64_t clock_read(const struct bench_node *n, uint64_t instance)
{
    CLEANUP(str) struct str path = {0};
    char line[64] = "";

    str_addf(&path, "%s/logs/%" PRIu64 "/log", n->state.at, instance);
    FILE *f = fopen(path.at, "re");
    if (f && !fgets(line, sizeof line, f))
        line[0] = '\0';
    if (f)
        (void)fclose(f);
    return strtoll(line, NULL, 10);
}

static int sample(const struct bench_node *n, int64_t *ret_ns, struct berth_err *err)
{
    int64_t end_ns = cli_clock_ns() + PATIENCE_NS, began_ns = wall_ns();
    uint64_t instance = 0;
    json_t *answer = bench_run_ask(&n->run, "POST", "/v1/jobs", JOB_CLOCK, 201, err);

    if (!answer)
        return -err->code;
    json_int_t job = json_integer_value(json_object_get(answer, "id"));
    json_decref(answer);
    while (!instance && cli_clock_ns() < end_ns) {
        (void)usleep(20 * 1000); /* not part of the measurement; more frequent polls would disturb it */
        instance = instance_ended(n, job, err);
        if (!instance && err->code)
            return -err->code;
    }
    int64_t ran_ns = instance ? clock_read(n, instance) : 0;
    if (ran_ns == 0)
        return err_set(err, ETIMEDOUT, "job %" JSON_INTEGER_FORMAT " has not said when it ran", job);
    *ret_ns = ran_ns - began_ns;
    return 0;
}

int bench_agent_latency(struct bench_agent *b, struct berth_err *err)
{
    static const size_t samples[SIZES] = {20, 100, 300};
    size_t len = samples[b->size];
    CLEANUP(bench_node) struct bench_node n = {0};
    CLEANUP(mem) int64_t *took = mem_zarray(len, sizeof *took);
    int rc = bench_node_start(b, "latency", &n, err);

    for (size_t i = 0; rc == 0 && i < len; i++)
        rc = sample(&n, &took[i], err);
    if (rc < 0)
        return rc;
    bench_sort(took, len);
    bench_row_add(&b->daemon,
                  (struct bench_row){.unit = UNIT_SECONDS,
                                     .measured = bench_quantile(took, len, 0.5),
                                     .bound = BOUND_AT_MOST,
                                     .goal = LATENCY_S_GOAL},
                  "from a submission to exec, one at a time, half within");
    bench_row_add(&b->daemon, (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_quantile(took, len, 0.99)},
                  "the same, 99 %% within");
    bench_row_add(&b->daemon, (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_quantile(took, len, 1)},
                  "the same, the longest of %zu", len);
    return 0;
}

/* ---- short jobs ------------------------------------------------------------------------------------------------- */

struct submitting {
    struct str request;
    size_t left;
    json_int_t last; /* last job number assigned */
    int other;       /* an unexpected status; 0: none */
    char said[200];
};

static bool next(void *ctx, size_t i, struct str *to)
{
    struct submitting *s = ctx;

    (void)i;
    if (s->left == 0 || s->other)
        return false;
    s->left--;
    str_add_bytes(to, s->request.at, s->request.len);
    return true;
}

static void answered(void *ctx, size_t i, const struct bench_answer *a, int64_t took_ns)
{
    struct submitting *s = ctx;

    (void)i;
    (void)took_ns;
    if (a->status != 201) {
        s->other = a->status;
        (void)snprintf(s->said, sizeof s->said, "%s", str_text(&a->body));
        return;
    }
    json_t *answer = json_loadb(str_text(&a->body), a->body.len, 0, NULL);
    json_int_t id = json_integer_value(json_object_get(answer, "id"));
    if (id > s->last)
        s->last = id;
    json_decref(answer);
}

static int submit(const struct bench_node *n, size_t jobs, json_int_t *ret_last, struct berth_err *err)
{
    static const struct bench_fleet_calls calls = {.next = next, .answered = answered};
    CLEANUP(bench_fleet) struct bench_fleet *fleet = NULL;
    struct submitting s = {.left = jobs};
    int rc = bench_fleet_new(&n->run.server, CLIENTS, &fleet, err);

    if (rc < 0)
        return rc;
    bench_request(&s.request, &n->run.server, "POST", "/v1/jobs", NULL, JOB_TRUE);
    rc = bench_fleet_run(fleet, &calls, &s, PATIENCE_NS, err);
    str_done(&s.request);
    *ret_last = s.last;
    return rc == 0 && s.other ? err_set(err, EPROTO, "a job is answered with %d: %s", s.other, s.said) : rc;
}

/* Counts the succeeded jobs; a failed job is an error. */
static int count_ended(const struct bench_node *n, size_t *ret, struct berth_err *err)
{
    CLEANUP(json) json_t *items = bench_run_list(&n->run, "jobs", err);
    size_t ended = 0, failed = 0;

    if (!items)
        return -err->code;
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *status = json_object_get(json_array_get(items, i), "status");
        const char *state = json_string_value(json_object_get(status, "state"));
        ended += state && strcmp(state, "ended") == 0;
        failed += state && strcmp(state, "failed") == 0;
    }
    *ret = ended;
    return failed ? err_set(err, EIO, "%zu jobs have failed", failed) : 0;
}

/* Polls only the last job until it has ended, because listing all jobs would load the daemon. */
static int wait_ended(const struct bench_node *n, size_t jobs, json_int_t last, struct berth_err *err)
{
    int64_t end_ns = cli_clock_ns() + PATIENCE_NS;
    size_t ended = 0;
    int rc = 0;

    while (rc == 0 && ended < jobs && cli_clock_ns() < end_ns) {
        (void)usleep(50 * 1000);
        err->code = 0;
        if (instance_ended(n, last, err))
            rc = count_ended(n, &ended, err);
        else
            rc = -err->code;
    }
    if (rc == 0 && ended < jobs)
        rc = err_set(err, ETIMEDOUT, "only %zu of %zu jobs have ended", ended, jobs);
    return rc;
}

struct rounds {
    size_t rounds, jobs; /* jobs per round */
    double per_s[ROUNDS_MAX], submit_s[ROUNDS_MAX];
};

static int rounds_run(const struct bench_node *n, struct rounds *r, struct berth_err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->rounds; i++) {
        int64_t began_ns = cli_clock_ns();
        json_int_t last = 0;
        rc = submit(n, r->jobs, &last, err);
        r->submit_s[i] = (double)(cli_clock_ns() - began_ns) / (double)SECOND_NS;
        if (rc == 0)
            rc = wait_ended(n, (i + 1) * r->jobs, last, err);
        r->per_s[i] = (double)r->jobs / ((double)(cli_clock_ns() - began_ns) / (double)SECOND_NS);
    }
    return rc;
}

static void rates_add(struct bench_agent *b, struct rounds *r)
{
    double median = bench_median(r->per_s, r->rounds); /* sorts the rates */

    bench_row_add(&b->daemon,
                  (struct bench_row){
                      .unit = UNIT_PER_SECOND, .measured = median, .bound = BOUND_AT_LEAST, .goal = JOBS_PER_S_GOAL},
                  "jobs that run 'true', from the first submission to the last end; %zu round%s of %zu", r->rounds,
                  r->rounds == 1 ? "" : "s", r->jobs);
    if (r->rounds > 1) {
        bench_row_add(&b->daemon, (struct bench_row){.unit = UNIT_PER_SECOND, .measured = r->per_s[0]},
                      "the same, the slowest round");
        bench_row_add(&b->daemon, (struct bench_row){.unit = UNIT_PER_SECOND, .measured = r->per_s[r->rounds - 1]},
                      "the same, the fastest round");
    }
    bench_row_add(&b->daemon,
                  (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_median(r->submit_s, r->rounds)},
                  "of a round, until all were submitted by %d clients", CLIENTS);
}

int bench_agent_throughput(struct bench_agent *b, struct berth_err *err)
{
    static const struct rounds sizes[SIZES] = {
        {.rounds = 1,          .jobs = 200 },
        {.rounds = 3,          .jobs = 600 },
        {.rounds = ROUNDS_MAX, .jobs = 1500},
    };
    struct rounds r = sizes[b->size];
    CLEANUP(bench_node) struct bench_node n = {0};
    int rc = bench_node_start(b, "throughput", &n, err);

    if (rc < 0)
        return rc;
    double agent_s = bench_node_cpu_s(&n), daemon_s = bench_run_cpu_s(&n.run);
    rc = rounds_run(&n, &r, err);
    if (rc < 0)
        return rc;
    double each = 1 / (double)(r.rounds * r.jobs);
    rates_add(b, &r);
    bench_row_add(&b->daemon,
                  (struct bench_row){.unit = UNIT_SECONDS, .measured = (bench_node_cpu_s(&n) - agent_s) * each},
                  "processor time of the agent for each, without what the shim and the program take");
    bench_row_add(&b->daemon,
                  (struct bench_row){.unit = UNIT_SECONDS, .measured = (bench_run_cpu_s(&n.run) - daemon_s) * each},
                  "processor time of the daemon for each, the submission included");
    return 0;
}
