/* exec.c - `berth exec`: runs a command in a running pod, with or without a terminal. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/app/exec.h"
#include "cli/app/session.h"
#include "cli/lib/command.h"
#include "wire/text/document.h"

/* Most bytes of input per request. */
enum { PIECE_BYTES = 64 * 1024 };

struct exec_values {
    bool interactive, terminal;
    struct option_list env;
};

static const struct option options[] = {
    OPTION_FLAG_ROW("interactive", 'i', exec_values, interactive, "Pass standard input to the command."),
    OPTION_FLAG_ROW("terminal", 't', exec_values, terminal, "Allocate a terminal for the command."),
    OPTION_LIST_ROW("env", 'e', exec_values, env, "NAME=VALUE",
                    "Set an environment variable of the command; may be given several times."),
};

/* State of one command. Detached threads use it until the process ends, so it is freed only if no thread was
 * started. */
struct exec_state {
    struct api api;
    struct pod_session pod_session;
    size_t threads;
    struct api input, size; /* each thread has its own connection */
    struct termios was;
    bool raw;
};

/* ---- the terminal ----------------------------------------------------------------------------------------------- */

static bool window(struct winsize *ret)
{
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, ret) == 0 || ioctl(STDIN_FILENO, TIOCGWINSZ, ret) == 0;
}

/* Sets raw mode: all keys, including Ctrl-C, go to the command. */
static int terminal_raw(const struct cli *cli, struct exec_state *s)
{
    if (tcgetattr(STDIN_FILENO, &s->was) != 0)
        return cli_fail(cli, EXIT_FAILED, "cannot read the terminal settings: %s", strerror(errno));
    struct termios raw = s->was;
    cfmakeraw(&raw);
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0)
        return cli_fail(cli, EXIT_FAILED, "cannot change the terminal settings: %s", strerror(errno));
    s->raw = true;
    return EXIT_OK;
}

static void terminal_restore(const struct exec_state *s)
{
    if (s->raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &s->was);
}

static void size_send(struct exec_state *s)
{
    struct winsize size;
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct api_error trouble;

    if (!window(&size) || !size.ws_row || !size.ws_col)
        return;
    CLEANUP(json) json_t *body = json_pack("{s:i, s:i}", "rows", size.ws_row, "columns", size.ws_col);
    str_addf(&path, "%s/resize", s->pod_session.path);
    /* The stream will report the same error. */
    (void)api_try(&s->size, &(struct api_request){.method = "POST", .path = str_text(&path), .body = body}, &answer,
                  &trouble);
}

static void signals_make(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGWINCH);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGHUP);
}

/* Restores the terminal when a signal ends the program. */
static void *signals_main(void *ctx)
{
    struct exec_state *s = ctx;
    sigset_t set;
    int signo;

    signals_make(&set);
    while (sigwait(&set, &signo) == 0) {
        if (signo != SIGWINCH) {
            terminal_restore(s);
            _exit(128 + signo);
        }
        size_send(s);
    }
    return NULL;
}

/* ---- input and output ------------------------------------------------------------------------------------------- */

