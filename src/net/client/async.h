/* async.h - HTTP requests that do not hold up the loop, many at a time, on kept-alive connections. Fronts libcurl.
 *
 * For programs that live in a loop (net/loop.h): the agent. The command line has client.h, which blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/loop.h"

struct async;
struct async_call; /* a request under way */

struct async_config {
    const char *ca_path;              /* authorities; NULL: the system's */
    const char *cert_path, *key_path; /* the caller's own; NULL: none */
    const char *ca_pem;               /* the same as text instead; NULL: none */
    const char *cert_pem, *key_pem;
    const char
        *connect_to;   /* "host:port" to connect to, whatever the url's host is: the certificate must name that one.
                                NULL: the url's */
    const char *agent; /* "berth-agent/0.1" */
    size_t connections_max; /* kept open; 0: 8 */
    bool lean; /* libcurl makes connections and checks certificates; requests without a stream are then spoken
                               directly (async_lane.c), at half the cost: for many small ones to one server */
};

int async_new(struct loop *l, const struct async_config *config, struct async **ret, struct berth_err *err);
/* Ends every request without telling; NULL is fine. */
void async_free(struct async *a);
/* Other certificates from the next connection on; those that are open are closed as they fall idle. */
void async_certificates(struct async *a, const char *ca_path, const char *cert_path, const char *key_path);
/* The same for one that has them as texts; those of `config` that are NULL stay. */
int async_pems(struct async *a, const struct async_config *config, struct berth_err *err);

struct async_answer {
    int status;       /* 0: there was none, and `text` says why */
    const char *text; /* never NULL */
    const char *body; /* never NULL; ends in a NUL beyond len. Of a stream that began: empty */
    size_t len;
    bool sent;             /* at least a part of the request left this process */
    int64_t retry_after_s; /* the server asks to wait so long; 0: it does not say */
};

struct async_request {
    const char *method, *url; /* the url with path and query, already encoded */
    const char *token;        /* sent as a bearer token; NULL: none */
    const char *content_type; /* NULL: application/json when there is a body */
    const char *accept;       /* NULL: anything */
    const void *body;         /* copied */
    size_t body_len;
    int64_t timeout_ns; /* to the end of the answer, 0: 30 s; of a stream: silence that counts as death, 0: 90 s */
    /* A stream: pieces of an answer with status 200 as they come. NULL: the body is kept for `done`. */
    void (*piece)(void *ctx, const char *at, size_t len);
    /* Called once at the end, unless it was cancelled. The call is gone afterwards. */
    void (*done)(void *ctx, const struct async_answer *answer);
    void *ctx;
};

/* Texts are copied. A request costs little beyond what is sent: what it needs is kept from the one before. Never NULL: what cannot even begin ends in `done`, later. */
struct async_call *async_start(struct async *a, const struct async_request *request);
void async_cancel(struct async_call *call);
