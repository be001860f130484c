/* help.c - `berth help [VERB]`, printed from the tables. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/suggest.h"

enum { OPTIONS_INDENT = 4, TEXT_COLUMN = 30, SUMMARY_COLUMN = 16 };

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

void help_print_command(const struct cli *cli, const struct command *command)
{
    fprintf(cli->out, "%sUsage:%s berth %s%s%s%s\n\n", cli_paint(cli, COLOR_BOLD), cli_paint(cli, COLOR_NONE),
            command->name, command->options_len ? " [OPTION]..." : "", *command->operands ? " " : "",
            command->operands);
    cli_wrap(cli, command->summary, 0, 0);
    heading(cli, "Options:");
    for (size_t i = 0; i < command->options_len; i++)
        option_print(cli, &command->options[i]);
    for (size_t i = 0; i < common_options_len; i++)
        option_print(cli, &common_options[i]);
    if (command->text) {
        fputc('\n', cli->out);
        cli_wrap(cli, command->text, 0, 0);
    }
}

void help_print(const struct cli *cli)
{
    cli_wrap(cli, "Berth plans where the work of a cluster runs: services, jobs and virtual machines.", 0, 0);
    fprintf(cli->out, "\n%sUsage:%s berth COMMAND [OPTION]... [ARGUMENT]...\n", cli_paint(cli, COLOR_BOLD),
            cli_paint(cli, COLOR_NONE));
    heading(cli, "Commands:");
    for (size_t i = 0; i < commands_len; i++) {
        size_t column = 2 + strlen(commands[i]->name);
        fprintf(cli->out, "  %s%s%s", cli_paint(cli, COLOR_GREEN), commands[i]->name, cli_paint(cli, COLOR_NONE));
        cli_wrap(cli, commands[i]->summary, SUMMARY_COLUMN, column);
    }
    heading(cli, "Exit codes:");
    cli_wrap(cli,
             "  0  done\n"
             "  1  failed; the reason is on standard error\n"
             "  2  the command line is wrong\n"
             "  3  plan --strict: something is pending",
             0, 0);
    heading(cli, "Start here:");
    cli_wrap(cli,
             "  berth plan examples/lab.yaml    plan a small cluster\n"
             "  berth bench --quick             how fast is it on this machine?\n"
             "  berth help COMMAND              the options of a command",
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
    if (!command || words != (int)operands->len)
        return cli_fail(cli, EXIT_USAGE, "no command '%s%s%s'; 'berth help' lists them", operands->at[0],
                        operands->len > 1 ? " " : "", operands->len > 1 ? operands->at[1] : "");
    help_print_command(cli, command);
    return EXIT_OK;
}

const struct command help_command = {
    .name = "help",
    .operands = "[COMMAND]",
    .operands_max = 2,
    .summary = "Print what there is, or the options of one command.",
    .run = run,
};
