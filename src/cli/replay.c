/* replay.c - `berth replay --data DIR`: every decision of a daemon made again from its journal, and compared. */
#include "control/replay.h"

#include <inttypes.h>

#include "cli/command.h"
#include "cli/progress.h"

struct replay_values {
    const char *data;
    struct option_count from, to;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("data", 0, replay_values, data, "DIR", "The folder of a daemon, which may be running."),
    OPTION_COUNT_ROW("from", 0, replay_values, from, 1, 0,
                     "Compare from this cycle on; what was before is only applied."),
    OPTION_COUNT_ROW("to", 0, replay_values, to, 1, 0, "Compare up to this cycle."),
};

struct telling {
    struct cli *cli;
    struct progress progress;
    uint64_t told;
};

static void tell_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_tell(&((struct telling *)ctx)->progress, (size_t)done, (size_t)total);
}

static void tell_difference(void *ctx, const struct replay_difference *d)
{
    enum { TOLD_MAX = 20 };
    struct telling *t = ctx;
    if (++t->told > TOLD_MAX)
        return;
    (void)fprintf(t->cli->out,
                  "cycle %" PRIu64 ", made from revision %" PRIu64 ": the %s differs: recorded %016" PRIx64
                  ", replayed %016" PRIx64 "\n",
                  d->cycle, d->revision, d->what, d->recorded, d->replayed);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct replay_values *v = values;
    struct store_options open = {.readonly = true};
    struct telling telling = {.cli = cli};
    struct replay_options how = {.from_cycle = v->from.n,
                                 .to_cycle = v->to.n,
                                 .progress = tell_progress,
                                 .differs = tell_difference,
                                 .ctx = &telling};
    struct replay_result result;
    struct store *store;
    struct berth_err err;
    (void)operands;

    if (!v->data)
        return cli_fail(cli, EXIT_USAGE, "which daemon? Give its folder: berth replay --data DIR");
    if (store_sqlite_open(v->data, &open, &store, &err) < 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    progress_start(&telling.progress, cli, "Replaying");
    int rc = replay_run(store, &how, &result, &err);
    progress_end(&telling.progress);
    store_close(store);
    if (rc < 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    (void)fprintf(cli->out, "%" PRIu64 " records, %" PRIu64 " changes, %" PRIu64 " decisions made again: %s",
                  result.records, result.changes, result.cycles, result.different ? "" : "all the same.\n");
    if (result.different)
        (void)fprintf(cli->out, "%" PRIu64 " differ.\n", result.different);
    return result.different ? EXIT_FAILED : EXIT_OK;
}

const struct command replay_command = {
    .name = "replay",
    .operands = "",
    .summary = "Make every recorded decision again and compare, bit for bit.",
    .text =
        "Reads the journal in the daemon's folder, rebuilds the state from its records alone, calls the same core, and "
        "compares the hashes of state and plan. Ends with exit code 1 if anything differs.",
    .examples = "  berth replay --data /var/lib/berth\n"
                "  berth replay --data /var/lib/berth --from 1000 --to 1010",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct replay_values),
    .section = SECTION_FILES,
    .run = run,
};
