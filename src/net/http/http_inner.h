/* http_inner.h - what the files of the HTTP server share: server, connection, exchange. For http*.c only.
 *
 *   http.c            the server's life and its place in the loop
 *   http_conn.c       who may connect: the listening socket, bounds, the end of a connection
 *   http_deadline.c   how long a connection may take for what it does now
 *   http_request.c    a request from its first line to `handle`
 *   http_account.c    what is held for an address and for a user
 *   http_strict.c     is a header what it seems to be, byte for byte
 *   http_answer.c     answers
 *   http_stream.c     answers without an end
 *   http_peer.c       client certificates
 *
 * The library calls back inside MHD_run and nowhere else. A connection is suspended in it whenever it waits for us
 * (an answer, the next piece of a stream), and only then; the library does not look at a suspended socket.
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

/* A connection is in the list of at most one, each in order of time. */
enum deadline {
    DEADLINE_NONE,    /* it waits for us */
    DEADLINE_REQUEST, /* header or body */
    DEADLINE_IDLE,    /* between requests */
    DEADLINE_ANSWER,  /* it reads what we sent */
    DEADLINE_LINGER,  /* it hears no more but may still be sending */
    DEADLINES,
};

/* An address, or a user, and what it holds. */
struct peer {
    uint32_t index;
    uint32_t conns;
    uint32_t trusted; /* of them: with a good certificate */
    size_t bytes;     /* of bodies and of answers not yet sent */
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
    struct MHD_Connection *mhd; /* NULL: the library is done with it */
    struct peer *peer;
    struct peer *user;              /* NULL: nobody's */
    struct http_exchange *exchange; /* NULL between requests */
    struct loop_source *watch;      /* of the socket, where the library does not look */
    struct conn *prev, *next;       /* by deadline */
    struct http_peer shown;         /* the verified client certificate; its name is owned, NULL: none */
    int64_t deadline_ns;
    uint64_t moved_bytes; /* at the last look: acknowledged by the peer, or read away */
    int fd;               /* the library's; our own copy while it lingers */
    enum deadline deadline;
    bool linger;       /* the request was refused before it was read: closing at once could take the answer with it */
    bool peer_checked; /* `shown` is what there is */
    bool known;        /* it has begun a request */
    bool trusted;      /* counted in peer.trusted */
};

struct conn_list {
    struct conn *first, *last;
};

struct http_exchange {
    struct http_server *server;
    struct conn *conn;
    struct http_exchange *prev, *next; /* of the server */
    const char *method;
    const char *why;         /* the target is refused */
    const char *line_target; /* where the library has the target of the first line, and how long that was */
    size_t line_target_len;
    struct target target;
    struct str body;
    size_t held; /* bytes counted in the accounts of the connection */
    struct http_text text_left;
    size_t block_sent; /* of the first block of it */
    uint64_t body_max;
    void *data;
    void (*drop)(void *data);
    struct MHD_Response *response; /* ours until it is queued */
    unsigned status;
    bool begun;     /* the header was judged */
    bool handled;   /* the body is there */
    bool answered;  /* by whoever */
    bool suspended; /* in the library */
    bool old;       /* HTTP/1.0 */
    /* Streams. */
    bool streams, ended, dead; /* dead: the peer is gone */
    bool moved;                /* something was sent since the last `drained` */
    void (*closed)(void *ctx), (*drained)(void *ctx);
    void *closed_ctx, *drained_ctx;
    struct str backlog;
    size_t backlog_sent;
    char text[]; /* of the target */
};

