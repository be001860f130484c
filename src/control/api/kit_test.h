/* kit_test.h - test helper: a whole control over a store in memory, with a manual clock, called as berthd calls it.
 *
 *     struct kit k;
 *     kit_open(&k);
 *     kit_call(&k, "user:alice", "POST", "/v1/jobs", "{name: a}");     the body is YAML, so that rows stay short
 *     assert_int_equal(k.status, 201);
 *
 * The caller is named as in a client certificate, "user:ID" or "node:ID"; "" is an unauthenticated caller. No plan is
 * made unless kit_plan is called.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "control/control.h"
#include "control/watch/watch.h"
#include "store/store.h"
#include "wire/text/document.h"
#include "wire/text/yaml.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define ADMIN "user:admin"

struct kit {
    struct store *store;
    struct control *control;
    int64_t now_ns, steady_ns;
    int64_t jumped_ns; /* sum of the jumps of the wall clock, included in now_ns */
    uint64_t random;
    const char *if_match, *key; /* headers of the next request */
    const char *serial;         /* serial number of the caller's certificate; NULL: never expires */
    int64_t until_ns;           /* expiry of that certificate */
    bool other_key;             /* the next daemon has a different key for secrets */
    int64_t lease_ns;           /* option of the next daemon; 0: from the settings */
    const char *journal_dir;    /* option of the next daemon; NULL: none */

    bool answered;
    int status;
    json_t *body; /* of the last answer; NULL: none */
    uint64_t revision;
    bool streamed;
    char text[64 * 1024]; /* `body` as text, for messages */
};

static inline int64_t kit_clock(void *ctx)
{
    return ((struct kit *)ctx)->now_ns;
}

/* Boot time of the control: now_ns without the jumps of the wall clock. */
static inline int64_t kit_boot(void *ctx)
{
    return ((struct kit *)ctx)->now_ns - ((struct kit *)ctx)->jumped_ns;
}

static inline int64_t kit_steady(void *ctx)
{
    return ((struct kit *)ctx)->steady_ns;
}

static inline void kit_random(void *ctx, void *buf, size_t len)
{
    struct kit *k = ctx;
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)buf)[i] = (unsigned char)((k->random = k->random * 6364136223846793005u + 1) >> 33);
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

