/* http_test.c - tests requests and answers, immediate and later ones. */
#include "net/http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include "net/kit_test.h"

static void expect(struct kit *k, struct talk *t, int status, const char *want)
{
    CLEANUP(str) struct str body = {0};
    assert_int_equal(talk_answer(k, t, &body), status);
    assert_string_equal(str_text(&body), want);
}

static void a_connection_serves_many_requests(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){0});
    CLEANUP(talk) struct talk t = talk_new(&k);
    for (int i = 0; i < 5; i++) {
        talk_say(&k, &t, GET("/a%20b?x=1"));
        expect(&k, &t, 200, "GET /a b ");
    }
    talk_say(&k, &t, "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    expect(&k, &t, 200, "POST /b hello");
    talk_say(&k, &t,
             "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    expect(&k, &t, 200, "POST /c abcde");
    assert_int_equal(k.admitted, 7);
    assert_int_equal(k.handled, 7);
    KIT_UNTIL(&k, k.dropped == 7);
    struct http_server_stats stats = http_server_stats(k.server);
    assert_int_equal(stats.connections, 1);
    assert_int_equal(stats.accepted, 1);
    assert_int_equal(stats.requests, 7);
    assert_int_equal(stats.refused, 0);
    assert_true(stats.bytes_in > 7 * 30 && stats.bytes_out > 7 * 9);
    talk_close(&t);
    KIT_UNTIL(&k, http_server_stats(k.server).connections == 0);
}

static void pipelined_requests_are_answered(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){0});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t,
             GET("/1") "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nxy" GET(
                 "/3") "GET /4 HTTP/1.1\r\n"
                       "Host: h\r\nConnection: close\r\n\r\n");
    expect(&k, &t, 200, "GET /1 ");
    expect(&k, &t, 200, "POST /2 xy");
    expect(&k, &t, 200, "GET /3 ");
    expect(&k, &t, 200, "GET /4 ");
    talk_hear_end(&k, &t);
}

/* Sends more requests at once than fit the library's memory. */
static void pipelined_requests_may_exceed_memory(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(str) struct str text = {0};

    (void)state;
    kit_start(&k, (struct http_config){0});
    CLEANUP(talk) struct talk t = talk_new(&k);
    for (int i = 0; i < 1000; i++)
        str_addf(&text, "GET /%d HTTP/1.1\r\nHost: h\r\nX: %*d\r\n\r\n", i, i * 7 % 6500, i);
    talk_say(&k, &t, text.at);
    for (int i = 0; i < 1000; i++) {
        char want[32];
        (void)snprintf(want, sizeof want, "GET /%d ", i);
        expect(&k, &t, 200, want);
    }
}

/* Sends one byte at a time, as a slow network would. */
static void a_request_may_come_in_pieces(void **state)
{
    static const char text[] = "PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){0});
    CLEANUP(talk) struct talk t = talk_new(&k);
    for (size_t i = 0; text[i]; i++) {
        talk_say_bytes(&k, &t, text + i, 1);
        kit_round(&k);
    }
    expect(&k, &t, 200, "PUT /p body");
}

static void every_answer_has_its_headers(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){0});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, GET("/"));
    talk_hear(&k, &t, "GET / ");
    assert_non_null(strstr(t.heard.at, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_non_null(strstr(t.heard.at, "\r\nCache-Control: no-store\r\n"));
    assert_non_null(strstr(t.heard.at, "\r\nContent-Length: 6\r\n"));
    assert_non_null(strstr(t.heard.at, "\r\nContent-Type: text/plain\r\n"));
    assert_null(strstr(t.heard.at, "\r\nConnection: close\r\n"));
}

static void head_is_answered_without_a_body(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){0});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, "HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n");
    talk_hear(&k, &t, "\r\n\r\n");
    assert_non_null(strstr(t.heard.at, "\r\nContent-Length: 7\r\n"));
    assert_null(strstr(t.heard.at, "GET /x"));
    str_clear(&t.heard);
    talk_say(&k, &t, GET("/y"));
    expect(&k, &t, 200, "GET /y ");
}

