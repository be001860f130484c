/* events.c - `berth events` and `berth audit`: prints recent events, and who made which request. */
#include "cli/system/events.h"

#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/listing.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

static const char *text_of(const json_t *item, const char *key)
{
    const char *text = json_string_value(json_object_get(item, key));

    return text ? text : "";
}

static void age_cell(struct table *table, size_t column, const json_t *when, int64_t now_ns)
{
    int64_t at_ns;

    if (when && timestamp_parse(when, &at_ns, NULL) == 0)
        table_cell(table, column, COLOR_DIM, "%s", show_age((now_ns - at_ns) / 1000000000).text);
}

static void events_table(const struct cli *cli, const json_t *items, bool subject)
{
    const struct table_column columns[] = {
        {"AGE",     TABLE_RIGHT,                          0},
        {"TIMES",   TABLE_RIGHT,                          0},
        {"SUBJECT", subject ? TABLE_PLAIN : TABLE_HIDDEN, 0},
        {"TYPE",    TABLE_PLAIN,                          0},
        {"MESSAGE", TABLE_WRAP,                           0},
    };
    int64_t now_ns = wall_clock_ns();
    struct table table;
    json_t *item;
    size_t i;

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(items, i, item)
    {
        const char *type = text_of(item, "type");
        bool bad = strncmp(type, "Failed", 6) == 0 || strstr(type, "Lost") || strstr(type, "Alarm");
        table_row(&table);
        age_cell(&table, 0, json_object_get(item, "last"), now_ns);
        table_cell(&table, 1, COLOR_NONE, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(item, "count")));
        table_cell(&table, 2, COLOR_NONE, "%s/%s", text_of(item, "kind"), text_of(item, "id"));
        table_cell(&table, 3, bad ? COLOR_YELLOW : COLOR_NONE, "%s", type);
        table_cell(&table, 4, COLOR_NONE, "%s", text_of(item, "message"));
    }
    table_print(&table);
    table_done(&table);
}

static int events_get(struct api *a, const char *id, uint64_t limit, json_t **ret)
{
    CLEANUP(str) struct str path = {0};
    char count[24];

    str_add(&path, "/v1/events");
    query_add(&path, "limit", str_u64(limit, count));
    query_add(&path, "id", id);
    return api_get(a, str_text(&path), ret);
}

int events_of(struct api *a, const char *id, uint64_t limit)
{
    CLEANUP(json) json_t *body = NULL;
    int rc = events_get(a, id, limit, &body);

    if (rc != EXIT_OK || json_array_size(json_object_get(body, "items")) == 0)
        return rc;
    fprintf(a->cli->out, "\n%sEvents%s\n", cli_paint(a->cli, COLOR_BOLD), cli_paint(a->cli, COLOR_NONE));
    events_table(a->cli, json_object_get(body, "items"), false);
    return EXIT_OK;
}

/* ---- berth events ----------------------------------------------------------------------------------------------- */

struct events_values {
    unsigned form;
    struct option_count limit;
};

static const struct events_values events_defaults = {
    .limit = {100, false}
};

static const struct option events_options[] = {
    OPTION_CHOICE_ROW("output", 'o', events_values, form, view_choices, "Output format."),
    OPTION_COUNT_ROW("limit", 0, events_values, limit, 1, 4096, "Show the latest N. Default: 100."),
};

static int events_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct events_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *body = NULL;

    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = events_get(&api, operands->len ? operands->at[0] : NULL, v->limit.n, &body);
    if (rc != EXIT_OK || view_print(cli, v->form, body))
        return rc;
    if (json_array_size(json_object_get(body, "items")) > 0)
        events_table(cli, json_object_get(body, "items"), true);
    else
        fprintf(cli->out, "No events%s%s.\n", operands->len ? " of " : "", operands->len ? operands->at[0] : "");
    return EXIT_OK;
}

const struct command events_command = {
    .name = "events",
    .operands = "[ID]",
    .operands_max = 1,
    .summary = "Print recent events of one object, or of all visible objects, the newest last.",
    .text = "Events are kept for a limited time; 'berth audit' is the permanent record of changes.",
    .options = events_options,
    .options_len = sizeof events_options / sizeof events_options[0],
    .defaults = &events_defaults,
    .values_size = sizeof(struct events_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = events_run,
};

/* ---- berth audit ------------------------------------------------------------------------------------------------ */

struct audit_values {
    unsigned form;
    bool all;
    const char *who, *subject;
    struct option_count limit, from;
};

static const struct option audit_options[] = {
    OPTION_CHOICE_ROW("output", 'o', audit_values, form, view_choices, "Output format."),
    OPTION_TEXT_ROW("who", 0, audit_values, who, "USER", "Show only changes by this user."),
    OPTION_TEXT_ROW("subject", 0, audit_values, subject, "KIND/ID",
                    "Show only changes of this object, such as apps/photos.alice."),
    OPTION_FLAG_ROW("all", 0, audit_values, all, "Include changes by the daemon itself."),
    OPTION_COUNT_ROW("limit", 0, audit_values, limit, 1, 10000, "Show the latest N. Default: 100."),
    OPTION_COUNT_ROW("from", 0, audit_values, from, 1, 0, "Start at this record; SEQ in the table."),
};

static void audit_table(const struct cli *cli, const json_t *items)
{
    static const struct table_column columns[] = {
        {"SEQ",     TABLE_RIGHT, 0},
        {"AT",      TABLE_PLAIN, 0},
        {"WHO",     TABLE_PLAIN, 0},
        {"DID",     TABLE_PLAIN, 0},
        {"SUBJECT", TABLE_WRAP,  0},
    };
    struct table table;
    json_t *item;
    size_t i;

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(items, i, item)
    {
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(item, "seq")));
        table_cell(&table, 1, COLOR_DIM, "%.19s", text_of(item, "at"));
        table_cell(&table, 2, COLOR_NONE, "%s", text_of(item, "who"));
        table_cell(&table, 3, COLOR_NONE, "%s", text_of(item, "kind"));
        table_cell(&table, 4, COLOR_NONE, "%s", text_of(item, "subject"));
    }
    table_print(&table);
    table_done(&table);
}

static int audit_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct audit_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *body = NULL;
    CLEANUP(str) struct str path = {0};
    char number[24];

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    str_add(&path, "/v1/audit");
    query_add(&path, "who", v->who);
    query_add(&path, "subject", v->subject);
    query_add(&path, "all", v->all ? "true" : NULL);
    query_add(&path, "limit", v->limit.given ? str_u64(v->limit.n, number) : NULL);
    query_add(&path, "from", v->from.given ? str_u64(v->from.n, number) : NULL);
    rc = api_get(&api, str_text(&path), &body);
    if (rc != EXIT_OK || view_print(cli, v->form, body))
        return rc;
    audit_table(cli, json_object_get(body, "items"));
    return EXIT_OK;
}

const struct command audit_command = {
    .name = "audit",
    .operands = "",
    .summary = "Print the audit log: who changed what, the newest last.",
    .text = "Every change has one record, written in the same transaction; -o json includes the "
            "token, the address and the changed keys.",
    .examples = "  berth audit --who alice\n"
                "  berth audit --subject nodes/n1 --limit 20",
    .options = audit_options,
    .options_len = sizeof audit_options / sizeof audit_options[0],
    .values_size = sizeof(struct audit_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .run = audit_run,
};
