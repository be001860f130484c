/* journal.c - the daemon's CPU time for making journal segments. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "bench/daemon/daemon.h"
#include "net/client/client.h"

#define SHARE_GOAL 0.03
enum { CLIENTS = 8 };

/* Reads a metric by its name, which includes the following space; 0: not present. */
static int metric_read(const struct bench_run *r, const char *name, double *ret, struct berth_err *err)
{
    const struct client_request request = {.method = "GET", .path = "/metrics"};
    struct client_answer answer = {0};
    int rc = client_do(r->client, &request, &answer, err);

    if (rc < 0)
        return rc;
    const char *at = strstr(str_text(&answer.body), name);
    if (answer.status != 200)
        rc = err_set(err, EPROTO, "GET /metrics is answered with %d", answer.status);
    else
        *ret = at ? strtod(at + strlen(name), NULL) : 0;
    client_answer_done(&answer);
    return rc;
}

/* Waits until no new segments are made. */
static int settle(const struct bench_run *r, double *ret_segments, struct berth_err *err)
{
    const struct timespec pause = {.tv_sec = 2};
    double before = -1;
    int rc = 0;
    *ret_segments = 0;
    while (rc == 0 && *ret_segments > before) {
        before = *ret_segments;
        (void)nanosleep(&pause, NULL);
        rc = metric_read(r, "\nberth_journal_segments_total ", ret_segments, err);
    }
    return rc;
}

static int settings_set(const struct bench_run *r, const char *body, struct berth_err *err)
{
    json_t *set = bench_run_ask(r, "PATCH", "/v1/system/settings", body, 200, err);
    json_decref(set);
    return set ? 0 : -err->code;
}

int bench_daemon_journal(struct bench_daemon *b, struct berth_err *err)
{
    CLEANUP(bench_run) struct bench_run r = {0};
    CLEANUP(bench_storm)
    struct bench_storm s = {.method = "POST", .path = "/v1/jobs", .body = BENCH_JOB_HELD, .status = 201};
    double segments = 0, spent_s = 0;
    int rc = bench_run_start(b, "journal", &r, err);

    if (rc < 0)
        return rc;
    rc = settings_set(&r, "{\"journal_segment_mb\":4}", err);
    if (rc == 0)
        rc = bench_storm_run(&s, &r, CLIENTS, (b->full ? 20 : 6) * SECOND_NS, err);
    if (rc == 0)
        rc = settings_set(&r, "{\"journal_segment_s\":1}", err); /* seals the remaining records, too */
    if (rc == 0)
        rc = settle(&r, &segments, err);
    if (rc == 0)
        rc = metric_read(&r, "\nberth_journal_seconds_sum ", &spent_s, err);
    if (rc < 0)
        return rc;
    double cpu_s = bench_run_cpu_s(&r);
    bench_row_add(b, (struct bench_row){.unit = UNIT_COUNT, .measured = segments},
                  "segments made of the records of %zu submissions", s.took.len);
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = segments > 0 ? spent_s / segments : 0},
                  "processor time of each segment");
    bench_row_add(b,
                  (struct bench_row){.unit = UNIT_RATIO,
                                     .measured = cpu_s > 0 ? spent_s / cpu_s : 0,
                                     .bound = BOUND_AT_MOST,
                                     .goal = SHARE_GOAL},
                  "of the daemon's processor time");
    return 0;
}
