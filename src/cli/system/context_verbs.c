/* context_verbs.c - `berth context ls|use|add|rm|show`: edits the file of known servers. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/suggest.h"
#include "cli/lib/table.h"
#include "net/listen.h"
#include "wire/text/document.h"

struct context_file {
    struct context_env env;
    struct str path;
    struct contexts contexts;
};

static void context_file_cleanup(struct context_file *b)
{
    contexts_done(&b->contexts);
    str_done(&b->path);
}

static int context_file_open(const struct cli *cli, struct context_file *b)
{
    struct berth_err err;

    context_env_read(&b->env);
    if (contexts_path(&b->env, &b->path, &err) != 0 || contexts_read(str_text(&b->path), &b->contexts, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    return EXIT_OK;
}

static int context_file_save(const struct cli *cli, const struct context_file *b)
{
    struct berth_err err;

    if (contexts_write(str_text(&b->path), &b->contexts, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    return EXIT_OK;
}

static int context_missing(const struct cli *cli, const struct context_file *b, const char *name)
{
    struct suggestions near;

    suggest_init(&near, name);
    for (size_t i = 0; i < b->contexts.len; i++)
        suggest_offer(&near, b->contexts.at[i].name);
    if (near.len)
        return cli_fail(cli, EXIT_NOT_FOUND, "no context '%s'; did you mean '%s'?", name, near.at[0]);
    return cli_fail(cli, EXIT_NOT_FOUND, "no context '%s'; 'berth context ls' lists the contexts", name);
}

/* Returns the name of the context that is used without an option. */
static const char *current_of(const struct context_file *b)
{
    return b->env.context ? b->env.context : b->contexts.current;
}

/* Never contains the token itself. */
static json_t *context_json(const struct context *c, bool current)
{
    return json_pack("{s:s, s:b, s:s?, s:s?, s:s?, s:s?, s:b}", "name", c->name, "current", (int)current, "server",
                     c->server, "token_file", c->token_file, "ca", c->ca, "pin", c->pin, "token", c->token != NULL);
}

/* ---- ls and show ------------------------------------------------------------------------------------------------ */

static void contexts_table(const struct cli *cli, const struct context_file *b)
{
    static const struct table_column columns[] = {
        {"",       TABLE_PLAIN, 0},
        {"NAME",   TABLE_PLAIN, 0},
        {"SERVER", TABLE_PLAIN, 0},
        {"TOKEN",  TABLE_WRAP,  0},
    };
    const char *current = current_of(b);
    struct table table;

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < b->contexts.len; i++) {
        const struct context *c = &b->contexts.at[i];
        bool is_current = current && strcmp(current, c->name) == 0;
        table_row(&table);
        table_cell(&table, 0, COLOR_GREEN, "%s", is_current ? "*" : "");
        table_cell(&table, 1, is_current ? COLOR_BOLD : COLOR_NONE, "%s", c->name);
        table_cell(&table, 2, COLOR_NONE, "%s", c->server ? c->server : SERVER_DEFAULT);
        table_cell(&table, 3, COLOR_NONE, "%s", c->token ? "stored here" : c->token_file ? c->token_file : "none");
    }
    table_print(&table);
    table_done(&table);
}

static int ls_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    CLEANUP(context_file) struct context_file context_file = {0};
    CLEANUP(json) json_t *list = json_array();

    (void)operands;
    int rc = context_file_open(cli, &context_file);
    if (rc != EXIT_OK)
        return rc;
    const char *current = current_of(&context_file);
    for (size_t i = 0; i < context_file.contexts.len; i++)
        json_array_append_new(list, context_json(&context_file.contexts.at[i],
                                                 current && strcmp(current, context_file.contexts.at[i].name) == 0));
    if (view_print(cli, v->form, list))
        return EXIT_OK;
    if (context_file.contexts.len == 0)
        fputs("No contexts; create one with 'berth context add NAME --server URL --token-file FILE'.\n", cli->out);
    else
        contexts_table(cli, &context_file);
    return EXIT_OK;
}

const struct command context_ls_command = {
    .name = "context ls",
    .operands = "",
    .summary = "List the contexts; a star marks the current one.",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_PEOPLE,
    .run = ls_run,
};

static int show_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    CLEANUP(context_file) struct context_file context_file = {0};

    int rc = context_file_open(cli, &context_file);
    if (rc != EXIT_OK)
        return rc;
    const char *name = operands->len ? operands->at[0] : current_of(&context_file);
    if (!name)
        return cli_fail(cli, EXIT_NOT_FOUND, "no current context; select one with 'berth context use NAME'");
    const struct context *c = contexts_find(&context_file.contexts, name);
    if (!c)
        return context_missing(cli, &context_file, name);
    const char *current = current_of(&context_file);
    CLEANUP(json) json_t *json = context_json(c, current && strcmp(current, name) == 0);
    if (!view_print(cli, v->form, json))
        fields_print(cli, json, 0);
    return EXIT_OK;
}

const struct command context_show_command = {
    .name = "context show",
    .operands = "[NAME]",
    .operands_max = 1,
    .summary = "Show a context, or the current one. Tokens are never shown.",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_PEOPLE,
    .run = show_run,
};

/* ---- use and rm ------------------------------------------------------------------------------------------------- */

