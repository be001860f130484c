/* optask_run.c - `berth optask run|ready`: runs an OpTask from a file or a ready-made one, and shows its progress. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "cli/lib/table.h"
#include "cli/node/optask.h"
#include "cli/show/poll.h"
#include "cli/slurm/time_text.h"
#include "wire/doc/optask_doc.h"
#include "wire/text/document.h"

enum { POLL_NS = 300000000, PATH_BYTES = 4096 };

/* ---- files ------------------------------------------------------------------------------------------------------ */

static void file_cleanup(FILE **file)
{
    if (*file && *file != stdin)
        (void)fclose(*file);
}

/* Reads a whole text file, such as a script. */
static int script_text(const struct cli *cli, const char *path, struct str *ret)
{
    char piece[4096];
    CLEANUP(file) FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!file)
        return cli_fail(cli, EXIT_FAILED, "cannot read %s: %s", path, strerror(errno));
    for (size_t n; ret->len <= OPTASK_SCRIPT_MAX && (n = fread(piece, 1, sizeof piece, file)) > 0;)
        str_add_bytes(ret, piece, n);
    if (ferror(file))
        return cli_fail(cli, EXIT_FAILED, "cannot read %s: %s", path, strerror(errno));
    if (ret->len > OPTASK_SCRIPT_MAX)
        return cli_fail(cli, EXIT_FAILED, "%s is larger than %d bytes", path, OPTASK_SCRIPT_MAX);
    return EXIT_OK;
}

/* Finds the folder of ready-made OpTasks: as configured, beside the program, in the source tree of the build, or as
 * installed. */
static const char *ready_folder(char buf[static PATH_BYTES])
{
    static const char *const beside[] = {"/../share/berth/optasks", "/../../../../share/optasks"};
    char self[PATH_BYTES / 2];
    const char *told = getenv("BERTH_OPTASKS");
    if (told && *told) {
        (void)snprintf(buf, PATH_BYTES, "%s", told);
        return buf;
    }
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    while (len > 0 && self[len] != '/')
        len--;
    for (size_t i = 0; len > 0 && i < sizeof beside / sizeof *beside; i++) {
        (void)snprintf(buf, PATH_BYTES, "%.*s%s", (int)len, self, beside[i]);
        if (access(buf, R_OK) == 0)
            return buf;
    }
    (void)snprintf(buf, PATH_BYTES, "%s", BERTH_OPTASKS);
    return buf;
}

static int ready_read(const struct cli *cli, const char *name, struct str *ret)
{
    char folder[PATH_BYTES];
    CLEANUP(str) struct str lib = {0}, path = {0};
    if (strpbrk(name, "/.") || strcmp(name, "lib") == 0)
        return cli_fail(cli, EXIT_USAGE, "invalid name '%s' of a ready OpTask; for a script use -f FILE", name);
    str_addf(&path, "%s/%s.sh", ready_folder(folder), name);
    str_addf(&lib, "%s/lib.sh", folder);
    if (access(path.at, R_OK) < 0)
        return cli_fail(cli, EXIT_NOT_FOUND, "no ready OpTask '%s' in %s; 'berth optask ready' lists them", name,
                        folder);
    int rc = script_text(cli, lib.at, ret);
    return rc == EXIT_OK ? script_text(cli, path.at, ret) : rc;
}

/* ---- run -------------------------------------------------------------------------------------------------------- */

struct run_values {
    const char *file, *undo, *key, *timeout;
    struct option_list nodes, labels;
    struct option_count parallel, max_failures;
    unsigned language;
    bool all, init, drain, wait, dry_run;
};

static const char *const language_choices[] = {"auto", "shell", "python", NULL};
enum { LANGUAGE_AUTO, LANGUAGE_SHELL, LANGUAGE_PYTHON };

