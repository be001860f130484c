/* async.h - asynchronous HTTP requests in an event loop, concurrent, on kept-alive connections. Wraps libcurl.
 *
 * For programs with a loop (net/loop.h), such as the agent. The command line uses client.h, which blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/loop.h"

struct async;
struct async_call; /* a running request */

struct async_config {
    const char *ca_path;              /* trusted CAs; NULL: the system's */
    const char *cert_path, *key_path; /* client certificate; NULL: none */
    const char *ca_pem;               /* the same as PEM text; NULL: none */
    const char *cert_pem, *key_pem;
    /* "host:port" to connect to instead of the url's host. The certificate must still match the url's host. NULL: the
     * url's host. */
    const char *connect_to;
    const char *agent;      /* "berth-agent/0.1" */
    size_t connections_max; /* idle connections to keep; 0: 8 */
    /* libcurl connects and verifies certificates, but requests without a stream are written directly (async_lane.c), at
     * half the CPU cost. For many small requests to one server. */
    bool lean;
};

int async_new(struct loop *l, const struct async_config *config, struct async **ret, struct berth_err *err);
/* Cancels all requests without calling `done`; accepts NULL. */
void async_free(struct async *a);
/* Uses other certificates for new connections. Open connections are closed when they become idle. */
void async_certificates(struct async *a, const char *ca_path, const char *cert_path, const char *key_path);
/* Like async_certificates, with PEM texts. Texts of `config` that are NULL keep their old values. */
int async_pems(struct async *a, const struct async_config *config, struct berth_err *err);

struct async_answer {
    int status;       /* 0: there was no answer; `text` gives the reason */
    const char *text; /* never NULL */
    const char *body; /* never NULL; followed by a NUL. Empty for a stream that began */
    size_t len;
    bool sent;             /* at least a part of the request was sent */
    int64_t retry_after_s; /* delay that the server requests; 0: none */
};

struct async_request {
    const char *method, *url; /* url with path and query, already encoded */
    const char *token;        /* sent as a bearer token; NULL: none */
    const char *content_type; /* NULL: application/json if there is a body */
    const char *accept;       /* NULL: anything */
    const void *body;         /* copied */
    size_t body_len;
    /* Time limit for the whole answer, 0: 30 s. For a stream: time without data after which the stream fails, 0: 90
     * s. */
    int64_t timeout_ns;
    /* For a stream: called for each piece of an answer with status 200. NULL: the body is collected for `done`. */
    void (*piece)(void *ctx, const char *at, size_t len);
    /* Called once at the end, unless the request was cancelled. The call is freed afterwards. */
    void (*done)(void *ctx, const struct async_answer *answer);
    void *ctx;
};

/* Starts a request and copies its texts. A request reuses the handle of an earlier one, so it costs little beyond
 * sending. Never returns NULL: a request that cannot be started calls `done` later. */
struct async_call *async_start(struct async *a, const struct async_request *request);
void async_cancel(struct async_call *call);