/* ---- content of a request --------------------------------------------------------------------------------------- */

static void say_all(void *ctx, struct http_request *x)
{
    CLEANUP(str) struct str said = {0};
    const char *q = http_query(x, "q"), *flag = http_query(x, "flag"), *none = http_query(x, "none");
    size_t len;

    (void)ctx;
    assert_non_null(q);
    assert_non_null(flag);
    assert_null(none);
    assert_null(http_header(x, "X-None"));
    assert_null(http_peer_name(x));
    assert_string_equal(http_remote(x), "127.0.0.1");
    assert_int_equal(http_body(x, &len)[0], '\0');
    assert_int_equal(len, 0);
    str_addf(&said, "%s|%s|%s|%s", http_path(x), q, flag, http_header(x, "x-thing"));
    http_answer(x, 201,
                (struct http_header[]){
                    {"X-Answer", "yes"},
                    {NULL,       NULL }
    },
                NULL, said.at, said.len);
}

static void request_content_is_available(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = say_all});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, "GET /%c3%a4?q=a%26b+c&flag HTTP/1.1\r\nHost: h\r\nX-Thing: 7\r\n\r\n");
    talk_hear(&k, &t, "|7");
    assert_non_null(strstr(t.heard.at, "\r\nX-Answer: yes\r\n"));
    assert_null(strstr(t.heard.at, "Content-Type:"));
    expect(&k, &t, 201, "/\xc3\xa4|a&b c||7");
}

/* Malformed requests are rejected before any handler is called. */
static void malformed_requests_are_rejected(void **state)
{
    static const struct {
        const char *label, *text;
        int status; /* 0: closed without an answer */
    } rows[] = {
        {"NUL in the path",           GET("/a%00b"),                                                                      400},
        {"broken escape",             GET("/a%zz"),                                                                       400},
        {"bad UTF-8",                 GET("/%ff"),                                                                        400},
        {"line break",                GET("/a%0ab"),                                                                      400},
        {"same parameter",            GET("/a?b=1&b=2"),                                                                  400},
        {"no slash",                  GET("a"),                                                                           400},
        {"asterisk",                  "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",                                            400},
        {"a proxy's request",         "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",                                          400},
        {"no host",                   "GET / HTTP/1.1\r\n\r\n",                                                           400},
        {"two hosts",                 "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",                                     400},
        {"control in a value",        "GET / HTTP/1.1\r\nHost: h\r\nX: a\x01b\r\n\r\n",                                   400},
        {"first a length, then none",
         "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
         400                                                                                                                 },
        {"two lengths",               "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",    400},
        {"length and chunks",
         "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",                400},
        {"other encoding",            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\nx",                   400},
        {"length no number",          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",                          400},
        {"broken chunk",              "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",           400},
        {"blank in the target",       "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",                                             400},
        {"no words",                  "hello\r\n\r\n",                                                                    0  },
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = {0};
        kit_start(&k, (struct http_config){0});
        CLEANUP(talk) struct talk t = talk_new(&k);
        talk_say(&k, &t, rows[i].text);
        if (rows[i].status == 0) {
            talk_hear_end(&k, &t);
            if (t.heard.len)
                fail_msg("%s: %s", rows[i].label, t.heard.at);
        } else {
            int status = talk_answer(&k, &t, NULL);
            if (status != rows[i].status)
                fail_msg("%s: %d", rows[i].label, status);
            talk_hear_end(&k, &t); /* the start of the next request is uncertain */
        }
        if (k.handled)
            fail_msg("%s: was handled", rows[i].label);
    }
}

/* ---- late answers ----------------------------------------------------------------------------------------------- */

static void an_answer_may_come_later(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = kit_keep});
    CLEANUP(talk) struct talk t = talk_new(&k);
    for (int i = 0; i < 3; i++) {
        talk_say(&k, &t, GET("/later"));
        KIT_UNTIL(&k, k.kept);
        for (int round = 0; round < 3; round++)
            kit_round(&k);
        talk_listen(&t);
        assert_int_equal(t.heard.len, 0);
        assert_int_equal(http_server_busy(k.server), 1);
        assert_string_equal(http_path(k.kept), "/later");
        assert_string_equal(http_header(k.kept, "host"), "h");
        http_answer(take_ptr(&k.kept), 202, NULL, "text/plain", "now", 3);
        expect(&k, &t, 202, "now");
        KIT_UNTIL(&k, http_server_busy(k.server) == 0);
    }
    assert_int_equal(k.dropped, 3);
}

