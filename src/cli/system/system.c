/* system.c - `berth system settings|services|configure|restart|enable|disable`. */
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/listing.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

/* ---- settings --------------------------------------------------------------------------------------------------- */

struct settings_values {
    unsigned form;
    bool dry_run;
};

static const struct option settings_options[] = {
    OPTION_CHOICE_ROW("output", 'o', settings_values, form, view_choices, "Output format."),
    DRY_RUN_ROW(settings_values, dry_run),
};

static int settings_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct settings_values *v = values;
    CLEANUP(json) json_t *patch = json_object();
    CLEANUP(json) json_t *body = NULL;
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(api) struct api api = {0};

    int rc = pairs_parse(cli, operands->at, operands->len, patch);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    if (operands->len == 0) {
        rc = api_get(&api, "/v1/system/settings", &body);
        if (rc == EXIT_OK && !view_print(cli, v->form, body))
            fields_print(cli, body, 0);
        return rc;
    }
    struct api_request request = {
        .method = "PATCH", .path = "/v1/system/settings", .body = patch, .dry_run = v->dry_run};
    rc = api_do(&api, &request, &answer);
    if (rc == EXIT_OK)
        fprintf(cli->out, "system settings changed%s\n", v->dry_run ? " (dry run)" : "");
    return rc;
}

const struct command system_settings_command = {
    .name = "system settings",
    .operands = "[KEY=VALUE...]",
    .operands_max = OPERANDS_ANY,
    .summary = "Show or change system settings.",
    .text = "VALUE is parsed as YAML; a dot selects a key of a section: SECTION.KEY=VALUE. null "
            "restores the default.",
    .examples = "  berth system settings\n"
                "  berth system settings -o json",
    .options = settings_options,
    .options_len = sizeof settings_options / sizeof settings_options[0],
    .values_size = sizeof(struct settings_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = settings_run,
};

/* ---- services --------------------------------------------------------------------------------------------------- */

static void services_table(const struct cli *cli, const json_t *items)
{
    static const struct table_column columns[] = {
        {"NAME",            TABLE_PLAIN, 0},
        {"STATE",           TABLE_PLAIN, 0},
        {"READY",           TABLE_RIGHT, 0},
        {"CAN BE DISABLED", TABLE_PLAIN, 0},
        {"DISPLAY",         TABLE_WRAP,  0},
    };
    struct table table;
    json_t *item;
    size_t i;

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(items, i, item)
    {
        const char *state = json_string_value(value_at(item, "status.state|state"));
        const char *display = json_string_value(json_object_get(item, "display"));
        char id[ID_TEXT_MAX];
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "%s", object_id(item, id));
        table_cell(&table, 1, state_color(state ? state : ""), "%s", state ? state : "");
        if (json_object_get(item, "status"))
            table_cell(&table, 2, COLOR_NONE, "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
                       json_integer_value(value_at(item, "status.ready")),
                       json_integer_value(value_at(item, "status.replicas")));
        table_cell(&table, 3, COLOR_NONE, "%s", json_is_false(json_object_get(item, "stoppable")) ? "no" : "yes");
        table_cell(&table, 4, COLOR_NONE, "%s", display ? display : "");
    }
    table_print(&table);
    table_done(&table);
}

static int services_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    CLEANUP(json) json_t *body = NULL;
    CLEANUP(api) struct api api = {0};

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = api_get(&api, "/v1/system/services", &body);
    if (rc != EXIT_OK || view_print(cli, v->form, body))
        return rc;
    if (json_array_size(json_object_get(body, "items")) > 0)
        services_table(cli, json_object_get(body, "items"));
    else
        fputs("No system services.\n", cli->out);
    return EXIT_OK;
}

const struct command system_services_command = {
    .name = "system services",
    .operands = "",
    .summary = "List the system services.",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = services_run,
};

/* ---- settings of one service ------------------------------------------------------------------------------------ */

static int configure_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct settings_values *v = values;
    CLEANUP(json) json_t *patch = json_object();
    CLEANUP(json) json_t *body = NULL;
    CLEANUP(api) struct api api = {0};
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};

    str_add(&path, "/v1/system/services");
    path_add(&path, operands->at[0]);
    str_add(&path, "/settings");
    int rc = pairs_parse(cli, operands->at + 1, operands->len - 1, patch);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc == EXIT_OK && operands->len == 1) {
        rc = api_get(&api, str_text(&path), &body);
        if (rc == EXIT_OK && !view_print(cli, v->form, body))
            fields_print(cli, body, 0);
        return rc;
    }
    struct api_request request = {.method = "PATCH", .path = str_text(&path), .body = patch, .dry_run = v->dry_run};
    if (rc == EXIT_OK)
        rc = api_do(&api, &request, &answer);
    if (rc == EXIT_OK)
        object_done_print(cli, "service", operands->at[0], "changed", v->dry_run);
    return rc;
}

const struct command system_configure_command = {
    .name = "system configure",
    .operands = "SERVICE [KEY=VALUE...]",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Show or change the settings of a system service.",
    .text = "VALUE is parsed as by 'berth app settings'.",
    .examples = "  berth system configure dns\n"
                "  berth system configure dns cache=500",
    .options = settings_options,
    .options_len = sizeof settings_options / sizeof settings_options[0],
    .values_size = sizeof(struct settings_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = configure_run,
};

/* ---- verbs ------------------------------------------------------------------------------------------------------ */

struct service_verb {
    const char *verb, *done;
};

static int service_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct change_values *v = values;
    const struct service_verb *verb = cli->command->arg;
    CLEANUP(api) struct api api = {0};

    int rc = api_open(&api, cli);
    for (size_t i = 0; rc == EXIT_OK && i < operands->len; i++) {
        CLEANUP(api_answer) struct api_answer answer = {0};
        CLEANUP(str) struct str path = {0};
        str_add(&path, "/v1/system/services");
        path_add(&path, operands->at[i]);
        str_addf(&path, "/%s", verb->verb);
        rc = api_do(&api, &(struct api_request){.method = "POST", .path = str_text(&path), .dry_run = v->dry_run},
                    &answer);
        if (rc == EXIT_OK)
            object_done_print(cli, "service", operands->at[i], verb->done, v->dry_run);
    }
    return rc;
}

#define SERVICE(verb_, done_, what)                                                                                    \
    static const struct service_verb service_##verb_ = {#verb_, done_};                                                \
    const struct command system_##verb_##_command = {                                                                  \
        .name = "system " #verb_,                                                                                      \
        .operands = "SERVICE...",                                                                                      \
        .operands_min = 1,                                                                                             \
        .operands_max = OPERANDS_ANY,                                                                                  \
        .summary = what,                                                                                               \
        .options = change_options,                                                                                     \
        .options_len = 1,                                                                                              \
        .values_size = sizeof(struct change_values),                                                                   \
        .section = SECTION_CLUSTER,                                                                                    \
        .talks = true,                                                                                                 \
        .arg = &service_##verb_,                                                                                       \
        .run = service_run,                                                                                            \
    }

SERVICE(restart, "restarted", "Restart system services.");
SERVICE(enable, "enabled", "Start disabled system services.");
SERVICE(disable, "disabled", "Stop system services; essential services cannot be disabled.");
