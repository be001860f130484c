/* async_inner.h - what the files of async.h share. Seen in net/ only.
 *
 * async.c lets libcurl speak; async_lane.c speaks itself on connections that libcurl has made. Descriptors of both are
 * watched here.
 */
#pragma once

#include <curl/curl.h>

#include "base/str.h"
#include "base/vec.h"
#include "net/client/async.h"
#include "net/client/async_headers.h"

enum { ANSWER_BYTES_KEPT = 65536 }; /* of memory, by a call that waits for its next request */
#define ASYNC_TIMEOUT_NS (INT64_C(30) * 1000000000)
#define ASYNC_BODY_BYTES_MAX ((size_t)64 << 20)

struct lane; /* a connection of async_lane.c */

/* With its handle it is kept for the next request: making one costs more than a request does. */
struct async_call {
    struct async *a;
    CURL *curl;
    struct lane *lane; /* whose handle it is; NULL: libcurl speaks, and what follows is used */
    struct header_set *headers;
    size_t place;    /* among all that are under way */
    bool handing_on; /* is in the list of those whose pieces wait */
    struct str body, answer;
    struct str pieces; /* of a stream, to be handed on when libcurl is left: from within it nothing may be begun */
    char error[CURL_ERROR_SIZE];
    void (*piece)(void *ctx, const char *at, size_t len);
    void (*done)(void *ctx, const struct async_answer *answer);
    void *ctx;
};

enum { PEM_CA, PEM_CERT, PEM_KEY, PEMS };

struct identity {
    char *ca_path, *cert_path, *key_path;
    /* Files in memory of texts that were given, -1 for none: libcurl with GnuTLS reads files only, and a key need not touch
     * a disk. */
    int pem_fds[PEMS];
};

/* A descriptor stays known to the loop between two requests on it. */
struct watched {
    struct async *a;
    curl_socket_t fd;
    struct loop_source *source;
    struct lane *lane; /* who is told; NULL: libcurl */
    uint32_t events;   /* what the loop was told */
    bool kept;         /* opened here, so that its closing is told; libcurl has others, which are forgotten at once */
    bool idle;         /* libcurl does not want to know just now */
};

struct async {
    struct loop *loop;
    CURLM *multi;
    struct loop_source *timer;
    VEC(struct async_call *) calls;
    VEC(struct async_call *) idle;
    VEC(struct async_call *) spoken; /* streams of which pieces wait to be handed on */
    VEC(struct lane *) lanes;        /* all of them */
    VEC(struct lane *) lanes_idle;   /* the one that was used last at the end */
    struct str spare;                /* memory of an answer, for the next one */
    bool lean;
    struct header_sets headers;
    VEC(struct watched *) watched; /* by descriptor */
    size_t idle_max;
    struct curl_slist *connect_to;
    struct identity identity;
    char *agent;
    int64_t renewed_ns; /* when certificates have changed, by the loop's clock: connections of before are not for new
                           requests. 0: never */
};

/* ---- async.c ---- */

struct async_call *async_handle_new(struct async *a);
void async_handle_free(struct async_call *c);
/* What the loop is to tell of a descriptor that libcurl has opened. */
int async_watch(struct async *a, curl_socket_t fd, uint32_t events, struct lane *lane);
void async_unwatch(struct async *a, curl_socket_t fd);

/* ---- async_lane.c ---- */

/* Can it be said on a lane: no stream, and nothing in it that would end a line? */
bool lane_takes(const struct async *a, const struct async_request *request);
struct async_call *lane_start(struct async *a, const struct async_request *request);
void lane_cancel(struct lane *lane);
/* Its connection is made, or could not be. */
void lane_connected(struct lane *lane, CURLcode code);
void lane_ready(struct lane *lane, uint32_t events);
/* Closes those that wait, or all of them without telling. */
void lanes_close(struct async *a, bool all);