struct http_server {
    struct loop *loop;
    struct MHD_Daemon *mhd;
    struct loop_source *mhd_source, *run_timer;
    struct loop_source *listen_source; /* NULL: accepts nothing more */
    struct loop_source *deadline_timer, *accept_timer;
    int listen_fd;
    uint16_t port;
    bool length_required;
    bool tls, running, stopping, quiesced;
    bool resumed;      /* inside MHD_run: it has to run again */
    unsigned restless; /* runs one after the other, each of which wanted the next at once */
    size_t strangers;  /* connections that never began a request */
    int64_t (*admit)(void *ctx, struct http_exchange *x);
    void (*handle)(void *ctx, struct http_exchange *x);
    void *ctx;
    size_t connections_max, connections_per_address_max, connections_per_user_max, header_bytes_max;
    size_t bytes_per_address_max, bytes_per_user_max;
    int64_t request_ns_max, idle_ns_max, answer_ns_max;
    int64_t deadline_next_ns; /* what the timer is set to */
    struct conn_list deadlines[DEADLINES];
    struct conn *arriving; /* the one that the library is being told of */
    struct map peer_map;
    VEC(struct peer *) peers;   /* NULL where free */
    VEC(uint32_t) peers_unused; /* free places among them */
    uint64_t peer_seed;
    struct http_exchange *exchanges;
    struct http_server_stats stats;
    size_t busy;
};

/* http.c */
/* Lets the library run soon: a connection was resumed. */
void server_wake(struct http_server *s);

/* http_conn.c */
int listen_open(struct http_server *s, const char *address, uint16_t port, struct berth_err *err);
void listen_close(struct http_server *s);
/* The timer's call: tries again after there were no descriptors left. */
void listen_again(void *ctx);
/* The library's MHD_OPTION_NOTIFY_CONNECTION. */
void conn_notify(void *ctx, struct MHD_Connection *mhd, void **conn, enum MHD_ConnectionNotificationCode what);
/* An answer straight to the socket, where the library takes none. What does not fit at once is lost. */
void conn_say(struct conn *c, unsigned status, const char *text);
/* Nothing more in either direction; the library will notice. */
void conn_shut(struct conn *c);
/* Has the library look at a connection whenever it runs, which it does where it has a timeout of its own. One that is
 * closed while its answer is made ready is otherwise forgotten: it waits for no event and is on no list of ready ones. */
void conn_hurry(struct conn *c);
void conn_free(struct conn *c);
/* The account of an address or user, made where there is none, with one more connection; and one less. */
struct peer *peer_join(struct http_server *s, const char *remote);
void peer_leave(struct http_server *s, struct peer *p);
void peers_done(struct http_server *s);

/* http_deadline.c */
void deadline_set(struct conn *c, enum deadline deadline);
void deadline_drop(struct conn *c);
/* The timer's call. */
void deadlines_pass(void *ctx);

/* http_request.c */
void *request_line(void *ctx, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result request_step(void *ctx, struct MHD_Connection *mhd, const char *url, const char *method,
                             const char *version, const char *upload, size_t *upload_len, void **exchange);
void request_completed(void *ctx, struct MHD_Connection *mhd, void **exchange, enum MHD_RequestTerminationCode how);

/* http_strict.c */
enum { HTTP_WALKS = MHD_VERSION < 0x00097701 }; /* the library is lenient, and parses in place */
/* What of the header's bytes could be read in another way; NULL: nothing. For request_begin: the library has just parsed it. */
const char *strict_fault(const struct http_exchange *x, const char *method, const char *version, size_t header_bytes);

/* http_account.c */
/* May so many bytes more be held for the exchange's address and user? */
bool held_fits(const struct http_exchange *x, size_t bytes);
void held_add(struct http_exchange *x, size_t bytes);
void held_drop(struct http_exchange *x, size_t bytes);

/* http_answer.c */
/* A refusal of ours: one line of text. */
void answer_refusal(struct http_exchange *x, int status, const char *text);
void answer_with(struct http_exchange *x, int status, const struct http_header *headers, const char *content_type,
                 struct MHD_Response *response);
enum MHD_Result answer_queue(struct http_exchange *x);
void exchange_suspend(struct http_exchange *x);
void exchange_resume(struct http_exchange *x);

/* http_peer.c */
/* Fills *ret, which is empty, from a certificate that the session's peer has shown and that is good. The name is owned. */
void peer_certificate(void *session, struct http_peer *ret);
