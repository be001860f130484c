/* policy_verbs.c - `berth policy list|show|test`: the policies that order queues, and the order under another policy.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "berth.h"
#include "cli/job/forecast_text.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/collection.h"
#include "cli/show/listing.h"
#include "cli/show/manifest.h"
#include "wire/text/document.h"

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* ---- list ------------------------------------------------------------------------------------------------------- */

static json_t *built_in_json(const char *name, const char *text)
{
    return json_pack("{s:s, s:s, s:b, s:s}", "id", name, "ranking", name, "built_in", 1, "text", text);
}

/* Marks the default policy, which orders queues without their own policy. Marks nothing if the user may not read the
 * settings. */
static void mark_default_policy(struct api *api, json_t *items)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    struct api_error trouble;
    size_t i;
    json_t *item;
    char id[ID_TEXT_MAX];
    if (api_try(api, &(struct api_request){.method = "GET", .path = "/v1/system/settings"}, &answer, &trouble) !=
        EXIT_OK)
        return;
    json_array_foreach(items, i, item) if (strcmp(object_id(item, id), member(answer.body, "policy")) == 0)
    {
        json_object_set_new(item, "in_force", json_true());
        return;
    }
}

static int list_run(struct cli *cli, const void *values, const struct operands *operands)
{
    static const struct table_column columns[] = {
        {"POLICY",  TABLE_PLAIN, 0},
        {"RANKING", TABLE_PLAIN, 0},
        {"USED",    TABLE_PLAIN, 0},
        {"WHAT",    TABLE_WRAP,  0},
    };
    const struct view_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *items = NULL;
    const char *name, *text;
    struct table table;
    json_t *item;
    size_t i;
    char id[ID_TEXT_MAX];

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = api_list(&api, "/v1/policies", 0, &items, NULL);
    if (rc != EXIT_OK)
        return rc;
    for (i = 0; (name = berth_ranking_at(i, &text)); i++)
        json_array_append_new(items, built_in_json(name, text));
    mark_default_policy(&api, items);
    if (view_print(cli, v->form, items))
        return EXIT_OK;
    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(items, i, item)
    {
        const char *formula = member(item, "formula");
        int line = (int)strcspn(formula, "\n");
        table_row(&table);
        table_cell(&table, 0, COLOR_BOLD, "%s", object_id(item, id));
        table_cell(&table, 1, COLOR_NONE, "%s",
                   json_is_true(json_object_get(item, "built_in")) ? "built-in"
                   : *formula                                      ? "formula"
                                                                   : member(item, "ranking"));
        table_cell(&table, 2, COLOR_NONE, "%s", json_is_true(json_object_get(item, "in_force")) ? "yes" : "");
        table_cell(&table, 3, COLOR_NONE, "%.*s%s", *formula ? line : 256, *formula ? formula : member(item, "text"),
                   formula[line] && formula[line + 1] ? " ..." : "");
    }
    table_print(&table);
    table_done(&table);
    return EXIT_OK;
}

const struct command policy_list_command = {
    .name = "policy list",
    .operands = "",
    .summary = "List your own and the built-in policies.",
    .text = "USED marks the default policy, which orders the queues that name none; the setting "
            "`policy` selects it (default: berth). For plain first come, first served use 'berth "
            "system settings policy=fifo'.",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = list_run,
};

/* ---- show ------------------------------------------------------------------------------------------------------- */

static void factors_list(const struct cli *cli)
{
    static const struct table_column columns[] = {
        {"  FACTOR",    TABLE_PLAIN, 0},
        {"DESCRIPTION", TABLE_WRAP,  0},
    };
    const char *name, *text;
    struct table table;

    section_print(cli, "Factors for weights and formulas, each from 0 to 1");
    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; (name = berth_factor_at(i, &text)); i++) {
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "  %s", name);
        table_cell(&table, 1, COLOR_DIM, "%s", text);
    }
    table_print(&table);
    table_done(&table);
}

static int show_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    const char *name = operands->at[0], *known, *text;
    CLEANUP(api) struct api api = {0};
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(json) json_t *policy = NULL;
    CLEANUP(str) struct str path = {0};
    struct api_error trouble;

    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    str_add(&path, "/v1/policies");
    path_add(&path, name);
    rc = api_try(&api, &(struct api_request){.method = "GET", .path = str_text(&path)}, &answer, &trouble);
    for (size_t i = 0; rc == EXIT_NOT_FOUND && (known = berth_ranking_at(i, &text)); i++)
        if (strcmp(known, name) == 0) {
            policy = built_in_json(known, text);
            rc = EXIT_OK;
        }
    if (rc != EXIT_OK)
        return api_error_print(&api, &trouble);
    if (!policy)
        policy = take_ptr(&answer.body);
    if (view_print(cli, v->form, policy))
        return EXIT_OK;
    fields_print(cli, policy, 0);
    factors_list(cli);
    return EXIT_OK;
}

const struct command policy_show_command = {
    .name = "policy show",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Show a policy and the factors it can use.",
    .examples = "  berth policy show fairshare",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = show_run,
};

/* ---- test ------------------------------------------------------------------------------------------------------- */

struct test_values {
    const char *file;
    struct option_count limit;
    unsigned form;
};

static const struct option test_options[] = {
    OPTION_TEXT_ROW("file", 'f', test_values, file, "FILE",
                    "Read the policy from a YAML or JSON file; '-' is standard input."),
    OPTION_COUNT_ROW("limit", 'n', test_values, limit, 1, 10000, "Maximum number of rows. Default: 100."),
    OPTION_CHOICE_ROW("output", 'o', test_values, form, view_choices, "Output format."),
};