static inline void kit_start(struct kit *k)
{
    static const struct log silent = {0};
    struct control_env env = {.ctx = k,
                              .clock_ns = kit_clock,
                              .steady_ns = kit_steady,
                              .boot_ns = kit_boot,
                              .random = kit_random,
                              .run = kit_run,
                              .wake_at = kit_wake_at,
                              .log = &silent};
    struct control_options options = {.seed = 1,
                                      .lease_ns = k->lease_ns,
                                      .journal_dir = k->journal_dir,
                                      .secret_key_given = true,
                                      .secret_key = "for tests"};
    struct berth_err err = {0};
    options.secret_key[31] = k->other_key;
    if (control_new(&env, &options, k->store, &k->control, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void kit_done(struct kit *k)
{
    control_quiesce(k->control);
    control_free(k->control);
    store_close(k->store);
    json_decref(k->body);
}

/* Kills the daemon and starts a new one on the durable data. */
static inline void kit_restart(struct kit *k)
{
    struct store *left = store_memory_crash(k->store);
    control_quiesce(k->control); /* writes to the old store, which is discarded */
    control_free(k->control);
    store_close(k->store);
    k->store = left;
    kit_start(k);
}

/* ---- one request ------------------------------------------------------------------------------------------------ */

struct kit_query {
    char text[512]; /* "a=1&b=2" with NULs instead of '&' and '=' */
    size_t len;
};

static inline const char *kit_query_find(const void *from, const char *name)
{
    const struct kit_query *q = from;
    for (size_t at = 0; at < q->len;) {
        const char *key = q->text + at, *value = key + strlen(key) + 1;
        if (strcmp(key, name) == 0)
            return value;
        at = (size_t)(value - q->text) + strlen(value) + 1;
    }
    return NULL;
}

static inline void kit_answered(void *ctx, struct answer *answer)
{
    struct kit *k = ctx;
    assert_false(k->answered);
    k->answered = true;
    k->status = answer->status;
    k->body = json_incref(answer->body);
    k->revision = answer->revision;
    k->streamed = answer->stream != NULL;
    size_t len = k->body ? json_dumpb(k->body, k->text, sizeof k->text - 1, JSON_COMPACT) : 0;
    k->text[len < sizeof k->text ? len : sizeof k->text - 1] = 0;
}

/* Sends the request; the query must live until the answer. */
static inline void kit_send(struct kit *k, const char *who, const char *method, const char *path,
                            const struct kit_query *query, const char *body)
{
    struct request_input request = {
        .method = method,
        .path = path,
        .peer = *who ? who : NULL,
        .peer_serial = k->serial,
        .peer_until_ns = k->until_ns,
        .idempotency_key = k->key,
        .if_match = k->if_match,
        .remote = "192.0.2.1",
        .body = body,
        .body_len = body ? strlen(body) : 0,
        .query = kit_query_find,
        .query_from = query,
    };
    json_decref(k->body);
    k->body = NULL;
    k->answered = false;
    k->if_match = k->key = NULL;
    control_handle(k->control, &request, kit_answered, k);
}

/* Sends a request for a path with a query and waits for the answer. `yaml` NULL: no body. Returns the status. */
static inline int kit_call(struct kit *k, const char *who, const char *method, const char *url, const char *yaml)
{
    struct kit_query query = {0};
    char path[512], *body = NULL;
    const char *mark = strchr(url, '?');
    (void)snprintf(path, sizeof path, "%.*s", mark ? (int)(mark - url) : (int)strlen(url), url);
    if (mark) {
        query.len = (size_t)snprintf(query.text, sizeof query.text, "%s", mark + 1) + 1;
        for (char *p = query.text; *p || p < query.text + query.len - 1; p++)
            *p = *p == '&' || *p == '=' ? '\0' : *p;
    }
    if (yaml) {
        CLEANUP(json) json_t *doc = NULL;
        struct berth_err err = {0};
        if (yaml_parse(yaml, strlen(yaml), "body", &doc, &err) < 0)
            fail_msg("%s", err.text);
        body = json_dumps(doc, JSON_COMPACT);
    }
    kit_send(k, who, method, path, &query, body);
    for (int i = 0; i < 100 && !k->answered; i++)
        (void)store_pump(k->store);
    free(body);
    assert_true(k->answered);
    return k->status;
}

/* The same with an expected status. */
#define CALL(k, want, who, method, url, yaml)                                                                          \
    do {                                                                                                               \
        int status_ = kit_call(k, who, method, url, yaml);                                                             \
        if (status_ != (want))                                                                                         \
            fail_msg("%s %s: %d instead of %d: %s", method, url, status_, want, (k)->text);                            \
    } while (0)

static inline void kit_open(struct kit *k)
{
    char token[TOKEN_TEXT_MAX];
    struct berth_err err = {0};
    *k = (struct kit){.store = store_memory_new(), .now_ns = 1772366400000000000, .steady_ns = 1000000000};
    kit_start(k);
    if (control_init(k->control, token, &err) < 0)
        fail_msg("%s", err.text);
    /* Most tests use minimal work and nodes; defaults have tests of their own. */
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{default_requests: '', memory_limit: none}");
}

/* Returns a member of the last answer by its path, "status/instances/0/node"; NULL: none. */
static inline const json_t *kit_at(const struct kit *k, const char *path)
{
    char part[128];
    const json_t *at = k->body;
    while (at && *path) {
        size_t len = strcspn(path, "/");
        (void)snprintf(part, sizeof part, "%.*s", (int)len, path);
        at = json_is_array(at) ? json_array_get(at, (size_t)strtoul(part, NULL, 10)) : json_object_get(at, part);
        path += len + (path[len] == '/');
    }
    return at;
}

static inline const char *kit_text(const struct kit *k, const char *path)
{
    const char *text = json_string_value(kit_at(k, path));
    return text ? text : "";
}

static inline int64_t kit_number(const struct kit *k, const char *path)
{
    const json_t *number = kit_at(k, path);
    return json_is_integer(number) ? json_integer_value(number) : INT64_MIN;
}

/* Checks that the last answer contains these words. */
#define SAYS(k, words)                                                                                                 \
    do {                                                                                                               \
        if (!strstr((k)->text, words))                                                                                 \
            fail_msg("expected \"%s\": %s", words, (k)->text);                                                         \
    } while (0)

/* Advances time, and lets the loop plan and commit until nothing is left to do. */
static inline void kit_plan(struct kit *k)
{
    for (int i = 0; i < 20; i++) {
        k->now_ns += 1000000;
        k->steady_ns += 1000000;
        control_pump(k->control);
    }
}

static inline void kit_sleep(struct kit *k, int64_t seconds)
{
    for (int64_t i = 0; i < seconds; i++) {
        k->now_ns += 1000000000;
        k->steady_ns += 1000000000;
        control_tick(k->control);
    }
    kit_plan(k);
}

static inline void kit_written(void *ctx, const struct store_result *result)
{
    *(int *)ctx = result->rc;
}

/* Writes a document directly to the store, as the daemon does, without the API. */
static inline void kit_put(struct kit *k, enum kind kind, const char *id, const char *yaml)
{
    char key[OBJECT_KEY_MAX];
    CLEANUP(json) json_t *doc = NULL;
    struct berth_err err = {0};
    int rc = yaml_parse(yaml, strlen(yaml), "document", &doc, &err);
    if (rc == 0) {
        char *text = json_dumps(doc, JSON_COMPACT);
        struct store_op op = {
            .key = object_key(kind, id, key), .value = {text, strlen(text)}
        };
        struct store_txn txn = {.ops = &op, .ops_len = 1};
        int done = 1;
        rc = store_submit(k->store, &txn, kit_written, &done, &err);
        (void)store_pump(k->store);
        free(text);
        assert_int_equal(done, 0);
    }
    if (rc < 0)
        fail_msg("%s", err.text);
}

static inline void kit_ignore_result(void *ctx, const struct store_result *result)
{
    (void)ctx;
    (void)result;
}

/* Fills the queue of the store, which then rejects transactions until it is pumped. */
static inline void kit_queue_fill(struct kit *k)
{
    static const char note[] = "{\"j\":2,\"kind\":\"t\",\"at\":1,\"changes\":[]}";
    struct store_txn txn = {
        .record = {note, sizeof note - 1}
    };
    while (store_submit(k->store, &txn, kit_ignore_result, NULL, NULL) == 0)
        continue;
}

/* Adds the users alice and carol of the group red and bob of the group blue; carol has the role manager, the others
 * user. */
static inline void kit_add_users(struct kit *k)
{
    CALL(k, 201, ADMIN, "POST", "/v1/groups", "{id: red}");
    CALL(k, 201, ADMIN, "POST", "/v1/groups", "{id: blue}");
    CALL(k, 201, ADMIN, "POST", "/v1/users", "{id: alice, group: red, role: user}");
    CALL(k, 201, ADMIN, "POST", "/v1/users", "{id: carol, group: red, role: manager}");
    CALL(k, 201, ADMIN, "POST", "/v1/users", "{id: bob, group: blue, role: user}");
}
