/* submission.h - builds job documents from a command line, a script or a file.
 *
 * One table of options serves the command line of `berth submit` and `berth run` and the #BERTH lines of a script. The
 * command line overrides the script or file. The functions return an enum exit_code and print errors.
 *
 * To add an option: a field, a row in SUBMISSION_ROWS, and a line in submission.c.
 */
#pragma once

#include "cli/app/workload.h"
#include "cli/show/object.h"

struct submission_values {
    struct workload_values workload;
    const char *name, *file, *queue, *time, *estimate, *deadline, *begin, *array, *gpus, *exports, *urgency, *nice;
    const char *type, *class_name, *network, *parameters, *checkpoint, *min_run, *node, *log_keep;
    struct option_list after, after_ok, after_failed, after_started, attributes, notify, data;
    struct option_count tasks, per_node, min, max, retries;
    bool singleton, hold, requeue, no_requeue, no_preempt, interactive;
};

#define SUBMISSION_ROWS(values, field)                                                                                 \
    OPTION_TEXT_ROW("file", 'f', values, field.file, "FILE",                                                           \
                    "Jobs as documents in YAML or JSON, one or several; '-' is standard input."),                      \
        OPTION_TEXT_ROW("name", 'n', values, field.name, "NAME", "What people call it; need not be unique."),          \
        OPTION_TEXT_ROW("queue", 'q', values, field.queue, "QUEUE",                                                    \
                        "Where it waits; as the routes say if not given."),                                            \
        OPTION_TEXT_ROW("time", 0, values, field.time, "TIME",                                                         \
                        "Its limit: 30m, 1h30m, 2d, 1-12:00:00, 90 (seconds); what runs longer is stopped."),          \
        OPTION_TEXT_ROW("estimate", 0, values, field.estimate, "TIME", "How long it will take, as far as you know."),  \
        OPTION_TEXT_ROW("deadline", 0, values, field.deadline, "WHEN",                                                 \
                        "It must end by then: +6h, 18:30, 2026-03-01."),                                               \
        OPTION_TEXT_ROW("begin", 0, values, field.begin, "WHEN", "It does not start before."),                         \
        OPTION_LIST_ROW("after", 0, values, field.after, "JOB",                                                        \
                        "It waits until these are over, in whatever way: 17,18."),                                     \
        OPTION_LIST_ROW("after-ok", 0, values, field.after_ok, "JOB", "It waits until these have ended well."),        \
        OPTION_LIST_ROW("after-failed", 0, values, field.after_failed, "JOB", "It waits until these have failed."),    \
        OPTION_LIST_ROW("after-started", 0, values, field.after_started, "JOB", "It waits until these have started."), \
        OPTION_FLAG_ROW("singleton", 0, values, field.singleton, "It waits for your earlier jobs of the same name."),  \
        OPTION_TEXT_ROW("array", 'a', values, field.array, "RANGE",                                                    \
                        "Many tasks that differ by BERTH_ARRAY_INDEX: 0-99, 0-99:2, 0-99%10 (ten at a time)."),        \
        OPTION_COUNT_ROW("tasks", 'N', values, field.tasks, 1, 10000000,                                               \
                         "So many tasks that start together or not at all, and know of one another."),                 \
        OPTION_COUNT_ROW("tasks-per-node", 0, values, field.per_node, 1, 100000, "Of these, on one node at most."),    \
        OPTION_COUNT_ROW("min", 0, values, field.min, 1, 10000000, "It may start with so many tasks ..."),             \
        OPTION_COUNT_ROW("max", 0, values, field.max, 1, 10000000, "... and grow to so many."),                        \
        OPTION_TEXT_ROW("gpus", 'G', values, field.gpus, "[MODEL:]N",                                                  \
                        "GPUs of each task: 2, A100:2, or a share: 0.5."),                                             \
        OPTION_COUNT_ROW("retries", 0, values, field.retries, 0, 1000, "Failures before it is given up; 3."),          \
        OPTION_FLAG_ROW("hold", 'H', values, field.hold, "Wait until it is released."),                                \
        OPTION_FLAG_ROW("requeue", 0, values, field.requeue,                                                           \
                        "It may run again after a failure or a stop; the default."),                                   \
        OPTION_FLAG_ROW("no-requeue", 0, values, field.no_requeue, "It runs once, whatever happens."),                 \
        OPTION_FLAG_ROW("no-preempt", 0, values, field.no_preempt, "It is not stopped for others."),                   \
        OPTION_TEXT_ROW("min-run", 0, values, field.min_run, "TIME", "Not stopped for others before it ran so long."), \
        OPTION_TEXT_ROW("checkpoint", 0, values, field.checkpoint, "SIGNAL@TIME",                                      \
                        "It is sent this and given time before it is stopped: USR1@60s."),                             \
        OPTION_TEXT_ROW("export", 0, values, field.exports, "NAMES",                                                   \
                        "Variables of your environment it gets, A,B=x; ALL: every one; NONE, the default: none."),     \
        OPTION_TEXT_ROW("urgency", 0, values, field.urgency, "N", "-1000 to 1000, for policies that look at it."),     \
        OPTION_TEXT_ROW("nice", 0, values, field.nice, "N", "The other way round: it lets others go first."),          \
        OPTION_TEXT_ROW("type", 0, values, field.type, "WORD", "What kind of work: train, infer, render."),            \
        OPTION_TEXT_ROW("class", 0, values, field.class_name, "WORD", "What kind of program: llm, vision."),           \
        OPTION_TEXT_ROW("network", 0, values, field.network, "WORD", "What kind of model: transformer, cnn."),         \
        OPTION_TEXT_ROW("parameters", 0, values, field.parameters, "N", "Of the model: 7e9."),                         \
        OPTION_LIST_ROW("data", 0, values, field.data, "TEXT", "What it reads: volumes, URLs, paths."),                \
        OPTION_LIST_ROW("attr", 0, values, field.attributes, "KEY=TEXT", "Whatever else is worth knowing of it."),     \
        OPTION_LIST_ROW("notify", 0, values, field.notify, "TO[@WHEN,...]",                                            \
                        "A URL or mail address that is told, when it has ended or failed, or as said: "                \
                        "http://x/y@started,ended."),                                                                  \
        OPTION_TEXT_ROW("node", 'w', values, field.node, "NODE", "Exactly this node."),                                \
        OPTION_TEXT_ROW("log-keep", 0, values, field.log_keep, "TIME", "How long its log is kept after its end."),     \
        OPTION_FLAG_ROW("interactive", 0, values, field.interactive, "Somebody sits in front of it.")

/* Converts the given options to keys of a document. */
int submission_make(const struct cli *cli, const struct submission_values *v, json_t *ret);

/* Builds all documents to submit from -f, a script or a command, overridden by the given options. `operands` are the
 * verb's operands: a script and its arguments, or a command. *ret is a new list of objects. */
int submission_read(const struct cli *cli, const struct submission_values *v, const struct operands *operands,
                    json_t **ret);

/* `over` wins; nested objects (env, resources, attributes) are merged, all other values are replaced. */
void submission_merge(json_t *to, const json_t *over);

/* Sends POST /v1/jobs for each document and prints "job/17 submitted", or JSON. *ret_ids: a new list of job numbers;
 * may be NULL. */
struct submission_act {
    bool dry_run, json, quiet;
};
int submission_send(struct api *a, const json_t *documents, const struct submission_act *act, json_t **ret_ids);
