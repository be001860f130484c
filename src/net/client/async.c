/* async.c - libcurl's multi interface in the event loop: libcurl names descriptors and a timer, the loop reports
 * events.
 */
#include "net/client/async.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/client/async_inner.h"

enum {
    CONNECT_TIMEOUT_MS = 15000, /* long enough for a slow server's TLS handshake and one retransmission */
    STREAM_SILENCE_S = 90,
    CONNECTIONS_MAX = 8,
    KEEPALIVE_S = 20,
    BUFFER_BYTES = 16384,
};

/* ---- callbacks of libcurl --------------------------------------------------------------------------------------- */

static void finish(struct async *a);
static void pieces_deliver(struct async *a);

static void run(struct async *a, curl_socket_t fd, int mask)
{
    int left;
    (void)curl_multi_socket_action(a->multi, fd, mask, &left);
    pieces_deliver(a);
    finish(a);
}

static void on_ready(void *ctx, uint32_t events)
{
    struct watched *w = ctx;
    int mask = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    if (w->lane) {
        lane_ready(w->lane, events); /* w may be freed */
        return;
    }
    if (!w->idle) {
        run(w->a, w->fd, mask); /* w may be freed */
        return;
    }
    loop_source_free(w->source); /* probably closed by the peer: libcurl notices when it uses the connection again */
    w->source = NULL;
}

static int watched_set(struct watched *w, uint32_t events)
{
    w->idle = false;
    if (!w->source) {
        w->events = events;
        return loop_watch_fd(w->a->loop, w->fd, events, on_ready, w, &w->source, NULL);
    }
    if (w->events != events)
        loop_set_events(w->source, events);
    w->events = events;
    return 0;
}

static struct watched *watched_at(struct async *a, curl_socket_t fd)
{
    while (a->watched.len <= (size_t)fd)
        vec_push(&a->watched, NULL);
    if (!a->watched.at[fd]) {
        struct watched *w = a->watched.at[fd] = mem_zalloc(sizeof *w);
        w->a = a;
        w->fd = fd;
    }
    return a->watched.at[fd];
}

int async_watch(struct async *a, curl_socket_t fd, uint32_t events, struct lane *lane)
{
    struct watched *w = watched_at(a, fd);
    w->lane = lane;
    return watched_set(w, events);
}

void async_unwatch(struct async *a, curl_socket_t fd)
{
    struct watched *w = watched_at(a, fd);
    w->lane = NULL;
    w->idle = true;
}

static void watched_free(struct watched *w)
{
    w->a->watched.at[w->fd] = NULL;
    loop_source_free(w->source);
    mem_free(w);
}

/* Returns whether the descriptor is connected. libcurl closes an unconnected descriptor without a callback. */
static bool is_connected(curl_socket_t fd)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &len) == 0;
}

static int on_socket(CURL *curl, curl_socket_t fd, int what, void *ctx, void *data)
{
    struct watched *w = watched_at(ctx, fd);
    (void)curl;
    (void)data;
    if (what != CURL_POLL_REMOVE)
        return watched_set(w, (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U));
    if (w->kept && is_connected(fd))
        w->idle = true;
    else
        watched_free(w);
    return 0;
}

static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    (void)purpose;
    if (fd >= 0)
        watched_at(ctx, fd)->kept = true;
    return fd;
}

static int on_close(void *ctx, curl_socket_t fd)
{
    struct async *a = ctx;
    if ((size_t)fd < a->watched.len && a->watched.at[fd])
        watched_free(a->watched.at[fd]);
    return close(fd);
}

