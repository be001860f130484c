/* async_lane.c - sends requests directly on connections that libcurl has made, at half of libcurl's CPU cost.
 *
 * libcurl resolves names, connects, and handles certificates. After that, this file writes the requests and reads the
 * answers, one at a time. A lane is such a connection. If a kept-alive lane turns out to be closed before a byte of the
 * answer arrived, the request is sent once more on a new lane, as libcurl does.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/mem.h"
#include "net/client/answer.h"
#include "net/client/async_inner.h"

enum {
    READ_BYTES = 32768, /* larger than a TLS record: unread data of a record causes no further event */
    EMPTY_READS_MAX =
        /* A TLS record without application data reads as nothing, although an answer may follow that has already left
         * the descriptor. */
    3,
};

enum lane_state { LANE_CONNECTS, LANE_SPEAKS, LANE_IDLE };

struct lane {
    struct async *a;
    struct async_call *handle; /* holds the connection, and is the caller's reference to the request */
    size_t place;              /* index among all lanes */
    enum lane_state state;
    curl_socket_t fd;
    int64_t requested_ns;      /* when the connection was requested, by the loop's clock */
    struct loop_source *timer; /* for the timeout, or for reporting a failure */
    int64_t timeout_at_ns;     /* timeout of this request */
    bool used;                 /* the lane has answered an earlier request */
    bool is_retry;             /* this request was already sent on another lane */
    CURLcode send_error;       /* error while sending, reported later; CURLE_OK: none */
    struct str origin;         /* "https://host:port" */
    struct str out;            /* the request */
    size_t sent;               /* bytes sent of `out` */
    struct str in;             /* the answer so far */
    struct answer_head head;   /* valid if its status is not 0 */
};

/* Removes the handle from libcurl, which closes the connection. */
static void disconnect(struct lane *lane)
{
    struct async *a = lane->a;
    if (lane->fd != CURL_SOCKET_BAD)
        async_unwatch(a, lane->fd);
    lane->fd = CURL_SOCKET_BAD;
    (void)curl_multi_remove_handle(a->multi, lane->handle->curl);
}

static void lane_free(struct lane *lane)
{
    struct async *a = lane->a;
    a->lanes.at[lane->place] = a->lanes.at[--a->lanes.len];
    a->lanes.at[lane->place]->place = lane->place;
    for (size_t i = 0; lane->state == LANE_IDLE && i < a->lanes_idle.len; i++)
        if (a->lanes_idle.at[i] == lane) {
            memmove(&a->lanes_idle.at[i], &a->lanes_idle.at[i + 1], (--a->lanes_idle.len - i) * sizeof lane);
            break;
        }
    disconnect(lane);
    async_handle_free(lane->handle);
    loop_source_free(lane->timer);
    str_done(&lane->origin);
    str_done(&lane->out);
    str_done(&lane->in);
    mem_free(lane);
}

void lanes_close(struct async *a, bool all)
{
    while (a->lanes_idle.len)
        lane_free(a->lanes_idle.at[a->lanes_idle.len - 1]);
    while (all && a->lanes.len)
        lane_free(a->lanes.at[0]);
    if (all) {
        vec_done(&a->lanes);
        vec_done(&a->lanes_idle);
        str_done(&a->spare);
    }
}

static bool is_outdated(const struct lane *lane)
{
    return lane->a->certs_changed_ns && lane->requested_ns <= lane->a->certs_changed_ns;
}

/* ---- end of a request ------------------------------------------------------------------------------------------- */

/* Reports the answer. The lane is idle before the callback, which may start the next request on the lane; that request
 * uses other memory. */
static void lane_report_answer(struct lane *lane, bool keeps)
{
    struct async *a = lane->a;
    struct str in = lane->in;
    const struct async_answer answer = {.status = lane->head.status,
                                        .text = "",
                                        .body = in.at + lane->head.len,
                                        .len = in.len - lane->head.len,
                                        .sent = true,
                                        .retry_after_s = lane->head.retry_after_s};
    void (*done)(void *, const struct async_answer *) = lane->handle->done;
    void *ctx = lane->handle->ctx;
    lane->in = a->spare;
    a->spare = (struct str){0};
    lane->used = true;
    lane->state = LANE_IDLE;
    loop_timer_set(lane->timer, INT64_MAX);
    if (keeps && !is_outdated(lane) && a->lanes_idle.len < a->idle_max)
        vec_push(&a->lanes_idle, lane);
    else
        lane_free(lane);
    done(ctx, &answer);
    if (a->spare.at || in.cap > ANSWER_BYTES_KEPT)
        str_done(&in);
    else
        a->spare = in;
}

static void lane_report_failure(struct lane *lane, const char *text)
{
    void (*done)(void *, const struct async_answer *) = lane->handle->done;
    void *ctx = lane->handle->ctx;
    CLEANUP(str) struct str said = {0};
    str_add(&said, text);
    bool sent = lane->sent > 0 || lane->is_retry;
    lane_free(lane);
    done(ctx, &(struct async_answer){.text = said.at, .body = "", .sent = sent});
}

