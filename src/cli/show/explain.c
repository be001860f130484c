/* explain.c - `berth why [KIND] ID`: prints the server's explanation of why an object is not in its desired state. */
#include <string.h>

#include "base/mem.h"
#include "cli/job/job_why.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

static int why_get(struct api *a, const struct object_target *target, json_t **ret, struct api_error *trouble)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};

    if (strcmp(target->collection->kind, "job") == 0)
        return job_why_get(a, target->id, true, ret, trouble);
    str_add(&path, "/v1/why");
    path_add(&path, target->collection->kind);
    path_add(&path, target->id);
    int rc = api_try(a, &(struct api_request){.method = "GET", .path = str_text(&path)}, &answer, trouble);
    if (rc == EXIT_OK)
        *ret = take_ptr(&answer.body);
    return rc;
}

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* Resolves an id without a kind: a number is a job, a name is searched in apps, vms and nodes. */
static int why_search(struct api *a, const char *id, json_t **ret)
{
    static const char *const names[] = {"app", "vm", "node", NULL};
    static const char *const numbers[] = {"job", NULL};
    const char *const *kinds = is_number(id) ? numbers : names;
    struct api_error trouble = {0};
    int rc = EXIT_OK;

    for (size_t i = 0; kinds[i]; i++) {
        struct object_target target = {collection_find(kinds[i]), id};
        rc = why_get(a, &target, ret, &trouble);
        if (rc != EXIT_NOT_FOUND)
            break;
    }
    if (rc == EXIT_NOT_FOUND && !is_number(id)) {
        struct object_target app = {collection_find(names[0]), id};
        cli_fail(a->cli, EXIT_NOT_FOUND,
                 "no app, vm or node '%s'; list them with 'berth get apps', 'berth get vms' or 'berth get "
                 "nodes'",
                 id);
        object_suggest_nearest(a, &app);
        return EXIT_NOT_FOUND;
    }
    return rc == EXIT_OK ? rc : api_error_print(a, &trouble);
}

static void lines_print(const struct cli *cli, const json_t *why)
{
    const char *kind = json_string_value(json_object_get(why, "kind"));
    const char *state = json_string_value(value_at(why, "status.state"));
    char id[ID_TEXT_MAX];
    json_t *line;
    size_t i;

    fprintf(cli->out, "%s%s %s%s%s%s\n", cli_paint(cli, COLOR_BOLD), kind ? kind : "", object_id(why, id),
            cli_paint(cli, COLOR_NONE), state ? " is " : "", state ? state : "");
    json_array_foreach(json_object_get(why, "lines"), i, line) if (json_is_string(line))
        cli_wrap(cli, json_string_value(line), 2, 0);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    CLEANUP(targets) struct object_targets targets = {0};
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *why = NULL;
    struct api_error trouble;
    const char *word = operands->at[0];
    bool alone = operands->len == 1 && !strchr(word, '/');
    int rc = alone ? EXIT_OK : targets_parse(cli, operands, false, &targets);

    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    if (alone) {
        rc = why_search(&api, word, &why);
    } else {
        rc = why_get(&api, &targets.at[0], &why, &trouble);
        if (rc != EXIT_OK)
            rc = object_error_print(&api, &targets.at[0], &trouble);
    }
    if (rc != EXIT_OK || view_print(cli, v->form, why))
        return rc;
    const char *kind = json_string_value(json_object_get(why, "kind"));
    if (kind && strcmp(kind, "job") == 0)
        job_why_print(cli, why);
    else
        lines_print(cli, why);
    return EXIT_OK;
}

const struct command why_command = {
    .name = "why",
    .operands = "[KIND] ID",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "Explain why an app, a job, a vm or a node is pending or unhealthy, and what would help.",
    .text = "For a pending job: its queue position and the factors of its rank, every reason with "
            "the number of nodes, the users of the resources it waits for, its estimated start and "
            "end, and ways to start sooner.\n\n"
            "For a cluster in a file use 'berth plan FILE --why POD'.",
    .examples = "  berth why photos\n"
                "  berth why job 17\n"
                "  berth why node n1",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_OBJECTS,
    .talks = true,
    .words = collection_words,
    .ids = IDS_OF_KIND,
    .run = run,
};
