/* client.h - many connections to one HTTP server at once, from one thread: the load of `berth bench daemon`.
 *
 * Each connection of a fleet is kept alive and has one request under way at a time; what it asks next and what becomes
 * of the answer is the caller's. Every time is taken, none is estimated. Plain HTTP/1.1 to a numeric address; no TLS and
 * no redirects. To talk to a server for any other purpose there is net/client/client.h.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* ---- answers ------------------------------------------------------------------------------------------------------ */

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

/* One that is being read. All zero is the beginning. */
struct bench_answer {
    enum bench_answer_at at;
    int status;
    uint64_t revision;           /* Berth-Revision; 0: not said */
    bool sized, chunked, closes; /* has a length; in chunks; the connection ends with it */
    uint64_t left;               /* bytes of the body, or of the chunk, still to come */
    struct str line;             /* that is not whole yet */
    struct str body;             /* as far as it is there; the caller may empty it on the way */
};

void bench_answer_done(struct bench_answer *a);
/* Ready for the next one; keeps the memory. */
void bench_answer_reset(struct bench_answer *a);
/* Takes what belongs to the answer, which may be less than all: then it is complete. Returns the bytes taken, or -EPROTO
 * for what is no answer. */
ssize_t bench_answer_feed(struct bench_answer *a, const char *at, size_t len, struct berth_err *err);
/* The connection has ended: is that an end of the answer, too? */
bool bench_answer_ended(struct bench_answer *a);

/* ---- a fleet of connections --------------------------------------------------------------------------------------- */

struct bench_server {
    struct sockaddr_in address;
    const char *token; /* NULL: none */
};

/* Appends a request. Extra header lines end in "\r\n" each; NULL: none. */
void bench_request(struct str *to, const struct bench_server *server, const char *method, const char *path,
                   const char *headers, const char *body);

struct bench_fleet;

struct bench_fleet_calls {
    /* Appends what connection i asks next; false: it rests, until bench_fleet_wake. */
    bool (*next)(void *ctx, size_t i, struct str *to);
    /* It has its whole answer, `took_ns` after the request was handed to the kernel. */
    void (*answered)(void *ctx, size_t i, const struct bench_answer *a, int64_t took_ns);
    /* The header of an answer is there. NULL: not told. */
    void (*begun)(void *ctx, size_t i, const struct bench_answer *a);
    /* Part of an answer's body, as it comes; false: it is kept, and comes again with what follows. NULL: all is kept. */
    bool (*piece)(void *ctx, size_t i, const char *at, size_t len);
};

/* Connects `len` times. The server's address and token must live as long as the fleet. */
int bench_fleet_new(const struct bench_server *server, size_t len, struct bench_fleet **ret, struct berth_err *err);
void bench_fleet_free(struct bench_fleet *f); /* NULL is fine */

/* Asks and answers until every connection rests, or bench_fleet_stop was called; may be called again, with answers still
 * under way from the last time. -ETIMEDOUT after patience_ns without either, -ECONNRESET when the server hangs up in the
 * middle, -EPROTO for what is no HTTP. */
int bench_fleet_run(struct bench_fleet *f, const struct bench_fleet_calls *calls, void *ctx, int64_t patience_ns,
                    struct berth_err *err);
/* From within a call: asks a resting connection for its next request; ends the run. */
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
