/* bench.c - `berth bench`: measures every goal and every curve of bench/plan/suite.c on this machine. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bench/plan/suite.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/table.h"

static const char *const outputs[] = {"table", "json", NULL};
enum bench_output { OUTPUT_TABLE, OUTPUT_JSON };

struct bench_values {
    struct option_count seed, runs;
    bool quick;
    const char *save;
    unsigned output;
};

static const struct bench_values defaults = {
    .seed = {.n = 1},
    .runs = {.n = 5},
};

static const struct option options[] = {
    OPTION_FLAG_ROW("quick", 'q', bench_values, quick, "Run a tenth of the size, for some seconds."),
    OPTION_COUNT_ROW("runs", 'r', bench_values, runs, 1, BENCH_RUNS_MAX,
                     "Number of plans per case; the median counts. Default: 5."),
    OPTION_COUNT_ROW("seed", 0, bench_values, seed, 0, INT64_MAX, "Seed of the generated clusters. Default: 1."),
    OPTION_TEXT_ROW("save", 0, bench_values, save, "FILE", "Also write the JSON to this file."),
    OPTION_CHOICE_ROW("output", 'o', bench_values, output, outputs, "Output format."),
};

struct bench_session {
    struct cli *cli;
    const struct bench_values *values;
    const struct bench_suite *suite;
    struct bench_case *cases;
    struct bench_result *results;
    size_t missed, unsound;
};

static int measure(struct bench_session *b)
{
    struct berth_err err;

    for (size_t i = 0; i < b->suite->cases_len; i++) {
        b->cases[i] = (struct bench_case){
            .size = b->suite->cases[i],
            .runs = b->values->runs.n,
            .one_more = bench_suite_asks(b->suite, i, MEASURE_ONE_MORE),
            .many_more = bench_suite_asks(b->suite, i, MEASURE_MANY_MORE),
        };
        b->cases[i].size.seed = b->values->seed.n;
        if (b->cli->progress)
            fprintf(b->cli->err, "\r\033[KMeasuring %zu of %zu: %s pods of %s workloads on %s nodes", i + 1,
                    b->suite->cases_len, show_count(b->cases[i].size.pods).text,
                    show_count(b->cases[i].size.workloads).text, show_count(b->cases[i].size.nodes).text);
        int rc = bench_case_fork(&b->cases[i], &b->results[i], &err);
        if (b->cli->progress)
            fputs("\r\033[K", b->cli->err);
        if (rc != 0)
            return cli_fail(b->cli, EXIT_FAILED, "%s%s", err.text,
                            rc == -ECHILD ? "; 'berth bench --quick' needs a tenth of the memory" : "");
        b->unsound += !bench_result_sound(&b->results[i]);
    }
    return EXIT_OK;
}

static double measured(const struct bench_session *b, const struct bench_goal *goal)
{
    const struct bench_result *r = &b->results[goal->of];

    switch (goal->measure) {
    case MEASURE_SECONDS: return r->all.median;
    case MEASURE_ONE_MORE: return r->one_more.median;
    case MEASURE_MANY_MORE: return r->many_more.median;
    case MEASURE_BYTES: return (double)r->rss_bytes;
    case MEASURE_RATIO: return r->all.median / b->results[goal->over].all.median;
    }
    return 0;
}

static struct human_text show_measure(enum bench_measure measure, double value)
{
    switch (measure) {
    case MEASURE_SECONDS:
    case MEASURE_ONE_MORE:
    case MEASURE_MANY_MORE: return show_seconds(value);
    case MEASURE_BYTES: return show_bytes((uint64_t)value);
    case MEASURE_RATIO: return show_ratio(value);
    }
    return (struct human_text){""};
}

/* Uses the minimum of each case, because noise only adds time. */
static double growth(const struct bench_session *b, size_t i)
{
    return b->results[i].all.min / b->results[i - 1].all.min;
}

static double blocks_each(const struct bench_result *r)
{
    return r->stats.searches ? (double)r->stats.blocks_opened / (double)r->stats.searches : 0;
}

static bool growth_met(const struct bench_session *b, size_t i)
{
    return growth(b, i) <= BENCH_GROWTH_MOST * BENCH_GROWTH_NOISE;
}

/* Returns whether the search opened less than half of the blocks, and so skipped most of the work. */
static bool skips(const struct bench_result *r)
{
    return blocks_each(r) * 2 < (double)r->stats.blocks;
}

static void verdict(struct table *t, size_t column, bool met)
{
    table_cell(t, column, met ? COLOR_GREEN : COLOR_RED, "%s", met ? "met" : "MISSED");
}

