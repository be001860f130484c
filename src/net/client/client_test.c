/* client_test.c - tests requests to a server on another thread, with and without TLS, and all kinds of failures. */
#include "net/client/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <time.h>

#include "net/kit_test.h"
#include "net/tls/tls.h"

static struct client *must_client(struct client_config config)
{
    struct client *c = NULL;
    struct berth_err err;
    config.agent = "test/1";
    if (client_new(&config, &c, &err) != 0)
        fail_msg("%s", err.text);
    return c;
}

static void client_cleanup(struct client **c)
{
    client_free(*c);
}

static void answer_cleanup(struct client_answer *a)
{
    client_answer_done(a);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static int64_t admit_much(void *ctx, struct http_request *x)
{
    (void)ctx;
    (void)x;
    return 64 << 20;
}

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

/* Answers with all parts of the request; counts requests with a token and an agent. */
static void say_all(void *ctx, struct http_request *x)
{
    CLEANUP(str) struct str said = {0};
    struct kit *k = ctx;
    size_t len;
    const char *body = http_body(x, &len);

    k->handled += strcmp(or_dash(http_header(x, "Authorization")), "Bearer secret") == 0 &&
                  strcmp(or_dash(http_header(x, "User-Agent")), "test/1") == 0;
    str_addf(&said, "%s %s q=%s type=%s x=%s len=%zu sum=%u", http_method(x), http_path(x), or_dash(http_query(x, "q")),
             or_dash(http_header(x, "Content-Type")), or_dash(http_header(x, "X-More")), len,
             len ? (unsigned)(unsigned char)body[len - 1] : 0);
    int status = strcmp(http_path(x), "/busy") == 0 ? 503 : 200;
    http_answer(x, status,
                (struct http_header[]){
                    {"Retry-After", "17"},
                    {NULL,          NULL}
    },
                "text/plain", said.at, said.len);
}

static void requests_have_all_given_parts(void **state)
{
    static const char *const more[] = {"X-More: yes", NULL};
    static const struct {
        const char *method, *path, *body, *type;
        const char *const *headers;
        const char *want;
    } rows[] = {
        {"GET",    "/a%20b?q=1%262", NULL,     NULL,               NULL, "GET /base/a b q=1&2 type=- x=- len=0 sum=0"              },
        {"POST",   "/j",             "{}",     NULL,               NULL, "POST /base/j q=- type=application/json x=- len=2 sum=125"},
        {"PUT",    "/j",             "a: 1\n", "application/yaml", NULL, "PUT /base/j q=- type=application/yaml x=- len=5 sum=10"  },
        {"POST",   "/j",             NULL,     NULL,               NULL, "POST /base/j q=- type=application/json x=- len=0 sum=0"  },
        {"DELETE", "/j/1",           NULL,     NULL,               more, "DELETE /base/j/1 q=- type=- x=yes len=0 sum=0"           },
        {"HEAD",   "/j",             NULL,     NULL,               NULL, ""                                                        },
        {"GET",    "/../x",          NULL,     NULL,               NULL, "GET /base/../x q=- type=- x=- len=0 sum=0"               },
    };
    CLEANUP(host) struct host h = {0};
    char url[96];

    (void)state;
    host_start(&h, (struct http_config){.admit = admit_much, .handle = say_all});
    (void)snprintf(url, sizeof url, "%s/base/", h.url);
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = url, .token = "secret"});
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(answer) struct client_answer a = {0};
        struct berth_err err;
        const struct client_request request = {.method = rows[i].method,
                                               .path = rows[i].path,
                                               .headers = rows[i].headers,
                                               .content_type = rows[i].type,
                                               .body = rows[i].body,
                                               .body_len = rows[i].body ? strlen(rows[i].body) : 0};
        if (client_do(c, &request, &a, &err) != 0)
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(a.status, 200);
        assert_string_equal(str_text(&a.body), rows[i].want);
        assert_string_equal(a.content_type, "text/plain");
        assert_int_equal(a.retry_after_s, 17);
    }
    host_stop(&h);
    assert_int_equal(http_server_stats(h.kit.server).accepted, 1); /* one connection served all requests */
    assert_int_equal(h.kit.handled, ROWS(rows));                   /* all with token and agent */
}

