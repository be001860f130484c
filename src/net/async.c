/* async.c - libcurl's multi interface inside the loop: it says which descriptors and which timer, the loop tells of them. */
#include "net/async.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

enum { CONNECT_TIMEOUT_MS = 5000, STREAM_SILENCE_S = 90, CONNECTIONS_MAX = 8, KEEPALIVE_S = 20 };
#define TIMEOUT_NS_DEFAULT (INT64_C(30) * 1000000000)
#define BODY_BYTES_MAX ((size_t)64 << 20)

struct async_call {
    struct async *a;
    CURL *curl;
    struct curl_slist *headers;
    char *body;
    struct str answer;
    struct str pieces; /* of a stream, to be handed on when libcurl is left: from within it nothing may be begun */
    char error[CURL_ERROR_SIZE];
    void (*piece)(void *ctx, const char *at, size_t len);
    void (*done)(void *ctx, const struct async_answer *answer);
    void *ctx;
};

struct async {
    struct loop *loop;
    CURLM *multi;
    struct loop_source *timer;
    VEC(struct async_call *) calls;
    char *ca_path, *cert_path, *key_path, *agent;
    int64_t renewed_ns; /* when certificates have changed, by the loop's clock: connections of before are not for new
                           requests. 0: never */
};

/* ---- what libcurl asks for ----------------------------------------------------------------------------------------- */

static void finish(struct async *a);
static void hand_on(struct async *a);

static void run(struct async *a, curl_socket_t fd, int mask)
{
    int left;
    (void)curl_multi_socket_action(a->multi, fd, mask, &left);
    hand_on(a);
    finish(a);
}

struct watched {
    struct async *a;
    curl_socket_t fd;
    struct loop_source *source;
};

static void on_ready(void *ctx, uint32_t events)
{
    struct watched *w = ctx;
    int mask = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    run(w->a, w->fd, mask); /* w may be gone */
}

static int on_socket(CURL *curl, curl_socket_t fd, int what, void *ctx, void *data)
{
    struct async *a = ctx;
    struct watched *w = data;
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
    (void)curl;
    if (what == CURL_POLL_REMOVE) {
        if (w) {
            loop_source_free(w->source);
            mem_free(w);
        }
        (void)curl_multi_assign(a->multi, fd, NULL);
        return 0;
    }
    if (w) {
        loop_set_events(w->source, events);
        return 0;
    }
    w = mem_zalloc(sizeof *w);
    w->a = a;
    w->fd = fd;
    if (loop_watch_fd(a->loop, fd, events, on_ready, w, &w->source, NULL) < 0) {
        mem_free(w);
        return -1;
    }
    (void)curl_multi_assign(a->multi, fd, w);
    return 0;
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

/* ---- one request --------------------------------------------------------------------------------------------------- */

static void call_free(struct async_call *c)
{
    struct async *a = c->a;
    for (size_t i = 0; i < a->calls.len; i++)
        if (a->calls.at[i] == c) {
            a->calls.at[i] = a->calls.at[--a->calls.len];
            break;
        }
    if (c->curl) {
        (void)curl_multi_remove_handle(a->multi, c->curl);
        curl_easy_cleanup(c->curl);
    }
    curl_slist_free_all(c->headers);
    str_done(&c->answer);
    str_done(&c->pieces);
    mem_free(c->body);
    mem_free(c);
}

static size_t take_body(char *at, size_t size, size_t count, void *ctx)
{
    struct async_call *c = ctx;
    size_t len = size * count;
    long status = 0;
    (void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (c->piece && status == 200) {
        str_add_bytes(&c->pieces, at, len);
        return len;
    }
    if (len > BODY_BYTES_MAX - c->answer.len)
        return 0;
    str_add_bytes(&c->answer, at, len);
    return len;
}

static void header_add(struct async_call *c, const char *name, const char *value)
{
    CLEANUP(str) struct str line = {0};
    str_addf(&line, "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(c->headers, line.at);
    if (longer)
        c->headers = longer;
}

static void set_body(struct async_call *c, const struct async_request *q)
{
    bool sends = q->body || strcmp(q->method, "POST") == 0 || strcmp(q->method, "PUT") == 0;
    curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, q->method);
    if (!sends)
        return;
    c->body = mem_alloc(q->body_len + 1);
    if (q->body && q->body_len)
        memcpy(c->body, q->body, q->body_len);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, c->body);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
    header_add(c, "Content-Type", q->content_type ? q->content_type : "application/json");
    header_add(c, "Expect", ""); /* a large report must not wait for a word that nobody says */
}

static void set_times(struct async_call *c, const struct async_request *q)
{
    int64_t timeout_ns = q->timeout_ns ? q->timeout_ns : TIMEOUT_NS_DEFAULT;
    curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    if (!q->piece) {
        curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)(timeout_ns / 1000000 + 1));
        return;
    }
    long silence_s = q->timeout_ns ? (long)(q->timeout_ns / 1000000000) + 1 : STREAM_SILENCE_S;
    curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_TIME, silence_s);
}

