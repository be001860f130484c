/* http_inner.h - internal declarations of the HTTP server: server, connection, exchange. Only for http*.c.
 *
 *     http.c            lifetime of the server, its integration in the loop
 *     http_conn.c       connections: the listening socket, bounds, closing
 *     http_deadline.c   deadlines of connections
 *     http_request.c    a request from its first line to `handle`
 *     http_account.c    bytes and connections held for an address and for a user
 *     http_strict.c     strict check of the header bytes
 *     http_answer.c     answers
 *     http_stream.c     streams: answers without a known end
 *     http_peer.c       client certificates
 *
 * libmicrohttpd calls back only inside MHD_run. A connection is suspended in libmicrohttpd exactly while it waits for
 * this server (for an answer, or for the next piece of a stream). libmicrohttpd does not watch a suspended socket.
 */
#pragma once

#include <microhttpd.h>

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "net/http/http.h"
#include "net/http/target.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* What a connection is waiting for. Each connection is in at most one list of deadlines; each list is ordered by
 * time. */
enum deadline {
    DEADLINE_NONE,    /* the connection waits for this server */
    DEADLINE_REQUEST, /* the client sends header or body */
    DEADLINE_IDLE,    /* between requests */
    DEADLINE_ANSWER,  /* the client reads the answer */
    DEADLINE_LINGER,  /* the request was refused, but the client may still be sending */
    DEADLINES,
};

/* The account of an address or of a user, with its held resources. */
struct peer {
    uint32_t index;
    uint32_t conns;
    uint32_t trusted; /* number of these with a valid client certificate */
    size_t bytes;     /* of bodies and of unsent answers */
    char remote[];    /* an address, or "user:NAME" */
};

enum { BLOCK_TEXT_BYTES = 64 << 10 };

struct http_block {
    struct http_block *next;
    size_t len;
    char at[BLOCK_TEXT_BYTES];
};

struct conn {
    struct http_server *server;
    struct MHD_Connection *mhd; /* NULL: libmicrohttpd has released the connection */
    struct peer *peer;
    struct peer *user;            /* NULL: no user */
    struct http_request *request; /* NULL between requests */
    struct loop_source *watch;    /* of the socket, while libmicrohttpd does not watch it */
    struct conn *prev, *next;     /* in the list of its deadline */
    struct http_peer shown;       /* verified client certificate; owns its name, NULL: none */
    int64_t deadline_ns;
    uint64_t progress_bytes; /* at the last check: bytes acknowledged by the peer, or bytes discarded */
    int fd;                  /* owned by libmicrohttpd; a duplicate while lingering */
    enum deadline deadline;
    bool linger;       /* the request was refused before its end; closing at once could destroy the answer */
    bool peer_checked; /* the certificate was checked; `shown` is the result */
    bool known;        /* the connection has begun a request */
    bool trusted;      /* counted in peer.trusted */
};

struct conn_list {
    struct conn *first, *last;
};

struct http_request {
    struct http_server *server;
    struct conn *conn;
    struct http_request *prev, *next; /* in the server's list of exchanges */
    const char *method;
    const char *why;         /* why the target was rejected; NULL: valid */
    const char *line_target; /* libmicrohttpd's buffer of the target in the first line, and its length */
    size_t line_target_len;
    struct request_target target;
    struct str body;
    size_t held; /* bytes counted in the accounts of the connection */
    struct http_text text_left;
    size_t block_sent; /* bytes sent of its first block */
    uint64_t body_max;
    void *data;
    void (*drop)(void *data);
    struct MHD_Response *response; /* owned until it is queued */
    unsigned status;
    bool begun;     /* the header was checked */
    bool handled;   /* the body is complete */
    bool answered;  /* by `admit`, by `handle` or by the server */
    bool suspended; /* suspended in libmicrohttpd */
    bool old;       /* HTTP/1.0 */
    /* Streams. */
    bool streams, ended, dead; /* dead: the peer has closed */
    bool moved;                /* bytes were sent since the last `drained` */
    void (*closed)(void *ctx), (*drained)(void *ctx);
    void *closed_ctx, *drained_ctx;
    struct str backlog;
    size_t backlog_sent;
    char text[]; /* text of the decoded target */
};

