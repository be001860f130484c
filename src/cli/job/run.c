/* run.c - `berth run`: submits a job and follows its state, prints its output, or opens a terminal in it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/app/exec.h"
#include "cli/job/follow_job.h"
#include "cli/job/submission.h"
#include "cli/lib/command.h"
#include "wire/text/document.h"

struct run_values {
    struct submission_values submission;
    bool stdin_on, terminal, detach, dry_run;
};

static const struct option options[] = {
    OPTION_FLAG_ROW("stdin", 'i', run_values, stdin_on, "Pass standard input to the job; with -t interactively."),
    OPTION_FLAG_ROW("terminal", 't', run_values, terminal, "Allocate a terminal for the command."),
    OPTION_FLAG_ROW("detach", 'd', run_values, detach, "Submit the job and return."),
    SUBMISSION_ROWS(run_values, submission),
    WORKLOAD_ROWS(run_values, submission.workload),
    DRY_RUN_ROW(run_values, dry_run),
};

/* ---- with a terminal -------------------------------------------------------------------------------------------- */

/* The job's main process waits up to one minute for the terminal session. It ends when the session's command ends, with
 * the command's exit code, or with 129 (hang-up) if that code is unknown. */
#define RUN_FOLDER "/run/berth-run"
static const char hold_script[] = "d=" RUN_FOLDER "\n"
                                  "n=0\n"
                                  "until [ -s $d/pid ]; do\n"
                                  "    n=$((n + 1))\n"
                                  "    if [ $n -gt 300 ]; then echo 'no terminal was attached'; exit 129; fi\n"
                                  "    sleep 0.2\n"
                                  "done\n"
                                  "read -r p <$d/pid\n"
                                  "while kill -0 \"$p\" 2>/dev/null; do sleep 0.2; done\n"
                                  "if [ -s $d/exit ]; then read -r code <$d/exit; exit \"$code\"; fi\n"
                                  "echo 'the terminal was disconnected'\n"
                                  "exit 129\n";
static const char shell_script[] = "d=" RUN_FOLDER "\n"
                                   "trap : INT QUIT\n"
                                   "echo $$ >$d/pid\n"
                                   "\"$@\"\n"
                                   "code=$?\n"
                                   "echo $code >$d/exit\n"
                                   "exit $code\n";

static void hold_make(json_t *document)
{
    json_t *mounts = json_object_get(document, "mounts");

    (void)json_object_set_new(document, "command", json_pack("[s, s, s]", "/bin/sh", "-c", hold_script));
    (void)json_object_set_new(document, "interactive", json_true());
    (void)json_object_set_new(document, "retries", json_integer(0));
    if (!json_is_array(mounts)) {
        mounts = json_array();
        (void)json_object_set_new(document, "mounts", mounts);
    }
    (void)json_array_append_new(mounts, json_pack("{s:s, s:s}", "path", RUN_FOLDER, "tmpfs", "64Ki"));
}

static void cancel(struct api *a, const struct object_target *target)
{
    struct object_act act = {.method = "POST", .sub = "cancel"};

    (void)object_do(a, target, &act, NULL);
}

