/* session.c - sessions that users open to an instance through the daemon: log, exec, signal.
 *
 * Output is sent in pieces, one POST at a time for each session: the daemon answers when it has room for the next
 * piece, so a slow reader slows the program down and nothing accumulates here.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent_parts.h"
#include "agent/optask/optask.h"
#include "base/base64.h"

enum { PIECE_BYTES = 48 * 1024, SESSIONS_MAX = 256, INPUT_BYTES_MAX = 8 << 20 };
#define LOOK_NS (SECOND_NS / 5)

struct pipe_out {
    struct agent_session *session;
    int fd; /* -1: closed */
    const char *stream;
    struct loop_source *source; /* NULL: not watched while a piece is being sent */
};

struct agent_session {
    struct agent_sessions *all;
    char *call;
    uint64_t id;  /* id of the instance */
    char *optask; /* key of an OpTask instead of an instance; NULL: none */
    bool sending;
    /* Fields of a log session. */
    struct logfile *log;
    bool follow, gap; /* gap: bytes between the wanted cursor and the first piece were removed */
    struct loop_source *timer;
    /* Fields of an exec session. */
    bool program, eof, exited;
    int exit;
    struct berth_err failure; /* why the program was never executed; code 0: it was */
    struct exec_process beside;
    struct loop_source *ended, *room;
    struct pipe_out out, err;
    struct str input;
    VEC(char) piece;
};

struct agent_sessions {
    struct agent *agent;
    VEC(struct agent_session *) at;
};

static void log_step(void *ctx);
static void program_step(struct agent_session *e);

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void source_drop(struct loop_source **s)
{
    loop_source_free(*s);
    *s = NULL;
}

static void session_free(struct agent_session *e)
{
    struct agent_sessions *all = e->all;
    for (size_t i = 0; i < all->at.len; i++)
        if (all->at.at[i] == e) {
            all->at.at[i] = all->at.at[--all->at.len];
            break;
        }
    source_drop(&e->timer);
    source_drop(&e->ended);
    source_drop(&e->room);
    source_drop(&e->out.source);
    source_drop(&e->err.source);
    if (e->exited)
        exec_process_close(&e->beside);
    else
        exec_process_kill(all->agent, &e->beside);
    logfile_free(e->log);
    str_done(&e->input);
    vec_done(&e->piece);
    mem_free(e->call);
    mem_free(e->optask);
    mem_free(e);
}

static struct agent_session *session_find(const struct agent_sessions *all, const char *call)
{
    for (size_t i = 0; i < all->at.len; i++)
        if (strcmp(all->at.at[i]->call, call) == 0)
            return all->at.at[i];
    return NULL;
}

/* ---- sending output --------------------------------------------------------------------------------------------- */

static void on_ignored_answer(void *ctx, int status, const char *body, size_t len)
{
    (void)ctx, (void)status, (void)body, (void)len;
}

static void send_end(struct agent *a, const char *call, int exit, const char *error)
{
    CLEANUP(str) struct str path = {0}, body = {0};
    str_addf(&path, "/calls/%s?end=true", call);
    if (exit >= 0)
        str_addf(&path, "&exit=%d", exit);
    if (error) {
        str_add(&body, "{\"error\":");
        str_add_json(&body, error);
        str_add_char(&body, '}');
    }
    link_post(a->link, path.at, NULL, str_text(&body), body.len, on_ignored_answer, NULL);
}

/* A pending POST. It refers to its session by name, because the session may end first. */
struct session_post {
    struct agent_sessions *all;
    char *call;
};

static void on_post_answered(void *ctx, int status, const char *body, size_t len)
{
    struct session_post *s = ctx;
    struct agent_session *e = status == LINK_GONE ? NULL : session_find(s->all, s->call);
    (void)body;
    (void)len;
    mem_free(s->call);
    mem_free(s);
    if (!e)
        return;
    e->sending = false;
    bool taken = status == 200 || status == 204;
    if (!taken && status != 404) /* a client that is still connected would otherwise wait for ever */
        send_end(e->all->agent, e->call, -1, "its output could not be sent");
    if (!taken)
        session_free(e);
    else if (e->log)
        log_step(e);
    else
        program_step(e);
}

/* Sends one piece of output. A piece of a log comes with the cursor behind it, from which the log can be continued over
 * another connection. */
