/* backlog.c - ten thousand jobs are pending, then nodes are added: time until all placements are durable. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bench/daemon/daemon.h"
#include "cli/lib/human.h"

enum { JOBS = 10000 };
/* Indices of connections. */
enum { STREAM, ADDS, CONNS };

static const struct size {
    size_t nodes;
    double goal_s; /* time of the best other system */
    const char *peer;
} sizes[] = {
    {1000, 16.1, "kube-scheduler: 520 to 620/s; Slurm, tuned: 19 s"},
    {5000, 20.4, "kube-scheduler: 450 to 490/s; Slurm, tuned: 49 s"},
};

struct backlog {
    struct bench_fleet *fleet;
    const struct bench_run *run;
    char path[64];
    struct str body;
    size_t nodes, added; /* target; requested so far */
    size_t placed;
    bool watches, cut; /* cut: the last piece of the stream ended within a line */
    int64_t began_ns, end_ns;
    int other; /* an unexpected status */
};

static bool next(void *ctx, size_t i, struct str *to)
{
    struct backlog *g = ctx;

    if (i == STREAM) {
        bench_request(to, &g->run->server, "GET", g->path, NULL, NULL);
        return true;
    }
    if (!g->watches || g->added == g->nodes)
        return false;
    if (g->added == 0)
        g->began_ns = cli_clock_ns();
    str_clear(&g->body);
    bench_fill_nodes(&g->body, g->added, g->nodes);
    g->added = g->nodes - g->added < BENCH_CHANGES ? g->nodes : g->added + BENCH_CHANGES;
    bench_request(to, &g->run->server, "POST", "/v1/txn", NULL, g->body.at);
    return true;
}

static void begun(void *ctx, size_t i, const struct bench_answer *a)
{
    struct backlog *g = ctx;

    if (a->status != 200) {
        g->other = a->status;
        bench_fleet_stop(g->fleet);
    } else if (i == STREAM) {
        g->watches = true;
        bench_fleet_wake(g->fleet, ADDS);
    }
}

/* Each placement is one line, because no agent reports on instances. Empty lines are keepalives. */
static bool piece(void *ctx, size_t i, const char *at, size_t len)
{
    struct backlog *g = ctx;

    if (i != STREAM)
        return false;
    for (const char *end = at + len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        bool some = g->cut || stop > at;
        g->placed += newline && some;
        g->cut = !newline && some;
        at = stop + (newline != NULL);
    }
    if (g->placed >= JOBS) {
        g->end_ns = cli_clock_ns();
        bench_fleet_stop(g->fleet);
    }
    return true;
}

static void answered(void *ctx, size_t i, const struct bench_answer *a, int64_t took_ns)
{
    struct backlog *g = ctx;

    (void)took_ns;
    if (i != STREAM)
        return;
    g->other = a->status; /* a watch never ends */
    bench_fleet_stop(g->fleet);
}

static int place_all(struct backlog *g, struct berth_err *err)
{
    static const struct bench_fleet_calls calls = {.next = next, .begun = begun, .piece = piece, .answered = answered};
    uint64_t revision;
    size_t there = 0;
    int rc = bench_run_revision(g->run, &revision, err);

    if (rc == 0)
        rc = bench_fleet_new(&g->run->server, CONNS, &g->fleet, err);
    if (rc < 0)
        return rc;
    (void)snprintf(g->path, sizeof g->path, "/v1/instances?watch=%" PRIu64, revision);
    rc = bench_fleet_run(g->fleet, &calls, g, 300 * SECOND_NS, err);
    if (rc == 0 && g->other)
        rc = err_set(err, EPROTO, "the watch, or adding nodes, is answered with %d", g->other);
    if (rc == 0)
        rc = bench_run_count(g->run, "instances", &there, err);
    if (rc == 0 && there != JOBS)
        rc = err_set(err, EPROTO, "%zu jobs have a place, not %d", there, JOBS);
    return rc;
}

static int one_size(struct bench_daemon *b, const struct size *size, struct berth_err *err)
{
    const struct bench_fill fill = {.jobs = JOBS, .waiting = true};
    CLEANUP(bench_run) struct bench_run r = {0};
    struct backlog g = {.run = &r, .nodes = size->nodes};
    char name[32];

    (void)snprintf(name, sizeof name, "backlog-%zu", size->nodes);
    int rc = bench_run_start(b, name, &r, err);
    if (rc == 0)
        rc = bench_fill(b, &r, &fill, err);
    if (rc == 0)
        rc = place_all(&g, err);
    bench_fleet_free(g.fleet);
    str_done(&g.body);
    if (rc < 0)
        return rc;
    double took_s = (double)(g.end_ns - g.began_ns) / (double)SECOND_NS;
    bench_row_add(
        b,
        (struct bench_row){
            .unit = UNIT_SECONDS, .measured = took_s, .bound = BOUND_AT_MOST, .goal = size->goal_s, .peer = size->peer},
        "10,000 waiting jobs meet %s nodes: all have a durable place", show_count(size->nodes).text);
    bench_row_add(b, (struct bench_row){.unit = UNIT_PER_SECOND, .measured = JOBS / took_s}, "the same, jobs a second");
    return 0;
}

int bench_daemon_backlog(struct bench_daemon *b, struct berth_err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < (b->full ? sizeof sizes / sizeof *sizes : 1); i++)
        rc = one_size(b, &sizes[i], err);
    return rc;
}