static int terminal_run(struct api *a, const struct run_values *v, const json_t *id, const json_t *command)
{
    static const char *const shell[] = {"/bin/sh", "-c", shell_script, "berth-run"};
    enum { SHELL_WORDS = sizeof shell / sizeof *shell };
    size_t len = json_array_size(command);
    CLEANUP(mem) const char **words = mem_zarray(SHELL_WORDS + len + 1, sizeof *words);
    json_int_t instance = 0;
    bool ended = false;
    char pod[64], number[ID_TEXT_MAX];
    struct object_target target = {collection_find("job"), number};
    int rc = job_wait_running(a, id, &instance);

    if (rc != EXIT_OK)
        return rc;
    (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    (void)snprintf(pod, sizeof pod, "instance/%" JSON_INTEGER_FORMAT, instance);
    for (size_t i = 0; i < SHELL_WORDS; i++)
        words[i] = shell[i];
    for (size_t i = 0; i < len; i++)
        words[SHELL_WORDS + i] = json_string_value(json_array_get(command, i));
    struct exec_request ask = {.pod = pod,
                               .interactive = v->stdin_on,
                               .terminal = v->terminal,
                               .command = words,
                               .command_len = SHELL_WORDS + len,
                               .ret_ended = &ended};
    rc = exec_run(a->cli, &ask);
    if (!ended && rc != EXIT_UNREACHABLE) /* the command never ended: the job has nothing to wait for */
        cancel(a, &target);
    return rc;
}

/* ---- the verb --------------------------------------------------------------------------------------------------- */

static int values_check(const struct cli *cli, const struct run_values *v, const json_t *documents)
{
    const json_t *one = json_array_get(documents, 0);

    if (json_array_size(documents) != 1)
        return cli_fail(cli, EXIT_USAGE, "run submits one job, but the file has %zu; use 'berth submit -f'",
                        json_array_size(documents));
    if (json_object_get(one, "roles"))
        return cli_fail(cli, EXIT_USAGE, "run submits one job, not a set of roles; use 'berth submit -f'");
    if (!v->stdin_on && !v->terminal)
        return EXIT_OK;
    if (v->detach)
        return cli_fail(cli, EXIT_USAGE, "-d cannot be combined with -i or -t");
    if (json_object_get(one, "array") || json_integer_value(json_object_get(one, "replicas")) > 1)
        return cli_fail(cli, EXIT_USAGE, "-i and -t need a job with a single task");
    if (v->terminal && v->stdin_on && !isatty(STDIN_FILENO))
        return cli_fail(cli, EXIT_USAGE, "standard input is not a terminal; omit -t");
    return json_array_size(json_object_get(one, "command"))
               ? EXIT_OK
               : cli_fail(cli, EXIT_USAGE, "-i and -t need a command after '--', such as bash");
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct run_values *v = values;
    CLEANUP(json) json_t *documents = NULL;
    CLEANUP(json) json_t *command = NULL;
    CLEANUP(json) json_t *ids = NULL;
    CLEANUP(api) struct api api = {0};
    bool interactive = v->stdin_on || v->terminal;
    struct submission_act act = {.dry_run = v->dry_run, .quiet = !v->detach && !v->dry_run};

    int rc = submission_read(cli, &v->submission, operands, &documents);
    if (rc == EXIT_OK)
        rc = values_check(cli, v, documents);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    json_t *document = json_array_get(documents, 0);
    command = json_incref(json_object_get(document, "command"));
    if (!json_object_get(document, "retries")) /* the user is watching and can react to a failure */
        (void)json_object_set_new(document, "retries", json_integer(0));
    if (interactive)
        hold_make(document);
    rc = submission_send(&api, documents, &act, &ids);
    if (rc != EXIT_OK || v->detach || v->dry_run)
        return rc;
    const json_t *id = json_array_get(ids, 0);
    (void)fprintf(cli->err, "job/%" JSON_INTEGER_FORMAT " submitted\n", json_integer_value(id));
    return interactive ? terminal_run(&api, v, id, command) : job_follow(&api, id, FOLLOW_LOGS | FOLLOW_CANCEL);
}

const struct command job_run_command = {
    .name = "run",
    .operands = "[--] COMMAND... | SCRIPT [ARGUMENT...]",
    .operands_max = OPERANDS_ANY,
    .summary = "Submit a job, follow its state and output, and exit with its status.",
    .text = "Takes the options of 'berth submit'; a failed job is not retried unless --retries is "
            "given. Shows why the job waits, then its progress and its log, and exits with its exit "
            "status. Ctrl-C cancels the job after two seconds; a second Ctrl-C within them leaves it "
            "running.\n\n"
            "With -it the command runs with a terminal: the job reserves the resources, the command "
            "runs inside it and receives all keys, Ctrl-C included, and the job ends with the "
            "command. If the connection is lost, the command and the job end.",
    .examples = "  berth run --gpus 1 --time 2h -- python train.py\n"
                "  berth run -it --cpu 4 --gpus 1 -- bash\n"
                "  berth run --queue night train.sh",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct run_values),
    .section = SECTION_WORK,
    .talks = true,
    .leading = true,
    .run = run,
};
