/* api_test.c - requests to a fake server: retries, queueing, and error messages. */
#include "kube/client/api.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/client/server_kit_test.h"
#include "kube/client/status.h"

struct heard {
    unsigned done;
    int code, status;
    char text[BERTH_ERR_TEXT_MAX], body[64];
    struct str order; /* order of answers */
};

static void done(void *ctx, const struct kube_answer *a)
{
    struct heard *h = ctx;
    h->done++;
    h->code = a->code;
    h->status = a->status;
    (void)snprintf(h->text, sizeof h->text, "%s", a->text);
    (void)snprintf(h->body, sizeof h->body, "%s", a->body);
}

static struct kube_request request(const char *method, const char *path, struct heard *h)
{
    return (struct kube_request){.method = method, .path = path, .rank = KUBE_USUAL, .done = done, .ctx = h};
}

static void http_statuses_map_to_codes(void **state)
{
    static const struct {
        int status;
        const char *body;
        int code;
        const char *says;
    } rows[] = {
        {200, "",                                                                                                    0,       ""                                                                          },
        {201, "{}",                                                                                                  0,       ""                                                                          },
        {404, "{\"kind\":\"Status\",\"message\":\"pods \\\"x\\\" not found\",\"reason\":\"NotFound\",\"code\":404}",
         -ENOENT,                                                                                                             "does not have this object or resource (404 NotFound): pods \"x\" not found"},
        {409, "{\"reason\":\"AlreadyExists\",\"message\":\"m\"}",                                                    -EEXIST, "(409 AlreadyExists): m"                                                    },
        {409, "{\"reason\":\"Conflict\",\"message\":\"m\"}",                                                         -EBUSY,  "reports a conflict (409 Conflict): m"                                      },
        {410, "{\"reason\":\"Expired\"}",                                                                            -ESTALE, "no longer has this version (410 Expired)"                                  },
        {0,   "{\"reason\":\"Expired\",\"code\":410}",                                                               -ESTALE, "no longer has this version (410 Expired)"                                  },
        {422, "{\"reason\":\"Invalid\"}",                                                                            -EINVAL, "(422 Invalid)"                                                             },
        {403, "{\"reason\":\"Forbidden\",\"message\":\"no\"}",                                                       -EACCES, "check the roles (403 Forbidden): no"                                       },
        {401, "Unauthorized",                                                                                        -EACCES, "renew the token (401): Unauthorized"                                       },
        {429, "slow down\nplease",                                                                                   -EAGAIN, "is overloaded (429): slow down"                                            },
        {503, "",                                                                                                    -EAGAIN, "reports an internal error (503)"                                           },
        {302, "<html>",                                                                                              -EPROTO, "returned an unexpected response (302): <html>"                             },
        {0,   "\xff\xfe",                                                                                            -EPROTO, "returned an unexpected response (0)"                                       },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct berth_err err = {0};
        assert_int_equal(kube_status_code(rows[i].status, rows[i].body, strlen(rows[i].body), &err), rows[i].code);
        if (!strstr(err.text, rows[i].says))
            fail_msg("row %zu: \"%s\"", i, err.text);
    }
}

static void protobuf_status_is_read(void **state)
{
    CLEANUP(str) struct str s = {0};
    struct berth_err err = {0};
    (void)state;
    size_t object = proto_object_begin(&s, "v1", "Status");
    proto_add_text(&s, 3, "pod p is already assigned to node n");
    proto_add_text(&s, 4, "Conflict");
    proto_add_int(&s, 6, 409);
    proto_object_end(&s, object);
    assert_int_equal(kube_status_code(409, s.at, s.len, &err), -EBUSY);
    assert_non_null(strstr(err.text, "(409 Conflict): pod p is already assigned to node n"));
    assert_int_equal(kube_status_code(0, s.at, s.len, NULL), -EBUSY);
}

