/* wait.c - `berth wait`: waits until a job has ended or an app is ready, and shows the progress. */
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/show/collection.h"
#include "cli/show/poll.h"
#include "cli/show/status_line.h"
#include "wire/text/document.h"

enum { LOOK_MS = 250 };

struct wait_values {
    struct option_count timeout;
};

static bool is_ready(const json_t *status)
{
    json_int_t ready = json_integer_value(json_object_get(status, "ready"));
    return ready > 0 && ready >= json_integer_value(json_object_get(status, "replicas"));
}

static int outcome(const struct cli *cli, const struct object_target *t, const json_t *object)
{
    const json_t *status = json_object_get(object, "status");
    const char *state = json_string_value(json_object_get(status, "state")), *word = status_word(status);
    const char *error = json_string_value(json_object_get(object, "error"));
    bool cancelled = json_is_true(json_object_get(object, "cancelled")); /* older daemons send no outcome */
    fprintf(cli->out, "%s/%s %s\n", t->collection->kind, t->id,
            cancelled && strcmp(word, "ended") == 0 ? "cancelled" : word);
    if (!cancelled && (!status_is_final(status) || strcmp(state, "ended") == 0))
        return EXIT_OK;
    if (error)
        return cli_fail(cli, EXIT_FAILED, "%s; 'berth why %s %s' shows details", error, t->collection->kind, t->id);
    return EXIT_FAILED;
}

/* `object`: the last known state; NULL: the server is unreachable. */
static int wait_timed_out(const struct api *a, const struct object_target *t, const json_t *object)
{
    const json_t *status = json_object_get(object, "status");
    const char *kind = t->collection->kind;

    if (!object)
        return cli_fail(a->cli, EXIT_PENDING,
                        "timed out; the server does not respond, so the state of %s/%s is unknown", kind, t->id);
    return cli_fail(a->cli, EXIT_PENDING, "timed out: %s/%s is still %s; 'berth why %s %s' shows why", kind, t->id,
                    json_string_value(json_object_get(status, "state")), kind, t->id);
}

static int wait_one(struct api *a, struct object_poll *object_poll, const struct object_target *t, int64_t end_ns)
{
    struct status_line line = {.cli = a->cli};
    bool job = strcmp(t->collection->kind, "job") == 0;
    for (;;) {
        CLEANUP(json) json_t *object = NULL;
        int rc = object_poll_get(object_poll, a, t, &object);
        if (rc != EXIT_OK) {
            status_line_end(&line);
            return rc;
        }
        const json_t *status = json_object_get(object, "status");
        if (status_is_final(status) || (!job && is_ready(status))) {
            status_line_end(&line);
            return outcome(a->cli, t, object);
        }
        if (object) {
            status_line_draw(&line, t, status);
        } else {
            status_line_end(&line);
            (void)object_poll_warn(object_poll, a);
        }
        if (cli_clock_ns() >= end_ns) {
            status_line_end(&line);
            return wait_timed_out(a, t, object);
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    }
}

/* A plain number is a job, as `berth submit` prints it. */
static int targets_find(const struct cli *cli, const struct operands *operands, struct object_targets *ret)
{
    if (strspn(operands->at[0], "0123456789") != strlen(operands->at[0]))
        return targets_parse(cli, operands, false, ret);
    for (size_t i = 0; i < operands->len; i++) {
        struct object_target job = {collection_find("job"), operands->at[i]};
        vec_push(ret, job);
    }
    return EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct wait_values *v = values;
    int64_t end_ns = v->timeout.given ? cli_clock_ns() + (int64_t)v->timeout.n * 1000000000 : INT64_MAX;
    CLEANUP(targets) struct object_targets targets = {0};
    CLEANUP(api) struct api api = {0};
    struct object_poll object_poll = {0};
    int rc = targets_find(cli, operands, &targets);
    for (size_t i = 0; i < targets.len && rc == EXIT_OK; i++)
        if (!targets.at[i].collection->workload)
            rc = cli_fail(cli, EXIT_USAGE, "cannot wait for a %s; wait supports apps, jobs and vms",
                          targets.at[i].collection->kind);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    for (size_t i = 0; i < targets.len; i++) {
        int failed = wait_one(&api, &object_poll, &targets.at[i], end_ns);
        rc = rc == EXIT_OK ? failed : rc;
        if (failed == EXIT_UNREACHABLE)
            break;
    }
    return rc;
}

static const struct option options[] = {
    OPTION_COUNT_ROW("timeout", 't', wait_values, timeout, 1, 31536000, "Maximum time to wait, in seconds."),
};

const struct command wait_command = {
    .name = "wait",
    .operands = "[KIND] ID...",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Wait until jobs have ended or apps are ready, and show progress.",
    .text = "Exits with 1 if a job failed or was cancelled and with 3 on a timeout. With several IDs "
            "it waits for all of them and exits with the first code that is not 0.",
    .examples = "  berth wait 17\n"
                "  berth wait app photos --timeout 60",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct wait_values),
    .section = SECTION_WORK,
    .talks = true,
    .words = collection_words,
    .ids = IDS_OF_KIND,
    .run = run,
};
