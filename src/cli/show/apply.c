/* apply.c - `berth apply -f FILE`: creates or changes the server's objects to match the manifests. */
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "cli/show/dry_run.h"
#include "cli/show/manifest.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

struct apply_values {
    struct option_list files;
    bool dry_run, atomic;
};

static const struct option options[] = {
    OPTION_LIST_ROW("filename", 'f', apply_values, files, "FILE",
                    "Manifest or folder of manifests; '-' is standard input; may be given several times."),
    DRY_RUN_ROW(apply_values, dry_run),
    OPTION_FLAG_ROW("atomic", 0, apply_values, atomic, "Apply all objects in one transaction, or none."),
};

static void outcome_print(const struct cli *cli, const char *kind, const struct review_item *item, bool dry_run)
{
    static const struct {
        const char *word;
        enum color color;
    } outcomes[OUTCOMES] = {
        [OUTCOME_CREATED] = {"created",   COLOR_GREEN },
        [OUTCOME_CHANGED] = {"changed",   COLOR_YELLOW},
        [OUTCOME_UNCHANGED] = {"unchanged", COLOR_DIM   },
    };

    fprintf(cli->out, "%s/%s %s%s%s%s\n", kind, item->id, cli_paint(cli, outcomes[item->outcome].color),
            outcomes[item->outcome].word, cli_paint(cli, COLOR_NONE), dry_run ? " (dry run)" : "");
}

/* Applies one manifest. An object that already matches is not written. */
static int apply_one(struct api *a, const struct manifest *m)
{
    CLEANUP(review) struct review review = {0};
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct object_target target = {m->collection, m->id};
    struct api_error trouble;

    int rc = review_make(a, m, 1, &review, &trouble);
    if (rc != EXIT_OK)
        return api_error_print(a, &trouble);
    struct review_item *item = &review.items[0];
    if (item->outcome == OUTCOME_UNCHANGED) {
        outcome_print(a->cli, m->collection->kind, item, false);
        return EXIT_OK;
    }
    object_path(&path, &target);
    struct api_request request = {.method = m->id ? "PUT" : "POST", .path = str_text(&path), .body = m->object};
    rc = api_try(a, &request, &answer, &trouble);
    if (rc != EXIT_OK) {
        err_prefix(&trouble.err, "%s: %s%s%s", m->place, m->collection->kind, m->id ? "/" : "", m->id ? m->id : "");
        return api_error_print(a, &trouble);
    }
    if (json_object_get(answer.body, "id"))
        object_id(answer.body, item->id); /* another job may have taken the predicted number */
    outcome_print(a->cli, m->collection->kind, item, false);
    return EXIT_OK;
}

/* Applies each manifest. An error does not stop the others, except an unreachable server. */
static int apply_each(struct api *a, const struct manifests *m)
{
    struct progress progress;
    int rc = EXIT_OK;

    progress_start(&progress, a->cli, "Applying");
    for (size_t i = 0; i < m->len; i++) {
        if (!isatty(fileno(a->cli->out))) /* on a terminal the printed lines already show the progress */
            progress_update(&progress, i, m->len);
        int failed = apply_one(a, &m->at[i]);
        rc = rc == EXIT_OK ? failed : rc;
        if (failed == EXIT_UNREACHABLE || failed == EXIT_REFUSED)
            break;
    }
    progress_end(&progress);
    return rc;
}

static int dry_run_all(struct api *a, const struct manifests *m, bool dry_run)
{
    CLEANUP(review) struct review review = {0};
    struct api_error trouble;

    int rc = review_make(a, m->at, m->len, &review, &trouble);
    if (rc == EXIT_OK && !dry_run)
        rc = review_commit(a, m->at, m->len, &trouble);
    if (rc != EXIT_OK) {
        api_error_print(a, &trouble);
        if (!dry_run && trouble.status)
            cli_hint(a->cli, "Nothing was changed.");
        return rc;
    }
    for (size_t i = 0; i < m->len; i++)
        outcome_print(a->cli, m->at[i].collection->kind, &review.items[i], dry_run);
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
        return cli_fail(cli, EXIT_USAGE, "nothing to apply: expected -f FILE, -f FOLDER, or -f - for standard input");
    for (size_t i = 0; i < v->files.len; i++)
        if (manifests_read(v->files.at[i], &manifests, &err) != 0)
            return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (manifests.len == 0)
        return cli_fail(cli, EXIT_FAILED, "%s: contains no manifests",
                        strcmp(v->files.at[0], "-") == 0 ? "standard input" : v->files.at[0]);
    if (manifests_check(&manifests, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    manifests_sort(&manifests);
    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    return v->atomic || v->dry_run ? dry_run_all(&api, &manifests, v->dry_run) : apply_each(&api, &manifests);
}

const struct command apply_command = {
    .name = "apply",
    .operands = "-f FILE",
    .summary = "Create or update objects from manifests.",
    .text = "A manifest is YAML or JSON: 'kind' (app, job, vm, node, user, group, role, volume, "
            "resource, profile) and the object's keys beside it. A file may contain several, "
            "separated by '---'. A folder stands for all *.yaml, *.yml and *.json files below it. "
            "Objects are applied in the order of their dependencies: groups before users, nodes "
            "before apps. A job without an id is submitted as a new one. A resource's own kind is "
            "called 'type' in a manifest.\n\n"
            "Each object is printed as created, changed or unchanged. Errors are printed with file "
            "and line; the other objects are still applied, unless --atomic is given.",
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
