/* queue_show.c - `berth queue`: prints the waiting work in order, with expected start times. */
#include <string.h>

#include "base/mem.h"
#include "cli/job/forecast_text.h"
#include "cli/job/task_rows.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/listing.h"
#include "wire/text/document.h"

enum { WIDE = 100 }; /* columns of a terminal that is wide enough for all table columns */

struct queue_values {
    const char *queue, *user;
    struct option_count limit;
    unsigned form;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("queue", 'q', queue_values, queue, "QUEUE", "Show only jobs of this queue."),
    OPTION_TEXT_ROW("user", 'u', queue_values, user, "USER", "Show only jobs of this user."),
    OPTION_COUNT_ROW("limit", 'n', queue_values, limit, 1, 10000, "Maximum number of jobs. Default: 100."),
    OPTION_CHOICE_ROW("output", 'o', queue_values, form, view_choices, "Output format."),
};

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void rows_print(const struct cli *cli, const json_t *items, int64_t now_ns)
{
    bool narrow = cli->width < WIDE;
    const struct table_column columns[] = {
        {"#",      TABLE_RIGHT,                         0},
        {"JOB",    TABLE_PLAIN,                         0},
        {"NAME",   TABLE_WRAP,                          0},
        {"OWNER",  TABLE_PLAIN,                         0},
        {"QUEUE",  TABLE_PLAIN,                         0},
        {"ASKED",  TABLE_WRAP,                          0},
        {"TIER",   narrow ? TABLE_HIDDEN : TABLE_PLAIN, 0},
        {"WAITED", narrow ? TABLE_HIDDEN : TABLE_RIGHT, 0},
        {"STARTS", TABLE_PLAIN,                         0},
        {"WHY",    TABLE_WRAP,                          0},
    };
    struct table table;
    json_t *item;
    size_t i;
    char asked[128], when[WHEN_TEXT_MAX], who[160], why[64];

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(items, i, item)
    {
        bool known = json_object_get(item, "id");
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(item, "position")));
        table_cell(&table, 1, COLOR_BOLD, "%s", known ? member(item, "id") : "");
        table_cell(&table, 2, COLOR_NONE, "%s", member(item, "name"));
        table_cell(&table, 3, known ? COLOR_NONE : COLOR_DIM, "%s",
                   known || *member(item, "owner") ? member(item, "owner")
                   : *member(item, "group")        ? (snprintf(who, sizeof who, "(%s)", member(item, "group")), who)
                                                   : "(others)");
        table_cell(&table, 4, COLOR_NONE, "%s", member(item, "queue"));
        table_cell(&table, 5, COLOR_NONE, "%s",
                   known ? requested_text(json_object_get(item, "asked"), asked, sizeof asked) : "");
        table_cell(&table, 6, COLOR_NONE, "%s", tier_text(item));
        table_cell(&table, 7, COLOR_NONE, "%s",
                   known ? show_age(json_integer_value(json_object_get(item, "waited_s"))).text : "");
        expected_text(item, "start", now_ns, when);
        table_cell(&table, 8, *when ? COLOR_GREEN : COLOR_DIM, "%s", *when ? when : "?");
        table_cell(&table, 9, COLOR_YELLOW, "%s", reason_text(item, why, sizeof why));
    }
    table_print(&table);
    table_done(&table);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct queue_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *queue = NULL;
    CLEANUP(str) struct str path = {0};

    (void)operands;
    str_add(&path, "/v1/queue");
    query_add(&path, "queue", v->queue);
    query_add(&path, "user", v->user);
    struct api_error trouble;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK) {
        rc = queue_read(&api, str_text(&path), v->limit.given ? v->limit.n : QUEUE_ROWS_DEFAULT, &queue, &trouble);
        rc = rc == EXIT_OK ? rc : api_error_print(&api, &trouble);
    }
    if (rc != EXIT_OK || view_print(cli, v->form, queue))
        return rc;
    const json_t *items = json_object_get(queue, "items");
    json_int_t total = json_integer_value(json_object_get(queue, "total"));
    int64_t now_ns = wall_clock_ns();
    if (json_array_size(items) == 0) {
        fputs(total ? "No matching pending workloads.\n" : "No pending workloads.\n", cli->out);
        return EXIT_OK;
    }
    rows_print(cli, items, now_ns);
    if ((json_int_t)json_array_size(items) < total)
        fprintf(cli->out, "%zu of %s pending workloads.\n", json_array_size(items), show_count((uint64_t)total).text);
    forecast_label_print(cli, json_object_get(queue, "forecast"), now_ns);
    return EXIT_OK;
}

const struct command queue_command = {
    .name = "queue",
    .operands = "",
    .summary = "Show pending jobs in scheduling order, with their estimated start.",
    .text = "For jobs of other users the setting holder_shown decides whether their owner is shown. "
            "TIER is guaranteed (within the guarantees of its quotas), borrowed (beyond them) or "
            "spare (pods above the minimum). 'berth why JOB' explains one of your own jobs.",
    .examples = "  berth queue\n"
                "  berth queue --queue prod --limit 20",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct queue_values),
    .section = SECTION_WORK,
    .talks = true,
    .run = run,
};
