/* top.c - `berth top`: the live view (top_live.c), or the usage of nodes and pods against their requests. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/collection.h"
#include "cli/show/top_live.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"

enum { CPU, MEMORY, SHOWN };
static const char *const resources[SHOWN] = {"cpu", "memory"};
static const char *const order_choices[] = {"cpu", "memory", "name", NULL};
enum { ORDER_NAME = SHOWN };

struct top_values {
    unsigned form, order;
};

static const struct option options[] = {
    OPTION_CHOICE_ROW("sort", 0, top_values, order, order_choices, "Sort by usage, highest first, or by name."),
    OPTION_CHOICE_ROW("output", 'o', top_values, form, view_choices, "Output format."),
};

/* One row; unknown quantities are -1. */
struct top_row {
    char *name;
    const char *node;
    int64_t used[SHOWN], asked[SHOWN], there[SHOWN];
};
struct top_rows {
    struct top_row *at;
    size_t len, cap;
    bool some_used;
};

static void rows_cleanup(struct top_rows *r)
{
    for (size_t i = 0; i < r->len; i++)
        mem_free(r->at[i].name);
    vec_done(r);
}

/* Returns -1 if the value is missing or malformed. */
static int64_t amount_at(const json_t *object, const char *path, const char *resource)
{
    CLEANUP(str) struct str full = {0};
    int64_t amount;

    for (const char *at = path; *at;) { /* "a|b" becomes "a.cpu|b.cpu" */
        size_t len = strcspn(at, "|");
        str_addf(&full, "%s%.*s.%s", full.len ? "|" : "", (int)len, at, resource);
        at += len + (at[len] == '|');
    }
    const json_t *value = value_at(object, full.at);
    if (json_is_object(value))
        value = json_object_get(value, "used");
    return value && quantity_parse(resource, value, &amount, NULL) == 0 && amount >= 0 ? amount : -1;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

/* Returns a map from workload ids to the requests of one pod. The result is a new reference. */
static int requests_read(struct api *a, json_t **ret)
{
    static const char *const paths[] = {"/v1/apps", "/v1/jobs", "/v1/vms"};
    CLEANUP(json) json_t *asked = json_object();
    char id[ID_TEXT_MAX];

    for (size_t p = 0; p < sizeof paths / sizeof paths[0]; p++) {
        CLEANUP(json) json_t *items = NULL;
        size_t i;
        json_t *item;
        int rc = api_list(a, paths[p], 0, &items, NULL);
        if (rc != EXIT_OK)
            return rc;
        json_array_foreach(items, i, item)
        {
            json_t *amounts = json_array();
            for (size_t r = 0; r < SHOWN; r++)
                (void)json_array_append_new(amounts, json_integer(amount_at(item, "requests|resources", resources[r])));
            (void)json_object_set_new(asked, object_id(item, id), amounts);
        }
    }
    *ret = take_ptr(&asked);
    return EXIT_OK;
}

static int64_t request_of(const json_t *asked, const json_t *instance, size_t r)
{
    const char *workload = json_string_value(json_object_get(instance, "workload"));
    const json_t *amounts = workload ? json_object_get(asked, workload) : NULL;
    return amounts ? json_integer_value(json_array_get(amounts, r)) : -1;
}

static bool is_active(const json_t *instance)
{
    const char *state = json_string_value(json_object_get(instance, "state"));
    return state && strcmp(state, "ended") != 0 && strcmp(state, "reserved") != 0;
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static void pods_rows(const json_t *instances, const json_t *asked, struct top_rows *rows)
{
    size_t i;
    json_t *instance;

    json_array_foreach(instances, i, instance)
    {
        const char *workload = json_string_value(json_object_get(instance, "workload"));
        struct str name = {0};
        struct top_row row = {.node = json_string_value(json_object_get(instance, "node"))};
        if (!is_active(instance))
            continue;
        str_addf(&name, "%s/%" JSON_INTEGER_FORMAT, workload ? workload : "",
                 json_integer_value(json_object_get(instance, "ordinal")));
        row.name = str_take(&name);
        for (size_t r = 0; r < SHOWN; r++) {
            row.used[r] = amount_at(instance, "status.usage|usage", resources[r]);
            row.asked[r] = row.there[r] = request_of(asked, instance, r);
            rows->some_used |= row.used[r] >= 0;
        }
        vec_push(rows, row);
    }
}

/* The total requests on a node are only known if the user may see all its pods. */
static void nodes_rows(const json_t *nodes, const json_t *instances, const json_t *asked, struct top_rows *rows)
{
    size_t i, j;
    json_t *node, *instance;
    char id[ID_TEXT_MAX];

    json_array_foreach(nodes, i, node)
    {
        struct top_row row = {.name = mem_strdup(object_id(node, id))};
        json_int_t seen = 0;
        json_array_foreach(instances, j, instance)
        {
            const char *on = json_string_value(json_object_get(instance, "node"));
            const char *state = json_string_value(json_object_get(instance, "state"));
            if (!on || strcmp(on, row.name) != 0)
                continue;
            seen += !state || strcmp(state, "ended") != 0; /* the node does not count ended instances either */
            for (size_t r = 0; r < SHOWN && is_active(instance); r++) {
                int64_t amount = request_of(asked, instance, r);
                row.asked[r] += amount > 0 ? amount : 0;
            }
        }
        for (size_t r = 0; r < SHOWN; r++) {
            row.used[r] = amount_at(node, "status.usage", resources[r]);
            row.there[r] = amount_at(node, "allocatable|capacity", resources[r]);
            if (seen != json_integer_value(value_at(node, "status.instances")))
                row.asked[r] = -1;
            rows->some_used |= row.used[r] >= 0;
        }
        vec_push(rows, row);
    }
}

static int rows_order(const void *a, const void *b, void *ctx)
{
    const struct top_row *x = a, *y = b;
    unsigned order = *(const unsigned *)ctx;

    if (order < ORDER_NAME && x->used[order] != y->used[order])
        return x->used[order] > y->used[order] ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* ---- printing --------------------------------------------------------------------------------------------------- */

static void amount_cell(struct table *table, size_t column, size_t resource, int64_t amount)
{
    char buf[QUANTITY_TEXT_MAX];

    if (amount < 0)
        table_cell(table, column, COLOR_DIM, "-");
    else if (resource == MEMORY)
        table_cell(table, column, COLOR_NONE, "%s", show_bytes((uint64_t)amount).text);
    else
        table_cell(table, column, COLOR_NONE, "%s", quantity_print(resources[resource], amount, buf));
}

static void share_cell(struct table *table, size_t column, int64_t used, int64_t of)
{
    if (used < 0 || of <= 0)
        return;
    int64_t percent = (int64_t)((double)used / (double)of * 100 + 0.5);
    enum color color = percent >= 90 ? COLOR_RED : percent >= 70 ? COLOR_YELLOW : COLOR_NONE;
    table_cell(table, column, color, "%" PRId64 "%%", percent);
}

static void rows_print(const struct cli *cli, const struct top_rows *rows, bool nodes)
{
    const struct table_column columns[] = {
        {nodes ? "NODE" : "POD", TABLE_PLAIN,                        0},
        {"NODE",                 nodes ? TABLE_HIDDEN : TABLE_PLAIN, 0},
        {"CPU",                  TABLE_RIGHT,                        0},
        {"CPU%",                 TABLE_RIGHT,                        0},
        {"REQUESTED",            TABLE_RIGHT,                        0},
        {"OF",                   nodes ? TABLE_RIGHT : TABLE_HIDDEN, 0},
        {"MEMORY",               TABLE_RIGHT,                        0},
        {"MEM%",                 TABLE_RIGHT,                        0},
        {"REQUESTED",            TABLE_RIGHT,                        0},
        {"OF",                   nodes ? TABLE_RIGHT : TABLE_HIDDEN, 0},
    };
    struct table table;

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < rows->len; i++) {
        const struct top_row *row = &rows->at[i];
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "%s", row->name);
        table_cell(&table, 1, COLOR_NONE, "%s", row->node ? row->node : "");
        for (size_t r = 0; r < SHOWN; r++) {
            amount_cell(&table, 2 + 4 * r, r, row->used[r]);
            share_cell(&table, 3 + 4 * r, row->used[r], row->there[r]);
            amount_cell(&table, 4 + 4 * r, r, row->asked[r]);
            amount_cell(&table, 5 + 4 * r, r, row->there[r]);
        }
    }
    table_print(&table);
    table_done(&table);
    if (!rows->some_used)
        cli_hint(cli, "No usage data yet; agents report usage periodically.");
}

static json_t *amounts_json(const int64_t amounts[static SHOWN])
{
    json_t *object = json_object();
    char buf[QUANTITY_TEXT_MAX];

    for (size_t r = 0; r < SHOWN; r++)
        if (amounts[r] >= 0)
            (void)json_object_set_new(object, resources[r], json_string(quantity_print(resources[r], amounts[r], buf)));
    return object;
}

static json_t *rows_json(const struct top_rows *rows, bool nodes)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rows->len; i++) {
        const struct top_row *row = &rows->at[i];
        json_t *item = json_pack("{s:s, s:o, s:o}", nodes ? "node" : "pod", row->name, "used", amounts_json(row->used),
                                 "requested", amounts_json(row->asked));
        if (nodes)
            (void)json_object_set_new(item, "allocatable", amounts_json(row->there));
        else if (row->node)
            (void)json_object_set_new(item, "node", json_string(row->node));
        (void)json_array_append_new(list, item);
    }
    return list;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct top_values *v = values;
    const char *what = operands->len ? operands->at[0] : "";
    CLEANUP(api) struct api api = {0};
    CLEANUP(rows) struct top_rows rows = {0};
    CLEANUP(json) json_t *instances = NULL, *nodes = NULL, *asked = NULL;
    bool of_nodes = strcmp(what, "nodes") == 0 || strcmp(what, "node") == 0;

    if (operands->len == 0)
        return top_live(cli);
    if (!of_nodes && strcmp(what, "pods") != 0 && strcmp(what, "pod") != 0)
        return cli_fail(cli, EXIT_USAGE, "top supports nodes and pods, not '%s'", what);
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = api_list(&api, "/v1/instances", 0, &instances, NULL);
    if (rc == EXIT_OK)
        rc = requests_read(&api, &asked);
    if (rc == EXIT_OK && of_nodes)
        rc = api_list(&api, "/v1/nodes", 0, &nodes, NULL);
    if (rc != EXIT_OK)
        return rc;
    if (of_nodes)
        nodes_rows(nodes, instances, asked, &rows);
    else
        pods_rows(instances, asked, &rows);
    if (rows.len > 0)
        qsort_r(rows.at, rows.len, sizeof *rows.at, rows_order, (void *)&v->order);
    CLEANUP(json) json_t *list = rows_json(&rows, of_nodes);
    if (view_print(cli, v->form, list))
        return EXIT_OK;
    if (rows.len > 0)
        rows_print(cli, &rows, of_nodes);
    else
        fprintf(cli->out, "No %s.\n", of_nodes ? "nodes" : "pods");
    return EXIT_OK;
}

static const char *const words[] = {"nodes", "pods", NULL};

const struct command top_command = {
    .name = "top",
    .operands = "[nodes|pods]",
    .operands_max = 1,
    .summary = "Watch the cluster, the queue and your jobs; or print the usage of nodes or pods.",
    .text = "Without an argument it shows a live view: the allocation of the cluster by domain, your "
            "jobs and the queue. Keys: 'q' quits, 'j' and 'k' (or the arrows) scroll the queue, 's' "
            "changes its order. If the output is not a terminal, the view is printed once.\n\n"
            "With nodes or pods it shows the usage that agents reported last, in percent of the "
            "requests of a pod or of the allocatable resources of a node. The requests on a node are "
            "shown only to users who may see all pods.",
    .examples = "  berth top\n"
                "  berth top nodes\n"
                "  berth top pods --sort memory",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct top_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .words = words,
    .run = run,
};
