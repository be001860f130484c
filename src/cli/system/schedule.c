/* schedule.c - `berth schedule`: makes a plan now, instead of at the daemon's next planning cycle. */
#include "base/mem.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/output.h"
#include "wire/text/document.h"

static uint64_t number(const json_t *body, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(body, key));
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(api) struct api api = {0};

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = api_do(&api, &(struct api_request){.method = "POST", .path = "/v1/schedule"}, &answer);
    if (rc != EXIT_OK || view_print(cli, v->form, answer.body))
        return rc;
    uint64_t actions = number(answer.body, "actions"), pending = number(answer.body, "pending");
    fprintf(cli->out, "Planned %s action%s in %s; %s pending.\n", show_count(actions).text, plural(actions),
            show_seconds(json_number_value(json_object_get(answer.body, "seconds"))).text,
            pending ? show_count(pending).text : "none");
    if (json_is_true(json_object_get(answer.body, "alarm")))
        cli_warn(cli, "more than a third of all nodes are lost; lost pods are not replaced");
    return EXIT_OK;
}

const struct command schedule_command = {
    .name = "schedule",
    .operands = "",
    .summary = "Run a scheduling cycle now and show its result.",
    .text = "The daemon runs a cycle whenever something changes; this command only avoids the wait.",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = run,
};
