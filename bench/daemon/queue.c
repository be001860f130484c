/* queue.c - a full cluster with ten thousand pending jobs: the cost of requests, and the cost while idle. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/daemon/daemon.h"

enum { NODES = 1000, WAITING = 10000, SAMPLES_MAX = 200, REST_S = 15, FILL_S_MAX = 120 };
/* The nodes have 16, 32, 48 and 64 cores in equal parts: 2,500 tasks of 16 cores fill them. */
enum { FILLERS = 25, TASKS = NODES * 10 / 4 / FILLERS };

/* Sends requests in sequence on one connection. */
struct sequential_requests {
    struct str request;
    int status;
    size_t wanted, len;
    int64_t took_ns[SAMPLES_MAX];
    int other; /* an unexpected status */
    char said[200];
};

static bool next(void *ctx, size_t i, struct str *to)
{
    struct sequential_requests *a = ctx;

    (void)i;
    if (a->other || a->len == a->wanted)
        return false;
    str_add_bytes(to, a->request.at, a->request.len);
    return true;
}

static void answered(void *ctx, size_t i, const struct bench_answer *answer, int64_t took_ns)
{
    struct sequential_requests *a = ctx;

    (void)i;
    if (answer->status == a->status) {
        a->took_ns[a->len++] = took_ns;
        return;
    }
    a->other = answer->status;
    (void)snprintf(a->said, sizeof a->said, "%s", str_text(&answer->body));
}

struct bench_query {
    const char *what, *method, *path, *body;
    int status;
    size_t samples; /* multiplied by four with --full */
};

static int question_measure(struct bench_daemon *b, const struct bench_run *r, const struct bench_query *q,
                            struct berth_err *err)
{
    static const struct bench_fleet_calls calls = {.next = next, .answered = answered};
    CLEANUP(bench_fleet) struct bench_fleet *fleet = NULL;
    struct sequential_requests a = {.status = q->status, .wanted = b->full ? 4 * q->samples : q->samples};
    int rc = bench_fleet_new(&r->server, 1, &fleet, err);

    if (rc < 0)
        return rc;
    bench_request(&a.request, &r->server, q->method, q->path, NULL, q->body);
    rc = bench_fleet_run(fleet, &calls, &a, 300 * SECOND_NS, err);
    str_done(&a.request);
    if (rc == 0 && a.other)
        rc = err_set(err, EPROTO, "%s %s is answered with %d, not %d: %s", q->method, q->path, a.other, q->status,
                     a.said);
    if (rc < 0)
        return rc;
    bench_sort(a.took_ns, a.len);
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_quantile(a.took_ns, a.len, 0.5)},
                  "%s, half within", q->what);
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_quantile(a.took_ns, a.len, 1)},
                  "the same, the longest of %zu", a.len);
    return 0;
}

/* Submits jobs of 1 to 25 hours that use every core. */
static int cluster_fill(const struct bench_daemon *b, const struct bench_run *r, struct berth_err *err)
{
    const struct bench_fill nodes = {.nodes = NODES}, jobs = {.jobs = WAITING, .waiting = true};
    CLEANUP(str) struct str body = {0};
    int64_t end_ns = cli_clock_ns() + FILL_S_MAX * SECOND_NS;
    int rc = bench_fill(b, r, &nodes, err);

    str_add(&body, "{\"changes\":[");
    for (unsigned i = 0; i < FILLERS; i++)
        str_addf(
            &body,
            "%s{\"op\":\"put\",\"kind\":\"job\",\"object\":{\"name\":\"fill-%u\",\"command\":[\"/bin/true\"],"
            "\"array\":{\"from\":1,\"to\":%d},\"requests\":{\"cpu\":16,\"memory\":\"16Gi\"},\"time_limit\":\"%uh\"}}",
            i ? "," : "", i, TASKS, 1 + i);
    str_add(&body, "]}");
    json_t *answer = rc == 0 ? bench_run_ask(r, "POST", "/v1/txn", body.at, 200, err) : NULL;
    rc = rc < 0 ? rc : answer ? 0 : -err->code;
    json_decref(answer);
    for (size_t placed = 0; rc == 0 && placed < FILLERS * TASKS;) {
        json_t *plan = bench_run_ask(r, "POST", "/v1/schedule", NULL, 200, err);
        rc = plan ? bench_run_count(r, "instances", &placed, err) : -err->code;
        json_decref(plan);
        if (rc == 0 && cli_clock_ns() > end_ns)
            rc = err_set(err, ETIMEDOUT, "only %zu of %d tasks have a place after %d s", placed, FILLERS * TASKS,
                         FILL_S_MAX);
    }
    return rc == 0 ? bench_fill(b, r, &jobs, err) : rc;
}

