#include "agent/net/net_sandbox.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/net/identity.h"
#include "agent/net/net_frame.h"
#include "base/mem.h"
#include "machine/launch/state_file.h"

#define SECOND INT64_C(1000000000)
#define AGAIN_NS (SECOND / 10) /* first delay before a restart; doubles up to AGAIN_NS_MAX */
#define AGAIN_NS_MAX (5 * SECOND)
#define STEADY_NS (10 * SECOND)              /* a process that lived this long resets the delay */
#define OVERDUE_NS (10 * SECOND)             /* grace beyond a request's timeout, which the sandbox itself enforces */
#define TIMEOUT_NS (30 * SECOND)             /* of a request without timeout */
#define ANSWERS_BYTES_MAX ((size_t)64 << 20) /* bound of all incomplete answers */
#define QUEUE_BYTES_MAX ((size_t)128 << 20)
enum { KEPT_BYTES = 64 * 1024 };

struct net_sandbox_request {
    struct net_sandbox *net_sandbox;
    struct net_sandbox_request *next, **back; /* back: the pointer that points to this entry */
    uint32_t id;
    int64_t deadline_ns; /* INT64_MAX: none */
    struct str answer;
    void (*piece)(void *ctx, const char *at, size_t len);
    void (*done)(void *ctx, const struct async_answer *answer);
    void *ctx;
};

struct net_sandbox {
    struct loop *loop;
    const struct log *log;
    struct net_sandbox_config config;
    pid_t pid; /* 0: no process */
    int fd;
    struct loop_source *source, *again, *overdue;
    uint32_t identity, last; /* last numbers sent: of certificates, of requests */
    bool asked, trial;       /* asked: verdict on the last certificates is pending; trial: they are not the files' */
    unsigned failures;
    int64_t born_ns, overdue_ns;
    struct net_sandbox_request *calls;
    size_t answers_bytes;
    struct str out;
    size_t in_len;
    char
        in[NET_FRAME_HEADER_BYTES + NET_FRAME_DATA_BYTES_MAX]; /* large enough for the longest frame from the sandbox */
};

static void note(const struct net_sandbox *h, enum log_level level, const char *event, const char *text)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    log_write(h->log, now.tv_sec * SECOND + now.tv_nsec, level, event, LOG_TEXT("text", text));
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void call_unlink(struct net_sandbox_request *c)
{
    *c->back = c->next;
    if (c->next)
        c->next->back = c->back;
}

static void call_free(struct net_sandbox_request *c)
{
    c->net_sandbox->answers_bytes -= c->answer.len;
    str_done(&c->answer);
    mem_free(c);
}

static void call_end(struct net_sandbox_request *c, int status, const char *text)
{
    const struct async_answer answer = {
        .status = status, .text = text, .body = str_text(&c->answer), .len = c->answer.len, .sent = true};
    call_unlink(c);
    c->done(c->ctx, &answer);
    call_free(c);
}

/* Fails all pending requests. Requests that callbacks start meanwhile stay queued for the next process. */
static void calls_fail(struct net_sandbox *h, const char *text)
{
    struct net_sandbox_request *all = h->calls;
    h->calls = NULL;
    if (all)
        all->back = &all;
    while (all)
        call_end(all, 0, text);
}

/* ---- process lifetime ------------------------------------------------------------------------------------------- */

static void process_kill(struct net_sandbox *h)
{
    loop_source_free(h->source);
    h->source = NULL;
    close_fd_cleanup(&h->fd);
    h->fd = -1;
    if (h->pid)
        (void)kill(h->pid, SIGKILL);
}

/* Reaps the process without blocking. False: it has not exited yet. */
static bool process_reap(struct net_sandbox *h)
{
    if (h->pid && waitpid(h->pid, NULL, WNOHANG) == 0)
        return false;
    h->pid = 0;
    return true;
}

/* Gives up the process: kills it, fails its requests and schedules a restart. */
static void process_lost(struct net_sandbox *h, const char *text)
{
    int64_t now_ns = loop_now_ns(h->loop);
    bool trial = h->trial;
    note(h, LEVEL_WARN, "network.lost", text);
    process_kill(h);
    h->failures = now_ns - h->born_ns > STEADY_NS ? 0 : h->failures + 1;
    int64_t wait_ns = h->failures < 7 ? AGAIN_NS << h->failures : AGAIN_NS_MAX;
    loop_timer_set(h->again, now_ns + (wait_ns < AGAIN_NS_MAX ? wait_ns : AGAIN_NS_MAX));
    h->trial = false;
    h->in_len = 0;
    str_done(&h->out);
    calls_fail(h, text);
    if (trial)
        h->config.known(h->config.ctx, 0, text, true);
}

/* ---- receiving -------------------------------------------------------------------------------------------------- */

static const char forbidden[] = "the net sandbox sent a forbidden message";

