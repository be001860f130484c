/* node_leave.c - `berth node drain` and `berth node rm`: waits, with a progress bar, until a node is empty, and removes
 * it.
 */
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "cli/show/poll.h"
#include "wire/text/document.h"

enum { LOOK_NS = 500000000 };

/* ---- waiting for an empty node ---------------------------------------------------------------------------------- */

struct drain_wait {
    struct api *api;
    struct object_target target;
    struct object_poll object_poll;
    struct progress bar;
    struct str told; /* last printed text */
    size_t total;    /* highest number of instances seen */
};

static const char *reason(const char *what)
{
    static const struct {
        const char *what, *text;
    } rows[] = {
        {"own end",       "ends by itself"                                  },
        {"stop",          "is stopping"                                     },
        {"fence",         "is on a lost machine until the fencing time ends"},
        {"min_available", "stops when its replacement is ready"             },
        {"plan",          "waits for the next scheduling cycle"             },
        {"place",         "fits on no other node ('berth why' shows why)"   },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].what, what) == 0)
            return rows[i].text;
    return what;
}

/* Prints one line for each named instance, if the text differs from the last one. */
static void waiting_print(struct drain_wait *w, size_t left, json_t *waiting)
{
    CLEANUP(str) struct str text = {0};
    size_t i;
    json_t *one;

    json_array_foreach(waiting, i, one)
    {
        const char *work = json_string_value(json_object_get(one, "workload"));
        const char *what = json_string_value(json_object_get(one, "for"));
        str_addf(&text, "  instance %" JSON_INTEGER_FORMAT " of %s %s\n",
                 json_integer_value(json_object_get(one, "instance")), work ? work : "?", reason(what ? what : "?"));
    }
    if (left > json_array_size(waiting))
        str_addf(&text, "  and %zu more\n", left - json_array_size(waiting));
    if (strcmp(str_text(&text), str_text(&w->told)) == 0)
        return;
    str_clear(&w->told);
    str_add(&w->told, str_text(&text));
    progress_end(&w->bar);
    if (left)
        fprintf(w->api->cli->err, "%s: %zu left\n%s", w->target.id, left, str_text(&text));
}

/* Polls the node once. *ret_empty: the node has no instances; untouched while the server is unreachable. */
static int object_poll(struct drain_wait *w, bool *ret_empty)
{
    CLEANUP(json) json_t *node = NULL;
    int rc = object_poll_get(&w->object_poll, w->api, &w->target, &node);

    if (rc != EXIT_OK)
        return rc;
    if (!node) {
        progress_end(&w->bar);
        (void)object_poll_warn(&w->object_poll, w->api);
        return EXIT_OK;
    }
    const json_t *drain = json_object_get(json_object_get(node, "status"), "drain");
    if (!drain)
        return cli_fail(w->api->cli, EXIT_CONFLICT, "node %s is no longer being drained; it is %s", w->target.id,
                        json_string_value(json_object_get(node, "state")));
    size_t left = (size_t)json_integer_value(json_object_get(drain, "left"));
    w->total = left > w->total ? left : w->total;
    waiting_print(w, left, json_object_get(drain, "waiting"));
    progress_update(&w->bar, w->total - left, w->total);
    *ret_empty = left == 0;
    return EXIT_OK;
}

static int wait_empty(struct api *a, const char *id)
{
    struct object_target target = {collection_find("node"), id};
    struct drain_wait w = {.api = a, .target = target, .object_poll.answered = true};
    bool empty = false;
    int rc;

    progress_start(&w.bar, a->cli, "Draining");
    while ((rc = object_poll(&w, &empty)) == EXIT_OK && !empty) {
        struct timespec pause = {.tv_nsec = LOOK_NS};
        (void)nanosleep(&pause, NULL);
    }
    progress_end(&w.bar);
    str_done(&w.told);
    return rc;
}

/* ---- drain ------------------------------------------------------------------------------------------------------ */

struct leave_values {
    bool wait, force, missing_ok, dry_run;
};

static const struct option drain_options[] = {
    OPTION_FLAG_ROW("wait", 'w', leave_values, wait,
                    "Wait until the nodes are empty and show what each instance waits for."),
    DRY_RUN_ROW(leave_values, dry_run),
};

