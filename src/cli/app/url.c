/* url.c - `berth url`: prints the address of a service; docs/services.md has the rule that chooses an instance. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cli/app/instance_choice.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

struct url_values {
    unsigned form;
    bool all;
};

static const struct option options[] = {
    OPTION_FLAG_ROW("all", 0, url_values, all,
                    "Show every instance of every endpoint, including those that are not ready."),
    OPTION_CHOICE_ROW("output", 'o', url_values, form, view_choices, "Output format."),
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Writes the URL of an endpoint: the scheme is http or https if the endpoint has that name, otherwise its protocol. */
static void url_write(struct str *to, const json_t *endpoint, const json_t *instance)
{
    const char *name = text_of(endpoint, "name"), *address = text_of(instance, "address");
    bool web = strcmp(name, "http") == 0 || strcmp(name, "https") == 0;

    if (!*address)
        address = text_of(instance, "node");
    str_addf(to, "%s://%s%s%s:%" JSON_INTEGER_FORMAT, web ? name : text_of(endpoint, "protocol"),
             strchr(address, ':') ? "[" : "", address, strchr(address, ':') ? "]" : "",
             json_integer_value(json_object_get(instance, "port")));
}

/* Returns {"url", "endpoint", "instance", "node", "ready", "weight"}, a new reference. */
static json_t *row_make(const json_t *endpoint, const json_t *instance)
{
    CLEANUP(str) struct str url = {0};
    url_write(&url, endpoint, instance);
    return json_pack("{s:s, s:O, s:O, s:O, s:O, s:O}", "url", str_text(&url), "endpoint",
                     json_object_get(endpoint, "name"), "instance", json_object_get(instance, "instance"), "node",
                     json_object_get(instance, "node"), "ready", json_object_get(instance, "ready"), "weight",
                     json_object_get(instance, "weight"));
}

static int print_all(const struct cli *cli, const struct url_values *v, const char *app, const json_t *endpoints)
{
    static const struct table_column columns[] = {
        {"ENDPOINT", TABLE_PLAIN, 0},
        {"INSTANCE", TABLE_RIGHT, 0},
        {"NODE",     TABLE_PLAIN, 0},
        {"READY",    TABLE_PLAIN, 0},
        {"WEIGHT",   TABLE_RIGHT, 0},
        {"URL",      TABLE_PLAIN, 0},
    };
    CLEANUP(json) json_t *rows = json_array();
    struct table table;
    size_t i, j;
    json_t *endpoint, *instance, *row;

    json_array_foreach(endpoints, i, endpoint)
    {
        json_array_foreach(json_object_get(endpoint, "instances"), j, instance)
        {
            (void)json_array_append_new(rows, row_make(endpoint, instance));
        }
    }
    if (view_print(cli, v->form, rows))
        return EXIT_OK;
    if (json_array_size(rows) == 0)
        return cli_fail(cli, EXIT_CONFLICT, "%s has no running instances; 'berth describe app %s' shows its state", app,
                        app);
    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(rows, i, row)
    {
        bool ready = json_is_true(json_object_get(row, "ready"));
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "%s", text_of(row, "endpoint"));
        table_cell(&table, 1, COLOR_NONE, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(row, "instance")));
        table_cell(&table, 2, COLOR_NONE, "%s", text_of(row, "node"));
        table_cell(&table, 3, ready ? COLOR_GREEN : COLOR_YELLOW, "%s", ready ? "yes" : "no");
        table_cell(&table, 4, COLOR_NONE, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(row, "weight")));
        table_cell(&table, 5, COLOR_NONE, "%s", text_of(row, "url"));
    }
    table_print(&table);
    table_done(&table);
    return EXIT_OK;
}

/* Returns the endpoint of that name; without a name the only or first one. Prints an error and returns NULL if there is
 * none. */
static const json_t *endpoint_find(const struct cli *cli, const char *app, const json_t *endpoints, const char *name)
{
    CLEANUP(str) struct str names = {0};
    size_t i;
    json_t *endpoint;

    json_array_foreach(endpoints, i, endpoint)
    {
        if (!name || strcmp(text_of(endpoint, "name"), name) == 0)
            return endpoint;
        str_addf(&names, "%s%s", names.len ? ", " : "", text_of(endpoint, "name"));
    }
    if (json_array_size(endpoints) == 0)
        (void)cli_fail(cli, EXIT_NOT_FOUND, "%s has no endpoints", app);
    else
        (void)cli_fail(cli, EXIT_NOT_FOUND, "%s has no endpoint '%s'; it has %s", app, name, str_text(&names));
    return NULL;
}

static int print_one(const struct cli *cli, const struct url_values *v, const char *app, const json_t *endpoint)
{
    VEC(const json_t *) ready = {0};
    VEC(uint32_t) weights = {0};
    uint64_t random;
    size_t i;
    json_t *instance;

    json_array_foreach(json_object_get(endpoint, "instances"), i, instance)
    {
        if (!json_is_true(json_object_get(instance, "ready")))
            continue;
        vec_push(&ready, instance);
        vec_push(&weights, (uint32_t)json_integer_value(json_object_get(instance, "weight")));
    }
    int rc = EXIT_OK;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        abort(); /* fails only on kernels without getrandom(2) */
    if (ready.len == 0) {
        rc = cli_fail(cli, EXIT_CONFLICT, "no instance of %s is ready; 'berth url --all %s' lists all instances", app,
                      app);
    } else {
        CLEANUP(json) json_t *row = row_make(endpoint, ready.at[choice_weighted(weights.at, ready.len, random)]);
        if (!view_print(cli, v->form, row))
            fprintf(cli->out, "%s\n", text_of(row, "url"));
    }
    vec_done(&ready);
    vec_done(&weights);
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct url_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    CLEANUP(mem) char *app = mem_strdup(operands->at[0]);
    struct api_error trouble;
    char *slash = strchr(app, '/');

    if (slash)
        *slash = '\0';
    if (!*app || (slash && !slash[1]))
        return cli_fail(cli, EXIT_USAGE, "'%s' is not an APP or APP/ENDPOINT", operands->at[0]);
    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    str_add(&path, "/v1/services");
    path_add(&path, app);
    struct object_target target = {collection_find("app"), app};
    rc = api_try(&api, &(struct api_request){.method = "GET", .path = str_text(&path)}, &answer, &trouble);
    if (rc != EXIT_OK)
        return object_error_print(&api, &target, &trouble);
    const json_t *endpoints = json_object_get(answer.body, "endpoints");
    if (v->all)
        return print_all(cli, v, app, endpoints);
    const json_t *endpoint = endpoint_find(cli, app, endpoints, slash ? slash + 1 : NULL);
    return endpoint ? print_one(cli, v, app, endpoint) : EXIT_NOT_FOUND;
}

const struct command url_command = {
    .name = "url",
    .operands = "APP[/ENDPOINT]",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Print the address of a ready instance of an app, chosen by weight.",
    .text = "Without ENDPOINT the first endpoint is used. Each call chooses an instance at random, "
            "with a probability proportional to its weight.",
    .examples = "  curl \"$(berth url photos/http)/albums\"\n"
                "  berth url --all photos",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct url_values),
    .section = SECTION_WORK,
    .talks = true,
    .ids = "apps",
    .run = run,
};
