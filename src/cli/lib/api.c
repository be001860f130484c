#include "cli/lib/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/mem.h"
#include "net/client/client.h"
#include "wire/text/document.h"

enum { ATTEMPTS_MAX = 4, RETRY_AFTER_MAX_S = 20, PAGE = 1000, KEY_BYTES = 16 };

void path_add(struct str *path, const char *text)
{
    str_add_char(path, '/');
    client_encode(path, text);
}

void query_add(struct str *path, const char *name, const char *value)
{
    if (!value)
        return;
    str_add_char(path, memchr(str_text(path), '?', path->len) ? '&' : '?');
    str_add(path, name);
    str_add_char(path, '=');
    client_encode(path, value);
}

void api_answer_done(struct api_answer *a)
{
    json_decref(a->body);
    str_done(&a->text);
    *a = (struct api_answer){0};
}

int api_open(struct api *a, struct cli *cli)
{
    CLEANUP(str) struct str path = {0};
    struct berth_err err;

    *a = (struct api){.cli = cli};
    context_env_read(&a->env);
    if (contexts_path(&a->env, &path, NULL) == 0 && contexts_read(str_text(&path), &a->contexts, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (connection_choose(cli->connect, &a->env, &a->contexts, &a->connection, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    const struct connection *c = &a->connection;
    if (c->exposed)
        cli_warn(cli, "other users can read the token file %s; run 'chmod 600 %s'", c->token_file, c->token_file);
    struct client_config config = {
        .url = c->server,
        .token = c->token,
        .ca_path = c->ca,
        .pin = c->pin,
        .agent = "berth/" BERTH_VERSION,
    };
    if (client_new(&config, &a->client, &err) != 0)
        return cli_fail(cli, EXIT_USAGE, "%s", err.text);
    return EXIT_OK;
}

void api_close(struct api *a)
{
    if (a->client)
        client_free(a->client);
    connection_done(&a->connection);
    contexts_done(&a->contexts);
    a->client = NULL;
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

enum exit_code status_exit_code(int status)
{
    static const struct {
        int status;
        enum exit_code code;
    } rows[] = {
        {401, EXIT_REFUSED    },
        {403, EXIT_REFUSED    },
        {404, EXIT_NOT_FOUND  },
        {409, EXIT_CONFLICT   },
        {412, EXIT_CONFLICT   },
        {429, EXIT_UNREACHABLE},
        {503, EXIT_UNREACHABLE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status)
            return rows[i].code;
    return status < 400 ? EXIT_OK : EXIT_FAILED;
}

static void connection_error_fill(const struct api *a, int rc, struct api_error *t)
{
    bool chosen = strcmp(a->connection.server, SERVER_DEFAULT) != 0;

    t->code = rc == -EFBIG || rc == -EINVAL ? EXIT_FAILED : EXIT_UNREACHABLE;
    t->status = 0;
    t->hint[0] = '\0';
    if (rc == -ECONNREFUSED)
        snprintf(t->hint, sizeof t->hint, "%s",
                 chosen ? "'berth context ls' lists the configured servers; --server URL selects another."
                        : "No server is configured, so the default was tried; set one with --server URL, "
                          "BERTH_SERVER or 'berth context add'.");
}

static void token_hint(const struct api *a, struct api_error *t)
{
    if (a->connection.token)
        snprintf(t->hint, sizeof t->hint,
                 "The token%s%s is not valid for %s: it may be revoked, expired or of another server. "
                 "Create one with 'berth token add' and pass it with --token-file FILE.",
                 a->connection.token_file ? " in " : "", a->connection.token_file ? a->connection.token_file : "",
                 a->connection.server);
    else
        snprintf(t->hint, sizeof t->hint,
                 "No token is configured. 'berthd --init --token-file FILE' wrote the first one to FILE; "
                 "'berth token add' creates others. Pass it with --token-file FILE, BERTH_TOKEN_FILE or "
                 "'berth context add'.");
}

static void answer_error_fill(const struct api *a, const struct api_answer *answer, struct api_error *t)
{
    const json_t *error = json_object_get(answer->body, "error");
    const char *message = json_string_value(json_object_get(error, "message"));

    t->code = status_exit_code(answer->status);
    t->status = answer->status;
    t->hint[0] = '\0';
    if (!message)
        err_set(&t->err, EPROTO, "%s returned status %d without an error message; is it a berthd?",
                a->connection.server, answer->status);
    else
        err_set(&t->err, EPROTO, "%s", message); /* the message also names the field */
    if (answer->status == 401)
        token_hint(a, t);
}

int api_error_print(const struct api *a, const struct api_error *t)
{
    cli_fail(a->cli, t->code, "%s", t->err.text);
    if (t->hint[0])
        cli_hint(a->cli, "%s", t->hint);
    return (int)t->code;
}

bool api_error_is_transient(const struct api_error *t)
{
    return t->code == EXIT_UNREACHABLE || t->status == 429 || t->status == 503;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

double retry_wait(unsigned attempt, int rc, int status, uint64_t retry_after_s)
{
    static const int lost[] = {ECONNRESET, ECONNABORTED, EPIPE, ETIMEDOUT, EIO};
    bool again = rc == 0 && (status == 429 || status == 503) && retry_after_s <= RETRY_AFTER_MAX_S;

    if (attempt >= ATTEMPTS_MAX)
        return -1;
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++)
        again |= rc == -lost[i];
    again |= rc == -ECONNREFUSED && attempt > 1; /* the server answered a moment ago: it may be restarting */
    if (!again)
        return -1;
    return retry_after_s ? (double)retry_after_s : 0.25 * (double)(1u << (attempt - 1));
}

static void pause_s(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};

    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Generates a random Idempotency-Key. */
static void key_make(char to[static 2 * KEY_BYTES + 1])
{
    unsigned char bytes[KEY_BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        abort(); /* fails only on kernels without getrandom(2) */
    for (size_t i = 0; i < KEY_BYTES; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

struct prepared_request {
    struct client_request client;
    bool once;
    char key[64], if_match[64];
    const char *headers[3];
    struct str path;
    char *body;
};

static void prepared_request_cleanup(struct prepared_request *p)
{
    str_done(&p->path);
    free(p->body);
}

/* A request gets an Idempotency-Key if it creates an object or names a revision (a second attempt would conflict). All
 * other requests are idempotent. */
static void prepare(const struct api_request *r, struct prepared_request *p)
{
    size_t headers = 0;

    p->once = r->secret;
    str_add(&p->path, r->path);
    if (r->dry_run)
        query_add(&p->path, "dry_run", "true");
    p->client = (struct client_request){.method = r->method, .path = str_text(&p->path), .headers = p->headers};
    if (!r->dry_run && !r->secret && (strcmp(r->method, "POST") == 0 || r->if_match)) {
        char key[2 * KEY_BYTES + 1];
        key_make(key);
        snprintf(p->key, sizeof p->key, "Idempotency-Key: %s", key);
        p->headers[headers++] = p->key;
    }
    if (r->if_match) {
        snprintf(p->if_match, sizeof p->if_match, "If-Match: %" JSON_INTEGER_FORMAT, r->if_match);
        p->headers[headers++] = p->if_match;
    }
    if (r->body) {
        p->body = json_dumps(r->body, JSON_COMPACT);
        p->client.body = p->body;
        p->client.body_len = strlen(p->body);
    } else if (r->raw) {
        p->client.body = r->raw;
        p->client.body_len = r->raw_len;
        p->client.content_type = r->content_type;
    }
}

/* Returns whether to retry, after the pause before the retry. */
static bool retry_after_pause(struct api *a, unsigned attempt, int rc, struct client_answer *answer,
                              const struct berth_err *err)
{
    double wait_s = retry_wait(attempt, rc, rc == 0 ? answer->status : 0, rc == 0 ? answer->retry_after_s : 0);
    if (wait_s < 0)
        return false;
    if (a->cli->progress && wait_s >= 1)
        cli_warn(a->cli, "%s; retrying in %.0f s", rc != 0 ? err->text : "the server is overloaded", wait_s);
    if (rc == 0)
        client_answer_done(answer);
    pause_s(wait_s);
    return true;
}

/* Sends and retries until an answer is final or retrying is useless. */
static int send_with_retries(struct api *a, const struct prepared_request *p, struct client_answer *ret,
                             struct berth_err *err)
{
    for (unsigned attempt = 1;; attempt++) {
        int rc = client_do(a->client, &p->client, ret, err);
        if ((rc != 0 && p->once) || !retry_after_pause(a, attempt, rc, ret, err)) {
            /* The first DELETE succeeded; only its answer was lost. */
            if (rc == 0 && ret->status == 404 && attempt > 1 && strcmp(p->client.method, "DELETE") == 0)
                ret->status = 204;
            return rc;
        }
    }
}

static int answer_read(struct api *a, struct client_answer *from, struct api_answer *ret, struct api_error *t)
{
    struct api_answer answer = {.status = from->status};
    bool is_json = strstr(from->content_type, "json") != NULL;

    if (is_json && from->body.len > 0) {
        json_error_t problem;
        answer.body = json_loadb(str_text(&from->body), from->body.len, JSON_DECODE_ANY, &problem);
        if (!answer.body) {
            t->code = EXIT_FAILED;
            t->status = from->status;
            t->hint[0] = '\0';
            err_set(&t->err, EPROTO, "the response of %s is not valid JSON (%s)", a->connection.server, problem.text);
            return (int)t->code;
        }
    } else {
        answer.text = from->body;
        from->body = (struct str){0};
    }
    if (answer.status >= 400) {
        answer_error_fill(a, &answer, t);
        api_answer_done(&answer);
        return (int)t->code;
    }
    *ret = answer;
    return EXIT_OK;
}

/* Prints the warnings of an answer: the request succeeded, but may not have the expected effect. */
static void warnings_print(const struct api *a, const json_t *body)
{
    const json_t *answer = json_object_get(body, "dry_run") ? json_object_get(body, "answer") : body, *warning;
    size_t i;

    json_array_foreach(json_object_get(answer, "warnings"), i, warning) if (json_is_string(warning))
        cli_warn(a->cli, "%s", json_string_value(warning));
}

int api_try(struct api *a, const struct api_request *request, struct api_answer *ret, struct api_error *ret_trouble)
{
    CLEANUP(prepared_request) struct prepared_request prepared_request = {0};
    struct client_answer answer = {0};

    prepare(request, &prepared_request);
    int rc = send_with_retries(a, &prepared_request, &answer, &ret_trouble->err);
    if (rc != 0) {
        connection_error_fill(a, rc, ret_trouble);
        return (int)ret_trouble->code;
    }
    rc = answer_read(a, &answer, ret, ret_trouble);
    client_answer_done(&answer);
    if (rc == EXIT_OK && strcmp(request->method, "GET") != 0)
        warnings_print(a, ret->body);
    return rc;
}

int api_do(struct api *a, const struct api_request *request, struct api_answer *ret)
{
    struct api_error trouble;
    int rc = api_try(a, request, ret, &trouble);

    return rc == EXIT_OK ? rc : api_error_print(a, &trouble);
}

int api_get(struct api *a, const char *path, json_t **ret_body)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    int rc = api_do(a, &(struct api_request){.method = "GET", .path = path}, &answer);

    if (rc != EXIT_OK)
        return rc;
    if (!answer.body)
        return cli_fail(a->cli, EXIT_FAILED, "the response of %s to %s is not valid JSON; is it a berthd?",
                        a->connection.server, path);
    *ret_body = take_ptr(&answer.body);
    return EXIT_OK;
}

int api_list(struct api *a, const char *path, uint64_t limit, json_t **ret_items, json_int_t *ret_revision)
{
    CLEANUP(json) json_t *items = json_array();
    CLEANUP(mem) char *after = NULL;
    json_int_t revision = 0;

    do {
        CLEANUP(json) json_t *page = NULL;
        CLEANUP(str) struct str at = {0};
        char count[24];
        uint64_t left = limit ? limit - json_array_size(items) : PAGE;
        str_add(&at, path);
        query_add(&at, "limit", str_u64(left < PAGE ? left : PAGE, count));
        query_add(&at, "after", after);
        int rc = api_get(a, str_text(&at), &page);
        if (rc != EXIT_OK)
            return rc;
        if (!revision)
            revision = json_integer_value(json_object_get(page, "revision"));
        json_array_extend(items, json_object_get(page, "items"));
        mem_free(take_ptr(&after));
        const char *next = json_string_value(json_object_get(page, "continue"));
        if (next && json_array_size(json_object_get(page, "items")) > 0)
            after = mem_strdup(next);
    } while (after && (!limit || json_array_size(items) < limit));
    if (ret_revision)
        *ret_revision = revision;
    *ret_items = take_ptr(&items);
    return EXIT_OK;
}

struct piece_stream {
    bool (*piece)(void *ctx, const char *at, size_t len);
    void *ctx;
    bool begun;
};

static bool piece_pass(void *ctx, const char *at, size_t len)
{
    struct piece_stream *s = ctx;
    s->begun = true;
    return s->piece(s->ctx, at, len);
}

static int request_stream(struct api *a, const struct client_request *request,
                          bool (*piece)(void *ctx, const char *at, size_t len), void *ctx,
                          struct api_error *ret_trouble)
{
    struct client_answer answer = {0};
    struct piece_stream s = {.piece = piece, .ctx = ctx};
    unsigned attempt = 0;
    int rc;

    do /* a stream that has begun is never retried */
        rc = client_stream(a->client, request, piece_pass, &s, &answer, &ret_trouble->err);
    while (!s.begun && retry_after_pause(a, ++attempt, rc, &answer, &ret_trouble->err));

    if (rc != 0) {
        connection_error_fill(a, rc, ret_trouble);
        return (int)ret_trouble->code;
    }
    if (answer.status != 200) {
        struct api_answer none = {0};
        rc = answer_read(a, &answer, &none, ret_trouble);
        api_answer_done(&none);
    }
    client_answer_done(&answer);
    return rc;
}

int api_stream(struct api *a, const char *path, bool (*piece)(void *ctx, const char *at, size_t len), void *ctx,
               struct api_error *ret_trouble)
{
    const struct client_request request = {.method = "GET", .path = path};
    return request_stream(a, &request, piece, ctx, ret_trouble);
}

int api_stream_post(struct api *a, const char *path, const char *json,
                    bool (*piece)(void *ctx, const char *at, size_t len), void *ctx, struct api_error *ret_trouble)
{
    const struct client_request request = {.method = "POST", .path = path, .body = json, .body_len = strlen(json)};
    return request_stream(a, &request, piece, ctx, ret_trouble);
}
