/* help.c - `berth help [VERB]`, printed from the tables. */
#include <stdio.h>
#include <string.h>

#include "cli/lib/command.h"
#include "cli/lib/suggest.h"

enum { OPTIONS_INDENT = 4, TEXT_COLUMN = 30, SUMMARY_COLUMN = 14, FAMILY_COLUMN = 22 };

static void heading(const struct cli *cli, const char *text)
{
    fprintf(cli->out, "\n%s%s%s\n", cli_paint(cli, COLOR_BOLD), text, cli_paint(cli, COLOR_NONE));
}

void option_value_text(const struct option *option, char *buf, size_t size)
{
    size_t at = 0;

    buf[0] = '\0';
    if (option->kind == OPTION_FLAG)
        return;
    if (!option->choices) {
        snprintf(buf, size, "%s", option->value);
        return;
    }
    for (size_t i = 0; option->choices[i] && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? "|" : "", option->choices[i]);
}

static void option_print(const struct cli *cli, const struct option *option)
{
    char left[96], value[64];

    option_value_text(option, value, sizeof value);
    if (option->letter)
        snprintf(left, sizeof left, "-%c, --%s%s%s", option->letter, option->name, *value ? " " : "", value);
    else
        snprintf(left, sizeof left, "    --%s%s%s", option->name, *value ? " " : "", value);
    size_t column = 2 + strlen(left);
    fprintf(cli->out, "  %s%s%s", cli_paint(cli, COLOR_GREEN), left, cli_paint(cli, COLOR_NONE));
    if (column + 1 > TEXT_COLUMN) {
        fputc('\n', cli->out);
        column = 0;
    }
    cli_wrap(cli, option->text, TEXT_COLUMN, column);
}

static void options_print(const struct cli *cli, const struct option *options, size_t len)
{
    for (size_t i = 0; i < len; i++)
        option_print(cli, &options[i]);
}

void help_print_command(const struct cli *cli, const struct command *command)
{
    fprintf(cli->out, "%sUsage:%s berth %s%s%s%s\n\n", cli_paint(cli, COLOR_BOLD), cli_paint(cli, COLOR_NONE),
            command->name, command->options_len ? " [OPTION]..." : "", *command->operands ? " " : "",
            command->operands);
    cli_wrap(cli, command->summary, 0, 0);
    heading(cli, "Options:");
    options_print(cli, command->options, command->options_len);
    options_print(cli, common_options, common_options_len);
    if (command->talks) {
        heading(cli, "Connection:");
        options_print(cli, connect_options, connect_options_len);
    }
    if (command->text) {
        fputc('\n', cli->out);
        cli_wrap(cli, command->text, 0, 0);
    }
    if (command->examples) {
        heading(cli, "Examples:");
        cli_wrap(cli, command->examples, 0, 0);
    }
}

/* "  NAME   SUMMARY" */
static void entry_print(const struct cli *cli, const char *name, const char *summary, size_t indent)
{
    size_t column = 2 + strlen(name);

    fprintf(cli->out, "  %s%s%s", cli_paint(cli, COLOR_GREEN), name, cli_paint(cli, COLOR_NONE));
    if (column + 1 > indent) {
        fputc('\n', cli->out);
        column = 0;
    }
    cli_wrap(cli, summary, indent, column);
}

void help_print_family(const struct cli *cli, const struct family *family)
{
    fprintf(cli->out, "%sUsage:%s berth %s COMMAND [OPTION]... [ARGUMENT]...\n\n", cli_paint(cli, COLOR_BOLD),
            cli_paint(cli, COLOR_NONE), family->name);
    cli_wrap(cli, family->summary, 0, 0);
    heading(cli, "Commands:");
    for (size_t i = 0; i < commands_len; i++) {
        if (family_verb(family, commands[i]))
            entry_print(cli, commands[i]->name, commands[i]->summary, FAMILY_COLUMN);
    }
}

/* Prints a section in the order of the table; a family stands where its first verb does. */
static void commands_print(const struct cli *cli, enum command_section section)
{
    const struct family *last = NULL;

    heading(cli, section_title(section));
    for (size_t i = 0; i < commands_len; i++) {
        const struct command *command = commands[i];
        char first[32];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(command->name, " "), command->name);
        const struct family *family = family_find(first);
        if (command->section != section || command->hidden || (family && family == last))
            continue;
        last = family;
        if (family)
            entry_print(cli, family->name, family->summary, SUMMARY_COLUMN);
        else
            entry_print(cli, command->name, command->summary, SUMMARY_COLUMN);
    }
}

const char *help_exit_codes(void)
{
    return "  0  success\n"
           "  1  failure; the reason is on standard error (diff: there are differences)\n"
           "  2  invalid command line\n"
           "  3  plan --strict: pods are pending; wait: timed out\n"
           "  4  the object does not exist or is not visible to you\n"
           "  5  invalid or missing token, or permission denied\n"
           "  6  conflict: the object already exists, is in the wrong state or was changed "
           "meanwhile\n"
           "  7  the server cannot be reached or is unavailable";
}

void help_print(const struct cli *cli)
{
    cli_wrap(cli, "Berth schedules and runs services, jobs and virtual machines on a cluster.", 0, 0);
    fprintf(cli->out, "\n%sUsage:%s berth COMMAND [OPTION]... [ARGUMENT]...\n", cli_paint(cli, COLOR_BOLD),
            cli_paint(cli, COLOR_NONE));
    for (unsigned section = 0; section < SECTIONS; section++)
        commands_print(cli, (enum command_section)section);
    heading(cli, "Exit codes");
    cli_wrap(cli, help_exit_codes(), 0, 0);
    heading(cli, "Getting started");
    cli_wrap(cli,
             "  berth plan examples/lab.yaml    plan a small cluster, without a server\n"
             "  berth status                    show the state of the cluster\n"
             "  berth run -- date               run a job and show its output\n"
             "  berth sbatch, squeue, scancel   as in Slurm; also srun and sinfo\n"
             "  berth help COMMAND              show the options or subcommands of a command",
             0, 0);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    int words;

    (void)values;
    if (operands->len == 0) {
        help_print(cli);
        return EXIT_OK;
    }
    const struct command *command = command_find((int)operands->len, (char *const *)operands->at, &words);
    const struct family *family = family_find(operands->at[0]);
    if (command && words == (int)operands->len)
        help_print_command(cli, command);
    else if (family && operands->len == 1)
        help_print_family(cli, family);
    else
        return cli_fail(cli, EXIT_USAGE, "unknown command '%s%s%s'; 'berth help' lists the commands", operands->at[0],
                        operands->len > 1 ? " " : "", operands->len > 1 ? operands->at[1] : "");
    return EXIT_OK;
}

const struct command help_command = {
    .name = "help",
    .operands = "[COMMAND]",
    .operands_max = 2,
    .summary = "List the commands, or show the help of one command.",
    .section = SECTION_PROGRAM,
    .run = run,
};
