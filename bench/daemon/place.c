/* place.c - time from a request to a durable placement, in a busy cluster and right after a start. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bench/daemon/daemon.h"
#include "cli/lib/human.h"
#include "store/store.h"

#define PLACE_S_GOAL 0.020
#define READY_S_GOAL 2.0

enum { SAMPLES = 200 };
/* Indices of connections. */
enum { STREAM, SUBMITS, CONNS };

struct placing {
    struct bench_fleet *fleet;
    const struct bench_run *run;
    char path[64];
    struct str line; /* incomplete line of the stream */
    bool watches, asked;
    char id[32];     /* id of the current job; "": not known yet */
    char placed[32]; /* job of the last instance seen */
    int64_t began_ns, seen_ns;
    int64_t *took;
    size_t len, wanted;
    char trouble[200];
};

static bool next(void *ctx, size_t i, struct str *to)
{
    struct placing *p = ctx;

    if (i == STREAM) {
        bench_request(to, &p->run->server, "GET", p->path, NULL, NULL);
        return true;
    }
    if (!p->watches || p->asked || p->len == p->wanted)
        return false;
    p->asked = true;
    p->id[0] = p->placed[0] = '\0';
    p->began_ns = cli_clock_ns();
    bench_request(to, &p->run->server, "POST", "/v1/jobs", NULL, BENCH_JOB);
    return true;
}

static void give_up(struct placing *p, const char *what, const char *text)
{
    (void)snprintf(p->trouble, sizeof p->trouble, "%s: %.150s", what, text);
    bench_fleet_stop(p->fleet);
}

/* Starts the next sample once the job's id is known and its instance was seen. */
static void sample_check(struct placing *p)
{
    if (!p->asked || !p->id[0] || !p->placed[0])
        return;
    if (strcmp(p->id, p->placed) != 0) {
        give_up(p, "an instance of another workload was placed", p->placed);
        return;
    }
    p->took[p->len++] = p->seen_ns - p->began_ns;
    p->asked = false;
    if (p->len == p->wanted)
        bench_fleet_stop(p->fleet);
    else
        bench_fleet_wake(p->fleet, SUBMITS);
}

static void text_of(const json_t *value, char *buf, size_t size)
{
    if (json_is_string(value))
        (void)snprintf(buf, size, "%s", json_string_value(value));
    else
        (void)snprintf(buf, size, "%lld", (long long)json_integer_value(value));
}

static void line_read(struct placing *p, const char *line)
{
    json_t *event = json_loads(line, 0, NULL);
    const char *type = json_string_value(json_object_get(event, "type"));

    if (!type || strcmp(type, "put") != 0) {
        give_up(p, "the watch says", line);
    } else if (p->asked && !p->placed[0]) {
        p->seen_ns = cli_clock_ns();
        text_of(json_object_get(json_object_get(event, "object"), "workload"), p->placed, sizeof p->placed);
        sample_check(p);
    }
    json_decref(event);
}

static bool piece(void *ctx, size_t i, const char *at, size_t len)
{
    struct placing *p = ctx;

    if (i != STREAM)
        return false;
    for (const char *end = at + len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        str_add_bytes(&p->line, at, (size_t)(stop - at));
        at = stop + (newline != NULL);
        if (newline && p->line.len)
            line_read(p, p->line.at);
        if (newline)
            str_clear(&p->line);
    }
    return true;
}

static void begun(void *ctx, size_t i, const struct bench_answer *a)
{
    struct placing *p = ctx;

    if (i != STREAM)
        return;
    if (a->status != 200)
        give_up(p, "the watch is refused", "see the log");
    p->watches = true;
    bench_fleet_wake(p->fleet, SUBMITS);
}

static void answered(void *ctx, size_t i, const struct bench_answer *a, int64_t took_ns)
{
    struct placing *p = ctx;
    json_t *answer = json_loadb(str_text(&a->body), a->body.len, 0, NULL);

    (void)took_ns;
    if (i == STREAM || a->status != 201) {
        give_up(p, i == STREAM ? "the watch has ended" : "a job is refused", str_text(&a->body));
    } else {
        text_of(json_object_get(answer, "id"), p->id, sizeof p->id);
        sample_check(p);
    }
    json_decref(answer);
}

