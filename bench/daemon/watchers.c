/* watchers.c - the cost of thousands of idle watchers, and the time until all of them see a change. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/daemon/daemon.h"
#include "cli/lib/human.h"

#define WATCHER_BYTES_GOAL (12.0 * 1024)

enum { WATCHERS = 10000, DESCRIPTORS_SPARE = 256 };

struct watchers_bench {
    struct bench_fleet *fleet;
    const struct bench_run *run;
    size_t watchers; /* connections 0 and up watch; the next connection submits */
    char path[64];
    bool *told;
    size_t begun, heard;
    bool submitted, submits;
    int other; /* an unexpected status */
    int64_t submit_ns, last_ns;
};

static bool next(void *ctx, size_t i, struct str *to)
{
    struct watchers_bench *w = ctx;

    if (i < w->watchers) {
        bench_request(to, &w->run->server, "GET", w->path, NULL, NULL);
        return true;
    }
    if (!w->submits || w->submitted)
        return false;
    w->submitted = true;
    w->submit_ns = cli_clock_ns();
    bench_request(to, &w->run->server, "POST", "/v1/jobs", NULL, BENCH_JOB_HELD);
    return true;
}

static void begun(void *ctx, size_t i, const struct bench_answer *a)
{
    struct watchers_bench *w = ctx;

    if (a->status != (i < w->watchers ? 200 : 201))
        w->other = a->status;
    w->begun += i < w->watchers;
    if (w->other || (!w->submits && w->begun == w->watchers))
        bench_fleet_stop(w->fleet);
}

/* An empty line is a keepalive; any other line is the job. */
static bool piece(void *ctx, size_t i, const char *at, size_t len)
{
    struct watchers_bench *w = ctx;

    if (i >= w->watchers || !w->submits || w->told[i] || !memchr(at, '{', len))
        return true;
    w->told[i] = true;
    w->last_ns = cli_clock_ns();
    if (++w->heard == w->watchers)
        bench_fleet_stop(w->fleet);
    return true;
}

static void answered(void *ctx, size_t i, const struct bench_answer *a, int64_t took_ns)
{
    struct watchers_bench *w = ctx;

    (void)a;
    (void)took_ns;
    if (i < w->watchers) { /* a watch never ends */
        w->other = a->status;
        bench_fleet_stop(w->fleet);
    }
}

static int watch_all(struct watchers_bench *w, struct berth_err *err)
{
    static const struct bench_fleet_calls calls = {.next = next, .begun = begun, .piece = piece, .answered = answered};
    int rc = bench_fleet_run(w->fleet, &calls, w, 120 * SECOND_NS, err);

    if (rc == 0 && w->other)
        rc = err_set(err, EPROTO, "a watch, or a submission, is answered with %d", w->other);
    return rc;
}

/* Returns how many watchers the limit of file descriptors allows, here and in the daemon, which inherits the limit. */
static size_t watchers_possible(size_t wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return wanted;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= wanted + DESCRIPTORS_SPARE)
        return wanted;
    return limit.rlim_cur > 2 * DESCRIPTORS_SPARE ? (size_t)limit.rlim_cur - DESCRIPTORS_SPARE : DESCRIPTORS_SPARE;
}

static int measure(struct bench_daemon *b, struct watchers_bench *w, struct berth_err *err)
{
    uint64_t before = bench_run_rss_bytes(w->run), revision;
    int rc = bench_run_revision(w->run, &revision, err);

    if (rc == 0)
        rc = bench_fleet_new(&w->run->server, w->watchers + 1, &w->fleet, err);
    if (rc < 0)
        return rc;
    (void)snprintf(w->path, sizeof w->path, "/v1/jobs?watch=%" PRIu64, revision);
    rc = watch_all(w, err);
    if (rc < 0)
        return rc;
    (void)usleep(500000); /* the daemon frees memory that only the start needed */
    uint64_t after = bench_run_rss_bytes(w->run);
    if (after <= before || before == 0)
        return err_set(err, EIO, "the memory of berthd cannot be read");
    bench_row_add(b,
                  (struct bench_row){.unit = UNIT_BYTES,
                                     .measured = (double)(after - before) / (double)w->watchers,
                                     .bound = BOUND_AT_MOST,
                                     .goal = WATCHER_BYTES_GOAL},
                  "resident memory of one of %s idle watchers", show_count(w->watchers).text);
    bench_row_add(b, (struct bench_row){.unit = UNIT_BYTES, .measured = (double)before},
                  "resident memory without them");
    w->submits = true;
    rc = watch_all(w, err);
    if (rc == 0)
        bench_row_add(b,
                      (struct bench_row){.unit = UNIT_SECONDS,
                                         .measured = (double)(w->last_ns - w->submit_ns) / (double)SECOND_NS},
                      "from a submission until the last of them knows");
    return rc;
}

int bench_daemon_watchers(struct bench_daemon *b, struct berth_err *err)
{
    size_t wanted = WATCHERS, possible = watchers_possible(wanted);
    CLEANUP(bench_run) struct bench_run r = {0};
    CLEANUP(mem) bool *told = mem_zarray(wanted, sizeof *told);
    struct watchers_bench w = {.run = &r, .watchers = possible, .told = told};

    if (possible < wanted)
        cli_warn(b->cli, "only %zu watchers: the limit of open files allows no more", possible);
    int rc = bench_run_start(b, "watchers", &r, err);
    if (rc == 0)
        rc = measure(b, &w, err);
    bench_fleet_free(w.fleet);
    return rc;
}
