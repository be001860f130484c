/* async_test.c - requests from within the loop that also serves them: kept connections, streams, failures, cancelling. */
#include "net/async.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/kit_test.h"

struct heard {
    unsigned done;
    int status;
    struct str body, pieces;
    bool trouble; /* a sentence came */
};

static void took(void *ctx, const char *at, size_t len)
{
    struct heard *h = ctx;
    str_add_bytes(&h->pieces, at, len);
}

static void done(void *ctx, const struct async_answer *answer)
{
    struct heard *h = ctx;
    h->done++;
    h->status = answer->status;
    h->trouble = answer->text[0] != '\0';
    str_clear(&h->body);
    str_add_bytes(&h->body, answer->body, answer->len);
}

static void heard_cleanup(struct heard *h)
{
    str_done(&h->body);
    str_done(&h->pieces);
}

static struct async *must_async(struct kit *k)
{
    struct async *a = NULL;
    const struct async_config config = {.agent = "test/1"};
    assert_int_equal(async_new(k->loop, &config, &a, NULL), 0);
    return a;
}

static void async_cleanup(struct async **a)
{
    async_free(*a);
}

static struct async_call *ask(struct async *a, const struct kit *k, const char *method, const char *path,
                              const char *body, struct heard *h)
{
    char url[96];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u%s", http_server_port(k->server), path);
    struct async_request request = {
        .method = method, .url = url, .body = body, .body_len = body ? strlen(body) : 0, .done = done, .ctx = h};
    return async_start(a, &request);
}

static void many_on_few_connections(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    (void)state;
    kit_start(&k, (struct http_config){0});
    CLEANUP(async) struct async *a = must_async(&k);
    for (unsigned i = 1; i <= 20; i++) {
        (void)ask(a, &k, "POST", "/x", "hello", &h);
        KIT_UNTIL(&k, h.done == i);
        assert_int_equal(h.status, 200);
        assert_string_equal(str_text(&h.body), "POST /x hello");
    }
    assert_int_equal(http_server_stats(k.server).accepted, 1); /* kept alive */
    for (unsigned i = 0; i < 10; i++)
        (void)ask(a, &k, "GET", "/y", NULL, &h);
    KIT_UNTIL(&k, h.done == 30);
    assert_int_equal(k.handled, 30);
}

static void nobody_there(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    struct async_request request = {.method = "GET", .url = "http://127.0.0.1:1/", .done = done, .ctx = &h};
    (void)state;
    kit_start(&k, (struct http_config){0});
    CLEANUP(async) struct async *a = must_async(&k);
    (void)async_start(a, &request);
    KIT_UNTIL(&k, h.done);
    assert_int_equal(h.status, 0);
    assert_true(h.trouble);
}

static void closed(void *ctx)
{
    ((struct kit *)ctx)->closed++;
}

static void streams(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    char url[96];
    (void)state;
    kit_start(&k, (struct http_config){.handle = kit_keep});
    CLEANUP(async) struct async *a = must_async(&k);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/s", http_server_port(k.server));
    struct async_request request = {.method = "GET", .url = url, .piece = took, .done = done, .ctx = &h};
    (void)async_start(a, &request);
    KIT_UNTIL(&k, k.kept);
    http_stream(k.kept, 200, NULL, "text/plain", closed, &k);
    assert_true(http_stream_send(k.kept, "one\n", 4));
    KIT_UNTIL(&k, h.pieces.len == 4);
    assert_true(http_stream_send(k.kept, "two\n", 4));
    KIT_UNTIL(&k, h.pieces.len == 8);
    assert_int_equal(h.done, 0);
    http_stream_end(k.kept);
    KIT_UNTIL(&k, h.done);
    assert_int_equal(h.status, 200);
    assert_string_equal(h.pieces.at, "one\ntwo\n");

    /* One that is cancelled is not told of, and the server notices. */
    k.kept = NULL;
    struct async_call *call = async_start(a, &request);
    KIT_UNTIL(&k, k.kept);
    http_stream(k.kept, 200, NULL, "text/plain", closed, &k);
    assert_true(http_stream_send(k.kept, "three", 5));
    KIT_UNTIL(&k, h.pieces.len == 13);
    async_cancel(call);
    KIT_UNTIL(&k, k.closed == 1);
    assert_int_equal(h.done, 1);
}

struct echo {
    struct async *a;
    const struct kit *k;
    struct heard heard;
};

static void ask_back(void *ctx, const char *at, size_t len)
{
    struct echo *e = ctx;
    (void)at;
    (void)len;
    (void)ask(e->a, e->k, "GET", "/back", NULL, &e->heard);
}

/* A stream's first request is kept and becomes a stream; what follows is answered at once. */
static void keep_first(void *ctx, struct http_exchange *x)
{
    struct kit *k = ctx;
    if (k->kept)
        kit_echo(k, x);
    else
        kit_keep(k, x);
}

static void a_piece_may_lead_to_a_request(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct echo e = {.k = &k};
    char url[96];
    (void)state;
    kit_start(&k, (struct http_config){.handle = keep_first});
    CLEANUP(async) struct async *a = e.a = must_async(&k);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/s", http_server_port(k.server));
    struct async_request request = {.method = "GET", .url = url, .piece = ask_back, .done = done, .ctx = &e};
    (void)async_start(a, &request);
    KIT_UNTIL(&k, k.kept);
    http_stream(k.kept, 200, NULL, "text/plain", closed, &k);
    assert_true(http_stream_send(k.kept, "go", 2));
    KIT_UNTIL(&k, e.heard.done == 1);
    assert_string_equal(str_text(&e.heard.body), "GET /back ");
    heard_cleanup(&e.heard);
}

static void a_refused_stream_is_an_answer(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    char url[96];
    (void)state;
    kit_start(&k, (struct http_config){.handle = kit_keep});
    CLEANUP(async) struct async *a = must_async(&k);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/s", http_server_port(k.server));
    struct async_request request = {.method = "GET", .url = url, .piece = took, .done = done, .ctx = &h};
    (void)async_start(a, &request);
    KIT_UNTIL(&k, k.kept);
    http_answer(k.kept, 404, NULL, "text/plain", "no", 2);
    KIT_UNTIL(&k, h.done);
    assert_int_equal(h.status, 404);
    assert_string_equal(str_text(&h.body), "no");
    assert_int_equal(h.pieces.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_on_few_connections),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(streams),
        cmocka_unit_test(a_piece_may_lead_to_a_request),
        cmocka_unit_test(a_refused_stream_is_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
