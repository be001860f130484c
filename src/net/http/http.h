/* http.h - an HTTP/1.1 server inside the loop, with or without TLS.
 *
 * For each request: `admit` when its header is there (it may answer at once, or say how long the body may be), `handle`
 * when its body is there too. The answer may come later, from anywhere on the loop's thread; until then, and while a
 * stream has nothing to send, the connection costs no time. Bounded in every direction: connections in all and per
 * address and per user, header bytes, body bytes, bytes held for an address and for a user, time to send a request, time to
 * read an answer. What breaks a bound is answered (408, 413, 431, 429, 503) or closed. Fronts libmicrohttpd, whose types stay in here. No routes and no permissions: control/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/loop.h"

struct http_server;
struct http_exchange; /* one request and its answer */

struct http_header {
    const char *name, *value;
};

struct http_config {
    const char *address;            /* numeric; "127.0.0.1", "::1", "0.0.0.0" */
    uint16_t port;                  /* 0: any free one */
    const char *cert_pem, *key_pem; /* NULL: without TLS */
    const char *client_ca_pem;      /* asks for client certificates signed by it; NULL: does not ask */
    bool tls13_only;                /* else TLS 1.2 too */
    size_t connections_max;         /* 0: 16384 */
    size_t
        connections_per_address_max; /* 0: no bound but the above; connections with a good certificate do not count */
    size_t connections_per_user_max; /* of a name that http_set_user was given; 0: no bound */
    /* Bytes of bodies and of answers not yet sent, held for one address or user. One alone may always be held. 0: no bound. */
    size_t bytes_per_address_max, bytes_per_user_max;
    bool length_required;    /* a body in chunks is refused (411): the library reads them leniently */
    size_t header_bytes_max; /* 0: 8 KiB; of a connection's memory */
    int64_t request_ns_max;  /* from connection or last answer to the end of the next header, and from there to
                                          the end of the body; 0: 10 s. An idle kept-alive connection gets idle_ns_max */
    int64_t idle_ns_max;     /* between requests; 0: 60 s */
    /* The body's largest size, or a negative number after the exchange was answered here. */
    int64_t (*admit)(void *ctx, struct http_exchange *x);
    void (*handle)(void *ctx, struct http_exchange *x);
    void *ctx;
};

int http_server_new(struct loop *l, const struct http_config *config, struct http_server **ret, struct berth_err *err);
uint16_t http_server_port(const struct http_server *s);
/* Accepts nothing new and closes kept-alive connections as they fall idle; exchanges under way go on. */
void http_server_quiesce(struct http_server *s);
/* Exchanges not yet answered (to the last byte), and streams. */
size_t http_server_busy(const struct http_server *s);
/* Closes everything at once. */
void http_server_free(struct http_server *s);

struct http_server_stats {
    uint64_t connections, accepted, requests, streams, refused; /* now; since start; since start; now; since start */
    uint64_t bytes_in, bytes_out;
    uint64_t bytes_held; /* now: of bodies, and of answers not yet sent */
};
struct http_server_stats http_server_stats(const struct http_server *s);

/* ---- the request; texts live as long as the exchange ---- */
const char *http_method(const struct http_exchange *x);
const char *http_path(const struct http_exchange *x); /* decoded, without the query */
const char *http_query(const struct http_exchange *x,
                       const char *name); /* decoded; NULL: not there; "" without value */
const char *http_header(const struct http_exchange *x, const char *name); /* NULL: not there */
const char *http_body(const struct http_exchange *x, size_t *ret_len);    /* never NULL; ends in a NUL beyond len; a
                                                                              stream lets go of it once it has begun */
const char *http_remote(const struct http_exchange *x);                   /* the peer's address, without port */
/* Who a client certificate was signed for; NULL: none was shown, or none that is good, save that its time may be over. */
struct http_peer {
    char *name;       /* its common name */
    char serial[48];  /* its serial number in hex */
    int64_t until_ns; /* when it ends; a connection may live longer */
    bool over;        /* it had ended when the connection was first asked about */
};
const struct http_peer *http_peer(const struct http_exchange *x);
/* The common name of one that is not over; NULL: none. */
const char *http_peer_name(const struct http_exchange *x);
/* For `admit`: the user whose request this is; counts the connection and what is held for it. -EDQUOT: this user has too many
 * connections, or too much is held for the user or the address; answer with 429. The connection counts as the user's until
 * it ends or another user's request comes by it. NULL: nobody's. */
int http_set_user(struct http_exchange *x, const char *user, struct berth_err *err);
/* Something of the caller's that goes with the exchange; freed by `drop` when the exchange ends, however it ends. */
void http_set_data(struct http_exchange *x, void *data, void (*drop)(void *data));
void *http_data(const struct http_exchange *x);

/* ---- the answer: exactly one of these, once ---- */

/* The text of an answer, in blocks that are freed one by one as they are sent. */
struct http_text {
    struct http_block *first, *last;
    size_t len;
};
void http_text_add(struct http_text *t, const void *at, size_t len);
void http_text_done(struct http_text *t);

/* Headers end with a NULL name; NULL: none. The body is copied. Nobody is to keep the answer, unless a Cache-Control among
 * the headers says otherwise. */
void http_answer(struct http_exchange *x, int status, const struct http_header *headers, const char *content_type,
                 const void *body, size_t len);
/* The same; the text is taken. Becomes a 429 where too much is held for the user or the address. */
void http_answer_text(struct http_exchange *x, int status, const struct http_header *headers, const char *content_type,
                      struct http_text *text);
/* The same from a file, which is closed at the end (also on failure). */
void http_answer_file(struct http_exchange *x, int status, const struct http_header *headers, const char *content_type,
                      int fd, uint64_t len);
/* An answer without an end: chunks follow. `closed` is called once when it ends for any other reason than
 * http_stream_end; the exchange is gone afterwards. */
void http_stream(struct http_exchange *x, int status, const struct http_header *headers, const char *content_type,
                 void (*closed)(void *ctx), void *ctx);
/* Copies. False, and nothing is added: the reader is too slow and more than backlog_max (1 MiB) waits; the caller should
 * end it. */
bool http_stream_send(struct http_exchange *x, const void *data, size_t len);
size_t http_stream_backlog(const struct http_exchange *x);
/* Called whenever the backlog has been sent out. */
void http_stream_on_drained(struct http_exchange *x, void (*drained)(void *ctx), void *ctx);
void http_stream_end(struct http_exchange *x);