static int drain(struct api *a, const char *id, const struct leave_values *v)
{
    struct object_target target = {collection_find("node"), id};
    struct object_act act = {.method = "POST", .sub = "drain", .done = "draining", .dry_run = v->dry_run};
    int rc = object_do(a, &target, &act, NULL);

    if (rc == EXIT_OK && v->wait && !v->dry_run) {
        rc = wait_empty(a, id);
        if (rc == EXIT_OK)
            object_done_print(a->cli, "node", id, "empty", false);
    }
    return rc;
}

/* ---- rm --------------------------------------------------------------------------------------------------------- */

static const struct option rm_options[] = {
    OPTION_FLAG_ROW("wait", 'w', leave_values, wait, "Drain the nodes first and remove them when they are empty."),
    OPTION_FLAG_ROW("force", 0, leave_values, force,
                    "Remove the nodes even if instances run there; these count as lost."),
    OPTION_FLAG_ROW("missing-ok", 0, leave_values, missing_ok, "Ignore nodes that do not exist."),
    DRY_RUN_ROW(leave_values, dry_run),
};

static int remove_one(struct api *a, const char *id, const struct leave_values *v)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct object_target target = {collection_find("node"), id};
    struct api_error trouble;

    if (v->wait && !v->force) {
        int rc = drain(a, id, v);
        if (rc != EXIT_OK)
            return rc;
    }
    object_path(&path, &target);
    query_add(&path, "force", v->force ? "true" : NULL);
    struct api_request request = {.method = "DELETE", .path = str_text(&path), .dry_run = v->dry_run};
    int rc = api_try(a, &request, &answer, &trouble);
    if (rc == EXIT_NOT_FOUND && v->missing_ok)
        return EXIT_OK;
    if (rc != EXIT_OK)
        return object_error_print(a, &target, &trouble);
    object_done_print(a->cli, "node", id, "deleted", v->dry_run);
    return EXIT_OK;
}

/* ---- both ------------------------------------------------------------------------------------------------------- */

typedef int leave(struct api *a, const char *id, const struct leave_values *v);
struct node_leave_args {
    leave *one;
};
static const struct node_leave_args draining = {drain}, removing = {remove_one};

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct node_leave_args *leaving = cli->command->arg;
    CLEANUP(api) struct api api = {0};
    int rc = api_open(&api, cli);

    if (rc != EXIT_OK)
        return rc;
    for (size_t i = 0; i < operands->len && rc != EXIT_UNREACHABLE; i++) {
        int failed = leaving->one(&api, operands->at[i], values);
        rc = rc == EXIT_OK || failed == EXIT_UNREACHABLE ? failed : rc;
    }
    return rc;
}

#define LEAVE_COMMAND(verb, what, more, values_, options_, arg_)                                                       \
    const struct command node_##verb##_command = {                                                                     \
        .name = "node " #verb,                                                                                         \
        .operands = "ID...",                                                                                           \
        .operands_min = 1,                                                                                             \
        .operands_max = OPERANDS_ANY,                                                                                  \
        .summary = what,                                                                                               \
        .text = more,                                                                                                  \
        .options = options_,                                                                                           \
        .options_len = sizeof options_ / sizeof options_[0],                                                           \
        .values_size = sizeof(struct values_),                                                                         \
        .section = SECTION_CLUSTER,                                                                                    \
        .talks = true,                                                                                                 \
        .ids = "nodes",                                                                                                \
        .arg = &(arg_),                                                                                                \
        .run = run,                                                                                                    \
    }

LEAVE_COMMAND(drain, "Drain nodes: move all pods away and place no new ones.",
              "Services move when their replacements are ready and jobs run to their end, unless their "
              "'on_drain' says otherwise. 'berth node enable' cancels a drain.",
              leave_values, drain_options, draining);
LEAVE_COMMAND(rm, "Remove nodes from the cluster; without --force they must be empty.",
              "Their certificates and tokens are revoked immediately. To rejoin, a machine needs a new "
              "invitation: 'berth node add'.",
              leave_values, rm_options, removing);
