/* client.h - many concurrent connections to one HTTP server from one thread: the load generator of `berth bench
 * daemon`.
 *
 * Each connection of a fleet is kept alive and has at most one outstanding request. Callbacks supply the next request
 * and receive the answer. Every duration is measured, none is estimated. Plain HTTP/1.1 to a numeric address, without
 * TLS or redirects. For all other purposes use net/client/client.h.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* ---- answers ---------------------------------------------------------------------------------------------------- */

enum bench_answer_at {
    ANSWER_STATUS,
    ANSWER_HEADER,
    ANSWER_BODY,
    ANSWER_CHUNK_SIZE,
    ANSWER_CHUNK,
    ANSWER_CHUNK_END,
    ANSWER_TRAILER,
    ANSWER_COMPLETE,
};

/* An answer being parsed. A zeroed struct is the initial state. */
struct bench_answer {
    enum bench_answer_at at;
    int status;
    uint64_t revision;           /* from Berth-Revision; 0: absent */
    bool sized, chunked, closes; /* has a length; is chunked; ends with the connection */
    uint64_t left;               /* remaining bytes of the body or chunk */
    struct str line;             /* incomplete line */
    struct str body;             /* body so far; the caller may empty it between pieces */
};

void bench_answer_done(struct bench_answer *a);
/* Prepares for the next answer; keeps the memory. */
void bench_answer_reset(struct bench_answer *a);
/* Parses a piece and returns the number of bytes used; fewer than `len` if the answer is complete. Returns -EPROTO for
 * malformed input. */
ssize_t bench_answer_feed(struct bench_answer *a, const char *at, size_t len, struct berth_err *err);
/* Handles the end of the connection; returns whether the answer is complete. */
bool bench_answer_ended(struct bench_answer *a);

/* ---- a fleet of connections ------------------------------------------------------------------------------------- */

struct bench_server {
    struct sockaddr_in address;
    const char *token; /* NULL: none */
};

/* Appends a request. Each extra header line ends in "\r\n"; NULL: none. */
void bench_request(struct str *to, const struct bench_server *server, const char *method, const char *path,
                   const char *headers, const char *body);

struct bench_fleet;

struct bench_fleet_calls {
    /* Appends the next request of connection i; returns false to leave it idle until bench_fleet_wake. */
    bool (*next)(void *ctx, size_t i, struct str *to);
    /* Called with the complete answer, `took_ns` after the request was written to the socket. */
    void (*answered)(void *ctx, size_t i, const struct bench_answer *a, int64_t took_ns);
    /* Called after the header of an answer; may be NULL. */
    void (*begun)(void *ctx, size_t i, const struct bench_answer *a);
    /* Called with each piece of the body; returns false to keep the piece, which is then passed again with the next
     * one. NULL: the whole body is kept. */
    bool (*piece)(void *ctx, size_t i, const char *at, size_t len);
};

/* Opens `len` connections. The server's address and token must outlive the fleet. */
int bench_fleet_new(const struct bench_server *server, size_t len, struct bench_fleet **ret, struct berth_err *err);
void bench_fleet_free(struct bench_fleet *f); /* NULL is fine */

/* Runs until every connection is idle or bench_fleet_stop is called; may be called again while answers of the previous
 * run are outstanding. Returns -ETIMEDOUT after patience_ns, -ECONNRESET if the server closes a connection during an
 * answer, -EPROTO for malformed HTTP. */
int bench_fleet_run(struct bench_fleet *f, const struct bench_fleet_calls *calls, void *ctx, int64_t patience_ns,
                    struct berth_err *err);
/* For use in callbacks: bench_fleet_wake asks an idle connection for its next request; bench_fleet_stop ends the
 * run. */
void bench_fleet_wake(struct bench_fleet *f, size_t i);
void bench_fleet_stop(struct bench_fleet *f);

static inline void bench_fleet_cleanup(struct bench_fleet **f)
{
    bench_fleet_free(*f);
}

static inline void bench_answer_cleanup(struct bench_answer *a)
{
    bench_answer_done(a);
}