static void goals_print(const struct bench_session *b)
{
    static const struct table_column columns[] = {
        {"GOAL",     TABLE_PLAIN, 0},
        {"MEASURED", TABLE_RIGHT, 0},
        {"AT MOST",  TABLE_RIGHT, 0},
        {"",         TABLE_PLAIN, 0},
        {"RANGE",    TABLE_PLAIN, 0},
    };
    struct table t;

    table_init(&t, b->cli, columns, 5);
    for (size_t i = 0; i < b->suite->goals_len; i++) {
        const struct bench_goal *goal = &b->suite->goals[i];
        const struct bench_result *r = &b->results[goal->of];
        double value = measured(b, goal);
        table_row(&t);
        table_cell(&t, 0, COLOR_NONE, "%s", goal->what);
        table_cell(&t, 1, COLOR_BOLD, "%s", show_measure(goal->measure, value).text);
        table_cell(&t, 2, COLOR_NONE, "%s", show_measure(goal->measure, goal->most).text);
        verdict(&t, 3, value <= goal->most);
        const struct bench_times *times = goal->measure == MEASURE_ONE_MORE    ? &r->one_more
                                          : goal->measure == MEASURE_MANY_MORE ? &r->many_more
                                                                               : &r->all;
        if (goal->measure != MEASURE_BYTES)
            table_cell(&t, 4, COLOR_NONE, "%s to %s", show_seconds(times->min).text, show_seconds(times->max).text);
    }
    table_print(&t);
    table_done(&t);
}

static void curve_print(const struct bench_session *b, const struct bench_curve *curve)
{
    static const struct table_column columns[] = {
        {"NODES",         TABLE_RIGHT, 7 },
        {"PODS",          TABLE_RIGHT, 9 },
        {"WORKLOADS",     TABLE_RIGHT, 10},
        {"SHAPES",        TABLE_RIGHT, 7 },
        {"TIME",          TABLE_RIGHT, 7 },
        {"RATIO",         TABLE_RIGHT, 6 },
        {"",              TABLE_PLAIN, 6 },
        {"BLOCKS OPENED", TABLE_RIGHT, 15},
        {"PER POD",       TABLE_RIGHT, 8 },
        {"SKIPS",         TABLE_PLAIN, 6 },
    };
    struct table t;

    fprintf(b->cli->out, "\n%sTwice the %s%s: at most %s the time, give or take a tenth\n",
            cli_paint(b->cli, COLOR_BOLD), curve->what, cli_paint(b->cli, COLOR_NONE),
            show_ratio(BENCH_GROWTH_MOST).text);
    table_init(&t, b->cli, columns, 10);
    for (size_t i = curve->first; i < curve->first + curve->len; i++) {
        const struct bench_size *size = &b->cases[i].size;
        const struct bench_result *r = &b->results[i];
        table_row(&t);
        table_cell(&t, 0, COLOR_NONE, "%s", show_count(size->nodes).text);
        table_cell(&t, 1, COLOR_NONE, "%s", show_count(size->pods).text);
        table_cell(&t, 2, COLOR_NONE, "%s", show_count(size->workloads).text);
        table_cell(&t, 3, COLOR_NONE, "%s", show_count(size->shapes).text);
        table_cell(&t, 4, COLOR_NONE, "%s", show_seconds(r->all.min).text);
        if (i > curve->first) {
            table_cell(&t, 5, COLOR_BOLD, "%s", show_ratio(growth(b, i)).text);
            verdict(&t, 6, growth_met(b, i));
        }
        table_cell(&t, 7, COLOR_NONE, "%.1f of %s", blocks_each(r), show_count(r->stats.blocks).text);
        if (r->stats.placed)
            table_cell(&t, 8, COLOR_NONE, "%.2f", (double)r->stats.blocks_opened / (double)r->stats.placed);
        table_cell(&t, 9, COLOR_NONE, "%s", skips(r) ? "yes" : "no");
    }
    table_print(&t);
    table_done(&t);
}

static void count_missed(struct bench_session *b)
{
    for (size_t i = 0; i < b->suite->goals_len; i++)
        b->missed += measured(b, &b->suite->goals[i]) > b->suite->goals[i].most;
    for (size_t c = 0; c < b->suite->curves_len; c++) {
        const struct bench_curve *curve = &b->suite->curves[c];
        for (size_t i = curve->first + 1; i < curve->first + curve->len; i++)
            b->missed += !growth_met(b, i);
    }
}

