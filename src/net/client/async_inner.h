/* async_inner.h - internal declarations shared by the files of async.h. Only for net/.
 *
 * async.c sends requests through libcurl. async_lane.c writes requests itself on connections that libcurl has made.
 * This header also declares the watching of descriptors, which both use.
 */
#pragma once

#include <curl/curl.h>

#include "base/str.h"
#include "base/vec.h"
#include "net/client/async.h"
#include "net/client/async_headers.h"

enum { ANSWER_BYTES_KEPT = 65536 }; /* answer memory that an idle call keeps for its next request */
#define ASYNC_TIMEOUT_NS (INT64_C(30) * 1000000000)
#define ASYNC_BODY_BYTES_MAX ((size_t)64 << 20)

struct lane; /* a connection of async_lane.c */

/* A request with its libcurl handle. Both are kept for the next request, because creating a handle costs more than a
 * request. */
struct async_call {
    struct async *a;
    CURL *curl;
    /* the lane that uses the handle; NULL: libcurl sends the request, and the fields below are used */
    struct lane *lane;
    struct header_set *headers;
    size_t place;           /* index among all running calls */
    bool has_pieces_queued; /* is in the list of calls with undelivered pieces */
    struct str body, answer;
    /* stream data, delivered after libcurl returns, because requests cannot be started inside libcurl */
    struct str pieces;
    char error[CURL_ERROR_SIZE];
    void (*piece)(void *ctx, const char *at, size_t len);
    void (*done)(void *ctx, const struct async_answer *answer);
    void *ctx;
};

enum { PEM_CA, PEM_CERT, PEM_KEY, PEMS };

struct client_identity {
    char *ca_path, *cert_path, *key_path;
    /* Memory files of the PEM texts, -1: none. libcurl with GnuTLS only reads files, and this way a key is never
     * written to disk. */
    int pem_fds[PEMS];
};

/* A watched descriptor. The descriptor stays registered in the loop between two requests. */
struct watched {
    struct async *a;
    curl_socket_t fd;
    struct loop_source *source;
    struct lane *lane; /* receives the events; NULL: libcurl */
    uint32_t events;   /* events registered in the loop */
    /* opened by on_open, so that on_close reports its closing; libcurl's other descriptors are removed at once */
    bool kept;
    bool idle; /* libcurl currently wants no events */
};

struct async {
    struct loop *loop;
    CURLM *multi;
    struct loop_source *timer;
    VEC(struct async_call *) calls;
    VEC(struct async_call *) idle;
    VEC(struct async_call *) calls_with_pieces; /* streams with undelivered pieces */
    VEC(struct lane *) lanes;                   /* all lanes */
    VEC(struct lane *) lanes_idle;              /* most recently used lane last */
    struct str spare;                           /* memory of an answer, reused for the next one */
    bool lean;
    struct header_sets headers;
    VEC(struct watched *) watched; /* indexed by descriptor */
    size_t idle_max;
    struct curl_slist *connect_to;
    struct client_identity identity;
    char *agent;
    /* Time of the last certificate change, by the loop's clock; new requests do not use connections that are older. 0:
     * never changed. */
    int64_t certs_changed_ns;
};

/* ---- async.c ---- */

struct async_call *async_handle_new(struct async *a);
void async_handle_free(struct async_call *c);
/* Watches a descriptor that libcurl has opened, for these events. */
int async_watch(struct async *a, curl_socket_t fd, uint32_t events, struct lane *lane);
void async_unwatch(struct async *a, curl_socket_t fd);

/* ---- async_lane.c ---- */

/* Returns whether a lane can send the request: no stream, and no line breaks inside header texts. */
bool lane_can_send(const struct async *a, const struct async_request *request);
struct async_call *lane_start(struct async *a, const struct async_request *request);
void lane_cancel(struct lane *lane);
/* Called when libcurl has made the lane's connection, or has failed. */
void lane_connected(struct lane *lane, CURLcode code);
void lane_ready(struct lane *lane, uint32_t events);
/* Closes the idle lanes; with `all`, closes every lane without calling `done`. */
void lanes_close(struct async *a, bool all);