static void send_piece(struct agent_session *e, const char *stream, const void *data, size_t len)
{
    CLEANUP(str) struct str path = {0};
    struct session_post *s = mem_zalloc(sizeof *s);
    *s = (struct session_post){e->all, mem_strdup(e->call)};
    str_addf(&path, "/calls/%s?stream=%s", e->call, stream);
    if (e->log) {
        char cursor[LOGFILE_CURSOR_MAX];
        logfile_cursor(e->log, cursor);
        str_addf(&path, "&cursor=%s%s", cursor, e->gap ? "&gap=true" : "");
        e->gap = false;
    }
    e->sending = true;
    link_post(e->all->agent->link, path.at, "application/octet-stream", data, len, on_post_answered, s);
}

/* ---- log -------------------------------------------------------------------------------------------------------- */

static void log_step(void *ctx)
{
    struct agent_session *e = ctx;
    struct agent *a = e->all->agent;
    if (e->sending)
        return;
    vec_resize(&e->piece, PIECE_BYTES);
    const struct agent_instance *r = instance_find(a, e->id);
    bool lives = e->optask ? is_optask_alive(a->optasks, e->optask, e->id)
                           /* checked before the read, so that the last lines are not missed */
                           : r && r->phase <= INSTANCE_REAPING;
    ssize_t len = logfile_read(e->log, e->piece.at, e->piece.len);
    if (len > 0) {
        send_piece(e, "out", e->piece.at, (size_t)len);
    } else if (len < 0 || !e->follow || !lives) {
        send_end(a, e->call, 0, len < 0 ? "its log cannot be read" : NULL);
        session_free(e);
    } else {
        loop_timer_set(e->timer, loop_now_ns(a->loop) + LOOK_NS);
    }
}

static int log_begin(struct agent_session *e, const json_t *line, struct berth_err *err)
{
    const json_t *tail = json_object_get(line, "tail");
    const char *optask = json_string_value(json_object_get(line, "optask"));
    const char *cursor = json_string_value(json_object_get(line, "cursor"));
    const struct state_dir *state_dir = e->all->agent->state_dir;
    int rc = 0;
    if (optask) {
        e->optask = mem_strdup(optask);
        rc = optask_log(e->all->agent->optasks, optask, json_is_true(json_object_get(line, "undo")), &state_dir, &e->id,
                        err);
    }
    if (rc == 0 && cursor)
        rc = logfile_open_at(state_dir, e->id, cursor, &e->log, &e->gap, err);
    else if (rc == 0)
        rc = logfile_open(state_dir, e->id, tail ? json_integer_value(tail) : -1, &e->log, err);
    if (rc < 0)
        return rc;
    e->follow = json_is_true(json_object_get(line, "follow"));
    e->timer = loop_timer_new(e->all->agent->loop, log_step, e);
    send_piece(e, "out", "", 0); /* tells the client that the session has begun, even if there is no output yet */
    return 0;
}

/* ---- exec ------------------------------------------------------------------------------------------------------- */

static void out_ready(void *ctx, uint32_t events)
{
    struct pipe_out *p = ctx;
    struct agent_session *e = p->session;
    (void)events;
    if (e->sending) {
        /* the answer's callback watches it again; a closed pipe would wake the loop constantly meanwhile */
        source_drop(&p->source);
        return;
    }
    vec_resize(&e->piece, PIECE_BYTES);
    ssize_t len = read(p->fd, e->piece.at, e->piece.len);
    if (len > 0) {
        send_piece(e, p->stream, e->piece.at, (size_t)len);
    } else if (len == 0 || (errno != EAGAIN && errno != EINTR)) { /* a terminal without processes returns EIO */
        source_drop(&p->source);
        p->fd = -1;
        program_step(e);
    }
}

/* A descriptor that cannot be watched is treated as closed. */
static void pipe_watch(struct pipe_out *p)
{
    if (p->fd >= 0 && !p->source &&
        loop_watch_fd(p->session->all->agent->loop, p->fd, EPOLLIN, out_ready, p, &p->source, NULL) < 0)
        p->fd = -1;
}

/* Continues after the daemon has accepted a piece, or ends the session after the last one. */
static void program_step(struct agent_session *e)
{
    if (e->sending)
        return;
    pipe_watch(&e->out);
    pipe_watch(&e->err);
    if (!e->exited || e->out.fd >= 0 || e->err.fd >= 0)
        return;
    send_end(e->all->agent, e->call, e->failure.code ? -1 : e->exit, e->failure.code ? e->failure.text : NULL);
    session_free(e);
}