static struct net_sandbox_request *call_find(const struct net_sandbox *h, uint32_t id)
{
    struct net_sandbox_request *c = h->calls;
    while (c && c->id != id)
        c = c->next;
    return c;
}

/* Handles the verdict on a certificate. Returns NULL, or why the process must be restarted: without a certificate it
 * would refuse every request. */
static const char *handle_certificate_verdict(struct net_sandbox *h, struct net_frame *f)
{
    char text[NET_FRAME_TEXT_BYTES_MAX + 1];
    int64_t not_after_ns = 0;
    bool trial = h->trial;
    if (!h->asked || !net_frame_take_number(f, &not_after_ns) || (f->call != h->identity && f->call != 0))
        return NULL; /* call 0: the sandbox failed to start */
    net_frame_take_printable(f, text);
    h->asked = h->trial = false; /* one verdict for each certificate */
    bool good = f->call && not_after_ns > 0;
    h->config.known(h->config.ctx, good ? not_after_ns : 0, text, trial);
    return good || trial ? NULL : "the net sandbox has no certificate for the daemon";
}

/* Appends part of an answer. False: the answers exceed their bound. */
static bool take_piece(struct net_sandbox_request *c, const struct net_frame *f)
{
    if (c->piece) {
        c->piece(c->ctx, f->at, f->len);
        return true;
    }
    if (f->len > ANSWERS_BYTES_MAX - c->net_sandbox->answers_bytes)
        return false;
    c->net_sandbox->answers_bytes += f->len;
    str_add_bytes(&c->answer, f->at, f->len);
    return true;
}

static bool take_end(struct net_sandbox_request *c, struct net_frame *f)
{
    char text[NET_FRAME_TEXT_BYTES_MAX + 1];
    int64_t status = 0;
    if (!net_frame_take_number(f, &status) || (status != 0 && (status < 100 || status > 999)))
        return false;
    net_frame_take_printable(f, text);
    call_end(c, (int)status, text);
    return true;
}

/* Handles one frame. Returns NULL, or why the process must be killed. */
static const char *take_frame(struct net_sandbox *h, struct net_frame *f)
{
    if (f->kind == NET_FRAME_CERTIFICATE)
        return handle_certificate_verdict(h, f);
    struct net_sandbox_request *c = call_find(h, f->call);
    if (!c) /* it was cancelled */
        return NULL;
    return (f->kind == NET_FRAME_DATA ? take_piece(c, f) : take_end(c, f)) ? NULL : forbidden;
}

