/* plan.c - `berth plan FILE`: reads a cluster, plans it, and prints the plan. */
#include <stddef.h>
#include <string.h>

#include "berth.h"
#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "cli/lib/suggest.h"
#include "cli/sim/plan_view.h"
#include "cli/sim/why.h"
#include "wire/cluster/cluster_file.h"
#include "wire/cluster/plan_json.h"
#include "wire/text/moment.h"

enum output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON };
static const char *const outputs[] = {"table", "wide", "json", NULL};

struct plan_values {
    const char *why, *profile, *now;
    struct option_count seed;
    unsigned output;
    bool strict, summary;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("why", 0, plan_values, why, "POD",
                    "Explain the decision for this pod only. POD is WORKLOAD or WORKLOAD/ORDINAL."),
    OPTION_TEXT_ROW("profile", 0, plan_values, profile, "NAME",
                    "Profile of filters and scores: one defined in the file, or a built-in one (see 'berth "
                    "profiles')."),
    OPTION_CHOICE_ROW("output", 'o', plan_values, output, outputs,
                      "Output format; table groups the actions of large plans, wide lists every action."),
    OPTION_FLAG_ROW("summary", 0, plan_values, summary, "Print only counts by action and cause."),
    OPTION_FLAG_ROW("strict", 0, plan_values, strict, "Exit with code 3 if pods are pending."),
    OPTION_TEXT_ROW("now", 0, plan_values, now, "TIME",
                    "Plan for this time instead of the file's: 2026-03-01T12:00:00Z, or seconds since 1970."),
    OPTION_COUNT_ROW("seed", 0, plan_values, seed, 0, 0, "Seed of the random score, instead of the file's."),
};

struct job {
    struct cli *cli;
    const struct plan_values *values;
    struct cluster_file file;
    const struct berth_profile *profile; /* NULL: the default one */
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
    double seconds; /* of freeze and plan */
};

static void job_cleanup(struct job *job)
{
    berth_plan_free(job->plan);
    berth_snapshot_free(job->snapshot);
    cluster_file_done(&job->file);
}

static int read_file(struct job *job, const char *path)
{
    struct progress progress;
    struct berth_err err;

    progress_start(&progress, job->cli, "Reading");
    int rc = cluster_file_read(path, progress_tell, &progress, &job->file, &err);
    progress_end(&progress);
    if (rc != 0)
        return cli_fail(job->cli, EXIT_FAILED, "%s", err.text);
    if (job->values->now && timestamp_parse_text(job->values->now, &job->file.now_ns, &err) != 0)
        return cli_fail(job->cli, EXIT_USAGE, "--now: %s", err.text);
    if (job->values->seed.given)
        job->file.seed = job->values->seed.n;
    return EXIT_OK;
}

static int profile_unknown(const struct job *job)
{
    const char *name = job->values->profile;
    struct suggest near;

    suggest_init(&near, name);
    for (size_t i = 0; i < job->file.profiles_len; i++)
        suggest_offer(&near, job->file.profiles[i].name);
    for (size_t i = 0; berth_profile_at(i); i++)
        suggest_offer(&near, berth_profile_at(i)->name);
    if (near.len)
        return cli_fail(job->cli, EXIT_FAILED, "no profile '%s'; did you mean '%s'?", name, near.at[0]);
    return cli_fail(job->cli, EXIT_FAILED,
                    "no profile '%s'; 'berth profiles' lists the built-in profiles, and the file %s", name,
                    job->file.profiles_len ? "defines others" : "defines none");
}

static int make_plan(struct job *job)
{
    struct progress progress;
    struct berth_err err;

    if (job->values->profile) {
        job->profile = cluster_file_profile(&job->file, job->values->profile);
        if (!job->profile)
            return profile_unknown(job);
    }
    struct berth_policy policy = {
        .profile = job->profile,
        .progress = progress_tell,
        .progress_ctx = &progress,
    };
    progress_start(&progress, job->cli, "Planning");
    int64_t start_ns = cli_clock_ns();
    job->snapshot = berth_freeze(job->file.cluster, job->file.now_ns, job->file.seed);
    int rc = berth_plan_make(job->snapshot, &policy, &job->plan, &err);
    job->seconds = (double)(cli_clock_ns() - start_ns) / 1e9;
    progress_end(&progress);
    return rc == 0 ? EXIT_OK : cli_fail(job->cli, EXIT_FAILED, "%s", err.text);
}

static int print_plan(const struct job *job)
{
    struct plan_view view = {
        .cli = job->cli,
        .plan = job->plan,
        .nodes = berth_nodes(job->file.cluster),
        .all = job->values->output == OUTPUT_WIDE,
    };

    if (job->values->why)
        return why_print(&view, job->file.cluster, job->profile, job->values->why);
    if (job->values->output == OUTPUT_JSON) {
        int rc = plan_json_write(job->plan, job->cli->out);
        return rc == 0 ? EXIT_OK : cli_fail(job->cli, EXIT_FAILED, "cannot write the plan: %s", strerror(-rc));
    }
    if (job->values->summary) {
        plan_view_counts(&view);
    } else {
        plan_view_actions(&view);
        plan_view_pending(&view);
    }
    if (berth_plan_actions(job->plan) || (berth_plan_pendings(job->plan) && !job->values->summary))
        fputc('\n', job->cli->out);
    plan_view_summary(&view, job->seconds, job->file.now_ns);
    return EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    __attribute__((cleanup(job_cleanup))) struct job job = {.cli = cli, .values = values};

    if (job.values->why && job.values->output == OUTPUT_JSON)
        return cli_fail(cli, EXIT_USAGE,
                        "--why prints text only; -o json without --why includes the reasons of all pending pods");
    int rc = read_file(&job, operands->at[0]);
    if (rc == EXIT_OK)
        rc = make_plan(&job);
    if (rc == EXIT_OK)
        rc = print_plan(&job);
    if (rc == EXIT_OK && job.values->strict && plan_pending_pods(job.plan))
        rc = EXIT_PENDING;
    return rc;
}

const struct command plan_command = {
    .name = "plan",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Plan a cluster from a file: print the pods to place, move and stop, and the pending "
               "pods.",
    .text = "FILE describes the nodes, the workloads and the running instances in JSON or YAML; '-' "
            "is standard input. Nothing is changed: the plan depends only on the file.\n\n"
            "With -o json one object is printed: 'actions' (each with op, pod, node) and 'pending' "
            "(each with pod and reasons: reason, nodes, text).",
    .examples = "  berth plan examples/lab.yaml\n"
                "  berth plan examples/lab.yaml --why pretrain/0\n"
                "  berth plan cluster.json -o json | jq '.actions | length'",
    .section = SECTION_FILES,
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct plan_values),
    .run = run,
};