/* Several requests wait on one server and are answered in another order, two of them in one round. */
static void answers_may_come_in_any_order(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct talk talks[3];
    struct http_request *kept[3];

    (void)state;
    kit_start(&k, (struct http_config){.handle = kit_keep});
    for (int i = 0; i < 3; i++) {
        talks[i] = talk_new(&k);
        talk_say(&k, &talks[i], GET("/"));
        KIT_UNTIL(&k, k.kept);
        kept[i] = take_ptr(&k.kept);
    }
    assert_int_equal(http_server_busy(k.server), 3);
    http_answer(kept[2], 200, NULL, NULL, "2", 1);
    http_answer(kept[0], 200, NULL, NULL, "0", 1);
    expect(&k, &talks[2], 200, "2");
    expect(&k, &talks[0], 200, "0");
    http_answer(kept[1], 204, NULL, NULL, NULL, 0);
    expect(&k, &talks[1], 204, "");
    for (int i = 0; i < 3; i++)
        talk_cleanup(&talks[i]);
}

static void answer_after_disconnect_is_harmless(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = kit_keep});
    for (int i = 0; i < 2; i++) {
        CLEANUP(talk) struct talk t = talk_new(&k);
        talk_say(&k, &t, GET("/"));
        KIT_UNTIL(&k, k.kept);
        if (i == 1) /* closes with a reset */
            assert_int_equal(setsockopt(t.fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)), 0);
        talk_close(&t);
        kit_round(&k);
        assert_string_equal(http_path(k.kept), "/");
        http_answer(take_ptr(&k.kept), 200, NULL, NULL, "hello?", 6);
        KIT_UNTIL(&k, http_server_stats(k.server).connections == 0);
        assert_int_equal(k.dropped, i + 1);
        assert_int_equal(http_server_busy(k.server), 0);
    }
}

static int64_t admit_refuses(void *ctx, struct http_request *x)
{
    struct kit *k = ctx;
    k->admitted++;
    http_set_data(x, k, kit_drop);
    http_answer(x, 401, NULL, "text/plain", "who?", 4);
    return -1;
}

/* A small rejected body is read and discarded, so the connection stays usable. */
static void small_rejected_body_keeps_the_connection(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.admit = admit_refuses});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, GET("/"));
    expect(&k, &t, 401, "who?");
    talk_say(&k, &t, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello" GET("/"));
    expect(&k, &t, 401, "who?");
    expect(&k, &t, 401, "who?");
    assert_int_equal(k.handled, 0);
    assert_int_equal(k.admitted, 3);
    KIT_UNTIL(&k, k.dropped == 3);
}

/* A request with "Expect: 100-continue" is rejected without its body, or the body is requested. */
static void an_expected_continue_is_answered(void **state)
{
    static const char text[] = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    CLEANUP(kit) struct kit strict = {0}, k = {0};

    (void)state;
    kit_start(&strict, (struct http_config){.admit = admit_refuses});
    CLEANUP(talk) struct talk refused = talk_new(&strict);
    talk_say(&strict, &refused, text);
    expect(&strict, &refused, 401, "who?");
    talk_hear_end(&strict, &refused);

    kit_start(&k, (struct http_config){0});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, text);
    talk_hear(&k, &t, "HTTP/1.1 100 Continue\r\n\r\n");
    str_clear(&t.heard);
    talk_say(&k, &t, "hello");
    expect(&k, &t, 200, "PUT / hello");
}

