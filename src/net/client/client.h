/* client.h - blocking HTTP requests, one at a time, on kept-alive connections. Wraps libcurl.
 *
 * For the command line and tools. A pin ("sha256//...") replaces the usual verification of the server certificate.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/str.h"

struct client;

struct client_config {
    const char *url;     /* "http://127.0.0.1:3980"; its path is a prefix */
    const char *token;   /* sent as a bearer token; NULL: none */
    const char *ca_path; /* trusted CAs; NULL: the system's */
    const char *pin;     /* NULL: none */
    /* Client certificate and key, PEM, for a server that requests one; both or neither. client_new verifies them; each
     * new connection reads the files again. */
    const char *cert_path, *key_path;
    int64_t timeout_ns;      /* of one request without a stream; 0: 30 s */
    const char *agent;       /* "berth/0.1" */
    size_t answer_bytes_max; /* of an answer that is held in memory; 0: 256 MiB */
    /* Called for each resolved address before a connection. If it returns false, no connection is made and the request
     * fails with -EPERM. NULL: all addresses are allowed. */
    bool (*address_allowed)(void *ctx, const struct sockaddr *address);
    void *address_ctx;
};

int client_new(const struct client_config *config, struct client **ret, struct berth_err *err);
void client_free(struct client *c);

struct client_request {
    const char *method, *path;  /* path with query, already encoded */
    const char *content_type;   /* NULL: application/json if there is a body */
    const char *const *headers; /* "Name: value", ends with NULL; NULL: none */
    const void *body;
    size_t body_len;
};

struct client_answer {
    int status;
    struct str body;
    char content_type[64];
    uint64_t retry_after_s; /* 0: not given */
};
void client_answer_done(struct client_answer *a);

/* Sends a request and waits for the answer. Returns 0 for an answer with any status; otherwise -ECONNREFUSED,
 * -ETIMEDOUT, -EPERM (certificate) or another errno, with a text that names a remedy. */
int client_do(struct client *c, const struct client_request *request, struct client_answer *ret, struct berth_err *err);
/* Like client_do, but passes the answer to `piece` as it arrives; `piece` returns false to close the connection. An
 * answer with a status other than 200 is returned in *ret as by client_do, without calls of `piece`. */
int client_stream(struct client *c, const struct client_request *request,
                  bool (*piece)(void *ctx, const char *at, size_t len), void *ctx, struct client_answer *ret,
                  struct berth_err *err);

/* Appends text, percent-encoding all characters except letters, digits and -._~. */
void client_encode(struct str *to, const char *text);
