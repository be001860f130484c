/* sim.c - `berth sim cluster`: simulates a whole cluster from a seed, with faults, and checks invariants after every
 * event.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "sim/cluster/cluster.h"

enum { OUTPUT_TEXT, OUTPUT_JSON };
static const char *const outputs[] = {"text", "json", NULL};

struct sim_values {
    struct option_count seed, nodes, users, people, trouble;
    const char *hours, *faults;
    unsigned output;
    bool trace, quiet;
};

static const struct option options[] = {
    OPTION_COUNT_ROW("seed", 0, sim_values, seed, 0, 0, "Seed of the whole run. Default: 1."),
    OPTION_TEXT_ROW("hours", 0, sim_values, hours, "HOURS",
                    "Virtual hours to run; fractions such as 0.5 are allowed. Default: 1."),
    OPTION_COUNT_ROW("nodes", 0, sim_values, nodes, 1, 1000, "Number of nodes. Default: random."),
    OPTION_COUNT_ROW("users", 0, sim_values, users, 1, 100, "Number of users. Default: random."),
    OPTION_COUNT_ROW("people", 0, sim_values, people, 1, 10000, "User activity, in percent of normal."),
    OPTION_COUNT_ROW("trouble", 0, sim_values, trouble, 1, 10000, "Frequency of faults, in percent of normal."),
    OPTION_TEXT_ROW("faults", 0, sim_values, faults, "LIST",
                    "Comma-separated faults to inject; `-NAME` excludes one; `help` lists them. Default: all."),
    OPTION_FLAG_ROW("trace", 0, sim_values, trace, "Print one line per event."),
    OPTION_FLAG_ROW("quiet", 'q', sim_values, quiet, "Print only broken invariants."),
    OPTION_CHOICE_ROW("output", 'o', sim_values, output, outputs, "Output format."),
};

struct cluster_sim {
    struct cli *cli;
    struct progress progress;
    double hours;
};

static void progress_show(void *ctx, double hours, uint64_t events)
{
    struct cluster_sim *r = ctx;
    (void)events;
    progress_update(&r->progress, (size_t)(hours * 1000), (size_t)(r->hours * 1000));
}

static void event_print(void *ctx, const char *line)
{
    (void)fprintf(((struct cluster_sim *)ctx)->cli->out, "%s\n", line);
}

static const struct {
    const char *name, *what;
    size_t at;
} rows[] = {
#define ROW(field, what)                                                                                               \
    {                                                                                                                  \
#field, what, offsetof(struct sim_result, field)                                                               \
    }
    ROW(events, "events"),
    ROW(checks, "checks of invariants"),
    ROW(requests, "requests"),
    ROW(refused, "of these refused"),
    ROW(reports, "reports of agents"),
    ROW(transactions, "transactions"),
    ROW(plans, "plans"),
    ROW(replayed, "decisions replayed"),
    ROW(placements, "placements"),
    ROW(conflicts, "conflicts"),
    ROW(watched, "changes watched"),
    ROW(crashes, "crashes of the daemon"),
    ROW(store_failures, "failures of the store"),
    ROW(lost_nodes, "nodes that stopped reporting"),
    ROW(double_agents, "messages of forged agents"),
#undef ROW
};

static uint64_t value_of(const struct sim_result *result, size_t row)
{
    return *(const uint64_t *)((const char *)result + rows[row].at);
}

static void print_text(const struct cluster_sim *r, const struct sim_options *o, const struct sim_result *result,
                       double seconds)
{
    FILE *out = r->cli->out;
    (void)fprintf(out, "Seed %" PRIu64 ", %g virtual hours in %.1f s\n", o->seed, r->hours, seconds);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        (void)fprintf(out, "%12" PRIu64 "  %s\n", value_of(result, i), rows[i].what);
    for (size_t i = 0; i < SIM_FAULTS; i++)
        if (result->faults[i])
            (void)fprintf(out, "%12" PRIu64 "  times %s\n", result->faults[i], sim_fault_at(i)->text);
    (void)fprintf(out, "The same seed gives the same run: %016" PRIx64 "\n", result->hash);
}

/* Adds how often each invariant was checked and each fault was injected. */
static void print_counts(struct str *s, const struct sim_result *result)
{
    const char *comma = "";
    str_add(s, ",\"checked\":{");
    for (size_t i = 0; i < SIM_INVARIANTS; i++)
        if (result->checked[i]) {
            str_addf(s, "%s\"%s%zu\":%" PRIu64, comma, i > 100 ? "P" : "", i % 100, result->checked[i]);
            comma = ",";
        }
    comma = "";
    str_add(s, "},\"faults\":{");
    for (size_t i = 0; i < SIM_FAULTS; i++) {
        str_addf(s, "%s\"%s\":%" PRIu64, comma, sim_fault_at(i)->name, result->faults[i]);
        comma = ",";
    }
    str_add_char(s, '}');
}