static void answer_file(void *ctx, struct http_request *x)
{
    FILE *f = tmpfile();
    (void)ctx;
    assert_non_null(f);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(fprintf(f, "%09d\n", i), 10);
    assert_int_equal(fflush(f), 0);
    int fd = dup(fileno(f));
    (void)fclose(f);
    http_answer_file(x, 200, NULL, "text/plain", fd, 200000);
}

static void a_file_is_an_answer(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(str) struct str body = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = answer_file});
    CLEANUP(talk) struct talk t = talk_new(&k);
    int number = -1;
    for (int i = 0; i < 3; i++) {
        talk_say(&k, &t, GET("/"));
        assert_int_equal(talk_answer(&k, &t, &body), 200);
        assert_int_equal(body.len, 200000);
        assert_memory_equal(body.at + 199980, "000019998\n000019999\n", 20);
        KIT_UNTIL(&k, http_server_busy(k.server) == 0);
        int next = dup(0); /* always the same number: no file stays open */
        (void)close(next);
        assert_true(number < 0 || next == number);
        number = next;
    }
}

static void answer_short_file(void *ctx, struct http_request *x)
{
    FILE *f = tmpfile();
    (void)ctx;
    assert_non_null(f);
    int fd = strcmp(http_path(x), "/short") == 0 ? dup(fileno(f)) : open("/dev/null", O_RDONLY);
    (void)fclose(f);
    http_answer_file(x, 200, NULL, NULL, fd, 1);
}

static void unreadable_file_is_an_internal_error(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = answer_short_file});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, GET("/short") GET("/other"));
    assert_int_equal(talk_answer(&k, &t, NULL), 500);
    assert_int_equal(talk_answer(&k, &t, NULL), 500);
}

static void answer_smuggled(void *ctx, struct http_request *x)
{
    (void)ctx;
    http_answer(x, 200,
                (struct http_header[]){
                    {"X-A", "b\r\nX-Evil: 1"},
                    {"X-B", "good"          },
                    {NULL,  NULL            }
    },
                NULL, "", 0);
}

static void header_with_line_break_is_left_out(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = answer_smuggled});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, GET("/"));
    talk_hear(&k, &t, "\r\n\r\n");
    assert_null(strstr(t.heard.at, "Evil"));
    assert_non_null(strstr(t.heard.at, "X-B: good"));
}

static void answer_large(void *ctx, struct http_request *x)
{
    size_t len = 8 << 20;
    CLEANUP(mem) char *body = mem_alloc(len);
    (void)ctx;
    memset(body, 'a', len);
    http_answer(x, 200, NULL, NULL, body, len);
}

static void a_large_answer_arrives(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(str) struct str body = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = answer_large});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, GET("/") GET("/"));
    assert_int_equal(talk_answer(&k, &t, &body), 200);
    assert_int_equal(body.len, 8 << 20);
    assert_int_equal(talk_answer(&k, &t, NULL), 200);
}

static void http_1_0_client_is_served(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){0});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, "GET /old HTTP/1.0\r\n\r\n");
    talk_hear_end(&k, &t);
    assert_non_null(strstr(t.heard.at, "GET /old "));
}

/* ---- stopping the server ---------------------------------------------------------------------------------------- */

static void server_stops_with_running_requests(void **state)
{
    struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = kit_keep});
    CLEANUP(talk) struct talk idle = talk_new(&k), waiting = talk_new(&k), halfway = talk_new(&k);
    talk_say(&k, &waiting, GET("/"));
    talk_say(&k, &halfway, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
    KIT_UNTIL(&k, k.kept && k.admitted == 2);
    http_server_free(k.server);
    assert_int_equal(k.dropped, 2);
    talk_hear_end(&k, &waiting);
    talk_hear_end(&k, &idle);
    talk_hear_end(&k, &halfway);
    assert_int_equal(waiting.heard.len, 0);
    loop_free(k.loop);
    http_server_free(NULL);
}

