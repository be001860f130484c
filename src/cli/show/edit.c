/* edit.c - `berth edit KIND ID`: opens an object in an editor and writes it back if the server's copy is unchanged. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/show/editor.h"
#include "cli/show/object.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/yaml_write.h"

enum { ROUNDS_MAX = 20 };

static const struct option options[] = {
    DRY_RUN_ROW(change_values, dry_run),
};

struct edit_session {
    struct api *api;
    const struct object_target *target;
    struct editor editor;
    struct str text;     /* text after the last edit */
    struct str original; /* the unedited body, to detect "nothing was changed" */
    json_int_t revision;
    bool dry_run;
};

static void edit_session_cleanup(struct edit_session *s)
{
    editor_close(&s->editor);
    str_done(&s->text);
    str_done(&s->original);
}

/* Writes comments that name the object and the error of the last attempt. */
static void header_write(const struct edit_session *s, const char *trouble, struct str *to)
{
    str_addf(to,
             "# %s %s: saved changes are sent to the server. Lines that start with # are ignored;\n"
             "# save an empty file, or one without a change, to cancel.\n",
             s->target->collection->kind, s->target->id);
    if (trouble)
        str_addf(to, "#\n# NOT SAVED: %s\n", trouble);
    str_add(to, "#\n");
}

/* Returns the text after the leading comments. */
static const char *body_of(const struct str *text)
{
    const char *at = str_text(text);

    while (*at == '#') {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return at;
}

static bool blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

static int object_put(struct edit_session *s, json_t *object, struct api_error *trouble)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};

    object_path(&path, s->target);
    struct api_request request = {
        .method = "PUT",
        .path = str_text(&path),
        .body = object,
        .if_match = s->revision,
        .dry_run = s->dry_run,
    };
    return api_try(s->api, &request, &answer, trouble);
}

/* Writes the edited object to the server. Returns EXIT_OK with *ret_again if the editor must be opened again to show
 * *trouble. */
static int write_back(struct edit_session *s, struct api_error *trouble, bool *ret_again)
{
    CLEANUP(json) json_t *object = NULL;

    *ret_again = true;
    /* The comments above are parsed too, so that errors name the line numbers of the editor. */
    if (document_parse(s->text.at, s->text.len, "line", &object, &trouble->err) != 0)
        return EXIT_OK;
    if (!json_is_object(object)) {
        err_set(&trouble->err, EINVAL, "expected keys and values");
        return EXIT_OK;
    }
    object_from_manifest(s->target->collection, object);
    int rc = object_put(s, object, trouble);
    if (rc == EXIT_FAILED && trouble->status == 400)
        return EXIT_OK;
    *ret_again = false;
    if (rc == EXIT_OK)
        object_done_print(s->api->cli, s->target->collection->kind, s->target->id, "changed", s->dry_run);
    return rc;
}

/* Keeps the edited text in its file and prints where it is. */
static int edit_abort(struct edit_session *s, const struct api_error *trouble)
{
    CLEANUP(mem) char *path = mem_strdup(s->editor.path);
    int rc = api_error_print(s->api, trouble);

    editor_save_text(&s->editor, &s->text);
    if (rc == EXIT_CONFLICT)
        cli_hint(s->api->cli, "Edit the object again to start from its current version; your text is in %s.", path);
    else
        cli_hint(s->api->cli, "Your text is in %s; 'berth apply -f %s' applies it.", path, path);
    return rc;
}

static int edit_until_done(struct edit_session *s)
{
    struct cli *cli = s->api->cli;
    struct api_error trouble = {.code = EXIT_FAILED};
    struct berth_err err;
    bool again = false;

    for (int round = 0; round < ROUNDS_MAX; round++) {
        CLEANUP(str) struct str shown = {0}, sent = {0};
        header_write(s, again ? trouble.err.text : NULL, &shown);
        str_add(&shown, body_of(&s->text));
        str_add(&sent, str_text(&shown));
        if (editor_run(&s->editor, &shown, &err) != 0) {
            cli_fail(cli, EXIT_FAILED, "%s; nothing was changed", err.text);
            return EXIT_FAILED;
        }
        bool untouched = strcmp(str_text(&shown), str_text(&sent)) == 0;
        str_clear(&s->text);
        str_add(&s->text, str_text(&shown));
        const char *body = body_of(&s->text);
        if (blank(body) || strcmp(body, str_text(&s->original)) == 0) {
            fprintf(cli->out, "%s/%s unchanged\n", s->target->collection->kind, s->target->id);
            return EXIT_OK;
        }
        if (again && untouched)
            return edit_abort(s, &trouble); /* saved without a change after an error: the user has given up */
        int rc = write_back(s, &trouble, &again);
        if (!again)
            return rc == EXIT_OK ? rc : edit_abort(s, &trouble);
    }
    return edit_abort(s, &trouble);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct change_values *v = values;
    CLEANUP(targets) struct object_targets targets = {0};
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *object = NULL;
    CLEANUP(edit_session) struct edit_session edit_session = {.api = &api, .dry_run = v->dry_run};
    struct berth_err err;

    int rc = targets_parse(cli, operands, false, &targets);
    if (rc == EXIT_OK && targets.len != 1)
        rc = cli_fail(cli, EXIT_USAGE, "expected one object to edit");
    if (rc == EXIT_OK && !targets.at[0].collection->manifest)
        rc = cli_fail(cli, EXIT_USAGE, "%s cannot be edited", targets.at[0].collection->plural);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = object_get(&api, &targets.at[0], &object);
    if (rc != EXIT_OK)
        return rc;
    edit_session.target = &targets.at[0];
    edit_session.revision = json_integer_value(json_object_get(object, "revision"));
    CLEANUP(json) json_t *manifest = object_to_manifest(targets.at[0].collection, object);
    doc_strip(manifest);
    yaml_write(&edit_session.original, manifest);
    str_add(&edit_session.text, str_text(&edit_session.original));
    if (editor_open(&edit_session.editor, targets.at[0].id, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    return edit_until_done(&edit_session);
}

const struct command edit_command = {
    .name = "edit",
    .operands = "KIND ID",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "Edit an object as YAML in $VISUAL or $EDITOR.",
    .text = "If the server rejects the change, the editor opens again with the reason above the "
            "text; save it unchanged to cancel. If another user has changed the object meanwhile, "
            "nothing is saved on the server and your text is kept in a file.",
    .examples = "  berth edit app photos\n"
                "  EDITOR=nano berth edit node n1",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct change_values),
    .section = SECTION_OBJECTS,
    .talks = true,
    .words = collection_words,
    .ids = IDS_OF_KIND,
    .run = run,
};
