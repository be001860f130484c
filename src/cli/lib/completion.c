/* completion.c - `berth completion SHELL`: scripts for bash, zsh and fish, printed from the table of commands. */
#include <stdio.h>
#include <string.h>

#include "berth.h"
#include "cli/lib/command.h"

/* Calls `tell` for every option of a command, common and connection options included. */
static void each_option(const struct command *command,
                        void (*tell)(FILE *out, const struct command *command, const struct option *option), FILE *out)
{
    for (size_t i = 0; i < command->options_len; i++)
        tell(out, command, &command->options[i]);
    for (size_t i = 0; i < common_options_len; i++)
        tell(out, command, &common_options[i]);
    for (size_t i = 0; command->talks && i < connect_options_len; i++)
        tell(out, command, &connect_options[i]);
}

static bool takes_file(const struct option *option)
{
    return option->kind == OPTION_TEXT && strcmp(option->value, "FILE") == 0;
}

/* Returns whether the first operand is a file. */
static bool operands_are_files(const struct command *command)
{
    return strncmp(command->operands, "FILE", 4) == 0;
}

static bool takes_profile(const struct option *option)
{
    return option->kind == OPTION_TEXT && strcmp(option->name, "profile") == 0;
}

/* Prints the possible values of an option, separated by spaces; nothing if they cannot be listed. */
static void values_print(FILE *out, const struct option *option)
{
    for (size_t i = 0; option->choices && option->choices[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", option->choices[i]);
    for (size_t i = 0; takes_profile(option) && berth_profile_at(i); i++)
        fprintf(out, "%s%s", i ? " " : "", berth_profile_at(i)->name);
}

/* Prints a sentence for use within single quotes, with its own quotes escaped. */
static void quoted(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
}

/* Returns the second word of a name such as "bench plan", or NULL. */
static const char *second_word(const struct command *command)
{
    const char *space = strchr(command->name, ' ');

    return space ? space + 1 : NULL;
}

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

/* Prints all possible first words, families included, each preceded by `before`. */
static void first_words_print(FILE *out, const char *before)
{
    for (size_t i = 0; i < commands_len; i++)
        if (!second_word(commands[i]) && !commands[i]->hidden)
            fprintf(out, "%s%s", before, commands[i]->name);
    for (size_t i = 0; i < families_len; i++)
        fprintf(out, "%s%s", before, families[i].name);
}

/* Prints the second words of the verbs that start with `name`. */
static void second_words_print(FILE *out, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < commands_len; i++)
        if (strncmp(commands[i]->name, name, len) == 0 && commands[i]->name[len] == ' ')
            fprintf(out, " %s", commands[i]->name + len + 1);
}

/* Prints the possible operands. */
static void operands_print(FILE *out, const struct command *command)
{
    for (size_t i = 0; command->words && command->words[i]; i++)
        fprintf(out, " %s", command->words[i]);
    if (command == &help_command)
        first_words_print(out, " ");
    second_words_print(out, command->name);
}

/* ---- bash ------------------------------------------------------------------------------------------------------- */

static void bash_option_name(FILE *out, const struct command *command, const struct option *option)
{
    (void)command;
    fprintf(out, " --%s", option->name);
    if (option->letter)
        fprintf(out, " -%c", option->letter);
}

static void bash_option_values(FILE *out, const struct command *command, const struct option *option)
{
    if (option->kind == OPTION_FLAG)
        return;
    fprintf(out, "    '%s:--%s'", command->name, option->name);
    if (option->letter)
        fprintf(out, " | '%s:-%c'", command->name, option->letter);
    fputs(") words='", out);
    values_print(out, option);
    fputs("' ;;\n", out);
}

/* Completes ids that the server lists, once the kind is known. */
static void bash_ids_print(FILE *out, const struct command *command)
{
    if (strcmp(command->ids, IDS_OF_KIND) == 0)
        fputs("; ((COMP_CWORD > 2)) && words=$(_berth_ids \"${COMP_WORDS[2]}\")", out);
    else
        fprintf(out, "; words=$(_berth_ids %s)", command->ids);
}

static void bash_print(FILE *out)
{
    fputs("# bash completion of berth: eval \"$(berth completion bash)\"\n"
          "_berth_ids() { berth get \"$1\" -o name 2>/dev/null | cut -d/ -f2-; }\n"
          "_berth() {\n"
          "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} words=\n"
          "  [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "  [[ $cur == = ]] && cur=\n"
          "  COMPREPLY=()\n"
          "  if ((COMP_CWORD == 1)); then\n"
          "    COMPREPLY=($(compgen -W '",
          out);
    first_words_print(out, " ");
    fputs("' -- \"$cur\"))\n"
          "    return\n"
          "  fi\n"
          "  case \"$verb ${COMP_WORDS[2]}\" in\n",
          out);
    for (size_t i = 0; i < commands_len; i++) {
        if (second_word(commands[i]))
            fprintf(out, "    '%s') ((COMP_CWORD > 2)) && verb='%s' ;;\n", commands[i]->name, commands[i]->name);
    }
    fputs("  esac\n"
          "  case \"$verb:$prev\" in\n",
          out);
    for (size_t i = 0; i < commands_len; i++)
        each_option(commands[i], bash_option_values, out);
    fputs("    *)\n"
          "      case \"$verb:$cur\" in\n",
          out);
    for (size_t i = 0; i < commands_len; i++) {
        fprintf(out, "        '%s:-'*) words='", commands[i]->name);
        each_option(commands[i], bash_option_name, out);
        fputs("' ;;\n", out);
        fprintf(out, "        '%s:'*) words='", commands[i]->name);
        operands_print(out, commands[i]);
        fputs("'", out);
        if (commands[i]->ids)
            bash_ids_print(out, commands[i]);
        fputs(" ;;\n", out);
    }
    for (size_t i = 0; i < families_len; i++) {
        fprintf(out, "        '%s:'*) words='", families[i].name);
        second_words_print(out, families[i].name);
        fputs("' ;;\n", out);
    }
    fputs("      esac ;;\n"
          "  esac\n"
          "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "}\n"
          "complete -o default -F _berth berth\n",
          out);
}

