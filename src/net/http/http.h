/* http.h - an HTTP/1.1 server in the event loop, with or without TLS.
 *
 * For each request the server calls `admit` when the header is complete (`admit` may answer at once, or return the
 * maximum body size), and `handle` when the body is complete. The handler may answer later, from anywhere on the loop's
 * thread. A connection uses no CPU time while it waits for an answer or while its stream has nothing to send.
 *
 * Bounded resources: connections in total, per address and per user; header bytes; body bytes; bytes held for an
 * address and for a user; time to send a request; time to read an answer. A request that exceeds a bound is answered
 * (408, 413, 431, 429, 503) or its connection is closed. The module wraps libmicrohttpd and hides its types. Routes and
 * permissions are in control/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/loop.h"

struct http_server;
struct http_request; /* one request and its answer */

struct http_header {
    const char *name, *value;
};

struct http_config {
    const char *address;            /* numeric; "127.0.0.1", "::1", "0.0.0.0" */
    uint16_t port;                  /* 0: any free port */
    const char *cert_pem, *key_pem; /* NULL: no TLS */
    /* CA of client certificates, which the server then requests; NULL: no client certificates */
    const char *client_ca_pem;
    bool tls13_only;        /* otherwise also TLS 1.2 */
    size_t connections_max; /* 0: 16384 */
    /* 0: only the bound above; connections with a valid client certificate are not counted */
    size_t connections_per_address_max;
    size_t connections_per_user_max; /* per name passed to http_set_user; 0: no bound */
    /* Bytes of bodies and of unsent answers, held for one address or user. A request is always allowed while no other
     * request holds bytes. Connections with a valid client certificate are exempt. 0: no bound. */
    size_t bytes_per_address_max, bytes_per_user_max;
    bool length_required;    /* reject chunked bodies (411), because libmicrohttpd parses them leniently */
    size_t header_bytes_max; /* memory per connection; 0: 8 KiB */
    /* Limits the time from the connection or the last answer to the end of the next header, and again the time from the
     * header to the end of the body. 0: 10 s. An idle kept-alive connection is limited by idle_ns_max. */
    int64_t request_ns_max;
    int64_t idle_ns_max; /* between requests; 0: 60 s */
    /* Returns the maximum size of the body, or a negative number after `admit` has answered the request. */
    int64_t (*admit)(void *ctx, struct http_request *x);
    void (*handle)(void *ctx, struct http_request *x);
    void *ctx;
};

int http_server_new(struct loop *l, const struct http_config *config, struct http_server **ret, struct berth_err *err);
uint16_t http_server_port(const struct http_server *s);
/* Stops accepting connections and closes kept-alive connections when they become idle. Running requests continue. */
void http_server_quiesce(struct http_server *s);
/* Returns the number of requests that are not completely answered, including streams. */
size_t http_server_busy(const struct http_server *s);
/* Closes all connections immediately and frees the server. */
void http_server_free(struct http_server *s);

struct http_server_stats {
    uint64_t connections, accepted, requests, streams, refused; /* connections, streams: current; others: since start */
    uint64_t bytes_in, bytes_out;
    uint64_t bytes_held; /* current: of bodies and of unsent answers */
};
struct http_server_stats http_server_stats(const struct http_server *s);

/* ---- the request; texts live as long as the exchange ------------------------------------------------------------ */
const char *http_method(const struct http_request *x);
const char *http_path(const struct http_request *x);                     /* percent-decoded, without the query */
const char *http_query(const struct http_request *x, const char *name);  /* decoded; NULL: absent; "": no value */
const char *http_header(const struct http_request *x, const char *name); /* NULL: absent */
/* Returns the body: never NULL, followed by a NUL that is not counted. A stream frees the body when the stream
 * begins. */
const char *http_body(const struct http_request *x, size_t *ret_len);
const char *http_remote(const struct http_request *x); /* address of the client, without port */
/* The subject of a client certificate. NULL: the client showed no certificate, or one that is invalid for a reason
 * other than its expiry. */
struct http_peer {
    char *name;       /* common name */
    char serial[48];  /* serial number in hexadecimal */
    int64_t until_ns; /* expiry; a connection may outlive it */
    bool over;        /* the certificate had expired when the server first checked it */
};
const struct http_peer *http_peer(const struct http_request *x);
/* Returns the common name of a certificate that has not expired; NULL: none. */
const char *http_peer_name(const struct http_request *x);
/* Sets the user of the request, from `admit`; the connection and its held bytes count for this user. Returns -EDQUOT if
 * the user has too many connections, or if too many bytes are held for the user or the address; the caller then answers
 * 429. The connection counts for the user until the connection ends or carries a request of another user. NULL: no
 * user. */
int http_set_user(struct http_request *x, const char *user, struct berth_err *err);
/* Attaches caller data to the exchange. `drop` frees the data when the exchange ends for any reason. */
void http_set_data(struct http_request *x, void *data, void (*drop)(void *data));
void *http_data(const struct http_request *x);

/* ---- the answer: exactly one of these, once --------------------------------------------------------------------- */

/* The text of an answer, in blocks. Each block is freed after it was sent. */
struct http_text {
    struct http_block *first, *last;
    size_t len;
};
void http_text_add(struct http_text *t, const void *at, size_t len);
void http_text_done(struct http_text *t);

/* Answers with a body, which is copied. `headers` ends with a NULL name; NULL: no headers. The answer is marked as not
 * cacheable, unless the headers contain Cache-Control. */
void http_answer(struct http_request *x, int status, const struct http_header *headers, const char *content_type,
                 const void *body, size_t len);
/* Like http_answer, but takes ownership of the text. Answers 429 instead if too many bytes are held for the user or the
 * address. */
void http_answer_text(struct http_request *x, int status, const struct http_header *headers, const char *content_type,
                      struct http_text *text);
/* Like http_answer, but sends a file. Closes the file at the end, also on failure. */
void http_answer_file(struct http_request *x, int status, const struct http_header *headers, const char *content_type,
                      int fd, uint64_t len);
/* Begins a stream: an answer without a known end, whose chunks follow. `closed` is called once if the stream ends for
 * any reason other than http_stream_end; the exchange is then freed. */
void http_stream(struct http_request *x, int status, const struct http_header *headers, const char *content_type,
                 void (*closed)(void *ctx), void *ctx);
/* Sends a chunk, which is copied. Returns false and sends nothing if the client is too slow and more than the backlog
 * limit (1 MiB) is unsent; the caller should then end the stream. */
bool http_stream_send(struct http_request *x, const void *data, size_t len);
size_t http_stream_backlog(const struct http_request *x);
/* Sets a callback for each time the backlog has been sent completely. */
void http_stream_on_drained(struct http_request *x, void (*drained)(void *ctx), void *ctx);
void http_stream_end(struct http_request *x);