static void *input_main(void *ctx)
{
    struct exec_state *s = ctx;
    char *piece = mem_alloc(PIECE_BYTES);
    int rc = EXIT_OK;

    while (rc == EXIT_OK) {
        ssize_t n = read(STDIN_FILENO, piece, PIECE_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        rc = pod_session_write(&s->input, &s->pod_session, piece, n > 0 ? (size_t)n : 0, n <= 0);
        if (n <= 0)
            break;
    }
    mem_free(piece);
    for (;;)
        (void)pause(); /* other threads may use this thread's data until the process ends */
    return NULL;
}

static bool write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool out_print(void *ctx, const char *at, size_t len)
{
    const struct cli *cli = ctx;
    return write_all(fileno(cli->out), at, len);
}

static bool err_print(void *ctx, const char *at, size_t len)
{
    const struct cli *cli = ctx;
    return write_all(fileno(cli->err), at, len);
}

/* ---- the verb --------------------------------------------------------------------------------------------------- */

static int thread_start(const struct cli *cli, struct exec_state *s, struct api *own, void *(*body)(void *))
{
    pthread_t thread;
    int rc = api_clone(&s->api, own);

    if (rc != EXIT_OK)
        return rc;
    int failed = pthread_create(&thread, NULL, body, s);
    if (failed)
        return cli_fail(cli, EXIT_FAILED, "cannot start a thread: %s", strerror(failed));
    (void)pthread_detach(thread);
    s->threads++;
    return EXIT_OK;
}

static int env_add(const struct cli *cli, const struct exec_request *v, json_t *env)
{
    for (size_t i = 0; i < v->env_len; i++) {
        const char *word = v->env[i], *equals = strchr(word, '=');
        if (!equals || equals == word)
            return cli_fail(cli, EXIT_USAGE, "--env takes NAME=VALUE, not '%s'", word);
        CLEANUP(mem) char *name = mem_strdup(word);
        name[equals - word] = '\0';
        if (json_object_set_new(env, name, json_string(equals + 1)) != 0)
            return cli_fail(cli, EXIT_USAGE, "--env: '%s' is not UTF-8", name);
    }
    return EXIT_OK;
}

static int body_make(const struct cli *cli, const struct exec_request *v, json_t *body)
{
    json_t *words = words_json(cli, v->command, v->command_len), *env = json_object();
    const char *term = getenv("TERM");
    struct winsize size;

    if (words)
        (void)json_object_set_new(body, "command", words);
    if (v->terminal && term)
        (void)json_object_set_new(env, "TERM", json_string(term));
    int rc = words ? env_add(cli, v, env) : EXIT_USAGE;
    if (json_object_size(env) > 0)
        (void)json_object_set(body, "env", env);
    json_decref(env);
    if (v->terminal)
        (void)json_object_set_new(body, "terminal", json_true());
    if (v->terminal && window(&size) && size.ws_row && size.ws_col) {
        (void)json_object_set_new(body, "rows", json_integer(size.ws_row));
        (void)json_object_set_new(body, "columns", json_integer(size.ws_col));
    }
    return rc;
}

static int exec_session_run(struct cli *cli, const struct exec_request *v, struct exec_state *s)
{
    const struct pod_session_output ear = {.ctx = cli, .out = out_print, .err = err_print};
    int exit_code = 0, rc = EXIT_OK;

    if (v->terminal) {
        sigset_t set;
        signals_make(&set);
        /* before any thread starts: only one thread receives the signals */
        (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
        rc = thread_start(cli, s, &s->size, signals_main);
    }
    if (rc == EXIT_OK && v->terminal && v->interactive)
        rc = terminal_raw(cli, s);
    if (rc == EXIT_OK && v->interactive)
        rc = thread_start(cli, s, &s->input, input_main);
    if (rc == EXIT_OK && !v->interactive && !v->terminal)
        rc = pod_session_write(&s->api, &s->pod_session, NULL, 0, true); /* without -i the input is empty */
    if (rc == EXIT_OK || rc == EXIT_NOT_FOUND)
        rc = pod_session_read(&s->api, &s->pod_session, &ear, &exit_code);
    terminal_restore(s);
    if (v->ret_ended)
        *v->ret_ended = rc == EXIT_OK;
    return rc == EXIT_OK ? exit_code : rc;
}

int exec_run(struct cli *cli, const struct exec_request *ask)
{
    CLEANUP(json) json_t *body = json_object();
    struct listed_pod pod;

    if (ask->terminal && ask->interactive && !isatty(STDIN_FILENO))
        return cli_fail(cli, EXIT_USAGE, "standard input is not a terminal; omit -t");
    int rc = body_make(cli, ask, body);
    if (rc != EXIT_OK)
        return rc;
    struct exec_state *s = mem_zalloc(sizeof *s);
    rc = api_open(&s->api, cli);
    if (rc == EXIT_OK)
        rc = pod_running(&s->api, ask->pod, true, &pod);
    if (rc == EXIT_OK)
        rc = pod_session_open(&s->api, &pod, body, &s->pod_session);
    if (rc == EXIT_OK)
        rc = exec_session_run(cli, ask, s);
    if (s->threads == 0) {
        api_close(&s->api);
        mem_free(s);
    }
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct exec_values *v = values;

    if (operands->before < 1)
        return cli_fail(cli, EXIT_USAGE, "exec needs a POD before the '--'");
    struct exec_request ask = {
        .pod = operands->at[0],
        .interactive = v->interactive,
        .terminal = v->terminal,
        .env = v->env.at,
        .env_len = v->env.len,
        .command = operands->at + 1,
        .command_len = operands->len - 1,
    };
    return exec_run(cli, &ask);
}

const struct command exec_command = {
    .name = "exec",
    .operands = "POD [--] COMMAND...",
    .operands_min = 2,
    .operands_max = OPERANDS_ANY,
    .summary = "Run a command in a pod.",
    .text = "POD is an APP or JOB for the first of its pods, APP/ORDINAL, or instance/ID. Put '--' "
            "before a command with options. Arguments are passed verbatim, without a shell. Exits "
            "with the command's exit code. 'berth audit' shows who ran which command.",
    .examples = "  berth exec -it photos sh\n"
                "  berth exec photos/1 -- ls -l /data\n"
                "  berth exec -i photos -- psql <dump.sql",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct exec_values),
    .section = SECTION_WORK,
    .talks = true,
    .ids = "apps",
    .run = run,
};