/* libcurl counts in whole seconds: where that is too coarse, every request has a connection of its own. */
static void set_ages(struct async_call *c)
{
    const struct async *a = c->a;
    if (!a->renewed_ns)
        return;
    int64_t past_s = (loop_now_ns(a->loop) - a->renewed_ns) / 1000000000;
    curl_easy_setopt(c->curl, CURLOPT_MAXLIFETIME_CONN, (long)(past_s > 2 ? past_s - 1 : 1));
    curl_easy_setopt(c->curl, CURLOPT_FRESH_CONNECT, past_s > 2 ? 0L : 1L);
}

static void set_options(struct async_call *c, const struct async_request *q)
{
    const struct async *a = c->a;
    CURL *h = c->curl;
    curl_easy_setopt(h, CURLOPT_PRIVATE, c);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->error);
    curl_easy_setopt(h, CURLOPT_URL, q->url);
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_PROXY, "");
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
    curl_easy_setopt(h, CURLOPT_USERAGENT, a->agent);
    curl_easy_setopt(h, CURLOPT_BUFFERSIZE, 16384L);
    if (a->ca_path) { /* and nobody else's: reading all that the system trusts takes 15 MB */
        curl_easy_setopt(h, CURLOPT_CAINFO, a->ca_path);
        curl_easy_setopt(h, CURLOPT_CAPATH, NULL);
    }
    if (a->cert_path) {
        curl_easy_setopt(h, CURLOPT_SSLCERT, a->cert_path);
        curl_easy_setopt(h, CURLOPT_SSLKEY, a->key_path);
    }
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
    set_ages(c);
    set_times(c, q);
    set_body(c, q);
    if (q->token) {
        CLEANUP(str) struct str bearer = {0};
        str_addf(&bearer, "Bearer %s", q->token);
        header_add(c, "Authorization", bearer.at);
    }
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, c->headers);
}

struct async_call *async_start(struct async *a, const struct async_request *request)
{
    struct async_call *c = mem_zalloc(sizeof *c);
    c->a = a;
    c->piece = request->piece;
    c->done = request->done;
    c->ctx = request->ctx;
    c->curl = curl_easy_init();
    if (!c->curl)
        abort(); /* it only fails for want of memory: base/mem.h */
    set_options(c, request);
    vec_push(&a->calls, c);
    (void)curl_multi_add_handle(a->multi, c->curl); /* sets the timer, which begins it */
    return c;
}

void async_cancel(struct async_call *call)
{
    call_free(call);
}

/* ---- the end of one ------------------------------------------------------------------------------------------------ */

static void tell(struct async_call *c, CURLcode code)
{
    long status = 0;
    (void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    const char *text = c->error[0] ? c->error : curl_easy_strerror(code);
    struct async_answer answer = {
        .status = code == CURLE_OK ? (int)status : 0,
        .text = code == CURLE_OK ? "" : text,
        .body = str_text(&c->answer),
        .len = c->answer.len,
    };
    c->done(c->ctx, &answer);
}

/* Whoever hears a piece may begin and cancel requests, so the list is looked at anew after each. */
static void hand_on(struct async *a)
{
    for (size_t i = 0; i < a->calls.len;) {
        struct async_call *c = a->calls.at[i];
        if (c->pieces.len == 0) {
            i++;
            continue;
        }
        struct str pieces = c->pieces;
        c->pieces = (struct str){0};
        c->piece(c->ctx, pieces.at, pieces.len);
        str_done(&pieces);
        i = 0;
    }
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
        (void)curl_multi_remove_handle(a->multi, c->curl); /* its connection is free for the next one */
        tell(c, code);
        call_free(c);
    }
}

/* ---- all of them --------------------------------------------------------------------------------------------------- */

static void replace(char **to, const char *text)
{
    char *copy = text ? mem_strdup(text) : NULL;
    mem_free(*to);
    *to = copy;
}

void async_certificates(struct async *a, const char *ca_path, const char *cert_path, const char *key_path)
{
    replace(&a->ca_path, ca_path);
    replace(&a->cert_path, cert_path);
    replace(&a->key_path, key_path);
    a->renewed_ns = loop_now_ns(a->loop);
}

int async_new(struct loop *l, const struct async_config *config, struct async **ret, struct berth_err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ENOMEM, "cannot start libcurl");
    struct async *a = mem_zalloc(sizeof *a);
    a->loop = l;
    a->multi = curl_multi_init();
    a->timer = loop_timer_new(l, on_timer, a);
    replace(&a->agent, config->agent ? config->agent : "berth");
    async_certificates(a, config->ca_path, config->cert_path, config->key_path);
    a->renewed_ns = 0;
    curl_multi_setopt(a->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(a->multi, CURLMOPT_SOCKETDATA, a);
    curl_multi_setopt(a->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(a->multi, CURLMOPT_TIMERDATA, a);
    curl_multi_setopt(a->multi, CURLMOPT_MAXCONNECTS,
                      (long)(config->connections_max ? config->connections_max : CONNECTIONS_MAX));
    *ret = a;
    return 0;
}

void async_free(struct async *a)
{
    if (!a)
        return;
    while (a->calls.len)
        call_free(a->calls.at[0]);
    vec_done(&a->calls);
    (void)curl_multi_cleanup(a->multi);
    loop_source_free(a->timer);
    mem_free(a->ca_path);
    mem_free(a->cert_path);
    mem_free(a->key_path);
    mem_free(a->agent);
    mem_free(a);
    curl_global_cleanup();
}