/* ---- zsh -------------------------------------------------------------------------------------------------------- */

/* Escapes text for _arguments, where a colon ends a field and brackets enclose a description. */
static void zsh_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (strchr(":[]\\", *text))
            fputc('\\', out);
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
}

static void zsh_value(FILE *out, const struct option *option)
{
    if (option->kind == OPTION_FLAG)
        return;
    fprintf(out, ":%s:", option->choices ? "value" : option->value);
    if (takes_file(option)) {
        fputs("_files", out);
    } else if (option->choices || takes_profile(option)) {
        fputc('(', out);
        values_print(out, option);
        fputc(')', out);
    }
}

static void zsh_option(FILE *out, const struct command *command, const struct option *option)
{
    (void)command;
    for (int is_letter = 0; is_letter <= (option->letter != 0); is_letter++) {
        fputs(" \\\n        '", out);
        if (is_letter)
            fprintf(out, "-%c", option->letter);
        else
            fprintf(out, "--%s%s", option->name, option->kind == OPTION_FLAG ? "" : "=");
        fputc('[', out);
        zsh_text(out, option->text);
        fputc(']', out);
        zsh_value(out, option);
        fputc('\'', out);
    }
}

static void zsh_entry(FILE *out, const char *name, const char *summary)
{
    fprintf(out, "\n      '%s:", name);
    zsh_text(out, summary);
    fputc('\'', out);
}

static void zsh_operands(FILE *out, const struct command *command)
{
    bool of_kind = command->ids && strcmp(command->ids, IDS_OF_KIND) == 0;

    if (operands_are_files(command)) {
        fputs(" \\\n        '*:file:_files'", out);
    } else if (command->ids && !of_kind) {
        fprintf(out, " \\\n        '*:id:_berth_ids %s'", command->ids);
    } else {
        fprintf(out, " \\\n        '%s:word:(", of_kind ? "1" : "*");
        operands_print(out, command);
        fputs(")'", out);
        if (of_kind)
            fputs(" \\\n        '*:id:_berth_ids ${words[2]}'", out);
    }
}

static void zsh_print(FILE *out)
{
    fputs("#compdef berth\n"
          "# zsh completion of berth: berth completion zsh > \"${fpath[1]}/_berth\"\n"
          "_berth_ids() { compadd -- ${(f)\"$(berth get $1 -o name 2>/dev/null | cut -d/ -f2-)\"} }\n"
          "_berth() {\n"
          "  local verb=${words[2]}\n"
          "  if ((CURRENT == 2)); then\n"
          "    local -a verbs=(",
          out);
    for (size_t i = 0; i < commands_len; i++)
        if (!second_word(commands[i]) && !commands[i]->hidden)
            zsh_entry(out, commands[i]->name, commands[i]->summary);
    for (size_t i = 0; i < families_len; i++)
        zsh_entry(out, families[i].name, families[i].summary);
    fputs("\n    )\n"
          "    _describe command verbs\n"
          "    return\n"
          "  fi\n",
          out);
    for (size_t i = 0; i < commands_len; i++) {
        if (second_word(commands[i]))
            fprintf(out, "  [[ \"${words[2]} ${words[3]}\" == '%s' ]] && ((CURRENT > 3)) && verb='%s'\n",
                    commands[i]->name, commands[i]->name);
    }
    fputs("  shift words\n"
          "  ((CURRENT--))\n"
          "  case $verb in\n",
          out);
    for (size_t i = 0; i < commands_len; i++) {
        fprintf(out, "    '%s')\n      _arguments", commands[i]->name);
        each_option(commands[i], zsh_option, out);
        zsh_operands(out, commands[i]);
        fputs("\n      ;;\n", out);
    }
    for (size_t i = 0; i < families_len; i++) {
        fprintf(out, "    '%s')\n      _arguments '*:word:(", families[i].name);
        second_words_print(out, families[i].name);
        fputs(")'\n      ;;\n", out);
    }
    fputs("  esac\n"
          "}\n"
          "if [[ ${funcstack[1]} == _berth ]]; then _berth \"$@\"; else compdef _berth berth; fi\n",
          out);
}