static void on_timer(void *ctx)
{
    run(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long ms, void *ctx)
{
    struct async *a = ctx;
    (void)multi;
    loop_timer_set(a->timer, ms < 0 ? INT64_MAX : loop_now_ns(a->loop) + (int64_t)ms * 1000000);
    return 0;
}

/* ---- one request ------------------------------------------------------------------------------------------------ */

void async_handle_free(struct async_call *c)
{
    curl_easy_cleanup(c->curl);
    str_done(&c->answer);
    str_done(&c->pieces);
    str_done(&c->body);
    mem_free(c);
}

static void idle_free(struct async *a)
{
    while (a->idle.len)
        async_handle_free(a->idle.at[--a->idle.len]);
}

/* Frees a finished call. Its handle is kept for another call, unless it was a stream or enough handles are kept. */
static void call_free(struct async_call *c)
{
    struct async *a = c->a;
    a->calls.at[c->place] = a->calls.at[--a->calls.len];
    a->calls.at[c->place]->place = c->place;
    for (size_t i = 0; c->has_pieces_queued && i < a->calls_with_pieces.len; i++)
        if (a->calls_with_pieces.at[i] == c)
            a->calls_with_pieces.at[i] = NULL;
    (void)curl_multi_remove_handle(a->multi, c->curl);
    header_set_unref(c->headers);
    if (c->piece || a->idle.len >= a->idle_max || c->answer.cap > ANSWER_BYTES_KEPT) {
        async_handle_free(c);
        return;
    }
    vec_push(&a->idle, c);
}

static size_t take_body(char *at, size_t size, size_t count, void *ctx)
{
    struct async_call *c = ctx;
    size_t len = size * count;
    long status = 0;
    if (c->piece)
        (void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200) {
        str_add_bytes(&c->pieces, at, len);
        if (!c->has_pieces_queued)
            vec_push(&c->a->calls_with_pieces, c);
        c->has_pieces_queued = true;
        return len;
    }
    if (len > ASYNC_BODY_BYTES_MAX - c->answer.len)
        return 0;
    str_add_bytes(&c->answer, at, len);
    return len;
}

static void set_body(struct async_call *c, const struct async_request *q, bool sends)
{
    str_clear(&c->body);
    if (sends) {
        str_add_bytes(&c->body, q->body, q->body ? q->body_len : 0);
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, c->body.at);
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.len);
    } else {
        curl_easy_setopt(c->curl, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, q->method);
}

static void set_times(struct async_call *c, const struct async_request *q)
{
    int64_t timeout_ns = q->timeout_ns ? q->timeout_ns : ASYNC_TIMEOUT_NS;
    if (!q->piece) {
        curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)(timeout_ns / 1000000 + 1));
        return;
    }
    long silence_s = q->timeout_ns ? (long)(q->timeout_ns / 1000000000) + 1 : STREAM_SILENCE_S;
    curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_TIME, silence_s);
}

/* Prevents reuse of connections that are older than the last certificate change. libcurl counts whole seconds; where
 * that is too coarse, every request uses a new connection. */
static void set_ages(struct async_call *c)
{
    const struct async *a = c->a;
    if (!a->certs_changed_ns)
        return;
    int64_t past_s = (loop_now_ns(a->loop) - a->certs_changed_ns) / 1000000000;
    curl_easy_setopt(c->curl, CURLOPT_MAXLIFETIME_CONN, (long)(past_s > 2 ? past_s - 1 : 1));
    curl_easy_setopt(c->curl, CURLOPT_FRESH_CONNECT, past_s > 2 ? 0L : 1L);
}

static void set_identity(CURL *h, const struct client_identity *id)
{
    if (id->ca_path) { /* trusts only this CA; reading the system's CAs takes 15 MB */
        curl_easy_setopt(h, CURLOPT_CAINFO, id->ca_path);
        curl_easy_setopt(h, CURLOPT_CAPATH, NULL);
    }
    if (id->cert_path) {
        curl_easy_setopt(h, CURLOPT_SSLCERT, id->cert_path);
        curl_easy_setopt(h, CURLOPT_SSLKEY, id->key_path);
    }
}