static void harmless_requests_are_retried(void **state)
{
    static const struct {
        const char *label, *method;
        bool harmless;
        unsigned tries_max;
        int answers[8]; /* negative: with Retry-After */
        unsigned requests;
        int code;
    } rows[] = {
        {"at once",                                "POST", false, 0, {201},           1, 0      },
        {"harmless after 500",                     "GET",  true,  0, {500, 502, 200}, 3, 0      },
        {"not harmless after 500",                 "POST", false, 0, {500},           1, -EAGAIN},
        {"not harmless, but the server says when", "POST", false, 0, {-503, 201},     2, 0      },
        {"nothing was begun",                      "POST", false, 0, {429, 429, 201}, 3, 0      },
        {"not for ever",                           "GET",  true,  3, {503, 503, 503}, 3, -EAGAIN},
        {"never again",                            "GET",  true,  1, {503},           1, -EAGAIN},
        {"a refusal is an answer",                 "GET",  true,  0, {404},           1, -ENOENT},
        {"a conflict too",                         "PUT",  true,  0, {409},           1, -EBUSY },
        {"without a file the token stays",         "GET",  true,  0, {401},           1, -EACCES},
    };
    static const struct http_header later[] = {
        {"Retry-After", "1" },
        {NULL,          NULL}
    };
    CLEANUP(fake) struct fake f = {0};
    (void)state;
    fake_start(&f, (struct http_config){0});
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct heard h = {0};
        struct kube_request q = request(rows[i].method, "/x?a=b", &h);
        q.harmless = rows[i].harmless;
        q.tries_max = rows[i].tries_max;
        q.body = "{}";
        q.body_len = 2;
        f.kit.handled = 0;
        (void)kube_start(f.api, &q);
        for (size_t k = 0; k < rows[i].requests; k++) {
            struct http_request *x = fake_next(&f);
            size_t len;
            assert_string_equal(http_method(x), rows[i].method);
            assert_string_equal(http_path(x), "/x");
            assert_string_equal(http_query(x, "a"), "b");
            assert_string_equal(http_body(x, &len), "{}");
            int status = rows[i].answers[k];
            http_answer(x, status < 0 ? -status : status, status < 0 ? later : NULL, "text/plain", "hm", 2);
        }
        KIT_UNTIL(&f.kit, h.done);
        if (h.code != rows[i].code || f.kit.handled != rows[i].requests)
            fail_msg("%s: %d after %u requests", rows[i].label, h.code, f.kit.handled);
        assert_int_equal(h.text[0] == '\0', h.code == 0);
        if (h.code == 0)
            assert_string_equal(h.body, "hm");
    }
    assert_int_equal(kube_api_stats(f.api).failed, 6);
    assert_int_equal(kube_api_stats(f.api).again, 7);
}

static void unreachable_server(void **state)
{
    CLEANUP(kube_config) struct kube_config config = {.server = mem_strdup("http://127.0.0.1:1")};
    struct heard h = {0};
    struct kube_request q = request("POST", "/x", &h);
    CLEANUP(kit) struct kit k = {0};
    struct kube_api *api = NULL;
    (void)state;
    kit_start(&k, (struct http_config){0});
    assert_int_equal(kube_api_new(k.loop, &(struct kube_api_config){.server = &config}, &api, NULL), 0);
    q.tries_max = 3;
    (void)kube_start(api, &q);
    KIT_UNTIL(&k, h.done);
    assert_int_equal(h.code, -ECONNREFUSED);
    assert_non_null(strstr(h.text, "the API server http://127.0.0.1:1 cannot be reached"));
    assert_int_equal(kube_api_stats(api).sent, 3); /* a POST is retried too: it was never sent */
    kube_api_free(api);
}

/* A connection is lost after the request was sent: the outcome of a POST is unknown, a GET is retried. */
static void lost_connections_retry_only_harmless(void **state)
{
    CLEANUP(fake) struct fake f = {0};
    (void)state;
    fake_start(&f, (struct http_config){0});
    for (int harmless = 0; harmless < 2; harmless++) {
        struct heard h = {0};
        struct kube_request q = request(harmless ? "GET" : "POST", "/x", &h);
        q.harmless = harmless;
        (void)kube_start(f.api, &q);
        fake_stream(&f, fake_next(&f)); /* headers of an answer that never ends */
        for (int i = 0; i < 20; i++)
            kit_round(&f.kit);
        uint16_t port = http_server_port(f.kit.server);
        http_server_free(f.kit.server);
        f.kit.server = NULL;
        struct http_config config = {
            .address = "127.0.0.1", .port = port, .admit = kit_admit, .handle = fake_keep, .ctx = &f};
        assert_int_equal(http_server_new(f.kit.loop, &config, &f.kit.server, NULL), 0);
        if (harmless)
            fake_answer(fake_next(&f), 200, "{}");
        KIT_UNTIL(&f.kit, h.done);
        assert_int_equal(h.code, harmless ? 0 : -EIO);
    }
}

struct named {
    struct str *order;
    const char *name;
};

static void note(void *ctx, const struct kube_answer *a)
{
    struct named *n = ctx;
    assert_int_equal(a->code, 0);
    str_addf(n->order, "%s ", n->name);
}

static void requests_wait_by_rank(void **state)
{
    CLEANUP(fake) struct fake f = {.connections_max = 2};
    CLEANUP(str) struct str order = {0};
    static const struct {
        const char *name;
        enum kube_rank rank;
    } rows[] = {
        {"late1", KUBE_LATE  },
        {"u1",    KUBE_USUAL },
        {"late2", KUBE_LATE  },
        {"u2",    KUBE_USUAL },
        {"u3",    KUBE_USUAL },
        {"now",   KUBE_URGENT}
    };
    struct named named[ROWS(rows)];
    (void)state;
    fake_start(&f, (struct http_config){0});
    for (size_t i = 0; i < ROWS(rows); i++) {
        named[i] = (struct named){&order, rows[i].name};
        struct kube_request q = request("GET", "/x", NULL);
        q.rank = rows[i].rank;
        q.done = note;
        q.ctx = &named[i];
        (void)kube_start(f.api, &q);
    }
    assert_int_equal(kube_api_stats(f.api).under_way, 2); /* late1 and u1: nothing else waited when they came */
    assert_int_equal(kube_api_stats(f.api).waiting, 3);
    KIT_UNTIL(&f.kit, f.asked.len == 3);
    for (size_t i = 0; i < ROWS(rows); i++) {
        fake_answer(fake_next(&f), 200, "{}");
        KIT_UNTIL(&f.kit, kube_api_stats(f.api).under_way + kube_api_stats(f.api).waiting == 0 || f.asked.len);
        assert_true(kube_api_stats(f.api).under_way <= 2);
    }
    KIT_UNTIL(&f.kit, kube_api_stats(f.api).under_way == 0 && order.len == strlen("late1 u1 now u2 u3 late2 "));
    assert_true(strstr(order.at, "u2") < strstr(order.at, "late2"));
    assert_true(strstr(order.at, "u3") < strstr(order.at, "late2"));
}

