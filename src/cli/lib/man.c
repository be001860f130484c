/* man.c - `berth man DIR`: writes the manual pages from the table of commands. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/lib/command.h"

/* Escapes text for roff: a backslash starts an escape, a dot or quote at the start of a line a request, a dash is a
 * hyphen. */
static void roff_text(FILE *out, const char *text, size_t len, bool line_start)
{
    for (size_t i = 0; i < len; i++) {
        if (line_start && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", out);
        line_start = text[i] == '\n';
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else if (text[i] == '\'')
            fputs("\\(aq", out);
        else if (text[i] == '`')
            fputs("\\(ga", out);
        else if (text[i] == '^')
            fputs("\\(ha", out);
        else if (text[i] == '~')
            fputs("\\(ti", out);
        else
            fputc(text[i], out);
    }
}

static void roff(FILE *out, const char *text)
{
    roff_text(out, text, strlen(text), true);
}

/* Prints paragraphs; lines that start with a space are kept as they are. */
static void roff_wrapped(FILE *out, const char *text)
{
    bool as_is = false;

    while (*text) {
        size_t len = strcspn(text, "\n");
        bool wants = text[0] == ' ';
        if (wants != as_is) {
            fputs(wants ? ".PP\n.EX\n" : ".EE\n.PP\n", out);
            as_is = wants;
        }
        if (len == 0)
            fputs(".PP\n", out);
        else
            roff_text(out, text, len, true);
        fputs(len ? "\n" : "", out);
        text += len + (text[len] == '\n');
    }
    if (as_is)
        fputs(".EE\n", out);
}

static void page_head(FILE *out, const char *title)
{
    CLEANUP(str) struct str upper = {0};

    for (const char *p = title; *p; p++)
        str_add_char(&upper, (char)toupper((unsigned char)*p));
    fprintf(out,
            ".\\\" Written from the tables of the program: 'berth man DIR'.\n.TH \"%s\" \"1\" \"\" \"berth %s\" "
            "\"Berth\"\n",
            upper.at, BERTH_VERSION);
}

static void options_page(FILE *out, const struct option *options, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char value[64];
        option_value_text(&options[i], value, sizeof value);
        fputs(".TP\n", out);
        if (options[i].letter)
            fprintf(out, "\\fB\\-%c\\fR, ", options[i].letter);
        fputs("\\fB\\-\\-", out);
        roff_text(out, options[i].name, strlen(options[i].name), false);
        fputs("\\fR", out);
        if (*value) {
            fputs(" \\fI", out);
            roff_text(out, value, strlen(value), false);
            fputs("\\fR", out);
        }
        fputc('\n', out);
        roff(out, options[i].text);
        fputc('\n', out);
    }
}

/* "app add" -> "berth-app-add" */
static void page_name(const char *command, struct str *to)
{
    str_add(to, "berth-");
    for (; *command; command++)
        str_add_char(to, *command == ' ' ? '-' : *command);
}

static void command_page(FILE *out, const struct command *command)
{
    CLEANUP(str) struct str name = {0};

    page_name(command->name, &name);
    page_head(out, name.at);
    fputs(".SH NAME\n", out);
    roff_text(out, name.at, name.len, true);
    fputs(" \\- ", out);
    roff_text(out, command->summary, strlen(command->summary), false);
    fputs("\n.SH SYNOPSIS\n\\fBberth ", out);
    roff_text(out, command->name, strlen(command->name), false);
    fputs("\\fR [\\fIOPTION\\fR]... ", out);
    roff_text(out, command->operands, strlen(command->operands), false);
    fputs("\n", out);
    if (command->text) {
        fputs(".SH DESCRIPTION\n", out);
        roff_wrapped(out, command->text);
    }
    fputs(".SH OPTIONS\n", out);
    options_page(out, command->options, command->options_len);
    options_page(out, common_options, common_options_len);
    if (command->talks) {
        fputs(".SS Connection\n", out);
        options_page(out, connect_options, connect_options_len);
    }
    if (command->examples) {
        fputs(".SH EXAMPLES\n", out);
        roff_wrapped(out, command->examples);
    }
    fputs(".SH \"EXIT STATUS\"\n", out);
    roff_wrapped(out, help_exit_codes());
    fputs(".SH \"SEE ALSO\"\n\\fBberth\\fR(1)\n", out);
}

