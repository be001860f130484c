/* sim_replay.c - `berth sim replay`: replays recorded history under another policy or on another cluster. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "cli/journal/journal_source.h"
#include "cli/sim/sim_sides.h"
#include "sim/trace/history.h"

struct replay_values {
    struct option_list policies, drops;
    const char *data, *from, *to, *nodes;
    struct option_count seed;
    unsigned output;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("data", 0, replay_values, data, "DIR", JOURNAL_DATA_HELP),
    OPTION_TEXT_ROW("from", 0, replay_values, from, "WHEN", "Include only jobs submitted at or after this time."),
    OPTION_TEXT_ROW("to", 0, replay_values, to, "WHEN", "Include only jobs submitted up to this time."),
    OPTION_LIST_ROW("policy", 0, replay_values, policies, "POLICY",
                    "Policy as for `berth sim run`; may be given several times to compare. Default: berth."),
    OPTION_TEXT_ROW("nodes", 0, replay_values, nodes, "NODES",
                    "Nodes: +4xgpu8 adds to the recorded nodes, 4xgpu8 replaces them. Default: as recorded."),
    OPTION_LIST_ROW("drop", 0, replay_values, drops, "WHAT",
                    "Leave out matching jobs (user=, group=, queue=, name=) or a node (node=ID); may be "
                    "given several times."),
    OPTION_COUNT_ROW("seed", 0, replay_values, seed, 0, 0, "Random seed. Default: 1."),
    OPTION_CHOICE_ROW("output", 'o', replay_values, output, sides_forms,
                      "Output format; csv has one row per policy, jobs is CSV with one row per job, html is a "
                      "page with plots."),
};

struct history_replay {
    struct cli *cli;
    const struct replay_values *v;
    int64_t from_ns, to_ns; /* 0: no bound */
    struct sim_history history;
    struct sim_fleet other; /* set by --nodes */
    const struct sim_fleet *fleet;
    VEC(struct sim_side) sides;
    struct progress progress;
};

static void progress_show(void *ctx, uint64_t done, uint64_t total)
{
    progress_update(ctx, (size_t)done, (size_t)total);
}

static int history_read(struct history_replay *r, struct journal *journal, struct berth_err *err)
{
    struct sim_exclusion *drops = mem_zarray(r->v->drops.len + 1, sizeof *drops);
    char(*texts)[256] = mem_zarray(r->v->drops.len + 1, sizeof *texts);
    struct sim_history_options o = {.drops = drops,
                                    .drops_len = r->v->drops.len,
                                    .from_ns = r->from_ns,
                                    .to_ns = r->to_ns,
                                    .progress = progress_show,
                                    .ctx = &r->progress};
    int rc = 0;
    for (size_t i = 0; i < o.drops_len && rc == 0; i++) {
        rc = sim_exclusion_parse(r->v->drops.at[i], &drops[i], texts[i], err);
        if (rc)
            (void)err_prefix(err, "--drop");
    }
    if (rc == 0) {
        progress_start(&r->progress, r->cli, "Reading");
        rc = sim_history_read(journal, &o, &r->history, err);
        progress_end(&r->progress);
    }
    mem_free(drops);
    mem_free(texts);
    return rc;
}

static int cluster_make(struct history_replay *r, struct berth_err *err)
{
    const char *nodes = r->v->nodes;
    r->fleet = &r->history.fleet;
    if (!nodes && r->fleet->nodes.len == 0)
        return err_set(err, EINVAL, "the journal has no nodes at its end; describe the cluster with --nodes");
    if (!nodes)
        return 0;
    if (*nodes == '+')
        for (size_t i = 0; i < r->history.fleet.nodes.len; i++)
            vec_push(&r->other.nodes, r->history.fleet.nodes.at[i]);
    r->fleet = &r->other;
    return sim_fleet_add(&r->other, nodes + (*nodes == '+'), err) ? err_prefix(err, "--nodes") : 0;
}

