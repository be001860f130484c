/* kit_test.h - a server and raw clients on one thread, for the tests of the HTTP server.
 *
 * Include <cmocka.h> and its prerequisites before this file. Nothing here waits for a fixed time: the loop runs until
 * the awaited event has happened. A failure here fails the test.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/http/http.h"
#include "net/loop.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"

enum { KIT_MS = 1000000 };

struct kit {
    struct loop *loop;
    struct http_server *server;
    struct http_request *kept; /* stored by a handler of the test, to answer later */
    int64_t body_max;
    unsigned admitted, handled, dropped, closed, drained;
};

/* ---- server ----------------------------------------------------------------------------------------------------- */

static inline void kit_drop(void *data)
{
    struct kit *k = data;
    k->dropped++;
}

static inline int64_t kit_admit(void *ctx, struct http_request *x)
{
    struct kit *k = ctx;
    k->admitted++;
    http_set_data(x, k, kit_drop);
    return k->body_max;
}

/* Answers with the request: "GET /path BODY". */
static inline void kit_echo(void *ctx, struct http_request *x)
{
    CLEANUP(str) struct str said = {0};
    struct kit *k = ctx;
    size_t len;
    const char *body = http_body(x, &len);
    k->handled++;
    str_addf(&said, "%s %s ", http_method(x), http_path(x));
    str_add_bytes(&said, body, len);
    http_answer(x, 200, NULL, "text/plain", said.at, said.len);
}

static inline void kit_keep(void *ctx, struct http_request *x)
{
    struct kit *k = ctx;
    k->handled++;
    k->kept = x;
}

static inline void kit_start(struct kit *k, struct http_config config)
{
    struct berth_err err;
    config.address = config.address ? config.address : "127.0.0.1";
    config.admit = config.admit ? config.admit : kit_admit;
    config.handle = config.handle ? config.handle : kit_echo;
    config.ctx = k;
    k->body_max = k->body_max ? k->body_max : 1000;
    assert_int_equal(loop_new(&k->loop, NULL), 0);
    if (http_server_new(k->loop, &config, &k->server, &err) != 0)
        fail_msg("%s", err.text);
    assert_true(http_server_port(k->server) != 0);
}

static inline void kit_cleanup(struct kit *k)
{
    http_server_free(k->server);
    loop_free(k->loop);
}

static inline void kit_round(struct kit *k)
{
    assert_int_equal(loop_once(k->loop, 2 * KIT_MS, NULL), 0);
}

/* Runs the loop until the condition holds, or until the test's own time limit. */
#define KIT_UNTIL(k, condition)                                                                                        \
    while (!(condition))                                                                                               \
    kit_round(k)

/* ---- server on its own thread, for clients that block ----------------------------------------------------------- */

struct host {
    struct kit kit;
    pthread_t thread;
    char url[64];
    bool runs;
};

static inline void *host_main(void *ctx)
{
    struct kit *k = ctx;
    (void)loop_run(k->loop, NULL);
    return NULL;
}

static inline void host_start(struct host *h, struct http_config config)
{
    kit_start(&h->kit, config);
    (void)snprintf(h->url, sizeof h->url, "http%s://127.0.0.1:%u", config.cert_pem ? "s" : "",
                   http_server_port(h->kit.server));
    assert_int_equal(pthread_create(&h->thread, NULL, host_main, &h->kit), 0);
    h->runs = true;
}

/* Stops the server. Its counters may be read afterwards. */
static inline void host_stop(struct host *h)
{
    if (!h->runs)
        return;
    loop_stop(h->kit.loop);
    assert_int_equal(pthread_join(h->thread, NULL), 0);
    h->runs = false;
}

static inline void host_cleanup(struct host *h)
{
    host_stop(h);
    kit_cleanup(&h->kit);
}

/* ---- client ----------------------------------------------------------------------------------------------------- */

struct talk {
    int fd;
    bool ended;
    struct str heard;
};

static inline void talk_cleanup(struct talk *t)
{
    if (t->fd >= 0)
        (void)close(t->fd);
    str_done(&t->heard);
}

static inline void talk_close(struct talk *t)
{
    (void)close(t->fd);
    t->fd = -1;
}

static inline int kit_dial(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_true(fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static inline struct talk talk_new(const struct kit *k)
{
    return (struct talk){.fd = kit_dial(http_server_port(k->server))};
}

/* Sends bytes. Stops without an error if the peer accepts no more. */
static inline void talk_say_bytes(struct kit *k, struct talk *t, const void *at, size_t len)
{
    const char *p = at;
    while (len) {
        ssize_t n = send(t->fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            return;
        if (n < 0)
            kit_round(k);
        p += n < 0 ? 0 : n;
        len -= n < 0 ? 0 : (size_t)n;
    }
}

static inline void talk_say(struct kit *k, struct talk *t, const char *text)
{
    talk_say_bytes(k, t, text, strlen(text));
}

static inline void talk_listen(struct talk *t)
{
    char buf[65536];
    ssize_t n;
    while ((n = recv(t->fd, buf, sizeof buf, MSG_DONTWAIT)) > 0)
        str_add_bytes(&t->heard, buf, (size_t)n);
    t->ended = t->ended || n == 0 || errno != EAGAIN;
}

/* Runs until the client has received this text. */
static inline void talk_hear(struct kit *k, struct talk *t, const char *want)
{
    for (talk_listen(t); !strstr(str_text(&t->heard), want); talk_listen(t)) {
        if (t->ended)
            fail_msg("the connection ended before \"%s\": \"%s\"", want, str_text(&t->heard));
        kit_round(k);
    }
}

static inline void talk_hear_end(struct kit *k, struct talk *t)
{
    for (talk_listen(t); !t->ended; talk_listen(t))
        kit_round(k);
}

static inline void talk_forget(struct talk *t, size_t len)
{
    if (!t->heard.at)
        return;
    t->heard.len -= len;
    memmove(t->heard.at, t->heard.at + len, t->heard.len + 1);
}

/* Runs until a whole answer with a Content-Length was received. Returns its status, and its body in *body (NULL:
 * ignored). */
static inline int talk_answer(struct kit *k, struct talk *t, struct str *body)
{
    talk_hear(k, t, "\r\n\r\n");
    const char *text = str_text(&t->heard), *length = strcasestr(text, "\r\nContent-Length:");
    size_t head = (size_t)(strstr(text, "\r\n\r\n") + 4 - text);
    size_t len = length ? strtoul(length + 17, NULL, 10) : 0;
    int status = atoi(text + 9);
    while (t->heard.len < head + len) {
        assert_false(t->ended);
        kit_round(k);
        talk_listen(t);
    }
    if (body) {
        str_clear(body);
        str_add_bytes(body, t->heard.at + head, len);
    }
    talk_forget(t, head + len);
    return status;
}
