/* http_check.c - a randomized test of the HTTP server with misbehaving clients, reproducible from a seed.
 *
 * Clients send whole and partial requests, many at once, and close or reset connections. The server answers at once,
 * later, or with streams. At the end there must be no exchange, no connection and no open descriptor, and the data of
 * every admitted request must have been dropped. BERTH_SEED repeats one run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/vec.h"
#include "net/kit_test.h"

enum { RUNS = 60, STEPS = 3000, CLIENTS = 40 };

struct chaos {
    struct kit kit; /* first: handlers cast their context to both types */
    uint64_t seed;
    VEC(struct http_request *) waiting; /* requests to be answered later */
    VEC(struct http_request *) streams;
    unsigned streamed, ended;
};

static uint64_t draw(struct chaos *c, uint64_t below)
{
    return hash_u64(c->seed += 0x9e3779b97f4a7c15u) % below;
}

/* ---- server ----------------------------------------------------------------------------------------------------- */

struct chaos_watcher {
    struct chaos *chaos;
    struct http_request *x;
};

static void watcher_drop(void *data)
{
    struct chaos_watcher *w = data;
    w->chaos->kit.dropped++;
    mem_free(w);
}

static void stream_forget(struct chaos *c, const struct http_request *x)
{
    for (size_t i = 0; i < c->streams.len; i++) {
        if (c->streams.at[i] == x) {
            c->streams.at[i] = c->streams.at[--c->streams.len];
            return;
        }
    }
    fail_msg("a stream was closed that is not there");
}

static void on_closed(void *ctx)
{
    struct chaos_watcher *w = ctx;
    w->chaos->kit.closed++;
    stream_forget(w->chaos, w->x);
}

static void stream_end(struct chaos *c, struct http_request *x)
{
    c->ended++;
    stream_forget(c, x);
    http_stream_end(x);
}

static void on_drained(void *ctx)
{
    struct chaos_watcher *w = ctx;
    w->chaos->kit.drained++;
    if (draw(w->chaos, 4) == 0)
        (void)http_stream_send(w->x, "more", 4);
    else if (draw(w->chaos, 8) == 0)
        stream_end(w->chaos, w->x);
}

static void answer(struct chaos *c, struct http_request *x)
{
    static char body[300000];
    if (draw(c, 3)) {
        http_answer(x, 200, NULL, "text/plain", body, draw(c, 8) ? draw(c, 100) : draw(c, sizeof body));
        return;
    }
    struct chaos_watcher *w = http_data(x);
    w->x = x;
    vec_push(&c->streams, x);
    c->streamed++;
    http_stream(x, 200, NULL, NULL, on_closed, w);
    http_stream_on_drained(x, on_drained, w);
    if (draw(c, 2))
        (void)http_stream_send(x, body, draw(c, 3000));
    if (draw(c, 6) == 0)
        stream_end(c, x);
}

static int64_t chaos_admit(void *ctx, struct http_request *x)
{
    struct chaos *c = ctx;
    struct chaos_watcher *w = mem_zalloc(sizeof *w);
    w->chaos = c;
    c->kit.admitted++;
    http_set_data(x, w, watcher_drop);
    if (draw(c, 6))
        return (int64_t)draw(c, 200);
    answer(c, x);
    return -1;
}

static void chaos_handle(void *ctx, struct http_request *x)
{
    struct chaos *c = ctx;
    if (draw(c, 2))
        answer(c, x);
    else
        vec_push(&c->waiting, x);
}

