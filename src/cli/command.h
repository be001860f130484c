/* command.h - the verbs of `berth`, as a table.
 *
 * `berth help`, `berth help VERB`, `berth VERB --help` and the completion scripts are printed from it.
 *
 * To add a verb: src/cli/<verb>.c with its options and its `struct command`, and a row in commands.c.
 */
#pragma once

#include "cli/cli.h"
#include "cli/options.h"

struct command {
    const char *name;     /* "plan"; a verb below a verb: "bench plan" */
    const char *operands; /* as usage shows them: "FILE" */
    size_t operands_min, operands_max;
    const char *summary; /* one line */
    const char *text;    /* below the options; NULL: none */
    const struct option *options;
    size_t options_len;
    const void *defaults; /* of the values; NULL: zero */
    size_t values_size;
    /* Returns an enum exit_code. */
    int (*run)(struct cli *cli, const void *values, const struct operands *operands);
};

extern const struct command *const commands[];
extern const size_t commands_len;

/* What every verb takes: --help, --color. */
struct common_values {
    bool help;
    unsigned color; /* auto, always, never */
};
extern const struct option common_options[];
extern const size_t common_options_len;

/* The verb that argv[0] (and argv[1]) name, and how many words that took; NULL: none. */
const struct command *command_find(int argc, char *const *argv, int *ret_words);

/* Printed by help.c from the tables. */
void help_print(const struct cli *cli);
void help_print_command(const struct cli *cli, const struct command *command);

/* Copies the part of an option's value that help shows, such as "FILE" or "table|json"; "" for a flag. */
void option_value_text(const struct option *option, char *buf, size_t size);

extern const struct command plan_command, profiles_command, bench_command, bench_plan_command, completion_command,
    help_command, version_command;