static const struct option run_options[] = {
    OPTION_TEXT_ROW("filename", 'f', run_values, file, "FILE",
                    "Script to run instead of a ready OpTask; '-' is standard input."),
    OPTION_TEXT_ROW("undo", 0, run_values, undo, "FILE", "Undo script; 'self' runs the same script with BERTH_UNDO=1."),
    OPTION_CHOICE_ROW("language", 0, run_values, language, language_choices,
                      "Interpreter of the script. Default: from its file name and first line."),
    OPTION_LIST_ROW("node", 'n', run_values, nodes, "ID", "Run on this node; may be given several times."),
    OPTION_LIST_ROW("select", 'l', run_values, labels, "LABEL=VALUE",
                    "Run on all nodes with this label; if given several times, with all of the labels."),
    OPTION_FLAG_ROW("all", 0, run_values, all, "Run on all current nodes."),
    OPTION_FLAG_ROW("init", 0, run_values, init, "Run on nodes that join from now on, before they become schedulable."),
    OPTION_TEXT_ROW("key", 0, run_values, key, "KEY",
                    "ID of the OpTask, which runs once per node and key. Default: derived from the content."),
    OPTION_COUNT_ROW("parallel", 0, run_values, parallel, 1, OPTASK_PARALLEL_MAX,
                     "Number of nodes to run on in parallel. Default: 1."),
    OPTION_COUNT_ROW("max-failures", 0, run_values, max_failures, 0, 1000000,
                     "Stop the rollout after more than this number of failures. Default: 0."),
    OPTION_TEXT_ROW("timeout", 0, run_values, timeout, "TIME", "Time limit of each run. Default: 1h."),
    OPTION_FLAG_ROW("drain", 0, run_values, drain, "Drain each node before the run."),
    OPTION_FLAG_ROW("wait", 'w', run_values, wait, "Wait until the OpTask ends and show its state on each node."),
    DRY_RUN_ROW(run_values, dry_run),
};

static bool is_python(const struct run_values *v, const struct str *script)
{
    size_t len = v->file ? strlen(v->file) : 0;
    if (v->language != LANGUAGE_AUTO)
        return v->language == LANGUAGE_PYTHON;
    if (len > 3 && strcmp(v->file + len - 3, ".py") == 0)
        return true;
    size_t line = strcspn(str_text(script), "\n");
    return strncmp(str_text(script), "#!", 2) == 0 && memmem(script->at, line, "python", strlen("python"));
}

static int member_set(const struct cli *cli, json_t *body, const char *key, const struct str *text, const char *from)
{
    json_t *value = json_stringn(str_text(text), text->len);
    if (!value)
        return cli_fail(cli, EXIT_FAILED, "%s is not text in UTF-8", from);
    (void)json_object_set_new(body, key, value);
    return EXIT_OK;
}

static int script_fill(const struct cli *cli, const struct run_values *v, const struct operands *operands, json_t *body)
{
    CLEANUP(str) struct str script = {0}, undo = {0};
    size_t first = v->file ? 0 : 1;
    if (!v->file && !operands->len)
        return cli_fail(cli, EXIT_USAGE,
                        "give the name of a ready OpTask ('berth optask ready' lists them) or -f FILE");
    const char *from = v->file ? v->file : operands->at[0];
    int rc = v->file ? script_text(cli, from, &script) : ready_read(cli, from, &script);
    if (rc == EXIT_OK)
        rc = member_set(cli, body, "script", &script, from);
    if (rc == EXIT_OK && v->undo && strcmp(v->undo, OPTASK_UNDO_SELF) != 0) {
        rc = script_text(cli, v->undo, &undo);
        if (rc == EXIT_OK)
            rc = member_set(cli, body, "undo", &undo, v->undo);
    } else if (rc == EXIT_OK && (v->undo || !v->file)) {
        (void)json_object_set_new(body, "undo", json_string(OPTASK_UNDO_SELF));
    }
    if (rc != EXIT_OK)
        return rc;
    if (!v->file)
        (void)json_object_set_new(body, "ready", json_string(from));
    if (is_python(v, &script))
        (void)json_object_set_new(body, "language", json_string("python"));
    json_t *args = json_array();
    for (size_t i = first; i < operands->len; i++)
        (void)json_array_append_new(args, json_string(operands->at[i]));
    (void)json_object_set_new(body, "args", args);
    return json_array_size(args) == operands->len - first
               ? EXIT_OK
               : cli_fail(cli, EXIT_USAGE, "an argument is not text in UTF-8");
}

