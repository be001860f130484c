/* daemon.h - shared by the parts of `berth bench daemon`: a separate berthd, load generators, and rows of results.
 *
 * Each part starts berthd in a temporary folder, measures from outside, through the API alone, and adds rows: a
 * measured value, its goal if there is one, and the values of other systems. The load comes from the same machine and
 * takes CPU time from the daemon; the results include that.
 *
 *     daemon.c   the verb, the table of parts, the output
 *     run.c      berthd: find it, start it, send requests, stop it
 *     storm.c    repeats one request and records each duration
 *     fill.c     creates a synthetic cluster through the API
 *     <part>.c   the parts
 *
 * To add a part: a function here, and a row in the table of daemon.c.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "bench/load/client.h"
#include "cli/lib/cli.h"

#define SECOND_NS INT64_C(1000000000)

/* ---- results ---------------------------------------------------------------------------------------------------- */

enum bench_unit { UNIT_SECONDS, UNIT_PER_SECOND, UNIT_BYTES, UNIT_RATIO, UNIT_COUNT };
enum bench_bound { BOUND_NONE, BOUND_AT_MOST, BOUND_AT_LEAST };

struct bench_row {
    char what[120];
    enum bench_unit unit;
    double measured;
    enum bench_bound bound;
    double goal;
    const char *peer; /* value of other systems; NULL: not known */
    const char *part; /* set by bench_row_add */
};

struct bench_daemon {
    const struct cli *cli;
    const char *program; /* berthd */
    const char *folder;  /* temporary, for data */
    bool full;           /* full size instead of quick */
    bool agents;         /* the daemon also serves agents, with the default leases */
    double busy;         /* load average at the start */
    const char *part;    /* name of the running part */
    VEC(struct bench_row) rows;
};

