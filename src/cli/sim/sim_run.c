/* sim_run.c - `berth sim run`: simulates a trace on a cluster under several policies side by side. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/sim/sim_sides.h"
#include "sim/trace/generate.h"
#include "sim/trace/trace_csv.h"

struct run_values {
    struct option_count procs, seed, jobs;
    const char *nodes, *cluster, *generate, *load;
    struct option_list policies;
    unsigned output;
};

static const struct option options[] = {
    OPTION_LIST_ROW("policy", 0, run_values, policies, "POLICY",
                    "ORDER/BACKFILL/PREDICT/PROFILE, as below, or berth; may be given several times to "
                    "compare."),
    OPTION_COUNT_ROW("procs", 0, run_values, procs, 1, 1000000000,
                     "Simulate one node with N processors. Default: the number in the trace."),
    OPTION_TEXT_ROW("nodes", 0, run_values, nodes, "NODES",
                    "Nodes of the cluster: 4xgpu8,10xcpu64, or in detail 2xgpu8+cpu96+mem768Gi."),
    OPTION_TEXT_ROW("cluster", 0, run_values, cluster, "FILE",
                    "Use the nodes and profiles of a cluster file for `berth plan`."),
    OPTION_TEXT_ROW("generate", 0, run_values, generate, "KIND",
                    "Generate the trace as `berth sim generate` does, for this cluster."),
    OPTION_COUNT_ROW("jobs", 0, run_values, jobs, 1, SIM_GENERATE_JOBS_MAX,
                     "With --generate: number of jobs. Default: 1000."),
    OPTION_TEXT_ROW("load", 0, run_values, load, "LOAD", "With --generate: average load of the cluster. Default: 0.8."),
    OPTION_COUNT_ROW("seed", 0, run_values, seed, 0, 0, "Random seed. Default: 1."),
    OPTION_CHOICE_ROW("output", 'o', run_values, output, sides_forms,
                      "Output format; csv has one row per policy, jobs is CSV with one row per job, html is a "
                      "page with plots."),
};

struct trace_sim {
    struct cli *cli;
    const struct run_values *v;
    const char *path; /* NULL: generated */
    struct sim_trace trace;
    struct sim_fleet fleet;
    VEC(struct sim_side) sides;
};

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

static int cluster_make(struct trace_sim *r, struct berth_err *err)
{
    const struct run_values *v = r->v;
    int ways = v->procs.given + (v->nodes != NULL) + (v->cluster != NULL);
    if (ways > 1)
        return err_set(err, EINVAL, "--procs, --nodes and --cluster cannot be combined");
    if (v->cluster)
        return sim_fleet_file(&r->fleet, v->cluster, err);
    if (v->nodes && sim_fleet_add(&r->fleet, v->nodes, err))
        return err_prefix(err, "--nodes");
    if (v->nodes)
        return 0;
    int64_t procs = v->procs.given ? (int64_t)v->procs.n : r->trace.procs;
    if (procs <= 0)
        return err_set(err, EINVAL, "no cluster: expected --procs N, --nodes NODES or --cluster FILE");
    sim_fleet_machine(&r->fleet, procs);
    return 0;
}

static int generate(struct trace_sim *r, struct berth_err *err)
{
    struct sim_fleet_total total = sim_fleet_total(&r->fleet);
    struct sim_generate g = {
        .kind = r->v->generate,
        .seed = r->v->seed.given ? r->v->seed.n : 1,
        .jobs = r->v->jobs.given ? (size_t)r->v->jobs.n : 1000,
        .load = 0.8,
        .procs = total.cpu_milli / 1000,
        .gpus = total.gpus,
        .users = 20,
    };
    char *end = NULL;
    if (r->v->load)
        g.load = strtod(r->v->load, &end);
    if (end && (*end || end == r->v->load))
        return err_set(err, EINVAL, "--load: expected a number such as 0.8, found \"%s\"", r->v->load);
    return sim_generate(&g, &r->trace, err);
}

static int trace_make(struct trace_sim *r, const struct operands *operands, struct berth_err *err)
{
    bool file = operands->len > 0;
    if (file == (r->v->generate != NULL))
        return err_set(err, EINVAL, "expected a trace: either FILE or --generate KIND");
    if (file && (r->v->jobs.given || r->v->load))
        return err_set(err, EINVAL, "--jobs and --load need --generate");
    r->path = file ? operands->at[0] : NULL;
    int rc = file ? sim_trace_read(r->path, &r->trace, err) : 0;
    if (rc == 0)
        rc = cluster_make(r, err);
    return rc || file ? rc : generate(r, err);
}

