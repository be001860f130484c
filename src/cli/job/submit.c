/* submit.c - `berth submit`: submits jobs from a command, a script or a file. */
#include <string.h>

#include "base/mem.h"
#include "cli/job/follow_job.h"
#include "cli/job/submission.h"
#include "cli/lib/command.h"
#include "wire/text/document.h"

struct submit_values {
    struct submission_values submission;
    const char *cron, *overlap;
    struct option_count keep;
    bool dry_run, wait, json;
};

static const struct option options[] = {
    SUBMISSION_ROWS(submit_values, submission),
    WORKLOAD_ROWS(submit_values, submission.workload),
    OPTION_TEXT_ROW("cron", 0, submit_values, cron, "SCHEDULE",
                    "Create a schedule: minute, hour, day, month, weekday in UTC, such as \"0 3 * * *\"."),
    OPTION_TEXT_ROW("overlap", 0, submit_values, overlap, "RULE",
                    "With --cron: what to do while the previous job still runs."),
    OPTION_COUNT_ROW("keep", 0, submit_values, keep, 1, 1000, "With --cron: number of ended jobs to keep."),
    OPTION_FLAG_ROW("wait", 'W', submit_values, wait, "Wait until the job ends and exit with its status."),
    OPTION_FLAG_ROW("json", 0, submit_values, json, "Print the stored job as JSON."),
    OPTION_FLAG_ROW("dry-run", 0, submit_values, dry_run,
                    "Validate the job and show its specification and estimated start; submit nothing."),
};

/* Creates a cron schedule that contains the job and submits it at each scheduled time. */
static int cron_add(struct api *a, const struct submit_values *v, const json_t *documents)
{
    CLEANUP(json) json_t *job = json_deep_copy(json_array_get(documents, 0));
    CLEANUP(json) json_t *cron = json_object();
    CLEANUP(api_answer) struct api_answer answer = {0};
    const char *name = json_string_value(json_object_get(job, "name"));
    char id[ID_TEXT_MAX];

    if (json_array_size(documents) != 1)
        return cli_fail(a->cli, EXIT_USAGE, "--cron needs exactly one job, but the file has %zu",
                        json_array_size(documents));
    if (!name)
        return cli_fail(a->cli, EXIT_USAGE, "--cron needs --name, the name of the schedule");
    (void)json_object_set_new(cron, "name", json_string(name));
    if (json_object_get(job, "owner"))
        (void)json_object_set(cron, "owner", json_object_get(job, "owner"));
    (void)json_object_set_new(cron, "schedule", json_string(v->cron));
    if (v->overlap)
        (void)json_object_set_new(cron, "overlap", json_string(v->overlap));
    if (v->keep.given)
        (void)json_object_set_new(cron, "keep", json_integer((json_int_t)v->keep.n));
    (void)json_object_set(cron, "job", job);
    struct api_request request = {.method = "POST", .path = "/v1/crons", .body = cron, .dry_run = v->dry_run};
    int rc = api_do(a, &request, &answer);
    if (rc == EXIT_OK)
        object_done_print(a->cli, "cron",
                          object_id(v->dry_run ? json_object_get(answer.body, "answer") : answer.body, id), "added",
                          v->dry_run);
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct submit_values *v = values;
    CLEANUP(json) json_t *documents = NULL;
    CLEANUP(json) json_t *ids = NULL;
    CLEANUP(api) struct api api = {0};
    struct submission_act act = {.dry_run = v->dry_run, .json = v->json};

    int rc = submission_read(cli, &v->submission, operands, &documents);
    if (rc == EXIT_OK && v->cron && v->wait)
        rc = cli_fail(cli, EXIT_USAGE, "--wait cannot be combined with --cron");
    if (rc == EXIT_OK && !v->cron && (v->overlap || v->keep.given))
        rc = cli_fail(cli, EXIT_USAGE, "--overlap and --keep need --cron");
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    if (v->cron)
        return cron_add(&api, v, documents);
    rc = submission_send(&api, documents, &act, &ids);
    if (rc != EXIT_OK || !v->wait || v->dry_run)
        return rc;
    int worst = EXIT_OK;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        rc = job_follow(&api, json_array_get(ids, i), FOLLOW_STATE);
        worst = worst == EXIT_OK ? rc : worst;
    }
    return worst;
}

const struct command submit_command = {
    .name = "submit",
    .operands = "[--] COMMAND... | SCRIPT [ARGUMENT...]",
    .operands_max = OPERANDS_ANY,
    .summary = "Submit jobs: a command, a script or a file of jobs.",
    .text = "Options precede the command; all words after the command's name are its arguments. "
            "Arguments are passed verbatim, without a shell.\n\n"
            "A SCRIPT is a local file that begins with '#!'. Its text is sent with the job, and its "
            "'#BERTH --cpu 4' and '#SBATCH -c 4' lines set options; options on the command line take "
            "precedence. Put '--' before a command that is also such a local file, to run it by its "
            "name on the node.\n\n"
            "docs/jobs.md describes arrays, dependencies, gangs, roles and schedules.",
    .examples = "  berth submit --name train --cpu 8 --gpus 2 --time 12h -- python train.py --epochs 3\n"
                "  berth submit --array 0-99%10 -- /bin/render\n"
                "  berth submit --after-ok 17 --queue night train.sh --epochs 3\n"
                "  berth submit -f job.yaml\n"
                "  berth submit --name backup --cron \"0 3 * * *\" -- /usr/local/bin/backup\n"
                "  berth submit --tasks 16 --gpus A100:8 --dry-run -- python train.py",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct submit_values),
    .section = SECTION_WORK,
    .talks = true,
    .leading = true,
    .run = run,
};
