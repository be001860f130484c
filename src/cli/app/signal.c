/* signal.c - `berth signal`: sends a signal to the processes of a pod. */
#include "base/mem.h"
#include "cli/app/session.h"
#include "cli/lib/command.h"
#include "wire/text/document.h"

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const char *name = operands->len > 1 ? operands->at[1] : "TERM";
    CLEANUP(api) struct api api = {0};
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct listed_pod pod;

    (void)values;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = pod_running(&api, operands->at[0], false, &pod);
    if (rc != EXIT_OK)
        return rc;
    CLEANUP(json) json_t *body = json_pack("{s:s}", "signal", name);
    if (!body)
        return cli_fail(cli, EXIT_USAGE, "unknown signal '%s'", name);
    str_addf(&path, "/v1/instances/%s/signal", pod.instance);
    rc = api_do(&api, &(struct api_request){.method = "POST", .path = str_text(&path), .body = body}, &answer);
    if (rc == EXIT_OK)
        fprintf(cli->out, "%s signalled\n", pod.label);
    return rc;
}

static const char *const signals[] = {"HUP", "INT", "QUIT", "KILL", "USR1", "USR2", "TERM", "STOP", "CONT", NULL};

const struct command signal_command = {
    .name = "signal",
    .operands = "POD [SIGNAL]",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "Send a signal to a pod. Default: TERM.",
    .text = "POD is an APP or JOB that has one pod, APP/ORDINAL, or instance/ID. The signal is sent "
            "to the pod's first process; the desired state does not change, use 'berth app stop' for "
            "that. 'berth audit' shows who sent it.",
    .examples = "  berth signal photos HUP\n"
                "  berth signal 17/3 USR1",
    .section = SECTION_WORK,
    .talks = true,
    .words = signals,
    .run = run,
};
