/* gateway.c - `berth gateway`: writes a load balancer's configuration, once or on every change. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cli/app/gateway_text.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "wire/text/document.h"

extern char **environ;

enum { RETRY_MS = 500, REST_MS = 300 };

struct gateway_values {
    const char *out;
    bool watch;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("out", 0, gateway_values, out, "FILE",
                    "Write the configuration atomically to this file. Default: standard output."),
    OPTION_FLAG_ROW("watch", 'w', gateway_values, watch,
                    "Rewrite the file on every change and run the command after '--' to reload it."),
};

struct gateway_program {
    struct cli *cli;
    struct api api;
    const struct gateway_values *values;
    unsigned program;
    VEC(struct gateway_listener) listeners;
    VEC(char *) texts; /* own the strings of the doors */
    const char *const *then;
    size_t then_len;
    struct str line, last;
    int rc;
};

/* ---- arguments -------------------------------------------------------------------------------------------------- */

/* Parses "photos.ada/http=0.0.0.0:80"; ":80" means every address. */
static int listener_parse(struct gateway_program *g, const char *word)
{
    const char *equals = strchr(word, '='), *colon = equals ? strrchr(equals, ':') : NULL;
    if (!equals || equals == word || !colon || !colon[1])
        return cli_fail(g->cli, EXIT_USAGE, "'%s' should be APP[/ENDPOINT]=ADDRESS:PORT, such as photos=:80", word);
    char *app = mem_strdup(word), *bind = mem_strdup(equals + 1);
    app[equals - word] = '\0';
    char *slash = strchr(app, '/');
    if (slash)
        *slash = '\0';
    if (*bind == ':') {
        struct str all = {0};
        str_addf(&all, "0.0.0.0%s", bind);
        mem_free(bind);
        bind = str_take(&all);
    }
    vec_push(&g->texts, app);
    vec_push(&g->texts, bind);
    struct gateway_listener listener = {app, slash ? slash + 1 : NULL, bind};
    vec_push(&g->listeners, listener);
    return EXIT_OK;
}

static int words_parse(struct gateway_program *g, const struct operands *operands)
{
    size_t len = operands->before < operands->len ? operands->before : operands->len;
    const char *program = len ? operands->at[0] : "";
    while (gateway_programs[g->program] && strcmp(gateway_programs[g->program], program) != 0)
        g->program++;
    if (!gateway_programs[g->program])
        return cli_fail(g->cli, EXIT_USAGE, "unknown gateway '%s'; supported are haproxy and nginx", program);
    for (size_t i = 1; i < len; i++) {
        int rc = listener_parse(g, operands->at[i]);
        if (rc != EXIT_OK)
            return rc;
    }
    g->then = operands->at + len;
    g->then_len = operands->len - len;
    if (g->listeners.len == 0)
        return cli_fail(g->cli, EXIT_USAGE, "missing argument APP[/ENDPOINT]=ADDRESS:PORT");
    if (g->then_len && !g->values->watch)
        return cli_fail(g->cli, EXIT_USAGE, "a command after '--' needs --watch");
    if (g->values->watch && !g->values->out)
        return cli_fail(g->cli, EXIT_USAGE, "--watch needs --out FILE");
    return EXIT_OK;
}