/* Creates a handle and sets the options that all its requests share. */
struct async_call *async_handle_new(struct async *a)
{
    struct async_call *c = mem_zalloc(sizeof *c);
    CURL *h = c->curl = curl_easy_init();
    if (!h)
        abort(); /* fails only without memory; see base/mem.h */
    c->a = a;
    curl_easy_setopt(h, CURLOPT_PRIVATE, c);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->error);
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_PROXY, "");
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    /* HTTP/2 costs a third more CPU here (110,000 instructions per request instead of 84,000), and as much traffic. */
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
    curl_easy_setopt(h, CURLOPT_USERAGENT, a->agent);
    curl_easy_setopt(h, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(h, CURLOPT_OPENSOCKETDATA, a);
    curl_easy_setopt(h, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(h, CURLOPT_CLOSESOCKETDATA, a);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(h, CURLOPT_CONNECT_TO, a->connect_to);
    set_identity(h, &a->identity);
    return c;
}

struct async_call *async_start(struct async *a, const struct async_request *request)
{
    if (lane_can_send(a, request))
        return lane_start(a, request);
    bool sends = request->body || strcmp(request->method, "POST") == 0 || strcmp(request->method, "PUT") == 0;
    struct async_call *c = a->idle.len && !request->piece ? a->idle.at[--a->idle.len] : async_handle_new(a);
    c->piece = request->piece;
    c->done = request->done;
    c->ctx = request->ctx;
    c->error[0] = '\0';
    str_clear(&c->answer);
    curl_easy_setopt(c->curl, CURLOPT_URL, request->url);
    set_ages(c);
    set_times(c, request);
    set_body(c, request, sends);
    const char *type = request->content_type ? request->content_type : "application/json";
    c->headers = header_set_ref(&a->headers, request->token, sends ? type : NULL, request->accept);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, header_set_list(c->headers));
    c->place = a->calls.len;
    vec_push(&a->calls, c);
    (void)curl_multi_add_handle(a->multi, c->curl); /* sets the timer, which starts the request */
    return c;
}

void async_cancel(struct async_call *call)
{
    if (call->lane)
        lane_cancel(call->lane);
    else
        call_free(call);
}

/* ---- end of a request ------------------------------------------------------------------------------------------- */

static void call_done(struct async_call *c, CURLcode code)
{
    long status = 0, sent = 0;
    curl_off_t wait_s = 0;
    (void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(c->curl, CURLINFO_REQUEST_SIZE, &sent);
    (void)curl_easy_getinfo(c->curl, CURLINFO_RETRY_AFTER, &wait_s);
    const char *text = c->error[0] ? c->error : curl_easy_strerror(code);
    struct async_answer answer = {
        .status = code == CURLE_OK ? (int)status : 0,
        .text = code == CURLE_OK ? "" : text,
        .body = str_text(&c->answer),
        .len = c->answer.len,
        .sent = sent > 0,
        .retry_after_s = wait_s,
    };
    c->done(c->ctx, &answer);
}

/* Delivers the pieces of streams. A callback may start and cancel requests; a cancelled one leaves a NULL in the
 * list. */
static void pieces_deliver(struct async *a)
{
    for (size_t i = 0; i < a->calls_with_pieces.len; i++) {
        struct async_call *c = a->calls_with_pieces.at[i];
        if (!c)
            continue;
        struct str pieces = c->pieces;
        c->pieces = (struct str){0};
        c->has_pieces_queued = false;
        c->piece(c->ctx, pieces.at, pieces.len);
        str_done(&pieces);
    }
    a->calls_with_pieces.len = 0;
}

static void finish(struct async *a)
{
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(a->multi, &left))) {
        struct async_call *c = NULL;
        CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c);
        if (c->lane) {
            lane_connected(c->lane, code);
            continue;
        }
        (void)curl_multi_remove_handle(a->multi, c->curl); /* frees its connection for the next request */
        call_done(c, code);
        call_free(c);
    }
}

/* ---- the client ------------------------------------------------------------------------------------------------- */

static void replace(char **to, const char *text)
{
    char *copy = text ? mem_strdup(text) : NULL;
    mem_free(*to);
    *to = copy;
}

void async_certificates(struct async *a, const char *ca_path, const char *cert_path, const char *key_path)
{
    replace(&a->identity.ca_path, ca_path);
    replace(&a->identity.cert_path, cert_path);
    replace(&a->identity.key_path, key_path);
    idle_free(a);
    lanes_close(a, false);
    a->certs_changed_ns = loop_now_ns(a->loop);
}

