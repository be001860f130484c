/* client.h - HTTP requests, one at a time, on kept-alive connections. Fronts libcurl.
 *
 * For the command line and tools: it blocks. A pin ("sha256//...") replaces the usual check of the certificate.
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
    const char *url;     /* "http://127.0.0.1:3980"; a path in it is a prefix */
    const char *token;   /* sent as a bearer token; NULL: none */
    const char *ca_path; /* NULL: the system's */
    const char *pin;     /* NULL: none */
    /* Shown to a server that asks for one; PEM. Both or neither. client_new looks whether they are good; they are read
     * anew for each connection. */
    const char *cert_path, *key_path;
    int64_t timeout_ns;      /* of one request without a stream; 0: 30 s */
    const char *agent;       /* "berth/0.1" */
    size_t answer_bytes_max; /* of an answer that is kept; 0: 256 MiB */
    /* Is asked for each address that is about to be connected to, after names are resolved; false: no connection is
     * made, and the request fails with -EPERM. NULL: any address. */
    bool (*address_allowed)(void *ctx, const struct sockaddr *address);
    void *address_ctx;
};

int client_new(const struct client_config *config, struct client **ret, struct berth_err *err);
void client_free(struct client *c);

struct client_request {
    const char *method, *path;  /* path with its query, already encoded */
    const char *content_type;   /* NULL: application/json when there is a body */
    const char *const *headers; /* "Name: value", ends with NULL; NULL: none */
    const void *body;
    size_t body_len;
};

struct client_answer {
    int status;
    struct str body;
    char content_type[64];
    uint64_t retry_after_s; /* 0: not said */
};
void client_answer_done(struct client_answer *a);

/* 0 when there was an answer, whatever its status. -ECONNREFUSED, -ETIMEDOUT, -EPERM (certificate), ... with a sentence
 * that says what to do. */
int client_do(struct client *c, const struct client_request *request, struct client_answer *ret, struct berth_err *err);
/* The answer in pieces as they come; `piece` returns false to hang up. A status other than 200 is given in *ret as by
 * client_do, without pieces. */
int client_stream(struct client *c, const struct client_request *request,
                  bool (*piece)(void *ctx, const char *at, size_t len), void *ctx, struct client_answer *ret,
                  struct berth_err *err);

/* Appends text with everything but letters, digits and -._~ percent-encoded. */
void client_encode(struct str *to, const char *text);