/* Completes the ids to the server's form: a NAME without owner belongs to the caller. */
static int names_complete(struct gateway_program *g)
{
    for (size_t i = 0; i < g->listeners.len; i++) {
        CLEANUP(str) struct str path = {0};
        CLEANUP(json) json_t *app = NULL;
        str_add(&path, "/v1/apps");
        path_add(&path, g->listeners.at[i].app);
        int rc = api_get(&g->api, path.at, &app);
        if (rc != EXIT_OK)
            return rc;
        char *id = mem_strdup(json_string_value(json_object_get(app, "id")));
        vec_push(&g->texts, id);
        g->listeners.at[i].app = id;
    }
    return EXIT_OK;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static int file_write(const struct gateway_program *g, const char *text, size_t len)
{
    CLEANUP(str) struct str temp = {0};
    str_addf(&temp, "%s.new", g->values->out);
    int fd = open(temp.at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ssize_t n = fd < 0 ? -1 : write(fd, text, len);
    bool good = n == (ssize_t)len && close(fd) == 0 && rename(temp.at, g->values->out) == 0;
    return good ? EXIT_OK : cli_fail(g->cli, EXIT_FAILED, "cannot write %s: %s", g->values->out, strerror(errno));
}

static void run_command(const struct gateway_program *g)
{
    char **argv = mem_zarray(g->then_len + 1, sizeof *argv);
    pid_t pid;
    int status = 0;
    for (size_t i = 0; i < g->then_len; i++)
        argv[i] = mem_strdup(g->then[i]);
    int rc = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (rc != 0)
        cli_warn(g->cli, "cannot run %s: %s", argv[0], strerror(rc));
    else if (waitpid(pid, &status, 0) == pid && status != 0)
        cli_warn(g->cli, "%s exited with %d", argv[0], WIFEXITED(status) ? WEXITSTATUS(status) : 128);
    for (size_t i = 0; i < g->then_len; i++)
        mem_free(argv[i]);
    mem_free(argv);
}

/* Writes the configuration for these services if it differs from the last one. */
static int update(struct gateway_program *g, const json_t *services)
{
    CLEANUP(str) struct str text = {0};
    balancer_write(&text, g->program, services, g->listeners.at, g->listeners.len);
    if (g->last.len == text.len && memcmp(g->last.at, text.at, text.len) == 0)
        return EXIT_OK;
    if (!g->values->out) {
        fputs(text.at, g->cli->out);
        return EXIT_OK;
    }
    int rc = file_write(g, text.at, text.len);
    if (rc != EXIT_OK)
        return rc;
    str_clear(&g->last);
    str_add_bytes(&g->last, text.at, text.len);
    if (g->then_len) {
        /* only after a change: a program that is reading its configuration may miss a second reload signal */
        run_command(g);
        (void)nanosleep(&(struct timespec){.tv_nsec = REST_MS * 1000000}, NULL);
    }
    return EXIT_OK;
}

/* ---- watching --------------------------------------------------------------------------------------------------- */

static bool take_piece(void *ctx, const char *at, size_t len)
{
    struct gateway_program *g = ctx;
    str_add_bytes(&g->line, at, len);
    for (char *end; g->rc == EXIT_OK && g->line.len && (end = memchr(g->line.at, '\n', g->line.len));) {
        size_t used = (size_t)(end - g->line.at) + 1;
        json_t *line = json_loadb(g->line.at, used, 0, NULL);
        const json_t *items = json_object_get(json_object_get(line, "object"), "items");
        if (items)
            g->rc = update(g, items);
        json_decref(line);
        memmove(g->line.at, g->line.at + used, g->line.len - used);
        g->line.len -= used;
    }
    return g->rc == EXIT_OK;
}

/* Runs until the process is ended. While the daemon is unreachable, the last configuration stays and the request is
 * repeated. */
static int watch(struct gateway_program *g)
{
    while (g->rc == EXIT_OK) {
        struct api_error trouble = {0};
        str_clear(&g->line);
        int rc = api_stream(&g->api, "/v1/services?watch=", take_piece, g, &trouble);
        if (rc != EXIT_OK && rc != EXIT_UNREACHABLE && trouble.status)
            return api_error_print(&g->api, &trouble);
        (void)nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000}, NULL);
    }
    return g->rc;
}

static int gateway_run_once(struct gateway_program *g)
{
    CLEANUP(json) json_t *services = NULL;
    int rc = api_get(&g->api, "/v1/services", &services);
    return rc == EXIT_OK ? update(g, json_object_get(services, "items")) : rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    struct gateway_program g = {.cli = cli, .values = values};
    int rc = words_parse(&g, operands);
    if (rc == EXIT_OK)
        rc = api_open(&g.api, cli);
    if (rc == EXIT_OK)
        rc = names_complete(&g);
    if (rc == EXIT_OK)
        rc = g.values->watch ? watch(&g) : gateway_run_once(&g);
    api_close(&g.api);
    for (size_t i = 0; i < g.texts.len; i++)
        mem_free(g.texts.at[i]);
    vec_done(&g.texts);
    vec_done(&g.listeners);
    str_done(&g.line);
    str_done(&g.last);
    return rc;
}

const struct command gateway_command = {
    .name = "gateway",
    .operands = "haproxy|nginx APP[/ENDPOINT]=ADDRESS:PORT... [-- COMMAND...]",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Generate the configuration of a load balancer for services, and keep it up to date.",
    .text = "Endpoints named http are balanced per request, others per connection. Instances leave "
            "the configuration before they are stopped, so a timely reload loses no requests.",
    .examples =
        "  berth gateway haproxy photos=:8080\n"
        "  berth gateway haproxy photos=:80 --out /etc/haproxy/haproxy.cfg --watch -- systemctl reload haproxy\n"
        "  berth gateway nginx photos/http=:80 --out /etc/nginx/nginx.conf --watch -- nginx -s reload",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct gateway_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .words = gateway_programs,
    .run = run,
};
