/* storm.c - repeats one request and records the duration of each. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/daemon/daemon.h"

struct storming {
    struct bench_storm *storm;
    struct str request;
    int64_t end_ns;
    int other; /* an unexpected status; 0: none */
    char said[200];
};

/* Compares durations; equal durations are interchangeable. */
static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void bench_sort(int64_t *took, size_t len)
{
    if (len)
        qsort(took, len, sizeof *took, compare);
}

double bench_quantile(const int64_t *took, size_t len, double share)
{
    if (len == 0)
        return 0;
    size_t at = (size_t)(share * (double)len);
    return (double)took[at < len ? at : len - 1] / (double)SECOND_NS;
}

double bench_median(double *values, size_t len)
{
    assert(len > 0);
    qsort(values, len, sizeof *values, compare_doubles);
    return len % 2 ? values[len / 2] : (values[len / 2 - 1] + values[len / 2]) / 2;
}

void bench_storm_done(struct bench_storm *s)
{
    vec_done(&s->took);
    vec_done(&s->ids);
}

static bool next(void *ctx, size_t i, struct str *to)
{
    struct storming *s = ctx;

    (void)i;
    if (s->other || cli_clock_ns() >= s->end_ns)
        return false;
    str_add_bytes(to, s->request.at, s->request.len);
    return true;
}

/* Returns the number after "id": in an answer such as {"id":17,...} or {"id":"17",...}; 0: none. */
static uint64_t id_of(const char *body)
{
    const char *at = strstr(body, "\"id\":");

    if (!at)
        return 0;
    at += strlen("\"id\":");
    at += strspn(at, " \"");
    return strtoull(at, NULL, 10);
}

static void answered(void *ctx, size_t i, const struct bench_answer *a, int64_t took_ns)
{
    struct storming *s = ctx;

    (void)i;
    if (a->status != s->storm->status) {
        s->other = a->status;
        (void)snprintf(s->said, sizeof s->said, "%s", str_text(&a->body));
        return;
    }
    vec_push(&s->storm->took, took_ns);
    if (s->storm->keep_ids)
        vec_push(&s->storm->ids, id_of(str_text(&a->body)));
}

int bench_storm_run(struct bench_storm *s, const struct bench_run *run, size_t clients, int64_t for_ns,
                    struct berth_err *err)
{
    static const struct bench_fleet_calls calls = {.next = next, .answered = answered};
    CLEANUP(bench_fleet) struct bench_fleet *fleet = NULL;
    struct storming storming = {.storm = s};
    size_t before = s->took.len;
    int rc = bench_fleet_new(&run->server, clients, &fleet, err);

    if (rc < 0)
        return rc;
    bench_request(&storming.request, &run->server, s->method, s->path, NULL, s->body);
    double cpu_s = bench_run_cpu_s(run);
    int64_t begin_ns = cli_clock_ns();
    storming.end_ns = begin_ns + for_ns;
    rc = bench_fleet_run(fleet, &calls, &storming, for_ns + 60 * SECOND_NS, err);
    s->per_s = (double)(s->took.len - before) / ((double)(cli_clock_ns() - begin_ns) / (double)SECOND_NS);
    s->cpu_s = (bench_run_cpu_s(run) - cpu_s) / (double)(s->took.len > before ? s->took.len - before : 1);
    str_done(&storming.request);
    bench_sort(s->took.at, s->took.len);
    if (rc == 0 && storming.other)
        rc = err_set(err, EPROTO, "%s %s is answered with %d, not %d: %s", s->method, s->path, storming.other,
                     s->status, storming.said);
    return rc;
}
