/* sim_swf.c - `berth sim swf`: simulates a log in the Standard Workload Format. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "sim/protocol/rlscheduler.h"
#include "sim/trace/trace_policy.h"
#include "sim/trace/trace_run.h"

enum { OUTPUT_TEXT, OUTPUT_CSV, OUTPUT_JSON };
static const char *const outputs[] = {"text", "csv", "json", NULL};

enum { PROTOCOL_PLAIN, PROTOCOL_RLSCHEDULER };
static const char *const protocols[] = {"plain", "rlscheduler", NULL};

struct swf_values {
    struct option_count procs, length;
    const char *order, *backfill, *predict, *starts;
    unsigned protocol, output;
};

static const struct swf_values usual = {.order = "fcfs", .backfill = "easy", .predict = "request"};

static const struct option options[] = {
    OPTION_COUNT_ROW("procs", 0, swf_values, procs, 1, (uint64_t)1 << 40,
                     "Processors of the machine. Default: the number in the log."),
    OPTION_TEXT_ROW("order", 0, swf_values, order, "NAME", "Order of the queue, see below. Default: fcfs."),
    OPTION_TEXT_ROW("backfill", 0, swf_values, backfill, "NAME", "Backfilling, see below. Default: easy."),
    OPTION_TEXT_ROW("predict", 0, swf_values, predict, "NAME", "Prediction of run times, see below. Default: request."),
    OPTION_TEXT_ROW("starts", 0, swf_values, starts, "A,B,C",
                    "Simulate parts of the log, each on an empty machine; first job of each part, counted "
                    "from 0."),
    OPTION_COUNT_ROW("length", 0, swf_values, length, 1, 0, "Jobs per part. Default: all following jobs."),
    OPTION_CHOICE_ROW("protocol", 0, swf_values, protocol, protocols,
                      "Order of events: plain, or as published for RLScheduler."),
    OPTION_CHOICE_ROW("output", 'o', swf_values, output, outputs,
                      "Output format; csv has the wait of each job (job_id,wait)."),
};

typedef VEC(size_t) start_list;

struct swf_run {
    struct cli *cli;
    const struct swf_values *v;
    struct sim_trace trace;
    struct sim_machine machine;
    struct berth_policy policy;
    const struct sim_predictor *predictor;
    struct progress progress;
    struct sim_summary all; /* sums, later means, of all parts */
    double plans;
    struct str parts; /* JSON */
    size_t parts_len;
};

/* ---- one part --------------------------------------------------------------------------------------------------- */

static void print_waits(const struct swf_run *r, const struct sim_trace *t, const struct sim_outcomes *o)
{
    for (size_t i = 0; i < t->len; i++) {
        double wait = (double)(o->at[i].start_ns - t->jobs[i].submit_ns) / 1e9;
        if (o->at[i].start_ns < 0)
            (void)fprintf(r->cli->out, "%" PRId64 ",\n", t->jobs[i].id);
        else
            (void)fprintf(r->cli->out, "%" PRId64 ",%.10g\n", t->jobs[i].id, wait);
    }
}

static void json_add(struct str *s, const struct sim_summary *m)
{
    str_addf(s, "\"jobs\":%zu,\"average_bounded_slowdown\":%.10g,\"max_bounded_slowdown\":%.10g,", m->jobs,
             m->average_bounded_slowdown, m->max_bounded_slowdown);
    str_addf(s, "\"rms_bounded_slowdown\":%.10g,\"utilisation\":%.10g,", m->rms_bounded_slowdown, m->utilisation);
    str_addf(s, "\"mean_wait\":%.10g,\"max_wait\":%.10g,\"mean_completion\":%.10g,\"p99_completion\":%.10g,",
             m->mean_wait_s, m->max_wait_s, m->mean_completion_s, m->p99_completion_s);
    str_addf(s, "\"makespan\":%.10g,\"median_queue\":%.10g", m->makespan_s, m->queue_median);
}

/* Adds a part to the sums; all_close divides them by the number of parts. */
static void all_add(struct swf_run *r, const struct sim_summary *m)
{
    struct sim_summary *a = &r->all;
    a->jobs += m->jobs;
    a->unrun += m->unrun;
    a->average_bounded_slowdown += m->average_bounded_slowdown;
    a->rms_bounded_slowdown += m->rms_bounded_slowdown * m->rms_bounded_slowdown;
    a->utilisation += m->utilisation;
    a->mean_wait_s += m->mean_wait_s;
    a->mean_completion_s += m->mean_completion_s;
    a->makespan_s += m->makespan_s;
    a->queue_median += m->queue_median;
    a->p99_completion_s = fmax(a->p99_completion_s, m->p99_completion_s);
    a->max_bounded_slowdown = fmax(a->max_bounded_slowdown, m->max_bounded_slowdown);
    a->max_wait_s = fmax(a->max_wait_s, m->max_wait_s);
}

