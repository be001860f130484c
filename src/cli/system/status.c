/* status.c - `berth status`: prints an overview of the cluster. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/collection.h"
#include "cli/show/listing.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"

enum { PENDING_SHOWN = 10 };

static const char *const work_kinds[] = {"apps", "jobs", "vms"};
enum { WORK_KINDS = sizeof work_kinds / sizeof work_kinds[0] };

struct cluster_overview {
    json_t *nodes; /* NULL: no permission */
    json_t *use;   /* GET /v1/use: usage of all work of all users; NULL: no permission */
    json_t *alarms;
    json_t *work[WORK_KINDS];
};

static void overview_cleanup(struct cluster_overview *o)
{
    json_decref(o->nodes);
    json_decref(o->use);
    json_decref(o->alarms);
    for (size_t i = 0; i < WORK_KINDS; i++)
        json_decref(o->work[i]);
}

/* Older daemons have no alarms. */
static void alarms_get(struct api *a, struct cluster_overview *o)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    struct api_error trouble;

    if (api_try(a, &(struct api_request){.method = "GET", .path = "/v1/alarms"}, &answer, &trouble) == EXIT_OK)
        o->alarms = json_incref(json_object_get(answer.body, "items"));
}

/* A user without permission to read nodes still sees their own work. */
static int overview_get(struct api *a, struct cluster_overview *o)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    struct api_error trouble;

    int rc = api_try(a, &(struct api_request){.method = "GET", .path = "/v1/nodes?limit=1"}, &answer, &trouble);
    if (rc == EXIT_OK)
        rc = api_list(a, "/v1/nodes", 0, &o->nodes, NULL);
    else if (trouble.status == 403)
        rc = EXIT_OK;
    else
        return api_error_print(a, &trouble);
    if (rc == EXIT_OK && o->nodes)
        alarms_get(a, o);
    if (rc == EXIT_OK && o->nodes)
        rc = api_get(a, "/v1/use", &o->use);
    for (size_t i = 0; i < WORK_KINDS && rc == EXIT_OK; i++) {
        CLEANUP(str) struct str path = {0};
        str_addf(&path, "/v1/%s", work_kinds[i]);
        rc = api_list(a, str_text(&path), 0, &o->work[i], NULL);
    }
    return rc;
}

/* Returns {state: count}, with states in order of first occurrence, as a new reference. */
static json_t *states_count(const json_t *items)
{
    json_t *counts = json_object();
    json_t *item;
    size_t i;

    json_array_foreach(items, i, item)
    {
        const char *state = json_string_value(value_at(item, "status.outcome|status.state|state"));
        const char *key = state ? state : "unknown";
        json_object_set_new(counts, key, json_integer(1 + json_integer_value(json_object_get(counts, key))));
    }
    return counts;
}

/* ---- capacity --------------------------------------------------------------------------------------------------- */

static int64_t amount_of(const json_t *object, const char *path, const char *resource)
{
    const json_t *value = value_at(object, path);
    int64_t amount;

    return value && quantity_parse(resource, value, &amount, NULL) == 0 ? amount : 0;
}

/* In thousandths of a GPU, so that shared GPUs count with their share. */
static int64_t gpus_of(const json_t *object, const char *key)
{
    const json_t *gpus = json_object_get(object, key);
    json_t *item;
    size_t i;
    int64_t sum = 0;

    if (json_is_number(gpus))
        return (int64_t)llround(json_number_value(gpus) * 1000);
    if (json_is_object(gpus)) {
        const json_t *count = json_object_get(gpus, "count"), *share = json_object_get(gpus, "share");
        return share   ? (int64_t)llround(json_number_value(share) * 1000)
               : count ? json_integer_value(count) * 1000
                       : 1000;
    }
    json_array_foreach(gpus, i, item)
    {
        const json_t *count = json_object_get(item, "count");
        sum += count ? json_integer_value(count) * 1000 : 1000;
    }
    return sum;
}

struct used_of_total {
    double used, total;
};

