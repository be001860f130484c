/* queues.c - `berth queues`: prints the tree of queues with waiting and running work and limits. */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/collection.h"
#include "wire/text/document.h"

enum { DEPTH_MAX = 16 };

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void value_add(struct str *to, const json_t *value)
{
    if (json_is_string(value))
        str_add(to, json_string_value(value));
    else if (json_is_number(value))
        str_addf(to, "%g", json_number_value(value));
    else
        str_add_char(to, '-');
}

/* "gpu 4 of 8, guaranteed 2; cpu 10 of 64" */
static void use_add(struct str *to, const json_t *use)
{
    const char *resource;
    json_t *row;

    json_object_foreach((json_t *)use, resource, row)
    {
        const json_t *limit = json_object_get(row, "limit"), *by_right = json_object_get(row, "guaranteed");
        str_addf(to, "%s%s ", to->len ? "; " : "", resource);
        value_add(to, json_object_get(row, "held"));
        if (limit) {
            str_add(to, " of ");
            value_add(to, limit);
        }
        if (by_right) {
            str_add(to, ", guaranteed ");
            value_add(to, by_right);
        }
        if (json_object_get(row, "hours")) {
            str_add(to, ", hours ");
            value_add(to, json_object_get(row, "spent"));
            str_add(to, " of ");
            value_add(to, json_object_get(row, "hours"));
        }
    }
}

static void row_print(struct table *table, const json_t *queue, int depth)
{
    CLEANUP(str) struct str use = {0};
    char id[ID_TEXT_MAX];
    const json_t *status = json_object_get(queue, "status"), *weight = json_object_get(queue, "weight");
    json_int_t jobs = json_integer_value(json_object_get(status, "jobs"));
    json_int_t running = json_integer_value(json_object_get(status, "running"));

    table_row(table);
    table_cell(table, 0, COLOR_BOLD, "%*s%s", 2 * depth, "", object_id(queue, id));
    table_cell(table, 1, COLOR_NONE, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(queue, "priority")));
    table_cell(table, 2, COLOR_NONE, "%" JSON_INTEGER_FORMAT, weight ? json_integer_value(weight) : 1);
    table_cell(table, 3, COLOR_NONE, "%s", member(queue, "policy"));
    table_cell(table, 4, COLOR_NONE, "%" JSON_INTEGER_FORMAT, jobs > running ? jobs - running : 0);
    table_cell(table, 5, COLOR_NONE, "%" JSON_INTEGER_FORMAT, running);
    use_add(&use, json_object_get(status, "use"));
    table_cell(table, 6, COLOR_NONE, "%s", str_text(&use));
}

/* Prints the children of a queue, each followed by its own children. */
static void tree_print(struct table *table, const json_t *queues, const char *parent, int depth)
{
    json_t *queue;
    size_t i;
    char id[ID_TEXT_MAX];

    json_array_foreach(queues, i, queue)
    {
        if (strcmp(member(queue, "parent"), parent) != 0)
            continue;
        row_print(table, queue, depth);
        object_id(queue, id);
        if (depth < DEPTH_MAX && *id)
            tree_print(table, queues, id, depth + 1);
    }
}

/* Adds the queue `default`, which exists without a document, as the first one. */
static int default_add(struct api *api, json_t *queues)
{
    CLEANUP(json) json_t *implied = NULL;
    char id[ID_TEXT_MAX];
    json_t *queue;
    size_t i;

    json_array_foreach(queues, i, queue)
    {
        if (strcmp(object_id(queue, id), "default") == 0)
            return EXIT_OK;
    }
    int rc = api_get(api, "/v1/queues/default", &implied);
    if (rc == EXIT_OK)
        (void)json_array_insert(queues, 0, implied);
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    static const struct table_column columns[] = {
        {"QUEUE",    TABLE_PLAIN, 0},
        {"PRIORITY", TABLE_RIGHT, 0},
        {"WEIGHT",   TABLE_RIGHT, 0},
        {"POLICY",   TABLE_PLAIN, 0},
        {"WAIT",     TABLE_RIGHT, 0},
        {"RUN",      TABLE_RIGHT, 0},
        {"USE",      TABLE_WRAP,  0},
    };
    const struct view_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *queues = NULL;
    struct table table;

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = api_list(&api, "/v1/queues", 0, &queues, NULL);
    if (rc == EXIT_OK)
        rc = default_add(&api, queues);
    if (rc != EXIT_OK || view_print(cli, v->form, queues))
        return rc;
    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    tree_print(&table, queues, "", 0);
    table_print(&table);
    table_done(&table);
    fputs("Jobs that name no queue and match no route are in the queue default.\n", cli->out);
    return EXIT_OK;
}

const struct command queues_command = {
    .name = "queues",
    .operands = "",
    .summary = "Show the tree of queues: pending and running jobs, usage and limits of each.",
    .text = "'berth queue' shows the pending jobs in order, 'berth get queues' all fields of queues.",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_WORK,
    .talks = true,
    .run = run,
};
