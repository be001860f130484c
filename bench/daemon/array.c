/* array.c - an array of ten thousand tasks in one request: time to the answer, the first placement, and the last. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bench/daemon/daemon.h"

#define ANSWER_S_GOAL 0.050
#define ARRAY                                                                                                          \
    "{\"name\":\"sweep\",\"command\":[\"/usr/bin/python3\",\"sweep.py\"],\"array\":{\"from\":0,\"to\":9999},"          \
    "\"requests\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"}}"

enum { NODES = 1000, TASKS = 10000, ROUNDS = 5, ROUNDS_FULL = 10 };
/* Indices of connections. */
enum { STREAM, SUBMITS, CONNS };

struct arrays {
    struct bench_fleet *fleet;
    const struct bench_run *run;
    char path[64];
    size_t rounds, len; /* target; answered so far */
    size_t placed;      /* tasks placed, in all rounds */
    bool watches, cut;  /* cut: the last piece of the stream ended within a line */
    int64_t began_ns;
    int64_t answered_ns[ROUNDS_FULL], first_ns[ROUNDS_FULL], all_ns[ROUNDS_FULL];
    int other; /* an unexpected status */
};

static bool next(void *ctx, size_t i, struct str *to)
{
    struct arrays *a = ctx;

    if (i == STREAM) {
        bench_request(to, &a->run->server, "GET", a->path, NULL, NULL);
        return true;
    }
    if (!a->watches || a->len == a->rounds || a->placed < a->len * TASKS)
        return false;
    a->began_ns = cli_clock_ns();
    bench_request(to, &a->run->server, "POST", "/v1/jobs", NULL, ARRAY);
    return true;
}

static void begun(void *ctx, size_t i, const struct bench_answer *answer)
{
    struct arrays *a = ctx;

    if (answer->status != (i == STREAM ? 200 : 201)) {
        a->other = answer->status;
        bench_fleet_stop(a->fleet);
    } else if (i == STREAM) {
        a->watches = true;
        bench_fleet_wake(a->fleet, SUBMITS);
    }
}

/* Starts the next round once the answer and the last placement of the current round have arrived. */
static void round_check(struct arrays *a)
{
    if (a->placed != a->len * TASKS)
        return;
    if (a->len == a->rounds)
        bench_fleet_stop(a->fleet);
    else
        bench_fleet_wake(a->fleet, SUBMITS);
}

/* Each placement is one line, because no agent reports on instances. Empty lines are keepalives. */
static bool piece(void *ctx, size_t i, const char *at, size_t len)
{
    struct arrays *a = ctx;
    int64_t now_ns = cli_clock_ns();

    if (i != STREAM)
        return false;
    for (const char *end = at + len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        bool some = a->cut || stop > at;
        size_t round = a->placed / TASKS;
        if (newline && some && round < a->rounds) {
            if (a->placed % TASKS == 0)
                a->first_ns[round] = now_ns - a->began_ns;
            if (++a->placed % TASKS == 0)
                a->all_ns[round] = now_ns - a->began_ns;
        }
        a->cut = !newline && some;
        at = stop + (newline != NULL);
    }
    round_check(a);
    return true;
}

static void answered(void *ctx, size_t i, const struct bench_answer *answer, int64_t took_ns)
{
    struct arrays *a = ctx;

    if (i == STREAM) {
        a->other = answer->status; /* a watch never ends */
        bench_fleet_stop(a->fleet);
        return;
    }
    a->answered_ns[a->len++] = took_ns;
    round_check(a);
}

static int submit_all(struct arrays *a, struct berth_err *err)
{
    static const struct bench_fleet_calls calls = {.next = next, .begun = begun, .piece = piece, .answered = answered};
    uint64_t revision;
    size_t there = 0;
    int rc = bench_run_revision(a->run, &revision, err);

    if (rc == 0)
        rc = bench_fleet_new(&a->run->server, CONNS, &a->fleet, err);
    if (rc < 0)
        return rc;
    (void)snprintf(a->path, sizeof a->path, "/v1/instances?watch=%" PRIu64, revision);
    rc = bench_fleet_run(a->fleet, &calls, a, 300 * SECOND_NS, err);
    if (rc == 0 && a->other)
        rc = err_set(err, EPROTO, "the watch, or an array, is answered with %d", a->other);
    if (rc == 0)
        rc = bench_run_count(a->run, "instances", &there, err);
    if (rc == 0 && there != a->rounds * TASKS)
        rc = err_set(err, EPROTO, "%zu tasks have a place, not %zu", there, a->rounds * TASKS);
    return rc;
}

static void row(struct bench_daemon *b, int64_t *took, size_t len, double goal_s, const char *what)
{
    bench_sort(took, len);
    bench_row_add(b,
                  (struct bench_row){.unit = UNIT_SECONDS,
                                     .measured = bench_quantile(took, len, 0.5),
                                     .bound = goal_s > 0 ? BOUND_AT_MOST : BOUND_NONE,
                                     .goal = goal_s},
                  "%s", what);
}

int bench_daemon_array(struct bench_daemon *b, struct berth_err *err)
{
    const struct bench_fill fill = {.nodes = NODES};
    CLEANUP(bench_run) struct bench_run r = {0};
    struct arrays a = {.run = &r, .rounds = b->full ? ROUNDS_FULL : ROUNDS};
    int rc = bench_run_start(b, "array", &r, err);

    if (rc == 0)
        rc = bench_fill(b, &r, &fill, err);
    double cpu_s = rc == 0 ? bench_run_cpu_s(&r) : 0;
    if (rc == 0)
        rc = submit_all(&a, err);
    bench_fleet_free(a.fleet);
    if (rc < 0)
        return rc;
    cpu_s = (bench_run_cpu_s(&r) - cpu_s) / (double)a.rounds;
    row(b, a.answered_ns, a.rounds, ANSWER_S_GOAL, "an array of 10,000 tasks, from the request to the durable answer");
    row(b, a.first_ns, a.rounds, 0, "until the first of them has its durable place, 1,000 nodes");
    row(b, a.all_ns, a.rounds, 0, "until all 10,000 have");
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = cpu_s}, "processor time of all that");
    return 0;
}
