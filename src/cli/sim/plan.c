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

enum plan_output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON };
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

struct plan_program {
    struct cli *cli;
    const struct plan_values *values;
    struct cluster_file file;
    const struct berth_profile *profile; /* NULL: the default one */
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
    double seconds; /* of freeze and plan */
};

static void plan_run_cleanup(struct plan_program *plan_run)
{
    berth_plan_free(plan_run->plan);
    berth_snapshot_free(plan_run->snapshot);
    cluster_file_done(&plan_run->file);
}

static int read_file(struct plan_program *plan_run, const char *path)
{
    struct progress progress;
    struct berth_err err;

    progress_start(&progress, plan_run->cli, "Reading");
    int rc = cluster_file_read(path, progress_update, &progress, &plan_run->file, &err);
    progress_end(&progress);
    if (rc != 0)
        return cli_fail(plan_run->cli, EXIT_FAILED, "%s", err.text);
    if (plan_run->values->now && timestamp_parse_text(plan_run->values->now, &plan_run->file.now_ns, &err) != 0)
        return cli_fail(plan_run->cli, EXIT_USAGE, "--now: %s", err.text);
    if (plan_run->values->seed.given)
        plan_run->file.seed = plan_run->values->seed.n;
    return EXIT_OK;
}

static int profile_unknown(const struct plan_program *plan_run)
{
    const char *name = plan_run->values->profile;
    struct suggestions near;

    suggest_init(&near, name);
    for (size_t i = 0; i < plan_run->file.profiles_len; i++)
        suggest_offer(&near, plan_run->file.profiles[i].name);
    for (size_t i = 0; berth_profile_at(i); i++)
        suggest_offer(&near, berth_profile_at(i)->name);
    if (near.len)
        return cli_fail(plan_run->cli, EXIT_FAILED, "no profile '%s'; did you mean '%s'?", name, near.at[0]);
    return cli_fail(plan_run->cli, EXIT_FAILED,
                    "no profile '%s'; 'berth profiles' lists the built-in profiles, and the file %s", name,
                    plan_run->file.profiles_len ? "defines others" : "defines none");
}

static int make_plan(struct plan_program *plan_run)
{
    struct progress progress;
    struct berth_err err;

    if (plan_run->values->profile) {
        plan_run->profile = cluster_file_profile(&plan_run->file, plan_run->values->profile);
        if (!plan_run->profile)
            return profile_unknown(plan_run);
    }
    struct berth_policy policy = {
        .profile = plan_run->profile,
        .progress = progress_update,
        .progress_ctx = &progress,
    };
    progress_start(&progress, plan_run->cli, "Planning");
    int64_t start_ns = cli_clock_ns();
    plan_run->snapshot = berth_freeze(plan_run->file.cluster, plan_run->file.now_ns, plan_run->file.seed);
    int rc = berth_plan_make(plan_run->snapshot, &policy, &plan_run->plan, &err);
    plan_run->seconds = (double)(cli_clock_ns() - start_ns) / 1e9;
    progress_end(&progress);
    return rc == 0 ? EXIT_OK : cli_fail(plan_run->cli, EXIT_FAILED, "%s", err.text);
}

static int print_plan(const struct plan_program *plan_run)
{
    struct plan_view view = {
        .cli = plan_run->cli,
        .plan = plan_run->plan,
        .nodes = berth_nodes(plan_run->file.cluster),
        .all = plan_run->values->output == OUTPUT_WIDE,
    };

    if (plan_run->values->why)
        return why_print(&view, plan_run->file.cluster, plan_run->profile, plan_run->values->why);
    if (plan_run->values->output == OUTPUT_JSON) {
        int rc = plan_json_write(plan_run->plan, plan_run->cli->out);
        return rc == 0 ? EXIT_OK : cli_fail(plan_run->cli, EXIT_FAILED, "cannot write the plan: %s", strerror(-rc));
    }
    if (plan_run->values->summary) {
        plan_view_counts(&view);
    } else {
        plan_view_actions(&view);
        plan_view_pending(&view);
    }
    if (berth_plan_actions(plan_run->plan) || (berth_plan_pendings(plan_run->plan) && !plan_run->values->summary))
        fputc('\n', plan_run->cli->out);
    plan_view_summary(&view, plan_run->seconds, plan_run->file.now_ns);
    return EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    __attribute__((cleanup(plan_run_cleanup))) struct plan_program plan_run = {.cli = cli, .values = values};

    if (plan_run.values->why && plan_run.values->output == OUTPUT_JSON)
        return cli_fail(cli, EXIT_USAGE,
                        "--why prints text only; -o json without --why includes the reasons of all pending pods");
    int rc = read_file(&plan_run, operands->at[0]);
    if (rc == EXIT_OK)
        rc = make_plan(&plan_run);
    if (rc == EXIT_OK)
        rc = print_plan(&plan_run);
    if (rc == EXIT_OK && plan_run.values->strict && plan_pending_pods(plan_run.plan))
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
