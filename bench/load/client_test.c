/* client_test.c - answers in pieces of any size, and fleets against a scripted server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "bench/load/client.h"

/* ---- answers ---------------------------------------------------------------------------------------------------- */

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *label, *text;
    const char *body;
    uint64_t revision;
    int status;
    bool closes;
} good[] = {
    {"a length",      OK "Content-Length: 5\r\n\r\nhello",                                             "hello",         0,  200, false},
    {"no body",       "HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n",                             "",              0,  201, false},
    {"none allowed",  "HTTP/1.1 204 No Content\r\n\r\n",                                               "",              0,  204, false},
    {"a revision",    OK "Berth-Revision: 17\r\nContent-Length: 1\r\n\r\nx",                           "x",             17, 200, false},
    {"chunks",        OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", "abc0123456789", 0,  200,
     false                                                                                                                            },
    {"an extension",  OK "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",        "abc",           0,  200, false},
    {"goes on first", "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 2\r\n\r\nhi",                "hi",            0,  200, false},
    {"closes",        "HTTP/1.1 503 Later\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",        "no",            0,  503, true },
    {"bare newlines", "HTTP/1.1 200 OK\nContent-Length: 1\n\nx",                                       "x",             0,  200, false},
};

static void compare(size_t i, const struct bench_answer *a)
{
    if (a->at != ANSWER_COMPLETE)
        fail_msg("%s: not complete", good[i].label);
    assert_int_equal(a->status, good[i].status);
    assert_string_equal(str_text(&a->body), good[i].body);
    assert_int_equal(a->revision, good[i].revision);
    assert_int_equal(a->closes, good[i].closes);
}

static void answers_are_parsed_in_pieces(void **state)
{
    (void)state;
    CLEANUP(bench_answer) struct bench_answer a = {0};
    struct berth_err err;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t len = strlen(good[i].text);
        for (size_t piece = 1; piece <= len; piece++) {
            bench_answer_reset(&a);
            for (size_t at = 0; at < len; at += piece) {
                size_t n = len - at < piece ? len - at : piece;
                assert_int_equal(bench_answer_feed(&a, good[i].text + at, n, &err), n);
            }
            compare(i, &a);
        }
    }
}

static void bytes_of_the_next_answer_remain(void **state)
{
    (void)state;
    static const char two[] = OK "Content-Length: 2\r\n\r\nhiHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
    CLEANUP(bench_answer) struct bench_answer a = {0};
    struct berth_err err;
    ssize_t first = bench_answer_feed(&a, two, sizeof two - 1, &err);

    assert_int_equal(a.at, ANSWER_COMPLETE);
    assert_string_equal(a.body.at, "hi");
    bench_answer_reset(&a);
    assert_int_equal(bench_answer_feed(&a, two + first, sizeof two - 1 - (size_t)first, &err),
                     sizeof two - 1 - (size_t)first);
    assert_int_equal(a.status, 404);
    assert_string_equal(str_text(&a.body), "");
}

static void body_without_length_ends_with_the_connection(void **state)
{
    (void)state;
    static const char text[] = OK "\r\nall of it";
    CLEANUP(bench_answer) struct bench_answer a = {0};
    struct berth_err err;

    assert_int_equal(bench_answer_feed(&a, text, sizeof text - 1, &err), sizeof text - 1);
    assert_int_not_equal(a.at, ANSWER_COMPLETE);
    assert_true(a.closes);
    assert_true(bench_answer_ended(&a));
    assert_string_equal(a.body.at, "all of it");
    bench_answer_reset(&a);
    assert_false(bench_answer_ended(&a));
}

static void malformed_answers_are_rejected(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1\r\n",
        "HTTP/1.1 2x0 OK\r\n",
        "HTTP/1.1 999 OK\r\n",
        OK "no colon\r\n",
        OK "Content-Length: many\r\n",
        OK "Content-Length: -1\r\n",
        OK "Content-Length: 99999999999999999999\r\n",
        OK "Transfer-Encoding: gzip\r\n",
        OK "Berth-Revision: new\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CLEANUP(bench_answer) struct bench_answer a = {0};
        struct berth_err err;
        if (bench_answer_feed(&a, bad[i], strlen(bad[i]), &err) != -EPROTO)
            fail_msg("taken: %s", bad[i]);
    }
}