static const char *words(const struct lane *lane, CURLcode code)
{
    return lane->handle->error[0] ? lane->handle->error : curl_easy_strerror(code);
}

/* Handles a connection that failed. */
static void lane_connection_failed(struct lane *lane, const char *text)
{
    if (!lane->used || lane->is_retry || lane->in.len) {
        lane_report_failure(lane, text);
        return;
    }
    /* The server closed the idle connection. Sends the request again on a new connection, with the same call. */
    struct async *a = lane->a;
    disconnect(lane);
    lane->used = false;
    lane->is_retry = true;
    lane->sent = 0;
    lane->send_error = CURLE_OK;
    lane->state = LANE_CONNECTS;
    lane->requested_ns = loop_now_ns(a->loop);
    loop_timer_set(lane->timer, lane->timeout_at_ns); /* the timer may have been set to report the failure */
    (void)curl_multi_add_handle(a->multi, lane->handle->curl);
}

/* ---- sending and receiving -------------------------------------------------------------------------------------- */

static bool is_complete(struct lane *lane, bool at_end, bool *ret_bad)
{
    size_t joined = 0;
    *ret_bad = false;
    if (!lane->head.status) {
        int rc = answer_head_read(lane->in.at, lane->in.len, &lane->head);
        *ret_bad = rc < 0;
        if (rc <= 0)
            return false;
    }
    const struct answer_head *head = &lane->head;
    size_t have = lane->in.len - head->len;
    if (head->chunked) {
        int rc = answer_chunks_join(lane->in.at + head->len, have, &joined);
        *ret_bad = rc < 0;
        if (rc > 0)
            lane->in.len = head->len + joined;
        lane->in.at[lane->in.len] = '\0';
        return rc > 0;
    }
    if (head->body_len < 0)
        return at_end;
    *ret_bad = have > (uint64_t)head->body_len; /* the server sent more than it announced */
    return have == (uint64_t)head->body_len;
}

static void lane_receive(struct lane *lane)
{
    char room[READ_BYTES];
    for (unsigned nothings = 0; nothings < EMPTY_READS_MAX;) {
        size_t len = 0;
        bool bad = false;
        CURLcode code = curl_easy_recv(lane->handle->curl, room, sizeof room, &len);
        if (code == CURLE_AGAIN) {
            nothings++;
            continue;
        }
        bool at_end = code != CURLE_OK || len == 0;
        str_add_bytes(&lane->in, room, len);
        if (lane->in.len > ASYNC_BODY_BYTES_MAX) {
            lane_report_failure(lane, "the answer is too large");
            return;
        }
        if (lane->in.len && is_complete(lane, at_end && code == CURLE_OK, &bad)) {
            lane_report_answer(lane, !at_end && !lane->head.closes);
            return;
        }
        if (bad)
            lane_report_failure(lane, "the answer cannot be understood");
        else if (at_end)
            lane_connection_failed(lane,
                                   code == CURLE_OK ? "the connection ended before the answer did" : words(lane, code));
        if (bad || at_end)
            return;
    }
}

/* Sends the rest of the request. An error is reported later, because the caller may still be inside async_start. */
static void lane_send(struct lane *lane)
{
    while (lane->sent < lane->out.len) {
        size_t len = 0;
        CURLcode code = curl_easy_send(lane->handle->curl, lane->out.at + lane->sent, lane->out.len - lane->sent, &len);
        if (code == CURLE_AGAIN)
            break;
        if (code != CURLE_OK) {
            lane->send_error = code;
            loop_timer_set(lane->timer, loop_now_ns(lane->a->loop));
            return;
        }
        lane->sent += len;
    }
    (void)async_watch(lane->a, lane->fd, lane->sent < lane->out.len ? EPOLLIN | EPOLLOUT : EPOLLIN, lane);
}

void lane_ready(struct lane *lane, uint32_t events)
{
    assert(lane->state != LANE_CONNECTS);
    if (lane->state == LANE_IDLE) { /* the server has closed, or has sent unexpected data */
        char room[READ_BYTES];
        size_t len;
        if (curl_easy_recv(lane->handle->curl, room, sizeof room, &len) != CURLE_AGAIN)
            lane_free(lane);
        return;
    }
    if (lane->send_error != CURLE_OK)
        return; /* the timer reports the error */
    if (events & EPOLLOUT)
        lane_send(lane);
    if (lane->send_error == CURLE_OK && events & ~(uint32_t)EPOLLOUT)
        lane_receive(lane);
}

static void on_timer(void *ctx)
{
    struct lane *lane = ctx;
    if (lane->send_error != CURLE_OK)
        lane_connection_failed(lane, words(lane, lane->send_error));
    else
        lane_report_failure(lane, "it took too long");
}