static int use_run(struct cli *cli, const void *values, const struct operands *operands)
{
    CLEANUP(context_file) struct context_file context_file = {0};

    (void)values;
    int rc = context_file_open(cli, &context_file);
    if (rc != EXIT_OK)
        return rc;
    if (!contexts_find(&context_file.contexts, operands->at[0]))
        return context_missing(cli, &context_file, operands->at[0]);
    mem_free(context_file.contexts.current);
    context_file.contexts.current = mem_strdup(operands->at[0]);
    rc = context_file_save(cli, &context_file);
    if (rc == EXIT_OK)
        fprintf(cli->out, "context/%s is current\n", operands->at[0]);
    if (rc == EXIT_OK && context_file.env.context && strcmp(context_file.env.context, operands->at[0]) != 0)
        cli_warn(cli, "BERTH_CONTEXT is set and takes precedence: %s", context_file.env.context);
    return rc;
}

const struct command context_use_command = {
    .name = "context use",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Make a context the current one.",
    .section = SECTION_PEOPLE,
    .run = use_run,
};

static int rm_run(struct cli *cli, const void *values, const struct operands *operands)
{
    CLEANUP(context_file) struct context_file context_file = {0};

    (void)values;
    int rc = context_file_open(cli, &context_file);
    if (rc != EXIT_OK)
        return rc;
    for (size_t i = 0; i < operands->len; i++) {
        const char *name = operands->at[i];
        if (!contexts_find(&context_file.contexts, name))
            return context_missing(cli, &context_file, name);
        contexts_remove(&context_file.contexts, name);
        if (context_file.contexts.current && strcmp(context_file.contexts.current, name) == 0)
            mem_free(take_ptr(&context_file.contexts.current));
    }
    rc = context_file_save(cli, &context_file);
    for (size_t i = 0; i < operands->len && rc == EXIT_OK; i++)
        fprintf(cli->out, "context/%s removed\n", operands->at[i]);
    return rc;
}

const struct command context_rm_command = {
    .name = "context rm",
    .operands = "NAME...",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Remove contexts. Token files are kept.",
    .section = SECTION_PEOPLE,
    .run = rm_run,
};

/* ---- add -------------------------------------------------------------------------------------------------------- */

struct add_values {
    bool keep_token, no_use;
};

static const struct option add_options[] = {
    OPTION_FLAG_ROW("keep-token", 0, add_values, keep_token,
                    "Copy the token into the file of contexts, so that FILE is no longer needed."),
    OPTION_FLAG_ROW("no-use", 0, add_values, no_use, "Do not make the context the current one."),
};

/* Returns the absolute path. */
static char *absolute(const char *path)
{
    char *real = path ? realpath(path, NULL) : NULL;
    char *copy = real ? mem_strdup(real) : path ? mem_strdup(path) : NULL;

    free(real);
    return copy;
}

/* Returns whether a token would be sent unencrypted to another machine. */
static bool token_unencrypted(const char *server)
{
    return strncmp(server, "http://", 7) == 0 && !url_is_loopback(server);
}

static int add_token(const struct cli *cli, const struct connect_values *from, const struct add_values *v,
                     struct context *to)
{
    CLEANUP(mem) char *token = NULL;
    struct berth_err err;
    bool exposed = false;

    if (!from->token_file)
        return v->keep_token ? cli_fail(cli, EXIT_USAGE, "--keep-token needs --token-file FILE") : EXIT_OK;
    if (token_file_read(from->token_file, &token, &exposed, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (v->keep_token)
        to->token = take_ptr(&token);
    else
        to->token_file = absolute(from->token_file);
    if (exposed)
        cli_warn(cli, "other users can read the token file %s; run 'chmod 600 %s'", from->token_file, from->token_file);
    return EXIT_OK;
}

static int add_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct add_values *v = values;
    const struct connect_values *from = cli->connect;
    CLEANUP(context_file) struct context_file context_file = {0};
    struct context context = {.name = mem_strdup(operands->at[0])};

    int rc = context_file_open(cli, &context_file);
    if (rc == EXIT_OK && !from->server)
        rc = cli_fail(cli, EXIT_USAGE, "context add needs --server URL");
    if (rc == EXIT_OK)
        rc = add_token(cli, from, v, &context);
    if (rc != EXIT_OK) {
        context_done(&context);
        return rc;
    }
    assert(from->server);
    context.server = mem_strdup(from->server);
    context.ca = absolute(from->ca);
    context.pin = from->pin ? mem_strdup(from->pin) : NULL;
    const char *done = contexts_find(&context_file.contexts, context.name) ? "replaced" : "added";
    contexts_put(&context_file.contexts, &context);
    if (!v->no_use) {
        mem_free(context_file.contexts.current);
        context_file.contexts.current = mem_strdup(operands->at[0]);
    }
    rc = context_file_save(cli, &context_file);
    if (rc == EXIT_OK)
        fprintf(cli->out, "context/%s %s%s\n", operands->at[0], done, v->no_use ? "" : " and current");
    if (rc == EXIT_OK && from->token_file && token_unencrypted(from->server))
        cli_warn(cli, "the token is sent unencrypted to %s; use https", from->server);
    return rc;
}

const struct command context_add_command = {
    .name = "context add",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Add a context, a server with its token, and make it the current one.",
    .text = "An existing context of that name is replaced. The server is not contacted; check it "
            "with 'berth whoami'. Contexts are stored in $BERTH_CONFIG, or berth/config.yaml in "
            "$XDG_CONFIG_HOME or ~/.config.",
    .examples = "  berth context add lab --server https://lab:3980 --token-file ~/lab.token --pin sha256//...\n"
                "  berth context use lab\n"
                "  berth whoami",
    .options = add_options,
    .options_len = sizeof add_options / sizeof add_options[0],
    .values_size = sizeof(struct add_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .run = add_run,
};