static void quiesced_server_finishes_running_requests(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = kit_keep});
    CLEANUP(talk) struct talk waiting = talk_new(&k), idle = talk_new(&k);
    talk_say(&k, &idle, GET("/"));
    KIT_UNTIL(&k, k.kept);
    http_answer(take_ptr(&k.kept), 200, NULL, NULL, "", 0);
    assert_int_equal(talk_answer(&k, &idle, NULL), 200);
    talk_say(&k, &waiting, GET("/"));
    KIT_UNTIL(&k, k.kept);

    uint16_t port = http_server_port(k.server);
    http_server_quiesce(k.server);
    talk_hear_end(&k, &idle);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), -1);
    assert_int_equal(errno, ECONNREFUSED);
    (void)close(fd);

    assert_int_equal(http_server_busy(k.server), 1);
    http_answer(take_ptr(&k.kept), 200, NULL, NULL, "last", 4);
    talk_hear_end(&k, &waiting);
    assert_non_null(strstr(waiting.heard.at, "\r\nConnection: close\r\n"));
    assert_non_null(strstr(waiting.heard.at, "last"));
    KIT_UNTIL(&k, http_server_busy(k.server) == 0 && http_server_stats(k.server).connections == 0);
}

static void failed_listen_explains_the_reason(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct http_server *none = NULL;
    struct berth_err err;

    (void)state;
    kit_start(&k, (struct http_config){0});
    struct http_config config = {.address = "localhost", .admit = kit_admit, .handle = kit_echo};
    assert_int_equal(http_server_new(k.loop, &config, &none, &err), -EINVAL);
    assert_non_null(strstr(err.text, "localhost"));
    config.address = "192.0.2.1";
    assert_int_equal(http_server_new(k.loop, &config, &none, &err), -EADDRNOTAVAIL);
    config.address = "127.0.0.1";
    config.port = http_server_port(k.server);
    assert_int_equal(http_server_new(k.loop, &config, &none, &err), -EADDRINUSE);
    assert_non_null(strstr(err.text, "another program"));
    config.cert_pem = config.key_pem = "nonsense";
    assert_int_equal(http_server_new(k.loop, &config, &none, &err), -EINVAL);
    assert_non_null(strstr(err.text, "certificate"));
    assert_null(none);
}

static void a_server_listens_on_ipv6(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);

    (void)state;
    if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        (void)printf("skip: this machine has no IPv6\n");
        skip();
    }
    (void)close(fd);
    kit_start(&k, (struct http_config){.address = "::1"});
    CLEANUP(talk) struct talk t = {.fd = socket(AF_INET6, SOCK_STREAM, 0)};
    to.sin6_port = htons(http_server_port(k.server));
    assert_int_equal(connect(t.fd, (struct sockaddr *)&to, sizeof to), 0);
    talk_say(&k, &t, GET("/six"));
    expect(&k, &t, 200, "GET /six ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_serves_many_requests),
        cmocka_unit_test(pipelined_requests_are_answered),
        cmocka_unit_test(pipelined_requests_may_exceed_memory),
        cmocka_unit_test(a_request_may_come_in_pieces),
        cmocka_unit_test(every_answer_has_its_headers),
        cmocka_unit_test(head_is_answered_without_a_body),
        cmocka_unit_test(request_content_is_available),
        cmocka_unit_test(malformed_requests_are_rejected),
        cmocka_unit_test(an_answer_may_come_later),
        cmocka_unit_test(answers_may_come_in_any_order),
        cmocka_unit_test(answer_after_disconnect_is_harmless),
        cmocka_unit_test(small_rejected_body_keeps_the_connection),
        cmocka_unit_test(an_expected_continue_is_answered),
        cmocka_unit_test(a_file_is_an_answer),
        cmocka_unit_test(unreadable_file_is_an_internal_error),
        cmocka_unit_test(header_with_line_break_is_left_out),
        cmocka_unit_test(a_large_answer_arrives),
        cmocka_unit_test(http_1_0_client_is_served),
        cmocka_unit_test(server_stops_with_running_requests),
        cmocka_unit_test(quiesced_server_finishes_running_requests),
        cmocka_unit_test(failed_listen_explains_the_reason),
        cmocka_unit_test(a_server_listens_on_ipv6),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