/* Adds up the usage of all work, including work that the caller may not see; amounts reveal no names. */
static void usage_add(const struct cluster_overview *o, const char *resource, struct used_of_total *ret)
{
    bool gpu = strcmp(resource, "gpu") == 0;
    char total[64];
    const json_t *use = json_object_get(json_object_get(o->use, "total"), resource);
    json_t *item;
    size_t i;

    *ret = (struct used_of_total){.used = json_number_value(json_object_get(use, "held"))};
    ret->used *= strcmp(resource, "memory") == 0 ? 1 : 1000;
    snprintf(total, sizeof total, "allocatable.%s", resource);
    json_array_foreach(o->nodes, i, item)
    {
        const char *state = json_string_value(json_object_get(item, "state"));
        if (!state || strcmp(state, "lost") != 0)
            ret->total += (double)(gpu ? gpus_of(item, "gpus") : amount_of(item, total, resource));
    }
}

static void usage_print(const struct cli *cli, const char *resource, const struct used_of_total *u)
{
    struct human_text used, total;
    const char *unit = strcmp(resource, "gpu") == 0 ? "cpu" : resource; /* both are counted in thousandths */
    double part = u->total > 0 ? u->used / u->total * 100 : 0;

    if (u->total <= 0)
        return;
    if (strcmp(resource, "memory") == 0) {
        used = show_bytes((uint64_t)u->used);
        total = show_bytes((uint64_t)u->total);
    } else {
        quantity_print(unit, (int64_t)u->used, used.text);
        quantity_print(unit, (int64_t)u->total, total.text);
    }
    fprintf(cli->out, "  %-8s %s%3.0f%%%s  %s of %s allocated\n", resource,
            cli_paint(cli, part >= 90 ? COLOR_YELLOW : COLOR_GREEN), part, cli_paint(cli, COLOR_NONE), used.text,
            total.text);
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void heading(const struct cli *cli, const char *text)
{
    fprintf(cli->out, "%s%s%s\n", cli_paint(cli, COLOR_BOLD), text, cli_paint(cli, COLOR_NONE));
}

static void states_print(const struct cli *cli, const char *what, const json_t *items)
{
    CLEANUP(json) json_t *counts = states_count(items);
    const char *state, *between = "";
    json_t *count;

    fprintf(cli->out, "  %-8s %5s  ", what, show_count(json_array_size(items)).text);
    json_object_foreach(counts, state, count)
    {
        enum color color = state_color(state);
        fprintf(cli->out, "%s%s%s %s%s", between, color == COLOR_NONE ? "" : cli_paint(cli, color),
                show_count((uint64_t)json_integer_value(count)).text, state,
                color == COLOR_NONE ? "" : cli_paint(cli, COLOR_NONE));
        between = ", ";
    }
    fputc('\n', cli->out);
}

/* Uses the planner's rule (core/plan/plan.c): when so many nodes are lost at once, the planner replaces nothing. */
static bool too_many_lost(const struct cluster_overview *o, size_t *ret_lost)
{
    CLEANUP(json) json_t *counts = states_count(o->nodes);
    size_t lost = (size_t)json_integer_value(json_object_get(counts, "lost"));

    *ret_lost = lost;
    return lost > 1 && lost * 3 > json_array_size(o->nodes);
}

static void alarm_print(const struct cli *cli, const struct cluster_overview *o)
{
    size_t lost;

    if (too_many_lost(o, &lost))
        fprintf(cli->out,
                "  %salarm%s    %zu nodes are lost, more than a third: lost pods are not replaced; check "
                "the network\n",
                cli_paint(cli, COLOR_RED), cli_paint(cli, COLOR_NONE), lost);
    size_t i;
    json_t *alarm;
    json_array_foreach(o->alarms, i, alarm)
    {
        const char *text = json_string_value(json_object_get(alarm, "text"));
        fprintf(cli->out, "  %salarm%s    %s\n", cli_paint(cli, COLOR_RED), cli_paint(cli, COLOR_NONE),
                text ? text : "");
    }
}

static bool is_pending(const json_t *item)
{
    return json_integer_value(value_at(item, "status.pending")) > 0;
}

static void pending_row(struct table *table, const char *kind, const json_t *item)
{
    const json_t *condition = json_array_get(value_at(item, "status.conditions"), 0);
    const char *message = json_string_value(json_object_get(condition, "message"));
    const char *help = json_string_value(value_at(item, "status.help"));
    char id[ID_TEXT_MAX];

    table_row(table);
    table_cell(table, 0, COLOR_NONE, "%s/%s", kind, object_id(item, id));
    table_cell(table, 1, COLOR_YELLOW, "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
               json_integer_value(value_at(item, "status.pending")),
               json_integer_value(value_at(item, "status.replicas")));
    table_cell(table, 2, COLOR_NONE, "%s", help && *help ? help : message ? message : "");
}

static void pending_print(const struct cli *cli, const struct cluster_overview *o)
{
    static const struct table_column columns[] = {
        {"PENDING", TABLE_PLAIN, 0},
        {"PODS",    TABLE_RIGHT, 0},
        {"HELP",    TABLE_WRAP,  0},
    };
    struct table table;
    size_t found = 0, i;
    json_t *item;

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    for (size_t k = 0; k < WORK_KINDS; k++) {
        const char *kind = collection_find(work_kinds[k])->kind;
        json_array_foreach(o->work[k], i, item)
        {
            if (is_pending(item) && found++ < PENDING_SHOWN)
                pending_row(&table, kind, item);
        }
    }
    fputc('\n', cli->out);
    if (found > 0)
        table_print(&table);
    else
        fputs("No pending workloads.\n", cli->out);
    if (found > PENDING_SHOWN)
        fprintf(cli->out, "... and %zu more: 'berth get jobs --state pending'; 'berth why KIND ID' explains why\n",
                found - PENDING_SHOWN);
    else if (found > 0)
        fputs("'berth why KIND ID' explains why.\n", cli->out);
    table_done(&table);
}

static void print(const struct api *a, const struct cluster_overview *o)
{
    static const char *const resources[] = {"cpu", "memory", "gpu"};
    const struct cli *cli = a->cli;

    fprintf(cli->out, "%s%s%s\n\n", cli_paint(cli, COLOR_DIM), a->connection.server, cli_paint(cli, COLOR_NONE));
    if (o->nodes) {
        heading(cli, "Nodes");
        states_print(cli, "nodes", o->nodes);
        alarm_print(cli, o);
        for (size_t i = 0; i < sizeof resources / sizeof resources[0]; i++) {
            struct used_of_total usage;
            usage_add(o, resources[i], &usage);
            usage_print(cli, resources[i], &usage);
        }
        fputc('\n', cli->out);
    }
    heading(cli, "Work");
    for (size_t k = 0; k < WORK_KINDS; k++)
        states_print(cli, work_kinds[k], o->work[k]);
    pending_print(cli, o);
}

/* Returns the same numbers as JSON, a new reference. */
static json_t *overview_json(const struct cluster_overview *o)
{
    static const char *const resources[] = {"cpu", "memory", "gpu"};
    json_t *work = json_object(), *capacity = json_object(), *pending = json_array();
    char id[ID_TEXT_MAX];
    json_t *item;
    size_t i;

    for (size_t k = 0; k < WORK_KINDS; k++) {
        json_object_set_new(work, work_kinds[k], states_count(o->work[k]));
        json_array_foreach(o->work[k], i, item)
        {
            if (is_pending(item))
                json_array_append_new(pending,
                                      json_pack("{s:s, s:s, s:O?}", "kind", collection_find(work_kinds[k])->kind, "id",
                                                object_id(item, id), "status", value_at(item, "status")));
        }
    }
    for (size_t r = 0; o->nodes && r < sizeof resources / sizeof resources[0]; r++) {
        struct used_of_total usage;
        usage_add(o, resources[r], &usage);
        double unit = strcmp(resources[r], "memory") == 0 ? 1 : 1000;
        json_object_set_new(capacity, resources[r],
                            json_pack("{s:f, s:f}", "promised", usage.used / unit, "allocatable", usage.total / unit));
    }
    return json_pack("{s:o, s:b, s:O*, s:o, s:o, s:o}", "nodes", states_count(o->nodes), "alarm", too_many_lost(o, &i),
                     "alarms", o->alarms, "capacity", capacity, "work", work, "pending", pending);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    CLEANUP(overview) struct cluster_overview overview = {0};
    CLEANUP(api) struct api api = {0};

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = overview_get(&api, &overview);
    if (rc != EXIT_OK)
        return rc;
    CLEANUP(json) json_t *json = overview_json(&overview);
    if (!view_print(cli, v->form, json))
        print(&api, &overview);
    return EXIT_OK;
}

const struct command status_command = {
    .name = "status",
    .operands = "",
    .summary = "Show an overview of the cluster: nodes, capacity, workloads, and pending pods with "
               "reasons.",
    .text = "Lists the workloads that your role may see. The allocation of the nodes includes the "
            "workloads of all users.",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = run,
};