/* ---- fish ------------------------------------------------------------------------------------------------------- */

/* Prints the condition that the command line has this command and no longer verb that starts with it. */
static void fish_when(FILE *out, const struct command *command)
{
    fprintf(out, "complete -c berth -n 'test (__berth_verb) = \"%s\"'", command->name);
}

static void fish_option(FILE *out, const struct command *command, const struct option *option)
{
    fish_when(out, command);
    fprintf(out, " -l %s", option->name);
    if (option->letter)
        fprintf(out, " -s %c", option->letter);
    if (takes_file(option)) {
        fputs(" -r -F", out);
    } else if (option->kind != OPTION_FLAG) {
        fputs(" -x -a '", out);
        values_print(out, option);
        fputc('\'', out);
    }
    fputs(" -d '", out);
    quoted(out, option->text);
    fputs("'\n", out);
}

static void fish_entry(FILE *out, const char *name, const char *summary)
{
    fprintf(out, "complete -c berth -f -n __fish_use_subcommand -a %s -d '", name);
    quoted(out, summary);
    fputs("'\n", out);
}

static void fish_operands(FILE *out, const struct command *command)
{
    bool of_kind = command->ids && strcmp(command->ids, IDS_OF_KIND) == 0;

    if (of_kind) {
        fputs("(set -l w (commandline -opc); if set -q w[3]; __berth_ids $w[3]; else; string split \" \" \"", out);
        operands_print(out, command);
        fputs("\"; end)", out);
    } else if (command->ids) {
        fprintf(out, "(__berth_ids %s)", command->ids);
    } else {
        operands_print(out, command);
    }
}

static void fish_print(FILE *out)
{
    fputs("# fish completion of berth: berth completion fish > ~/.config/fish/completions/berth.fish\n"
          "function __berth_ids\n"
          "    berth get $argv[1] -o name 2>/dev/null | string replace -r \"^[^/]*/\" \"\"\n"
          "end\n"
          "function __berth_verb\n"
          "    set -l words (commandline -opc) '' ''\n"
          "    switch \"$words[2] $words[3]\"\n",
          out);
    for (size_t i = 0; i < commands_len; i++) {
        if (second_word(commands[i]))
            fprintf(out, "        case '%s'\n            echo '%s'\n", commands[i]->name, commands[i]->name);
    }
    fputs("        case '*'\n"
          "            echo \"$words[2]\"\n"
          "    end\n"
          "end\n",
          out);
    for (size_t i = 0; i < commands_len; i++)
        if (!second_word(commands[i]) && !commands[i]->hidden)
            fish_entry(out, commands[i]->name, commands[i]->summary);
    for (size_t i = 0; i < families_len; i++) {
        fish_entry(out, families[i].name, families[i].summary);
        fprintf(out, "complete -c berth -n 'test (__berth_verb) = \"%s\"' -f -a '", families[i].name);
        second_words_print(out, families[i].name);
        fputs("'\n", out);
    }
    for (size_t i = 0; i < commands_len; i++) {
        if (!operands_are_files(commands[i])) {
            fish_when(out, commands[i]);
            fputs(" -f -a '", out);
            fish_operands(out, commands[i]);
            fputs("'\n", out);
        }
        each_option(commands[i], fish_option, out);
    }
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    static void (*const print[])(FILE * out) = {bash_print, zsh_print, fish_print};

    (void)values;
    for (size_t i = 0; shells[i]; i++) {
        if (strcmp(operands->at[0], shells[i]) == 0) {
            print[i](cli->out);
            return EXIT_OK;
        }
    }
    return cli_fail(cli, EXIT_USAGE, "unknown shell '%s'; supported are bash, zsh and fish", operands->at[0]);
}

const struct command completion_command = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Print a shell completion script for bash, zsh or fish.",
    .text = "Usage:\n"
            "  eval \"$(berth completion bash)\"\n"
            "  berth completion zsh > \"${fpath[1]}/_berth\"\n"
            "  berth completion fish > ~/.config/fish/completions/berth.fish",
    .section = SECTION_PROGRAM,
    .words = shells,
    .run = run,
};
