/* submit.c - durable submissions per second, and reads per second. */
#include <errno.h>
#include <inttypes.h>

#include "bench/daemon/daemon.h"

#define SUBMITS_PER_S_GOAL 3000.0
#define SLURM_SUBMITS "Slurm: 1,050 to 1,320/s by RPC, 330 to 520/s by REST; not durable"

enum { CLIENTS = 8, LIST_LEN = 1000 };

static void times_add(struct bench_daemon *b, const struct bench_storm *s, const char *what)
{
    const struct {
        const char *name;
        double share;
    } shares[] = {
        {"half within", 0.50},
        {"99 % within", 0.99},
    };

    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        bench_row_add(b,
                      (struct bench_row){.unit = UNIT_SECONDS,
                                         .measured = bench_quantile(s->took.at, s->took.len, shares[i].share)},
                      "%s, %s", what, shares[i].name);
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = s->cpu_s}, "%s, processor time of each",
                  what);
}

static int one_size(struct bench_daemon *b, const struct bench_run *r, size_t clients, struct bench_storm *sum,
                    struct berth_err *err)
{
    CLEANUP(bench_storm)
    struct bench_storm s = {
        .method = "POST", .path = "/v1/jobs", .body = BENCH_JOB_HELD, .status = 201, .keep_ids = true};
    char what[64];
    int rc = bench_storm_run(&s, r, clients, (b->full ? 10 : 3) * SECOND_NS, err);

    if (rc < 0)
        return rc;
    (void)snprintf(what, sizeof what, "%zu client%s", clients, clients == 1 ? "" : "s");
    struct bench_row row = {.unit = UNIT_PER_SECOND, .measured = s.per_s};
    if (clients == CLIENTS) {
        row.bound = BOUND_AT_LEAST;
        row.goal = SUBMITS_PER_S_GOAL;
        row.peer = SLURM_SUBMITS;
    }
    bench_row_add(b, row, "durable submissions, %s", what);
    times_add(b, &s, what);
    for (size_t i = 0; i < s.ids.len; i++)
        vec_push(&sum->ids, s.ids.at[i]);
    return 0;
}

static int sync_row(struct bench_daemon *b, const char *when, struct berth_err *err)
{
    struct bench_row row = {.unit = UNIT_PER_SECOND};
    int rc = bench_folder_syncs(b->folder, &row.measured, err);

    if (rc == 0)
        bench_row_add(b, row, "the disk alone, 4 KiB and fdatasync, %s", when);
    return rc;
}

/* Checks that every acknowledged job exists exactly once. */
static int check_ids(struct bench_daemon *b, const struct bench_run *r, struct bench_storm *sum, struct berth_err *err)
{
    size_t there = 0;
    int rc = bench_run_count(r, "jobs", &there, err);

    if (rc < 0)
        return rc;
    bench_sort((int64_t *)sum->ids.at, sum->ids.len);
    for (size_t i = 0; i < sum->ids.len; i++)
        if (sum->ids.at[i] == 0 || (i > 0 && sum->ids.at[i] == sum->ids.at[i - 1]))
            return err_set(err, EPROTO, "the id %" PRIu64 " was given out twice, or is none", sum->ids.at[i]);
    if (there != sum->ids.len)
        return err_set(err, EPROTO, "%zu jobs were acknowledged, but there are %zu", sum->ids.len, there);
    bench_row_add(b, (struct bench_row){.unit = UNIT_COUNT, .measured = (double)there},
                  "acknowledged, and there afterwards");
    return 0;
}

int bench_daemon_submit(struct bench_daemon *b, struct berth_err *err)
{
    static const size_t sizes[] = {CLIENTS, 1, 64};
    CLEANUP(bench_run) struct bench_run r = {0};
    CLEANUP(bench_storm) struct bench_storm sum = {0};
    int rc = bench_run_start(b, "submit", &r, err);

    if (rc == 0)
        rc = sync_row(b, "before", err);
    for (size_t i = 0; rc == 0 && i < sizeof sizes / sizeof *sizes; i++) {
        rc = one_size(b, &r, sizes[i], &sum, err);
        if (rc == 0 && i == 0)
            rc = sync_row(b, "after", err);
    }
    return rc == 0 ? check_ids(b, &r, &sum, err) : rc;
}

/* ---- reads ------------------------------------------------------------------------------------------------------ */

static int read_rows(struct bench_daemon *b, const struct bench_run *r, size_t clients, const char *path,
                     const char *what, struct berth_err *err)
{
    CLEANUP(bench_storm) struct bench_storm s = {.method = "GET", .path = path, .status = 200};
    int rc = bench_storm_run(&s, r, clients, (b->full ? 5 : 2) * SECOND_NS, err);

    if (rc < 0)
        return rc;
    bench_row_add(b, (struct bench_row){.unit = UNIT_PER_SECOND, .measured = s.per_s}, "%s", what);
    times_add(b, &s, what);
    return 0;
}

int bench_daemon_get(struct bench_daemon *b, struct berth_err *err)
{
    const struct bench_fill fill = {.jobs = 10 * LIST_LEN};
    CLEANUP(bench_run) struct bench_run r = {0};
    char one[64], list[64];
    int rc = bench_run_start(b, "get", &r, err);

    if (rc == 0)
        rc = bench_fill(b, &r, &fill, err);
    if (rc < 0)
        return rc;
    json_t *page = bench_run_ask(&r, "GET", "/v1/jobs?limit=1", NULL, 200, err);
    if (!page)
        return -err->code;
    const json_t *id = json_object_get(json_array_get(json_object_get(page, "items"), 0), "id");
    if (json_is_string(id))
        (void)snprintf(one, sizeof one, "/v1/jobs/%s", json_string_value(id));
    else
        (void)snprintf(one, sizeof one, "/v1/jobs/%lld", (long long)json_integer_value(id));
    json_decref(page);
    (void)snprintf(list, sizeof list, "/v1/jobs?limit=%d", LIST_LEN);
    rc = read_rows(b, &r, CLIENTS, one, "reading a job, 8 clients", err);
    if (rc == 0)
        rc = read_rows(b, &r, 1, list, "listing 1,000 jobs, 1 client", err);
    return rc;
}
