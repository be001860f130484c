/* submit.c - `berth submit -- COMMAND...`: a new job. */
#include "base/mem.h"
#include "cli/command.h"
#include "cli/object.h"
#include "cli/workload.h"
#include "wire/document.h"

struct submit_values {
    struct workload_values workload;
    const char *name;
    bool hold, dry_run;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("name", 'n', submit_values, name, "NAME", "What people call it; need not be unique."),
    WORKLOAD_ROWS(submit_values, workload),
    OPTION_FLAG_ROW("hold", 0, submit_values, hold, "Wait until it is released."),
    DRY_RUN_ROW(submit_values, dry_run),
};

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct submit_values *v = values;
    CLEANUP(json) json_t *object = json_object();
    CLEANUP(json) json_t *answer = NULL;
    CLEANUP(api) struct api api = {0};
    struct target target = {collection_find("job"), NULL};

    if (v->name)
        json_object_set_new(object, "name", json_string(v->name));
    if (v->hold)
        json_object_set_new(object, "hold", json_true());
    int rc = workload_make(cli, &v->workload, operands->at, operands->len, object);
    if (rc == EXIT_OK && operands->len == 0 && !v->workload.image)
        rc = cli_fail(cli, EXIT_USAGE, "what shall run? Put the command after '--'; see 'berth submit --help'");
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    struct object_act act = {.method = "POST", .body = object, .done = "submitted", .dry_run = v->dry_run};
    return object_do(&api, &target, &act, &answer);
}

const struct command submit_command = {
    .name = "submit",
    .operands = "[--] COMMAND...",
    .operands_max = OPERANDS_ANY,
    .summary = "Submit a job: a command that runs to its end.",
    .text = "Put '--' before the command, so that its own options are not taken for berth's. Arguments are passed byte "
            "for byte; no shell is involved.",
    .examples = "  berth submit --name train --cpu 8 --gpu 2 -- python train.py --epochs 3\n"
                "  berth submit --replicas 10 --memory 1Gi --hold -- /bin/render",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct submit_values),
    .section = SECTION_WORK,
    .talks = true,
    .run = run,
};
