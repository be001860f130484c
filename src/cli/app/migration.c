/* migration.c - `berth migrate`, `berth migrations` and `berth migration undo`: moves pods to other nodes. */
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/app/session.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/reconnect.h"
#include "cli/lib/table.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

enum { LOOK_MS = 500 };

static const char *member(const json_t *item, const char *key)
{
    const char *text = json_string_value(json_object_get(item, key));
    return text ? text : "";
}

/* ---- migrate ---------------------------------------------------------------------------------------------------- */

struct migrate_values {
    const char *to;
    bool wait, dry_run;
};

static const struct option migrate_options[] = {
    OPTION_TEXT_ROW("to", 0, migrate_values, to, "NODE", "Target node. Default: any other suitable node."),
    OPTION_FLAG_ROW("wait", 'w', migrate_values, wait, "Wait until the migration has succeeded or failed."),
    DRY_RUN_ROW(migrate_values, dry_run),
};

/* Finds the one pod that a text names, in any state. */
static int pod_named(struct api *api, const char *text, struct listed_pod *ret)
{
    CLEANUP(pod_name) struct pod_name name = {0};
    CLEANUP(pods) struct listed_pods pods = {0};
    int rc = pod_name_read(api, text, &name);
    if (rc == EXIT_OK)
        rc = pods_list(api, &name, &pods);
    if (rc != EXIT_OK)
        return rc;
    if (pods.len == 0)
        return cli_fail(api->cli, EXIT_CONFLICT, "%s has no running pod to migrate", text);
    if (pods.len > 1)
        return cli_fail(api->cli, EXIT_USAGE, "%s has %zu pods; name one of them, such as %s", text, pods.len,
                        pods.at[0].label);
    *ret = pods.at[0];
    return EXIT_OK;
}

/* Sends a GET and repeats it while the server is unreachable. EXIT_NOT_FOUND is returned without a message. */
static int get_until_reachable(struct api *api, const char *path, const struct listed_pod *pod, json_t **ret)
{
    struct reconnect_notice notice = RECONNECT_NOTICE_INIT;
    struct reconnect reconnect = {.notice = &notice};
    CLEANUP(str) struct str what = {0};
    struct api_error trouble;
    int rc;

    str_addf(&what, "the wait for %s", pod->label);
    for (;;) {
        CLEANUP(api_answer) struct api_answer answer = {0};
        rc = api_try(api, &(struct api_request){.method = "GET", .path = path}, &answer, &trouble);
        if (rc == EXIT_OK && ret)
            *ret = take_ptr(&answer.body);
        if (rc == EXIT_OK || !api_error_is_transient(&trouble) ||
            !reconnect_wait(&reconnect, api, str_text(&what), &trouble))
            break;
    }
    return rc == EXIT_OK || rc == EXIT_NOT_FOUND ? rc : api_error_print(api, &trouble);
}

/* Finds the migration of this instance; NULL: none. *ret_list owns the result. */
static int migration_get(struct api *api, const struct listed_pod *pod, json_t **ret_list, const json_t **ret)
{
    json_t *item;
    size_t i;
    int rc = get_until_reachable(api, "/v1/migrations", pod, ret_list);
    *ret = NULL;
    if (rc == EXIT_NOT_FOUND)
        return cli_fail(api->cli, EXIT_NOT_FOUND, "the server does not support migrations; is it a berthd?");
    if (rc != EXIT_OK)
        return rc;
    json_array_foreach(json_object_get(*ret_list, "items"), i, item)
    {
        char number[24];
        if (strcmp(str_u64((uint64_t)json_integer_value(json_object_get(item, "id")), number), pod->instance) == 0)
            *ret = item;
    }
    return EXIT_OK;
}

/* Returns EXIT_NOT_FOUND, without a message, if the instance no longer exists. */
static int instance_find(struct api *api, const char *instance, const struct listed_pod *pod)
{
    CLEANUP(str) struct str path = {0};

    str_addf(&path, "/v1/instances/%s", instance);
    return get_until_reachable(api, str_text(&path), pod, NULL);
}

/* Prints the outcome. If the old instance still exists, the pod did not move. `heir` is the number of the new instance;
 * 0: none was seen. */
static int migration_result_print(struct api *api, const struct listed_pod *pod, json_int_t successor)
{
    char number[24];
    int rc = instance_find(api, pod->instance, pod);

    if (rc == EXIT_OK)
        return cli_fail(api->cli, EXIT_FAILED, "%s did not move", pod->label);
    if (rc != EXIT_NOT_FOUND)
        return rc;
    rc = successor ? instance_find(api, str_u64((uint64_t)successor, number), pod) : EXIT_OK;
    if (rc == EXIT_NOT_FOUND)
        return cli_fail(api->cli, EXIT_NOT_FOUND, "%s did not move: the new instance %s has ended, too", pod->label,
                        number);
    if (rc != EXIT_OK)
        return rc;
    fprintf(api->cli->out, "%s moved\n", pod->label);
    return EXIT_OK;
}

