/* idle.c - whether idle connections slow down active clients. */
#include <string.h>

#include "bench/daemon/daemon.h"

#define RATIO_GOAL 2.0
#define SLURM_IDLE "Slurm: no submission succeeds"

enum { IDLE = 1000, CLIENTS = 4, ROUNDS_MAX = 15 };

struct idle_times {
    double get_s[ROUNDS_MAX], post_s[ROUNDS_MAX]; /* 99th percentile of each round */
};

/* Measures reads, then submissions. */
static int round_measure(const struct bench_run *r, struct idle_times *to, size_t round, int64_t for_ns,
                         struct berth_err *err)
{
    CLEANUP(bench_storm) struct bench_storm get = {.method = "GET", .path = "/v1/whoami", .status = 200};
    CLEANUP(bench_storm)
    struct bench_storm post = {.method = "POST", .path = "/v1/jobs", .body = BENCH_JOB_HELD, .status = 201};
    int rc = bench_storm_run(&get, r, CLIENTS, for_ns, err);

    if (rc == 0)
        rc = bench_storm_run(&post, r, CLIENTS, for_ns, err);
    to->get_s[round] = bench_quantile(get.took.at, get.took.len, 0.99);
    to->post_s[round] = bench_quantile(post.took.at, post.took.len, 0.99);
    return rc;
}

static void rows_add(struct bench_daemon *b, const char *what, double *without, double *with, size_t rounds)
{
    double ratios[ROUNDS_MAX];

    for (size_t i = 0; i < rounds; i++)
        ratios[i] = without[i] > 0 ? with[i] / without[i] : 0;
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_median(without, rounds)},
                  "%s, 99 %% within", what);
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_median(with, rounds)},
                  "%s, 99 %% within, beside 1,000 idle strangers", what);
    bench_row_add(b,
                  (struct bench_row){.unit = UNIT_RATIO,
                                     .measured = bench_median(ratios, rounds),
                                     .bound = BOUND_AT_MOST,
                                     .goal = RATIO_GOAL,
                                     .peer = SLURM_IDLE},
                  "%s, the ratio of each pair of rounds", what);
}

static int measure_with_idle_connections(const struct bench_run *r, struct idle_times *to, size_t round, int64_t for_ns,
                                         struct berth_err *err)
{
    const struct bench_server idle_server = {.address = r->server.address};
    CLEANUP(bench_fleet) struct bench_fleet *idle_connections = NULL;
    int rc = bench_fleet_new(&idle_server, IDLE, &idle_connections, err);

    return rc == 0 ? round_measure(r, to, round, for_ns, err) : rc;
}

int bench_daemon_idle(struct bench_daemon *b, struct berth_err *err)
{
    size_t rounds = b->full ? ROUNDS_MAX : 5;
    int64_t for_ns = b->full ? SECOND_NS : SECOND_NS / 2;
    struct idle_times without = {0}, with = {0};
    CLEANUP(bench_run) struct bench_run r = {0};
    int rc = bench_run_start(b, "idle", &r, err);

    /* The two sides alternate, and so does their order, because other load on the machine changes from second to second
     * and the store grows. */
    for (size_t i = 0; rc == 0 && i < rounds; i++) {
        if (i % 2 == 0)
            rc = round_measure(&r, &without, i, for_ns, err);
        if (rc == 0)
            rc = measure_with_idle_connections(&r, &with, i, for_ns, err);
        if (rc == 0 && i % 2 == 1)
            rc = round_measure(&r, &without, i, for_ns, err);
    }
    if (rc < 0)
        return rc;
    rows_add(b, "reading", without.get_s, with.get_s, rounds);
    rows_add(b, "submitting", without.post_s, with.post_s, rounds);
    return 0;
}