/* Adds a row; `what` is a format string. */
void bench_row_add(struct bench_daemon *b, struct bench_row row, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
bool bench_row_met(const struct bench_row *row);
/* Prints a table or JSON to standard output, and JSON to the file `save` unless that is NULL. Returns the verb's exit
 * code. */
int bench_rows_print(const struct bench_daemon *b, const char *save, bool json);

/* ---- berthd ----------------------------------------------------------------------------------------------------- */

struct client;

struct bench_run {
    pid_t pid;
    double ready_s; /* from exec to `ready` */
    double ready_cpu_s;
    char url[64], token[160];
    struct bench_server server;
    struct client *client; /* for requests that are not measured */
};

/* Finds a program: the path `told`, beside this program as installed or as built (in src/BUILT), or on PATH. The caller
 * frees the result. Returns NULL with an error that names --OPTION. */
char *bench_run_find(const char *told, const char *name, const char *built, const char *option, struct berth_err *err);
/* Starts berthd on FOLDER/name, which is created if it does not exist. */
int bench_run_start(const struct bench_daemon *b, const char *name, struct bench_run *ret, struct berth_err *err);
/* Stops berthd by SIGTERM; ignores its exit status. Accepts a zeroed struct. */
void bench_run_stop(struct bench_run *r);
/* Returns the resident memory; 0: cannot be read. */
uint64_t bench_run_rss_bytes(const struct bench_run *r);
/* Returns the CPU time of all threads since the start in seconds. Other load on the machine hardly affects CPU time. */
double bench_run_cpu_s(const struct bench_run *r);
/* Sends one request and requires the answer's status to be `status`. Returns the body, a new reference; NULL with err
 * set. */
json_t *bench_run_ask(const struct bench_run *r, const char *method, const char *path, const char *body, int status,
                      struct berth_err *err);

static inline void bench_run_cleanup(struct bench_run *r)
{
    bench_run_stop(r);
}

/* Reads all objects of a collection page by page; NULL with err set. */
json_t *bench_run_list(const struct bench_run *r, const char *kind, struct berth_err *err);
/* Counts the objects of a collection by reading all of them. */
int bench_run_count(const struct bench_run *r, const char *kind, size_t *ret, struct berth_err *err);
int bench_run_revision(const struct bench_run *r, uint64_t *ret, struct berth_err *err);

/* Removes a folder with its contents. */
void bench_folder_remove(const char *path);
/* Measures how many times per second 4 KiB can be written and synced in a folder. */
int bench_folder_syncs(const char *path, double *ret_per_s, struct berth_err *err);

/* ---- load ------------------------------------------------------------------------------------------------------- */

struct bench_storm {
    const char *method, *path, *body;
    int status;        /* required status of every answer */
    bool keep_ids;     /* record the ids of created objects */
    double per_s;      /* result: answers per second */
    double cpu_s;      /* result: the daemon's CPU time per answer */
    VEC(int64_t) took; /* result: durations in nanoseconds, sorted */
    VEC(uint64_t) ids; /* result, with keep_ids */
};

void bench_storm_done(struct bench_storm *s);
/* Sends the request on `clients` connections for `for_ns`; each connection sends again as soon as it has its answer.
 * Results are added to earlier ones, except per_s. */
int bench_storm_run(struct bench_storm *s, const struct bench_run *run, size_t clients, int64_t for_ns,
                    struct berth_err *err);
/* Returns the quantile `share` in seconds; 0 for no values. `took` must be sorted. */
double bench_quantile(const int64_t *took, size_t len, double share);
double bench_median(double *values, size_t len); /* sorts them */
void bench_sort(int64_t *took, size_t len);

static inline void bench_storm_cleanup(struct bench_storm *s)
{
    bench_storm_done(s);
}

/* A typical job that is held, and one that runs. */
#define BENCH_JOB_KEYS                                                                                                 \
    "\"name\":\"train\",\"command\":[\"/usr/bin/python3\",\"train.py\",\"--epochs\",\"3\"],\"env\":{\"SEED\":\"1\"},"  \
    "\"resources\":{\"cpu\":1,\"memory\":\"1Gi\"}"
#define BENCH_JOB_HELD "{" BENCH_JOB_KEYS ",\"hold\":true}"
#define BENCH_JOB "{" BENCH_JOB_KEYS "}"

struct bench_fill {
    size_t nodes, apps, replicas, jobs; /* each app has `replicas` replicas */
    bool waiting;                       /* jobs are pending instead of held */
};
/* Creates the objects and waits until all replicas are placed; does not wait for jobs. */
int bench_fill(const struct bench_daemon *b, const struct bench_run *r, const struct bench_fill *fill,
               struct berth_err *err);

/* Appends the body of a transaction that adds nodes: at most BENCH_CHANGES of `len`, starting with the node `from`. */
enum { BENCH_CHANGES = 1000 };
void bench_fill_nodes(struct str *to, size_t from, size_t len);

/* Measures the time from the submission of a job with one pod until its instance is durable, `samples` times in
 * sequence. */
int bench_place_times(const struct bench_run *r, size_t samples, int64_t *ret_took, struct berth_err *err);

/* ---- parts ------------------------------------------------------------------------------------------------------ */

int bench_daemon_submit(struct bench_daemon *b, struct berth_err *err);
int bench_daemon_get(struct bench_daemon *b, struct berth_err *err);
int bench_daemon_watchers(struct bench_daemon *b, struct berth_err *err);
int bench_daemon_load(struct bench_daemon *b, struct berth_err *err);
int bench_daemon_place(struct bench_daemon *b, struct berth_err *err);
int bench_daemon_backlog(struct bench_daemon *b, struct berth_err *err);
int bench_daemon_array(struct bench_daemon *b, struct berth_err *err);
int bench_daemon_queue(struct bench_daemon *b, struct berth_err *err);
int bench_daemon_idle(struct bench_daemon *b, struct berth_err *err);
int bench_daemon_journal(struct bench_daemon *b, struct berth_err *err);
