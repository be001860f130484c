/* main.c - the `berth` program: finds the verb, reads its options, runs it. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/suggest.h"

static int verb_unknown(const struct cli *cli, const char *word)
{
    struct suggest near;

    suggest_init(&near, word);
    for (size_t i = 0; i < commands_len; i++)
        suggest_offer(&near, commands[i]->name);
    if (near.len)
        return cli_fail(cli, EXIT_USAGE, "no command '%s'; did you mean 'berth %s'?", word, near.at[0]);
    return cli_fail(cli, EXIT_USAGE, "no command '%s'; 'berth help' lists them", word);
}

static const char *color_name(unsigned choice)
{
    return choice == 1 ? "always" : choice == 2 ? "never" : NULL;
}

static int operands_check(const struct cli *cli, const struct command *command, const struct operands *operands)
{
    if (operands->len < command->operands_min)
        return cli_fail(cli, EXIT_USAGE, "%s needs %s; see 'berth %s --help'", command->name, command->operands,
                        command->name);
    if (operands->len > command->operands_max)
        return cli_fail(cli, EXIT_USAGE, "%s takes %s, so '%s' is too much; see 'berth %s --help'", command->name,
                        command->operands_max ? command->operands : "no arguments", operands->at[command->operands_max],
                        command->name);
    return EXIT_OK;
}

static int command_run(struct cli *cli, const struct command *command, int argc, char *const *argv)
{
    CLEANUP(mem) void *values = mem_zalloc(command->values_size + 1);
    CLEANUP(mem) const char **words = mem_zarray((size_t)argc + 1, sizeof *words);
    struct operands operands = {.at = words};
    struct common_values common = {0};
    struct berth_err err;
    struct option_set sets[] = {
        {command->options, command->options_len, values },
        {common_options,   common_options_len,   &common},
    };

    if (command->defaults)
        memcpy(values, command->defaults, command->values_size);
    int rc = options_parse(sets, 2, argc, argv, &operands, &err);
    if (rc != 0)
        return cli_fail(cli, EXIT_USAGE, "%s; see 'berth %s --help'", err.text, command->name);
    cli_init(cli, color_name(common.color));
    if (common.help) {
        help_print_command(cli, command);
        return EXIT_OK;
    }
    rc = operands_check(cli, command, &operands);
    return rc == EXIT_OK ? command->run(cli, values, &operands) : rc;
}

/* A full disk must not look like success. */
static int output_close(const struct cli *cli, int rc)
{
    bool failed = ferror(cli->out) != 0;

    errno = 0;
    if (fflush(cli->out) == 0 && !failed)
        return rc;
    return cli_fail(cli, EXIT_FAILED, "cannot write the output: %s", strerror(errno ? errno : EIO));
}

/* What people try first. */
static char *verb_alias(char *word)
{
    static char help[] = "help", version[] = "version";

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return help;
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        return version;
    return word;
}

int main(int argc, char **argv)
{
    struct cli cli;
    int words = 0;
    int rc;

    signal(SIGPIPE, SIG_DFL); /* a reader that went away (`berth plan f | head`) ends us without a word */
    setlocale(LC_CTYPE, "");
    cli_init(&cli, NULL);
    if (argc < 2) {
        help_print(&cli);
        return output_close(&cli, EXIT_USAGE);
    }
    argv[1] = verb_alias(argv[1]);
    const struct command *command = command_find(argc - 1, argv + 1, &words);
    if (command)
        rc = command_run(&cli, command, argc - 1 - words, argv + 1 + words);
    else if (argv[1][0] == '-')
        rc = cli_fail(&cli, EXIT_USAGE, "the first word is a command, not '%s'; 'berth help' lists them", argv[1]);
    else
        rc = verb_unknown(&cli, argv[1]);
    return output_close(&cli, rc);
}