static int sides_make(struct history_replay *r, struct berth_err *err)
{
    size_t given = r->v->policies.len;
    struct sim_side side;
    int rc = 0;
    sim_history_side(&r->history, &side);
    vec_push(&r->sides, side);
    for (size_t i = 0; i < (given ? given : 1) && rc == 0; i++) {
        rc = sim_side_init(&side, given ? r->v->policies.at[i] : "berth", r->fleet, err);
        if (rc == 0)
            vec_push(&r->sides, side);
    }
    return rc;
}

static void result_print(struct history_replay *r, const char *path)
{
    CLEANUP(str) struct str trace = {0}, cluster = {0};
    const struct sim_history *h = &r->history;
    const struct sim_trace *t = &h->trace;
    double span = (double)(t->jobs[t->len - 1].submit_ns - t->jobs[0].submit_ns) / 1e9;
    char buf[32];
    str_addf(&trace, "%zu jobs over %s from the journal %s", t->len, sim_report_time(span, buf), path);
    if (h->running)
        str_addf(&trace, "; %zu still ran at its end", h->running);
    if (h->unrun)
        str_addf(&trace, "; %zu never ran", h->unrun);
    if (h->dropped)
        str_addf(&trace, "; %zu excluded", h->dropped);
    sim_fleet_describe(r->fleet, &cluster);
    if (r->v->nodes) {
        str_add(&cluster, " (recorded: ");
        sim_fleet_describe(&h->fleet, &cluster);
        str_add(&cluster, ")");
    }
    struct sim_report report = {
        .title = "What if",
        .trace_text = str_text(&trace),
        .cluster_text = str_text(&cluster),
        .trace = t,
        .fleet = r->fleet,
        .sides = r->sides.at,
        .sides_len = r->sides.len,
    };
    sides_print(r->cli, &report, r->v->output);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    struct history_replay r = {.cli = cli, .v = values};
    struct berth_err err = {0};
    CLEANUP(journal) struct journal *journal = NULL;
    int code = journal_time_read(cli, "from", r.v->from, &r.from_ns);
    if (code == EXIT_OK)
        code = journal_time_read(cli, "to", r.v->to, &r.to_ns);
    if (code == EXIT_OK)
        code = journal_source_open(cli, r.v->data, operands, &journal);
    if (code != EXIT_OK)
        return code;
    sim_fleet_init(&r.other);
    int rc = history_read(&r, journal, &err);
    bool read = rc == 0;
    if (rc == 0)
        rc = cluster_make(&r, &err);
    if (rc == 0)
        rc = sides_make(&r, &err);
    if (rc == 0) {
        struct sim_side_options playing = {
            .trace = &r.history.trace, .fleet = r.fleet, .seed = r.v->seed.given ? r.v->seed.n : 1};
        rc = sides_run(cli, r.sides.at, r.sides.len, &playing, &err);
    }
    if (rc == 0)
        result_print(&r, r.v->data ? r.v->data : operands->at[0]);
    for (size_t i = 0; i < r.sides.len; i++)
        sim_side_done(&r.sides.at[i]);
    vec_done(&r.sides);
    sim_fleet_done(&r.other);
    if (read)
        sim_history_done(&r.history);
    return rc ? cli_fail(cli, rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s", err.text) : EXIT_OK;
}

const struct command sim_replay_command = {
    .name = "sim replay",
    .operands = JOURNAL_OPERANDS,
    .operands_max = OPERANDS_ANY,
    .summary = "Replay a daemon's recorded jobs under another policy or on another cluster and compare.",
    .text = "The journal is the data folder of a daemon (which may be running), a folder of "
            "segments, segments, or an export in JSON lines. Jobs have their recorded submission "
            "times, requests and run times; jobs that still run at the end of the journal end there. "
            "Apps and virtual machines are left out. To repeat the recorded decisions and compare "
            "them bit by bit, use 'berth replay'. WHEN is " JOURNAL_WHEN ".",
    .examples = "  berth sim replay /var/lib/berth --policy berth\n"
                "  berth sim replay /var/lib/berth --policy fcfs/easy --nodes +4xgpu8\n"
                "  berth sim replay --data /var/lib/berth --from yesterday\n"
                "  berth sim replay /var/lib/berth --drop user=ann -o html > what-if.html",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct replay_values),
    .section = SECTION_FILES,
    .run = run,
};