static int labels_fill(const struct cli *cli, const struct option_list *labels, json_t *body)
{
    json_t *require = json_object();
    (void)json_object_set_new(body, "require", require);
    for (size_t i = 0; i < labels->len; i++) {
        const char *equals = strchr(labels->at[i], '=');
        if (!equals || equals == labels->at[i])
            return cli_fail(cli, EXIT_USAGE, "--select takes LABEL=VALUE, not '%s'", labels->at[i]);
        CLEANUP(mem) char *key = mem_strdup(labels->at[i]);
        key[equals - labels->at[i]] = '\0';
        (void)json_object_set_new(require, key, json_string(equals + 1));
    }
    return EXIT_OK;
}

static int all_nodes_fill(struct api *a, json_t *body)
{
    CLEANUP(json) json_t *items = NULL;
    json_int_t revision;
    size_t i;
    json_t *item;
    int rc = api_list(a, "/v1/nodes", 0, &items, &revision);
    if (rc != EXIT_OK)
        return rc;
    json_t *nodes = json_array();
    (void)json_object_set_new(body, "nodes", nodes);
    json_array_foreach(items, i, item)(void) json_array_append(nodes, json_object_get(item, "id"));
    return json_array_size(nodes) ? EXIT_OK : cli_fail(a->cli, EXIT_FAILED, "the cluster has no nodes");
}

static int nodes_fill(struct api *a, const struct run_values *v, json_t *body)
{
    int ways = (v->nodes.len > 0) + (v->labels.len > 0) + v->all;
    if (ways > 1 || (v->init && (v->nodes.len || v->all)))
        return cli_fail(a->cli, EXIT_USAGE, "expected one of --node, --select and --all; with --init only --select");
    if (!ways && !v->init)
        return cli_fail(a->cli, EXIT_USAGE,
                        "no nodes selected: expected --node ID, --select LABEL=VALUE, --all or --init");
    if (v->init)
        (void)json_object_set_new(body, "init", json_true());
    if (v->labels.len)
        return labels_fill(a->cli, &v->labels, body);
    if (v->all)
        return all_nodes_fill(a, body);
    json_t *nodes = json_array();
    for (size_t i = 0; i < v->nodes.len; i++)
        (void)json_array_append_new(nodes, json_string(v->nodes.at[i]));
    if (v->nodes.len)
        (void)json_object_set(body, "nodes", nodes);
    json_decref(nodes);
    return EXIT_OK;
}

static int options_fill(const struct cli *cli, const struct run_values *v, json_t *body)
{
    char timeout[SPAN_TEXT_MAX];
    struct berth_err err;
    if (v->key)
        (void)json_object_set_new(body, "id", json_string(v->key));
    if (v->parallel.given)
        (void)json_object_set_new(body, "parallel", json_integer((json_int_t)v->parallel.n));
    if (v->max_failures.given)
        (void)json_object_set_new(body, "max_failures", json_integer((json_int_t)v->max_failures.n));
    if (v->drain)
        (void)json_object_set_new(body, "drain", json_true());
    if (v->timeout && duration_text_read(v->timeout, 1, timeout, &err) < 0)
        return cli_fail(cli, EXIT_USAGE, "--timeout: %s", err.text);
    if (v->timeout)
        (void)json_object_set_new(body, "timeout", json_string(timeout));
    return EXIT_OK;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct run_values *v = values;
    CLEANUP(json) json_t *body = json_object();
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(api) struct api api = {0};

    int rc = script_fill(cli, v, operands, body);
    if (rc == EXIT_OK)
        rc = options_fill(cli, v, body);
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = nodes_fill(&api, v, body);
    if (rc != EXIT_OK)
        return rc;
    const struct api_request request = {.method = "POST", .path = "/v1/optasks", .body = body, .dry_run = v->dry_run};
    rc = api_do(&api, &request, &answer);
    if (rc != EXIT_OK)
        return rc;
    const char *id = json_string_value(json_object_get(answer.body, "id"));
    CLEANUP(mem) char *key = mem_strdup(id ? id : v->key ? v->key : "?");
    object_done_print(cli, "optask", key, answer.status == 201 ? "added" : "already exists", v->dry_run);
    return v->wait && !v->dry_run ? optask_wait(&api, key, false) : EXIT_OK;
}