static void a_large_body_arrives(void **state)
{
    enum { LEN = 5000000 }; /* libcurl sends "Expect: 100-continue" for this size */
    CLEANUP(host) struct host h = {0};
    CLEANUP(mem) char *body = mem_alloc(LEN);
    CLEANUP(answer) struct client_answer a = {0};

    (void)state;
    memset(body, 'b', LEN);
    host_start(&h, (struct http_config){.admit = admit_much, .handle = say_all});
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = h.url});
    const struct client_request request = {.method = "POST", .path = "/busy", .body = body, .body_len = LEN};
    assert_int_equal(client_do(c, &request, &a, NULL), 0);
    assert_int_equal(a.status, 503);
    assert_non_null(strstr(a.body.at, "type=application/json x=- len=5000000 sum=98"));
}

/* The server rejects the body and closes; the client still gets the answer, and its next request uses a new
 * connection. */
static void a_body_that_is_too_large_is_refused(void **state)
{
    CLEANUP(host) struct host h = {0};
    CLEANUP(mem) char *body = mem_zalloc(5000000);

    (void)state;
    host_start(&h, (struct http_config){0});
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = h.url});
    for (size_t len = 900; len <= 4500000; len *= 5) {
        CLEANUP(answer) struct client_answer a = {0};
        const struct client_request request = {.method = "POST", .path = "/", .body = body, .body_len = len};
        assert_int_equal(client_do(c, &request, &a, NULL), 0);
        assert_int_equal(a.status, len <= 1000 ? 200 : 413);
    }
}

static void invalid_requests_are_rejected(void **state)
{
    static const char *const evil[] = {"X: a\r\nY: b", NULL};
    static const struct {
        const char *method, *path;
        const char *const *headers;
    } rows[] = {
        {"GET", "no-slash",   NULL},
        {"GET", "/a b",       NULL},
        {"GET", "/a\r\nX: 1", NULL},
        {"GET", "/\xc3\xa4",  NULL},
        {"",    "/",          NULL},
        {"G T", "/",          NULL},
        {"GET", "/",          evil},
    };
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = "http://127.0.0.1:1"});
    struct client_answer a = {.status = 77};
    struct berth_err err;

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        const struct client_request request = {
            .method = rows[i].method, .path = rows[i].path, .headers = rows[i].headers};
        assert_int_equal(client_do(c, &request, &a, &err), -EINVAL);
        assert_int_equal(a.status, 77);
    }
}

static void configurations_are_checked(void **state)
{
    static const struct {
        const char *url, *token, *pin, *want;
    } rows[] = {
        {"127.0.0.1:3980",     NULL,        NULL,        "looks like http://"        },
        {"ftp://h",            NULL,        NULL,        "looks like http://"        },
        {"http://",            NULL,        NULL,        "looks like http://"        },
        {"http://h?x",         NULL,        NULL,        "looks like http://"        },
        {"http://h/a b",       NULL,        NULL,        "looks like http://"        },
        {"http://me:secret@h", NULL,        NULL,        "use a token"               },
        {"http://h",           "a\r\nX: b", NULL,        "token"                     },
        {"https://h",          NULL,        "md5//x",    "does not begin with sha256"},
        {"http://h",           NULL,        "sha256//x", "should begin with https"   },
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        const struct client_config config = {.url = rows[i].url, .token = rows[i].token, .pin = rows[i].pin};
        struct client *c = NULL;
        struct berth_err err;
        assert_int_equal(client_new(&config, &c, &err), -EINVAL);
        assert_null(c);
        if (!strstr(err.text, rows[i].want) || strstr(err.text, "secret"))
            fail_msg("%s", err.text);
    }
    client_free(NULL);
}

static bool never(void *ctx, const struct sockaddr *address)
{
    size_t *asked = ctx;
    (*asked)++;
    assert_true(address->sa_family == AF_INET || address->sa_family == AF_INET6);
    return false;
}

/* The check happens after name resolution, because a name can resolve to any address. */
static void disallowed_address_is_not_connected(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "2130706433", "127.1"};
    size_t asked = 0;
    CLEANUP(host) struct host h = {0};
    (void)state;
    host_start(&h, (struct http_config){.admit = admit_much, .handle = say_all});
    for (size_t i = 0; i < ROWS(hosts); i++) {
        char url[64];
        struct berth_err err = {0};
        CLEANUP(answer) struct client_answer answer = {0};
        (void)snprintf(url, sizeof url, "http://%s%s", hosts[i], strrchr(h.url, ':'));
        CLEANUP(client)
        struct client *c = must_client(
            (struct client_config){.url = url, .token = "secret", .address_allowed = never, .address_ctx = &asked});
        size_t before = asked;
        struct client_request request = {.method = "GET", .path = "/"};
        assert_int_equal(client_do(c, &request, &answer, &err), -EPERM);
        assert_true(asked > before);
    }
    host_stop(&h);
    assert_int_equal(http_server_stats(h.kit.server).accepted, 0);
}

