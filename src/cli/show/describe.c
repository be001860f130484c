/* describe.c - `berth describe KIND ID`: prints everything known about an object. */
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/listing.h"
#include "cli/show/object.h"
#include "cli/system/events.h"
#include "wire/text/document.h"

enum { EVENTS_SHOWN = 20, INSTANCES_SHOWN = 50 };

static void conditions_print(const struct cli *cli, const json_t *conditions)
{
    static const struct table_column columns[] = {
        {"CONDITION", TABLE_PLAIN, 0},
        {"IS",        TABLE_PLAIN, 0},
        {"REASON",    TABLE_PLAIN, 0},
        {"MESSAGE",   TABLE_WRAP,  0},
    };
    struct table table;
    json_t *item;
    size_t i;

    if (json_array_size(conditions) == 0)
        return;
    fputc('\n', cli->out);
    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(conditions, i, item)
    {
        const char *type = json_string_value(json_object_get(item, "type"));
        const char *reason = json_string_value(json_object_get(item, "reason"));
        const char *text = json_string_value(json_object_get(item, "text")); /* of a node: the problem */
        const char *message = text ? text : json_string_value(json_object_get(item, "message"));
        bool is = text || json_is_true(json_object_get(item, "status"));
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "%s", type ? type : "");
        table_cell(&table, 1, is && !text ? COLOR_GREEN : COLOR_YELLOW, "%s", is ? "true" : "false");
        table_cell(&table, 2, COLOR_NONE, "%s", reason ? reason : "");
        table_cell(&table, 3, COLOR_NONE, "%s", message ? message : "");
    }
    table_print(&table);
    table_done(&table);
}

static void counts_print(const struct cli *cli, const json_t *conditions)
{
    json_t *condition, *count;
    size_t i, j;

    json_array_foreach(conditions, i, condition)
    {
        json_array_foreach(json_object_get(condition, "counts"), j, count)
        {
            const char *text = json_string_value(json_object_get(count, "text"));
            const char *reason = json_string_value(json_object_get(count, "reason"));
            fprintf(cli->out, "  - %s\n", text ? text : reason ? reason : "");
        }
    }
}

static void status_print(const struct cli *cli, const json_t *status)
{
    CLEANUP(json) json_t *plain = json_copy((json_t *)status);

    json_object_del(plain, "conditions");
    json_object_del(plain, "instances");
    section_print(cli, "Status");
    fields_print(cli, plain, 0);
    conditions_print(cli, json_object_get(status, "conditions"));
    counts_print(cli, json_object_get(status, "conditions"));
}

/* Reads the instances, of which documents contain at most the ids. */
static int instances_get(struct api *a, const char *filter, const char *id, json_t **ret)
{
    CLEANUP(str) struct str path = {0};

    str_add(&path, "/v1/instances");
    query_add(&path, filter, id);
    return api_list(a, str_text(&path), INSTANCES_SHOWN + 1, ret, NULL);
}

static int describe(struct api *a, const struct object_target *target)
{
    struct cli *cli = a->cli;
    CLEANUP(json) json_t *object = NULL;
    CLEANUP(json) json_t *instances = NULL;
    char id[ID_TEXT_MAX];

    int rc = object_get(a, target, &object);
    if (rc != EXIT_OK)
        return rc;
    object_id(object, id);
    bool node = strcmp(target->collection->kind, "node") == 0;
    if (node || target->collection->workload)
        rc = instances_get(a, node ? "node" : "workload", id, &instances);
    if (rc != EXIT_OK)
        return rc;
    CLEANUP(json) json_t *plain = object_to_manifest(target->collection, object);
    CLEANUP(json) json_t *status = json_incref(json_object_get(object, "status"));
    json_object_del(plain, "status");
    json_object_del(plain, "v");
    fields_print(cli, plain, 0);
    if (json_is_object(status))
        status_print(cli, status);
    instances_print(cli, "Instances", instances, INSTANCES_SHOWN);
    if (instances)
        rc = events_of(a, id, EVENTS_SHOWN);
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    CLEANUP(targets) struct object_targets targets = {0};
    CLEANUP(api) struct api api = {0};

    (void)values;
    int rc = targets_parse(cli, operands, false, &targets);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    for (size_t i = 0; i < targets.len; i++) {
        fputs(i ? "\n" : "", cli->out);
        int failed = describe(&api, &targets.at[i]);
        rc = rc == EXIT_OK ? failed : rc;
        if (failed == EXIT_UNREACHABLE)
            break;
    }
    return rc;
}

const struct command describe_command = {
    .name = "describe",
    .operands = "KIND ID...",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Show all about an object: fields, status, instances and events.",
    .examples = "  berth describe app photos\n"
                "  berth describe node n1\n"
                "  berth describe job/17",
    .section = SECTION_OBJECTS,
    .talks = true,
    .words = collection_words,
    .ids = IDS_OF_KIND,
    .run = run,
};
