/* main.c - the `berth` program: finds the verb, reads its options, runs it. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/suggest.h"

/* Options that may stand both before and after the verb. */
struct global_values {
    struct common_values common;
    struct connect_values connect;
};

static int verb_unknown(const struct cli *cli, const char *word)
{
    struct suggestions near;

    suggest_init(&near, word);
    for (size_t i = 0; i < families_len; i++)
        suggest_offer(&near, families[i].name);
    for (size_t i = 0; i < commands_len; i++)
        suggest_offer(&near, commands[i]->name);
    if (near.len)
        return cli_fail(cli, EXIT_USAGE, "unknown command '%s'; did you mean 'berth %s'?", word, near.at[0]);
    return cli_fail(cli, EXIT_USAGE, "unknown command '%s'; 'berth help' lists the commands", word);
}

/* `word` NULL: the command line has only the family's name. */
static int family_run(const struct cli *cli, const struct family *family, const char *word)
{
    struct suggestions near;

    if (!word || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        help_print_family(cli, family);
        return word ? EXIT_OK : EXIT_USAGE;
    }
    suggest_init(&near, word);
    for (size_t i = 0; i < commands_len; i++) {
        const char *verb = family_verb(family, commands[i]);
        if (verb)
            suggest_offer(&near, verb);
    }
    if (near.len)
        return cli_fail(cli, EXIT_USAGE, "unknown command '%s %s'; did you mean 'berth %s %s'?", family->name, word,
                        family->name, near.at[0]);
    return cli_fail(cli, EXIT_USAGE, "unknown command '%s %s'; 'berth help %s' lists the commands", family->name, word,
                    family->name);
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
        return cli_fail(cli, EXIT_USAGE, "%s takes %s: unexpected argument '%s'; see 'berth %s --help'", command->name,
                        command->operands_max ? command->operands : "no arguments", operands->at[command->operands_max],
                        command->name);
    return EXIT_OK;
}

static int command_start(struct cli *cli, const struct command *command, struct global_values *global_values,
                         void *values, const struct operands *operands)
{
    cli_init(cli, color_name(global_values->common.color));
    cli->command = command;
    cli->connect = &global_values->connect;
    if (global_values->common.help) {
        help_print_command(cli, command);
        return EXIT_OK;
    }
    int rc = operands_check(cli, command, operands);
    return rc == EXIT_OK ? command->run(cli, values, operands) : rc;
}

/* Parses leading options; all later words are operands. A "--" in between is not an operand. */
static int leading_parse(const struct option_set *sets, size_t sets_len, int argc, char *const *argv,
                         struct operands *ret, struct berth_err *err)
{
    int words = 0, end = 0;

    while (end < argc && strcmp(argv[end], "--") != 0)
        end++;
    int rc = options_parse_leading(sets, sets_len, end, argv, &words, err);
    if (rc != 0)
        return rc;
    bool dashes = words == end && end < argc;
    for (int i = words + dashes; i < argc; i++)
        ret->at[ret->len++] = argv[i];
    ret->before = dashes ? 0 : ret->len;
    return 0;
}

static int command_run(struct cli *cli, const struct command *command, struct global_values *global_values, int argc,
                       char *const *argv)
{
    CLEANUP(mem) void *values = mem_zalloc(command->values_size + 1);
    CLEANUP(mem) const char **words = mem_zarray((size_t)argc + 1, sizeof *words);
    struct operands operands = {.at = words};
    struct berth_err err;
    struct option_set sets[] = {
        {command->options, command->options_len,                     values                 },
        {common_options,   common_options_len,                       &global_values->common },
        {connect_options,  command->talks ? connect_options_len : 0, &global_values->connect},
    };

    if (command->defaults)
        memcpy(values, command->defaults, command->values_size);
    int rc = command->leading ? leading_parse(sets, 3, argc, argv, &operands, &err)
                              : options_parse(sets, 3, argc, argv, &operands, &err);
    if (rc == 0)
        rc = command_start(cli, command, global_values, values, &operands);
    else
        rc = cli_fail(cli, EXIT_USAGE, "%s; see 'berth %s --help'", err.text, command->name);
    options_done(sets, 1);
    return rc;
}

/* Flushes the output and reports write errors, so that a full disk is not taken for success. */
static int output_close(const struct cli *cli, int rc)
{
    bool failed = ferror(cli->out) != 0;

    errno = 0;
    if (fflush(cli->out) == 0 && !failed)
        return rc;
    return cli_fail(cli, EXIT_FAILED, "cannot write the output: %s", strerror(errno ? errno : EIO));
}

static int run(struct cli *cli, struct global_values *global_values, int argc, char *const *argv)
{
    int words = 0;

    if (argc == 0) {
        help_print(cli);
        return global_values->common.help ? EXIT_OK : EXIT_USAGE;
    }
    const struct command *command = command_find(argc, argv, &words);
    if (command)
        return command_run(cli, command, global_values, argc - words, argv + words);
    const struct family *family = family_find(argv[0]);
    if (family)
        return family_run(cli, family, global_values->common.help ? "help" : argc > 1 ? argv[1] : NULL);
    return verb_unknown(cli, argv[0]);
}

/* Returns the verb if the program was started through a link with the name of a Slurm command; otherwise NULL. */
static char *program_name_verb(const char *path)
{
    static char names[][8] = {"squeue", "scancel", "sinfo", "sbatch", "srun"};
    const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path;

    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return names[i];
    return NULL;
}

static int run_by_name(struct cli *cli, struct global_values *global_values, char *verb, int argc, char **argv)
{
    CLEANUP(mem) char **words = mem_zarray((size_t)argc + 1, sizeof *words);

    words[0] = verb;
    for (int i = 1; i < argc; i++)
        words[i] = argv[i];
    return output_close(cli, run(cli, global_values, argc, words));
}

int main(int argc, char **argv)
{
    static char version[] = "version";
    struct cli cli;
    struct global_values global_values = {0};
    struct berth_err err;
    int words = 0;
    struct option_set sets[] = {
        {common_options,  common_options_len,  &global_values.common },
        {connect_options, connect_options_len, &global_values.connect},
    };

    signal(SIGPIPE, SIG_DFL); /* `berth plan f | head`: ends silently when the reader closes the pipe */
    setlocale(LC_CTYPE, "");
    cli_init(&cli, NULL);
    char *verb = argc > 0 ? program_name_verb(argv[0]) : NULL;
    if (verb)
        return run_by_name(&cli, &global_values, verb, argc, argv);
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0))
        argv[1] = version; /* accepts the usual --version and -V */
    if (options_parse_leading(sets, 2, argc - 1, argv + 1, &words, &err) != 0)
        return cli_fail(&cli, EXIT_USAGE, "%s before the command; 'berth help' lists commands", err.text);
    cli_init(&cli, color_name(global_values.common.color));
    return output_close(&cli, run(&cli, &global_values, argc - 1 - words, argv + 1 + words));
}
