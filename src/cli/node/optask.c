/* optask.c - `berth optask show|logs|retry|undo`; run and ready are in optask_run.c, list and rm in get.c and delete.c
 * of cli/show.
 */
#include "cli/node/optask.h"

#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/collection.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

static struct object_target optask_target(const char *key)
{
    return (struct object_target){collection_find("optask"), key};
}

/* ---- show ------------------------------------------------------------------------------------------------------- */

static enum color state_color(const char *state)
{
    if (strcmp(state, "done") == 0)
        return COLOR_GREEN;
    return strcmp(state, "failed") == 0 ? COLOR_RED : strcmp(state, "pending") == 0 ? COLOR_NONE : COLOR_YELLOW;
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void nodes_print(const struct cli *cli, json_t *nodes)
{
    static const struct table_column columns[] = {
        {"NODE",    TABLE_PLAIN, 0},
        {"STATE",   TABLE_PLAIN, 0},
        {"ATTEMPT", TABLE_RIGHT, 0},
        {"EXIT",    TABLE_RIGHT, 0},
        {"FAULT",   TABLE_PLAIN, 0},
        {"ERROR",   TABLE_WRAP,  0},
    };
    struct table table;
    size_t i;
    json_t *node;

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(nodes, i, node)
    {
        const json_t *exit = json_object_get(node, "exit");
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "%s", text_at(node, "node"));
        table_cell(&table, 1, state_color(text_at(node, "state")), "%s", text_at(node, "state"));
        table_cell(&table, 2, COLOR_NONE, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(node, "attempt")));
        if (exit)
            table_cell(&table, 3, COLOR_NONE, "%" JSON_INTEGER_FORMAT, json_integer_value(exit));
        table_cell(&table, 4, COLOR_NONE, "%s", text_at(node, "fault"));
        table_cell(&table, 5, COLOR_NONE, "%s", text_at(node, "error"));
    }
    table_print(&table);
    table_done(&table);
}

static int show_run(struct cli *cli, const void *values, const struct operands *operands)
{
    static const char *const hidden[] = {"script", "undo", "status", "v", "generation", "revision", "content"};
    const struct view_values *v = values;
    CLEANUP(json) json_t *task = NULL;
    CLEANUP(api) struct api api = {0};
    struct object_target target = optask_target(operands->at[0]);

    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = object_get(&api, &target, &task);
    if (rc != EXIT_OK || view_print(cli, v->form, task))
        return rc;
    CLEANUP(json) json_t *status = json_incref(json_object_get(task, "status"));
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        (void)json_object_del(task, hidden[i]);
    (void)json_object_set(task, "state", json_object_get(status, "state"));
    fields_print(cli, task, 0);
    fputc('\n', cli->out);
    nodes_print(cli, json_object_get(status, "nodes"));
    return EXIT_OK;
}

const struct command optask_show_command = {
    .name = "optask show",
    .operands = "KEY",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Show an OpTask and its state on each node.",
    .text =
        "States are pending, draining, running, done, failed, undoing and undone. Faults are timeout, script, lost, "
        "refused, no-space, network and package-manager. -o yaml also shows its scripts.",
    .examples = "  berth optask show package-install-1f2e3d4c5b",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .ids = "optasks",
    .run = show_run,
};

/* ---- logs ------------------------------------------------------------------------------------------------------- */

struct logs_values {
    bool follow, undo;
    struct option_count tail;
};

static const struct option logs_options[] = {
    OPTION_FLAG_ROW("follow", 'f', logs_values, follow, "Follow the output."),
    OPTION_COUNT_ROW("tail", 0, logs_values, tail, 0, 1000000000, "Show only the last N lines. Default: all."),
    OPTION_FLAG_ROW("undo", 0, logs_values, undo, "Show the output of the undo script."),
};

static bool piece_print(void *ctx, const char *at, size_t len)
{
    const struct cli *cli = ctx;
    return fwrite(at, 1, len, cli->out) == len && fflush(cli->out) == 0;
}