static void print_json(const struct cluster_sim *r, const struct sim_options *o, const struct sim_result *result,
                       const struct berth_err *err, double seconds)
{
    CLEANUP(str) struct str s = {0};
    str_addf(&s, "{\"seed\":%" PRIu64 ",\"hours\":%g,\"seconds\":%.3f,\"hash\":\"%016" PRIx64 "\"", o->seed, r->hours,
             seconds, result->hash);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        str_addf(&s, ",\"%s\":%" PRIu64, rows[i].name, value_of(result, i));
    print_counts(&s, result);
    if (result->invariant) {
        str_addf(&s, ",\"breach\":{\"invariant\":%d,\"event\":%" PRIu64 ",\"text\":", result->invariant,
                 result->breach_event);
        str_add_json(&s, err->text);
        str_add_char(&s, '}');
    }
    (void)fprintf(r->cli->out, "%s}\n", str_text(&s));
}

static int print_faults(struct cli *cli)
{
    const struct sim_fault *fault;
    for (size_t i = 0; (fault = sim_fault_at(i)); i++)
        (void)fprintf(cli->out, "%-12s %s\n", fault->name, fault->text);
    return EXIT_OK;
}

static bool hours_parse(const char *text, double *ret)
{
    char *end;
    double hours = strtod(text, &end);
    if (end == text || *end || !(hours > 0) || hours > 24 * 365)
        return false;
    *ret = hours;
    return true;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct sim_values *v = values;
    struct cluster_sim r = {.cli = cli, .hours = 1};
    struct berth_err err = {0};
    struct sim_result result = {0};
    uint64_t faults;
    (void)operands;

    if (v->hours && !hours_parse(v->hours, &r.hours))
        return cli_fail(cli, EXIT_USAGE, "--hours: expected a number of hours above 0, such as 24 or 0.5");
    if (v->faults && strcmp(v->faults, "help") == 0)
        return print_faults(cli);
    if (v->faults && sim_faults_parse(v->faults, &faults, &err) < 0)
        return cli_fail(cli, EXIT_USAGE, "--faults: %s", err.text);
    struct sim_options o = {
        .seed = v->seed.given ? v->seed.n : 1,
        .hours = r.hours,
        .nodes = (size_t)v->nodes.n,
        .users = (size_t)v->users.n,
        .rates = {.people = (unsigned)v->people.n, .faults = (unsigned)v->trouble.n},
        .faults = v->faults,
        .progress = progress_show,
        .trace = v->trace ? event_print : NULL,
        .ctx = &r
    };
    progress_start(&r.progress, cli, "Simulating");
    int64_t start_ns = cli_clock_ns();
    int rc = sim_cluster_run(&o, &result, &err);
    double seconds = (double)(cli_clock_ns() - start_ns) / 1e9;
    progress_end(&r.progress);
    bool broken = result.invariant != 0;
    bool ran = rc == 0 || broken; /* otherwise there is no result to print */
    if (v->output == OUTPUT_JSON && ran && (broken || !v->quiet))
        print_json(&r, &o, &result, &err, seconds);
    else if (v->output == OUTPUT_TEXT && ran && !v->quiet)
        print_text(&r, &o, &result, seconds);
    return rc < 0 ? cli_fail(cli, EXIT_FAILED, "%s", err.text) : EXIT_OK;
}

const struct command sim_cluster_command = {
    .name = "sim cluster",
    .operands = "",
    .summary = "Simulate a whole cluster from a seed, with faults, and check the invariants after every "
               "event.",
    .text = "Runs the real logic of the daemon and of every agent in this process, with a store in "
            "memory, simulated machines and a virtual clock. Programs start, exit, fail and ignore "
            "signals; users call the API correctly and incorrectly; the daemon and agents are "
            "killed, machines reboot, links fail, disks fill up, clocks jump. A broken invariant is "
            "reported with its number, the event and the command that reproduces it; the exit code "
            "is 1.",
    .examples = "  berth sim cluster --seed 7 --hours 24\n"
                "  berth sim cluster --seed 7 --hours 0.1 --trace\n"
                "  berth sim cluster --nodes 5 --faults partition,agent-kill -o json",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct sim_values),
    .section = SECTION_FILES,
    .run = run,
};
