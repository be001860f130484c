/* whoami.c - `berth whoami`: prints the server, the user, and the user's permissions. */
#include <string.h>

#include "base/mem.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "wire/text/document.h"

static void line(const struct cli *cli, const char *what, const char *text)
{
    if (text && *text)
        fprintf(cli->out, "%s%-12s%s %s\n", cli_paint(cli, COLOR_BOLD), what, cli_paint(cli, COLOR_NONE), text);
}

static const char *member(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void print(const struct api *a, const json_t *who, const json_t *version)
{
    const struct cli *cli = a->cli;
    const json_t *permissions = json_object_get(who, "permissions");
    const char *permission;
    json_t *scope;

    line(cli, "server", a->connection.server);
    line(cli, "version", member(version, "version"));
    line(cli, "context", a->connection.context);
    line(cli, "user", member(who, "user"));
    line(cli, "node", member(who, "node"));
    line(cli, "group", member(who, "group"));
    line(cli, "role", member(who, "role"));
    line(cli, "token", member(json_object_get(who, "token"), "id"));
    line(cli, "expires", member(json_object_get(who, "token"), "expires"));
    if (json_object_size(permissions) > 0)
        fprintf(cli->out, "%smay%s\n", cli_paint(cli, COLOR_BOLD), cli_paint(cli, COLOR_NONE));
    json_object_foreach((json_t *)permissions, permission, scope)
        fprintf(cli->out, "  %-10s %s\n", permission, json_is_string(scope) ? json_string_value(scope) : "");
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    CLEANUP(json) json_t *who = NULL;
    CLEANUP(json) json_t *version = NULL;
    CLEANUP(api) struct api api = {0};

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = api_get(&api, "/v1/whoami", &who);
    if (rc == EXIT_OK)
        rc = api_get(&api, "/version", &version);
    if (rc == EXIT_OK && !view_print(cli, v->form, who))
        print(&api, who, version);
    return rc;
}

const struct command whoami_command = {
    .name = "whoami",
    .operands = "",
    .summary = "Show the current server, user and permissions.",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .run = run,
};