static void long_lines_are_rejected(void **state)
{
    (void)state;
    CLEANUP(bench_answer) struct bench_answer a = {0};
    char text[1024];
    struct berth_err err;
    ssize_t rc = 1;

    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < 100 && rc > 0; i++)
        rc = bench_answer_feed(&a, text, sizeof text, &err);
    assert_int_equal(rc, -EPROTO);
}

/* ---- fleets ----------------------------------------------------------------------------------------------------- */

/* Serves connections in sequence: each request gets the next line of the script; NULL closes the connection. */
struct script {
    const char *const *lines;
    int listen_fd;
    struct bench_server server;
    pthread_t thread;
    char request[512]; /* the last request */
};

static void serve(struct script *s, int fd, const char *const **at)
{
    while (**at) {
        ssize_t n = recv(fd, s->request, sizeof s->request - 1, 0);
        if (n <= 0)
            return;
        s->request[n] = '\0';
        const char *line = *(*at)++;
        (void)!send(fd, line, strlen(line), MSG_NOSIGNAL);
        if (strstr(line, "HANG UP"))
            return;
    }
    char wait;
    (void)!recv(fd, &wait, 1, 0); /* until the client closes the connection */
}

static void *script_main(void *arg)
{
    struct script *s = arg;
    const char *const *at = s->lines;

    for (;;) {
        int fd = accept(s->listen_fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        serve(s, fd, &at);
        (void)close(fd);
    }
}

static void script_start(struct script *s, const char *const *lines)
{
    socklen_t len = sizeof s->server.address;

    *s = (struct script){.lines = lines, .listen_fd = socket(AF_INET, SOCK_STREAM, 0), .server.token = "berth_t"};
    s->server.address.sin_family = AF_INET;
    s->server.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(s->listen_fd, (struct sockaddr *)&s->server.address, len), 0);
    assert_int_equal(listen(s->listen_fd, 8), 0);
    assert_int_equal(getsockname(s->listen_fd, (struct sockaddr *)&s->server.address, &len), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, script_main, s), 0);
}

static void script_end(struct script *s)
{
    (void)shutdown(s->listen_fd, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->listen_fd);
}

struct asking {
    struct bench_fleet *fleet;
    const struct bench_server *server;
    size_t left, answered, begun, stop_after;
    int64_t took_ns;
    struct str said;
    bool pieces;
};

static bool next(void *ctx, size_t i, struct str *to)
{
    struct asking *a = ctx;

    (void)i;
    if (a->left == 0)
        return false;
    a->left--;
    bench_request(to, a->server, "POST", "/v1/x", "Accept: a\r\n", "{}");
    return true;
}

static void answered(void *ctx, size_t i, const struct bench_answer *answer, int64_t took_ns)
{
    struct asking *a = ctx;

    (void)i;
    a->answered++;
    a->took_ns = took_ns;
    str_addf(&a->said, "%d%s;", answer->status, str_text(&answer->body));
}

static void begun(void *ctx, size_t i, const struct bench_answer *answer)
{
    (void)i;
    assert_int_equal(answer->status, 200);
    ((struct asking *)ctx)->begun++;
}

static bool piece(void *ctx, size_t i, const char *at, size_t len)
{
    struct asking *a = ctx;

    (void)i;
    if (!a->pieces)
        return false;
    str_add_bytes(&a->said, at, len);
    if (a->stop_after && a->said.len >= a->stop_after)
        bench_fleet_stop(a->fleet);
    return true;
}

static const struct bench_fleet_calls calls = {.next = next, .answered = answered, .begun = begun, .piece = piece};

/* Sends `left` requests on one connection to the scripted server; returns the result of the run and collects the
 * answers. */
