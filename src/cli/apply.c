/* apply.c - `berth apply -f FILE`: makes the server's objects what the manifests say. */
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/manifest.h"
#include "cli/object.h"
#include "cli/progress.h"
#include "wire/document.h"

struct apply_values {
    struct option_list files;
    bool dry_run, atomic;
};

static const struct option options[] = {
    OPTION_LIST_ROW("filename", 'f', apply_values, files, "FILE",
                    "A manifest, a folder of them, or '-' for standard input; may be given several times."),
    DRY_RUN_ROW(apply_values, dry_run),
    OPTION_FLAG_ROW("atomic", 0, apply_values, atomic, "All or nothing: one transaction for everything."),
};

enum { OUTCOME_CREATED, OUTCOME_CHANGED, OUTCOME_UNCHANGED, OUTCOMES };
static const char *const outcomes[] = {"created", "changed", "unchanged"};

static void told(const struct cli *cli, const char *kind, const char *id, unsigned outcome, bool dry_run)
{
    static const enum color colors[] = {COLOR_GREEN, COLOR_YELLOW, COLOR_DIM};

    fprintf(cli->out, "%s/%s %s%s%s%s\n", kind, id, cli_paint(cli, colors[outcome]), outcomes[outcome],
            cli_paint(cli, COLOR_NONE), dry_run ? " (dry run)" : "");
}

/* Of a dry run: what it would write for the object itself. */
static unsigned dry_outcome(const json_t *body)
{
    const json_t *first = json_array_get(json_object_get(body, "changes"), 0);
    const json_t *before = json_object_get(first, "before");

    if (!first)
        return OUTCOME_UNCHANGED;
    return before && !json_is_null(before) ? OUTCOME_CHANGED : OUTCOME_CREATED;
}

/* An answer names the revision it was committed at only where there was something to commit. */
static unsigned outcome_of(const struct api_answer *answer, bool dry_run)
{
    if (dry_run)
        return dry_outcome(answer->body);
    if (answer->status == 201)
        return OUTCOME_CREATED;
    return json_object_get(answer->body, "revision") ? OUTCOME_CHANGED : OUTCOME_UNCHANGED;
}

static int one(struct api *a, const struct manifest *m, bool dry_run)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct target target = {m->collection, m->id};
    struct api_trouble trouble;
    char id[ID_TEXT_MAX];

    object_path(&path, &target);
    struct api_request request = {
        .method = m->id ? "PUT" : "POST",
        .path = str_text(&path),
        .body = m->object,
        .dry_run = dry_run,
    };
    int rc = api_try(a, &request, &answer, &trouble);
    if (rc != EXIT_OK) {
        err_prefix(&trouble.err, "%s: %s%s%s", m->place, m->collection->kind, m->id ? "/" : "", m->id ? m->id : "");
        return api_tell(a, &trouble);
    }
    const json_t *said = dry_run ? json_object_get(answer.body, "answer") : answer.body;
    told(a->cli, m->collection->kind,
         *object_id(said, id) ? id
         : m->id              ? m->id
                              : "new",
         outcome_of(&answer, dry_run), dry_run);
    return EXIT_OK;
}

/* What fails does not keep the rest from being applied, but a server that is gone does. */
static int each(struct api *a, const struct manifests *m, bool dry_run)
{
    struct progress progress;
    int rc = EXIT_OK;

    progress_start(&progress, a->cli, "Applying");
    for (size_t i = 0; i < m->len; i++) {
        if (a->cli->progress && !a->cli->color_out) /* the lines themselves are progress on a terminal */
            progress_tell(&progress, i, m->len);
        int failed = one(a, &m->at[i], dry_run);
        rc = rc == EXIT_OK ? failed : rc;
        if (failed == EXIT_UNREACHABLE || failed == EXIT_REFUSED)
            break;
    }
    progress_end(&progress);
    return rc;
}

static json_t *transaction(const struct manifests *m)
{
    json_t *changes = json_array();

    for (size_t i = 0; i < m->len; i++) {
        json_t *change =
            json_pack("{s:s, s:s, s:O}", "op", "put", "kind", m->at[i].collection->kind, "object", m->at[i].object);
        if (m->at[i].id)
            json_object_set_new(change, "id", json_string(m->at[i].id));
        json_array_append_new(changes, change);
    }
    return json_pack("{s:o}", "changes", changes);
}

static int together(struct api *a, const struct manifests *m, bool dry_run)
{
    CLEANUP(json) json_t *body = transaction(m);
    CLEANUP(api_answer) struct api_answer answer = {0};
    struct api_request request = {.method = "POST", .path = "/v1/txn", .body = body, .dry_run = dry_run};

    int rc = api_do(a, &request, &answer);
    if (rc != EXIT_OK) {
        cli_hint(a->cli, "Nothing was changed.");
        return rc;
    }
    for (size_t i = 0; i < m->len; i++)
        object_tell(a->cli, m->at[i].collection->kind, m->at[i].id ? m->at[i].id : "new", "applied", dry_run);
    return EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct apply_values *v = values;
    CLEANUP(manifests) struct manifests manifests = {0};
    CLEANUP(api) struct api api = {0};
    struct berth_err err;

    (void)operands;
    if (v->files.len == 0)
        return cli_fail(cli, EXIT_USAGE, "what shall be applied? Say -f FILE, -f FOLDER, or -f - for standard input");
    for (size_t i = 0; i < v->files.len; i++)
        if (manifests_read(v->files.at[i], &manifests, &err) != 0)
            return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (manifests.len == 0)
        return cli_fail(cli, EXIT_FAILED, "%s: no manifest in it", v->files.at[0]);
    if (manifests_check(&manifests, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    manifests_sort(&manifests);
    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    return v->atomic ? together(&api, &manifests, v->dry_run) : each(&api, &manifests, v->dry_run);
}

const struct command apply_command = {
    .name = "apply",
    .operands = "-f FILE",
    .summary = "Create or change objects so that they are as manifests say.",
    .text = "A manifest is YAML or JSON: 'kind' (app, job, vm, node, user, group, role, volume, resource, profile) and "
            "the object's keys beside it. A file may hold several, with '---' between them. A folder stands for all "
            "*.yaml, *.yml and *.json below it. Objects are applied in the order of dependence: groups before users, "
            "nodes before apps. A job without an id is submitted as a new one. A resource's own kind is called 'type' "
            "in a manifest.\n"
            "\n"
            "Each object is printed as created, changed or unchanged. What fails is told with its file and line, and "
            "the rest is applied all the same, unless --atomic was given.",
    .examples = "  berth apply -f photos.yaml\n"
                "  berth apply -f cluster/ --dry-run\n"
                "  berth get app photos -o yaml | sed 's/replicas: 1/replicas: 3/' | berth apply -f -",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct apply_values),
    .section = SECTION_OBJECTS,
    .talks = true,
    .run = run,
};
