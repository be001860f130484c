/* api.h - calls of the daemon's API (docs/api.md), and what goes wrong with them in words.
 *
 * Finds the server (context.h), sends JSON, reads JSON. A call whose connection broke, or that was told to come back
 * later, is tried again a few times: requests that create something carry an Idempotency-Key, so that none happens
 * twice. A failure ends as an exit code and a sentence with what to do next. Knows no kind of object; see collection.h.
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

/* Each of these returns an enum exit_code; what failed has been told unless said otherwise. */

/* Nothing is sent yet. Close it in any case. */
int api_open(struct api *a, struct cli *cli);
void api_close(struct api *a);
static inline void api_cleanup(struct api *a)
{
    api_close(a);
}

struct api_request {
    const char *method, *path;
    const json_t *body; /* NULL: none, or `raw` */
    const char *raw;
    size_t raw_len;
    const char *content_type; /* of raw */
    json_int_t if_match;      /* a revision; 0: none */
    bool dry_run;
    bool secret; /* the answer must not be kept, so there is no key, and no second attempt after a lost connection */
};

struct api_answer {
    int status;
    json_t *body;    /* NULL: none */
    struct str text; /* of an answer that is not JSON */
};
void api_answer_done(struct api_answer *a);
static inline void api_answer_cleanup(struct api_answer *a)
{
    api_answer_done(a);
}

struct api_trouble {
    enum exit_code code;
    int status;                    /* 0: no answer */
    struct berth_err err;          /* its text */
    char hint[BERTH_ERR_TEXT_MAX]; /* what to do next; "": the text says it */
};

/* Tells nothing: what failed is in *ret_trouble. */
int api_try(struct api *a, const struct api_request *request, struct api_answer *ret, struct api_trouble *ret_trouble);
/* Writes it and returns its code. */
int api_tell(const struct api *a, const struct api_trouble *trouble);
int api_do(struct api *a, const struct api_request *request, struct api_answer *ret);
/* Is it a server that is away or has too much to do? Who waits for something may go on waiting, then. */
bool api_comes_back(const struct api_trouble *trouble);
/* GET; *ret_body is a new reference, never NULL. */
int api_get(struct api *a, const char *path, json_t **ret_body);

/* Every item of a collection, page by page, at most `limit` (0: all). `path` may have a query. */
int api_list(struct api *a, const char *path, uint64_t limit, json_t **ret_items, json_int_t *ret_revision);

/* An answer in pieces as they come, until `piece` returns false or the server ends it. Tells nothing. */
int api_stream(struct api *a, const char *path, bool (*piece)(void *ctx, const char *at, size_t len), void *ctx,
               struct api_trouble *ret_trouble);
/* The same of a POST with this JSON. */
int api_stream_post(struct api *a, const char *path, const char *json,
                    bool (*piece)(void *ctx, const char *at, size_t len), void *ctx, struct api_trouble *ret_trouble);

/* Appends "/TEXT", encoded. */
void path_add(struct str *path, const char *text);
/* Appends "?NAME=VALUE" or "&NAME=VALUE", encoded; nothing where value is NULL. */
void query_add(struct str *path, const char *name, const char *value);

/* The exit code that a status stands for; EXIT_OK below 400. */
enum exit_code status_exit_code(int status);
/* Seconds before the next attempt; negative: give up. `attempt` counts those made, `rc` is client_do's, and of an answer
 * status and Retry-After count. */
double retry_wait(unsigned attempt, int rc, int status, uint64_t retry_after_s);
