#include "cli/job/script.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/job/submission.h"
#include "wire/text/document.h"

extern char **environ;

enum { WORDS_MAX = 64 };

/* ---- words ------------------------------------------------------------------------------------------------------ */

int script_words(char *line, char **words, int words_max)
{
    int len = 0;
    char *from = line, *to = line;

    for (;;) {
        char quote = 0;
        while (*from == ' ' || *from == '\t' || *from == '\r')
            from++;
        if (!*from || *from == '#' || len == words_max)
            return len;
        words[len++] = to;
        for (; *from && (quote || !strchr(" \t\r", *from)); from++) {
            if (quote ? *from == quote : *from == '"' || *from == '\'')
                quote = quote ? 0 : *from;
            else if (*from == '\\' && quote != '\'' && from[1])
                *to++ = *++from;
            else
                *to++ = *from;
        }
        if (quote)
            return -1;
        bool last = !*from;
        from += !last;
        *to++ = '\0';
        if (last)
            return len;
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

/* The values of the options on a #BERTH line. */
struct line_values {
    struct submission_values submission;
};
static const struct option line_options[] = {
    SUBMISSION_ROWS(line_values, submission),
    WORKLOAD_ROWS(line_values, submission.workload),
};

struct script_parser {
    const struct cli *cli;
    const char *name;
    size_t line;
    json_t *document;
    struct slurm_values slurm;
    bool slurm_lines;
    struct arena arena; /* owns the strings of the values */
};

static int berth_line(struct script_parser *r, char **words, int len)
{
    struct line_values values = {0};
    struct option_set set = {line_options, sizeof line_options / sizeof *line_options, &values};
    const char *at[WORDS_MAX];
    struct operands operands = {.at = at};
    struct berth_err err;
    CLEANUP(json) json_t *keys = json_object();
    int rc = EXIT_OK;

    if (options_parse(&set, 1, len, words, &operands, &err) != 0)
        rc = cli_fail(r->cli, EXIT_USAGE, "%s:%zu: %s", r->name, r->line, err.text);
    else if (operands.len)
        rc = cli_fail(r->cli, EXIT_USAGE, "%s:%zu: '%s' is not an option; #BERTH lines contain only options", r->name,
                      r->line, operands.at[0]);
    else if (values.submission.file)
        rc = cli_fail(r->cli, EXIT_USAGE, "%s:%zu: --file is not allowed in a script", r->name, r->line);
    if (rc == EXIT_OK)
        rc = submission_make(r->cli, &values.submission, keys);
    options_done(&set, 1);
    if (rc == EXIT_OK)
        submission_merge(r->document, keys);
    return rc;
}

/* Parses one option at a time, so that an unknown option does not discard the others. */
static void slurm_line(struct script_parser *r, char **words, int len)
{
    for (int i = 0; i < len;) {
        int taken = 0;
        struct berth_err err;
        if (slurm_option(words + i, len - i, &r->slurm, &taken, &err) != 0)
            cli_warn(r->cli, "%s:%zu: %s: %s; ignored", r->name, r->line, words[i], err.text);
        i += taken > 0 ? taken : 1;
    }
    r->slurm_lines = true;
}

static int line_read(struct script_parser *r, const char *line, size_t len)
{
    static const char berth[] = "#BERTH", slurm[] = "#SBATCH";
    bool ours = strncmp(line, berth, strlen(berth)) == 0 && strchr(" \t", line[strlen(berth)]);
    bool theirs = strncmp(line, slurm, strlen(slurm)) == 0 && strchr(" \t", line[strlen(slurm)]);
    size_t skip = ours ? strlen(berth) : strlen(slurm);
    char *words[WORDS_MAX];

    if ((!ours && !theirs) || len <= skip)
        return EXIT_OK;
    char *copy = arena_strndup(&r->arena, line + skip, len - skip);
    int count = script_words(copy, words, WORDS_MAX);
    int rc = EXIT_OK;
    if (count < 0)
        rc = cli_fail(r->cli, EXIT_USAGE, "%s:%zu: unterminated quote", r->name, r->line);
    else if (ours)
        rc = berth_line(r, words, count);
    else
        slurm_line(r, words, count);
    return rc;
}

/* ---- the document ----------------------------------------------------------------------------------------------- */

/* Tasks cannot start other tasks. Every task runs the script, so this replacement of `srun` runs the command in each
 * task. */
static const char srun_text[] =
    "#!/bin/sh\n"
    "# srun within a task of a job: the command runs here, as it does in every other task.\n"
    "while [ $# -gt 0 ]; do\n"
    "    case $1 in\n"
    "    --) shift; break ;;\n"
    "    --*=*) shift ;;\n"
    "    --exclusive|--overlap|--label|--unbuffered|--pty|--quiet|--verbose) shift ;;\n"
    "    --*) shift; [ $# -gt 0 ] && shift ;;\n"
    "    -[lukvQsOEK]) shift ;;\n"
    "    -?) shift; [ $# -gt 0 ] && shift ;;\n"
    "    -*) shift ;;\n"
    "    *) break ;;\n"
    "    esac\n"
    "done\n"
    "exec \"$@\"\n";

static void file_add(json_t *document, const char *path, const char *text)
{
    json_t *files = json_object_get(document, "files");

    if (!files) {
        files = json_array();
        (void)json_object_set_new(document, "files", files);
    }
    (void)json_array_append_new(files, json_pack("{s:s, s:s, s:s}", "path", path, "mode", "0755", "text", text));
}

/* Returns whether the script has `srun` as a separate word. */
static bool calls_srun(const char *text)
{
    for (const char *at = text; (at = strstr(at, "srun")); at += 4) {
        bool begins = at == text || strchr(" \t\n;&|(`", at[-1]);
        if (begins && strchr(" \t\n\\", at[4]))
            return true;
    }
    return false;
}

static int slurm_finish(struct script_parser *r, const struct slurm_values *over, const char *text)
{
    CLEANUP(json) json_t *notes = json_array();
    CLEANUP(json) json_t *keys = json_object();
    struct slurm_script script = {.name = r->name, .srun = calls_srun(text)};
    struct berth_err err;
    const json_t *note;
    size_t i;

    if (over)
        slurm_overlay(&r->slurm, over);
    if (slurm_make(&r->slurm, &script, keys, notes, &err) != 0)
        return cli_fail(r->cli, EXIT_USAGE, "%s: %s", r->name, err.text);
    json_array_foreach(notes, i, note) cli_warn(r->cli, "%s: %s", r->name, json_string_value(note));
    if (script.srun) {
        file_add(r->document, SCRIPT_FOLDER "/srun", srun_text);
        (void)json_object_set_new(
            json_object_get(keys, "env"), "PATH",
            json_string(SCRIPT_FOLDER ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
    }
    submission_merge(keys, r->document); /* #BERTH lines override #SBATCH lines */
    (void)json_object_update(r->document, keys);
    return r->slurm.exports ? script_export(r->cli, r->slurm.exports, (const char *const *)environ, r->document)
                            : EXIT_OK;
}

static bool is_script_comment(const char *line)
{
    return *line == '#' || *line == '\n' || *line == '\r' || !*line;
}

int script_parse(const struct cli *cli, const char *name, const char *text, const struct slurm_values *over,
                 json_t *ret)
{
    struct script_parser r = {.cli = cli, .name = name, .document = ret};
    int rc = EXIT_OK;

    arena_init(&r.arena);
    for (const char *line = text; rc == EXIT_OK && *line && is_script_comment(line);) {
        size_t len = strcspn(line, "\n");
        r.line++;
        rc = line_read(&r, line, len);
        line += len + (line[len] == '\n');
    }
    if (rc == EXIT_OK && (r.slurm_lines || over))
        rc = slurm_finish(&r, over, text);
    arena_done(&r.arena);
    return rc;
}

static void script_fd_cleanup(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

bool script_is(const char *path)
{
    char head[2];
    struct stat st;
    CLEANUP(script_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read(fd, head, 2) == 2 && head[0] == '#' &&
           head[1] == '!';
}

static int text_read(const struct cli *cli, const char *path, struct str *ret)
{
    char piece[4096];
    ssize_t n;
    CLEANUP(script_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return cli_fail(cli, EXIT_FAILED, "%s: %s", path, strerror(errno));
    while ((n = read(fd, piece, sizeof piece)) > 0 && ret->len <= SCRIPT_BYTES_MAX)
        str_add_bytes(ret, piece, (size_t)n);
    if (n < 0)
        return cli_fail(cli, EXIT_FAILED, "%s: %s", path, strerror(errno));
    if (ret->len > SCRIPT_BYTES_MAX)
        return cli_fail(cli, EXIT_FAILED, "%s: larger than %d KiB; start it from a short script", path,
                        SCRIPT_BYTES_MAX / 1024);
    if (ret->len == 0 || memchr(ret->at, '\0', ret->len))
        return cli_fail(cli, EXIT_FAILED, "%s: not a script; to run a program, put it after '--'", path);
    return EXIT_OK;
}

int script_document_slurm(const struct cli *cli, const char *path, const struct slurm_values *over,
                          const char *const *arguments, size_t arguments_len, json_t *list)
{
    CLEANUP(str) struct str text = {0}, inside = {0};
    CLEANUP(json) json_t *document = json_object();
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    int rc = text_read(cli, path, &text);

    if (rc != EXIT_OK)
        return rc;
    str_addf(&inside, "%s/%s", SCRIPT_FOLDER, base);
    rc = script_parse(cli, path, str_text(&text), over, document);
    json_t *command = json_array();
    (void)json_array_append_new(command, json_string(str_text(&inside)));
    for (size_t i = 0; i < arguments_len && rc == EXIT_OK; i++)
        if (json_array_append_new(command, json_string(arguments[i])) != 0)
            rc = cli_fail(cli, EXIT_USAGE, "argument %zu of the script is not UTF-8", i + 1);
    (void)json_object_set_new(document, "command", command);
    if (!json_object_get(document, "name"))
        (void)json_object_set_new(document, "name", json_string(base));
    json_t *checked = rc == EXIT_OK ? json_stringn(text.at, text.len) : NULL;
    if (rc == EXIT_OK && !checked)
        rc = cli_fail(cli, EXIT_FAILED, "%s: not UTF-8", path);
    json_decref(checked);
    if (rc == EXIT_OK) {
        file_add(document, str_text(&inside), str_text(&text));
        (void)json_array_append(list, document);
    }
    return rc;
}

int script_document(const struct cli *cli, const char *path, const char *const *arguments, size_t arguments_len,
                    json_t *list)
{
    return script_document_slurm(cli, path, NULL, arguments, arguments_len, list);
}

/* ---- environment ------------------------------------------------------------------------------------------------ */

/* Returns whether a variable belongs to one shell or login session and is useless elsewhere. */
static bool is_private(const char *line)
{
    static const char *const names[] = {"_",       "PWD",   "OLDPWD", "SHLVL",  "HOME",        "USER",
                                        "LOGNAME", "SHELL", "TERM",   "TMPDIR", "BERTH_TOKEN", "BERTH_TOKEN_FILE"};
    size_t len = strcspn(line, "=");

    if (strncmp(line, "BASH_FUNC_", 10) == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && strncmp(line, names[i], len) == 0)
            return true;
    return false;
}

static const char *variable_find(const char *const *environment, const char *name)
{
    size_t len = strlen(name);

    for (; *environment; environment++)
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
            return *environment + len + 1;
    return NULL;
}

static void variable_set(json_t *env, const char *line)
{
    size_t len = strcspn(line, "=");
    CLEANUP(mem) char *name = mem_strdup(line);

    name[len] = '\0';
    if (line[len] && len)
        (void)json_object_set_new(env, name, json_string(line + len + 1)); /* values that are not UTF-8 are skipped */
}

int script_export(const struct cli *cli, const char *text, const char *const *environment, json_t *document)
{
    CLEANUP(mem) char *copy = mem_strdup(text);
    CLEANUP(json) json_t *env = json_object();
    char *rest = NULL;

    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        const char *value = variable_find(environment, word);
        if (strcmp(word, "ALL") == 0) {
            for (const char *const *at = environment; *at; at++)
                if (!is_private(*at))
                    variable_set(env, *at);
        } else if (strchr(word, '=')) {
            variable_set(env, word);
        } else if (value) {
            (void)json_object_set_new(env, word, json_string(value));
        } else if (strcmp(word, "NONE") != 0 && strcmp(word, "NIL") != 0) {
            return cli_fail(cli, EXIT_USAGE, "--export: variable '%s' is not set in your environment", word);
        }
    }
    /* Variables set by --env are kept. */
    json_t *there = json_object_get(document, "env");
    if (there)
        (void)json_object_update_missing(there, env);
    else if (json_object_size(env))
        (void)json_object_set(document, "env", env);
    return EXIT_OK;
}
