/* http_stream_test.c - tests streams: pieces, slow readers, and clients that disconnect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "net/kit_test.h"

static void on_closed(void *ctx)
{
    struct kit *k = ctx;
    k->closed++;
    k->kept = NULL;
}

static void on_drained(void *ctx)
{
    struct kit *k = ctx;
    k->drained++;
}

static void start_stream(void *ctx, struct http_request *x)
{
    struct kit *k = ctx;
    kit_keep(ctx, x);
    http_stream(x, 200, NULL, "application/x-ndjson", on_closed, k);
    http_stream_on_drained(x, on_drained, k);
}

/* Starts a stream and reads its header. */
static struct talk watch(struct kit *k)
{
    struct talk t = talk_new(k);
    talk_say(k, &t, GET("/watch"));
    talk_hear(k, &t, "\r\n\r\n");
    const char *text = str_text(&t.heard);
    assert_non_null(strstr(text, "\r\nTransfer-Encoding: chunked\r\n"));
    talk_forget(&t, (size_t)(strstr(text, "\r\n\r\n") + 4 - text));
    return t;
}

static void pieces_arrive_as_they_are_sent(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = start_stream});
    CLEANUP(talk) struct talk t = watch(&k);
    assert_int_equal(http_server_stats(k.server).streams, 1);
    assert_int_equal(http_server_busy(k.server), 1);
    for (unsigned i = 1; i <= 3; i++) {
        assert_true(http_stream_send(k.kept, "{}\n", 3));
        assert_int_equal(http_stream_backlog(k.kept), 3);
        talk_hear(&k, &t, "3\r\n{}\n\r\n");
        str_clear(&t.heard);
        KIT_UNTIL(&k, k.drained == i);
        assert_int_equal(http_stream_backlog(k.kept), 0);
    }
    http_stream_end(take_ptr(&k.kept));
    talk_hear(&k, &t, "0\r\n\r\n");
    KIT_UNTIL(&k, http_server_busy(k.server) == 0);
    assert_int_equal(k.closed, 0);
    assert_int_equal(k.dropped, 1);
    assert_int_equal(http_server_stats(k.server).streams, 0);
    str_clear(&t.heard);
    talk_say(&k, &t, GET("/watch")); /* the connection is still usable */
    talk_hear(&k, &t, "\r\n\r\n");
}

static void two_pieces_and_end(void *ctx, struct http_request *x)
{
    http_stream(x, 200, NULL, NULL, on_closed, ctx);
    assert_true(http_stream_send(x, "one,", 4));
    assert_true(http_stream_send(x, "", 0));
    assert_true(http_stream_send(x, "two", 3));
    http_stream_end(x);
}

static int64_t admit_streams(void *ctx, struct http_request *x)
{
    two_pieces_and_end(ctx, x);
    return -1;
}

static void a_stream_may_end_before_it_has_begun(void **state)
{
    const struct http_config configs[] = {{.handle = two_pieces_and_end}, {.admit = admit_streams}};

    (void)state;
    for (size_t i = 0; i < ROWS(configs); i++) {
        CLEANUP(kit) struct kit k = {0};
        kit_start(&k, configs[i]);
        CLEANUP(talk) struct talk t = talk_new(&k), old = talk_new(&k);
        talk_say(&k, &t, GET("/"));
        talk_hear(&k, &t, "one,two\r\n0\r\n\r\n");
        /* HTTP/1.0 has no chunks: the connection's end is the stream's end */
        talk_say(&k, &old, "GET / HTTP/1.0\r\n\r\n");
        talk_hear_end(&k, &old);
        assert_non_null(strstr(old.heard.at, "\r\n\r\none,two"));
        talk_say(&k, &t, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
        talk_hear(&k, &t, "\r\n\r\n");
        assert_int_equal(k.closed, 0);
    }
}

/* The exchange becomes a stream later, outside a handler. */
static void request_may_become_a_stream(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = kit_keep});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    KIT_UNTIL(&k, k.kept);
    kit_round(&k);
    http_stream(k.kept, 200, NULL, NULL, on_closed, &k);
    assert_true(http_stream_send(k.kept, "abc", 3));
    talk_hear(&k, &t, "3\r\nabc\r\n");
    http_stream_end(k.kept);
    talk_hear(&k, &t, "0\r\n\r\n");
}

/* The peer disconnects while nothing is sent: by closing, by a reset, and by closing its sending direction. */
static void disconnect_of_idle_stream_is_noticed(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = start_stream});
    for (unsigned i = 1; i <= 3; i++) {
        CLEANUP(talk) struct talk t = watch(&k);
        for (int round = 0; round < 3; round++)
            kit_round(&k);
        assert_int_equal(k.closed, i - 1);
        if (i == 2)
            assert_int_equal(setsockopt(t.fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)), 0);
        if (i == 3)
            assert_int_equal(shutdown(t.fd, SHUT_WR), 0);
        else
            talk_close(&t);
        KIT_UNTIL(&k, k.closed == i && http_server_stats(k.server).connections == 0);
        assert_int_equal(k.dropped, i);
        assert_int_equal(http_server_busy(k.server), 0);
    }
}