/* Parses the received frames. Callbacks may start and cancel requests, but must not free the sandbox handle. */
static void take_bytes(struct net_sandbox *h)
{
    struct net_frame frame;
    const char *why = NULL;
    size_t done = 0;
    ssize_t n = 0;
    while (!why && (n = net_frame_read(h->in + done, h->in_len - done, true, &frame)) > 0) {
        done += (size_t)n;
        why = take_frame(h, &frame);
    }
    if (why || n < 0) {
        process_lost(h, why ? why : forbidden);
        return;
    }
    memmove(h->in, h->in + done, h->in_len - done);
    h->in_len -= done;
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

/* Sends what the socket accepts; the rest waits for EPOLLOUT. A closed socket is detected when reading. */
static void send_more(struct net_sandbox *h)
{
    if (h->fd < 0)
        return;
    ssize_t n = h->out.len ? send(h->fd, h->out.at, h->out.len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    if (n > 0) {
        memmove(h->out.at, h->out.at + n, h->out.len - (size_t)n);
        h->out.len -= (size_t)n;
    }
    if (!h->out.len && h->out.cap > KEPT_BYTES)
        str_done(&h->out);
    loop_set_events(h->source, h->out.len ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void process_ready(void *ctx, uint32_t events)
{
    struct net_sandbox *h = ctx;
    if (events & EPOLLOUT)
        send_more(h);
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    ssize_t n = recv(h->fd, h->in + h->in_len, sizeof h->in - h->in_len, MSG_DONTWAIT);
    if (n > 0) {
        h->in_len += (size_t)n;
        take_bytes(h);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        process_lost(h, "the net sandbox has ended");
    }
}

static void identity_add(struct net_sandbox *h, struct str *to, const char *pem, const char *ca)
{
    size_t began = net_frame_begin(to, NET_FRAME_IDENTITY, ++h->identity);
    h->asked = true;
    net_frame_add_text(to, pem);
    net_frame_add_text(to, ca); /* empty: unchanged */
    net_frame_end(to, began);
}

static int process_begin(struct net_sandbox *h, struct berth_err *err)
{
    CLEANUP(mem) char *ca = NULL, *pem = NULL;
    CLEANUP(str) struct str out = {0};
    int rc = identity_file_read(h->config.ca_path, &ca, err);
    if (rc == 0)
        rc = identity_file_read(h->config.pem_path, &pem, err);
    if (rc == 0)
        rc = net_sandbox_spawn(&h->config.user, &h->pid, &h->fd, err);
    if (rc == 0)
        rc = loop_watch_fd(h->loop, h->fd, EPOLLIN, process_ready, h, &h->source, err);
    if (rc < 0)
        return rc;
    identity_add(h, &out, pem, ca); /* ahead of requests that are already queued */
    str_add_bytes(&out, str_text(&h->out), h->out.len);
    str_done(&h->out);
    h->out = out;
    out = (struct str){0};
    send_more(h);
    return 0;
}

static void begin_again(void *ctx)
{
    struct net_sandbox *h = ctx;
    struct berth_err err;
    h->born_ns = loop_now_ns(h->loop);
    if (!process_reap(h)) {
        loop_timer_set(h->again, h->born_ns + AGAIN_NS);
        return;
    }
    if (process_begin(h, &err) == 0)
        return;
    process_lost(h, err.text);
    h->config.known(h->config.ctx, 0, err.text, false);
}

/* ---- interface -------------------------------------------------------------------------------------------------- */

static void overdue(void *ctx)
{
    struct net_sandbox *h = ctx;
    int64_t now_ns = loop_now_ns(h->loop), first_ns = INT64_MAX;
    for (const struct net_sandbox_request *c = h->calls; c; c = c->next)
        first_ns = c->deadline_ns < first_ns ? c->deadline_ns : first_ns;
    h->overdue_ns = first_ns > now_ns ? first_ns : INT64_MAX;
    loop_timer_set(h->overdue, h->overdue_ns);
    if (first_ns <= now_ns)
        process_lost(h, "the net sandbox does not answer");
}

struct net_sandbox_request *net_sandbox_start(struct net_sandbox *h, const struct async_request *q)
{
    struct net_sandbox_request *c = mem_zalloc(sizeof *c);
    int64_t now_ns = loop_now_ns(h->loop);
    const struct net_frame_request request = {.timeout_ns = q->timeout_ns,
                                              .stream = q->piece != NULL,
                                              .method = q->method,
                                              .url = q->url,
                                              .type = q->content_type ? q->content_type : "",
                                              .body = q->body,
                                              .body_len = q->body ? q->body_len : 0};
    size_t len = request.body_len + strlen(q->url) + KEPT_BYTES;
    *c = (struct net_sandbox_request){
        .net_sandbox = h, .next = h->calls, .back = &h->calls, .piece = q->piece, .done = q->done, .ctx = q->ctx};
    c->id = ++h->last;
    c->deadline_ns = q->piece ? INT64_MAX : now_ns + (q->timeout_ns ? q->timeout_ns : TIMEOUT_NS) + OVERDUE_NS;
    if (h->calls)
        h->calls->back = &c->next;
    h->calls = c;
    if (len > NET_FRAME_REQUEST_BYTES_MAX || h->out.len + len > QUEUE_BYTES_MAX)
        /* queue full: fails from the timer, because the caller is not ready for its callback yet */
        c->deadline_ns = now_ns;
    else
        net_frame_add_request(&h->out, c->id, &request);
    if (c->deadline_ns < h->overdue_ns) {
        h->overdue_ns = c->deadline_ns;
        loop_timer_set(h->overdue, h->overdue_ns);
    }
    send_more(h);
    return c;
}

void net_sandbox_cancel(struct net_sandbox_request *c)
{
    struct net_sandbox *h = c->net_sandbox;
    net_frame_end(&h->out, net_frame_begin(&h->out, NET_FRAME_CANCEL, c->id));
    call_unlink(c);
    call_free(c);
    send_more(h);
}

void net_sandbox_try(struct net_sandbox *h, const char *pem)
{
    const char *why = h->fd < 0                         ? "the net sandbox has ended"
                      : h->asked                        ? "the net sandbox is starting"
                      : strlen(pem) > IDENTITY_FILE_MAX ? "the certificate is too large"
                                                        : NULL;
    if (why) {
        h->config.known(h->config.ctx, 0, why, true);
        return;
    }
    h->trial = true;
    identity_add(h, &h->out, pem, "");
    send_more(h);
}

struct net_sandbox *net_sandbox_new(struct loop *loop, const struct net_sandbox_config *config, const struct log *log)
{
    struct net_sandbox *h = mem_zalloc(sizeof *h);
    h->loop = loop;
    h->log = log;
    h->config = *config;
    h->fd = -1;
    h->overdue_ns = INT64_MAX;
    h->again = loop_timer_new(loop, begin_again, h);
    h->overdue = loop_timer_new(loop, overdue, h);
    loop_timer_set(h->again, loop_now_ns(loop));
    return h;
}

void net_sandbox_free(struct net_sandbox *h)
{
    if (!h)
        return;
    process_kill(h);
    (void)process_reap(h);
    while (h->calls) {
        struct net_sandbox_request *c = h->calls;
        call_unlink(c);
        call_free(c);
    }
    loop_source_free(h->again);
    loop_source_free(h->overdue);
    str_done(&h->out);
    mem_free(h);
}
