/* user_kit_test.h - for tests: the daemon's logic on a store in memory, with requests as clients send them.
 *
 *     struct kit k;
 *     kit_open(&k);
 *     assert_int_equal(ask(&k, k.admin, "POST", "/v1/groups", "{\"id\": \"red\"}"), 201);
 *
 * The answer's body stays in k.body until the next request. Time stands still unless the test advances it.
 */
#pragma once

#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "control/control.h"
#include "control/watch/watch.h"

enum { KIT_SECOND = 1000000000, KIT_START_S = 1000000, KIT_PAIRS_MAX = 8 };

struct kit {
    struct store *store;
    struct control *control;
    struct log log;
    int64_t now_ns;
    uint64_t random;
    char admin[TOKEN_TEXT_MAX]; /* token of the first administrator */
    /* the last answer */
    bool answered;
    int status;
    json_t *body;
    char *text; /* the whole body as text, whatever its type */
    /* for the next request only; NULL: none */
    const char *idempotency_key, *if_match;
};

static inline int64_t kit_clock(void *ctx)
{
    return ((struct kit *)ctx)->now_ns;
}

/* The same bytes in every run. */
static inline void kit_random(void *ctx, void *buf, size_t len)
{
    struct kit *k = ctx;
    for (size_t i = 0; i < len; i++) {
        k->random = k->random * 6364136223846793005u + 1442695040888963407u;
        ((unsigned char *)buf)[i] = (unsigned char)(k->random >> 56);
    }
}

static inline void kit_run(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    (void)ctx;
    work(arg);
    after(arg);
}

static inline void kit_wake_at(void *ctx, int64_t steady_ns)
{
    (void)ctx;
    (void)steady_ns;
}

static inline void kit_open(struct kit *k)
{
    struct berth_err err = {0};
    static const struct control_options options = {.secret_key_given = true, .secret_key = "for tests"};
    *k = (struct kit){.store = store_memory_new(), .now_ns = (int64_t)KIT_START_S * KIT_SECOND, .random = 1};
    struct control_env env = {.ctx = k,
                              .clock_ns = kit_clock,
                              .steady_ns = kit_clock,
                              .random = kit_random,
                              .run = kit_run,
                              .wake_at = kit_wake_at,
                              .log = &k->log};
    assert_true(sodium_init() >= 0);
    if (control_new(&env, &options, k->store, &k->control, &err) < 0 || control_init(k->control, k->admin, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void kit_close(struct kit *k)
{
    control_quiesce(k->control);
    control_free(k->control);
    store_close(k->store);
    json_decref(k->body);
    free(k->text);
}

struct kit_query {
    char text[256];
    const char *names[KIT_PAIRS_MAX], *values[KIT_PAIRS_MAX];
    size_t len;
};

static inline const char *kit_query_find(const void *from, const char *name)
{
    const struct kit_query *q = from;
    for (size_t i = 0; i < q->len; i++)
        if (strcmp(q->names[i], name) == 0)
            return q->values[i];
    return NULL;
}

static inline void kit_query_read(struct kit_query *q, const char *text)
{
    *q = (struct kit_query){0};
    assert_true(strlen(text) < sizeof q->text);
    (void)snprintf(q->text, sizeof q->text, "%s", text);
    char *rest = NULL;
    for (char *pair = strtok_r(q->text, "&", &rest); pair; pair = strtok_r(NULL, "&", &rest)) {
        char *equals = strchr(pair, '=');
        assert_true(equals && q->len < KIT_PAIRS_MAX);
        *equals = '\0';
        q->names[q->len] = pair;
        q->values[q->len++] = equals + 1;
    }
}

static inline void kit_answered(void *ctx, struct answer *a)
{
    struct kit *k = ctx;
    assert_false(k->answered);
    k->answered = true;
    k->status = a->status;
    k->body = take_ptr(&a->body);
    if (k->body)
        k->text = json_dumps(k->body, JSON_COMPACT | JSON_SORT_KEYS);
    else
        k->text = mem_strdup(str_text(&a->text));
    if (a->stream) {
        stream_stop(a->stream);
        a->stream = NULL;
    }
}

/* Sends a request, waits, and returns the status. `path` may have a query; body NULL: none. */
static inline int ask(struct kit *k, const char *token, const char *method, const char *path, const char *body)
{
    struct kit_query query = {0};
    char plain[512];
    size_t len = strcspn(path, "?");
    assert_true(len < sizeof plain);
    memcpy(plain, path, len);
    plain[len] = '\0';
    if (path[len])
        kit_query_read(&query, path + len + 1);
    struct request_input r = {.method = method,
                              .path = plain,
                              .token = token,
                              .idempotency_key = k->idempotency_key,
                              .if_match = k->if_match,
                              .remote = "10.0.0.1",
                              .body = body,
                              .body_len = body ? strlen(body) : 0,
                              .query = kit_query_find,
                              .query_from = &query};
    json_decref(k->body);
    free(k->text);
    k->body = NULL;
    k->text = NULL;
    k->answered = false;
    k->idempotency_key = k->if_match = NULL;
    control_handle(k->control, &r, kit_answered, k);
    for (int i = 0; i < 1000 && !k->answered; i++)
        control_pump(k->control);
    assert_true(k->answered);
    return k->status;
}

/* Sends a request and fails unless the status is `want`. */
#define asked(k, token, method, path, body, want)                                                                      \
    do {                                                                                                               \
        int got_ = ask(k, token, method, path, body);                                                                  \
        if (got_ != (want))                                                                                            \
            fail_msg("%s %s: expected %d, got %d %s", method, path, want, got_, (k)->text);                            \
    } while (0)

static inline const char *kit_text(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    return text ? text : "";
}

static inline const char *kit_message(const struct kit *k)
{
    return kit_text(json_object_get(k->body, "error"), "message");
}

/* Creates, as the administrator, a token of a user or, with ':' before the name, of a node. */
static inline void kit_token(struct kit *k, const char *who, char ret[static TOKEN_TEXT_MAX])
{
    char body[256];
    (void)snprintf(body, sizeof body, "{\"%s\": \"%s\"}", *who == ':' ? "node" : "user", *who == ':' ? who + 1 : who);
    asked(k, k->admin, "POST", "/v1/tokens", body, 201);
    (void)snprintf(ret, TOKEN_TEXT_MAX, "%s", kit_text(k->body, "token"));
}

static inline void kit_user(struct kit *k, const char *id, const char *group, const char *role,
                            char ret_token[static TOKEN_TEXT_MAX])
{
    char body[256];
    (void)snprintf(body, sizeof body, "{\"id\": \"%s\", \"group\": \"%s\", \"role\": \"%s\"}", id, group, role);
    asked(k, k->admin, "POST", "/v1/users", body, 201);
    kit_token(k, id, ret_token);
}