static void cancelled(void **state)
{
    CLEANUP(fake) struct fake f = {.connections_max = 1};
    struct heard h = {0};
    struct kube_request q = request("GET", "/x", &h);
    (void)state;
    fake_start(&f, (struct http_config){0});
    q.harmless = true;
    struct kube_call *under_way = kube_start(f.api, &q), *waiting = kube_start(f.api, &q);
    (void)kube_start(f.api, &q);
    kube_cancel(waiting);
    kube_cancel(under_way); /* the third request may start */
    assert_int_equal(kube_api_stats(f.api).under_way, 1);
    fake_answer(fake_next(&f), 200, "{}");
    KIT_UNTIL(&f.kit, h.done == 1);
    struct kube_call *pausing = kube_start(f.api, &q);
    fake_answer(fake_next(&f), 500, "{}");
    KIT_UNTIL(&f.kit, kube_api_stats(f.api).waiting == 1);
    kube_cancel(pausing);
    assert_int_equal(kube_api_stats(f.api).waiting + kube_api_stats(f.api).under_way, 0);
    assert_int_equal(h.done, 1);
}

static void write_token(const char *path, const char *token)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(token, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_newer_token_is_read(void **state)
{
    char path[] = "/tmp/berth-kube-token.XXXXXX";
    int fd = mkstemp(path);
    CLEANUP(fake) struct fake f = {0};
    struct heard h = {0};
    struct kube_request q = request("POST", "/x", &h);
    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    write_token(path, "first");
    q.tries_max = 1; /* retried even so */
    f.config.token_path = mem_strdup(path);
    fake_start(&f, (struct http_config){0});
    (void)kube_start(f.api, &q);
    write_token(path, "second\n");
    struct http_request *x = fake_next(&f);
    assert_string_equal(http_header(x, "Authorization"), "Bearer first");
    fake_answer(x, 401, "{}");
    x = fake_next(&f);
    assert_string_equal(http_header(x, "Authorization"), "Bearer second");
    fake_answer(x, 401, "{}"); /* retried once only: then the 401 is final */
    KIT_UNTIL(&f.kit, h.done);
    assert_int_equal(h.code, -EACCES);
    assert_int_equal(f.kit.handled, 2);
    (void)unlink(path);
}

static void body_formats(void **state)
{
    static const struct {
        enum kube_format format;
        const char *patch, *accept, *content_type;
    } rows[] = {
        {KUBE_JSON,     NULL,             "application/json",                    "application/json"                   },
        {KUBE_PROTOBUF, NULL,             "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"},
        {KUBE_JSON,     KUBE_MERGE_PATCH, "application/json",                    KUBE_MERGE_PATCH                     },
    };
    CLEANUP(fake) struct fake f = {0};
    (void)state;
    fake_start(&f, (struct http_config){0});
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct heard h = {0};
        struct kube_request q = request(rows[i].patch ? "PATCH" : "POST", "/x", &h);
        q.format = rows[i].format;
        q.patch = rows[i].patch;
        q.body = "k8s\0x";
        q.body_len = 5;
        (void)kube_start(f.api, &q);
        struct http_request *x = fake_next(&f);
        size_t len;
        assert_memory_equal(http_body(x, &len), "k8s\0x", 5);
        assert_int_equal(len, 5);
        assert_string_equal(http_header(x, "Accept"), rows[i].accept);
        assert_string_equal(http_header(x, "Content-Type"), rows[i].content_type);
        assert_string_equal(http_header(x, "User-Agent"), "test/1");
        fake_answer(x, 200, "{}");
        KIT_UNTIL(&f.kit, h.done);
    }
    assert_int_equal(http_server_stats(f.kit.server).accepted, 1); /* one connection for all requests */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_statuses_map_to_codes),
        cmocka_unit_test(protobuf_status_is_read),
        cmocka_unit_test(harmless_requests_are_retried),
        cmocka_unit_test(unreachable_server),
        cmocka_unit_test(lost_connections_retry_only_harmless),
        cmocka_unit_test(requests_wait_by_rank),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(a_newer_token_is_read),
        cmocka_unit_test(body_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