static void all_close(struct swf_run *r)
{
    struct sim_summary *a = &r->all;
    double n = (double)r->parts_len;
    a->average_bounded_slowdown /= n;
    a->rms_bounded_slowdown = sqrt(a->rms_bounded_slowdown / n);
    a->utilisation /= n;
    a->mean_wait_s /= n;
    a->mean_completion_s /= n;
    a->makespan_s /= n;
    a->queue_median /= n;
}

static int part_run(struct swf_run *r, size_t from, size_t len, struct berth_err *err)
{
    CLEANUP(sim_outcomes) struct sim_outcomes out = {0};
    struct sim_trace part = r->trace; /* a view; strings are borrowed from the whole trace */
    part.jobs += from;
    part.len = len;
    struct sim_setup s = {.trace = &part,
                          .nodes = &r->machine.node,
                          .nodes_len = 1,
                          .policy = &r->policy,
                          .predictor = r->predictor,
                          .progress = progress_update,
                          .ctx = &r->progress};
    int rc = r->v->protocol == PROTOCOL_RLSCHEDULER ? sim_rlscheduler_run(&s, &out, err) : sim_trace_run(&s, &out, err);
    if (rc)
        return rc;
    struct sim_summary m = sim_summarise(&part, &out, false);
    r->plans += (double)out.plans;
    if (r->v->output == OUTPUT_CSV)
        print_waits(r, &part, &out);
    str_addf(&r->parts, "%s{\"start\":%zu,", r->parts_len ? "," : "", from);
    json_add(&r->parts, &m);
    str_add_char(&r->parts, '}');
    all_add(r, &m);
    r->parts_len++;
    return 0;
}

/* ---- all parts -------------------------------------------------------------------------------------------------- */

static int parts_run(struct swf_run *r, const start_list *starts, struct berth_err *err)
{
    size_t most = r->v->length.given ? (size_t)r->v->length.n : r->trace.len;
    int rc = 0;
    if (r->v->output == OUTPUT_CSV)
        (void)fputs("job_id,wait\n", r->cli->out);
    for (size_t i = 0; i < starts->len && rc == 0; i++) {
        size_t left = r->trace.len - starts->at[i];
        rc = part_run(r, starts->at[i], left < most ? left : most, err);
    }
    return rc;
}

static int starts_read(const struct swf_run *r, start_list *to, struct berth_err *err)
{
    const char *at = r->v->starts ? r->v->starts : "0";
    for (;; at++) {
        char *end;
        unsigned long n = strtoul(at, &end, 10);
        if (*at < '0' || *at > '9' || (*end && *end != ','))
            return err_set(err, EINVAL, "--starts: expected comma-separated numbers, such as 0,1024,4096");
        if (n >= r->trace.len)
            return err_set(err, EINVAL, "--starts: no job %lu; the log has %zu jobs, counted from 0", n, r->trace.len);
        vec_push(to, n);
        at = end;
        if (!*at)
            return 0;
    }
}

/* Rejects jobs larger than the machine, which would block all later jobs forever. */
static int check_sizes(const struct swf_run *r, int64_t procs, struct berth_err *err)
{
    for (size_t i = 0; i < r->trace.len; i++)
        if (r->trace.jobs[i].cpu_milli > procs * 1000)
            return err_set(err, EINVAL,
                           "job %" PRId64 " requests %" PRId64 " processors, the machine has %" PRId64
                           "; set the number with --procs",
                           r->trace.jobs[i].id, r->trace.jobs[i].cpu_milli / 1000, procs);
    return 0;
}

static int policy_read(struct swf_run *r, struct berth_err *err)
{
    int rc = sim_policy_order(r->v->order, &r->policy, err);
    if (rc == 0)
        rc = sim_policy_backfill(r->v->backfill, &r->policy, err);
    return rc ? rc : sim_policy_predictor(r->v->predict, &r->predictor, err);
}

static int machine_make(struct swf_run *r, const char *path, struct berth_err *err)
{
    int64_t procs = r->v->procs.given ? (int64_t)r->v->procs.n : r->trace.procs;
    if (procs <= 0)
        return err_set(err, EINVAL, "%s does not contain the number of processors; set it with --procs N", path);
    sim_machine_init(&r->machine, procs);
    return check_sizes(r, procs, err);
}

