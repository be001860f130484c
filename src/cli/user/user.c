/* user.c - `berth user add|export|import` and `berth group add`; the other verbs are in cli/show: actions.c, delete.c
 * and get.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/save.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

/* ---- add -------------------------------------------------------------------------------------------------------- */

struct add_values {
    const char *group, *role, *display;
    struct option_count level;
    bool dry_run;
};

static const struct option user_options[] = {
    OPTION_TEXT_ROW("group", 'g', add_values, group, "GROUP", "Group of the user. Default: none."),
    OPTION_TEXT_ROW("role", 'r', add_values, role, "ROLE",
                    "Role: admin, operator, auditor, manager, user (default), viewer, or a custom role."),
    OPTION_COUNT_ROW("level", 0, add_values, level, 0, 1000,
                     "Priority of the user, for policies that rank users. Default: 0."),
    OPTION_TEXT_ROW("display", 0, add_values, display, "TEXT", "Display name."),
    DRY_RUN_ROW(add_values, dry_run),
};

static const struct option group_options[] = {
    OPTION_TEXT_ROW("display", 0, add_values, display, "TEXT", "Display name."),
    DRY_RUN_ROW(add_values, dry_run),
};

static void text_set(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_string(text));
}

static int add_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct add_values *v = values;
    struct object_target target = {collection_find(cli->command->arg), NULL};
    CLEANUP(json) json_t *object = json_object();
    CLEANUP(api) struct api api = {0};

    text_set(object, "id", operands->at[0]);
    text_set(object, "group", v->group);
    text_set(object, "role", v->role);
    text_set(object, "display", v->display);
    if (v->level.given)
        json_object_set_new(object, "level", json_integer((json_int_t)v->level.n));
    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    struct object_act act = {.method = "POST", .body = object, .done = "created", .dry_run = v->dry_run};
    return object_do(&api, &target, &act, NULL);
}

const struct command user_add_command = {
    .name = "user add",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Add a user.",
    .text = "A user needs a token to log in: 'berth token add --user NAME'.",
    .examples = "  berth user add alice --group family --display 'Alice A.'",
    .options = user_options,
    .options_len = sizeof user_options / sizeof user_options[0],
    .values_size = sizeof(struct add_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .arg = "user",
    .run = add_run,
};

const struct command group_add_command = {
    .name = "group add",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Add a group.",
    .options = group_options,
    .options_len = sizeof group_options / sizeof group_options[0],
    .values_size = sizeof(struct add_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .arg = "group",
    .run = add_run,
};

/* ---- export ----------------------------------------------------------------------------------------------------- */

struct export_values {
    const char *to;
};

static const struct option export_options[] = {
    OPTION_TEXT_ROW("to", 0, export_values, to, "FILE",
                    "Write the archive to this new file, readable only by you. Default: standard output."),
};

static int export_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct export_values *v = values;
    CLEANUP(json) json_t *archive = NULL;
    CLEANUP(str) struct str path = {0};
    CLEANUP(api) struct api api = {0};
    struct berth_err err;

    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    str_add(&path, "/v1/users");
    path_add(&path, operands->at[0]);
    str_add(&path, "/export");
    rc = api_get(&api, str_text(&path), &archive);
    if (rc != EXIT_OK)
        return rc;
    if (!v->to) {
        json_print(cli, archive);
        return EXIT_OK;
    }
    char *text = json_dumps(archive, JSON_INDENT(2));
    CLEANUP(str) struct str whole = {0};
    str_addf(&whole, "%s\n", text);
    free(text);
    if (save_new(v->to, &whole, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    fprintf(cli->out, "user/%s exported to %s\n", operands->at[0], v->to);
    return EXIT_OK;
}

const struct command user_export_command = {
    .name = "user export",
    .operands = "ID",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Export a user with all apps, vms, jobs and volumes as an archive.",
    .examples = "  berth user export alice --to alice.json",
    .options = export_options,
    .options_len = sizeof export_options / sizeof export_options[0],
    .values_size = sizeof(struct export_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .ids = "users",
    .run = export_run,
};

/* ---- import ----------------------------------------------------------------------------------------------------- */

struct import_values {
    const char *as, *group, *role;
    bool merge, dry_run;
};

static const struct option import_options[] = {
    OPTION_TEXT_ROW("as", 0, import_values, as, "ID", "Import the user under this name instead of the archive's."),
    OPTION_FLAG_ROW("merge", 0, import_values, merge,
                    "Merge into an existing user: existing objects are kept, others are added, and jobs run "
                    "again."),
    OPTION_TEXT_ROW("group", 'g', import_values, group, "GROUP",
                    "Put the user into this group instead of the archive's."),
    OPTION_TEXT_ROW("role", 'r', import_values, role, "ROLE", "Give the user this role instead of the archive's."),
    DRY_RUN_ROW(import_values, dry_run),
};

static int import_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct import_values *v = values;
    CLEANUP(json) json_t *archive = NULL;
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    CLEANUP(api) struct api api = {0};
    struct berth_err err;
    char id[ID_TEXT_MAX];

    if (document_read(operands->at[0], &archive, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (!json_is_object(archive))
        return cli_fail(cli, EXIT_FAILED, "%s is not a user archive", operands->at[0]);
    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    str_add(&path, "/v1/users/import");
    query_add(&path, "as", v->as);
    query_add(&path, "merge", v->merge ? "true" : NULL);
    query_add(&path, "group", v->group);
    query_add(&path, "role", v->role);
    struct api_request request = {.method = "POST", .path = str_text(&path), .body = archive, .dry_run = v->dry_run};
    rc = api_do(&api, &request, &answer);
    if (rc != EXIT_OK)
        return rc;
    const json_t *said = v->dry_run ? json_object_get(answer.body, "answer") : answer.body;
    object_done_print(cli, "user", *object_id(said, id) ? id : v->as ? v->as : "?", "imported", v->dry_run);
    return EXIT_OK;
}

const struct command user_import_command = {
    .name = "user import",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Import a user from an archive; '-' is standard input.",
    .text = "If the user already exists, --as or --merge is required.",
    .examples = "  berth user import alice.json --as alice2\n"
                "  berth user import alice.json --merge",
    .options = import_options,
    .options_len = sizeof import_options / sizeof import_options[0],
    .values_size = sizeof(struct import_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .run = import_run,
};
