/* async_lane_test.c - tests lanes against a scripted peer: answers that are cut off, late, closed, malformed.
 * async_test.c tests what lanes share with libcurl's requests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/client/async.h"
#include "net/kit_test.h"

struct scene {
    struct kit kit; /* only its loop is used, not its server */
    struct async *a;
    int listens, peer; /* peer: the peer's end of the last connection */
    char url[64];
    unsigned done;
    int status;
    bool sent;
    struct str body, text;
};

static void scene_start(struct scene *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    kit_start(&s->kit, (struct http_config){0});
    assert_int_equal(async_new(s->kit.loop, &(struct async_config){.agent = "test/1", .lean = true}, &s->a, NULL), 0);
    s->listens = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    s->peer = -1;
    assert_int_equal(bind(s->listens, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->listens, 16), 0);
    assert_int_equal(getsockname(s->listens, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u/x", ntohs(at.sin_port));
}

static void scene_cleanup(struct scene *s)
{
    async_free(s->a);
    kit_cleanup(&s->kit);
    (void)close(s->listens);
    if (s->peer >= 0)
        (void)close(s->peer);
    str_done(&s->body);
    str_done(&s->text);
}

static void on_done(void *ctx, const struct async_answer *answer)
{
    struct scene *s = ctx;
    s->done++;
    s->status = answer->status;
    s->sent = answer->sent;
    str_clear(&s->body);
    str_add_bytes(&s->body, answer->body, answer->len);
    str_clear(&s->text);
    str_add(&s->text, answer->text);
}

static struct async_call *ask(struct scene *s)
{
    return async_start(s->a,
                       &(struct async_request){
                           .method = "POST", .url = s->url, .body = "body", .body_len = 4, .done = on_done, .ctx = s});
}

static void peer_accept(struct scene *s)
{
    if (s->peer >= 0)
        (void)close(s->peer);
    s->peer = -1;
    KIT_UNTIL(&s->kit, (s->peer = accept4(s->listens, NULL, NULL, SOCK_NONBLOCK)) >= 0);
}

/* Reads a whole request. */
static void peer_hear(struct scene *s)
{
    char in[1000];
    size_t len = 0;
    do {
        kit_round(&s->kit);
        ssize_t n = recv(s->peer, in + len, sizeof in - len - 1, 0);
        assert_true(n > 0 || (n < 0 && errno == EAGAIN));
        len += n > 0 ? (size_t)n : 0;
        in[len] = '\0';
    } while (!strstr(in, "\r\n\r\nbody"));
    assert_memory_equal(in, "POST /x HTTP/1.1\r\nHost: 127.0.0.1:", 34);
    assert_non_null(strstr(in, "\r\nContent-Length: 4\r\n"));
}

static void peer_say(struct scene *s, const char *text)
{
    assert_int_equal(send(s->peer, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void peer_close(struct scene *s)
{
    (void)close(s->peer);
    s->peer = -1;
}

/* Returns whether the client has closed the connection. */
static bool is_closed_by_client(const struct scene *s)
{
    char byte;
    ssize_t n = recv(s->peer, &byte, 1, 0);
    return n == 0 || (n < 0 && errno != EAGAIN);
}

#define OK "HTTP/1.1 200 OK\r\n"

static void answers(void **state)
{
    static const struct {
        const char *label, *text;
        bool closes; /* the peer closes after the answer */
        int status;
        const char *body;
        bool kept; /* the connection is reused */
    } rows[] = {
        {"a length",           OK "Content-Length: 5\r\n\r\nhello",                                     false, 200, "hello", true },
        {"nothing in it",      "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",                     false, 201, "",      true },
        {"chunks",             OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", false, 200, "hello", true },
        {"interim",            "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 2\r\n\r\nhi",        false, 200, "hi",    true },
        {"to the end",         OK "\r\nhello",                                                          true,  200, "hello", false},
        {"it says it closes",  OK "Connection: close\r\nContent-Length: 2\r\n\r\nhi",                   false, 200, "hi",    false},
        {"cut off",            OK "Content-Length: 5\r\n\r\nhel",                                       true,  0,   "",      false},
        {"cut off in a chunk", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",                         true,  0,   "",      false},
        {"cut off at once",    OK,                                                                      true,  0,   "",      false},
        {"too much",           OK "Content-Length: 2\r\n\r\nhello",                                     false, 0,   "",      false},
        {"no HTTP",            "220 mail.example ESMTP\r\n\r\n",                                        false, 0,   "",      false},
    };
    (void)state;
    for (size_t i = 0; i < 2 * ROWS(rows); i++) {
        bool slowly = i >= ROWS(rows);
        CLEANUP(scene) struct scene s = {0};
        scene_start(&s);
        (void)ask(&s);
        peer_accept(&s);
        peer_hear(&s);
        for (const char *at = rows[i % ROWS(rows)].text; slowly && *at; at++) {
            peer_say(&s, (char[]){*at, '\0'});
            kit_round(&s.kit);
            if (s.done)
                break;
        }
        if (!slowly)
            peer_say(&s, rows[i % ROWS(rows)].text);
        if (rows[i % ROWS(rows)].closes)
            peer_close(&s);
        KIT_UNTIL(&s.kit, s.done);
        if (slowly && strcmp(rows[i % ROWS(rows)].label, "too much") == 0)
            continue; /* data after the answer closes the lane */
        if (s.status != rows[i % ROWS(rows)].status)
            fail_msg("%s: %d %s", rows[i % ROWS(rows)].label, s.status, str_text(&s.text));
        assert_string_equal(str_text(&s.body), rows[i % ROWS(rows)].body);
        assert_int_equal(str_text(&s.text)[0] == '\0', s.status != 0);
        assert_true(s.sent);
        if (!rows[i % ROWS(rows)].kept && !rows[i % ROWS(rows)].closes)
            KIT_UNTIL(&s.kit, is_closed_by_client(&s));
        (void)ask(&s);
        if (!rows[i % ROWS(rows)].kept)
            peer_accept(&s);
        peer_hear(&s);
        peer_say(&s, OK "Content-Length: 0\r\n\r\n");
        KIT_UNTIL(&s.kit, s.done == 2);
        assert_int_equal(s.status, 200);
    }
}

/* A kept connection that is closed instead of an answer: the request is sent again on a new one, but only once. */
static void stale_connection_is_retried_once(void **state)
{
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        CLEANUP(scene) struct scene s = {0};
        scene_start(&s);
        (void)ask(&s);
        peer_accept(&s);
        peer_hear(&s);
        peer_say(&s, OK "Content-Length: 0\r\n\r\n");
        KIT_UNTIL(&s.kit, s.done == 1);
        (void)ask(&s);
        peer_hear(&s);
        peer_close(&s);
        peer_accept(&s);
        peer_hear(&s);
        if (twice)
            peer_close(&s);
        else
            peer_say(&s, OK "Content-Length: 2\r\n\r\nhi");
        KIT_UNTIL(&s.kit, s.done == 2);
        assert_int_equal(s.status, twice ? 0 : 200);
        assert_true(s.sent);
        assert_string_equal(str_text(&s.body), twice ? "" : "hi");
    }
}

/* A new connection that is closed without an answer fails the request. */
static void new_connection_is_not_retried(void **state)
{
    CLEANUP(scene) struct scene s = {0};
    (void)state;
    scene_start(&s);
    (void)ask(&s);
    peer_accept(&s);
    peer_hear(&s);
    peer_close(&s);
    KIT_UNTIL(&s.kit, s.done);
    assert_int_equal(s.status, 0);
    assert_true(s.sent);
    assert_string_equal(str_text(&s.text), "the connection ended before the answer did");
}

/* An idle connection that ends is not reused. */
static void closed_idle_connection_is_not_reused(void **state)
{
    CLEANUP(scene) struct scene s = {0};
    (void)state;
    scene_start(&s);
    (void)ask(&s);
    peer_accept(&s);
    peer_hear(&s);
    peer_say(&s, OK "Content-Length: 0\r\n\r\n");
    KIT_UNTIL(&s.kit, s.done == 1);
    peer_close(&s);
    for (int i = 0; i < 10; i++)
        kit_round(&s.kit);
    (void)ask(&s);
    peer_accept(&s);
    peer_hear(&s);
    peer_close(&s); /* the connection counts as new: the request is not repeated */
    KIT_UNTIL(&s.kit, s.done == 2);
    assert_int_equal(s.status, 0);
}

static void timeout_is_reported(void **state)
{
    CLEANUP(scene) struct scene s = {0};
    (void)state;
    scene_start(&s);
    (void)ask(&s);
    peer_accept(&s);
    peer_hear(&s);
    peer_say(&s, OK "Content-Length: 0\r\n\r\n");
    KIT_UNTIL(&s.kit, s.done == 1);
    /* On the open connection, the request is sent at once, even with a short timeout. */
    struct async_request q = {.method = "GET", .url = s.url, .timeout_ns = 20 * KIT_MS, .done = on_done, .ctx = &s};
    (void)async_start(s.a, &q);
    KIT_UNTIL(&s.kit, s.done == 2);
    assert_int_equal(s.status, 0);
    assert_true(s.sent);
    assert_string_equal(str_text(&s.text), "it took too long");
}

static void cancelled(void **state)
{
    CLEANUP(scene) struct scene s = {0};
    (void)state;
    scene_start(&s);
    async_cancel(ask(&s)); /* before it is connected */
    struct async_call *call = ask(&s);
    peer_accept(&s);
    peer_hear(&s);
    async_cancel(call);
    KIT_UNTIL(&s.kit, is_closed_by_client(&s));
    assert_int_equal(s.done, 0);
}

/* A large body is sent in pieces, as the peer reads. */
static void large_body_is_sent_in_pieces(void **state)
{
    enum { LEN = 8 << 20 };
    CLEANUP(scene) struct scene s = {0};
    CLEANUP(mem) char *body = mem_alloc(LEN), *in = mem_alloc(LEN + 1000);
    size_t got = 0;
    (void)state;
    memset(body, 'x', LEN);
    scene_start(&s);
    struct async_request q = {.method = "PUT", .url = s.url, .body = body, .body_len = LEN, .done = on_done, .ctx = &s};
    (void)async_start(s.a, &q);
    peer_accept(&s);
    for (const char *end = NULL; !end || got < (size_t)(end - in) + 4 + LEN;) {
        ssize_t n = recv(s.peer, in + got, LEN + 999 - got, 0);
        got += n > 0 ? (size_t)n : 0;
        in[got] = '\0';
        end = end ? end : strstr(in, "\r\n\r\n");
        if (n < 0)
            kit_round(&s.kit);
    }
    assert_memory_equal(in + got - LEN, body, LEN);
    peer_say(&s, OK "Content-Length: 0\r\n\r\n");
    KIT_UNTIL(&s.kit, s.done);
    assert_int_equal(s.status, 200);
}

/* Header texts with line breaks are not sent on a lane; libcurl rejects them. */
static void line_breaks_are_rejected(void **state)
{
    CLEANUP(scene) struct scene s = {0};
    char url[96];
    (void)state;
    scene_start(&s);
    (void)snprintf(url, sizeof url, "%s HTTP/1.1\r\nEvil: yes", s.url);
    struct async_request q = {.method = "GET", .url = url, .done = on_done, .ctx = &s};
    (void)async_start(s.a, &q);
    KIT_UNTIL(&s.kit, s.done);
    assert_int_equal(s.status, 0);
    assert_false(s.sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(stale_connection_is_retried_once),
        cmocka_unit_test(new_connection_is_not_retried),
        cmocka_unit_test(closed_idle_connection_is_not_reused),
        cmocka_unit_test(timeout_is_reported),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(large_body_is_sent_in_pieces),
        cmocka_unit_test(line_breaks_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