static int migration_wait(struct api *api, const struct listed_pod *pod)
{
    char last[32] = "";
    json_int_t successor = 0;
    for (;;) {
        CLEANUP(json) json_t *list = NULL;
        const json_t *now;
        int rc = migration_get(api, pod, &list, &now);
        if (rc != EXIT_OK)
            return rc;
        if (!now)
            return migration_result_print(api, pod, successor);
        successor = json_integer_value(json_object_get(now, "instance"));
        const char *phase = member(now, "phase");
        if (strcmp(phase, "undone") == 0)
            return cli_fail(api->cli, EXIT_FAILED, "%s did not move: it was undone", pod->label);
        if (strcmp(phase, last) != 0)
            fprintf(api->cli->err, "%s: %s\n", pod->label, phase);
        (void)snprintf(last, sizeof last, "%s", phase);
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    }
}

static int migrate_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct migrate_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    CLEANUP(json) json_t *body = json_object();
    struct listed_pod pod;

    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = pod_named(&api, operands->at[0], &pod);
    if (rc != EXIT_OK)
        return rc;
    if (v->to && json_object_set_new(body, "to", json_string(v->to)) != 0)
        return cli_fail(cli, EXIT_USAGE, "'%s' is not a valid node name", v->to);
    str_addf(&path, "/v1/instances/%s/migrate", pod.instance);
    struct api_request request = {.method = "POST", .path = str_text(&path), .body = body, .dry_run = v->dry_run};
    rc = api_do(&api, &request, &answer);
    if (rc != EXIT_OK)
        return rc;
    fprintf(cli->out, "%s will move%s%s%s\n", pod.label, v->to ? " to " : "", v->to ? v->to : "",
            v->dry_run ? " (dry run)" : "");
    return v->wait && !v->dry_run ? migration_wait(&api, &pod) : EXIT_OK;
}

const struct command migrate_command = {
    .name = "migrate",
    .operands = "POD",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Migrate a pod of an app: the new pod is ready before the old one stops.",
    .text = "POD is an APP that has one pod, APP/ORDINAL, or instance/ID. While no node fits, the "
            "migration is pending: 'berth migrations' shows it, 'berth migration undo' cancels it.",
    .examples = "  berth migrate photos/0 --to n2 --wait",
    .options = migrate_options,
    .options_len = sizeof migrate_options / sizeof migrate_options[0],
    .values_size = sizeof(struct migrate_values),
    .section = SECTION_WORK,
    .talks = true,
    .run = migrate_run,
};

/* ---- migrations ------------------------------------------------------------------------------------------------- */

static void migrations_table(const struct cli *cli, const json_t *items)
{
    static const struct table_column columns[] = {
        {"ID",       TABLE_RIGHT, 0},
        {"POD",      TABLE_PLAIN, 0},
        {"FROM",     TABLE_PLAIN, 0},
        {"TO",       TABLE_PLAIN, 0},
        {"PHASE",    TABLE_PLAIN, 0},
        {"PROGRESS", TABLE_RIGHT, 0},
        {"CAUSE",    TABLE_PLAIN, 0},
        {"SINCE",    TABLE_PLAIN, 0},
    };
    struct table table;
    json_t *item;
    size_t i;

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(items, i, item)
    {
        const char *to = member(item, "to");
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(item, "id")));
        table_cell(&table, 1, COLOR_NONE, "%s/%" JSON_INTEGER_FORMAT, member(item, "workload"),
                   json_integer_value(json_object_get(item, "ordinal")));
        table_cell(&table, 2, COLOR_NONE, "%s", member(item, "from"));
        table_cell(&table, 3, COLOR_NONE, "%s", *to ? to : "-");
        table_cell(&table, 4, COLOR_NONE, "%s", member(item, "phase"));
        table_cell(&table, 5, COLOR_NONE, "%" JSON_INTEGER_FORMAT "%%",
                   json_integer_value(json_object_get(item, "progress")));
        table_cell(&table, 6, COLOR_NONE, "%s", member(item, "cause"));
        table_cell(&table, 7, COLOR_DIM, "%.19s", member(item, "since"));
    }
    table_print(&table);
    table_done(&table);
}

static int migrations_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *body = NULL;

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = api_get(&api, "/v1/migrations", &body);
    if (rc != EXIT_OK || view_print(cli, v->form, body))
        return rc;
    migrations_table(cli, json_object_get(body, "items"));
    return EXIT_OK;
}

const struct command migrations_command = {
    .name = "migrations",
    .operands = "",
    .summary = "List migrations: manual ones, from drained nodes, and for rebalancing.",
    .text = "ID is the number of the old instance. A completed migration is no longer listed. One "
            "that was undone stays listed for an hour, in which the scheduler does not move that pod.",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_WORK,
    .talks = true,
    .run = migrations_run,
};

/* ---- undo ------------------------------------------------------------------------------------------------------- */

static int undo_run(struct cli *cli, const void *values, const struct operands *operands)
{
    CLEANUP(api) struct api api = {0};
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};

    (void)values;
    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    str_add(&path, "/v1/migrations");
    path_add(&path, operands->at[0]);
    str_add(&path, "/undo");
    rc = api_do(&api, &(struct api_request){.method = "POST", .path = str_text(&path)}, &answer);
    if (rc == EXIT_OK)
        fprintf(cli->out, "migration %s undone\n", operands->at[0]);
    return rc;
}

const struct command migration_undo_command = {
    .name = "migration undo",
    .operands = "ID",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Undo a migration before the old instance stops.",
    .section = SECTION_WORK,
    .talks = true,
    .run = undo_run,
};