static void texts_are_encoded(void **state)
{
    CLEANUP(str) struct str s = {0};

    (void)state;
    client_encode(&s, "aZ09-._~ /?&=%+\xc3\xa4\n");
    assert_string_equal(s.at, "aZ09-._~%20%2F%3F%26%3D%25%2B%C3%A4%0A");
    str_clear(&s);
    client_encode(&s, "");
    assert_int_equal(s.len, 0);
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

static const struct client_request get_root = {.method = "GET", .path = "/"};

static void expect_trouble(struct client_config config, int code, const char *want)
{
    CLEANUP(client) struct client *c = must_client(config);
    struct client_answer a = {.status = 77};
    struct berth_err err = {0};
    int rc = client_do(c, &get_root, &a, &err);
    if (rc != -code || !strstr(err.text, want))
        fail_msg("%d, not %d: %s", rc, -code, err.text);
    assert_int_equal(a.status, 77);
}

/* Creates a socket that listens but never accepts. */
static int silent_listener(uint16_t *ret_port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static void errors_name_a_remedy(void **state)
{
    uint16_t port;
    int fd = silent_listener(&port);
    char url[64];

    (void)state;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    expect_trouble((struct client_config){.url = url, .timeout_ns = 30 * KIT_MS}, ETIMEDOUT, "in time");
    (void)close(fd);
    expect_trouble((struct client_config){.url = url}, ECONNREFUSED, "systemctl status berthd");
    expect_trouble((struct client_config){.url = "http://no-such-host.invalid"}, EHOSTUNREACH, "no such host");
}

/* A server that sends a fixed text on each connection, for any request. */
struct scripted_server {
    int fd;
    const char *text;
    pthread_t thread;
};

static void *scripted_server_main(void *ctx)
{
    struct scripted_server *m = ctx;
    for (int fd; (fd = accept(m->fd, NULL, NULL)) >= 0; (void)close(fd)) {
        char asked[4096];
        (void)!recv(fd, asked, sizeof asked, 0);
        (void)send(fd, m->text, strlen(m->text), MSG_NOSIGNAL);
    }
    return NULL;
}

static void malformed_answers_are_errors(void **state)
{
    static const struct {
        const char *text, *scheme;
        int code;
        const char *want;
    } rows[] = {
        {"",                                                 "http",  ECONNRESET, "closed the connection"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "http",  ECONNRESET, "closed the connection"},
        {"SSH-2.0-OpenSSH_9.2\r\n",                          "http",  EPROTO,     "no HTTP server"       },
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",   "https", EPROTO,     "http:// instead"      },
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scripted_server m = {.text = rows[i].text};
        uint16_t port;
        char url[64];
        m.fd = silent_listener(&port);
        assert_int_equal(pthread_create(&m.thread, NULL, scripted_server_main, &m), 0);
        (void)snprintf(url, sizeof url, "%s://127.0.0.1:%u", rows[i].scheme, port);
        expect_trouble((struct client_config){.url = url}, rows[i].code, rows[i].want);
        (void)shutdown(m.fd, SHUT_RDWR);
        assert_int_equal(pthread_join(m.thread, NULL), 0);
        (void)close(m.fd);
    }
}

static void a_redirection_is_not_followed(void **state)
{
    struct scripted_server m = {.text =
                                    "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"};
    CLEANUP(answer) struct client_answer a = {0};
    uint16_t port;
    char url[64];

    (void)state;
    m.fd = silent_listener(&port);
    assert_int_equal(pthread_create(&m.thread, NULL, scripted_server_main, &m), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = url});
    assert_int_equal(client_do(c, &get_root, &a, NULL), 0);
    assert_int_equal(a.status, 302);
    (void)shutdown(m.fd, SHUT_RDWR);
    assert_int_equal(pthread_join(m.thread, NULL), 0);
    (void)close(m.fd);
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

enum { PIECES = 200 };

static void feed(void *ctx)
{
    struct kit *k = ctx;
    char piece[32];
    if (k->drained++ < PIECES)
        (void)http_stream_send(k->kept, piece, (size_t)snprintf(piece, sizeof piece, "piece %u\n", k->drained));
    else
        http_stream_end(k->kept);
}

static void on_closed(void *ctx)
{
    struct kit *k = ctx;
    k->closed++;
    loop_stop(k->loop);
}

static void feed_or_refuse(void *ctx, struct http_request *x)
{
    struct kit *k = ctx;
    if (strcmp(http_path(x), "/gone") == 0) {
        http_answer(x, 410, NULL, "text/plain", "compacted", 9);
        return;
    }
    k->kept = x;
    k->drained = 0;
    http_stream(x, 200, NULL, "application/x-ndjson", on_closed, k);
    http_stream_on_drained(x, feed, k);
    feed(k);
}

struct collected {
    struct str text;
    size_t enough; /* number of bytes after which it disconnects */
};

static bool collect(void *ctx, const char *at, size_t len)
{
    struct collected *c = ctx;
    str_add_bytes(&c->text, at, len);
    return c->text.len < c->enough;
}

static void a_stream_comes_in_pieces(void **state)
{
    CLEANUP(host) struct host h = {0};
    CLEANUP(answer) struct client_answer a = {0}, gone = {0};
    struct collected all = {.enough = SIZE_MAX};

    (void)state;
    host_start(&h, (struct http_config){.handle = feed_or_refuse});
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = h.url, .timeout_ns = 1});
    assert_int_equal(client_stream(c, &get_root, collect, &all, &a, NULL), 0);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body.len, 0);
    assert_string_equal(a.content_type, "application/x-ndjson");
    assert_int_equal(strncmp(all.text.at, "piece 1\npiece 2\n", 16), 0);
    assert_non_null(strstr(all.text.at, "\npiece 200\n"));
    str_clear(&all.text);
    const struct client_request request = {.method = "GET", .path = "/gone"};
    assert_int_equal(client_stream(c, &request, collect, &all, &gone, NULL), 0);
    assert_int_equal(gone.status, 410);
    assert_string_equal(gone.body.at, "compacted");
    assert_int_equal(all.text.len, 0);
    str_done(&all.text);
    host_stop(&h);
    assert_int_equal(h.kit.closed, 0);
}