int bench_place_times(const struct bench_run *r, size_t samples, int64_t *ret_took, struct berth_err *err)
{
    static const struct bench_fleet_calls calls = {.next = next, .begun = begun, .piece = piece, .answered = answered};
    struct placing p = {.run = r, .took = ret_took, .wanted = samples};
    uint64_t revision;
    int rc = bench_run_revision(r, &revision, err);

    if (rc == 0)
        rc = bench_fleet_new(&r->server, CONNS, &p.fleet, err);
    if (rc < 0)
        return rc;
    (void)snprintf(p.path, sizeof p.path, "/v1/instances?watch=%" PRIu64, revision);
    rc = bench_fleet_run(p.fleet, &calls, &p, 120 * SECOND_NS, err);
    if (rc == 0 && p.trouble[0])
        rc = err_set(err, EPROTO, "%s", p.trouble);
    bench_fleet_free(p.fleet);
    str_done(&p.line);
    return rc;
}

/* ---- in a busy cluster ------------------------------------------------------------------------------------------ */

int bench_daemon_place(struct bench_daemon *b, struct berth_err *err)
{
    const struct bench_fill fill = {.nodes = 1000, .apps = 1000, .replicas = 10};
    CLEANUP(bench_run) struct bench_run r = {0};
    CLEANUP(mem) int64_t *took = mem_zarray(SAMPLES, sizeof *took);
    int rc = bench_run_start(b, "place", &r, err);

    if (rc == 0)
        rc = bench_fill(b, &r, &fill, err);
    if (rc == 0)
        rc = bench_place_times(&r, SAMPLES, took, err);
    if (rc < 0)
        return rc;
    bench_sort(took, SAMPLES);
    bench_row_add(b,
                  (struct bench_row){.unit = UNIT_SECONDS,
                                     .measured = bench_quantile(took, SAMPLES, 0.5),
                                     .bound = BOUND_AT_MOST,
                                     .goal = PLACE_S_GOAL},
                  "from a request to a durable place, 1,000 nodes, 10,000 pods, half within");
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_quantile(took, SAMPLES, 0.99)},
                  "the same, 99 %% within");
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_quantile(took, SAMPLES, 1)},
                  "the same, the longest of %d", SAMPLES);
    return 0;
}

/* ---- right after a start ---------------------------------------------------------------------------------------- */

/* Measures reading and verifying the store alone, in a process that has read the file before. */
static int verify_time(const struct bench_daemon *b, double *ret_s, struct berth_err *err)
{
    const struct store_options options = {.readonly = true};
    CLEANUP(str) struct str data = {0};
    struct store *store;

    str_addf(&data, "%s/load", b->folder);
    int64_t begin_ns = cli_clock_ns();
    int rc = store_sqlite_open(data.at, &options, &store, err);
    if (rc < 0)
        return rc;
    *ret_s = (double)(cli_clock_ns() - begin_ns) / (double)SECOND_NS;
    store_close(store);
    return 0;
}

static int load_measure(struct bench_daemon *b, size_t objects, struct berth_err *err)
{
    CLEANUP(bench_run) struct bench_run r = {0};
    double verify_s = 0;
    int64_t took[1] = {0};
    int rc = verify_time(b, &verify_s, err);

    if (rc == 0)
        rc = bench_run_start(b, "load", &r, err);
    if (rc == 0)
        rc = bench_place_times(&r, 1, took, err);
    if (rc < 0)
        return rc;
    bench_row_add(
        b,
        (struct bench_row){.unit = UNIT_SECONDS, .measured = r.ready_s, .bound = BOUND_AT_MOST, .goal = READY_S_GOAL},
        "from exec to ready with %s objects", show_count(objects).text);
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = r.ready_cpu_s}, "the same, processor time");
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = verify_s},
                  "opening that store by itself, everything verified");
    bench_row_add(b, (struct bench_row){.unit = UNIT_SECONDS, .measured = (double)took[0] / (double)SECOND_NS},
                  "a job handed in right then has its durable place after");
    bench_row_add(b, (struct bench_row){.unit = UNIT_BYTES, .measured = (double)bench_run_rss_bytes(&r)},
                  "resident memory with %s objects", show_count(objects).text);
    return 0;
}

int bench_daemon_load(struct bench_daemon *b, struct berth_err *err)
{
    const struct bench_fill fill = {.nodes = 1000, .apps = 1000, .replicas = 10, .jobs = 88000};
    CLEANUP(bench_run) struct bench_run r = {0};
    int rc = bench_run_start(b, "load", &r, err);

    if (rc == 0)
        rc = bench_fill(b, &r, &fill, err);
    bench_run_stop(&r);
    return rc < 0 ? rc : load_measure(b, fill.nodes + fill.apps * (1 + fill.replicas) + fill.jobs, err);
}