struct http_server {
    struct loop *loop;
    struct MHD_Daemon *mhd;
    struct loop_source *mhd_source, *run_timer;
    struct loop_source *listen_source; /* NULL: accepts no more connections */
    struct loop_source *deadline_timer, *accept_timer;
    int listen_fd;
    uint16_t port;
    bool length_required;
    bool tls, running, stopping, quiesced;
    bool resumed;                 /* a connection was resumed inside MHD_run, which has to run again */
    unsigned busy_runs;           /* number of consecutive runs that each requested the next one immediately */
    size_t conns_without_request; /* connections that have not begun a request */
    int64_t (*admit)(void *ctx, struct http_request *x);
    void (*handle)(void *ctx, struct http_request *x);
    void *ctx;
    size_t connections_max, connections_per_address_max, connections_per_user_max, header_bytes_max;
    size_t bytes_per_address_max, bytes_per_user_max;
    int64_t request_ns_max, idle_ns_max, answer_ns_max;
    int64_t deadline_next_ns; /* when the timer expires */
    struct conn_list deadlines[DEADLINES];
    struct conn *conn_being_added; /* the connection that is being passed to libmicrohttpd */
    struct map peer_map;
    VEC(struct peer *) peers;   /* NULL: unused entry */
    VEC(uint32_t) peers_unused; /* unused entries of `peers` */
    uint64_t peer_seed;
    struct http_request *requests_list;
    struct http_server_stats stats;
    size_t busy;
};

/* http.c */
/* Schedules a run of libmicrohttpd, after a connection was resumed. */
void server_wake(struct http_server *s);

/* http_conn.c */
int listen_open(struct http_server *s, const char *address, uint16_t port, struct berth_err *err);
void listen_close(struct http_server *s);
/* Timer callback: accepts again after the process had run out of descriptors. */
void listen_retry(void *ctx);
/* Callback for MHD_OPTION_NOTIFY_CONNECTION. */
void conn_notify(void *ctx, struct MHD_Connection *mhd, void **conn, enum MHD_ConnectionNotificationCode what);
/* Writes an answer directly to the socket, where libmicrohttpd accepts none. Bytes that do not fit at once are lost. */
void conn_send_error(struct conn *c, unsigned status, const char *text);
/* Shuts down both directions of the socket; libmicrohttpd notices this. */
void conn_shutdown(struct conn *c);
/* Makes libmicrohttpd process the connection in every run, by giving the connection its own timeout. Otherwise
 * libmicrohttpd forgets a connection that is closed while its answer is prepared: such a connection waits for no event
 * and is in no list of ready connections. */
void conn_force_processing(struct conn *c);
void conn_free(struct conn *c);
/* peer_ref adds a connection to the account of an address or user, and creates the account if needed. peer_unref
 * removes a connection. */
struct peer *peer_ref(struct http_server *s, const char *remote);
void peer_unref(struct http_server *s, struct peer *p);
void peers_done(struct http_server *s);

/* http_deadline.c */
void deadline_set(struct conn *c, enum deadline deadline);
void deadline_drop(struct conn *c);
/* Timer callback for expired deadlines. */
void deadlines_expire(void *ctx);

/* http_request.c */
void *request_line(void *ctx, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result request_step(void *ctx, struct MHD_Connection *mhd, const char *url, const char *method,
                             const char *version, const char *upload, size_t *upload_len, void **request);
void request_completed(void *ctx, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode how);

/* http_strict.c */
enum { HTTP_STRICT_CHECK = MHD_VERSION < 0x00097701 }; /* old versions are lenient and parse in place */
/* Returns a description of ambiguous bytes in the header; NULL: none. Called from request_begin, right after
 * libmicrohttpd has parsed the header. */
const char *strict_fault(const struct http_request *x, const char *method, const char *version, size_t header_bytes);

/* http_account.c */
/* Returns whether the accounts of the exchange's address and user can hold this many more bytes. */
bool held_bytes_fit(const struct http_request *x, size_t bytes);
void held_bytes_add(struct http_request *x, size_t bytes);
void held_bytes_drop(struct http_request *x, size_t bytes);

/* http_answer.c */
/* Answers with an error of the server itself: one line of text. */
void answer_refusal(struct http_request *x, int status, const char *text);
void answer_with(struct http_request *x, int status, const struct http_header *headers, const char *content_type,
                 struct MHD_Response *response);
enum MHD_Result answer_queue(struct http_request *x);
void request_suspend(struct http_request *x);
void request_resume(struct http_request *x);

/* http_peer.c */
/* Fills *ret from the verified certificate of the session's peer. *ret must be empty; it owns the name. */
void peer_certificate(void *session, struct http_peer *ret);