static void server_step(struct chaos *c)
{
    static char piece[200000];
    if (c->waiting.len && draw(c, 2)) {
        size_t i = draw(c, c->waiting.len);
        struct http_request *x = c->waiting.at[i];
        c->waiting.at[i] = c->waiting.at[--c->waiting.len];
        answer(c, x);
    }
    if (c->streams.len) {
        struct http_request *x = c->streams.at[draw(c, c->streams.len)];
        bool taken = http_stream_send(x, piece, draw(c, 20) ? draw(c, 50) : draw(c, sizeof piece));
        if (!taken || draw(c, 12) == 0)
            stream_end(c, x);
    }
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static void client_say(struct chaos *c, struct talk *t)
{
    static const struct {
        const char *text;
    } pieces[] = {
        {GET("/")},
        {GET("/a?b=c")},
        {GET("/") GET("/") GET("/")},
        {"GET / HTTP/1.1\r\nHo"},
        {"st: h\r\n\r\n"},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n"},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"},
        {"0\r\n\r\n"},
        {"ff\r\n"},
        {"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"},
        {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n"},
        {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n"},
        {"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"},
        {"GET / HTTP/1.0\r\n\r\n"},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"},
        {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n"},
        {"\r\n"},
        {"\1\2\3"},
    };
    const char *text = pieces[draw(c, ROWS(pieces))].text;
    size_t len = draw(c, 5) ? strlen(text) : draw(c, strlen(text) + 1);
    (void)send(t->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void client_step(struct chaos *c, struct talk *t)
{
    char waste[8192];

    if (t->fd < 0) {
        t->fd = kit_dial(http_server_port(c->kit.server));
        return;
    }
    switch (draw(c, 12)) {
    case 0:
        if (draw(c, 2))
            (void)setsockopt(t->fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
        talk_close(t);
        break;
    case 1: (void)shutdown(t->fd, SHUT_WR); break;
    case 2:
    case 3:
    case 4: (void)recv(t->fd, waste, sizeof waste, MSG_DONTWAIT); break;
    case 5: talk_listen(t); break;
    default: client_say(c, t); break;
    }
}

/* ---- runs ------------------------------------------------------------------------------------------------------- */

static void run_once(uint64_t seed)
{
    struct chaos c = {.seed = seed};
    struct talk talks[CLIENTS];
    const struct http_config config = {.admit = chaos_admit,
                                       .handle = chaos_handle,
                                       .connections_per_address_max = CLIENTS - 5,
                                       .header_bytes_max = seed % 2 ? 0 : 2048,
                                       .request_ns_max = (int64_t)(1 + seed % 40) * KIT_MS,
                                       .idle_ns_max = (int64_t)(1 + seed % 70) * KIT_MS};
    int before = dup(0);

    (void)close(before);
    kit_start(&c.kit, config);
    for (size_t i = 0; i < CLIENTS; i++)
        talks[i] = (struct talk){.fd = -1};
    for (size_t i = 0; i < STEPS; i++) {
        client_step(&c, &talks[draw(&c, CLIENTS)]);
        if (draw(&c, 3) == 0)
            server_step(&c);
        if (draw(&c, 2))
            assert_int_equal(loop_once(c.kit.loop, 0, NULL), 0);
    }
    bool abruptly = seed % 3 == 0;
    if (!abruptly) {
        http_server_quiesce(c.kit.server);
        for (size_t i = 0; i < CLIENTS; i++)
            talk_cleanup(&talks[i]);
        while (http_server_stats(c.kit.server).connections) {
            server_step(&c);
            kit_round(&c.kit);
        }
        assert_int_equal(http_server_busy(c.kit.server), 0);
        assert_int_equal(c.waiting.len + c.streams.len, 0);
    }
    kit_cleanup(&c.kit);
    if (abruptly)
        for (size_t i = 0; i < CLIENTS; i++)
            talk_cleanup(&talks[i]);
    assert_int_equal(c.kit.dropped, c.kit.admitted);
    assert_int_equal(c.kit.closed + c.ended, c.streamed);
    /* With a shorter limit, a slow machine completes hardly any request in time. */
    if (config.request_ns_max >= 10 * KIT_MS)
        assert_true(c.kit.admitted > 20);
    vec_done(&c.waiting);
    vec_done(&c.streams);
    int after = dup(0);
    (void)close(after);
    assert_int_equal(before, after);
}

static void random_clients_leave_nothing_open(void **state)
{
    const char *one = getenv("BERTH_SEED");

    (void)state;
    for (uint64_t seed = one ? strtoull(one, NULL, 0) : 1; seed <= RUNS || one; seed++) {
        (void)fprintf(stderr, "BERTH_SEED=%llu\n", (unsigned long long)seed);
        run_once(seed);
        if (one)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_clients_leave_nothing_open)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
