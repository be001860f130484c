/* actions.c - verbs that send one request for each named object: `berth app start ID...`, `berth node drain ID...` and
 * others.
 *
 * To add a verb: a line at the end, a declaration in command.h and a row in commands.c.
 */
#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/show/object.h"

struct object_action {
    const char *kind, *verb, *done; /* "app", "start", "started" */
};

static int act_on(struct cli *cli, const char *query, bool dry_run, const struct operands *operands)
{
    const struct object_action *action = cli->command->arg;
    CLEANUP(api) struct api api = {0};

    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    for (size_t i = 0; i < operands->len; i++) {
        struct object_target target = {collection_find(action->kind), operands->at[i]};
        struct object_act act = {
            .method = "POST", .sub = action->verb, .query = query, .done = action->done, .dry_run = dry_run};
        int failed = object_do(&api, &target, &act, NULL);
        rc = rc == EXIT_OK ? failed : rc;
        if (failed == EXIT_UNREACHABLE)
            break;
    }
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    return act_on(cli, NULL, ((const struct change_values *)values)->dry_run, operands);
}

#define ACTION(kind_, verb_, done_, where, what)                                                                       \
    static const struct object_action kind_##_##verb_ = {#kind_, #verb_, done_};                                       \
    const struct command kind_##_##verb_##_command = {                                                                 \
        .name = #kind_ " " #verb_,                                                                                     \
        .operands = "ID...",                                                                                           \
        .operands_min = 1,                                                                                             \
        .operands_max = OPERANDS_ANY,                                                                                  \
        .summary = what,                                                                                               \
        .options = change_options,                                                                                     \
        .options_len = 1,                                                                                              \
        .values_size = sizeof(struct change_values),                                                                   \
        .section = where,                                                                                              \
        .talks = true,                                                                                                 \
        .ids = #kind_ "s",                                                                                             \
        .arg = &kind_##_##verb_,                                                                                       \
        .run = run,                                                                                                    \
    }

ACTION(app, start, "started", SECTION_WORK, "Start apps that are stopped.");
ACTION(app, stop, "stopped", SECTION_WORK, "Stop apps and keep their specifications.");
ACTION(app, restart, "restarted", SECTION_WORK, "Restart the instances of apps, a few at a time.");
ACTION(vm, start, "started", SECTION_WORK, "Start virtual machines that are stopped.");
ACTION(vm, stop, "stopped", SECTION_WORK, "Stop virtual machines and keep their specifications.");
ACTION(vm, restart, "restarted", SECTION_WORK, "Restart virtual machines.");
ACTION(job, release, "released", SECTION_WORK, "Release jobs from hold.");
ACTION(job, cancel, "cancelled", SECTION_WORK, "Cancel jobs: stop their pods and keep their records.");
ACTION(job, requeue, "requeued", SECTION_WORK,
       "Requeue jobs: stop their pods, discard their results and run them again.");
ACTION(node, accept, "accepted", SECTION_CLUSTER,
       "Accept the detected hardware of nodes; additional resources are not used before that.");
ACTION(node, cordon, "cordoned", SECTION_CLUSTER, "Cordon nodes: place no new pods there; running pods stay.");
ACTION(node, enable, "enabled", SECTION_CLUSTER, "Make nodes schedulable again.");
ACTION(node, disable, "disabled", SECTION_CLUSTER,
       "Disable nodes until they are enabled again: no new pods; running pods move away.");
ACTION(user, disable, "disabled", SECTION_PEOPLE, "Suspend users: their apps stop and their tokens are rejected.");
ACTION(user, enable, "enabled", SECTION_PEOPLE, "Reactivate disabled users with their apps and tokens.");

/* ---- job hold --------------------------------------------------------------------------------------------------- */

struct hold_values {
    bool stop, dry_run;
};

static const struct option hold_options[] = {
    OPTION_FLAG_ROW("stop", 0, hold_values, stop, "Also hold running jobs: they stop and start again when released."),
    DRY_RUN_ROW(hold_values, dry_run),
};

static int hold_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct hold_values *v = values;
    return act_on(cli, v->stop ? "stop=true" : NULL, v->dry_run, operands);
}

static const struct object_action job_hold = {"job", "hold", "held"};
const struct command job_hold_command = {
    .name = "job hold",
    .operands = "ID...",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Hold pending jobs until they are released; running jobs only with --stop.",
    .examples = "  berth job hold 17\n"
                "  berth job hold 18 --stop",
    .options = hold_options,
    .options_len = sizeof hold_options / sizeof hold_options[0],
    .values_size = sizeof(struct hold_values),
    .section = SECTION_WORK,
    .talks = true,
    .ids = "jobs",
    .arg = &job_hold,
    .run = hold_run,
};