static int logs_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct logs_values *v = values;
    CLEANUP(str) struct str path = {0};
    CLEANUP(api) struct api api = {0};
    struct api_error trouble;
    struct object_target target = optask_target(operands->at[0]);
    char number[24];

    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    object_path(&path, &target);
    path_add(&path, "logs");
    query_add(&path, "node", operands->len > 1 ? operands->at[1] : NULL);
    query_add(&path, "tail", v->tail.given ? str_u64(v->tail.n, number) : NULL);
    query_add(&path, "follow", v->follow ? "true" : NULL);
    query_add(&path, "undo", v->undo ? "true" : NULL);
    rc = api_stream(&api, str_text(&path), piece_print, cli, &trouble);
    return rc == EXIT_OK ? rc : object_error_print(&api, &target, &trouble);
}

const struct command optask_logs_command = {
    .name = "optask logs",
    .operands = "KEY [NODE]",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "Print the output of an OpTask on a node.",
    .text = "Prints the output of the last run on NODE; without NODE, on the first node that has "
            "started. A node keeps 2 MiB of each run.",
    .examples = "  berth optask logs base n1\n"
                "  berth optask logs base n1 --undo",
    .options = logs_options,
    .options_len = sizeof logs_options / sizeof logs_options[0],
    .values_size = sizeof(struct logs_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .ids = "optasks",
    .run = logs_run,
};

/* ---- retry and undo --------------------------------------------------------------------------------------------- */

struct action_values {
    bool wait, dry_run;
};

static const struct option action_options[] = {
    OPTION_FLAG_ROW("wait", 'w', action_values, wait, "Wait until the OpTask ends and show its state on each node."),
    DRY_RUN_ROW(action_values, dry_run),
};

struct optask_action {
    const char *verb, *done;
};
static const struct optask_action retrying = {"retry", "retried"}, undoing = {"undo", "being undone"};

static int action_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct action_values *v = values;
    const struct optask_action *optask_action = cli->command->arg;
    CLEANUP(json) json_t *body = json_object();
    CLEANUP(api) struct api api = {0};
    struct object_target target = optask_target(operands->at[0]);

    json_t *nodes = json_array();
    for (size_t i = 1; i < operands->len; i++)
        (void)json_array_append_new(nodes, json_string(operands->at[i]));
    (void)json_object_set_new(body, "nodes", nodes);
    int rc = api_open(&api, cli);
    struct object_act act = {
        .method = "POST", .sub = optask_action->verb, .body = body, .done = optask_action->done, .dry_run = v->dry_run};
    if (rc == EXIT_OK)
        rc = object_do(&api, &target, &act, NULL);
    return rc == EXIT_OK && v->wait && !v->dry_run ? optask_wait(&api, target.id, optask_action == &undoing) : rc;
}

#define AGAIN_COMMAND(verb, what, more, arg_)                                                                          \
    const struct command optask_##verb##_command = {                                                                   \
        .name = "optask " #verb,                                                                                       \
        .operands = "KEY [NODE...]",                                                                                   \
        .operands_min = 1,                                                                                             \
        .operands_max = OPERANDS_ANY,                                                                                  \
        .summary = what,                                                                                               \
        .text = more,                                                                                                  \
        .options = action_options,                                                                                     \
        .options_len = sizeof action_options / sizeof action_options[0],                                               \
        .values_size = sizeof(struct action_values),                                                                   \
        .section = SECTION_CLUSTER,                                                                                    \
        .talks = true,                                                                                                 \
        .ids = "optasks",                                                                                              \
        .arg = &(arg_),                                                                                                \
        .run = action_run,                                                                                             \
    }

AGAIN_COMMAND(retry, "Retry an OpTask where it failed or was undone.",
              "Retries on the named nodes, regardless of failures elsewhere, or on all nodes where it "
              "failed or was undone; a stopped rollout continues once at most the allowed number of "
              "failures is left. The checkpoint folder keeps the contents of the last run.",
              retrying);
AGAIN_COMMAND(undo, "Undo an OpTask with its undo script.",
              "Undoes it on the named nodes, or on all nodes where it is done or has failed, with the "
              "parallelism of the OpTask; on nodes where it has not started, it is cancelled. A "
              "stopped rollout stays stopped.",
              undoing);