static const char about[] = "Berth schedules and runs services, jobs and virtual machines on a cluster. This program "
                            "is the client of its daemon, \\fBberthd\\fR(8), over HTTP; it also plans clusters "
                            "described in files, without a daemon.";

static const char environment[] = ".TP\n"
                                  "\\fBBERTH_SERVER\\fR\n"
                                  "URL of the server.\n"
                                  ".TP\n"
                                  "\\fBBERTH_TOKEN\\fR, \\fBBERTH_TOKEN_FILE\\fR\n"
                                  "The token, or the file with the token.\n"
                                  ".TP\n"
                                  "\\fBBERTH_CONTEXT\\fR\n"
                                  "Name of the context to use; see \\fBberth\\-context\\-add\\fR(1).\n"
                                  ".TP\n"
                                  "\\fBBERTH_CONFIG\\fR\n"
                                  "The file of contexts, instead of berth/config.yaml in $XDG_CONFIG_HOME or "
                                  "\\(ti/.config.\n"
                                  ".TP\n"
                                  "\\fBVISUAL\\fR, \\fBEDITOR\\fR\n"
                                  "The editor of \\fBberth edit\\fR.\n"
                                  ".TP\n"
                                  "\\fBNO_COLOR\\fR\n"
                                  "Disables colours, unless \\-\\-color is given.\n";

static void main_page(FILE *out)
{
    page_head(out, "berth");
    fprintf(out,
            ".SH NAME\n"
            "berth \\- schedule and run the workloads of a cluster\n"
            ".SH SYNOPSIS\n"
            "\\fBberth\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n"
            ".SH DESCRIPTION\n"
            "%s\n"
            ".SH COMMANDS\n",
            about);
    for (unsigned section = 0; section < SECTIONS; section++) {
        fprintf(out, ".SS \"%s\"\n", section_title((enum command_section)section));
        for (size_t i = 0; i < commands_len; i++) {
            CLEANUP(str) struct str name = {0};
            if (commands[i]->section != section || commands[i]->hidden)
                continue;
            page_name(commands[i]->name, &name);
            fputs(".TP\n\\fB", out);
            roff_text(out, name.at, name.len, false);
            fputs("\\fR(1)\n", out);
            roff(out, commands[i]->summary);
            fputc('\n', out);
        }
    }
    fputs(".SH OPTIONS\n"
          "Every command takes these options; they may also precede the command.\n",
          out);
    options_page(out, common_options, common_options_len);
    options_page(out, connect_options, connect_options_len);
    fprintf(out, ".SH ENVIRONMENT\n%s.SH \"EXIT STATUS\"\n", environment);
    roff_wrapped(out, help_exit_codes());
}

/* command NULL: the page of `berth` itself. */
static int page_write(const struct cli *cli, const char *folder, const struct command *command)
{
    CLEANUP(str) struct str path = {0};

    str_addf(&path, "%s/", folder);
    if (command)
        page_name(command->name, &path);
    else
        str_add(&path, "berth");
    str_add(&path, ".1");
    FILE *out = fopen(path.at, "we");
    if (out) {
        if (command)
            command_page(out, command);
        else
            main_page(out);
    }
    bool failed = !out || ferror(out);
    if (out && fclose(out) != 0)
        failed = true;
    return failed ? cli_fail(cli, EXIT_FAILED, "cannot write %s: %s", path.at, strerror(errno)) : EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const char *folder = operands->at[0];

    (void)values;
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        return cli_fail(cli, EXIT_FAILED, "cannot create the folder %s: %s", folder, strerror(errno));
    int rc = page_write(cli, folder, NULL);
    for (size_t i = 0; i < commands_len && rc == EXIT_OK; i++)
        if (!commands[i]->hidden)
            rc = page_write(cli, folder, commands[i]);
    return rc;
}

const struct command man_command = {
    .name = "man",
    .operands = "DIR",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Write the manual pages into a folder.",
    .section = SECTION_PROGRAM,
    .hidden = true,
    .run = run,
};