/* Returns the number of a pending job. */
static int waiting_job(const struct bench_run *r, long long *ret, struct berth_err *err)
{
    json_t *queue = bench_run_ask(r, "GET", "/v1/queue?limit=1", NULL, 200, err);

    if (!queue)
        return -err->code;
    const json_t *id = json_object_get(json_array_get(json_object_get(queue, "items"), 0), "id");
    size_t total = (size_t)json_integer_value(json_object_get(queue, "total"));
    *ret = json_is_string(id) ? strtoll(json_string_value(id), NULL, 10) : json_integer_value(id);
    json_decref(queue);
    return total >= WAITING && *ret > 0 ? 0 : err_set(err, EPROTO, "%zu jobs wait, not %d", total, WAITING);
}

/* Measures an idle daemon: plans are repeated as time passes, but nothing may be written. */
static int idle_measure(struct bench_daemon *b, const struct bench_run *r, struct berth_err *err)
{
    uint64_t before, after = 0;
    double cpu_s;
    int rc = bench_run_revision(r, &before, err);

    cpu_s = bench_run_cpu_s(r);
    if (rc == 0)
        (void)sleep(REST_S);
    cpu_s = (bench_run_cpu_s(r) - cpu_s) / REST_S;
    if (rc == 0)
        rc = bench_run_revision(r, &after, err);
    if (rc < 0)
        return rc;
    bench_row_add(
        b,
        (struct bench_row){.unit = UNIT_COUNT, .measured = (double)(after - before), .bound = BOUND_AT_MOST, .goal = 0},
        "commits in %d s in which nothing happens", REST_S);
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = cpu_s}, "processor time of a second of that");
    return 0;
}

int bench_daemon_queue(struct bench_daemon *b, struct berth_err *err)
{
    CLEANUP(bench_run) struct bench_run r = {0};
    char why[64], sooner[64];
    long long id = 0;
    int rc = bench_run_start(b, "queue", &r, err);

    if (rc == 0)
        rc = cluster_fill(b, &r, err);
    if (rc == 0)
        rc = waiting_job(&r, &id, err);
    if (rc == 0)
        rc = idle_measure(b, &r, err);
    (void)snprintf(why, sizeof why, "/v1/jobs/%lld/why", id);
    (void)snprintf(sooner, sizeof sooner, "/v1/jobs/%lld/why?suggest=1", id);
    const struct bench_query questions[] = {
        {"10,000 jobs wait on 1,000 full nodes; one more submission", "POST", "/v1/jobs",                         BENCH_JOB, 201, 50},
        {"a plan of all of it, asked for",                            "POST", "/v1/schedule",                     NULL,      200, 5 },
        {"the first hundred of the queue",                            "GET",  "/v1/queue?limit=100",              NULL,      200, 50},
        {"why a job waits",                                           "GET",  why,                                NULL,      200, 50},
        {"the same with what to change",                              "GET",  sooner,                             NULL,      200, 5 },
        {"a forecast for a draft",                                    "POST", "/v1/jobs?dry_run=true&forecast=1", BENCH_JOB, 200, 5 },
    };
    for (size_t i = 0; rc == 0 && i < sizeof questions / sizeof *questions; i++)
        rc = question_measure(b, &r, &questions[i], err);
    return rc;
}
