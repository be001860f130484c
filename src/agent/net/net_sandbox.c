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

struct half_call {
    struct half *half;
    struct half_call *next, **back; /* back: the pointer that points to this entry */
    uint32_t id;
    int64_t deadline_ns; /* INT64_MAX: none */
    struct str answer;
    void (*piece)(void *ctx, const char *at, size_t len);
    void (*done)(void *ctx, const struct async_answer *answer);
    void *ctx;
};

struct half {
    struct loop *loop;
    const struct log *log;
    struct half_config config;
    pid_t pid; /* 0: no process */
    int fd;
    struct loop_source *source, *again, *overdue;
    uint32_t identity, last; /* last numbers sent: of certificates, of requests */
    bool asked, trial;       /* asked: verdict on the last certificates is pending; trial: they are not the files' */
    unsigned failures;
    int64_t born_ns, overdue_ns;
    struct half_call *calls;
    size_t answers_bytes;
    struct str out;
    size_t in_len;
    char in[HALF_HEAD_BYTES + HALF_PIECE_BYTES_MAX]; /* large enough for the longest frame from the sandbox */
};

static void note(const struct half *h, enum log_level level, const char *event, const char *text)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    log_write(h->log, now.tv_sec * SECOND + now.tv_nsec, level, event, LOG_TEXT("text", text));
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void call_unlink(struct half_call *c)
{
    *c->back = c->next;
    if (c->next)
        c->next->back = c->back;
}

static void call_free(struct half_call *c)
{
    c->half->answers_bytes -= c->answer.len;
    str_done(&c->answer);
    mem_free(c);
}

static void call_end(struct half_call *c, int status, const char *text)
{
    const struct async_answer answer = {
        .status = status, .text = text, .body = str_text(&c->answer), .len = c->answer.len, .sent = true};
    call_unlink(c);
    c->done(c->ctx, &answer);
    call_free(c);
}

/* Fails all pending requests. Requests that callbacks start meanwhile stay queued for the next process. */
static void calls_fail(struct half *h, const char *text)
{
    struct half_call *all = h->calls;
    h->calls = NULL;
    if (all)
        all->back = &all;
    while (all)
        call_end(all, 0, text);
}

/* ---- process lifetime ------------------------------------------------------------------------------------------- */

static void half_end(struct half *h)
{
    loop_source_free(h->source);
    h->source = NULL;
    close_fd_cleanup(&h->fd);
    h->fd = -1;
    if (h->pid)
        (void)kill(h->pid, SIGKILL);
}

/* Reaps the process without blocking. False: it has not exited yet. */
static bool half_reap(struct half *h)
{
    if (h->pid && waitpid(h->pid, NULL, WNOHANG) == 0)
        return false;
    h->pid = 0;
    return true;
}

