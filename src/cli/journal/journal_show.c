/* journal_show.c - `berth journal show` and `grep`: prints the records of a range, or those that match. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "cli/journal/journal_source.h"
#include "journal/scan.h"
#include "wire/doc/api.h"

struct show_values {
    const char *data, *from, *to, *who, *kind, *subject, *key, *text;
    unsigned output;
    bool count;
};

enum { OUTPUT_TEXT, OUTPUT_JSON };
static const char *const outputs[] = {"text", "json", NULL};

#define RANGE_ROWS                                                                                                     \
    OPTION_TEXT_ROW("data", 0, show_values, data, "DIR", JOURNAL_DATA_HELP),                                           \
        OPTION_TEXT_ROW("from", 0, show_values, from, "WHEN", "Start at this record or time."),                        \
        OPTION_TEXT_ROW("to", 0, show_values, to, "WHEN", "End at this record or time."),                              \
        OPTION_CHOICE_ROW("output", 'o', show_values, output, outputs, "Output format; one line per record.")

static const struct option show_options[] = {RANGE_ROWS};

static const struct option grep_options[] = {
    RANGE_ROWS,
    OPTION_TEXT_ROW("who", 0, show_values, who, "NAME", "Author: a user, `node:ID`, or `berth` itself."),
    OPTION_TEXT_ROW("kind", 0, show_values, kind, "TEXT",
                    "Kind of the record, or its beginning: `POST /v1/jobs`, `unit`, `views`."),
    OPTION_TEXT_ROW("subject", 0, show_values, subject, "ID", "Subject of the record: `jobs/17`."),
    OPTION_TEXT_ROW("key", 0, show_values, key, "KEY", "Match records that wrote or removed this document: `jobs/17`."),
    OPTION_TEXT_ROW("text", 0, show_values, text, "TEXT", "Match records that contain this text."),
    OPTION_FLAG_ROW("count", 0, show_values, count, "Print only the number of matches."),
};

struct journal_show {
    struct cli *cli;
    const struct show_values *v;
    uint64_t found;
};

/* Returns the text of a member; "" if the record lacks it. */
static const char *member(struct bytes record, const char *key, struct str *to)
{
    struct bytes value;
    str_clear(to);
    if (!scan_member(record, key, &value) || !scan_text(value, to))
        str_add(to, "");
    return str_text(to);
}

static bool writes(struct bytes record, const char *key)
{
    struct bytes changes, change, name;
    CLEANUP(str) struct str text = {0};
    const char *at = NULL;
    if (!scan_member(record, "changes", &changes))
        return false;
    while (scan_next(changes, &at, &change)) {
        const char *in = NULL;
        str_clear(&text);
        if (scan_next(change, &in, &name) && scan_text(name, &text) && strcmp(str_text(&text), key) == 0)
            return true;
    }
    return false;
}

static bool matches(const struct show_values *v, struct bytes record)
{
    CLEANUP(str) struct str text = {0};
    if (v->text && !memmem(record.at, record.len, v->text, strlen(v->text)))
        return false;
    if (v->who && strcmp(member(record, "who", &text), v->who) != 0)
        return false;
    if (v->kind && strncmp(member(record, "kind", &text), v->kind, strlen(v->kind)) != 0)
        return false;
    if (v->subject && strcmp(member(record, "subject", &text), v->subject) != 0)
        return false;
    return !v->key || writes(record, v->key);
}

/* Prints "cycle 17: 3 actions" for a commit batch, otherwise the number of documents. */
static void record_summary_print(FILE *out, struct bytes record)
{
    struct bytes cycle, list, one;
    size_t n = 0;
    const char *at = NULL;
    if (scan_member(record, "cycle", &cycle)) {
        if (scan_member(cycle, "actions", &list))
            while (scan_next(list, &at, &one))
                n++;
        (void)fprintf(out, " cycle %" PRIu64 ", %zu action%s", scan_u64(cycle, "n", 0), n, n == 1 ? "" : "s");
        at = NULL;
        n = 0;
    }
    if (scan_member(record, "changes", &list))
        while (scan_next(list, &at, &one))
            n++;
    (void)fprintf(out, " (%zu document%s)\n", n, n == 1 ? "" : "s");
}

/* Prints a time in milliseconds with a fixed number of digits, so that columns line up. */
static void time_print(FILE *out, int64_t ns)
{
    char text[TIMESTAMP_MAX];
    (void)fprintf(out, "%.19s.%03dZ", timestamp_text(ns, text), (int)(ns / 1000000 % 1000));
}

static int show_record(void *ctx, const struct store_record *record)
{
    struct journal_show *s = ctx;
    FILE *out = s->cli->out;
    struct bytes text = record->record;
    if (!matches(s->v, text))
        return 0;
    s->found++;
    if (s->v->count)
        return 0;
    CLEANUP(str) struct str line = {0};
    if (s->v->output == OUTPUT_JSON) {
        segment_line_write(&line, record);
        (void)fwrite(line.at, 1, line.len, out);
        return 0;
    }
    (void)fprintf(out, "%8" PRIu64 "  ", record->seq);
    time_print(out, journal_record_ns(record));
    (void)fprintf(out, "  %-12s ", member(text, "who", &line));
    (void)fprintf(out, "%s", member(text, "kind", &line));
    if (*member(text, "subject", &line))
        (void)fprintf(out, " %s", str_text(&line));
    record_summary_print(out, text);
    return 0;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct show_values *v = values;
    CLEANUP(journal) struct journal *j = NULL;
    struct journal_bound from = {0}, to = {0};
    struct journal_show showing = {cli, v, 0};
    struct journal_visitor visitor = {.record = show_record, .ctx = &showing};
    struct berth_err err;
    int code = journal_bound_read(cli, "from", v->from, &from);
    if (code == EXIT_OK)
        code = journal_bound_read(cli, "to", v->to, &to);
    if (code == EXIT_OK)
        code = journal_source_open(cli, v->data, operands, &j);
    if (code != EXIT_OK)
        return code;
    struct journal_range range = {
        .from_seq = from.number, .to_seq = to.number, .from_ns = from.ns, .to_ns = to.ns, .bare = true};
    if (journal_read(j, &range, &visitor, &err) < 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (v->count)
        (void)fprintf(cli->out, "%" PRIu64 "\n", showing.found);
    return EXIT_OK;
}

const struct command journal_show_command = {
    .name = "journal show",
    .operands = JOURNAL_OPERANDS,
    .operands_max = OPERANDS_ANY,
    .summary = "Print the records of a journal.",
    .text = "With -o json each line is a whole record; docs/journal.md describes its fields.",
    .examples = "  berth journal show --data /var/lib/berth --from 1000 --to 1010 -o json\n"
                "  berth journal show --data /var/lib/berth --from 2026-11-16T09:00:00Z",
    .options = show_options,
    .options_len = sizeof show_options / sizeof *show_options,
    .values_size = sizeof(struct show_values),
    .section = SECTION_FILES,
    .run = run,
};

const struct command journal_grep_command = {
    .name = "journal grep",
    .operands = JOURNAL_OPERANDS,
    .operands_max = OPERANDS_ANY,
    .summary = "Print matching records of a journal.",
    .text = "A record must match all given options.",
    .examples = "  berth journal grep --data /var/lib/berth --key jobs/17\n"
                "  berth journal grep --data /var/lib/berth --who alice --kind 'DELETE '\n"
                "  berth journal grep --kind unit --count 000017.seg",
    .options = grep_options,
    .options_len = sizeof grep_options / sizeof *grep_options,
    .values_size = sizeof(struct show_values),
    .section = SECTION_FILES,
    .run = run,
};