static void program_ended(void *ctx, uint32_t events)
{
    struct agent_session *e = ctx;
    (void)events;
    source_drop(&e->ended);
    e->exit = exec_process_exit(e->beside.pidfd);
    e->exited = true;
    (void)exec_process_error(&e->beside, &e->failure);
    program_step(e);
}

static void input_room(void *ctx, uint32_t events)
{
    struct agent_session *e = ctx;
    (void)events;
    ssize_t n = e->input.len ? write(e->beside.in, e->input.at, e->input.len) : 0;
    if (n > 0) {
        memmove(e->input.at, e->input.at + n, e->input.len - (size_t)n);
        e->input.len -= (size_t)n;
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        str_clear(&e->input);
        e->eof = true;
    }
    if (e->input.len)
        return;
    source_drop(&e->room);
    if (e->eof && e->beside.in != e->beside.out)
        close_fd(&e->beside.in);
}

static void input_more(struct agent_session *e)
{
    if (!e->program || e->beside.in < 0 || e->room)
        return;
    /* one event source for each descriptor */
    int fd = e->beside.in == e->beside.out ? dup(e->beside.in) : e->beside.in;
    if (fd < 0)
        return;
    if (e->beside.in == e->beside.out)
        e->beside.in = fd;
    (void)loop_watch_fd(e->all->agent->loop, fd, EPOLLOUT, input_room, e, &e->room, NULL);
}

/* Queues input for the program. False: the queue is full, and the session must end, because input with a gap is
 * useless. */
static bool input_take(struct agent_session *e, const char *text)
{
    CLEANUP(str) struct str bytes = {0};
    if (e->beside.in < 0) /* the program has closed its input: discard, as a pipe would */
        return true;
    if (!str_add_base64_bytes(&bytes, text, strlen(text)) || e->input.len + bytes.len > INPUT_BYTES_MAX)
        return false;
    str_add_bytes(&e->input, str_text(&bytes), bytes.len);
    input_more(e);
    return true;
}

static void pipe_begin(struct agent_session *e, struct pipe_out *p, int fd, const char *stream)
{
    *p = (struct pipe_out){.session = e, .fd = fd, .stream = stream};
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    pipe_watch(p);
}

static unsigned number(const json_t *line, const char *key, unsigned fallback)
{
    json_int_t n = json_integer_value(json_object_get(line, key));
    return n > 0 && n < 10000 ? (unsigned)n : fallback;
}

static const char **argv_of(const json_t *list, struct arena *arena)
{
    const char **argv = ARENA_ARRAY(arena, const char *, json_array_size(list) + 1);
    for (size_t i = 0; i < json_array_size(list); i++)
        argv[i] = json_string_value(json_array_get(list, i));
    return argv;
}

static const char **env_of(const json_t *object, struct arena *arena)
{
    const char **env = ARENA_ARRAY(arena, const char *, json_object_size(object) + 1), *name;
    json_t *value;
    size_t len = 0;
    json_object_foreach((json_t *)object, name, value) env[len++] =
        arena_fmt(arena, "%s=%s", name, json_string_value(value) ? json_string_value(value) : "");
    return env;
}

static int program_begin(struct agent_session *e, const json_t *line, struct berth_err *err)
{
    struct agent *a = e->all->agent;
    const struct agent_instance *r = instance_find(a, e->id);
    struct arena arena;
    if (!r || r->phase != INSTANCE_RUNNING)
        return err_set(err, ESRCH, "the instance is not running on this node");
    if (image_is_vm(r->config))
        return err_set(err, ENOTSUP, "programs cannot be started in a virtual machine; use an endpoint");
    if (json_array_size(json_object_get(line, "command")) == 0)
        return err_set(err, EINVAL, "missing command");
    arena_init(&arena);
    int rc = exec_process_start(a->state_dir, e->id, argv_of(json_object_get(line, "command"), &arena),
                                env_of(json_object_get(line, "env"), &arena),
                                json_is_true(json_object_get(line, "terminal")) ? EXEC_TERMINAL : EXEC_PIPES,
                                number(line, "rows", 24), number(line, "columns", 80), &e->beside, err);
    arena_done(&arena);
    if (rc < 0)
        return rc;
    e->program = true;
    (void)fcntl(e->beside.in, F_SETFL, O_NONBLOCK); /* a program that does not read must not block the agent */
    pipe_begin(e, &e->out, e->beside.out, "out");
    pipe_begin(e, &e->err, e->beside.err, "err");
    return loop_watch_fd(a->loop, e->beside.pidfd, EPOLLIN, program_ended, e, &e->ended, err);
}