/* Returns an enum exit_code: EXIT_USAGE for wrong options, EXIT_FAILED for a bad file. */
static int prepare(struct swf_run *r, const char *path, start_list *starts, struct berth_err *err)
{
    if (policy_read(r, err))
        return EXIT_USAGE;
    if (sim_trace_swf_read(path, &r->trace, err))
        return EXIT_FAILED;
    return machine_make(r, path, err) || starts_read(r, starts, err) ? EXIT_USAGE : EXIT_OK;
}

static void print_text(const struct swf_run *r, double seconds)
{
    const struct sim_summary *m = &r->all;
    FILE *out = r->cli->out;
    (void)fprintf(out, "%zu jobs in %zu part%s, %.0f plans in %.1f s\n", m->jobs, r->parts_len,
                  r->parts_len == 1 ? "" : "s", r->plans, seconds);
    (void)fprintf(out, "%14.2f  average bounded slowdown (10 s)\n", m->average_bounded_slowdown);
    (void)fprintf(out, "%14.2f  largest\n", m->max_bounded_slowdown);
    (void)fprintf(out, "%14.2f  root mean square\n", m->rms_bounded_slowdown);
    (void)fprintf(out, "%14.2f  utilisation, percent\n", 100 * m->utilisation);
    (void)fprintf(out, "%14.0f  mean wait, seconds\n", m->mean_wait_s);
    (void)fprintf(out, "%14.0f  longest wait, seconds\n", m->max_wait_s);
    (void)fprintf(out, "%14.0f  mean time from submission to end, seconds\n", m->mean_completion_s);
    (void)fprintf(out, "%14.0f  median length of the queue\n", m->queue_median);
}

static void print_json(const struct swf_run *r, double seconds)
{
    CLEANUP(str) struct str s = {0};
    str_add_char(&s, '{');
    json_add(&s, &r->all);
    str_addf(&s, ",\"plans\":%.0f,\"seconds\":%.3f,\"parts\":[%s]}", r->plans, seconds, str_text(&r->parts));
    (void)fprintf(r->cli->out, "%s\n", str_text(&s));
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    struct swf_run r = {.cli = cli, .v = values};
    start_list starts = {0};
    struct berth_err err = {0};
    sim_trace_init(&r.trace);
    int code = prepare(&r, operands->at[0], &starts, &err);
    int64_t start_ns = cli_clock_ns();
    if (code == EXIT_OK) {
        progress_start(&r.progress, cli, "Simulating");
        code = parts_run(&r, &starts, &err) ? EXIT_FAILED : EXIT_OK;
        progress_end(&r.progress);
    }
    double seconds = (double)(cli_clock_ns() - start_ns) / 1e9;
    if (code == EXIT_OK) {
        all_close(&r);
        if (r.v->output == OUTPUT_JSON)
            print_json(&r, seconds);
        if (r.v->output == OUTPUT_TEXT)
            print_text(&r, seconds);
    }
    vec_done(&starts);
    str_done(&r.parts);
    sim_trace_done(&r.trace);
    return code == EXIT_OK ? code : cli_fail(cli, (enum exit_code)code, "%s", err.text);
}

const struct command sim_swf_command = {
    .name = "sim swf",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Simulate a log in the Standard Workload Format in virtual time.",
    .text =
        "FILE may be compressed (.gz). The machine is one node with all processors; the planner decides at every "
        "submission and every end, as the daemon would. Orders: fcfs, sjf (shortest predicted first), sjbf (first "
        "come, backfilling the shortest first), f1, or any ranking of 'berth policy list'. Backfilling: none, easy "
        "(one reservation), usual (a hundred), conservative (one for each job), greedy (no reservations). "
        "Predictions: request, clairvoyant (the real run time), last2 (the mean of the user's last two jobs, longer "
        "by steps when too short). Each may be berth: the daemon's default, without knowledge of the future. Slowdown"
        " is (wait + run) / max(run, 10 s), at least 1. For several parts, the numbers are means; 'largest' and "
        "'longest' are the maxima.",
    .examples =
        "  berth sim swf KTH-SP2.swf.gz --order fcfs --backfill easy --predict request\n"
        "  berth sim swf KTH-SP2.swf.gz --procs 100 --order sjbf --predict last2 -o csv\n"
        "  berth sim swf lublin_256.swf.gz --order f1 --starts 1981,2756 --length 1024 --protocol rlscheduler -o json",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .defaults = &usual,
    .values_size = sizeof(struct swf_values),
    .section = SECTION_FILES,
    .run = run,
};
