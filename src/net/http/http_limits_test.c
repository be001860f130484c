/* http_limits_test.c - tests the bounds on sizes, times and counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/resource.h>

#include "net/kit_test.h"

/* ---- too large -------------------------------------------------------------------------------------------------- */

#define POST(headers) "POST / HTTP/1.1\r\nHost: h\r\n" headers "\r\n"

static void bodies_are_bounded(void **state)
{
    static const struct {
        const char *label, *text;
        int status;
    } rows[] = {
        {"none",               POST("Content-Length: 0\r\n"),                                                200},
        {"just fits",          POST("Content-Length: 8\r\n") "12345678",                                     200},
        {"announced",          POST("Content-Length: 9\r\n") "123456789",                                    413},
        {"announced, large",   POST("Content-Length: 104857600\r\n"),                                        413},
        {"announced, absurd",  POST("Content-Length: 99999999999999999999999\r\n"),                          413},
        {"expects to wait",    POST("Content-Length: 9\r\nExpect: 100-continue\r\n"),                        413},
        {"chunks just fit",    POST("Transfer-Encoding: chunked\r\n") "4\r\n1234\r\n4\r\n5678\r\n0\r\n\r\n", 200},
        {"chunks grow beyond", POST("Transfer-Encoding: chunked\r\n") "4\r\n1234\r\n5\r\n56789\r\n",         413},
        {"one chunk",          POST("Transfer-Encoding: chunked\r\n") "fffff\r\n123456789",                  413},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = {.body_max = 8};
        kit_start(&k, (struct http_config){0});
        CLEANUP(talk) struct talk t = talk_new(&k);
        talk_say(&k, &t, rows[i].text);
        int status = talk_answer(&k, &t, NULL);
        if (status != rows[i].status)
            fail_msg("%s: %d", rows[i].label, status);
        assert_int_equal(k.handled, status == 200);
        talk_close(&t);
        KIT_UNTIL(&k, http_server_stats(k.server).connections == 0);
        assert_int_equal(k.dropped, k.admitted);
    }
}

/* A client that does not read while it sends still receives the rejection. */
static void rejection_reaches_client_that_is_still_sending(void **state)
{
    static const char *const rows[] = {POST("Content-Length: 4000000\r\n"),
                                       POST("Transfer-Encoding: chunked\r\n") "3d0900\r\n"};
    CLEANUP(mem) char *body = mem_zalloc(4000000);

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = {0};
        kit_start(&k, (struct http_config){0});
        CLEANUP(talk) struct talk t = talk_new(&k);
        talk_say(&k, &t, rows[i]);
        talk_say_bytes(&k, &t, body, 4000000);
        assert_int_equal(talk_answer(&k, &t, NULL), 413);
        talk_hear_end(&k, &t);
        assert_int_equal(k.handled, 0);
        talk_close(&t);
        KIT_UNTIL(&k, http_server_stats(k.server).connections == 0);
    }
}

/* A client that never stops sending is disconnected after the deadline; so is a client that does nothing. */
static void rejected_connection_is_closed_after_deadline(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    char piece[1000] = {0};

    (void)state;
    kit_start(&k, (struct http_config){.request_ns_max = 30 * KIT_MS});
    CLEANUP(talk) struct talk busy = talk_new(&k), quiet = talk_new(&k);
    talk_say(&k, &quiet, POST("Content-Length: 99999999\r\n"));
    talk_say(&k, &busy, POST("Content-Length: 99999999\r\n"));
    assert_int_equal(talk_answer(&k, &busy, NULL), 413);
    while (http_server_stats(k.server).connections) {
        (void)send(busy.fd, piece, sizeof piece, MSG_NOSIGNAL | MSG_DONTWAIT);
        kit_round(&k);
    }
}

/* Headers of every size, also far beyond the bound, get an answer or 431 (or 414, for the line), but never no
 * answer. */
static void headers_are_bounded(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    unsigned good = 0, bad = 0;

    (void)state;
    kit_start(&k, (struct http_config){.header_bytes_max = 8192});
    for (size_t size = 100; size < 12000; size += 53) {
        for (int where = 0; where < 3; where++) {
            CLEANUP(str) struct str text = {0};
            CLEANUP(talk) struct talk t = talk_new(&k);
            str_add(&text, "GET /");
            while (where == 0 && text.len < size)
                str_add_char(&text, 'a');
            str_add(&text, " HTTP/1.1\r\nHost: h\r\nX: ");
            while (where == 1 && text.len < size)
                str_add_char(&text, 'a');
            for (int i = 0; where == 2 && text.len < size; i++)
                str_addf(&text, "\r\nX-%d: y", i);
            str_add(&text, "\r\n\r\n");
            talk_say(&k, &t, text.at);
            int status = talk_answer(&k, &t, NULL);
            fprintf(stderr, "%d %zu %d\n", where, size, status);
            good += status == 200;
            bad += status != 200;
        }
    }
    assert_true(good > 50 && bad > 50);
}

