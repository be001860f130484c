/* quota.c - `berth quota show|set`: the quotas of users, groups and queues, and their usage. */
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

static bool has_quota(const struct collection *c)
{
    return strcmp(c->kind, "user") == 0 || strcmp(c->kind, "group") == 0 || strcmp(c->kind, "queue") == 0;
}

/* Parses KIND/ID for kinds that have quotas; a plain name is a user. */
static int target_parse(const struct cli *cli, const char *word, struct object_target *ret)
{
    const char *slash = strchr(word, '/');
    char kind[32];

    snprintf(kind, sizeof kind, "%.*s", (int)(slash ? slash - word : (ptrdiff_t)strlen(word)), word);
    *ret = (struct object_target){collection_find(slash ? kind : "user"), slash ? slash + 1 : word};
    if (!*ret->id || !ret->collection || !has_quota(ret->collection))
        return cli_fail(cli, EXIT_USAGE, "expected user/NAME, group/NAME or queue/NAME, found '%s'", word);
    return EXIT_OK;
}

/* ---- show ------------------------------------------------------------------------------------------------------- */

enum { OF, RESOURCE, HELD, ASKED, LIMIT, GUARANTEED, ADMITTED, HOURS, COLUMNS_LEN };

static void text_cell(struct table *t, size_t column, const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    table_cell(t, column, COLOR_NONE, "%s", text ? text : "");
}

static void rows_add(struct table *t, const struct object_target *target, const json_t *object)
{
    const json_t *use = json_object_get(json_object_get(object, "status"), "use");
    const char *resource;
    json_t *row;
    json_object_foreach((json_t *)use, resource, row)
    {
        const json_t *hours = json_object_get(row, "hours");
        table_row(t);
        table_cell(t, OF, COLOR_NONE, "%s/%s", target->collection->kind, target->id);
        table_cell(t, RESOURCE, COLOR_NONE, "%s", resource);
        text_cell(t, HELD, row, "held");
        text_cell(t, ASKED, row, "asked");
        text_cell(t, LIMIT, row, "limit");
        text_cell(t, GUARANTEED, row, "guaranteed");
        text_cell(t, ADMITTED, row, "admitted");
        if (hours)
            table_cell(t, HOURS, COLOR_NONE, "%lld/%lld", (long long)json_integer_value(json_object_get(row, "spent")),
                       (long long)json_integer_value(hours));
    }
}

/* Finds the quotas of the calling user and their group. */
static int own_quotas(struct api *a, json_t **ret_who, struct object_target ret[static 2], size_t *ret_len)
{
    int rc = api_get(a, "/v1/whoami", ret_who);
    if (rc != EXIT_OK)
        return rc;
    const char *user = json_string_value(json_object_get(*ret_who, "user"));
    const char *group = json_string_value(json_object_get(*ret_who, "group"));
    *ret_len = 0;
    if (user && *user)
        ret[(*ret_len)++] = (struct object_target){collection_find("user"), user};
    if (group && *group)
        ret[(*ret_len)++] = (struct object_target){collection_find("group"), group};
    return EXIT_OK;
}

static int show_all(struct api *a, const struct object_target *targets, size_t len, unsigned form)
{
    static const struct table_column columns[COLUMNS_LEN] = {
        {"OF",         TABLE_PLAIN, 0},
        {"RESOURCE",   TABLE_PLAIN, 0},
        {"HELD",       TABLE_RIGHT, 0},
        {"ASKED",      TABLE_RIGHT, 0},
        {"LIMIT",      TABLE_RIGHT, 0},
        {"GUARANTEED", TABLE_RIGHT, 0},
        {"ADMITTED",   TABLE_RIGHT, 0},
        {"HOURS",      TABLE_RIGHT, 0},
    };
    CLEANUP(json) json_t *objects = json_array();
    struct table table;
    int rc = EXIT_OK;

    table_init(&table, a->cli, columns, COLUMNS_LEN);
    for (size_t i = 0; i < len && rc == EXIT_OK; i++) {
        json_t *object = NULL;
        rc = object_get(a, &targets[i], &object);
        if (rc != EXIT_OK)
            break;
        rows_add(&table, &targets[i], object);
        (void)json_array_append_new(objects, object);
    }
    if (rc == EXIT_OK && !view_print(a->cli, form, objects))
        table_print(&table);
    table_done(&table);
    return rc;
}

