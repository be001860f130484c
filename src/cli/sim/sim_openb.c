/* sim_openb.c - `berth sim openb`: pods arrive on a GPU cluster and never end, with the protocol of the published
 * results.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "sim/trace/openb.h"

enum { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_CSV };
static const char *const outputs[] = {"text", "json", "csv", NULL};

enum { TEXT_EVERY = 10 };

struct openb_values {
    const char *nodes, *pods, *arrivals, *policy;
    struct option_count seed;
    unsigned output;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("nodes", 0, openb_values, nodes, "FILE", "Nodes: CSV with sn, cpu_milli, memory_mib, gpu, model."),
    OPTION_TEXT_ROW(
        "pods", 0, openb_values, pods, "FILE",
        "Pods: CSV with name, cpu_milli, memory_mib, num_gpu, gpu_milli and, where there is one, gpu_spec."),
    OPTION_TEXT_ROW(
        "arrivals", 0, openb_values, arrivals, "FILE",
        "The order of the pods and the ranks of the nodes: a line \"# pods N\", then N rows of the pods sorted by "
        "name, counted from 0; \"# nodes M\", then the ranks of the M nodes sorted by name."),
    OPTION_TEXT_ROW("policy", 0, openb_values, policy, "NAME",
                    "Placement policy: random, dotprod, clustering, packing, bestfit, fgd, berth, or a "
                    "profile of `berth profiles`; `help` describes them."),
    OPTION_COUNT_ROW("seed", 0, openb_values, seed, 0, 0, "Random seed. Default: 1."),
    OPTION_CHOICE_ROW("output", 'o', openb_values, output, outputs,
                      "Output format; csv has one line per percent of load."),
};

enum openb_column { ALLOCATED, FRAGMENTED, FRAGMENTED_SHARE, COLUMNS };
static const char *const names[COLUMNS] = {"allocated_percent", "fragmented_percent", "fragmented_share_of_idle"};

static double value_at(const struct openb_result *r, size_t load, enum openb_column column)
{
    switch (column) {
    case ALLOCATED: return r->at[load].allocated;
    case FRAGMENTED: return r->at[load].fragmented;
    default: return r->at[load].fragmented_share;
    }
}

static void print_json(const struct cli *cli, const char *policy, const struct openb_result *r)
{
    CLEANUP(str) struct str s = {0};
    str_add(&s, "{\"policy\":");
    str_add_json(&s, policy);
    str_addf(&s, ",\"pods\":%zu,\"placed\":%zu,\"gpus\":%.3f", r->placed + r->dropped, r->placed,
             (double)r->gpu_milli / 1000);
    for (unsigned column = 0; column < COLUMNS; column++) {
        str_addf(&s, ",\"%s\":[", names[column]);
        for (size_t load = 0; load < OPENB_LOADS; load++) {
            str_add(&s, load ? "," : "");
            if (r->at[load].pods)
                str_addf(&s, "%.6f", value_at(r, load, (enum openb_column)column));
            else
                str_add(&s, "null");
        }
        str_add_char(&s, ']');
    }
    (void)fprintf(cli->out, "%s}\n", str_text(&s));
}

static void print_csv(const struct cli *cli, const struct openb_result *r)
{
    (void)fprintf(cli->out, "arrived_percent,%s,%s,%s\n", names[0], names[1], names[2]);
    for (size_t load = 0; load < OPENB_LOADS; load++) {
        if (r->at[load].pods)
            (void)fprintf(cli->out, "%zu,%.6f,%.6f,%.6f\n", load, r->at[load].allocated, r->at[load].fragmented,
                          r->at[load].fragmented_share);
        else
            (void)fprintf(cli->out, "%zu,,,\n", load);
    }
}

static void print_text(const struct cli *cli, const char *policy, const struct openb_result *r)
{
    (void)fprintf(cli->out, "Policy %s: placed %zu of %zu pods on %.0f GPUs.\n\n", policy, r->placed,
                  r->placed + r->dropped, (double)r->gpu_milli / 1000);
    (void)fprintf(cli->out, "arrived %%  allocated %%  fragmented %%  of the idle %%\n");
    for (size_t load = 0; load < OPENB_LOADS; load += TEXT_EVERY)
        if (r->at[load].pods)
            (void)fprintf(cli->out, "%9zu  %11.2f  %12.2f  %13.2f\n", load, r->at[load].allocated,
                          r->at[load].fragmented, r->at[load].fragmented_share);
}

static int print_policies(const struct cli *cli)
{
    const char *name, *text;
    for (size_t i = 0; (name = openb_policy_at(i, &text)); i++)
        (void)fprintf(cli->out, "%-12s %s\n", name, text);
    return EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct openb_values *v = values;
    CLEANUP(openb_trace) struct openb_trace trace = {0};
    struct progress progress;
    struct openb_result r;
    struct berth_err err;
    (void)operands;

    if (v->policy && strcmp(v->policy, "help") == 0)
        return print_policies(cli);
    if (!v->nodes || !v->pods || !v->arrivals || !v->policy)
        return cli_fail(cli, EXIT_USAGE, "--nodes, --pods, --arrivals and --policy are required");
    struct openb_options o = {
        .policy = v->policy, .seed = v->seed.given ? v->seed.n : 1, .progress = progress_update, .ctx = &progress};
    if (openb_trace_read(&trace, v->nodes, v->pods, v->arrivals, &err) < 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    progress_start(&progress, cli, "Simulating");
    int rc = openb_run(&trace, &o, &r, &err);
    progress_end(&progress);
    if (rc < 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (v->output == OUTPUT_JSON)
        print_json(cli, v->policy, &r);
    else if (v->output == OUTPUT_CSV)
        print_csv(cli, &r);
    else
        print_text(cli, v->policy, &r);
    return EXIT_OK;
}

const struct command sim_openb_command = {
    .name = "sim openb",
    .operands = "",
    .summary = "Measure how far a GPU cluster can be filled with pods that never leave.",
    .text = "The files are those of Alibaba's openb cluster (cluster-trace-gpu-v2023) and of "
            "\"Beware of Fragmentation\" (ATC'23); they may be compressed (.gz). Pods are planned "
            "one by one; a pod that does not fit is dropped. For each percent of the cluster's GPUs "
            "that has arrived, from 0 to 130, the output has the means over its pods: "
            "allocated_percent (GPUs in use), fragmented_percent (idle GPUs that are useless to the "
            "usual pods, of all GPUs) and fragmented_share_of_idle (the same, in percent of the idle "
            "GPUs); null where no pod arrived.",
    .examples =
        "  berth sim openb --nodes nodes.csv --pods pods.csv --arrivals default_42.txt.gz --policy fgd\n"
        "  berth sim openb --nodes nodes.csv --pods pods.csv --arrivals default_42.txt.gz --policy bestfit -o json",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct openb_values),
    .section = SECTION_FILES,
    .run = run,
};
