/* sim_muri.c - `berth sim muri`: training jobs on GPUs, with the protocol of the published Muri results. */
#include <errno.h>
#include <inttypes.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "sim/protocol/muri.h"

enum { OUTPUT_TEXT, OUTPUT_JSON };
static const char *const outputs[] = {"text", "json", NULL};

struct muri_values {
    const char *policy;
    struct option_count nodes, gpus;
    unsigned output;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("policy", 0, muri_values, policy, "NAME",
                    "Order of the jobs: srtf (shortest remaining time first; the default), srsf (shortest "
                    "remaining service: time x GPUs), any other ranking of `docs/policies.md`, or berth (the "
                    "default policy, without preemption)."),
    OPTION_COUNT_ROW("nodes", 0, muri_values, nodes, 1, 10000,
                     "Number of nodes. Default: 8, as in the published runs."),
    OPTION_COUNT_ROW("gpus", 0, muri_values, gpus, 1, 64, "GPUs per node. Default: 8."),
    OPTION_CHOICE_ROW("output", 'o', muri_values, output, outputs, "Output format."),
};

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct muri_values *v = values;
    CLEANUP(muri_trace) struct muri_trace trace = {0};
    struct progress progress;
    struct muri_result r = {0};
    struct berth_err err;
    struct muri_options o = {
        .policy = v->policy ? v->policy : "srtf",
        .nodes = v->nodes.given ? (size_t)v->nodes.n : 8,
        .gpus = v->gpus.given ? (size_t)v->gpus.n : 8,
        .progress = progress_update,
        .ctx = &progress,
    };

    int rc = muri_trace_read(operands->at[0], &trace, &err);
    if (rc == 0) {
        progress_start(&progress, cli, "Simulating");
        rc = muri_run(&trace, &o, &r, &err);
        progress_end(&progress);
    }
    if (rc)
        return cli_fail(cli, rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s", err.text);
    if (v->output == OUTPUT_JSON)
        (void)fprintf(cli->out,
                      "{\"policy\":\"%s\",\"jobs\":%zu,\"average_completion_time\":%.6f,\"makespan\":%.6f,\"p99\":%.6f,"
                      "\"events\":%" PRIu64 ",\"starts\":%" PRIu64 "}\n",
                      o.policy, trace.len, r.average_s, r.makespan_s, r.p99_s, r.events, r.starts);
    else
        (void)fprintf(
            cli->out,
            "Policy                   %s\nJobs                     %zu\nAverage completion time  %.0f s\n"
            "Makespan                 %.0f s\np99 completion time      %.0f s\nEvents                   %" PRIu64
            "\nStarts                   %" PRIu64 "\n",
            o.policy, trace.len, r.average_s, r.makespan_s, r.p99_s, r.events, r.starts);
    return EXIT_OK;
}

const struct command sim_muri_command = {
    .name = "sim muri",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Simulate preemptible training jobs on GPUs with the protocol of the published Muri "
               "results.",
    .text =
        "FILE is a trace as Muri (SIGCOMM'22) publishes them: CSV with job_id, num_gpu, submit_time and iteration_time "
        "(milliseconds), iterations, model_name; also compressed (.gz). At every event all jobs are placed anew, first fit, in "
        "the order of the policy; each event costs every running job its restart overhead. With -o json the times are in "
        "seconds: average_completion_time (from submission to end), makespan (the last end), p99 (of completion times).",
    .examples = "  berth sim muri trace1.csv --policy srtf\n"
                "  berth sim muri trace1.csv.gz --policy srsf -o json",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct muri_values),
    .section = SECTION_FILES,
    .run = run,
};