/* ---- signal ----------------------------------------------------------------------------------------------------- */

static int send_signal(struct agent *a, uint64_t id, const json_t *signal, struct berth_err *err)
{
    const struct agent_instance *r = instance_find(a, id);
    int signo = json_is_integer(signal) ? (int)json_integer_value(signal)
                                        : signal_number(json_string_value(signal) ? json_string_value(signal) : "");
    if (!r || r->phase != INSTANCE_RUNNING || r->pid_fd < 0)
        return err_set(err, ESRCH, "the instance is not running on this node");
    if (image_is_vm(r->config))
        return err_set(err, ENOTSUP, "signals to virtual machines are not supported; stop it instead");
    if (signo <= 0)
        return err_set(err, EINVAL, "unknown signal");
    if (syscall(SYS_pidfd_send_signal, r->pid_fd, signo, NULL, 0) < 0)
        return err_set(err, errno, "cannot send the signal: %s", strerror(errno));
    return 0;
}

/* ---- lines of the stream ---------------------------------------------------------------------------------------- */

static void begin(struct agent_sessions *all, const char *call, const char *verb, const json_t *line)
{
    struct agent *a = all->agent;
    struct berth_err err = {0};
    uint64_t id = (uint64_t)json_integer_value(json_object_get(line, "instance"));
    if (strcmp(verb, "signal") == 0) {
        int rc = send_signal(a, id, json_object_get(line, "signal"), &err);
        send_end(a, call, rc < 0 ? -1 : 0, rc < 0 ? err.text : NULL);
        return;
    }
    if (all->at.len >= SESSIONS_MAX) {
        send_end(a, call, -1, "too many concurrent sessions on this node");
        return;
    }
    struct agent_session *e = mem_zalloc(sizeof *e);
    *e = (struct agent_session){
        .all = all, .id = id, .exit = -1, .beside = {.pidfd = -1, .in = -1, .out = -1, .err = -1, .word = -1}
    };
    e->call = mem_strdup(call);
    e->out.fd = e->err.fd = -1;
    vec_push(&all->at, e);
    int rc = strcmp(verb, "logs") == 0 ? log_begin(e, line, &err)
             : strcmp(verb, "exec") == 0
                 ? program_begin(e, line, &err)
                 : err_set(&err, ENOTSUP, "this agent does not support sessions of type '%s'", verb);
    if (rc < 0) {
        send_end(a, call, -1, err.text);
        session_free(e);
    }
}

void sessions_handle_line(struct agent_sessions *all, const json_t *line)
{
    const char *call = json_string_value(json_object_get(line, "call"));
    const char *verb = json_string_value(json_object_get(line, "verb"));
    const char *input = json_string_value(json_object_get(line, "input"));
    struct agent_session *e = call ? session_find(all, call) : NULL;
    if (!call || (verb && e))
        return;
    if (verb) {
        begin(all, call, verb, line);
        return;
    }
    if (!e)
        return;
    if (input && e->program && !input_take(e, input)) {
        send_end(all->agent, call, -1, "the program read its input too slowly; more than 8 MiB were waiting");
        session_free(e);
        return;
    }
    if (json_is_true(json_object_get(line, "eof"))) {
        e->eof = true;
        input_more(e);
    }
    if (json_object_get(line, "rows") && e->program)
        exec_process_resize(&e->beside, number(line, "rows", 24), number(line, "columns", 80));
    if (json_is_true(json_object_get(line, "close")))
        session_free(e);
}

void sessions_close_all(struct agent_sessions *all)
{
    while (all->at.len)
        session_free(all->at.at[0]);
}

struct agent_sessions *sessions_new(struct agent *a)
{
    struct agent_sessions *all = mem_zalloc(sizeof *all);
    all->agent = a;
    return all;
}

void sessions_free(struct agent_sessions *all)
{
    if (!all)
        return;
    sessions_close_all(all);
    vec_done(&all->at);
    mem_free(all);
}
