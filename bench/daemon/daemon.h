/* daemon.h - what the parts of `berth bench daemon` share: a berthd of their own, load, and rows of results.
 *
 * Each part starts berthd in a temporary folder, measures it from outside, through the API alone, and adds rows: what was
 * measured, its goal where there is one, what others reach. Load comes from the same machine, so the daemon does not have
 * all of it; that is part of what is measured.
 *
 *     daemon.c          the verb, the table of parts, the output
 *     run.c      berthd: find it, start it, ask it, stop it
 *     storm.c    the same request again and again, and how long each took
 *     fill.c     a made-up cluster, through the API
 *     bench_daemon_<part>.c   the parts
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

/* ---- results ------------------------------------------------------------------------------------------------------ */

enum bench_unit { UNIT_SECONDS, UNIT_PER_SECOND, UNIT_BYTES, UNIT_RATIO, UNIT_COUNT };
enum bench_bound { BOUND_NONE, BOUND_AT_MOST, BOUND_AT_LEAST };

struct bench_row {
    char what[120];
    enum bench_unit unit;
    double measured;
    enum bench_bound bound;
    double goal;
    const char *peer; /* what others reach; NULL: not known */
    const char *part; /* filled in */
};

struct bench_daemon {
    const struct cli *cli;
    const char *program; /* berthd */
    const char *folder;  /* for data, temporary */
    bool full;           /* full size, not quick */
    bool agents;         /* the daemon is there for agents, too, with leases as usual */
    double busy;         /* load average when it began: what else the machine does */
    const char *part;    /* that is running */
    VEC(struct bench_row) rows;
};

/* Adds a row; `what` may be a format. */
void bench_row_add(struct bench_daemon *b, struct bench_row row, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
bool bench_row_met(const struct bench_row *row);
/* A table or JSON to standard output, and JSON to the file `save`, where that is not NULL; the verb's exit code. */
int bench_rows_print(const struct bench_daemon *b, const char *save, bool json);

/* ---- berthd ------------------------------------------------------------------------------------------------------- */

struct client;

struct bench_run {
    pid_t pid;
    double ready_s; /* from exec to `ready` */
    double ready_cpu_s;
    char url[64], token[160];
    struct bench_server server;
    struct client *client; /* for what is not measured */
};

/* Where a program is: as told, beside this one as installed or as built (in src/BUILT), or on PATH. To be freed; NULL with
 * err set, which says that --OPTION names it. */
char *bench_run_find(const char *told, const char *name, const char *built, const char *option, struct berth_err *err);
/* Starts it on FOLDER/name, which is made if it is not there. */
int bench_run_start(const struct bench_daemon *b, const char *name, struct bench_run *ret, struct berth_err *err);
/* Ends it in good order; how it ended does not matter. All zero is fine. */
void bench_run_stop(struct bench_run *r);
/* Resident memory; 0: cannot be read. */
uint64_t bench_run_rss_bytes(const struct bench_run *r);
/* Processor time since it began, of all its threads, in seconds; a measure that neighbours disturb little. */
double bench_run_cpu_s(const struct bench_run *r);
/* One request, of which the answer must be `status`. The body is a new reference; NULL with err set. */
json_t *bench_run_ask(const struct bench_run *r, const char *method, const char *path, const char *body, int status,
                      struct berth_err *err);

static inline void bench_run_cleanup(struct bench_run *r)
{
    bench_run_stop(r);
}

/* All objects of a collection, page by page; NULL with err set. */
json_t *bench_run_list(const struct bench_run *r, const char *kind, struct berth_err *err);
/* Objects of a collection, counted by reading all of it. */
int bench_run_count(const struct bench_run *r, const char *kind, size_t *ret, struct berth_err *err);
int bench_run_revision(const struct bench_run *r, uint64_t *ret, struct berth_err *err);

/* Removes a folder with all that is in it. */
void bench_folder_remove(const char *path);
/* How often a second 4 KiB can be written and synced there. */
int bench_folder_syncs(const char *path, double *ret_per_s, struct berth_err *err);

/* ---- load --------------------------------------------------------------------------------------------------------- */

struct bench_storm {
    const char *method, *path, *body;
    int status;        /* that every answer must have */
    bool keep_ids;     /* of what was made */
    double per_s;      /* result: answers a second */
    double cpu_s;      /* result: processor time that the daemon took for each */
    VEC(int64_t) took; /* result: nanoseconds of each, in order of size */
    VEC(uint64_t) ids; /* result, with keep_ids */
};

void bench_storm_done(struct bench_storm *s);
/* Sends the request on `clients` connections, each as soon as it has its answer, for that long. Results are added to
 * those that are there, but per_s. */
int bench_storm_run(struct bench_storm *s, const struct bench_run *run, size_t clients, int64_t for_ns,
                    struct berth_err *err);
/* The value below which this share lies, in seconds; 0 of none. `took` must be in order. */
double bench_quantile(const int64_t *took, size_t len, double share);
double bench_median(double *values, size_t len); /* sorts them */
void bench_sort(int64_t *took, size_t len);

static inline void bench_storm_cleanup(struct bench_storm *s)
{
    bench_storm_done(s);
}

/* A job as users send it, that waits until it is released; and one that runs. */
#define BENCH_JOB_KEYS                                                                                                 \
    "\"name\":\"train\",\"command\":[\"/usr/bin/python3\",\"train.py\",\"--epochs\",\"3\"],\"env\":{\"SEED\":\"1\"},"  \
    "\"resources\":{\"cpu\":1,\"memory\":\"1Gi\"}"
#define BENCH_JOB_HELD "{" BENCH_JOB_KEYS ",\"hold\":true}"
#define BENCH_JOB "{" BENCH_JOB_KEYS "}"

struct bench_fill {
    size_t nodes, apps, replicas, jobs; /* apps of so many replicas each */
    bool waiting;                       /* jobs wait for nodes, and are not held */
};
/* Makes them, and waits until all replicas have their place; for jobs it does not wait. */
int bench_fill(const struct bench_daemon *b, const struct bench_run *r, const struct bench_fill *fill,
               struct berth_err *err);

/* The body of a transaction that adds nodes: up to BENCH_CHANGES of them, from the nth on, of `len` in all. */
enum { BENCH_CHANGES = 1000 };
void bench_fill_nodes(struct str *to, size_t from, size_t len);

/* How long from handing in a job of one pod until its instance is durable: `samples` times, one after another. */
int bench_place_times(const struct bench_run *r, size_t samples, int64_t *ret_took, struct berth_err *err);

/* ---- parts -------------------------------------------------------------------------------------------------------- */

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
