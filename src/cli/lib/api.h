/* api.h - requests to the daemon's API (docs/api.md), with errors as exit codes and sentences.
 *
 * Finds the server (cli/system/context.h), sends JSON, parses JSON. A request is retried a few times when its
 * connection broke or the server answered with Retry-After. Requests that create an object carry an Idempotency-Key, so
 * that a retry never creates a second object. An error becomes an exit code and a sentence that says what to do next.
 * This module knows no kinds of object; see cli/show/collection.h.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/cli.h"
#include "cli/system/context.h"

struct client;

struct api {
    struct cli *cli;
    struct context_env env;
    struct contexts contexts;
    struct connection connection;
    struct client *client;
};

/* Each of these functions returns an enum exit_code and prints the error, unless its comment says otherwise. */

/* Reads the configuration and creates the client; sends nothing. The caller must call api_close even after a
 * failure. */
int api_open(struct api *a, struct cli *cli);
void api_close(struct api *a);
static inline void api_cleanup(struct api *a)
{
    api_close(a);
}

struct api_request {
    const char *method, *path;
    const json_t *body; /* NULL: no body, or `raw` */
    const char *raw;
    size_t raw_len;
    const char *content_type; /* content type of `raw` */
    json_int_t if_match;      /* expected revision; 0: none */
    bool dry_run;
    bool secret; /* the answer must not be stored: no Idempotency-Key, and no retry after a lost connection */
};

struct api_answer {
    int status;
    json_t *body;    /* NULL: none */
    struct str text; /* body of an answer that is not JSON */
};
void api_answer_done(struct api_answer *a);
static inline void api_answer_cleanup(struct api_answer *a)
{
    api_answer_done(a);
}

struct api_error {
    enum exit_code code;
    int status;                    /* 0: no answer */
    struct berth_err err;          /* the error message */
    char hint[BERTH_ERR_TEXT_MAX]; /* what to do next; "": the message says it */
};

/* Prints no error: returns the error in *ret_trouble. */
int api_try(struct api *a, const struct api_request *request, struct api_answer *ret, struct api_error *ret_trouble);
/* Prints the error and returns its exit code. */
int api_error_print(const struct api *a, const struct api_error *trouble);
int api_do(struct api *a, const struct api_request *request, struct api_answer *ret);
/* Returns whether the server is unreachable or overloaded, so that a waiting verb may continue to wait. */
bool api_error_is_transient(const struct api_error *trouble);
/* Sends a GET; *ret_body is a new reference, never NULL. */
int api_get(struct api *a, const char *path, json_t **ret_body);

/* Reads all items of a collection page by page, at most `limit` (0: all). `path` may have a query. */
int api_list(struct api *a, const char *path, uint64_t limit, json_t **ret_items, json_int_t *ret_revision);

/* Sends a GET and passes each piece of the answer to `piece` on arrival, until `piece` returns false or the server ends
 * the answer. Prints no error. */
int api_stream(struct api *a, const char *path, bool (*piece)(void *ctx, const char *at, size_t len), void *ctx,
               struct api_error *ret_trouble);
/* Like api_stream, for a POST with this JSON. */
int api_stream_post(struct api *a, const char *path, const char *json,
                    bool (*piece)(void *ctx, const char *at, size_t len), void *ctx, struct api_error *ret_trouble);

/* Appends "/TEXT", percent-encoded. */
void path_add(struct str *path, const char *text);
/* Appends "?NAME=VALUE" or "&NAME=VALUE", percent-encoded; appends nothing if value is NULL. */
void query_add(struct str *path, const char *name, const char *value);

/* Returns the exit code of an HTTP status; EXIT_OK below 400. */
enum exit_code status_exit_code(int status);
/* Returns the seconds to wait before the next attempt; negative: give up. `attempt` is the number of attempts made,
 * `rc` the result of client_do; `status` and `retry_after_s` are those of the answer. */
double retry_wait(unsigned attempt, int rc, int status, uint64_t retry_after_s);
