/* who.c - `berth who NODE|NODE/gpuN`: the users of a node or device, now or at a past time. */
#include <string.h>

#include "base/mem.h"
#include "cli/job/forecast_text.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/listing.h"
#include "cli/slurm/time_text.h"
#include "wire/text/document.h"

struct who_values {
    const char *at;
    unsigned form;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("at", 0, who_values, at, "WHEN",
                    "Show this time instead of now: -10m, 18:30 (most recent), 2026-03-01T12:00:00Z."),
    OPTION_CHOICE_ROW("output", 'o', who_values, form, view_choices, "Output format."),
};

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void holders_print(const struct cli *cli, const json_t *items, int64_t now_ns)
{
    static const struct table_column columns[] = {
        {"WHO",     TABLE_PLAIN, 0},
        {"GROUP",   TABLE_PLAIN, 0},
        {"WHAT",    TABLE_PLAIN, 0},
        {"NAME",    TABLE_WRAP,  0},
        {"DEVICES", TABLE_WRAP,  0},
        {"STATE",   TABLE_PLAIN, 0},
        {"SINCE",   TABLE_PLAIN, 0},
        {"UNTIL",   TABLE_PLAIN, 0},
    };
    struct table table;
    json_t *item, *device;
    size_t i, j;
    char when[WHEN_TEXT_MAX];

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(items, i, item)
    {
        CLEANUP(str) struct str devices = {0};
        json_array_foreach(json_object_get(item, "devices"), j, device)
            str_addf(&devices, "%s%s", j ? "," : "", json_is_string(device) ? json_string_value(device) : "");
        table_row(&table);
        table_cell(&table, 0, COLOR_BOLD, "%s", *member(item, "owner") ? member(item, "owner") : "(another user)");
        table_cell(&table, 1, COLOR_NONE, "%s", member(item, "group"));
        table_cell(&table, 2, COLOR_NONE, "%s%s%s", member(item, "kind"), *member(item, "kind") ? " " : "",
                   member(item, "workload"));
        table_cell(&table, 3, COLOR_NONE, "%s", member(item, "name"));
        table_cell(&table, 4, COLOR_NONE, "%s", str_text(&devices));
        table_cell(&table, 5, state_color(member(item, "state")), "%s", member(item, "state"));
        table_cell(&table, 6, COLOR_NONE, "%s", when_text(json_object_get(item, "since"), now_ns, when));
        table_cell(&table, 7, COLOR_NONE, "%s", expected_text(item, "until", now_ns, when));
    }
    table_print(&table);
    table_done(&table);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct who_values *v = values;
    const char *what = operands->at[0];
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *holders = NULL;
    CLEANUP(str) struct str path = {0};
    struct berth_err err;
    char at[SPAN_TEXT_MAX];

    if (v->at && past_time_read(v->at, wall_clock_ns(), at, &err) < 0)
        return cli_fail(cli, EXIT_USAGE, "--at: %s", err.text);
    str_add(&path, "/v1/holders");
    query_add(&path, strchr(what, '/') ? "device" : "node", what);
    query_add(&path, "at", v->at ? at : NULL);
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = api_get(&api, str_text(&path), &holders);
    if (rc != EXIT_OK || view_print(cli, v->form, holders))
        return rc;
    const json_t *items = json_object_get(holders, "items");
    if (json_array_size(items) > 0)
        holders_print(cli, items, wall_clock_ns());
    else
        fprintf(cli->out, "No instance %s %s.\n", v->at ? "used" : "uses", what);
    if (json_is_true(json_object_get(holders, "incomplete")))
        cli_hint(cli, "The list may be incomplete: not all records reach back that far.");
    return EXIT_OK;
}

const struct command who_command = {
    .name = "who",
    .operands = "NODE|NODE/gpuN",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Show who uses a node or one of its GPUs, now or at a past time.",
    .text = "For instances of other users the administrator's setting holder_shown decides what is "
            "shown: nothing, the group or the user.",
    .examples = "  berth who n1\n"
                "  berth who n1/gpu3 --at -10m\n"
                "  berth who n1/gpu3 --at 2026-03-01T12:00:00Z",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct who_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .ids = "nodes",
    .run = run,
};
