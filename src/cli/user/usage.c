/* usage.c - `berth usage`: prints resource usage by user, group or queue. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "bill/book.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/listing.h"
#include "cli/slurm/time_text.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

struct usage_values {
    const char *user, *group, *queue, *from, *to, *month, *by;
    unsigned form;
};

static const struct option usage_options[] = {
    OPTION_TEXT_ROW("user", 'u', usage_values, user, "NAME", "Show only this user."),
    OPTION_TEXT_ROW("group", 'g', usage_values, group, "NAME", "Show only this group."),
    OPTION_TEXT_ROW("queue", 'q', usage_values, queue, "NAME", "Show only this queue."),
    OPTION_TEXT_ROW("from", 0, usage_values, from, "TIME",
                    "Start of the period: a time, a day such as 2026-03-01, or 7d for the last week."),
    OPTION_TEXT_ROW("to", 0, usage_values, to, "TIME", "End of the period; same format as --from."),
    OPTION_TEXT_ROW("month", 'm', usage_values, month, "MONTH", "Show only this month, such as 2026-03."),
    OPTION_TEXT_ROW("by", 0, usage_values, by, "WHAT",
                    "Print one line per user, group, queue, name or outcome, or per combination: user,queue."),
    OPTION_CHOICE_ROW("output", 'o', usage_values, form, view_choices, "Output format."),
};

static double real_of(const json_t *item, const char *key)
{
    return json_number_value(json_object_get(item, key));
}

static void row_print(struct table *t, const json_t *item, const char *const *keys, size_t keys_len, const char *title)
{
    table_row(t);
    for (size_t i = 0; i < keys_len; i++) {
        const char *text = json_string_value(json_object_get(item, keys[i]));
        table_cell(t, i, COLOR_NONE, "%s", title && i == 0 ? title : text ? text : "");
    }
    table_cell(t, keys_len, COLOR_NONE, "%lld", (long long)json_integer_value(json_object_get(item, "ended")));
    table_cell(t, keys_len + 1, COLOR_NONE, "%.2f", real_of(item, "core_hours"));
    table_cell(t, keys_len + 2, COLOR_NONE, "%.2f", real_of(item, "gpu_hours"));
    table_cell(t, keys_len + 3, COLOR_NONE, "%.2f", real_of(item, "memory_gib_hours"));
}

static void print(const struct cli *cli, const json_t *answer)
{
    enum { KEYS = 5, SUMS = 4 };
    static const char *const keys[KEYS] = {"group", "user", "queue", "name", "outcome"};
    static const char *const titles[KEYS] = {"GROUP", "USER", "QUEUE", "NAME", "OUTCOME"};
    const json_t *items = json_object_get(answer, "items"), *first = json_array_get(items, 0);
    const char *shown[KEYS];
    struct table_column columns[KEYS + SUMS];
    struct table t;
    size_t len = 0, i;
    json_t *item;
    if (!first) {
        fprintf(cli->out, "no usage records\n");
        return;
    }
    for (i = 0; i < KEYS; i++)
        if (json_object_get(first, keys[i])) {
            columns[len] = (struct table_column){.name = titles[i]};
            shown[len++] = keys[i];
        }
    static const char *const sums[SUMS] = {"ENDED", "CORE-HOURS", "GPU-HOURS", "GIB-HOURS"};
    for (i = 0; i < SUMS; i++)
        columns[len + i] = (struct table_column){.name = sums[i], .flags = TABLE_RIGHT};
    table_init(&t, cli, columns, len + SUMS);
    json_array_foreach(items, i, item) row_print(&t, item, shown, len, NULL);
    if (json_array_size(items) > 1)
        row_print(&t, json_object_get(answer, "total"), shown, len, "total");
    table_print(&t);
    table_done(&t);
}

/* Converts "2026-03" to the range from its first moment to the start of the next month. */
static int month_query(const struct cli *cli, const char *month, struct str *path)
{
    int year = 0, number = 0;
    char text[40];
    if (!month_valid(month) || sscanf(month, "%4d-%2d", &year, &number) != 2)
        return cli_fail(cli, EXIT_USAGE, "--month is a year and a month such as 2026-03, not '%s'", month);
    (void)snprintf(text, sizeof text, "%04d-%02d-01T00:00:00Z", year, number);
    query_add(path, "from", text);
    (void)snprintf(text, sizeof text, "%04d-%02d-01T00:00:00Z", number == 12 ? year + 1 : year, number % 12 + 1);
    query_add(path, "to", text);
    return EXIT_OK;
}

/* Converts a time, or a duration before now. */
static int when_query(const struct cli *cli, const char *name, const char *text, struct str *path)
{
    char moment[SPAN_TEXT_MAX];
    struct berth_err err;
    if (!text)
        return EXIT_OK;
    if (past_time_read(text, wall_clock_ns(), moment, &err) == 0)
        query_add(path, name, moment);
    else
        return cli_fail(cli, EXIT_USAGE, "--%s must be a time, a day such as 2026-03-01 or a duration such as 7d: %s",
                        name, err.text);
    return EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct usage_values *v = values;
    CLEANUP(json) json_t *answer = NULL;
    CLEANUP(str) struct str path = {0};
    CLEANUP(api) struct api api = {0};
    (void)operands;
    if (v->month && (v->from || v->to))
        return cli_fail(cli, EXIT_USAGE, "--month cannot be combined with --from or --to");
    str_add(&path, "/v1/usage");
    query_add(&path, "user", v->user);
    query_add(&path, "group", v->group);
    query_add(&path, "queue", v->queue);
    query_add(&path, "by", v->by);
    int rc = v->month ? month_query(cli, v->month, &path) : when_query(cli, "from", v->from, &path);
    if (rc == EXIT_OK)
        rc = when_query(cli, "to", v->to, &path);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = api_get(&api, str_text(&path), &answer);
    if (rc == EXIT_OK && !view_print(cli, v->form, answer))
        print(cli, answer);
    return rc;
}

const struct command usage_command = {
    .name = "usage",
    .operands = "",
    .summary = "Show past usage: core-hours, GPU-hours, GiB-hours of memory.",
    .text = "Counts ended pods, and long-running pods up to now in steps of a day. Users see their "
            "own usage, managers that of their group, operators that of all users.",
    .examples = "  berth usage --month 2026-03\n  berth usage --from 7d\n  berth usage --group vision --by user,queue",
    .options = usage_options,
    .options_len = sizeof usage_options / sizeof *usage_options,
    .values_size = sizeof(struct usage_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .run = run,
};
