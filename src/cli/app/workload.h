/* workload.h - the options that describe an app or a job on the command line, and the document made from them. */
#pragma once

#include <jansson.h>

#include "cli/lib/cli.h"
#include "cli/lib/options.h"

struct workload_values {
    const char *image, *cpu, *memory, *gpu, *workdir, *owner, *display;
    struct option_count replicas, priority;
    struct option_list env, endpoints, resources;
};

/* Rows for the option table of a verb; `field` is the `struct workload_values` in the verb's values. */
#define WORKLOAD_ROWS(values, field)                                                                                   \
    OPTION_TEXT_ROW("image", 0, values, field.image, "IMAGE", "Image of the container or vm."),                        \
        OPTION_COUNT_ROW("replicas", 0, values, field.replicas, 0, 0, "Number of replicas. Default: 1."),              \
        OPTION_TEXT_ROW("cpu", 0, values, field.cpu, "CORES", "CPU per replica: 2, 0.5 or 500m."),                     \
        OPTION_TEXT_ROW("memory", 0, values, field.memory, "SIZE", "Memory per replica: 512Mi, 2Gi."),                 \
        OPTION_TEXT_ROW("gpu", 0, values, field.gpu, "N", "GPUs per replica: 2, or a share of one: 0.5."),             \
        OPTION_LIST_ROW("resource", 0, values, field.resources, "NAME=AMOUNT",                                         \
                        "Another resource per replica; may be given several times."),                                  \
        OPTION_LIST_ROW("env", 'e', values, field.env, "NAME=VALUE",                                                   \
                        "Environment variable; may be given several times."),                                          \
        OPTION_TEXT_ROW("workdir", 0, values, field.workdir, "PATH", "Working directory."),                            \
        OPTION_COUNT_ROW("priority", 0, values, field.priority, 0, 1000000,                                            \
                         "Priority; higher values first. Default: 0."),                                                \
        OPTION_TEXT_ROW("owner", 0, values, field.owner, "USER", "Owner. Default: yourself.")

/* Returns an amount as in YAML: 2 is a number, 500m a string. The result is a new reference. */
json_t *amount_value(const char *text);
/* Fills a document from the given options; `command` is the words after "--". Returns an enum exit_code and prints
 * errors. */
int workload_make(const struct cli *cli, const struct workload_values *v, const char *const *command,
                  size_t command_len, json_t *ret);