/* Fills the buffers of a peer that does not read; the backlog is bounded and is delivered completely in the end. */
static void backlog_of_slow_reader_is_bounded(void **state)
{
    static char piece[100000];
    CLEANUP(kit) struct kit k = {0};
    uint64_t sum = 0, sent = 0;

    (void)state;
    kit_start(&k, (struct http_config){.handle = start_stream});
    CLEANUP(talk) struct talk t = watch(&k);
    for (uint64_t i = 0;; i++) {
        for (size_t b = 0; b < sizeof piece; b++)
            piece[b] = (char)('a' + hash_u64(i + b) % 26);
        if (!http_stream_send(k.kept, piece, sizeof piece))
            break;
        for (size_t b = 0; b < sizeof piece; b++)
            sum += (unsigned char)piece[b];
        sent += sizeof piece;
        kit_round(&k);
    }
    assert_true(http_stream_backlog(k.kept) > 1 << 20);
    assert_true(http_stream_backlog(k.kept) <= (1 << 20) + sizeof piece);
    unsigned drained = k.drained;
    http_stream_end(take_ptr(&k.kept));
    talk_hear(&k, &t, "\r\n0\r\n\r\n");
    assert_int_equal(k.drained, drained); /* no further callback */
    assert_int_equal(k.closed, 0);

    uint64_t heard = 0;
    for (char *p = t.heard.at, *end; *p != '0'; p = end + 2) {
        size_t len = strtoul(p, &p, 16);
        end = p + 2 + len;
        for (p += 2; p < end; p++)
            sum -= (unsigned char)*p;
        heard += len;
    }
    assert_int_equal(heard, sent);
    assert_int_equal(sum, 0);
}

static void disconnect_with_backlog_is_noticed(void **state)
{
    static char piece[100000];
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = start_stream});
    CLEANUP(talk) struct talk t = watch(&k);
    while (http_stream_send(k.kept, piece, sizeof piece))
        kit_round(&k);
    talk_close(&t);
    KIT_UNTIL(&k, k.closed == 1 && http_server_stats(k.server).connections == 0);
}

/* Sends the next piece, and finally the end, from inside `drained`. */
static void feed(void *ctx)
{
    struct kit *k = ctx;
    if (++k->drained < 50)
        assert_true(http_stream_send(k->kept, "piece", 5));
    else
        http_stream_end(k->kept);
}

static void start_feeding(void *ctx, struct http_request *x)
{
    struct kit *k = ctx;
    k->kept = x;
    http_stream(x, 200, NULL, NULL, on_closed, k);
    http_stream_on_drained(x, feed, k);
    assert_true(http_stream_send(x, "piece", 5));
}

static void drained_callback_may_send_more(void **state)
{
    CLEANUP(kit) struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = start_feeding});
    CLEANUP(talk) struct talk t = talk_new(&k);
    talk_say(&k, &t, GET("/"));
    talk_hear(&k, &t, "0\r\n\r\n");
    assert_int_equal(k.drained, 50);
    size_t pieces = 0;
    for (const char *p = t.heard.at; (p = strstr(p, "piece")); p++)
        pieces++;
    assert_int_equal(pieces, 50);
}

static void stopped_server_closes_its_streams(void **state)
{
    static char piece[100000];
    struct kit k = {0};

    (void)state;
    kit_start(&k, (struct http_config){.handle = start_stream});
    CLEANUP(talk) struct talk quiet = watch(&k);
    CLEANUP(talk) struct talk ended = watch(&k);
    http_stream_end(k.kept);
    CLEANUP(talk) struct talk full = watch(&k);
    while (http_stream_send(k.kept, piece, sizeof piece))
        kit_round(&k);
    http_server_quiesce(k.server);
    talk_hear(&k, &ended, "0\r\n\r\n");
    assert_int_equal(http_server_stats(k.server).streams, 2);
    assert_int_equal(k.closed, 0);
    http_server_free(k.server);
    assert_int_equal(k.closed, 2);
    assert_int_equal(k.dropped, 3);
    talk_hear_end(&k, &quiet);
    talk_hear_end(&k, &full);
    loop_free(k.loop);
}

static void end_at_once(void *ctx, struct http_request *x)
{
    start_stream(ctx, x);
    http_stream_end(x);
}

static void shrink_file(void *ctx, struct http_request *x)
{
    FILE *f = tmpfile();
    (void)ctx;
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), 1000), 0);
    http_answer_file(x, 200, NULL, NULL, dup(fileno(f)), 1000);
    assert_int_equal(ftruncate(fileno(f), 0), 0);
    (void)fclose(f);
}

