/* replay.c - `berth replay`: repeats every decision of a daemon from its journal, and compares the results. */
#include "control/journal/replay.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "cli/journal/journal_source.h"
#include "cli/lib/progress.h"
#include "wire/doc/api.h"

struct replay_values {
    const char *data, *from, *to;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("data", 0, replay_values, data, "DIR", JOURNAL_DATA_HELP),
    OPTION_TEXT_ROW("from", 0, replay_values, from, "WHEN",
                    "Compare from this cycle or time on; earlier records are only applied."),
    OPTION_TEXT_ROW("to", 0, replay_values, to, "WHEN", "Compare up to this cycle or time."),
};

struct replay_output {
    struct cli *cli;
    struct progress progress;
    uint64_t told;
};

static void progress_show(void *ctx, uint64_t done, uint64_t total)
{
    progress_update(&((struct replay_output *)ctx)->progress, (size_t)done, (size_t)total);
}

static void actions_print(FILE *out, const char *mark, const json_t *list, const json_t *other)
{
    enum { SHOWN_MAX = 20 };
    size_t i, shown = 0;
    const json_t *a;
    json_array_foreach((json_t *)list, i, a)
    {
        if (replay_action_in(other, a) || ++shown > SHOWN_MAX)
            continue;
        const char *op = json_string_value(json_array_get(a, 0)), *work = json_string_value(json_array_get(a, 1));
        const char *node = json_string_value(json_array_get(a, 3)), *cause = json_string_value(json_array_get(a, 5));
        (void)fprintf(out, "    %s %s %s/%" PRId64 "%s%s (%s)\n", mark, op ? op : "?", work ? work : "?",
                      (int64_t)json_integer_value(json_array_get(a, 2)), node && *node ? " on " : "", node ? node : "",
                      cause ? cause : "?");
    }
    if (shown > SHOWN_MAX)
        (void)fprintf(out, "    %s and %zu more\n", mark, shown - SHOWN_MAX);
}

static void difference_print(void *ctx, const struct replay_difference *d)
{
    enum { TOLD_MAX = 20 };
    struct replay_output *t = ctx;
    FILE *out = t->cli->out;
    char now[TIMESTAMP_MAX];
    if (++t->told > TOLD_MAX)
        return;
    (void)fprintf(out,
                  "cycle %" PRIu64 " (%s, record %" PRIu64 "), made from revision %" PRIu64
                  ": the %s differs: recorded %016" PRIx64 ", replayed %016" PRIx64 "\n",
                  d->cycle, timestamp_text(d->now_ns, now), d->record, d->revision, d->what, d->recorded, d->replayed);
    if (*d->input)
        (void)fprintf(out, "  %s\n", d->input);
    if (!d->actions)
        return;
    if (!*d->input)
        (void)fprintf(out, "  all recorded inputs are equal: this build decides differently\n");
    (void)fprintf(out, "  recorded %zu actions (-), replayed %zu (+):\n", json_array_size(d->actions),
                  json_array_size(d->actions_replayed));
    actions_print(out, "-", d->actions, d->actions_replayed);
    actions_print(out, "+", d->actions_replayed, d->actions);
}

/* If no decision was compared, the verdict is not "same". */
static const char *verdict(const struct replay_result *r)
{
    if (r->cycles)
        return "all the same";
    return r->skipped ? "none comparable" : "none";
}

static int result_print(struct cli *cli, const struct replay_result *r)
{
    (void)fprintf(cli->out, "%" PRIu64 " records, %" PRIu64 " changes, %" PRIu64 " decisions replayed: ", r->records,
                  r->changes, r->cycles);
    if (r->different)
        (void)fprintf(cli->out, "%" PRIu64 " differ.\n", r->different);
    else
        (void)fprintf(cli->out, "%s.\n", verdict(r));
    if (r->gaps)
        (void)fprintf(cli->out, "Records are missing in %" PRIu64 " places.\n", r->gaps);
    if (r->skipped)
        (void)fprintf(cli->out, "%" PRIu64 " decisions could not be replayed: their state precedes the first record.\n",
                      r->skipped);
    return r->different ? EXIT_FAILED : EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct replay_values *v = values;
    struct replay_output replay_output = {.cli = cli};
    struct journal_bound from = {0}, to = {0};
    struct replay_result result;
    struct berth_err err;
    CLEANUP(journal) struct journal *journal = NULL;
    int code = journal_bound_read(cli, "from", v->from, &from);
    if (code == EXIT_OK)
        code = journal_bound_read(cli, "to", v->to, &to);
    if (code == EXIT_OK)
        code = journal_source_open(cli, v->data, operands, &journal);
    if (code != EXIT_OK)
        return code;
    struct replay_options how = {.from_cycle = from.number,
                                 .to_cycle = to.number,
                                 .from_ns = from.ns,
                                 .to_ns = to.ns,
                                 .progress = progress_show,
                                 .differs = difference_print,
                                 .ctx = &replay_output};
    progress_start(&replay_output.progress, cli, "Replaying");
    int rc = replay_journal(journal, &how, &result, &err);
    progress_end(&replay_output.progress);
    return rc < 0 ? cli_fail(cli, EXIT_FAILED, "%s", err.text) : result_print(cli, &result);
}

const struct command replay_command = {
    .name = "replay",
    .operands = JOURNAL_OPERANDS,
    .operands_max = OPERANDS_ANY,
    .summary = "Replay every recorded decision and compare the results bit by bit.",
    .text = "Reads a journal from the folder of its daemon, or from segments and exports; rebuilds "
            "the state from its records, runs the same planner, and compares the hashes of state and "
            "plan. A difference is shown with the recorded and the replayed actions and the first "
            "input that differs. Cycles are numbered from the start of each daemon; a time is " JOURNAL_WHEN
            ". Exits with code 1 if anything differs.",
    .examples = "  berth replay /var/lib/berth\n"
                "  berth replay /var/lib/berth --from 2026-11-16 --to 2026-11-17\n"
                "  berth replay /backup/journal/000017.seg",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct replay_values),
    .section = SECTION_FILES,
    .run = run,
};
