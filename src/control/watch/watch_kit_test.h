/* watch_kit_test.h - test helper: a control over a store in memory with a manual clock, and streams that collect lines.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/vec.h"
#include "control/control.h"
#include "control/watch/watch.h"
#include "wire/text/document.h"

#define KIT_NOW_NS (INT64_C(1800000000) * 1000000000)

struct kit {
    struct store *store;
    struct control *control;
    int64_t now_ns, steady_ns;
    int64_t jumped_ns; /* sum of the jumps of the wall clock, included in now_ns */
    unsigned char random;
    unsigned wakes;
    char admin[TOKEN_TEXT_MAX];
};

/* A reader, with all text that it received. */
struct reader_end {
    struct stream *stream; /* NULL: ended */
    int status;
    char type[64];
    struct str text;
    size_t read; /* read position in `text` */
    size_t backlog;
    bool refuses, ended, paced;
    struct str body; /* of an answer that is not a stream */
    char etag[48];
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
        ((unsigned char *)buf)[i] = k->random++;
}

static inline void kit_run(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    (void)ctx;
    work(arg);
    after(arg);
}

static inline void kit_wake_at(void *ctx, int64_t steady_ns)
{
    struct kit *k = ctx;
    k->wakes += steady_ns <= k->steady_ns;
}