static int show_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *who = NULL;
    struct object_target mine[2];
    size_t len = operands->len;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK && len == 0) {
        rc = own_quotas(&api, &who, mine, &len);
        return rc == EXIT_OK ? show_all(&api, mine, len, v->form) : rc;
    }
    struct object_target *targets = mem_array(len ? len : 1, sizeof *targets);
    for (size_t i = 0; i < len && rc == EXIT_OK; i++)
        rc = target_parse(cli, operands->at[i], &targets[i]);
    if (rc == EXIT_OK)
        rc = show_all(&api, targets, len, v->form);
    mem_free(targets);
    return rc;
}

const struct command quota_show_command = {
    .name = "quota show",
    .operands = "[KIND/NAME...]",
    .operands_max = OPERANDS_ANY,
    .summary = "Show the quotas of users, groups or queues and their usage.",
    .text = "Without a name it shows your own quota and your group's; a name alone is a user. HELD "
            "is allocated, ASKED is the sum of pending and running, HOURS is the part of a total "
            "that was used.",
    .examples = "  berth quota show\n"
                "  berth quota show group/vision queue/prod",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .run = show_run,
};

/* ---- set -------------------------------------------------------------------------------------------------------- */

/* RESOURCE=AMOUNT is short for limits.RESOURCE=AMOUNT. */
static int pair_add(const struct cli *cli, const char *word, json_t *quota)
{
    static const char *const parts[] = {"limits", "guarantees", "admitted", "totals"};
    size_t len = strcspn(word, "=");
    const char *dot = memchr(word, '.', len);
    size_t part_len = dot ? (size_t)(dot - word) : len;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i]) == part_len && strncmp(word, parts[i], part_len) == 0)
            return pairs_parse(cli, &word, 1, quota);
    if (!word[len] || len == 0)
        return cli_fail(cli, EXIT_USAGE, "'%s' should be RESOURCE=AMOUNT or PART.RESOURCE=AMOUNT", word);
    CLEANUP(str) struct str pair = {0};
    CLEANUP(str) struct str resource = {0};
    CLEANUP(json) json_t *value = json_object();
    str_addf(&pair, "value%s", word + len);
    str_add_bytes(&resource, word, len);
    const char *text = str_text(&pair);
    int rc = pairs_parse(cli, &text, 1, value);
    json_t *limits = json_object_get(quota, "limits");
    if (rc == EXIT_OK && !limits)
        (void)json_object_set_new(quota, "limits", limits = json_object());
    if (rc == EXIT_OK && json_object_set(limits, str_text(&resource), json_object_get(value, "value")) != 0)
        return cli_fail(cli, EXIT_USAGE, "'%s': missing name of the resource", word);
    return rc;
}

static int set_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct change_values *v = values;
    CLEANUP(json) json_t *quota = json_object();
    CLEANUP(json) json_t *body = NULL;
    CLEANUP(api) struct api api = {0};
    struct object_target target;

    int rc = target_parse(cli, operands->at[0], &target);
    for (size_t i = 1; i < operands->len && rc == EXIT_OK; i++)
        rc = pair_add(cli, operands->at[i], quota);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    body = json_pack("{s:O}", "quota", quota);
    struct object_act act = {.method = "PATCH", .body = body, .done = "changed", .dry_run = v->dry_run};
    return object_do(&api, &target, &act, NULL);
}

const struct command quota_set_command = {
    .name = "quota set",
    .operands = "KIND/NAME [PART.]RESOURCE=AMOUNT...",
    .operands_min = 2,
    .operands_max = OPERANDS_ANY,
    .summary = "Set the quota of a user, a group or a queue.",
    .text = "PART is limits (maximum allocation; the default), guarantees (guaranteed allocation; "
            "usage beyond it is borrowed) or admitted (pending and running together). An amount of "
            "null removes an entry; other entries are kept. Set totals with 'berth edit'. The users "
            "of a group together are bound by the group's quota.",
    .examples = "  berth quota set group/vision limits.gpu=16 guarantees.gpu=8\n"
                "  berth quota set user/ann cpu=4 memory=16Gi\n"
                "  berth quota set user/ann limits.gpu=4 admitted.jobs=100\n"
                "  berth quota set user/ann limits.gpu=null",
    .options = change_options,
    .options_len = 1,
    .values_size = sizeof(struct change_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .run = set_run,
};
