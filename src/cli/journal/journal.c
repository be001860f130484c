/* journal.c - `berth journal ls` and `verify`: lists the segments of a journal and checks that none is missing or
 * damaged.
 */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "cli/journal/journal_source.h"
#include "cli/lib/progress.h"
#include "wire/doc/api.h"

struct journal_values {
    const char *data;
    unsigned output;
};

enum { OUTPUT_TABLE, OUTPUT_JSON };
static const char *const outputs[] = {"table", "json", NULL};

static const struct option ls_options[] = {
    OPTION_TEXT_ROW("data", 0, journal_values, data, "DIR", JOURNAL_DATA_HELP),
    OPTION_CHOICE_ROW("output", 'o', journal_values, output, outputs, "Output format; json has one line per segment."),
};

static const struct option verify_options[] = {
    OPTION_TEXT_ROW("data", 0, journal_values, data, "DIR", JOURNAL_DATA_HELP),
};

static const char *base_text(const struct segment *s)
{
    switch (s->base) {
    case SEGMENT_CHECKPOINT: return "checkpoint";
    case SEGMENT_BEGINNING: return "beginning";
    case SEGMENT_LOOSE: return "unknown";
    default: return "previous";
    }
}

static const char *time_text(int64_t ns, char buf[static TIMESTAMP_MAX])
{
    return ns ? timestamp_text(ns, buf) : "";
}

static void ls_json(FILE *out, const struct shelf_item *item)
{
    const struct segment *s = &item->segment;
    CLEANUP(str) struct str path = {0};
    char from[TIMESTAMP_MAX], to[TIMESTAMP_MAX];
    str_add_json(&path, item->path);
    (void)fprintf(out,
                  "{\"segment\":%" PRIu64 ",\"first\":%" PRIu64 ",\"last\":%" PRIu64 ",\"from\":\"%s\",\"to\":\"%s\","
                  "\"begins\":\"%s\",\"documents\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"record_bytes\":%" PRIu64
                  ",\"hash\":\"%016" PRIx64 "\",\"previous\":\"%016" PRIx64 "\",\"path\":%s}\n",
                  s->number, s->first, s->last, time_text(s->from_ns, from), time_text(s->to_ns, to), base_text(s),
                  s->documents, s->file_bytes, s->record_bytes, s->hash, s->previous, path.at);
}

static void ls_row(FILE *out, const struct segment *s)
{
    char from[TIMESTAMP_MAX], to[TIMESTAMP_MAX], numbers[48];
    (void)snprintf(numbers, sizeof numbers, "%" PRIu64 "-%" PRIu64, s->first, s->last);
    (void)fprintf(out, "%7" PRIu64 "  %-17s  %-20.19s  %-20.19s  %9" PRIu64 "  %9" PRIu64 "  %s\n", s->number, numbers,
                  time_text(s->from_ns, from), time_text(s->to_ns, to), s->file_bytes / 1024, s->record_bytes / 1024,
                  base_text(s));
}

static int ls_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct journal_values *v = values;
    CLEANUP(journal) struct journal *j = NULL;
    int code = journal_source_open(cli, v->data, operands, &j);
    if (code != EXIT_OK)
        return code;
    const struct shelf *shelf = journal_shelf(j);
    uint64_t last = 0, log_last = journal_log_last(j);
    if (v->output == OUTPUT_TABLE)
        (void)fprintf(cli->out, "%7s  %-17s  %-20s  %-20s  %9s  %9s  %s\n", "SEGMENT", "RECORDS", "FROM", "TO", "KIB",
                      "UNPACKED", "BEGINS FROM");
    for (size_t i = 0; i < shelf->items.len; i++) {
        if (v->output == OUTPUT_JSON)
            ls_json(cli->out, &shelf->items.at[i]);
        else
            ls_row(cli->out, &shelf->items.at[i].segment);
        last = shelf->items.at[i].segment.last;
    }
    if (v->output == OUTPUT_TABLE && log_last > last)
        (void)fprintf(cli->out, "%7s  %" PRIu64 "-%" PRIu64 " are only in the store's log\n", "log", last + 1,
                      log_last);
    return EXIT_OK;
}

/* ---- verify ----------------------------------------------------------------------------------------------------- */

struct journal_verify {
    struct cli *cli;
    struct progress progress;
    uint64_t records, documents, gaps;
};

static int verify_start(void *ctx, const struct journal_break *b)
{
    struct journal_verify *v = ctx;
    if (b->before && b->first != b->before + 1) {
        v->gaps++;
        (void)fprintf(v->cli->out, "records %" PRIu64 " to %" PRIu64 " are missing\n", b->before + 1, b->first - 1);
    } else if (b->start == JOURNAL_FROM_UNKNOWN) {
        (void)fprintf(v->cli->out, "records before %" PRIu64 " are missing\n", b->first);
    }
    return 0;
}

static int verify_document(void *ctx, const char *key, uint64_t revision, struct bytes doc)
{
    (void)key;
    (void)revision;
    (void)doc;
    ((struct journal_verify *)ctx)->documents++;
    return 0;
}

static int verify_record(void *ctx, const struct store_record *record)
{
    (void)record;
    ((struct journal_verify *)ctx)->records++;
    return 0;
}

static void verify_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_update(&((struct journal_verify *)ctx)->progress, (size_t)done, (size_t)total);
}

static int verify_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct journal_values *v = values;
    CLEANUP(journal) struct journal *j = NULL;
    struct journal_verify verifying = {.cli = cli};
    struct journal_visitor visitor = {verify_start, verify_document, verify_record, verify_progress, &verifying};
    struct berth_err err;
    int code = journal_source_open(cli, v->data, operands, &j);
    if (code != EXIT_OK)
        return code;
    progress_start(&verifying.progress, cli, "Verifying");
    int rc = journal_read(j, &(struct journal_range){0}, &visitor, &err);
    progress_end(&verifying.progress);
    if (rc < 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    (void)fprintf(cli->out, "%" PRIu64 " records, %zu segments: all checksums and the chain are valid.\n",
                  verifying.records, journal_shelf(j)->items.len);
    return verifying.gaps ? cli_fail(cli, EXIT_FAILED, "records are missing in %" PRIu64 " places", verifying.gaps)
                          : EXIT_OK;
}

const struct command journal_ls_command = {
    .name = "journal ls",
    .operands = JOURNAL_OPERANDS,
    .operands_max = OPERANDS_ANY,
    .summary = "List the segments of a journal.",
    .text = "A segment is a closed part of the journal in one file; the records after the last "
            "segment are in the store's log. Segments that begin with a checkpoint can be read and "
            "replayed without earlier segments.",
    .examples = "  berth journal ls --data /var/lib/berth\n  berth journal ls /backup/journal -o json",
    .options = ls_options,
    .options_len = sizeof ls_options / sizeof *ls_options,
    .values_size = sizeof(struct journal_values),
    .section = SECTION_FILES,
    .run = ls_run,
};

const struct command journal_verify_command = {
    .name = "journal verify",
    .operands = JOURNAL_OPERANDS,
    .operands_max = OPERANDS_ANY,
    .summary = "Verify all checksums and the chain of a journal.",
    .text = "Exits with code 1 if anything is damaged or missing.",
    .examples = "  berth journal verify --data /var/lib/berth\n  berth journal verify /backup/journal",
    .options = verify_options,
    .options_len = sizeof verify_options / sizeof *verify_options,
    .values_size = sizeof(struct journal_values),
    .section = SECTION_FILES,
    .run = verify_run,
};