void lane_connected(struct lane *lane, CURLcode code)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (code == CURLE_OK)
        (void)curl_easy_getinfo(lane->handle->curl, CURLINFO_ACTIVESOCKET, &fd);
    if (fd == CURL_SOCKET_BAD) {
        lane_report_failure(lane, words(lane, code));
        return;
    }
    lane->fd = fd;
    lane->state = LANE_SPEAKS;
    lane_send(lane);
}

/* ---- start of a request ----------------------------------------------------------------------------------------- */

/* Returns the length of the "https://host:port" part of a url. The target follows. */
static size_t origin_len(const char *url)
{
    const char *host = strstr(url, "://");
    return host ? (size_t)(host - url) + 3 + strcspn(host + 3, "/?") : 0;
}

static bool is_header_safe(const char *text, bool blanks)
{
    for (; text && *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f || (*text == ' ' && !blanks))
            return false;
    return true;
}

bool lane_can_send(const struct async *a, const struct async_request *q)
{
    size_t len = origin_len(q->url);
    return a->lean && !q->piece && len && q->url[len] == '/' && !memchr(q->url, '@', len) &&
           strcmp(q->method, "HEAD") != 0 && is_header_safe(q->method, false) && is_header_safe(q->url, false) &&
           is_header_safe(q->token, false) && is_header_safe(q->content_type, true) && is_header_safe(q->accept, true);
}

static void add_field(struct str *to, const char *name, const char *value)
{
    if (!value)
        return;
    str_add(to, name);
    str_add(to, value);
    str_add(to, "\r\n");
}

static void write_request(struct lane *lane, const struct async_request *q)
{
    struct str *out = &lane->out;
    size_t len = origin_len(q->url);
    const char *host = strstr(q->url, "://") + 3;
    bool sends = q->body || strcmp(q->method, "POST") == 0 || strcmp(q->method, "PUT") == 0;
    char number[24];
    str_clear(out);
    str_add(out, q->method);
    str_add_char(out, ' ');
    str_add(out, q->url + len);
    str_add(out, " HTTP/1.1\r\nHost: ");
    str_add_bytes(out, host, len - (size_t)(host - q->url));
    str_add(out, "\r\nUser-Agent: ");
    str_add(out, lane->a->agent);
    str_add(out, "\r\n");
    add_field(out, "Authorization: Bearer ", q->token);
    add_field(out, "Accept: ", q->accept ? q->accept : "*/*");
    if (sends) {
        add_field(out, "Content-Type: ", q->content_type ? q->content_type : "application/json");
        add_field(out, "Content-Length: ", str_u64(q->body ? q->body_len : 0, number));
    }
    str_add(out, "\r\n");
    if (q->body)
        str_add_bytes(out, q->body, q->body_len);
}

/* Returns an idle lane to the same server, or a new lane. */
static struct lane *lane_find_or_create(struct async *a, const char *origin, size_t len)
{
    for (size_t i = a->lanes_idle.len; i-- > 0;) {
        struct lane *lane = a->lanes_idle.at[i];
        if (lane->origin.len != len || memcmp(lane->origin.at, origin, len) != 0)
            continue;
        memmove(&a->lanes_idle.at[i], &a->lanes_idle.at[i + 1], (--a->lanes_idle.len - i) * sizeof lane);
        lane->state = LANE_SPEAKS;
        return lane;
    }
    struct lane *lane = mem_zalloc(sizeof *lane);
    lane->a = a;
    lane->handle = async_handle_new(a);
    lane->handle->lane = lane;
    lane->timer = loop_timer_new(a->loop, on_timer, lane);
    lane->requested_ns = loop_now_ns(a->loop);
    lane->fd = CURL_SOCKET_BAD;
    lane->place = a->lanes.len;
    vec_push(&a->lanes, lane);
    str_add_bytes(&lane->origin, origin, len);
    curl_easy_setopt(lane->handle->curl, CURLOPT_URL, lane->origin.at);
    curl_easy_setopt(lane->handle->curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(lane->handle->curl, CURLOPT_FRESH_CONNECT, 1L);
    return lane;
}

struct async_call *lane_start(struct async *a, const struct async_request *q)
{
    struct lane *lane = lane_find_or_create(a, q->url, origin_len(q->url));
    struct async_call *call = lane->handle;
    call->done = q->done;
    call->ctx = q->ctx;
    call->error[0] = '\0';
    lane->is_retry = false;
    lane->sent = 0;
    lane->send_error = CURLE_OK;
    lane->head = (struct answer_head){0};
    str_clear(&lane->in);
    write_request(lane, q);
    lane->timeout_at_ns = loop_now_ns(a->loop) + (q->timeout_ns ? q->timeout_ns : ASYNC_TIMEOUT_NS);
    loop_timer_set(lane->timer, lane->timeout_at_ns);
    if (lane->state == LANE_CONNECTS)
        (void)curl_multi_add_handle(a->multi, call->curl); /* sets the timer, which starts the connection */
    else
        lane_send(lane);
    return call;
}

void lane_cancel(struct lane *lane)
{
    lane_free(lane);
}