/* Gives up the process: kills it, fails its requests and schedules a restart. */
static void half_lost(struct half *h, const char *text)
{
    int64_t now_ns = loop_now_ns(h->loop);
    bool trial = h->trial;
    note(h, LEVEL_WARN, "network.lost", text);
    half_end(h);
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

static struct half_call *call_find(const struct half *h, uint32_t id)
{
    struct half_call *c = h->calls;
    while (c && c->id != id)
        c = c->next;
    return c;
}

/* Handles the verdict on a certificate. Returns NULL, or why the process must be restarted: without a certificate it
 * would refuse every request. */
static const char *take_known(struct half *h, struct half_frame *f)
{
    char text[HALF_TEXT_BYTES_MAX + 1];
    int64_t not_after_ns = 0;
    bool trial = h->trial;
    if (!h->asked || !half_take_number(f, &not_after_ns) || (f->call != h->identity && f->call != 0))
        return NULL; /* call 0: the sandbox failed to start */
    half_take_words(f, text);
    h->asked = h->trial = false; /* one verdict for each certificate */
    bool good = f->call && not_after_ns > 0;
    h->config.known(h->config.ctx, good ? not_after_ns : 0, text, trial);
    return good || trial ? NULL : "the net sandbox has no certificate for the daemon";
}

/* Appends part of an answer. False: the answers exceed their bound. */
static bool take_piece(struct half_call *c, const struct half_frame *f)
{
    if (c->piece) {
        c->piece(c->ctx, f->at, f->len);
        return true;
    }
    if (f->len > ANSWERS_BYTES_MAX - c->half->answers_bytes)
        return false;
    c->half->answers_bytes += f->len;
    str_add_bytes(&c->answer, f->at, f->len);
    return true;
}

static bool take_end(struct half_call *c, struct half_frame *f)
{
    char text[HALF_TEXT_BYTES_MAX + 1];
    int64_t status = 0;
    if (!half_take_number(f, &status) || (status != 0 && (status < 100 || status > 999)))
        return false;
    half_take_words(f, text);
    call_end(c, (int)status, text);
    return true;
}

/* Handles one frame. Returns NULL, or why the process must be killed. */
static const char *take_frame(struct half *h, struct half_frame *f)
{
    if (f->kind == HALF_KNOWN)
        return take_known(h, f);
    struct half_call *c = call_find(h, f->call);
    if (!c) /* it was cancelled */
        return NULL;
    return (f->kind == HALF_PIECE ? take_piece(c, f) : take_end(c, f)) ? NULL : forbidden;
}

/* Parses the received frames. Callbacks may start and cancel requests, but must not free the sandbox handle. */
static void take_bytes(struct half *h)
{
    struct half_frame frame;
    const char *why = NULL;
    size_t done = 0;
    ssize_t n = 0;
    while (!why && (n = half_frame_read(h->in + done, h->in_len - done, true, &frame)) > 0) {
        done += (size_t)n;
        why = take_frame(h, &frame);
    }
    if (why || n < 0) {
        half_lost(h, why ? why : forbidden);
        return;
    }
    memmove(h->in, h->in + done, h->in_len - done);
    h->in_len -= done;
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

/* Sends what the socket accepts; the rest waits for EPOLLOUT. A closed socket is detected when reading. */
static void send_more(struct half *h)
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

static void half_ready(void *ctx, uint32_t events)
{
    struct half *h = ctx;
    if (events & EPOLLOUT)
        send_more(h);
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    ssize_t n = recv(h->fd, h->in + h->in_len, sizeof h->in - h->in_len, MSG_DONTWAIT);
    if (n > 0) {
        h->in_len += (size_t)n;
        take_bytes(h);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        half_lost(h, "the net sandbox has ended");
    }
}

static void identity_add(struct half *h, struct str *to, const char *pem, const char *ca)
{
    size_t began = half_frame_begin(to, HALF_IDENTITY, ++h->identity);
    h->asked = true;
    half_add_text(to, pem);
    half_add_text(to, ca); /* empty: unchanged */
    half_frame_end(to, began);
}

static int half_begin(struct half *h, struct berth_err *err)
{
    CLEANUP(mem) char *ca = NULL, *pem = NULL;
    CLEANUP(str) struct str out = {0};
    int rc = identity_file_read(h->config.ca_path, &ca, err);
    if (rc == 0)
        rc = identity_file_read(h->config.pem_path, &pem, err);
    if (rc == 0)
        rc = half_spawn(&h->config.user, &h->pid, &h->fd, err);
    if (rc == 0)
        rc = loop_watch_fd(h->loop, h->fd, EPOLLIN, half_ready, h, &h->source, err);
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
    struct half *h = ctx;
    struct berth_err err;
    h->born_ns = loop_now_ns(h->loop);
    if (!half_reap(h)) {
        loop_timer_set(h->again, h->born_ns + AGAIN_NS);
        return;
    }
    if (half_begin(h, &err) == 0)
        return;
    half_lost(h, err.text);
    h->config.known(h->config.ctx, 0, err.text, false);
}

/* ---- interface -------------------------------------------------------------------------------------------------- */

static void overdue(void *ctx)
{
    struct half *h = ctx;
    int64_t now_ns = loop_now_ns(h->loop), first_ns = INT64_MAX;
    for (const struct half_call *c = h->calls; c; c = c->next)
        first_ns = c->deadline_ns < first_ns ? c->deadline_ns : first_ns;
    h->overdue_ns = first_ns > now_ns ? first_ns : INT64_MAX;
    loop_timer_set(h->overdue, h->overdue_ns);
    if (first_ns <= now_ns)
        half_lost(h, "the net sandbox does not answer");
}

struct half_call *half_start(struct half *h, const struct async_request *q)
{
    struct half_call *c = mem_zalloc(sizeof *c);
    int64_t now_ns = loop_now_ns(h->loop);
    const struct half_request request = {.timeout_ns = q->timeout_ns,
                                         .stream = q->piece != NULL,
                                         .method = q->method,
                                         .url = q->url,
                                         .type = q->content_type ? q->content_type : "",
                                         .body = q->body,
                                         .body_len = q->body ? q->body_len : 0};
    size_t len = request.body_len + strlen(q->url) + KEPT_BYTES;
    *c = (struct half_call){
        .half = h, .next = h->calls, .back = &h->calls, .piece = q->piece, .done = q->done, .ctx = q->ctx};
    c->id = ++h->last;
    c->deadline_ns = q->piece ? INT64_MAX : now_ns + (q->timeout_ns ? q->timeout_ns : TIMEOUT_NS) + OVERDUE_NS;
    if (h->calls)
        h->calls->back = &c->next;
    h->calls = c;
    if (len > HALF_REQUEST_BYTES_MAX || h->out.len + len > QUEUE_BYTES_MAX)
        /* queue full: fails from the timer, because the caller is not ready for its callback yet */
        c->deadline_ns = now_ns;
    else
        half_request_add(&h->out, c->id, &request);
    if (c->deadline_ns < h->overdue_ns) {
        h->overdue_ns = c->deadline_ns;
        loop_timer_set(h->overdue, h->overdue_ns);
    }
    send_more(h);
    return c;
}

void half_cancel(struct half_call *c)
{
    struct half *h = c->half;
    half_frame_end(&h->out, half_frame_begin(&h->out, HALF_CANCEL, c->id));
    call_unlink(c);
    call_free(c);
    send_more(h);
}

void half_try(struct half *h, const char *pem)
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

struct half *half_new(struct loop *loop, const struct half_config *config, const struct log *log)
{
    struct half *h = mem_zalloc(sizeof *h);
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

void half_free(struct half *h)
{
    if (!h)
        return;
    half_end(h);
    (void)half_reap(h);
    while (h->calls) {
        struct half_call *c = h->calls;
        call_unlink(c);
        call_free(c);
    }
    loop_source_free(h->again);
    loop_source_free(h->overdue);
    str_done(&h->out);
    mem_free(h);
}
