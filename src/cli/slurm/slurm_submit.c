/* slurm_submit.c - `berth sbatch` and `berth srun`: submits jobs with Slurm's options. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/job/follow_job.h"
#include "cli/job/script.h"
#include "cli/job/submission.h"
#include "cli/lib/command.h"
#include "cli/slurm/sbatch.h"
#include "wire/text/document.h"

/* ---- sbatch ----------------------------------------------------------------------------------------------------- */

/* Builds a document from options and a command instead of a script. */
static int slurm_document(const struct cli *cli, const struct slurm_values *v, const char *const *command, size_t len,
                          json_t *list)
{
    CLEANUP(json) json_t *document = json_object();
    json_t *words = json_array();
    int rc = script_parse(cli, v->job_name ? v->job_name : command[0], "srun \n", v, document);

    for (size_t i = 0; i < len && rc == EXIT_OK; i++)
        if (json_array_append_new(words, json_string(command[i])) != 0)
            rc = cli_fail(cli, EXIT_USAGE, "argument %zu of the command is not UTF-8", i + 1);
    (void)json_object_set_new(document, "command", words);
    if (rc == EXIT_OK)
        (void)json_array_append(list, document);
    return rc;
}

static int sbatch_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct slurm_values *v = values;
    const char *const wrapped[] = {"/bin/sh", "-c", v->wrap};
    CLEANUP(json) json_t *documents = json_array();
    CLEANUP(json) json_t *ids = NULL;
    CLEANUP(api) struct api api = {0};
    struct submission_act act = {.dry_run = v->test_only, .quiet = true};
    int rc;

    if (v->wrap && operands->len)
        return cli_fail(cli, EXIT_USAGE, "--wrap cannot be combined with the script '%s'", operands->at[0]);
    if (!v->wrap && !operands->len)
        return cli_fail(cli, EXIT_USAGE, "missing script: 'berth sbatch job.sh', or --wrap 'COMMAND'");
    if (v->wrap)
        rc = slurm_document(cli, v, wrapped, 3, documents);
    else
        rc = script_document_slurm(cli, operands->at[0], v, operands->at + 1, operands->len - 1, documents);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = submission_send(&api, documents, &act, &ids);
    if (rc != EXIT_OK || v->test_only)
        return rc;
    json_int_t id = json_integer_value(json_array_get(ids, 0));
    fprintf(cli->out, v->parsable ? "%" JSON_INTEGER_FORMAT "\n" : "Submitted batch job %" JSON_INTEGER_FORMAT "\n",
            id);
    (void)fflush(cli->out);
    return v->wait ? job_follow(&api, json_array_get(ids, 0), FOLLOW_STATE) : EXIT_OK;
}

const struct command sbatch_command = {
    .name = "sbatch",
    .operands = "SCRIPT [ARGUMENT...]",
    .operands_max = OPERANDS_ANY,
    .summary = "Submit a script as Slurm's sbatch does.",
    .text = "Reads the #SBATCH and #BERTH lines of the script; options on the command line take "
            "precedence. Unsupported options are reported on standard error and ignored. "
            "docs/jobs.md lists the meaning of each option.",
    .examples = "  berth sbatch -p gpu --gres=gpu:2 -t 2:00:00 train.sh --epochs 3",
    .options = slurm_options,
    .options_len = SLURM_OPTIONS,
    .values_size = sizeof(struct slurm_values),
    .section = SECTION_WORK,
    .talks = true,
    .hidden = true,
    .leading = true,
    .run = sbatch_run,
};

/* ---- srun ------------------------------------------------------------------------------------------------------- */

static int srun_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct slurm_values *v = values;
    CLEANUP(json) json_t *documents = json_array();
    CLEANUP(json) json_t *ids = NULL;
    CLEANUP(api) struct api api = {0};
    struct submission_act act = {.quiet = true};

    if (v->pty)
        return cli_fail(cli, EXIT_USAGE, "--pty is not supported; for a terminal use 'berth run -it -- %s'",
                        operands->at[0]);
    if (getenv("BERTH_JOB_ID") && getenv("BERTH_TASK")) {
        /* every task runs the script, so srun runs the command in place */
        CLEANUP(mem) char **words = mem_zarray(operands->len + 1, sizeof *words);
        for (size_t i = 0; i < operands->len; i++)
            words[i] = mem_strdup(operands->at[i]);
        (void)execvp(words[0], words);
        return cli_fail(cli, EXIT_FAILED, "%s: %s", words[0], strerror(errno));
    }
    int rc = slurm_document(cli, v, operands->at, operands->len, documents);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = submission_send(&api, documents, &act, &ids);
    return rc == EXIT_OK ? job_follow(&api, json_array_get(ids, 0), FOLLOW_LOGS | FOLLOW_CANCEL) : rc;
}

const struct command srun_command = {
    .name = "srun",
    .operands = "COMMAND...",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Run a command as Slurm's srun does and wait for it.",
    .text = "Like 'berth run', with Slurm's options. Within a task of a job the command runs in that "
            "task, because every task runs the script.",
    .examples = "  berth srun -n 4 --gpus-per-task 1 python train.py",
    .options = slurm_options,
    .options_len = SLURM_OPTIONS,
    .values_size = sizeof(struct slurm_values),
    .section = SECTION_WORK,
    .talks = true,
    .hidden = true,
    .leading = true,
    .run = srun_run,
};