static void start_and_wait(void *ctx, struct http_request *x)
{
    http_stream(x, 200, NULL, NULL, on_closed, ctx);
    (void)http_stream_send(x, "hello", 5);
}

static void client_may_close_a_stream(void **state)
{
    CLEANUP(host) struct host h = {0};
    CLEANUP(answer) struct client_answer a = {0};
    struct collected some = {.enough = 1};

    (void)state;
    host_start(&h, (struct http_config){.handle = start_and_wait});
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = h.url});
    assert_int_equal(client_stream(c, &get_root, collect, &some, &a, NULL), 0);
    assert_int_equal(a.status, 200);
    assert_string_equal(some.text.at, "hello");
    str_done(&some.text);
    assert_int_equal(pthread_join(h.thread, NULL), 0); /* `closed` stops the thread */
    h.runs = false;
    assert_int_equal(h.kit.closed, 1);
}

static void interrupted_stream_is_an_error(void **state)
{
    struct scripted_server m = {.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"};
    CLEANUP(answer) struct client_answer a = {0};
    struct collected all = {.enough = SIZE_MAX};
    struct berth_err err;
    uint16_t port;
    char url[64];

    (void)state;
    m.fd = silent_listener(&port);
    assert_int_equal(pthread_create(&m.thread, NULL, scripted_server_main, &m), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = url});
    assert_int_equal(client_stream(c, &get_root, collect, &all, &a, &err), -ECONNRESET);
    assert_string_equal(all.text.at, "hello");
    str_done(&all.text);
    (void)shutdown(m.fd, SHUT_RDWR);
    assert_int_equal(pthread_join(m.thread, NULL), 0);
    (void)close(m.fd);
}

/* ---- TLS -------------------------------------------------------------------------------------------------------- */

struct tls_files {
    char dir[64], cert[96], key[96];
    struct tls_identity id;
};