static int ask(const char *const *lines, struct asking *a, int64_t patience_ns)
{
    struct script s;
    struct berth_err err;

    script_start(&s, lines);
    a->server = &s.server;
    assert_int_equal(bench_fleet_new(&s.server, 1, &a->fleet, &err), 0);
    int rc = bench_fleet_run(a->fleet, &calls, a, patience_ns, &err);
    bench_fleet_free(a->fleet);
    script_end(&s);
    assert_non_null(strstr(s.request, "POST /v1/x HTTP/1.1\r\n"));
    assert_non_null(strstr(s.request, "\r\nAuthorization: Bearer berth_t\r\nAccept: a\r\n"));
    assert_non_null(strstr(s.request, "\r\nContent-Length: 2\r\n\r\n{}"));
    return rc;
}

#define PATIENCE_NS INT64_C(10000000000)

static void requests_are_sent_in_sequence(void **state)
{
    (void)state;
    static const char *const lines[] = {OK "Content-Length: 1\r\n\r\na", OK "Content-Length: 1\r\n\r\nb",
                                        OK "Content-Length: 0\r\n\r\n", NULL};
    struct asking a = {.left = 3};

    assert_int_equal(ask(lines, &a, PATIENCE_NS), 0);
    assert_string_equal(a.said.at, "200a;200b;200;");
    assert_int_equal(a.begun, 3);
    assert_true(a.took_ns > 0);
    str_done(&a.said);
}

static void reconnects_after_connection_close(void **state)
{
    (void)state;
    static const char *const lines[] = {OK "Connection: close\r\nX: HANG UP\r\nContent-Length: 1\r\n\r\na",
                                        OK "X: HANG UP\r\n\r\nwithout a length", OK "Content-Length: 1\r\n\r\nc", NULL};
    struct asking a = {.left = 3};

    assert_int_equal(ask(lines, &a, PATIENCE_NS), 0);
    assert_string_equal(a.said.at, "200a;200without a length;200c;");
    str_done(&a.said);
}

static void stream_pieces_reach_the_callback(void **state)
{
    (void)state;
    static const char *const lines[] = {OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n", NULL};
    struct asking a = {.left = 1, .pieces = true, .stop_after = 5};

    assert_int_equal(ask(lines, &a, PATIENCE_NS), 0);
    assert_string_equal(a.said.at, "abcde");
    assert_int_equal(a.answered, 0);
    str_done(&a.said);
}

static void connection_errors_are_reported(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int rc;
        int64_t patience_ns;
    } rows[] = {
        {OK "Content-Length: 5\r\nX: HANG UP\r\n\r\nhe", -ECONNRESET, PATIENCE_NS},
        {"it is not HTTP\r\n",                           -EPROTO,     PATIENCE_NS},
        {OK "Content-Length: 1\r\n\r\nab",               -EPROTO,     PATIENCE_NS},
        {OK "Content-Length: 5\r\n\r\nhe",               -ETIMEDOUT,  20000000   },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const lines[] = {rows[i].line, NULL};
        struct asking a = {.left = 1};
        assert_int_equal(ask(lines, &a, rows[i].patience_ns), rows[i].rc);
        assert_int_equal(a.answered, 0);
        str_done(&a.said);
    }
}

static void refused_connections_are_reported(void **state)
{
    (void)state;
    struct script s;
    struct bench_fleet *fleet = NULL;
    struct berth_err err;

    script_start(&s, (const char *const[]){NULL});
    script_end(&s);
    assert_int_equal(bench_fleet_new(&s.server, 2, &fleet, &err), -ECONNREFUSED);
    assert_null(fleet);
    bench_fleet_free(NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_parsed_in_pieces),
        cmocka_unit_test(bytes_of_the_next_answer_remain),
        cmocka_unit_test(body_without_length_ends_with_the_connection),
        cmocka_unit_test(malformed_answers_are_rejected),
        cmocka_unit_test(long_lines_are_rejected),
        cmocka_unit_test(requests_are_sent_in_sequence),
        cmocka_unit_test(reconnects_after_connection_close),
        cmocka_unit_test(stream_pieces_reach_the_callback),
        cmocka_unit_test(connection_errors_are_reported),
        cmocka_unit_test(refused_connections_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
