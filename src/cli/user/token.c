/* token.c - `berth token add`; the other token verbs are in cli/show: delete.c and get.c. */
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/save.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

struct add_values {
    const char *user, *node, *role, *note, *ttl, *expires, *to;
    bool dry_run;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("user", 'u', add_values, user, "USER", "User of the token. Default: yourself."),
    OPTION_TEXT_ROW("node", 0, add_values, node, "NODE",
                    "Create the token for the agent of this node instead of a user."),
    OPTION_TEXT_ROW("role", 'r', add_values, role, "ROLE", "Limit the token to this role. Default: the user's role."),
    OPTION_TEXT_ROW("note", 0, add_values, note, "TEXT", "Description of the token."),
    OPTION_TEXT_ROW("ttl", 0, add_values, ttl, "DURATION", "Lifetime of the token: 12h, 30d. Default: no expiry."),
    OPTION_TEXT_ROW("expires", 0, add_values, expires, "TIME", "Expiry time of the token: 2026-03-01T12:00:00Z."),
    OPTION_TEXT_ROW("to", 0, add_values, to, "FILE",
                    "Write the token to this new file, readable only by you. Default: standard output."),
    DRY_RUN_ROW(add_values, dry_run),
};

static void text_set(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_string(text));
}

static json_t *token_body(const struct add_values *v)
{
    json_t *body = json_object();

    text_set(body, "user", v->user);
    text_set(body, "node", v->node);
    text_set(body, "role", v->role);
    text_set(body, "note", v->note);
    text_set(body, "ttl", v->ttl);
    text_set(body, "expires", v->expires);
    return body;
}

/* Writes only the token to standard output, so that `berth token add > file` works. */
static int token_print(const struct cli *cli, const struct add_values *v, const json_t *answer, struct saved_file *save)
{
    const char *text = json_string_value(json_object_get(answer, "token"));
    const char *id = json_string_value(json_object_get(answer, "id"));
    struct berth_err err;

    if (!text)
        return cli_fail(cli, EXIT_FAILED,
                        "the server created a token but did not return it; 'berth token ls' lists it");
    if (!v->to) {
        fprintf(cli->out, "%s\n", text);
        if (cli->progress)
            fprintf(cli->err, "token/%s created; its text is shown only once\n", id ? id : "?");
        return EXIT_OK;
    }
    if (save_write(save, text, strlen(text), &err) != 0 || save_write(save, "\n", 1, &err) != 0 ||
        save_end(save, &err) != 0) {
        cli_fail(cli, EXIT_FAILED, "%s", err.text);
        cli_hint(cli, "The token was created anyway; revoke it with 'berth token rm %s'.", id ? id : "ID");
        return EXIT_FAILED;
    }
    fprintf(cli->out, "token/%s created in %s\n", id ? id : "?", v->to);
    return EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct add_values *v = values;
    CLEANUP(json) json_t *body = token_body(v);
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(save) struct saved_file save = {0};
    CLEANUP(api) struct api api = {0};
    struct berth_err err;

    (void)operands;
    if (v->user && v->node)
        return cli_fail(cli, EXIT_USAGE, "--user and --node cannot be combined");
    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    if (v->to && !v->dry_run && save_begin(&save, v->to, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    struct api_request request = {
        .method = "POST", .path = "/v1/tokens", .body = body, .dry_run = v->dry_run, .secret = true};
    rc = api_do(&api, &request, &answer);
    if (rc != EXIT_OK)
        return rc;
    if (v->dry_run) {
        fprintf(cli->out, "token created (dry run)\n");
        return EXIT_OK;
    }
    return token_print(cli, v, answer.body, &save);
}

const struct command token_add_command = {
    .name = "token add",
    .operands = "",
    .summary = "Create a token and print it. It cannot be shown again.",
    .text = "The token grants the permissions of its user, or fewer with --role. It cannot be read "
            "again: revoke a lost token with 'berth token rm' and create another.",
    .examples = "  berth token add --user alice --ttl 30d --to alice.token\n"
                "  berth token add --node n1 --to n1.token\n"
                "  berth token add --role viewer --note 'the screen in the hall'",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct add_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .run = run,
};