/* ---- too slow --------------------------------------------------------------------------------------------------- */

static const struct http_config quick = {.request_ns_max = 30 * KIT_MS, .idle_ns_max = 30 * KIT_MS};

/* A client that sends one byte per round must be stopped by a deadline for the whole request. */
static void slow_sender_is_disconnected(void **state)
{
    static const struct {
        const char *label, *first, *then;
    } rows[] = {
        {"says nothing", "",                                     ""          },
        {"slow line",    "",                                     "G"         },
        {"slow header",  "GET / HTTP/1.1\r\nHost: h\r\nX: ",     "x"         },
        {"slow body",    POST("Content-Length: 99999999\r\n"),   "x"         },
        {"slow chunks",  POST("Transfer-Encoding: chunked\r\n"), "1\r\nx\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = {.body_max = 1 << 30};
        kit_start(&k, quick);
        CLEANUP(talk) struct talk t = talk_new(&k);
        talk_say(&k, &t, rows[i].first);
        while (!t.ended) {
            (void)send(t.fd, rows[i].then, strlen(rows[i].then), MSG_NOSIGNAL | MSG_DONTWAIT);
            kit_round(&k);
            talk_listen(&t);
        }
        if (!strstr(str_text(&t.heard), "HTTP/1.1 408 "))
            fail_msg("%s: \"%s\"", rows[i].label, str_text(&t.heard));
        KIT_UNTIL(&k, http_server_stats(k.server).connections == 0);
        assert_int_equal(k.handled, 0);
        assert_true(http_server_stats(k.server).refused > 0);
    }
}

static void an_idle_connection_is_closed(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, quick);
    CLEANUP(talk) struct talk quiet = talk_new(&k), slow = talk_new(&k);
    talk_say(&k, &quiet, GET("/"));
    talk_say(&k, &slow, GET("/"));
    assert_int_equal(talk_answer(&k, &quiet, NULL), 200);
    assert_int_equal(talk_answer(&k, &slow, NULL), 200);
    while (!slow.ended) { /* the second request never ends */
        (void)send(slow.fd, "G", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        kit_round(&k);
        talk_listen(&slow);
    }
    talk_hear_end(&k, &quiet);
    assert_int_equal(quiet.heard.len, 0);
    KIT_UNTIL(&k, http_server_stats(k.server).connections == 0);
}

/* The handler is slow; the deadlines of other connections expire meanwhile. */
static void slow_handler_does_not_expire_deadlines(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct http_config config = quick;

    (void)state;
    config.handle = kit_keep;
    kit_start(&k, config);
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, POST("Content-Length: 1\r\n") "x");
    KIT_UNTIL(&k, k.kept);
    for (int i = 0; i < 3; i++) {
        CLEANUP(talk) struct talk silent = talk_new(&k);
        talk_hear_end(&k, &silent);
    }
    http_answer(k.kept, 200, NULL, NULL, "late", 4);
    assert_int_equal(talk_answer(&k, &t, NULL), 200);
}

enum { LARGE_BYTES = 64 << 20 };

static void answer_large(void *ctx, struct http_request *x)
{
    CLEANUP(mem) char *body = mem_zalloc(LARGE_BYTES);
    kit_keep(ctx, x);
    http_answer(x, 200, NULL, NULL, body, LARGE_BYTES);
}

static void client_that_does_not_read_is_disconnected(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct http_config config = quick;

    (void)state;
    config.handle = answer_large;
    kit_start(&k, config);
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, GET("/"));
    KIT_UNTIL(&k, k.dropped == 1 && http_server_stats(k.server).connections == 0);
    assert_int_equal(http_server_stats(k.server).refused, 1);
}

/* The client needs many times the deadline, but reads continuously. */
static void slow_reading_client_is_not_disconnected(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(mem) char *room = mem_alloc(200000);
    size_t heard = 0;

    (void)state;
    kit_start(&k, (struct http_config){.request_ns_max = 50 * KIT_MS, .handle = answer_large});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, GET("/"));
    while (heard < LARGE_BYTES) {
        ssize_t n = recv(t.fd, room, 200000, MSG_DONTWAIT);
        assert_true(n > 0 || (n < 0 && errno == EAGAIN));
        heard += n > 0 ? (size_t)n : 0;
        kit_round(&k);
    }
    assert_int_equal(http_server_stats(k.server).refused, 0);
}

static void on_closed(void *ctx)
{
    ((struct kit *)ctx)->closed++;
}

static void stream_much(void *ctx, struct http_request *x)
{
    CLEANUP(mem) char *piece = mem_zalloc(LARGE_BYTES / 4);
    http_stream(x, 200, NULL, NULL, on_closed, ctx);
    assert_true(http_stream_send(x, piece, LARGE_BYTES / 4));
}

static void unread_stream_is_disconnected(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct http_config config = quick;

    (void)state;
    config.handle = stream_much;
    kit_start(&k, config);
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, GET("/"));
    KIT_UNTIL(&k, k.closed == 1 && http_server_stats(k.server).connections == 0);
}

