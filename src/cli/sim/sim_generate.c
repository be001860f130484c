/* sim_generate.c - `berth sim generate`: generates synthetic job traces from a seed. */
#include <stdlib.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "sim/trace/generate.h"
#include "sim/trace/trace_csv.h"

enum { OUTPUT_CSV, OUTPUT_SWF };
static const char *const outputs[] = {"csv", "swf", NULL};
static const char *const kinds[] = {"lublin", "poisson", "diurnal", NULL};

struct generate_values {
    struct option_count seed, jobs, procs, gpus, users;
    const char *load;
    unsigned output;
};

static const struct option options[] = {
    OPTION_COUNT_ROW("seed", 0, generate_values, seed, 0, 0, "Seed of the trace. Default: 1."),
    OPTION_COUNT_ROW("jobs", 0, generate_values, jobs, 1, SIM_GENERATE_JOBS_MAX, "Number of jobs. Default: 1000."),
    OPTION_TEXT_ROW("load", 0, generate_values, load, "LOAD",
                    "Average load of the machine; above 1 the queue grows. Default: 0.8."),
    OPTION_COUNT_ROW("procs", 0, generate_values, procs, 1, 100000000, "Processors of the machine. Default: 256."),
    OPTION_COUNT_ROW("gpus", 0, generate_values, gpus, 1, 10000000,
                     "GPUs of the machine: jobs request GPUs, some of them shares, and the load is measured "
                     "in GPUs."),
    OPTION_COUNT_ROW("users", 0, generate_values, users, 1, 100000, "Number of users. Default: 20."),
    OPTION_CHOICE_ROW("output", 'o', generate_values, output, outputs,
                      "Output format: Berth's CSV (docs/sim.md), or the Standard Workload Format, which has no "
                      "GPUs."),
};

static bool load_parse(const char *text, double *ret)
{
    char *end;
    double load = strtod(text, &end);
    if (end == text || *end || !(load > 0) || load > 100)
        return false;
    *ret = load;
    return true;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct generate_values *v = values;
    CLEANUP(sim_trace) struct sim_trace trace;
    struct berth_err err;
    struct sim_generate g = {
        .kind = operands->at[0],
        .seed = v->seed.given ? v->seed.n : 1,
        .jobs = v->jobs.given ? (size_t)v->jobs.n : 1000,
        .load = 0.8,
        .procs = v->procs.given ? (int64_t)v->procs.n : 256,
        .gpus = (int64_t)v->gpus.n,
        .users = v->users.given ? (size_t)v->users.n : 20,
    };

    sim_trace_init(&trace);
    if (v->load && !load_parse(v->load, &g.load))
        return cli_fail(cli, EXIT_USAGE, "--load: expected a number above 0 and at most 100, such as 0.8");
    if (v->output == OUTPUT_SWF && g.gpus)
        return cli_fail(cli, EXIT_USAGE, "--gpus: the Standard Workload Format has no GPUs; use -o csv");
    if (sim_generate(&g, &trace, &err) < 0)
        return cli_fail(cli, EXIT_USAGE, "%s", err.text);
    if (v->output == OUTPUT_SWF)
        sim_trace_swf_write(&trace, cli->out);
    else
        sim_trace_csv_write(&trace, cli->out);
    return EXIT_OK;
}

const struct command sim_generate_command = {
    .name = "sim generate",
    .operands = "KIND",
    .operands_min = 1,
    .operands_max = 1,
    .words = kinds,
    .summary = "Generate a job trace from a seed, for `berth sim run`.",
    .text = "KIND is lublin (sizes, run times and bursts after Lublin and Feitelson, with a daily "
            "cycle), poisson (constant arrival rate) or diurnal (more jobs by day than by night, "
            "fewer at the weekend). In the last two each user has a few programs with similar jobs. "
            "The same seed yields the same bytes on every machine.",
    .examples = "  berth sim generate lublin --jobs 5000 --procs 256 --load 0.9 > jobs.csv\n"
                "  berth sim generate diurnal --seed 7 --gpus 64 > training.csv\n"
                "  berth sim generate poisson -o swf > jobs.swf",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct generate_values),
    .section = SECTION_FILES,
    .run = run,
};
