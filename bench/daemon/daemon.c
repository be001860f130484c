/* daemon.c - `berth bench daemon`: measures a separate berthd from outside, and prints the results beside the goals. */
#include "bench/daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "berth.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/table.h"

struct bench_part {
    const char *name;
    int (*run)(struct bench_daemon *b, struct berth_err *err);
};

static const struct bench_part parts[] = {
    {"submit",   bench_daemon_submit  },
    {"get",      bench_daemon_get     },
    {"watchers", bench_daemon_watchers},
    {"idle",     bench_daemon_idle    },
    {"place",    bench_daemon_place   },
    {"backlog",  bench_daemon_backlog },
    {"array",    bench_daemon_array   },
    {"queue",    bench_daemon_queue   },
    {"journal",  bench_daemon_journal },
    {"load",     bench_daemon_load    },
};
enum { PARTS = sizeof parts / sizeof parts[0] };

static const char *const outputs[] = {"table", "json", NULL};
enum bench_daemon_output { OUTPUT_TABLE, OUTPUT_JSON };
static const char *const only[] = {"all",     "submit", "get",   "watchers", "idle", "place",
                                   "backlog", "array",  "queue", "journal",  "load", NULL};

struct bench_daemon_values {
    const char *berthd, *save;
    unsigned only, output;
    bool full;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("berthd", 0, bench_daemon_values, berthd, "FILE",
                    "Daemon to measure. Default: berthd next to this program, or on PATH."),
    OPTION_CHOICE_ROW("only", 0, bench_daemon_values, only, only, "Run only this part."),
    OPTION_FLAG_ROW("full", 0, bench_daemon_values, full,
                    "Run more and longer rounds, for some minutes instead of two."),
    OPTION_TEXT_ROW("save", 0, bench_daemon_values, save, "FILE", "Also write the JSON to this file."),
    OPTION_CHOICE_ROW("output", 'o', bench_daemon_values, output, outputs, "Output format."),
};

/* ---- rows ------------------------------------------------------------------------------------------------------- */

void bench_row_add(struct bench_daemon *b, struct bench_row row, const char *what, ...)
{
    va_list args;

    va_start(args, what);
    (void)vsnprintf(row.what, sizeof row.what, what, args);
    va_end(args);
    row.part = b->part;
    vec_push(&b->rows, row);
}

bool bench_row_met(const struct bench_row *row)
{
    switch (row->bound) {
    case BOUND_AT_MOST: return row->measured <= row->goal;
    case BOUND_AT_LEAST: return row->measured >= row->goal;
    case BOUND_NONE: break;
    }
    return true;
}

static struct human_text show_unit(enum bench_unit unit, double value)
{
    struct human_text shown = show_count((uint64_t)(value + 0.5));

    switch (unit) {
    case UNIT_SECONDS: return show_seconds(value);
    case UNIT_BYTES: return show_bytes((uint64_t)value);
    case UNIT_RATIO: return show_ratio(value);
    case UNIT_COUNT: return shown;
    case UNIT_PER_SECOND: break;
    }
    size_t len = strlen(shown.text);
    (void)snprintf(shown.text + len, sizeof shown.text - len, "/s");
    return shown;
}

static size_t missed(const struct bench_daemon *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->rows.len; i++)
        n += !bench_row_met(&b->rows.at[i]);
    return n;
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static void row_print(struct table *t, const struct bench_row *row, bool first)
{
    table_row(t);
    table_cell(t, 0, COLOR_NONE, "%s", first ? row->part : "");
    table_cell(t, 1, COLOR_NONE, "%s", row->what);
    if (row->bound != BOUND_NONE) {
        bool met = bench_row_met(row);
        table_cell(t, 2, COLOR_NONE, "%s %s",
                   row->bound == BOUND_AT_MOST ? "<=" : ">=", show_unit(row->unit, row->goal).text);
        table_cell(t, 4, met ? COLOR_GREEN : COLOR_RED, "%s", met ? "ok" : "MISSED");
    }
    table_cell(t, 3, COLOR_BOLD, "%s", show_unit(row->unit, row->measured).text);
    if (row->peer)
        table_cell(t, 5, COLOR_NONE, "%s", row->peer);
}

static void table_rows_print(const struct bench_daemon *b)
{
    static const struct table_column columns[] = {
        {"PART",     TABLE_PLAIN, 0},
        {"WHAT",     TABLE_PLAIN, 0},
        {"GOAL",     TABLE_RIGHT, 0},
        {"MEASURED", TABLE_RIGHT, 0},
        {"",         TABLE_PLAIN, 0},
        {"OTHERS",   TABLE_WRAP,  0},
    };
    struct table t;

    table_init(&t, b->cli, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < b->rows.len; i++)
        row_print(&t, &b->rows.at[i], i == 0 || b->rows.at[i].part != b->rows.at[i - 1].part);
    table_print(&t);
    table_done(&t);
    size_t n = missed(b);
    fprintf(b->cli->out,
            "\n"
            "Load generator and daemon shared this machine, whose load was %.1f on %ld cores. ",
            b->busy, sysconf(_SC_NPROCESSORS_ONLN));
    fprintf(b->cli->out, n ? "%zu missed.\n" : "All goals met.\n", n);
}