/* ---- too many --------------------------------------------------------------------------------------------------- */

static void connections_are_bounded(void **state)
{
    static const struct {
        struct http_config config;
        int status;
    } rows[] = {
        {{.connections_per_address_max = 3}, 429},
        {{.connections_max = 3},             503},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = {0};
        struct talk talks[3];
        kit_start(&k, rows[i].config);
        for (int c = 0; c < 3; c++) {
            talks[c] = talk_new(&k);
            talk_say(&k, &talks[c], GET("/"));
            assert_int_equal(talk_answer(&k, &talks[c], NULL), 200);
        }
        CLEANUP(talk) struct talk more = talk_new(&k);
        talk_hear_end(&k, &more);
        assert_int_equal(atoi(more.heard.at + 9), rows[i].status);
        assert_non_null(strstr(more.heard.at, "\r\nRetry-After: 1\r\n"));
        assert_int_equal(http_server_stats(k.server).refused, 1);

        talk_close(&talks[0]); /* frees a connection */
        KIT_UNTIL(&k, http_server_stats(k.server).connections == 2);
        CLEANUP(talk) struct talk next = talk_new(&k);
        talk_say(&k, &next, GET("/"));
        assert_int_equal(talk_answer(&k, &next, NULL), 200);
        for (int c = 0; c < 3; c++)
            talk_cleanup(&talks[c]);
    }
}

static void connections_are_counted_per_address(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.address = "0.0.0.0", .connections_per_address_max = 1});
    for (int round = 0; round < 2; round++) {
        struct talk talks[20];
        for (uint32_t i = 0; i < 20; i++) {
            struct sockaddr_in from = {.sin_family = AF_INET}, to = from;
            from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
            to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            to.sin_port = htons(http_server_port(k.server));
            talks[i] = (struct talk){.fd = socket(AF_INET, SOCK_STREAM, 0)};
            assert_int_equal(bind(talks[i].fd, (struct sockaddr *)&from, sizeof from), 0);
            assert_int_equal(connect(talks[i].fd, (struct sockaddr *)&to, sizeof to), 0);
            talk_say(&k, &talks[i], GET("/"));
            assert_int_equal(talk_answer(&k, &talks[i], NULL), 200);
        }
        for (size_t i = 0; i < 20; i++)
            talk_cleanup(&talks[i]);
        KIT_UNTIL(&k, http_server_stats(k.server).connections == 0);
    }
}

static int next_fd(void)
{
    int fd = dup(0);
    (void)close(fd);
    return fd;
}

static void thousands_of_connections_leave_nothing_open(void **state)
{
    enum { ROUNDS = 10, AT_ONCE = 200 };
    CLEANUP(kit) struct kit k = {0};
    static struct talk talks[AT_ONCE];

    (void)state;
    kit_start(&k, (struct http_config){0});
    int before = next_fd();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            talks[i] = talk_new(&k);
            if (i % 4)
                talk_say(&k, &talks[i],
                         i % 4 == 1   ? GET("/")
                         : i % 4 == 2 ? "GET / HT"
                                      : POST("Content-Length: 5\r\n"));
        }
        KIT_UNTIL(&k, http_server_stats(k.server).connections == AT_ONCE);
        for (int i = 0; i < AT_ONCE; i++) {
            if (i % 4 == 1)
                assert_int_equal(talk_answer(&k, &talks[i], NULL), 200);
            talk_cleanup(&talks[i]);
        }
        KIT_UNTIL(&k, http_server_stats(k.server).connections == 0);
    }
    assert_int_equal(http_server_stats(k.server).accepted, ROUNDS * AT_ONCE);
    assert_int_equal(http_server_busy(k.server), 0);
    assert_int_equal(next_fd(), before);
}

static void accepting_pauses_without_descriptors(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct rlimit before, none;

    (void)state;
    kit_start(&k, (struct http_config){0});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, GET("/"));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){(rlim_t)next_fd(), before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(loop_once(k.loop, KIT_MS, NULL), 0);
    assert_int_equal(http_server_stats(k.server).accepted, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(talk_answer(&k, &t, NULL), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_bounded),
        cmocka_unit_test(rejection_reaches_client_that_is_still_sending),
        cmocka_unit_test(rejected_connection_is_closed_after_deadline),
        cmocka_unit_test(headers_are_bounded),
        cmocka_unit_test(slow_sender_is_disconnected),
        cmocka_unit_test(an_idle_connection_is_closed),
        cmocka_unit_test(slow_handler_does_not_expire_deadlines),
        cmocka_unit_test(client_that_does_not_read_is_disconnected),
        cmocka_unit_test(slow_reading_client_is_not_disconnected),
        cmocka_unit_test(unread_stream_is_disconnected),
        cmocka_unit_test(connections_are_bounded),
        cmocka_unit_test(connections_are_counted_per_address),
        cmocka_unit_test(thousands_of_connections_leave_nothing_open),
        cmocka_unit_test(accepting_pauses_without_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