static void tables_print(const struct bench_session *b)
{
    goals_print(b);
    for (size_t c = 0; c < b->suite->curves_len; c++)
        curve_print(b, &b->suite->curves[c]);
    fprintf(b->cli->out, "\n%s cases of %" PRIu64 " run%s, seed %" PRIu64 "; ", show_count(b->suite->cases_len).text,
            b->values->runs.n, plural(b->values->runs.n), b->values->seed.n);
    if (b->unsound)
        fprintf(b->cli->out, "%s%zu plans broke an invariant%s; ", cli_paint(b->cli, COLOR_RED), b->unsound,
                cli_paint(b->cli, COLOR_NONE));
    else
        fputs("all plans kept the invariants and were complete; ", b->cli->out);
    fprintf(b->cli->out, b->missed ? "%zu missed.\n" : "all goals met.\n", b->missed);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void cpu_name(char *buf, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(buf, size, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        snprintf(buf, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (f)
        fclose(f);
}

static json_t *goals_json(const struct bench_session *b)
{
    static const char *const names[] = {
        [MEASURE_SECONDS] = "seconds", [MEASURE_ONE_MORE] = "seconds", [MEASURE_MANY_MORE] = "seconds",
        [MEASURE_BYTES] = "bytes",     [MEASURE_RATIO] = "ratio",
    };
    json_t *rows = json_array();

    for (size_t i = 0; i < b->suite->goals_len; i++) {
        const struct bench_goal *goal = &b->suite->goals[i];
        double value = measured(b, goal);
        json_array_append_new(rows,
                              json_pack("{s:s, s:s, s:f, s:f, s:b, s:I}", "what", goal->what + strspn(goal->what, " "),
                                        "unit", names[goal->measure], "measured", value, "at_most", goal->most, "met",
                                        value <= goal->most, "case", (json_int_t)goal->of));
    }
    return rows;
}

static json_t *curves_json(const struct bench_session *b)
{
    json_t *rows = json_array();

    for (size_t c = 0; c < b->suite->curves_len; c++) {
        const struct bench_curve *curve = &b->suite->curves[c];
        json_t *ratios = json_array();
        bool met = true;
        for (size_t i = curve->first + 1; i < curve->first + curve->len; i++) {
            json_array_append_new(ratios, json_real(growth(b, i)));
            met &= growth_met(b, i);
        }
        json_array_append_new(rows, json_pack("{s:s, s:o, s:f, s:b, s:I}", "twice_the", curve->what, "ratios", ratios,
                                              "at_most", BENCH_GROWTH_MOST, "met", met, "first_case",
                                              (json_int_t)curve->first));
    }
    return rows;
}

static json_t *suite_json(const struct bench_session *b)
{
    char cpu[128];
    json_t *cases = json_array();

    cpu_name(cpu, sizeof cpu);
    for (size_t i = 0; i < b->suite->cases_len; i++)
        json_array_append_new(cases, bench_case_json(&b->cases[i], &b->results[i]));
    return json_pack("{s:s, s:s, s:b, s:I, s:o, s:o, s:o}", "version", berth_version(), "cpu", cpu, "quick",
                     b->values->quick, "missed", (json_int_t)b->missed, "goals", goals_json(b), "growth",
                     curves_json(b), "cases", cases);
}

static int json_print(const struct bench_session *b)
{
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    json_t *object = suite_json(b);
    int rc = EXIT_OK;

    if (b->values->save && json_dump_file(object, b->values->save, flags) != 0)
        rc = cli_fail(b->cli, EXIT_FAILED, "cannot write %s", b->values->save);
    if (b->values->output == OUTPUT_JSON) {
        json_dumpf(object, b->cli->out, flags);
        fputc('\n', b->cli->out);
    }
    json_decref(object);
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    struct bench_session b = {.cli = cli, .values = values};

    (void)operands;
    b.suite = bench_suite_get(b.values->quick);
    CLEANUP(mem) struct bench_case *cases = mem_zarray(b.suite->cases_len, sizeof *cases);
    CLEANUP(mem) struct bench_result *results = mem_zarray(b.suite->cases_len, sizeof *results);
    b.cases = cases;
    b.results = results;
    int rc = measure(&b);
    if (rc != EXIT_OK)
        return rc;
    count_missed(&b);
    if (b.values->output == OUTPUT_TABLE)
        tables_print(&b);
    rc = json_print(&b);
    for (size_t i = 0; i < b.suite->cases_len; i++) {
        if (!bench_result_sound(&results[i]))
            rc = cli_fail(cli, EXIT_FAILED, "case %zu: %s", i, results[i].fixpoint ? results[i].audit : "no fixpoint");
    }
    return rc;
}

const struct command bench_command = {
    .name = "bench",
    .operands = "",
    .summary = "Benchmark planning on this machine against the goals, and its growth with size.",
    .text = "Takes some minutes and 2 GB of memory; with --quick some seconds and little memory. One "
            "core is used. Each case runs in its own process, and each plan is checked. A missed "
            "goal is not an error: the exit code is 1 only if a measurement failed or a plan was "
            "wrong.",
    .section = SECTION_FILES,
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .defaults = &defaults,
    .values_size = sizeof defaults,
    .run = run,
};