static inline void kit_start(struct kit *k, const struct control_options *options)
{
    const struct control_env env = {.ctx = k,
                                    .clock_ns = kit_clock,
                                    .steady_ns = kit_steady,
                                    .boot_ns = kit_boot,
                                    .random = kit_random,
                                    .run = kit_run,
                                    .wake_at = kit_wake_at,
                                    .log = &(const struct log){0}};
    struct berth_err err = {0};
    if (control_new(&env, options, k->store, &k->control, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void kit_open(struct kit *k, const struct control_options *options)
{
    struct berth_err err = {0};
    *k = (struct kit){.store = store_memory_new(), .now_ns = KIT_NOW_NS, .steady_ns = 1000000000};
    kit_start(k, options);
    if (control_init(k->control, k->admin, &err) < 0)
        fail_msg("%s", err.text);
    control_pump(k->control);
}

static inline void kit_done(struct kit *k)
{
    control_free(k->control);
    store_close(k->store);
}

static inline void kit_committed(void *ctx, const struct store_result *result)
{
    *(struct store_result *)ctx = *result;
}

/* Commits one transaction of up to 64 keys; a value of NULL deletes. Returns its revision. Delivers the events without
 * a flush. */
static inline uint64_t kit_txn(struct kit *k, const char *const (*pairs)[2], size_t len)
{
    struct store_op ops[64];
    struct store_result result = {.rc = 1};
    assert_true(len <= 64);
    for (size_t i = 0; i < len; i++) {
        const char *text = pairs[i][1];
        ops[i] = (struct store_op){
            .key = pairs[i][0], .value = {text, text ? strlen(text) : 0},
                 .gone = !text
        };
    }
    struct store_txn txn = {.ops = ops, .ops_len = len};
    assert_int_equal(store_submit(k->store, &txn, kit_committed, &result, NULL), 0);
    (void)store_pump(k->store);
    assert_int_equal(result.rc, 0);
    return result.revision;
}

static inline uint64_t kit_put(struct kit *k, const char *key, const char *text)
{
    uint64_t revision = kit_txn(k, &(const char *const[2]){key, text}, 1);
    watch_hub_flush(control_hub(k->control));
    return revision;
}

/* Adds a job, held so that the planner ignores it. */
static inline uint64_t kit_job(struct kit *k, unsigned id, const char *owner, const char *group, const char *more)
{
    char key[32];
    CLEANUP(str) struct str text = {0};
    (void)snprintf(key, sizeof key, "jobs/%u", id);
    str_addf(&text, "{\"v\":1,\"id\":\"%u\",\"owner\":\"%s\",\"group\":\"%s\",\"hold\":true,\"generation\":1%s}", id,
             owner, group, more);
    return kit_put(k, key, text.at);
}

/* Adds a user with a token; writes the token's text to `ret`. */
static inline void kit_user(struct kit *k, const char *user, const char *group, const char *role, int64_t expires_ns,
                            char ret[static TOKEN_TEXT_MAX], char *ret_id)
{
    struct arena arena;
    unsigned char random[40];
    const char *id;
    char key[96];
    CLEANUP(str) struct str text = {0};
    (void)snprintf(key, sizeof key, "users/%s", user);
    str_addf(&text, "{\"v\":1,\"id\":\"%s\",\"group\":\"%s\",\"role\":\"%s\"}", user, group, role);
    (void)kit_put(k, key, text.at);
    arena_init(&arena);
    kit_random(k, random, sizeof random);
    json_t *doc = token_make(random, user, "", "", "", k->now_ns, expires_ns, ret, &id, &arena);
    char *token = json_dumps(doc, JSON_COMPACT);
    (void)snprintf(key, sizeof key, "tokens/%s", id);
    if (ret_id)
        (void)snprintf(ret_id, sizeof key, "%s", key);
    (void)kit_put(k, key, token);
    free(token);
    json_decref(doc);
    arena_done(&arena);
}

/* Adds a token for a node's agent. */
static inline void kit_agent(struct kit *k, const char *node, char ret[static TOKEN_TEXT_MAX])
{
    struct arena arena;
    unsigned char random[40];
    const char *id;
    char key[96];
    arena_init(&arena);
    kit_random(k, random, sizeof random);
    json_t *doc = token_make(random, "", node, "", "", k->now_ns, BERTH_NEVER_NS, ret, &id, &arena);
    char *token = json_dumps(doc, JSON_COMPACT);
    (void)snprintf(key, sizeof key, "tokens/%s", id);
    (void)kit_put(k, key, token);
    free(token);
    json_decref(doc);
    arena_done(&arena);
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

static inline bool end_send(void *ctx, const char *at, size_t len)
{
    struct reader_end *e = ctx;
    if (e->refuses)
        return false;
    str_add_bytes(&e->text, at, len);
    e->backlog += len;
    return true;
}

static inline void end_end(void *ctx)
{
    struct reader_end *e = ctx;
    e->stream = NULL;
    e->ended = true;
}

static inline size_t end_backlog(void *ctx)
{
    return ((struct reader_end *)ctx)->backlog;
}

static inline void end_answered(void *ctx, struct answer *a)
{
    struct reader_end *e = ctx;
    e->status = a->status;
    e->stream = take_ptr(&a->stream);
    memcpy(e->etag, a->etag, sizeof e->etag);
    if (e->stream)
        (void)snprintf(e->type, sizeof e->type, "%s", stream_content_type(e->stream));
    if (a->text.len)
        str_add_bytes(&e->body, a->text.at, a->text.len);
    if (a->body) {
        char *text = json_dumps(a->body, JSON_COMPACT);
        str_add(&e->body, text);
        free(text);
    }
}

struct kit_query {
    const char *watch;
};

static inline const char *kit_query_value(const void *from, const char *name)
{
    return strcmp(name, "watch") == 0 ? ((const struct kit_query *)from)->watch : NULL;
}

/* Sends a GET request; a stream is not started yet. watch NULL: none. */
static inline void kit_get(struct kit *k, const char *token, const char *path, const char *watch, const char *accept,
                           struct reader_end *ret)
{
    struct kit_query query = {watch};
    struct request_input r = {.method = "GET",
                              .path = path,
                              .token = token,
                              .accept = accept,
                              .remote = "test",
                              .body = "",
                              .query = kit_query_value,
                              .query_from = &query};
    *ret = (struct reader_end){0};
    control_handle(k->control, &r, end_answered, ret);
    assert_int_not_equal(ret->status, 0); /* reads are answered synchronously */
}

static inline void end_start(struct reader_end *e)
{
    struct stream_sink sink = {.ctx = e, .send = end_send, .end = end_end, .backlog = e->paced ? end_backlog : NULL};
    assert_non_null(e->stream);
    stream_start(e->stream, &sink);
}

static inline void kit_watch(struct kit *k, const char *token, const char *path, uint64_t from, struct reader_end *ret)
{
    char text[24];
    kit_get(k, token, path, str_u64(from, text), NULL, ret);
    assert_int_equal(ret->status, 200);
    end_start(ret);
}

static inline void end_done(struct reader_end *e)
{
    if (e->stream)
        stream_stop(e->stream);
    e->stream = NULL;
    str_done(&e->text);
    str_done(&e->body);
}

/* Returns the next line as JSON, skipping heartbeats; NULL: none. */
static inline json_t *end_next(struct reader_end *e)
{
    for (;;) {
        const char *at = str_text(&e->text) + e->read;
        size_t len = strcspn(at, "\n");
        if (!at[len])
            return NULL;
        e->read += len + 1;
        if (len == 0)
            continue;
        json_t *line = json_loadb(at, len, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(line);
        return line;
    }
}

static inline void end_expect(struct reader_end *e, const char *type, const char *key, const char *want)
{
    CLEANUP(json) json_t *line = end_next(e);
    if (!line)
        fail_msg("nothing came; expected %s %s", type, want);
    const json_t *found = json_object_get(line, key);
    if (!found)
        found = json_object_get(json_object_get(line, "object"), key);
    CLEANUP(mem) char *text = json_is_integer(found) ? mem_alloc(24) : mem_strdup(json_string_value(found) ?: "");
    if (json_is_integer(found))
        (void)str_u64((uint64_t)json_integer_value(found), text);
    assert_string_equal(json_string_value(json_object_get(line, "type")), type);
    assert_string_equal(text, want);
}

static inline void end_expect_nothing(struct reader_end *e)
{
    CLEANUP(json) json_t *line = end_next(e);
    if (line)
        fail_msg("unexpected: %s", json_dumps(line, JSON_COMPACT));
}

static inline void end_expect_end(struct reader_end *e, const char *code)
{
    end_expect(e, "end", "code", code);
    end_expect_nothing(e);
    assert_true(e->ended);
}