/* libmicrohttpd closes these connections while it prepares an answer; it checks other connections first. */
static void connection_closed_inside_the_library_is_freed(void **state)
{
    static const struct {
        const char *text; /* a stream for HTTP/1.0, and a file that is truncated while it is sent */
        void (*handle)(void *ctx, struct http_request *x);
    } rows[] = {
        {"GET / HTTP/1.0\r\n\r\n", end_at_once},
        {GET("/"),                 shrink_file},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = {0};
        struct talk quiet[5];
        kit_start(&k, (struct http_config){.handle = rows[i].handle, .idle_ns_max = 10 * KIT_MS});
        for (size_t c = 0; c < ROWS(quiet); c++)
            quiet[c] = talk_new(&k);
        CLEANUP(talk) struct talk t = talk_new(&k);
        talk_say(&k, &t, rows[i].text);
        talk_hear_end(&k, &t);
        KIT_UNTIL(&k, http_server_stats(k.server).connections == ROWS(quiet));
        for (size_t c = 0; c < ROWS(quiet); c++)
            talk_cleanup(&quiet[c]);
    }
}

/* The peer disconnects just before a piece is sent: the suspended connection is resumed and fails. */
static void disconnect_before_a_send_is_handled(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct talk quiet[5];

    (void)state;
    kit_start(&k, (struct http_config){.handle = start_stream});
    for (size_t c = 0; c < ROWS(quiet); c++)
        quiet[c] = talk_new(&k);
    for (unsigned i = 1; i <= 3; i++) {
        CLEANUP(talk) struct talk t = watch(&k);
        assert_true(http_stream_send(k.kept, "x", 1));
        talk_hear(&k, &t, "1\r\nx\r\n");
        kit_round(&k);
        talk_close(&t);
        assert_true(http_stream_send(k.kept, "y", 1));
        KIT_UNTIL(&k, k.closed == i && http_server_stats(k.server).connections == ROWS(quiet));
    }
    for (size_t c = 0; c < ROWS(quiet); c++)
        talk_cleanup(&quiet[c]);
}

static void ring(void *ctx)
{
    *(bool *)ctx = true;
}

/* Leaves a stream that is used, a stream that is full, or an exchange without an answer. */
static void wait_in_some_way(void *ctx, struct http_request *x)
{
    static char much[8 << 20];
    if (strcmp(http_path(x), "/later") == 0)
        return;
    if (strcmp(http_path(x), "/now") == 0) {
        http_answer(x, 200, NULL, NULL, "", 0);
        return;
    }
    start_stream(ctx, x);
    bool full = strcmp(http_path(x), "/full") == 0;
    assert_true(http_stream_send(x, much, full ? sizeof much : 1));
}

/* Connections that wait for the server, and connections that the server waits for, do not wake the loop. */
static void waiting_connections_do_not_wake_the_loop(void **state)
{
    static const struct {
        const char *text;
    } rows[] = {
        {""},
        {"G"},
        {"GET / HTTP/1.1\r\nHost: h\r\n"},
        {GET("/now")},
        {GET("/later")},
        {GET("/stream")},
        {GET("/full")},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n"},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf"},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5"},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal"},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello"},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"},
        {"POST /%ff HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf"},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999\r\n\r\nhalf"},
    };
    CLEANUP(kit) struct kit k = {0};
    struct talk talks[ROWS(rows)];
    bool rung = false;
    unsigned rounds = 0;

    (void)state;
    kit_start(&k, (struct http_config){.handle = wait_in_some_way});
    for (size_t i = 0; i < ROWS(rows); i++) {
        talks[i] = talk_new(&k);
        talk_say(&k, &talks[i], rows[i].text);
    }
    for (int i = 0; i < 5000; i++) /* a full stream needs some rounds */
        assert_int_equal(loop_once(k.loop, 0, NULL), 0);
    assert_int_equal(http_server_stats(k.server).connections, ROWS(rows));
    assert_int_equal(http_server_stats(k.server).streams, 2);
    struct loop_source *alarm = loop_timer_new(k.loop, ring, &rung);
    loop_timer_set(alarm, loop_now_ns(k.loop) + 30 * KIT_MS);
    while (!rung) {
        assert_int_equal(loop_once(k.loop, -1, NULL), 0);
        rounds++;
    }
    assert_true(rounds <= 3);
    for (size_t i = 0; i < ROWS(rows); i++)
        talk_cleanup(&talks[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_arrive_as_they_are_sent),
        cmocka_unit_test(a_stream_may_end_before_it_has_begun),
        cmocka_unit_test(request_may_become_a_stream),
        cmocka_unit_test(disconnect_of_idle_stream_is_noticed),
        cmocka_unit_test(backlog_of_slow_reader_is_bounded),
        cmocka_unit_test(disconnect_with_backlog_is_noticed),
        cmocka_unit_test(drained_callback_may_send_more),
        cmocka_unit_test(stopped_server_closes_its_streams),
        cmocka_unit_test(connection_closed_inside_the_library_is_freed),
        cmocka_unit_test(disconnect_before_a_send_is_handled),
        cmocka_unit_test(waiting_connections_do_not_wake_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