/* Writes the text to a memory file that libcurl can open, created if *fd is -1. The caller owns *ret_path. */
static int pem_file(const char *pem, int *fd, char **ret_path, struct berth_err *err)
{
    CLEANUP(str) struct str path = {0};
    size_t len = strlen(pem);
    if (*fd < 0)
        *fd = memfd_create("berth-pem", MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, 0) < 0 || pwrite(*fd, pem, len, 0) != (ssize_t)len)
        return err_set(err, errno, "cannot hold a certificate in memory: %s", strerror(errno));
    str_addf(&path, "/proc/self/fd/%d", *fd);
    *ret_path = str_take(&path);
    return 0;
}

static int set_pems(struct async *a, const struct async_config *config, struct berth_err *err)
{
    const char *const pems[PEMS] = {config->ca_pem, config->cert_pem, config->key_pem};
    char *paths[PEMS] = {NULL};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < PEMS; i++)
        if (pems[i])
            rc = pem_file(pems[i], &a->identity.pem_fds[i], &paths[i], err);
    if (rc == 0)
        async_certificates(a, config->ca_pem ? paths[PEM_CA] : config->ca_path,
                           config->cert_pem ? paths[PEM_CERT] : config->cert_path,
                           config->key_pem ? paths[PEM_KEY] : config->key_path);
    for (size_t i = 0; i < PEMS; i++)
        mem_free(paths[i]);
    return rc;
}

int async_pems(struct async *a, const struct async_config *config, struct berth_err *err)
{
    struct async_config all = *config;
    all.ca_path = a->identity.ca_path;
    all.cert_path = a->identity.cert_path;
    all.key_path = a->identity.key_path;
    return set_pems(a, &all, err);
}

static void set_multi(struct async *a)
{
    curl_multi_setopt(a->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(a->multi, CURLMOPT_SOCKETDATA, a);
    curl_multi_setopt(a->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(a->multi, CURLMOPT_TIMERDATA, a);
    curl_multi_setopt(a->multi, CURLMOPT_MAXCONNECTS, (long)a->idle_max);
}

int async_new(struct loop *l, const struct async_config *config, struct async **ret, struct berth_err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ENOMEM, "cannot start libcurl");
    struct async *a = mem_zalloc(sizeof *a);
    a->loop = l;
    a->multi = curl_multi_init();
    a->timer = loop_timer_new(l, on_timer, a);
    a->idle_max = config->connections_max ? config->connections_max : CONNECTIONS_MAX;
    a->lean = config->lean;
    replace(&a->agent, config->agent ? config->agent : "berth");
    for (size_t i = 0; i < PEMS; i++)
        a->identity.pem_fds[i] = -1;
    header_add(&a->connect_to, "::", config->connect_to);
    set_multi(a);
    int rc = set_pems(a, config, err);
    a->certs_changed_ns = 0;
    if (rc < 0) {
        async_free(a);
        return rc;
    }
    *ret = a;
    return 0;
}

void async_free(struct async *a)
{
    if (!a)
        return;
    while (a->calls.len)
        call_free(a->calls.at[0]);
    lanes_close(a, true);
    idle_free(a);
    vec_done(&a->calls);
    vec_done(&a->idle);
    vec_done(&a->calls_with_pieces);
    (void)curl_multi_cleanup(a->multi); /* closes open connections */
    for (size_t i = 0; i < a->watched.len; i++)
        assert(!a->watched.at[i]);
    vec_done(&a->watched);
    header_sets_done(&a->headers);
    curl_slist_free_all(a->connect_to);
    loop_source_free(a->timer);
    for (size_t i = 0; i < PEMS; i++)
        if (a->identity.pem_fds[i] >= 0)
            (void)close(a->identity.pem_fds[i]);
    mem_free(a->identity.ca_path);
    mem_free(a->identity.cert_path);
    mem_free(a->identity.key_path);
    mem_free(a->agent);
    mem_free(a);
    curl_global_cleanup();
}
