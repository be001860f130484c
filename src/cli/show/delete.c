/* delete.c - `berth delete KIND ID...`, and `berth app rm` and similar verbs. */
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/show/manifest.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

struct delete_values {
    struct option_list files;
    bool force, dry_run, missing_ok;
};

/* The first row is only for `delete`. */
static const struct option options[] = {
    OPTION_LIST_ROW("filename", 'f', delete_values, files, "FILE",
                    "Delete the objects in these manifests, in reverse order."),
    OPTION_FLAG_ROW("force", 0, delete_values, force,
                    "Delete nodes even if pods run there, and users with all their objects."),
    OPTION_FLAG_ROW("missing-ok", 0, delete_values, missing_ok, "Ignore objects that do not exist."),
    DRY_RUN_ROW(delete_values, dry_run),
};
enum { OPTIONS = sizeof options / sizeof options[0] };

static int delete_one(struct api *a, const struct object_target *target, const struct delete_values *v)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct api_error trouble;

    object_path(&path, target);
    query_add(&path, "force", v->force ? "true" : NULL);
    struct api_request request = {.method = "DELETE", .path = str_text(&path), .dry_run = v->dry_run};
    int rc = api_try(a, &request, &answer, &trouble);
    if (rc == EXIT_NOT_FOUND && v->missing_ok)
        return EXIT_OK;
    if (rc != EXIT_OK)
        return object_error_print(a, target, &trouble);
    object_done_print(a->cli, target->collection->kind, target->id, "deleted", v->dry_run);
    return EXIT_OK;
}

/* Returns whether a dry run can check the deletions as one transaction, so that they may depend on each other.
 * Transactions support neither tokens nor force; those deletions are checked one by one. */
static bool fits_one_transaction(const struct object_targets *targets, const struct delete_values *v)
{
    for (size_t i = 0; i < targets->len; i++)
        if (!targets->at[i].collection->manifest)
            return false;
    return v->dry_run && !v->force && !v->missing_ok && targets->len > 1;
}

static int dry_run_transaction(struct api *a, const struct object_targets *targets)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(json) json_t *body = json_pack("{s:[]}", "changes");

    for (size_t i = 0; i < targets->len; i++)
        json_array_append_new(json_object_get(body, "changes"),
                              json_pack("{s:s, s:s, s:s}", "op", "delete", "kind", targets->at[i].collection->kind,
                                        "id", targets->at[i].id));
    int rc =
        api_do(a, &(struct api_request){.method = "POST", .path = "/v1/txn", .body = body, .dry_run = true}, &answer);
    for (size_t i = 0; i < targets->len && rc == EXIT_OK; i++)
        object_done_print(a->cli, targets->at[i].collection->kind, targets->at[i].id, "deleted", true);
    return rc;
}

static int targets_read(const struct cli *cli, const struct delete_values *v, struct manifests *manifests,
                        struct object_targets *ret)
{
    struct berth_err err;

    for (size_t i = 0; i < v->files.len; i++)
        if (manifests_read(v->files.at[i], manifests, &err) != 0)
            return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    manifests_sort(manifests);
    for (size_t i = manifests->len; i-- > 0;) {
        const struct manifest *m = &manifests->at[i];
        if (!m->id)
            return cli_fail(cli, EXIT_FAILED, "%s: job without an id; 'berth get jobs' lists the ids", m->place);
        vec_push(ret, ((struct object_target){m->collection, m->id}));
    }
    return EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct delete_values *v = values;
    const struct collection *fixed = cli->command->arg ? collection_find(cli->command->arg) : NULL;
    CLEANUP(targets) struct object_targets targets = {0};
    CLEANUP(manifests) struct manifests manifests = {0};
    CLEANUP(api) struct api api = {0};
    int rc = EXIT_OK;

    for (size_t i = 0; fixed && i < operands->len; i++)
        vec_push(&targets, ((struct object_target){fixed, operands->at[i]}));
    if (!fixed)
        rc = targets_parse(cli, operands, false, &targets);
    if (rc == EXIT_OK && v->files.len > 0)
        rc = targets_read(cli, v, &manifests, &targets);
    if (rc == EXIT_OK && targets.len == 0)
        rc = cli_fail(cli, EXIT_USAGE, "delete needs KIND ID, or -f FILE; see 'berth delete --help'");
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    if (fits_one_transaction(&targets, v))
        return dry_run_transaction(&api, &targets);
    for (size_t i = 0; i < targets.len; i++) {
        int failed = delete_one(&api, &targets.at[i], v);
        rc = rc == EXIT_OK ? failed : rc;
        if (failed == EXIT_UNREACHABLE)
            break;
    }
    return rc;
}

const struct command delete_command = {
    .name = "delete",
    .operands = "KIND ID... | -f FILE",
    .operands_max = OPERANDS_ANY,
    .summary = "Delete objects. Stops the instances of apps, jobs and vms.",
    .examples = "  berth delete app photos\n"
                "  berth delete job/17 job/18\n"
                "  berth delete -f cluster/ --dry-run",
    .options = options,
    .options_len = OPTIONS,
    .values_size = sizeof(struct delete_values),
    .section = SECTION_OBJECTS,
    .talks = true,
    .words = collection_words,
    .ids = IDS_OF_KIND,
    .run = run,
};

#define RM_COMMAND(family, what, where)                                                                                \
    const struct command family##_rm_command = {                                                                       \
        .name = #family " rm",                                                                                         \
        .operands = "ID...",                                                                                           \
        .operands_min = 1,                                                                                             \
        .operands_max = OPERANDS_ANY,                                                                                  \
        .summary = what,                                                                                               \
        .options = options + 1,                                                                                        \
        .options_len = OPTIONS - 1,                                                                                    \
        .values_size = sizeof(struct delete_values),                                                                   \
        .section = where,                                                                                              \
        .talks = true,                                                                                                 \
        .ids = #family "s",                                                                                            \
        .arg = #family,                                                                                                \
        .run = run,                                                                                                    \
    }

RM_COMMAND(app, "Delete apps and stop their instances.", SECTION_WORK);
RM_COMMAND(vm, "Delete virtual machines.", SECTION_WORK);
RM_COMMAND(secret, "Remove secrets that no app or job uses.", SECTION_WORK);
RM_COMMAND(optask, "Remove OpTasks that do not run; nodes keep their record of completed runs.", SECTION_CLUSTER);
RM_COMMAND(user, "Remove users.", SECTION_PEOPLE);
RM_COMMAND(group, "Remove groups.", SECTION_PEOPLE);
RM_COMMAND(token, "Revoke tokens.", SECTION_PEOPLE);