static int policies_make(struct trace_sim *r, struct berth_err *err)
{
    static const char *const usual[] = {"fcfs/easy", "berth"};
    size_t given = r->v->policies.len, len = given ? given : sizeof usual / sizeof *usual;
    int rc = 0;
    for (size_t i = 0; i < len && rc == 0; i++) {
        struct sim_side side;
        rc = sim_side_init(&side, given ? r->v->policies.at[i] : usual[i], &r->fleet, err);
        if (rc == 0)
            vec_push(&r->sides, side);
    }
    return rc;
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static void trace_describe(const struct trace_sim *r, struct str *s)
{
    double span = (double)(r->trace.jobs[r->trace.len - 1].submit_ns - r->trace.jobs[0].submit_ns) / 1e9;
    char buf[32];
    str_addf(s, "%zu jobs over %s", r->trace.len, sim_report_time(span, buf));
    if (r->path)
        str_addf(s, " from %s", strrchr(r->path, '/') ? strrchr(r->path, '/') + 1 : r->path);
    else
        str_addf(s, ", %s, load %s, seed %" PRIu64, r->v->generate, r->v->load ? r->v->load : "0.8",
                 r->v->seed.given ? r->v->seed.n : 1);
}

static void result_print(struct trace_sim *r)
{
    CLEANUP(str) struct str trace = {0}, cluster = {0};
    trace_describe(r, &trace);
    sim_fleet_describe(&r->fleet, &cluster);
    struct sim_report report = {
        .title = "Simulation",
        .trace_text = str_text(&trace),
        .cluster_text = str_text(&cluster),
        .trace = &r->trace,
        .fleet = &r->fleet,
        .sides = r->sides.at,
        .sides_len = r->sides.len,
    };
    sides_print(r->cli, &report, r->v->output);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    struct trace_sim r = {.cli = cli, .v = values};
    struct berth_err err = {0};
    sim_trace_init(&r.trace);
    sim_fleet_init(&r.fleet);
    int rc = trace_make(&r, operands, &err);
    if (rc == 0)
        rc = policies_make(&r, &err);
    if (rc == 0) {
        struct sim_side_options playing = {
            .trace = &r.trace, .fleet = &r.fleet, .seed = r.v->seed.given ? r.v->seed.n : 1};
        rc = sides_run(cli, r.sides.at, r.sides.len, &playing, &err);
    }
    if (rc == 0)
        result_print(&r);
    for (size_t i = 0; i < r.sides.len; i++)
        sim_side_done(&r.sides.at[i]);
    vec_done(&r.sides);
    sim_fleet_done(&r.fleet);
    sim_trace_done(&r.trace);
    return rc ? cli_fail(cli, rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s", err.text) : EXIT_OK;
}

const struct command sim_run_command = {
    .name = "sim run",
    .operands = "[FILE]",
    .operands_max = 1,
    .summary = "Simulate a job trace on a cluster in virtual time, under one or several policies.",
    .text = "FILE is a trace in the Standard Workload Format or in Berth's CSV (docs/sim.md), "
            "optionally compressed (.gz). The decisions come from the daemon's planner. A policy is "
            "ORDER/BACKFILL/PREDICT/PROFILE; omitted parts at the end are easy, request, default. "
            "Orders: fcfs, sjf, sjbf, f1, or any ranking of docs/policies.md. Backfilling: none, "
            "easy, berth, usual, conservative, greedy. Predictions: request, clairvoyant, last2, "
            "berth. Profiles: see 'berth profiles'. berth selects the default policy in all of them. "
            "Without --policy, fcfs/easy and berth are compared.\n\n"
            "Slowdown is (wait + run) / max(run, 10 s), at least 1. Fairness is Jain's index of the "
            "users' slowdowns; 1 means that all users fare alike. Fragmentation is the share of idle "
            "resources on nodes where a task drawn from the trace does not fit.",
    .examples =
        "  berth sim run KTH-SP2.swf.gz --policy fcfs/easy --policy sjbf/easy/last2\n"
        "  berth sim run --generate diurnal --nodes 8xgpu8 --load 0.9 --policy fcfs/easy/request/fragmentation -o json\n"
        "  berth sim run jobs.csv --nodes 4xgpu8,10xcpu64 -o html > report.html",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct run_values),
    .section = SECTION_FILES,
    .run = run,
};