static json_t *rows_json(const struct bench_daemon *b)
{
    static const char *const units[] = {
        [UNIT_SECONDS] = "seconds", [UNIT_PER_SECOND] = "per_second", [UNIT_BYTES] = "bytes",
        [UNIT_RATIO] = "ratio",     [UNIT_COUNT] = "count",
    };
    json_t *rows = json_array();

    for (size_t i = 0; i < b->rows.len; i++) {
        const struct bench_row *row = &b->rows.at[i];
        json_t *object = json_pack("{s:s, s:s, s:s, s:f}", "part", row->part, "what", row->what, "unit",
                                   units[row->unit], "measured", row->measured);
        if (row->bound != BOUND_NONE) {
            (void)json_object_set_new(object, row->bound == BOUND_AT_MOST ? "at_most" : "at_least",
                                      json_real(row->goal));
            (void)json_object_set_new(object, "met", json_boolean(bench_row_met(row)));
        }
        if (row->peer)
            (void)json_object_set_new(object, "others", json_string(row->peer));
        (void)json_array_append_new(rows, object);
    }
    return json_pack("{s:s, s:b, s:f, s:I, s:o}", "version", berth_version(), "full", b->full, "load_average", b->busy,
                     "missed", (json_int_t)missed(b), "rows", rows);
}

int bench_rows_print(const struct bench_daemon *b, const char *save, bool json)
{
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    json_t *object = rows_json(b);
    int rc = EXIT_OK;

    if (save && json_dump_file(object, save, flags) != 0)
        rc = cli_fail(b->cli, EXIT_FAILED, "cannot write %s", save);
    if (json) {
        (void)json_dumpf(object, b->cli->out, flags);
        fputc('\n', b->cli->out);
    } else {
        table_rows_print(b);
    }
    json_decref(object);
    return rc;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static int parts_run(struct bench_daemon *b, unsigned chosen)
{
    struct berth_err err = {0};

    for (size_t i = 0; i < PARTS; i++) {
        if (chosen && strcmp(only[chosen], parts[i].name) != 0)
            continue;
        b->part = parts[i].name;
        if (b->cli->progress)
            fprintf(b->cli->err, "\r\033[KMeasuring %s", b->part);
        int rc = parts[i].run(b, &err);
        if (b->cli->progress)
            fputs("\r\033[K", b->cli->err);
        if (rc < 0)
            return cli_fail(b->cli, EXIT_FAILED, "%s: %s", b->part, err.text);
    }
    return EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct bench_daemon_values *v = values;
    const char *temporary = getenv("TMPDIR");
    CLEANUP(str) struct str folder = {0};
    struct berth_err err;

    (void)operands;
    CLEANUP(mem) char *program = bench_run_find(v->berthd, "berthd", "berthd", "berthd", &err);
    if (!program)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    str_addf(&folder, "%s/berth-bench-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder.at))
        return cli_fail(cli, EXIT_FAILED, "cannot create the folder %s: %s; set $TMPDIR to another folder", folder.at,
                        strerror(errno));
    struct bench_daemon b = {.cli = cli, .program = program, .folder = folder.at, .full = v->full};
    (void)getloadavg(&b.busy, 1);
    int rc = parts_run(&b, v->only);
    bench_folder_remove(folder.at);
    if (rc == EXIT_OK)
        rc = bench_rows_print(&b, v->save, v->output == OUTPUT_JSON);
    vec_done(&b.rows);
    return rc;
}

const struct command bench_daemon_command = {
    .name = "bench daemon",
    .operands = "",
    .summary = "Benchmark berthd on this machine against the goals.",
    .text = "Starts its own berthd in a temporary folder ($TMPDIR), loads it from this machine, and "
            "stops it: durable submissions, reads, idle watchers, idle unauthenticated connections, "
            "the time to a durable placement, large arrays, a long queue, the journal, the time to "
            "load a large cluster. Takes about two minutes, with --full longer. A missed goal is not "
            "an error: the exit code is 1 only if a measurement failed or an answer was wrong.",
    .examples = "  berth bench daemon --only submit\n  TMPDIR=/mnt/disk berth bench daemon --full -o json",
    .section = SECTION_FILES,
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct bench_daemon_values),
    .run = run,
};
