/* api.h - HTTP requests to the API server: concurrent, on persistent connections, with retries where a repeat is
 * harmless.
 *
 * Runs in the event loop (net/loop.h). An answer is an HTTP status, an error code and a message; a Status object from
 * the server becomes the message. Bodies are protobuf or JSON as requested and are not interpreted here. List-and-watch
 * of a kind is kube/client/watch.h.
 *
 * If an exec plugin (kube/client/exec.h) supplies the token or certificate, it runs once before the first request, then
 * on a worker thread: shortly before its credential expires, and when the server rejects the credential (401). A
 * rejected request waits for the plugin and is sent once more.
 *
 * At most connections_max requests are in progress at a time, streams excluded; further requests wait in order of their
 * rank.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kube/client/config.h"
#include "net/loop.h"

struct kube_api;
struct kube_call; /* a request that waits, is in progress, or will be retried */

struct kube_api_config {
    const struct kube_config *server; /* must outlive the kube_api */
    const char *agent;                /* "berth-kube/0.1" */
    size_t connections_max;           /* 0: 32 */
    int64_t again_ns; /* minimum interval between runs of the exec plugin, even if its credential is rejected; 0: 5 s */
    bool multiplexes; /* HTTP/2: requests share connections. Costs both sides more; for proxies that need it */
};

/* Runs the exec plugin, if any, and waits for it. */
int kube_api_new(struct loop *l, const struct kube_api_config *config, struct kube_api **ret, struct berth_err *err);
/* Cancels every request without callbacks; accepts NULL. */
void kube_api_free(struct kube_api *api);

enum kube_format { KUBE_JSON, KUBE_PROTOBUF };

/* Order of waiting requests. */
enum kube_rank {
    KUBE_URGENT, /* never waits: leases, watches */
    KUBE_USUAL,
    KUBE_LATE, /* only when nothing else waits: events */
    KUBE_RANKS
};

struct kube_answer {
    int status; /* HTTP status; 0: no answer came */
    /* 0: success. Otherwise a negative errno: -ENOENT 404; -EEXIST 409 already exists; -EBUSY 409 conflict, or not
     * possible now; -ESTALE 410; -EINVAL 400, 405, 413, 415, 422; -EACCES 401, 403; -EAGAIN 429, 5xx; -ECONNREFUSED
     * never sent; -EIO sent with unknown outcome; -EPROTO invalid answer */
    int code;
    const char *text; /* error message; "" on success. Never NULL */
    const char *body; /* never NULL, NUL-terminated. Of a stream that began: empty */
    size_t len;
};

struct kube_request {
    const char *method;      /* "GET" */
    const char *path;        /* with its encoded query: "/api/v1/namespaces/default/pods/x/binding" */
    enum kube_format format; /* of the body and the answer */
    bool json_body;          /* the body is JSON whatever `format`, which then applies to the answer only */
    const char *patch;       /* content type of a PATCH, e.g. KUBE_MERGE_PATCH; otherwise NULL */
    const void *body;        /* copied */
    size_t body_len;
    enum kube_rank rank;
    /* A repeat is harmless: retried after lost connections, timeouts and every 5xx. A request that the server
     * certainly did not process (429, never sent, an answer with Retry-After) is retried in any case. */
    bool harmless;
    unsigned tries_max; /* 0: 6; 1: no retries, except once with newer credentials */
    int64_t timeout_ns; /* of one try; 0: 30 s. Of a stream: maximum silence; 0: 90 s */
    /* makes it a stream: gets the body of an answer with status 200 as it arrives */
    void (*piece)(void *ctx, const char *at, size_t len);
    /* Called once, at the end, unless the request was cancelled; the call is freed afterwards. */
    void (*done)(void *ctx, const struct kube_answer *answer);
    void *ctx;
};

#define KUBE_MERGE_PATCH "application/merge-patch+json"
#define KUBE_STRATEGIC_PATCH "application/strategic-merge-patch+json"

/* Never returns NULL and never calls `done` itself: a request that cannot begin fails later. */
struct kube_call *kube_start(struct kube_api *api, const struct kube_request *request);
void kube_cancel(struct kube_call *call);

struct kube_api_stats {
    uint64_t sent, again, failed; /* tries sent; of these, retries; requests that ended with an error code */
    size_t under_way, waiting;    /* at present, without streams; waiting includes retries */
};
struct kube_api_stats kube_api_stats(const struct kube_api *api);
