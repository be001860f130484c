/* app.c - `berth app add|scale|settings|install`; the other app verbs are in cli/show: actions.c, delete.c and get.c.
 */
#include <string.h>

#include "base/mem.h"
#include "cli/app/workload.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

static struct object_target app_target(const char *id)
{
    return (struct object_target){collection_find("app"), id};
}

/* ---- add -------------------------------------------------------------------------------------------------------- */

struct add_values {
    struct workload_values workload;
    bool stopped, dry_run;
};

static const struct option add_options[] = {
    WORKLOAD_ROWS(add_values, workload),
    OPTION_LIST_ROW("endpoint", 0, add_values, workload.endpoints, "NAME[/PROTOCOL]",
                    "Port that the app listens on; may be given several times."),
    OPTION_TEXT_ROW("display", 0, add_values, workload.display, "TEXT", "Display name."),
    OPTION_FLAG_ROW("stopped", 0, add_values, stopped, "Do not start the app yet."),
    DRY_RUN_ROW(add_values, dry_run),
};

static int add_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct add_values *v = values;
    CLEANUP(json) json_t *object = json_object();
    CLEANUP(api) struct api api = {0};

    if (operands->before < 1)
        return cli_fail(cli, EXIT_USAGE, "app add needs a NAME before the '--'");
    if (operands->before > 1)
        return cli_fail(cli, EXIT_USAGE, "unexpected argument '%s'; put a command after '--'", operands->at[1]);
    json_object_set_new(object, "name", json_string(operands->at[0]));
    if (v->stopped)
        json_object_set_new(object, "stopped", json_true());
    int rc = workload_make(cli, &v->workload, operands->at + 1, operands->len - 1, object);
    if (rc == EXIT_OK && operands->len == 1 && !v->workload.image)
        rc = cli_fail(cli, EXIT_USAGE, "app '%s' needs --image IMAGE, or a command after '--'", operands->at[0]);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    struct object_target target = app_target(NULL);
    struct object_act act = {.method = "POST", .body = object, .done = "created", .dry_run = v->dry_run};
    return object_do(&api, &target, &act, NULL);
}

const struct command app_add_command = {
    .name = "app add",
    .operands = "NAME [-- COMMAND...]",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Add an app, a service that is kept running.",
    .text = "Does not change an existing app; use 'berth apply' or 'berth edit' for that. A manifest "
            "supports more fields than these options.",
    .examples = "  berth app add photos --image photos:2 --cpu 1 --memory 2Gi --endpoint http\n"
                "  berth app add clock --replicas 2 --env TZ=UTC -- /usr/bin/clockd --port 80",
    .options = add_options,
    .options_len = sizeof add_options / sizeof add_options[0],
    .values_size = sizeof(struct add_values),
    .section = SECTION_WORK,
    .talks = true,
    .run = add_run,
};

/* ---- scale ------------------------------------------------------------------------------------------------------ */

static int scale_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct change_values *v = values;
    CLEANUP(api) struct api api = {0};
    char done[48];
    uint64_t replicas;

    if (count_parse(operands->at[1], &replicas) != 0 || replicas > UINT32_MAX)
        return cli_fail(cli, EXIT_USAGE, "'%s' is not a number of replicas", operands->at[1]);
    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    CLEANUP(json) json_t *body = json_pack("{s:I}", "replicas", (json_int_t)replicas);
    snprintf(done, sizeof done, "scaled to %llu", (unsigned long long)replicas);
    struct object_target target = app_target(operands->at[0]);
    struct object_act act = {.method = "POST", .sub = "scale", .body = body, .done = done, .dry_run = v->dry_run};
    return object_do(&api, &target, &act, NULL);
}

const struct command app_scale_command = {
    .name = "app scale",
    .operands = "ID REPLICAS",
    .operands_min = 2,
    .operands_max = 2,
    .summary = "Set the number of instances of an app.",
    .examples = "  berth app scale photos 3",
    .options = change_options,
    .options_len = 1,
    .values_size = sizeof(struct change_values),
    .section = SECTION_WORK,
    .talks = true,
    .ids = "apps",
    .run = scale_run,
};

/* ---- settings and install --------------------------------------------------------------------------------------- */

struct map_values {
    unsigned form;
    bool dry_run;
};

static const struct option map_options[] = {
    OPTION_CHOICE_ROW("output", 'o', map_values, form, view_choices, "Output format."),
    DRY_RUN_ROW(map_values, dry_run),
};

static int map_show(struct api *a, const char *id, const char *map, unsigned form)
{
    CLEANUP(json) json_t *body = NULL;
    CLEANUP(str) struct str path = {0};
    struct object_target target = app_target(id);

    object_path(&path, &target);
    str_addf(&path, "/%s", map);
    int rc = api_get(a, str_text(&path), &body);
    if (rc == EXIT_OK && !view_print(a->cli, form, body))
        fields_print(a->cli, body, 0);
    return rc;
}

/* Without KEY=VALUE prints the map; with KEY=VALUE changes those keys and keeps the others. */
static int map_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct map_values *v = values;
    const char *map = cli->command->arg;
    CLEANUP(json) json_t *patch = json_object();
    CLEANUP(api) struct api api = {0};

    int rc = pairs_parse(cli, operands->at + 1, operands->len - 1, patch);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    if (operands->len == 1)
        return map_show(&api, operands->at[0], map, v->form);
    struct object_target target = app_target(operands->at[0]);
    struct object_act act = {.method = "PATCH", .sub = map, .body = patch, .done = "changed", .dry_run = v->dry_run};
    return object_do(&api, &target, &act, NULL);
}

const struct command app_settings_command = {
    .name = "app settings",
    .operands = "ID [KEY=VALUE...]",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Show or change the settings that an app reads.",
    .text = "VALUE is parsed as YAML: 5 is a number, true a boolean, \"5\" (with its quotes) a "
            "string; null removes the setting and restores its default. Values that the app's "
            "settings_schema does not allow are rejected.",
    .examples = "  berth app settings photos\n"
                "  berth app settings photos theme=dark faces=true quota=50",
    .options = map_options,
    .options_len = sizeof map_options / sizeof map_options[0],
    .values_size = sizeof(struct map_values),
    .section = SECTION_WORK,
    .talks = true,
    .ids = "apps",
    .arg = "settings",
    .run = map_run,
};

const struct command app_install_command = {
    .name = "app install",
    .operands = "ID [KEY=VALUE...]",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Show or change the install configuration of an app, which is not visible to the app.",
    .text = "VALUE is parsed as by 'berth app settings'.",
    .examples = "  berth app install photos\n"
                "  berth app install photos source=https://example.org/photos.tar",
    .options = map_options,
    .options_len = sizeof map_options / sizeof map_options[0],
    .values_size = sizeof(struct map_values),
    .section = SECTION_WORK,
    .talks = true,
    .ids = "apps",
    .arg = "install",
    .run = map_run,
};
