/* plan.c - `berth bench plan`: measures one synthetic cluster of any size. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "bench/plan/suite.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/table.h"

static const char *const outputs[] = {"table", "json", NULL};
enum bench_plan_output { OUTPUT_TABLE, OUTPUT_JSON };

struct bench_plan_values {
    struct option_count nodes, pods, workloads, shapes, seed, runs;
    bool gpu, constraints, one_more, fresh, no_audit;
    unsigned output;
};

static const struct bench_plan_values defaults = {
    .nodes = {.n = 5000},
    .pods = {.n = 100000},
    .seed = {.n = 1},
    .runs = {.n = 5},
};

static const struct option options[] = {
    OPTION_COUNT_ROW("nodes", 'n', bench_plan_values, nodes, 1, 10000000, "Number of nodes. Default: 5k."),
    OPTION_COUNT_ROW("pods", 'p', bench_plan_values, pods, 1, 100000000, "Total number of pods. Default: 100k."),
    OPTION_COUNT_ROW("workloads", 'w', bench_plan_values, workloads, 1, 16000000,
                     "Number of workloads that share the pods. Default: a tenth of the pods."),
    OPTION_COUNT_ROW("shapes", 's', bench_plan_values, shapes, 1, 1000000,
                     "Number of different CPU and memory requests. Default: 1k, at most one per workload."),
    OPTION_FLAG_ROW("gpu", 0, bench_plan_values, gpu,
                    "Let a tenth of the workloads request GPUs: shares of one, one, or several."),
    OPTION_FLAG_ROW("constraints", 0, bench_plan_values, constraints,
                    "Give a tenth zone spread, self-anti-affinity, or both; with --gpu the two share the "
                    "tenth."),
    OPTION_FLAG_ROW("one-more", 0, bench_plan_values, one_more, "Also time one more pod after everything is placed."),
    OPTION_COUNT_ROW("seed", 0, bench_plan_values, seed, 0, INT64_MAX,
                     "Seed of the cluster, which depends only on it and the sizes. Default: 1."),
    OPTION_COUNT_ROW("runs", 'r', bench_plan_values, runs, 1, BENCH_RUNS_MAX,
                     "Number of plans; the median counts. Default: 5."),
    OPTION_FLAG_ROW("fresh", 0, bench_plan_values, fresh, "Create the cluster again for each run."),
    OPTION_FLAG_ROW("no-audit", 0, bench_plan_values, no_audit,
                    "Skip applying the plan, checking the invariants and planning again."),
    OPTION_CHOICE_ROW("output", 'o', bench_plan_values, output, outputs, "Output format."),
};

static uint64_t at_most(uint64_t n, uint64_t most)
{
    return n < most ? n : most;
}

static struct bench_case case_of(const struct bench_plan_values *v)
{
    struct bench_case c = {
        .size =
            {
                   .nodes = v->nodes.n,
                   .pods = v->pods.n,
                   .workloads = v->workloads.n,
                   .shapes = v->shapes.n,
                   .gpu = v->gpu,
                   .constraints = v->constraints,
                   .seed = v->seed.n,
                   },
        .runs = v->runs.n,
        .one_more = v->one_more,
        .fresh = v->fresh,
        .no_audit = v->no_audit,
    };
    if (!v->workloads.given)
        c.size.workloads = c.size.pods < 10 ? 1 : c.size.pods / 10;
    if (!v->shapes.given)
        c.size.shapes = at_most(1000, c.size.workloads);
    return c;
}

static void goal_print(struct table *t, const struct bench_size *size, enum bench_measure measure, double measured)
{
    const struct bench_goal *goal = bench_goal_find(size, measure);
    if (!goal)
        return;
    if (measure == MEASURE_BYTES)
        table_cell(t, 2, COLOR_NONE, "%s", show_bytes((uint64_t)goal->most).text);
    else
        table_cell(t, 2, COLOR_NONE, "%s", show_seconds(goal->most).text);
    bool met = measured <= goal->most;
    table_cell(t, 3, met ? COLOR_GREEN : COLOR_RED, "%s", met ? "met" : "MISSED");
}

static void times_print(struct table *t, const char *what, const struct bench_times *times)
{
    table_row(t);
    table_cell(t, 0, COLOR_NONE, "%s", what);
    table_cell(t, 1, COLOR_NONE, "%s  (%s to %s, first %s)", show_seconds(times->median).text,
               show_seconds(times->min).text, show_seconds(times->max).text, show_seconds(times->first).text);
}

static void count_print(struct table *t, const char *what, uint64_t n, const char *note)
{
    table_row(t);
    table_cell(t, 0, COLOR_NONE, "%s", what);
    table_cell(t, 1, COLOR_NONE, "%s%s", show_count(n).text, note);
}

static void search_print(struct table *t, const struct berth_plan_stats *stats)
{
    char note[128];
    double each = stats->searches ? (double)stats->blocks_opened / (double)stats->searches : 0;

    snprintf(note, sizeof note, "; each opened %.1f blocks, the cluster has %s", each, show_count(stats->blocks).text);
    count_print(t, "searches", stats->searches, note);
}

static void result_print(const struct cli *cli, const struct bench_case *c, const struct bench_result *r)
{
    static const struct table_column columns[] = {
        {"WHAT",     TABLE_PLAIN, 0},
        {"MEASURED", TABLE_PLAIN, 0},
        {"GOAL",     TABLE_RIGHT, 0},
        {"",         TABLE_PLAIN, 0},
    };
    struct table t;

    fprintf(cli->out, "%s pods of %s workloads with %s shapes on %s nodes%s%s, seed %" PRIu64 ", %" PRIu64 " run%s\n\n",
            show_count(c->size.pods).text, show_count(c->size.workloads).text, show_count(c->size.shapes).text,
            show_count(c->size.nodes).text, c->size.gpu ? ", GPUs" : "", c->size.constraints ? ", constraints" : "",
            c->size.seed, c->runs, plural(c->runs));
    bool goals = bench_goal_find(&c->size, MEASURE_SECONDS) != NULL;
    table_init(&t, cli, columns, goals ? 4 : 2);
    times_print(&t, "freeze, plan, actions", &r->all);
    goal_print(&t, &c->size, MEASURE_SECONDS, r->all.median);
    times_print(&t, "  freeze", &r->freeze);
    times_print(&t, "  plan", &r->plan);
    times_print(&t, "  reading the actions", &r->actions);
    if (c->one_more) {
        times_print(&t, "one more pod", &r->one_more);
        goal_print(&t, &c->size, MEASURE_ONE_MORE, r->one_more.median);
    }
    table_row(&t);
    table_cell(&t, 0, COLOR_NONE, "peak memory");
    table_cell(&t, 1, COLOR_NONE, "%s", show_bytes(r->rss_bytes).text);
    goal_print(&t, &c->size, MEASURE_BYTES, (double)r->rss_bytes);
    count_print(&t, "placed", r->stats.placed, "");
    count_print(&t, "not placed", r->stats.unplaced, "");
    search_print(&t, &r->stats);
    table_row(&t);
    table_cell(&t, 0, COLOR_NONE, "fingerprint");
    table_cell(&t, 1, COLOR_NONE, "%016" PRIx64, r->hash);
    table_row(&t);
    table_cell(&t, 0, COLOR_NONE, "invariants");
    table_cell(&t, 1, bench_result_sound(r) ? COLOR_NONE : COLOR_RED, "%s", r->audit);
    if (r->audited) {
        table_row(&t);
        table_cell(&t, 0, COLOR_NONE, "fixpoint");
        table_cell(&t, 1, r->fixpoint ? COLOR_NONE : COLOR_RED, "%s", r->fixpoint ? "true" : "false");
    }
    table_print(&t);
    table_done(&t);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct bench_plan_values *v = values;
    struct bench_case c = case_of(v);
    struct bench_result result;
    struct berth_err err;

    (void)operands;
    if (bench_size_check(&c.size, &err) != 0)
        return cli_fail(cli, EXIT_USAGE, "%s", err.text);
    int rc = bench_case_run(&c, &result, &err);
    if (rc != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (v->output == OUTPUT_JSON) {
        json_t *object = bench_case_json(&c, &result);
        json_dumpf(object, cli->out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        fputc('\n', cli->out);
        json_decref(object);
    } else {
        result_print(cli, &c, &result);
    }
    if (!bench_result_sound(&result))
        return cli_fail(cli, EXIT_FAILED, "the plan is wrong: %s; please report it with this command line",
                        strcmp(result.audit, "ok") == 0 ? "a second plan is not empty" : result.audit);
    return EXIT_OK;
}

const struct command bench_plan_command = {
    .name = "bench plan",
    .operands = "",
    .summary = "Benchmark the plan of one generated cluster.",
    .text = "Times the steps of 'berth plan' once the cluster is in memory: freeze it, plan it with "
            "the default profile, read every action. Afterwards the plan is applied, every invariant "
            "is checked, and a second plan must be empty.\n\n"
            "With -o json one object is printed: seconds_median, seconds_min, seconds_max, "
            "rss_bytes, placed, unplaced, hash, audit, fixpoint and more; docs/bench.md lists all.",
    .examples = "  berth bench plan --nodes 100k --pods 1M --workloads 10k --shapes 1k --one-more",
    .section = SECTION_FILES,
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .defaults = &defaults,
    .values_size = sizeof defaults,
    .run = run,
};
