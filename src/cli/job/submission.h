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
                    "Read jobs from a YAML or JSON file; '-' is standard input."),                                     \
        OPTION_TEXT_ROW("name", 'n', values, field.name, "NAME", "Name of the job; need not be unique."),              \
        OPTION_TEXT_ROW("queue", 'q', values, field.queue, "QUEUE",                                                    \
                        "Queue of the job. Default: chosen by the routes."),                                           \
        OPTION_TEXT_ROW("time", 0, values, field.time, "TIME",                                                         \
                        "Time limit, after which the job is stopped: 30m, 1h30m, 2d, 1-12:00:00, 90 (seconds)."),      \
        OPTION_TEXT_ROW("estimate", 0, values, field.estimate, "TIME", "Expected run time."),                          \
        OPTION_TEXT_ROW("deadline", 0, values, field.deadline, "WHEN", "Latest end: +6h, 18:30, 2026-03-01."),         \
        OPTION_TEXT_ROW("begin", 0, values, field.begin, "WHEN", "Earliest start: +6h, 18:30, 2026-03-01."),           \
        OPTION_LIST_ROW("after", 0, values, field.after, "JOB", "Start after these jobs have ended: 17,18."),          \
        OPTION_LIST_ROW("after-ok", 0, values, field.after_ok, "JOB", "Start after these jobs have succeeded."),       \
        OPTION_LIST_ROW("after-failed", 0, values, field.after_failed, "JOB", "Start after these jobs have failed."),  \
        OPTION_LIST_ROW("after-started", 0, values, field.after_started, "JOB",                                        \
                        "Start after these jobs have started."),                                                       \
        OPTION_FLAG_ROW("singleton", 0, values, field.singleton,                                                       \
                        "Start after your earlier jobs of the same name have ended."),                                 \
        OPTION_TEXT_ROW("array", 'a', values, field.array, "RANGE",                                                    \
                        "Array of tasks with their own BERTH_ARRAY_INDEX: 0-99, 0-99:2, 0-99%10 (at most 10 at "       \
                        "once)."),                                                                                     \
        OPTION_COUNT_ROW("tasks", 'N', values, field.tasks, 1, 10000000,                                               \
                         "Number of tasks of a gang: all start together or none."),                                    \
        OPTION_COUNT_ROW("tasks-per-node", 0, values, field.per_node, 1, 100000,                                       \
                         "Maximum number of tasks on one node."),                                                      \
        OPTION_COUNT_ROW("min", 0, values, field.min, 1, 10000000, "Minimum number of tasks to start with."),          \
        OPTION_COUNT_ROW("max", 0, values, field.max, 1, 10000000, "Number of tasks to grow to."),                     \
        OPTION_TEXT_ROW("gpus", 'G', values, field.gpus, "[MODEL:]N", "GPUs per task: 2, A100:2, or a share: 0.5."),   \
        OPTION_COUNT_ROW("retries", 0, values, field.retries, 0, 1000,                                                 \
                         "Number of retries after a failure. Default: 3."),                                            \
        OPTION_FLAG_ROW("hold", 'H', values, field.hold,                                                               \
                        "Submit the job on hold; 'berth job release' lets it start."),                                 \
        OPTION_FLAG_ROW("requeue", 0, values, field.requeue,                                                           \
                        "Run the job again after a failure or preemption (default)."),                                 \
        OPTION_FLAG_ROW("no-requeue", 0, values, field.no_requeue, "Never run the job again."),                        \
        OPTION_FLAG_ROW("no-preempt", 0, values, field.no_preempt, "Never preempt the job."),                          \
        OPTION_TEXT_ROW("min-run", 0, values, field.min_run, "TIME",                                                   \
                        "Do not preempt the job before it has run this long."),                                        \
        OPTION_TEXT_ROW("checkpoint", 0, values, field.checkpoint, "SIGNAL@TIME",                                      \
                        "Send this signal before preemption, with time to save a checkpoint: USR1@60s."),              \
        OPTION_TEXT_ROW("export", 0, values, field.exports, "NAMES",                                                   \
                        "Environment variables to pass: names (A,B=x), ALL or NONE (default)."),                       \
        OPTION_TEXT_ROW("urgency", 0, values, field.urgency, "N",                                                      \
                        "Urgency from -1000 to 1000; used by some policies."),                                         \
        OPTION_TEXT_ROW("nice", 0, values, field.nice, "N", "Lower the urgency by N."),                                \
        OPTION_TEXT_ROW("type", 0, values, field.type, "WORD", "Type of the job: train, infer, render."),              \
        OPTION_TEXT_ROW("class", 0, values, field.class_name, "WORD", "Class of the program: llm, vision."),           \
        OPTION_TEXT_ROW("network", 0, values, field.network, "WORD", "Architecture of the model: transformer, cnn."),  \
        OPTION_TEXT_ROW("parameters", 0, values, field.parameters, "N", "Number of parameters of the model: 7e9."),    \
        OPTION_LIST_ROW("data", 0, values, field.data, "TEXT", "Input data: volumes, URLs, paths."),                   \
        OPTION_LIST_ROW("attr", 0, values, field.attributes, "KEY=TEXT",                                               \
                        "Additional attribute; may be given several times."),                                          \
        OPTION_LIST_ROW("notify", 0, values, field.notify, "TO[@WHEN,...]",                                            \
                        "Notify a URL or mail address; default: when the job ends or fails. Example: "                 \
                        "http://x/y@started,ended."),                                                                  \
        OPTION_TEXT_ROW("node", 'w', values, field.node, "NODE", "Run only on this node."),                            \
        OPTION_TEXT_ROW("log-keep", 0, values, field.log_keep, "TIME",                                                 \
                        "How long to keep the log after the job has ended."),                                          \
        OPTION_FLAG_ROW("interactive", 0, values, field.interactive, "Mark the job as interactive.")

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