static void position_cell(struct table *table, const json_t *item)
{
    json_int_t is = json_integer_value(json_object_get(item, "position"));
    const json_t *was = json_object_get(item, "was");
    json_int_t moved = json_is_integer(was) ? json_integer_value(was) - is : 0;

    if (json_is_true(json_object_get(item, "now")))
        table_cell(table, 0, COLOR_GREEN, "now");
    else
        table_cell(table, 0, COLOR_NONE, "%" JSON_INTEGER_FORMAT, is);
    if (json_is_integer(was))
        table_cell(table, 1, COLOR_NONE, "%" JSON_INTEGER_FORMAT, json_integer_value(was));
    else
        table_cell(table, 1, COLOR_DIM, "now");
    if (moved && json_is_integer(was))
        table_cell(table, 2, moved > 0 ? COLOR_GREEN : COLOR_YELLOW, "%+" JSON_INTEGER_FORMAT, moved);
}

/* "age 0.250x100, fair_share 0.500x20" */
static void factors_cell(struct table *table, size_t column, const json_t *factors)
{
    CLEANUP(str) struct str text = {0};
    json_t *factor;
    size_t i;

    json_array_foreach(factors, i, factor) if (json_integer_value(json_object_get(factor, "weight")) != 0) str_addf(
        &text, "%s%s %.3fx%" JSON_INTEGER_FORMAT, text.len ? ", " : "", member(factor, "name"),
        json_number_value(json_object_get(factor, "value")), json_integer_value(json_object_get(factor, "weight")));
    table_cell(table, column, COLOR_DIM, "%s", str_text(&text));
}

static void order_print(const struct cli *cli, const json_t *tried)
{
    static const struct table_column columns[] = {
        {"#",       TABLE_RIGHT, 0},
        {"CURRENT", TABLE_RIGHT, 0},
        {"MOVES",   TABLE_RIGHT, 0},
        {"JOB",     TABLE_PLAIN, 0},
        {"NAME",    TABLE_WRAP,  0},
        {"OWNER",   TABLE_PLAIN, 0},
        {"QUEUE",   TABLE_PLAIN, 0},
        {"KEY",     TABLE_RIGHT, 0},
        {"STARTS",  TABLE_PLAIN, 0},
        {"FACTORS", TABLE_WRAP,  0},
    };
    int64_t now_ns = wall_clock_ns();
    struct table table;
    json_t *item;
    size_t i;
    char when[WHEN_TEXT_MAX], who[160];

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(json_object_get(tried, "items"), i, item)
    {
        const json_t *key = json_object_get(item, "key");
        table_row(&table);
        position_cell(&table, item);
        table_cell(&table, 3, COLOR_BOLD, "%s", member(item, "id"));
        table_cell(&table, 4, COLOR_NONE, "%s", member(item, "name"));
        table_cell(&table, 5, COLOR_NONE, "%s", holder_text(item, who, sizeof who));
        table_cell(&table, 6, COLOR_NONE, "%s", member(item, "queue"));
        if (key)
            table_cell(&table, 7, COLOR_NONE, "%.3f", (double)json_integer_value(key) / 1000);
        table_cell(&table, 8, COLOR_NONE, "%s", expected_text(item, "start", now_ns, when));
        factors_cell(&table, 9, json_object_get(item, "factors"));
    }
    table_print(&table);
    table_done(&table);
    forecast_label_print(cli, json_object_get(tried, "forecast"), now_ns);
}

/* Reads a policy from a file; its name and kind are ignored. */
static int file_read(const struct cli *cli, const char *file, json_t **ret)
{
    CLEANUP(manifests) struct manifests manifests = {0};
    struct berth_err err;

    if (manifests_read(file, &manifests, &err) < 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (manifests.len != 1 || strcmp(manifests.at[0].collection->kind, "policy") != 0)
        return cli_fail(cli, EXIT_FAILED, "%s: expected one document of kind policy", file);
    *ret = json_incref(manifests.at[0].object);
    return EXIT_OK;
}

static int test_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct test_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(json) json_t *body = NULL;
    CLEANUP(str) struct str path = {0};
    char limit[24];

    if (!v->file == (operands->len == 0))
        return cli_fail(cli, EXIT_USAGE, "expected either the NAME of a policy or -f FILE");
    int rc = EXIT_OK;
    if (v->file)
        rc = file_read(cli, v->file, &body);
    else
        body = json_pack("{s:s}", "policy", operands->at[0]);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    snprintf(limit, sizeof limit, "%" PRIu64, v->limit.n);
    str_add(&path, "/v1/policies/test");
    query_add(&path, "limit", v->limit.given ? limit : NULL);
    rc = api_do(&api, &(struct api_request){.method = "POST", .path = str_text(&path), .body = body}, &answer);
    if (rc != EXIT_OK || view_print(cli, v->form, answer.body))
        return rc;
    if (json_array_size(json_object_get(answer.body, "items")) > 0)
        order_print(cli, answer.body);
    else
        fputs("No pending workloads.\n", cli->out);
    return EXIT_OK;
}

const struct command policy_test_command = {
    .name = "policy test",
    .operands = "NAME | -f FILE",
    .operands_max = 1,
    .summary = "Preview the order of the current queue under a policy. Changes nothing.",
    .text = "The preview applies the policy to every queue. 'now' marks jobs that would start "
            "immediately.",
    .examples = "  berth policy test shortest-job\n"
                "  berth policy test -f fair.yaml",
    .options = test_options,
    .options_len = sizeof test_options / sizeof test_options[0],
    .values_size = sizeof(struct test_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = test_run,
};
