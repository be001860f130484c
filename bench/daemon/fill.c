/* fill.c - creates a synthetic cluster of any size through the API, a thousand changes per transaction. */
#include <errno.h>
#include <unistd.h>

#include "bench/daemon/daemon.h"

enum { PLACE_S_MAX = 120 };

/* Writes the nth object of its kind. */
typedef void object_write(struct str *to, size_t n, const struct bench_fill *fill);

static void node_write(struct str *to, size_t n, const struct bench_fill *fill)
{
    static const unsigned cores[] = {16, 32, 48, 64};
    unsigned cpu = cores[n % 4];

    (void)fill;
    str_addf(to,
             "{\"op\":\"put\",\"kind\":\"node\",\"id\":\"n%05zu\",\"object\":{\"allocatable\":{\"cpu\":%u,\"memory\":"
             "\"%uGi\",\"pods\":110},\"zone\":\"zone-%zu\",\"rack\":\"rack-%zu\",\"labels\":{\"disk\":\"%s\"}}}",
             n, cpu, cpu * 4, n % 4, n / 40, n % 2 ? "ssd" : "nvme");
}

static void app_write(struct str *to, size_t n, const struct bench_fill *fill)
{
    str_addf(
        to,
        "{\"op\":\"put\",\"kind\":\"app\",\"id\":\"app-%05zu\",\"object\":{\"replicas\":%zu,\"image\":\"web:1.%zu\","
        "\"requests\":{\"cpu\":\"%zum\",\"memory\":\"%zuMi\"},\"endpoints\":[{\"name\":\"http\",\"protocol\":\"tcp\"}]}}",
        n, fill->replicas, n % 10, 100 + 50 * (n % 8), 128 + 64 * (n % 8));
}

static void job_write(struct str *to, size_t n, const struct bench_fill *fill)
{
    str_addf(to,
             "{\"op\":\"put\",\"kind\":\"job\",\"object\":{\"name\":\"train-%zu\",\"command\":[\"/usr/bin/python3\","
             "\"train.py\",\"--seed\",\"%zu\"],\"requests\":{\"cpu\":%zu,\"memory\":\"%zuGi\"},\"hold\":%s}}",
             n, n, 1 + n % 4, 1 + n % 8, fill->waiting ? "false" : "true");
}

/* Writes a transaction of the objects from `from` on, of `len` in all; returns the start of the next transaction. */
static size_t txn_write(struct str *to, size_t from, size_t len, object_write *write, const struct bench_fill *fill)
{
    size_t end = len - from < BENCH_CHANGES ? len : from + BENCH_CHANGES;

    str_add(to, "{\"changes\":[");
    for (size_t n = from; n < end; n++) {
        if (n > from)
            str_add_char(to, ',');
        write(to, n, fill);
    }
    str_add(to, "]}");
    return end;
}

void bench_fill_nodes(struct str *to, size_t from, size_t len)
{
    (void)txn_write(to, from, len, node_write, NULL);
}

static int put_all(const struct bench_daemon *b, const struct bench_run *r, const char *what, size_t len,
                   object_write *write, const struct bench_fill *fill, struct berth_err *err)
{
    CLEANUP(str) struct str body = {0};

    for (size_t done = 0; done < len;) {
        if (b->cli->progress)
            fprintf(b->cli->err, "\r\033[KMaking %s: %zu of %zu", what, done, len);
        str_clear(&body);
        size_t end = txn_write(&body, done, len, write, fill);
        json_t *answer = bench_run_ask(r, "POST", "/v1/txn", body.at, 200, err);
        if (!answer)
            return -err->code;
        json_decref(answer);
        done = end;
    }
    return 0;
}

/* Requests plans until all replicas are placed. A plan is answered once it is durable; conflicts are resolved by the
 * next plan. */
static int wait_placed(const struct bench_daemon *b, const struct bench_run *r, const struct bench_fill *fill,
                       struct berth_err *err)
{
    int64_t end_ns = cli_clock_ns() + PLACE_S_MAX * SECOND_NS;
    size_t placed = 0, wanted = fill->apps * fill->replicas;

    while (placed < wanted) {
        json_t *plan = bench_run_ask(r, "POST", "/v1/schedule", NULL, 200, err);
        if (!plan)
            return -err->code;
        json_decref(plan);
        int rc = bench_run_count(r, "instances", &placed, err);
        if (rc < 0)
            return rc;
        if (cli_clock_ns() > end_ns)
            return err_set(err, ETIMEDOUT, "only %zu of %zu replicas have a place after %d s", placed, wanted,
                           PLACE_S_MAX);
        if (b->cli->progress)
            fprintf(b->cli->err, "\r\033[KPlacing: %zu of %zu", placed, wanted);
    }
    return 0;
}

int bench_fill(const struct bench_daemon *b, const struct bench_run *r, const struct bench_fill *fill,
               struct berth_err *err)
{
    int rc = put_all(b, r, "nodes", fill->nodes, node_write, fill, err);

    if (rc == 0)
        rc = put_all(b, r, "apps", fill->apps, app_write, fill, err);
    if (rc == 0 && fill->apps)
        rc = wait_placed(b, r, fill, err);
    if (rc == 0)
        rc = put_all(b, r, "jobs", fill->jobs, job_write, fill, err);
    if (b->cli->progress)
        fputs("\r\033[K", b->cli->err);
    return rc;
}