static struct tls_files tls_files_new(void)
{
    struct tls_files f = {0};
    struct timespec now;
    const char *const names[] = {NULL}, *tmp = getenv("TMPDIR");
    (void)snprintf(f.dir, sizeof f.dir, "%.40s/client-test.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f.dir));
    (void)snprintf(f.cert, sizeof f.cert, "%s/tls-cert.pem", f.dir);
    (void)snprintf(f.key, sizeof f.key, "%s/tls-key.pem", f.dir);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    assert_int_equal(tls_identity_ensure(f.dir, names, (int64_t)now.tv_sec * 1000000000, &f.id, NULL), 0);
    return f;
}

static void tls_files_cleanup(struct tls_files *f)
{
    (void)unlink(f->cert);
    (void)unlink(f->key);
    (void)rmdir(f->dir);
    tls_identity_done(&f->id);
}

static void server_certificate_is_verified(void **state)
{
    CLEANUP(tls_files) struct tls_files mine = tls_files_new(), other = tls_files_new();
    CLEANUP(host) struct host h = {0};

    (void)state;
    host_start(&h, (struct http_config){.cert_pem = mine.id.cert_pem, .key_pem = mine.id.key_pem});
    const struct client_config good[] = {
        {.url = h.url, .pin = mine.id.pin  },
        {.url = h.url, .ca_path = mine.cert}
    };
    for (size_t i = 0; i < ROWS(good); i++) {
        CLEANUP(client) struct client *c = must_client(good[i]);
        for (int round = 0; round < 3; round++) {
            CLEANUP(answer) struct client_answer a = {0};
            struct berth_err err;
            const struct client_request request = {.method = "PUT", .path = "/tls", .body = "hello", .body_len = 5};
            if (client_do(c, &request, &a, &err) != 0)
                fail_msg("%s", err.text);
            assert_int_equal(a.status, 200);
            assert_string_equal(a.body.at, "PUT /tls hello");
        }
    }
    expect_trouble((struct client_config){.url = h.url}, EPERM, "--pin sha256//");
    expect_trouble((struct client_config){.url = h.url, .ca_path = other.cert}, EPERM, "--pin sha256//");
    expect_trouble((struct client_config){.url = h.url, .pin = other.id.pin}, EPERM, "not the one that was pinned");
    expect_trouble((struct client_config){.url = h.url, .ca_path = "/no/such.pem"}, ENOENT, "/no/such.pem");
    char plain[96];
    (void)snprintf(plain, sizeof plain, "http://%s", h.url + 8);
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = plain});
    struct client_answer a = {0};
    assert_true(client_do(c, &get_root, &a, NULL) < 0);
    host_stop(&h);
    assert_int_equal(http_server_stats(h.kit.server).requests, 6);
}

static void a_stream_comes_through_tls(void **state)
{
    CLEANUP(tls_files) struct tls_files mine = tls_files_new();
    CLEANUP(host) struct host h = {0};
    CLEANUP(answer) struct client_answer a = {0};
    struct collected all = {.enough = SIZE_MAX};

    (void)state;
    host_start(
        &h, (struct http_config){.cert_pem = mine.id.cert_pem, .key_pem = mine.id.key_pem, .handle = feed_or_refuse});
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = h.url, .pin = mine.id.pin});
    assert_int_equal(client_stream(c, &get_root, collect, &all, &a, NULL), 0);
    assert_non_null(strstr(all.text.at, "\npiece 200\n"));
    str_done(&all.text);
}

static void answer_large(void *ctx, struct http_request *x)
{
    enum { LEN = 20 << 20 };
    CLEANUP(mem) char *body = mem_zalloc(LEN);
    (void)ctx;
    http_answer(x, 200, NULL, NULL, body, LEN);
}

static void a_large_answer_comes_through_tls(void **state)
{
    CLEANUP(tls_files) struct tls_files mine = tls_files_new();
    CLEANUP(host) struct host h = {0};
    CLEANUP(answer) struct client_answer a = {0};

    (void)state;
    host_start(&h,
               (struct http_config){.cert_pem = mine.id.cert_pem, .key_pem = mine.id.key_pem, .handle = answer_large});
    CLEANUP(client) struct client *c = must_client((struct client_config){.url = h.url, .pin = mine.id.pin});
    assert_int_equal(client_do(c, &get_root, &a, NULL), 0);
    assert_int_equal(a.body.len, 20 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_have_all_given_parts),
        cmocka_unit_test(a_large_body_arrives),
        cmocka_unit_test(a_body_that_is_too_large_is_refused),
        cmocka_unit_test(invalid_requests_are_rejected),
        cmocka_unit_test(configurations_are_checked),
        cmocka_unit_test(disallowed_address_is_not_connected),
        cmocka_unit_test(texts_are_encoded),
        cmocka_unit_test(errors_name_a_remedy),
        cmocka_unit_test(malformed_answers_are_errors),
        cmocka_unit_test(a_redirection_is_not_followed),
        cmocka_unit_test(a_stream_comes_in_pieces),
        cmocka_unit_test(client_may_close_a_stream),
        cmocka_unit_test(interrupted_stream_is_an_error),
        cmocka_unit_test(server_certificate_is_verified),
        cmocka_unit_test(a_stream_comes_through_tls),
        cmocka_unit_test(a_large_answer_comes_through_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
