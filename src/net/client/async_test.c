/* async_test.c - tests requests in the loop that also runs the server: kept connections, streams, failures, cancelling.
 */
#include "net/client/async.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "net/kit_test.h"
#include "net/tls/tls.h"

struct heard {
    unsigned done;
    int status;
    struct str body, pieces;
    bool trouble; /* an error text was given */
    bool sent;
    int64_t retry_after_s;
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
    h->sent = answer->sent;
    h->retry_after_s = answer->retry_after_s;
    str_clear(&h->body);
    str_add_bytes(&h->body, answer->body, answer->len);
}

static void heard_cleanup(struct heard *h)
{
    str_done(&h->body);
    str_done(&h->pieces);
}

/* Every test runs twice: with libcurl, and with lanes (the test's state is `lean`). */
static struct async *must_async(struct kit *k, void **state)
{
    struct async *a = NULL;
    const struct async_config config = {.agent = "test/1", .lean = *(const bool *)*state};
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

static void requests_share_few_connections(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    kit_start(&k, (struct http_config){0});
    CLEANUP(async) struct async *a = must_async(&k, state);
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

static void refused_connection_is_reported(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    struct async_request request = {.method = "GET", .url = "http://127.0.0.1:1/", .done = done, .ctx = &h};
    kit_start(&k, (struct http_config){0});
    CLEANUP(async) struct async *a = must_async(&k, state);
    (void)async_start(a, &request);
    KIT_UNTIL(&k, h.done);
    assert_int_equal(h.status, 0);
    assert_true(h.trouble);
    assert_false(h.sent);
}

static void closed(void *ctx)
{
    ((struct kit *)ctx)->closed++;
}

static void streams_deliver_pieces(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    char url[96];
    kit_start(&k, (struct http_config){.handle = kit_keep});
    CLEANUP(async) struct async *a = must_async(&k, state);
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

    /* A cancelled stream calls nothing, and the server notices the end. */
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

/* Keeps the first request, which becomes a stream; later ones are answered at once. */
static void keep_first(void *ctx, struct http_request *x)
{
    struct kit *k = ctx;
    if (k->kept)
        kit_echo(k, x);
    else
        kit_keep(k, x);
}

static void piece_callback_may_start_requests(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct echo e = {.k = &k};
    char url[96];
    kit_start(&k, (struct http_config){.handle = keep_first});
    CLEANUP(async) struct async *a = e.a = must_async(&k, state);
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

static void rejected_stream_is_reported_as_answer(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    char url[96];
    kit_start(&k, (struct http_config){.handle = kit_keep});
    CLEANUP(async) struct async *a = must_async(&k, state);
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

/* Handles are reused: a request must not see settings of an earlier request. */
static void reused_handle_has_no_old_settings(void **state)
{
    static const struct {
        const char *method, *body, *token, *content_type, *accept;
    } rows[] = {
        {"POST",   "a long body",       "one", NULL,  "a/b"},
        {"GET",    NULL,                NULL,  NULL,  NULL },
        {"PUT",    "x",                 "two", "c/d", NULL },
        {"DELETE", NULL,                "one", NULL,  "a/b"},
        {"PATCH",  "a much longer one", "two", "c/d", "a/b"},
        {"POST",   NULL,                "one", NULL,  NULL },
    };
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    char url[96], token[16];
    kit_start(&k, (struct http_config){.handle = kit_keep});
    CLEANUP(async) struct async *a = must_async(&k, state);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/x", http_server_port(k.server));
    for (unsigned i = 0; i < 10 * ROWS(rows); i++) {
        struct async_request q = {.method = rows[i % ROWS(rows)].method,
                                  .url = url,
                                  .body = rows[i % ROWS(rows)].body,
                                  .token = rows[i % ROWS(rows)].token,
                                  .content_type = rows[i % ROWS(rows)].content_type,
                                  .accept = rows[i % ROWS(rows)].accept,
                                  .done = done,
                                  .ctx = &h};
        q.body_len = q.body ? strlen(q.body) : 0;
        (void)snprintf(token, sizeof token, "Bearer %s", q.token ? q.token : "");
        k.kept = NULL;
        (void)async_start(a, &q);
        KIT_UNTIL(&k, k.kept);
        const char *got = http_header(k.kept, "Authorization"), *type = http_header(k.kept, "Content-Type");
        bool sends = q.body || strcmp(q.method, "POST") == 0;
        size_t len;
        assert_string_equal(http_method(k.kept), q.method);
        assert_string_equal(http_body(k.kept, &len), q.body ? q.body : "");
        assert_string_equal(got ? got : "Bearer ", token);
        assert_string_equal(type ? type : "none", !sends           ? "none"
                                                  : q.content_type ? q.content_type
                                                                   : "application/json");
        assert_string_equal(http_header(k.kept, "Accept"), q.accept ? q.accept : "*/*");
        assert_null(http_header(k.kept, "Expect"));
        http_answer(k.kept, 200, NULL, "text/plain", i % 2 ? "short" : "", i % 2 ? 5 : 0);
        KIT_UNTIL(&k, h.done == i + 1);
        assert_string_equal(str_text(&h.body), i % 2 ? "short" : "");
    }
    assert_int_equal(http_server_stats(k.server).accepted, 1);
}

/* Uses many tokens, one after another and at once, as with renewed tokens. */
static void connections_are_reused_across_many_tokens(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    char url[96], token[16];
    kit_start(&k, (struct http_config){0});
    CLEANUP(async) struct async *a = must_async(&k, state);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/x", http_server_port(k.server));
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(token, sizeof token, "t%u", i);
        struct async_request q = {.method = "GET", .url = url, .token = token, .done = done, .ctx = &h};
        (void)async_start(a, &q);
        KIT_UNTIL(&k, h.done + 30 > i);
    }
    KIT_UNTIL(&k, h.done == 100);
    assert_int_equal(h.status, 200);
}

/* Uses a host name, and connections that the server closes in between. */
static void closed_connections_are_replaced(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    char url[96];
    kit_start(&k, (struct http_config){.idle_ns_max = 20 * KIT_MS});
    CLEANUP(async) struct async *a = must_async(&k, state);
    (void)snprintf(url, sizeof url, "http://localhost:%u/x", http_server_port(k.server));
    struct async_request q = {.method = "POST", .url = url, .body = "b", .body_len = 1, .done = done, .ctx = &h};
    for (unsigned i = 0; i < 12; i += 3) {
        for (unsigned n = 0; n < 3; n++)
            (void)async_start(a, &q);
        KIT_UNTIL(&k, h.done == i + 3);
        assert_int_equal(h.status, 200);
        KIT_UNTIL(&k, http_server_stats(k.server).connections == 0); /* idle for too long */
    }
    assert_int_equal(k.handled, 12);
}

static void retry_after_is_reported(void **state)
{
    static const struct http_header later[] = {
        {"Retry-After", "7" },
        {NULL,          NULL}
    };
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    kit_start(&k, (struct http_config){.handle = kit_keep});
    CLEANUP(async) struct async *a = must_async(&k, state);
    for (unsigned i = 0; i < 2; i++) {
        k.kept = NULL;
        (void)ask(a, &k, "GET", "/x", NULL, &h);
        KIT_UNTIL(&k, k.kept);
        http_answer(k.kept, 429, i ? NULL : later, "text/plain", "no", 2);
        KIT_UNTIL(&k, h.done == i + 1);
        assert_int_equal(h.status, 429);
        assert_int_equal(h.retry_after_s, i ? 0 : 7);
        assert_true(h.sent);
    }
}

static void say_peer(void *ctx, struct http_request *x)
{
    const char *name = http_peer_name(x);
    (void)ctx;
    http_answer(x, 200, NULL, "text/plain", name ? name : "nobody", name ? strlen(name) : 6);
}

/* Passes certificates as texts; the address differs from the name in the server's certificate. */
static void certificates_from_memory(void **state)
{
    char dir[] = "/tmp/berth-async.XXXXXX", url[96], to[32], path[64];
    static const char *const names[] = {"kubernetes.example", NULL};
    static const char *const files[] = {"ca-cert", "ca-key", "s-key"};
    struct tls_identity ca = {0}, server = {0};
    struct berth_err err = {0};
    CLEANUP(mem) char *key = NULL, *request = NULL, *cert = NULL;
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(heard) struct heard h = {0};
    const int64_t now_ns = (int64_t)time(NULL) * 1000000000;
    const struct tls_client_cert_spec grant = {"node:n1", NULL, now_ns - 3600000000000, now_ns + 3600000000000};
    assert_non_null(mkdtemp(dir));
    if (tls_ca_ensure(dir, now_ns, &ca, &err) || tls_server_cert(&ca, dir, "s", names, now_ns, &server, &err) ||
        tls_request_make(&key, &request, &err) || tls_request_sign(&ca, request, &grant, &cert, &err))
        fail_msg("%s", err.text);
    kit_start(&k, (struct http_config){.cert_pem = server.cert_pem,
                                       .key_pem = server.key_pem,
                                       .client_ca_pem = ca.cert_pem,
                                       .handle = say_peer});
    (void)snprintf(to, sizeof to, "127.0.0.1:%u", http_server_port(k.server));
    (void)snprintf(url, sizeof url, "https://kubernetes.example:%u/", http_server_port(k.server));
    struct async_request q = {.method = "GET", .url = url, .done = done, .ctx = &h};
    for (unsigned i = 0; i < 3;
         i++) { /* with a certificate, without one, and with a CA that did not sign the server's */
        const struct async_config config = {.ca_pem = i < 2 ? ca.cert_pem : cert,
                                            .cert_pem = i ? NULL : cert,
                                            .key_pem = i ? NULL : key,
                                            .connect_to = to,
                                            .lean = *(const bool *)*state};
        CLEANUP(async) struct async *a = NULL;
        assert_int_equal(async_new(k.loop, &config, &a, NULL), 0);
        (void)async_start(a, &q);
        KIT_UNTIL(&k, h.done == i + 1);
        assert_int_equal(h.status, i < 2 ? 200 : 0);
        assert_string_equal(str_text(&h.body), i == 0 ? "node:n1" : i == 1 ? "nobody" : "");
    }
    /* A certificate that is set later, and another one after it, apply from the next connection on. */
    CLEANUP(async) struct async *a = NULL;
    const struct async_config config = {.ca_pem = ca.cert_pem, .connect_to = to, .lean = *(const bool *)*state};
    const struct tls_client_cert_spec other = {"node:n2", NULL, grant.not_before_ns, grant.not_after_ns};
    CLEANUP(mem) char *second = NULL;
    assert_int_equal(tls_request_sign(&ca, request, &other, &second, NULL), 0);
    assert_int_equal(async_new(k.loop, &config, &a, NULL), 0);
    for (unsigned i = 0; i < 3; i++) {
        const struct async_config own = {.cert_pem = i == 1 ? cert : second, .key_pem = key};
        if (i)
            assert_int_equal(async_pems(a, &own, NULL), 0);
        (void)async_start(a, &q);
        KIT_UNTIL(&k, h.done == i + 4);
        assert_int_equal(h.status, 200);
        assert_string_equal(str_text(&h.body), i == 0 ? "nobody" : i == 1 ? "node:n1" : "node:n2");
    }
    for (size_t i = 0; i < ROWS(files); i++) {
        (void)snprintf(path, sizeof path, "%s/%s.pem", dir, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
    tls_identity_done(&ca);
    tls_identity_done(&server);
}

#define TWICE(test)                                                                                                    \
    {#test, test, NULL, NULL, &ways[0]},                                                                               \
    {                                                                                                                  \
#test " on lanes", test, NULL, NULL, &ways[1]                                                                  \
    }

int main(void)
{
    static bool ways[] = {false, true}; /* lean? */
    const struct CMUnitTest tests[] = {
        TWICE(requests_share_few_connections),
        TWICE(refused_connection_is_reported),
        TWICE(streams_deliver_pieces),
        TWICE(piece_callback_may_start_requests),
        TWICE(rejected_stream_is_reported_as_answer),
        TWICE(reused_handle_has_no_old_settings),
        TWICE(connections_are_reused_across_many_tokens),
        TWICE(closed_connections_are_replaced),
        TWICE(retry_after_is_reported),
        TWICE(certificates_from_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
