/* api.h - requests to the API server: many at a time, on connections that are kept, sent again where that is harmless.
 *
 * Lives in the loop (net/loop.h). An answer is a status, a code and a sentence; what the server says as a Status object
 * becomes that sentence. Objects are protobuf or JSON as asked for, and nothing of them is known here. The list-and-watch of a kind is
 * kube/client/watch.h.
 *
 * Where a program gives token or certificate (kube/client/exec.h), it is run before anything else, then beside the loop: shortly before what it gave expires, and
 * when the server does not take it (401); who was refused so waits for it, and is sent once more.
 *
 * At most connections_max requests are under way at a time, besides streams; more wait here, in order of their rank.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kube/client/config.h"
#include "net/loop.h"

struct kube_api;
struct kube_call; /* a request that waits, is under way, or will be sent again */

struct kube_api_config {
    const struct kube_config *server; /* borrowed for as long as the kube_api lives */
    const char *agent;                /* "berth-kube/0.1" */
    size_t connections_max;           /* 0: 32 */
    int64_t again_ns; /* the program for credentials is not run again sooner, whoever refuses what it gave; 0: 5 s */
    bool multiplexes; /* HTTP/2: requests share connections. Costs both sides more; for proxies that want it */
};

/* Runs the program for credentials, where there is one, and waits for it. */
int kube_api_new(struct loop *l, const struct kube_api_config *config, struct kube_api **ret, struct berth_err *err);
/* Ends every request without telling; NULL is fine. */
void kube_api_free(struct kube_api *api);

enum kube_format { KUBE_JSON, KUBE_PROTOBUF };

/* Who goes first where requests wait. */
enum kube_rank {
    KUBE_URGENT, /* does not wait at all: leases, watches */
    KUBE_USUAL,
    KUBE_LATE, /* only when nothing else waits: events */
    KUBE_RANKS
};

struct kube_answer {
    int status;       /* of HTTP; 0: none came */
    int code;         /* 0: done. Otherwise a negative errno:
                         -ENOENT 404; -EEXIST 409, it is there already; -EBUSY 409, another was faster or it is not possible now;
                         -ESTALE 410; -EINVAL 400, 405, 413, 415, 422; -EACCES 401, 403; -EAGAIN 429, 5xx;
                         -ECONNREFUSED it was never sent; -EIO it was sent, and nobody knows what came of it;
                         -EPROTO an answer that cannot be understood */
    const char *text; /* a sentence; "" when it was done. Never NULL */
    const char *body; /* never NULL, a NUL beyond its end. Of a stream that began: empty */
    size_t len;
};

struct kube_request {
    const char *method;      /* "GET" */
    const char *path;        /* with its query, encoded: "/api/v1/namespaces/default/pods/x/binding" */
    enum kube_format format; /* of body and answer */
    bool json_body;          /* of the answer alone: the body is JSON all the same */
    const char *patch;       /* of a PATCH: the content type, e.g. KUBE_MERGE_PATCH; NULL otherwise */
    const void *body;        /* copied */
    size_t body_len;
    enum kube_rank rank;
    /* Does no harm twice: sent again after lost connections, timeouts and every 5xx. What the server certainly did not
     * begin (429, never sent, an answer with Retry-After) is sent again in any case. */
    bool harmless;
    unsigned tries_max; /* 0: 6; 1: never again, but once with newer credentials */
    int64_t timeout_ns; /* of one try; 0: 30 s. Of a stream: silence that counts as death; 0: 90 s */
    void (*piece)(void *ctx, const char *at, size_t len); /* a stream: of an answer with status 200, as it comes */
    /* Once, at the end, unless it was cancelled; the call is gone afterwards. */
    void (*done)(void *ctx, const struct kube_answer *answer);
    void *ctx;
};

#define KUBE_MERGE_PATCH "application/merge-patch+json"
#define KUBE_STRATEGIC_PATCH "application/strategic-merge-patch+json"

/* Never NULL, and `done` is never called from within: what cannot begin ends there, later. */
struct kube_call *kube_start(struct kube_api *api, const struct kube_request *request);
void kube_cancel(struct kube_call *call);

struct kube_api_stats {
    uint64_t sent, again, failed; /* tries; of them: not the first of their request; requests that ended with a code */
    size_t under_way, waiting;    /* now, without streams; the second with those that will be sent again */
};
struct kube_api_stats kube_api_stats(const struct kube_api *api);