static const char *const ready_words[] = {
    "driver", "huge-pages", "mount", "package-install", "sysctl", "system-file", "system-upgrade", "user", NULL};

const struct command optask_run_command = {
    .name = "optask run",
    .operands = "[READY] [ARG...]",
    .operands_max = OPERANDS_ANY,
    .summary = "Run a script as root, once on each node.",
    .text = "The script is a ready OpTask ('berth optask ready' lists them) or a file. It is stored "
            "with its hash, and agents run only content that matches the hash. Options precede the "
            "name; words after the name are arguments.\n\n"
            "The same content runs once per node and key, even if requested again; different content "
            "under an existing key is rejected. A failed script is undone if it has an undo script, "
            "and the rollout stops after more than --max-failures failures. 'berth optask retry' "
            "continues.",
    .examples = "  berth optask run --all --wait package-install htop\n"
                "  berth optask run --select disk=ssd --parallel 3 sysctl vm.swappiness=10\n"
                "  berth optask run --node n1 --drain --timeout 30m -f upgrade.sh --undo downgrade.sh\n"
                "  berth optask run --init --key base package-install chrony",
    .options = run_options,
    .options_len = sizeof run_options / sizeof run_options[0],
    .values_size = sizeof(struct run_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .leading = true,
    .words = ready_words,
    .run = run,
};

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* Prints a line for each node whose state has changed. */
static void changes_print(const struct cli *cli, json_t *nodes, json_t *told)
{
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node)
    {
        const char *id = json_string_value(json_object_get(node, "node"));
        const char *state = json_string_value(json_object_get(node, "state"));
        const char *error = json_string_value(json_object_get(node, "error"));
        const char *before = json_string_value(json_object_get(told, id));
        if (!state || strcmp(state, before ? before : "pending") == 0)
            continue;
        (void)json_object_set_new(told, id, json_string(state));
        fprintf(cli->err, "%s: %s%s%s\n", id, state, error ? ": " : "", error ? error : "");
    }
}

int optask_wait(struct api *a, const char *key, bool undo)
{
    static const char *const over[] = {"done", "undone", "failed", "stopped", "waiting"};
    struct object_target target = {collection_find("optask"), key};
    CLEANUP(json) json_t *told = json_object();
    struct object_poll at = {.answered = true};
    struct progress bar;
    int rc = EXIT_OK;
    bool ended = false;

    progress_start(&bar, a->cli, "Running");
    while (rc == EXIT_OK && !ended) {
        CLEANUP(json) json_t *task = NULL;
        rc = object_poll_get(&at, a, &target, &task);
        if (rc != EXIT_OK)
            break;
        /* NULL, like all its members, while the server is unreachable */
        json_t *status = json_object_get(task, "status");
        const char *state = json_string_value(json_object_get(status, "state"));
        progress_end(&bar);
        (void)object_poll_warn(&at, a);
        changes_print(a->cli, json_object_get(status, "nodes"), told);
        size_t all = (size_t)json_integer_value(json_object_get(status, "all"));
        progress_update(&bar, (size_t)json_integer_value(json_object_get(status, "done")), all);
        for (size_t i = 0; state && i < sizeof over / sizeof *over; i++)
            ended = ended || strcmp(state, over[i]) == 0;
        /* After an undo the rollout may stay in state "stopped", which is a success. */
        bool good = undo && json_integer_value(json_object_get(status, "failed")) == 0;
        if (ended && !good && (strcmp(state, "failed") == 0 || strcmp(state, "stopped") == 0))
            rc = cli_fail(a->cli, EXIT_FAILED,
                          "optask %s %s; 'berth optask logs %s NODE' shows its output, 'berth optask retry %s' "
                          "continues",
                          key, strcmp(state, "failed") == 0 ? "failed" : "stopped after failures", key, key);
        if (!ended)
            (void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    progress_end(&bar);
    return rc;
}

/* ---- ready-made OpTasks ----------------------------------------------------------------------------------------- */

/* Returns the text of a line "# KEY: ..." of a script; "" without such a line. */
static const char *comment(const char *text, const char *key, char *buf, size_t size)
{
    CLEANUP(str) struct str start = {0};
    str_addf(&start, "\n# %s: ", key);
    const char *at = strstr(text, start.at);
    *buf = '\0';
    if (at) {
        at += start.len;
        (void)snprintf(buf, size, "%.*s", (int)strcspn(at, "\n"), at);
    }
    return buf;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_read(const struct cli *cli, const char *folder, char ***ret, size_t *ret_len)
{
    VEC(char *) names = {0};
    DIR *dir = opendir(folder);
    if (!dir)
        return cli_fail(cli, EXIT_FAILED, "cannot read %s: %s; $BERTH_OPTASKS can set another folder", folder,
                        strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (len > 3 && strcmp(entry->d_name + len - 3, ".sh") == 0 && strcmp(entry->d_name, "lib.sh") != 0) {
            char *name = mem_strdup(entry->d_name);
            name[len - 3] = '\0';
            vec_push(&names, name);
        }
    }
    (void)closedir(dir);
    if (names.len)
        qsort(names.at, names.len, sizeof *names.at, by_name);
    *ret = names.at;
    *ret_len = names.len;
    return EXIT_OK;
}

static int ready_run(struct cli *cli, const void *values, const struct operands *operands)
{
    static const struct table_column columns[] = {
        {"NAME",      TABLE_PLAIN, 0},
        {"ARGUMENTS", TABLE_WRAP,  0},
        {"WHAT",      TABLE_WRAP,  0},
    };
    char folder[PATH_BYTES], args[256], what[256];
    char **names = NULL;
    size_t len = 0;
    struct table table;
    (void)values;
    (void)operands;
    int rc = names_read(cli, ready_folder(folder), &names, &len);
    if (rc != EXIT_OK)
        return rc;
    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < len; i++) {
        CLEANUP(str) struct str path = {0}, text = {0};
        str_addf(&path, "%s/%s.sh", folder, names[i]);
        str_add_char(&text, '\n');
        if (rc == EXIT_OK && (rc = script_text(cli, path.at, &text)) == EXIT_OK) {
            table_row(&table);
            table_cell(&table, 0, COLOR_BOLD, "%s", names[i]);
            table_cell(&table, 1, COLOR_NONE, "%s", comment(str_text(&text), "Arguments", args, sizeof args));
            table_cell(&table, 2, COLOR_NONE, "%s", comment(str_text(&text), "What", what, sizeof what));
        }
        mem_free(names[i]);
    }
    mem_free(names);
    if (rc == EXIT_OK)
        table_print(&table);
    table_done(&table);
    return rc;
}

const struct command optask_ready_command = {
    .name = "optask ready",
    .operands = "",
    .summary = "List the ready OpTasks that are installed on this machine.",
    .text = "These are shell scripts for the Debian, RHEL and Alpine families; all of them can be "
            "undone. $BERTH_OPTASKS can set another folder.",
    .section = SECTION_CLUSTER,
    .run = ready_run,
};
