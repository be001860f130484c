/* health_test.c - health checks with real sockets on the real loop. Asserts no durations: the loop runs until a verdict
 * arrives.
 */
#include "machine/health/health.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define MS INT64_C(1000000)

struct scene {
    struct loop *loop;
    struct health *health;
    struct loop_source *door, *visitor;
    int listen_fd, visitor_fd;
    int port_fd; /* bound to the port, to reserve it while no socket listens */
    uint16_t port;
    const char *answer; /* sent to each connection; NULL: none, and it stays open; "": it is closed */
    char request[512];
    int kept[64];
    size_t kept_len;
    /* results */
    unsigned verdicts, asked;
    bool ready, free_in_verdict;
    char text[256];
    /* of exec checks */
    int exit;
    bool refuse, hang;
    unsigned cancelled;
    void (*done)(void *arg, int exit);
    void *arg;
    struct loop_source *timer;
};

static void scene_cleanup(struct scene *s)
{
    health_free(s->health);
    for (size_t i = 0; i < s->kept_len; i++)
        (void)close(s->kept[i]);
    if (s->visitor)
        (void)close(s->visitor_fd);
    if (s->listen_fd >= 0)
        (void)close(s->listen_fd);
    if (s->port_fd >= 0)
        (void)close(s->port_fd);
    loop_free(s->loop);
}

/* ---- the instance ----------------------------------------------------------------------------------------------- */

/* The request arrives in one piece, because it is small. */
static void visitor_ready(void *ctx, uint32_t events)
{
    struct scene *s = ctx;
    (void)events;
    loop_source_free(take_ptr(&s->visitor));
    ssize_t n = recv(s->visitor_fd, s->request, sizeof s->request - 1, MSG_DONTWAIT);
    s->request[n < 0 ? 0 : n] = '\0';
    (void)send(s->visitor_fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
    (void)close(s->visitor_fd);
}

static void door_ready(void *ctx, uint32_t events)
{
    struct scene *s = ctx;
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    (void)events;
    assert_true(fd >= 0);
    s->asked++;
    if (!s->answer) {
        assert_true(s->kept_len < ROWS(s->kept));
        s->kept[s->kept_len++] = fd;
    } else if (*s->answer) {
        assert_null(s->visitor); /* one check at a time */
        s->visitor_fd = fd;
        assert_int_equal(loop_watch_fd(s->loop, fd, EPOLLIN, visitor_ready, s, &s->visitor, NULL), 0);
    } else {
        (void)close(fd);
    }
}

static int bound(struct scene *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(s->port);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    return fd;
}

static void door_open(struct scene *s)
{
    if (s->port_fd < 0)
        s->port_fd = bound(s);
    s->listen_fd = bound(s);
    assert_int_equal(listen(s->listen_fd, 16), 0);
    assert_int_equal(loop_watch_fd(s->loop, s->listen_fd, EPOLLIN, door_ready, s, &s->door, NULL), 0);
}

static void door_close(struct scene *s)
{
    loop_source_free(take_ptr(&s->door));
    (void)close(s->listen_fd);
    s->listen_fd = -1;
}

/* ---- the agent -------------------------------------------------------------------------------------------------- */

static uint16_t port_of(void *ctx, const char *endpoint)
{
    struct scene *s = ctx;
    return strcmp(endpoint, "web") == 0 ? s->port : 0;
}

static void exec_over(void *ctx)
{
    struct scene *s = ctx;
    loop_source_free(take_ptr(&s->timer));
    s->done(s->arg, s->exit);
}

static void *exec_run(void *ctx, const char *const *argv, int64_t timeout_ns, void (*done)(void *arg, int exit),
                      void *arg)
{
    struct scene *s = ctx;
    assert_string_equal(argv[0], "/bin/check");
    assert_string_equal(argv[1], "--deep");
    assert_null(argv[2]);
    assert_int_equal(timeout_ns, 50 * MS);
    s->asked++;
    if (s->refuse)
        return NULL;
    s->done = done;
    s->arg = arg;
    if (!s->hang) {
        s->timer = loop_timer_new(s->loop, exec_over, s);
        loop_timer_set(s->timer, loop_now_ns(s->loop) + MS);
    }
    return s;
}

static void exec_cancel(void *ctx, void *run)
{
    struct scene *s = ctx;
    assert_ptr_equal(run, s);
    loop_source_free(take_ptr(&s->timer));
    s->cancelled++;
}

static void verdict(void *ctx, bool ready, const char *text)
{
    struct scene *s = ctx;
    s->verdicts++;
    s->ready = ready;
    assert_int_equal(text == NULL, ready);
    (void)snprintf(s->text, sizeof s->text, "%s", text ? text : "");
    if (s->free_in_verdict)
        health_free(take_ptr(&s->health));
}

static int begin(struct scene *s, const char *check, struct berth_err *err)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%s", check);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *doc = json_loads(text, 0, NULL);
    assert_non_null(doc);
    struct health_config config = {
        .check = doc, .port = port_of, .exec = exec_run, .exec_cancel = exec_cancel, .verdict = verdict, .ctx = s};
    int rc = health_new(s->loop, &config, &s->health, err);
    json_decref(doc);
    return rc;
}

static struct scene *scene_init(struct scene *s)
{
    *s = (struct scene){.listen_fd = -1, .port_fd = -1};
    assert_int_equal(loop_new(&s->loop, NULL), 0);
    return s;
}

static void until_verdicts(struct scene *s, unsigned count)
{
    while (s->verdicts < count)
        assert_int_equal(loop_once(s->loop, 5 * MS, NULL), 0);
    assert_int_equal(s->verdicts, count);
}

static void until_asked(struct scene *s, unsigned more)
{
    unsigned end = s->asked + more;
    while (s->asked < end)
        assert_int_equal(loop_once(s->loop, 5 * MS, NULL), 0);
}

#define FAST "'every_ns': 60000000, 'timeout_ns': 50000000"
#define HTTP "{'http': {'endpoint': 'web', 'path': '/well?deep=1'}, " FAST "}"
#define TCP "{'tcp': {'endpoint': 'web'}, " FAST "}"
#define EXEC "{'exec': ['/bin/check', '--deep'], " FAST "}"

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void responses_decide_readiness(void **state)
{
    (void)state;
    static const struct {
        const char *check, *answer;
        bool ready;
        const char *text;
    } rows[] = {
        {HTTP,                                       "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",                                                           true,  ""                                   },
        {HTTP,                                       "HTTP/1.0 204 No Content\r\n\r\n",                                                                        true,  ""                                   },
        {HTTP,                                       "HTTP/1.1 399 Odd\r\n\r\n",                                                                               true,  ""                                   },
        {HTTP,                                       "HTTP/1.1 302\r\n\r\n",                                                                                   true,  ""                                   },
        {HTTP,                                       "HTTP/1.1 200 A reason that is far longer than what is kept of a line, and then some more of it\r\n\r\n",
         true,                                                                                                                                                        ""                                   },
        {HTTP,                                       "HTTP/1.1 199 Low\r\n\r\n",                                                                               false, "http: GET /well?deep=1 returned 199"},
        {HTTP,                                       "HTTP/1.1 400 Bad\r\n\r\n",                                                                               false, "http: GET /well?deep=1 returned 400"},
        {HTTP,                                       "HTTP/1.1 503 No\r\n\r\n",                                                                                false, "returned 503"                       },
        {HTTP,                                       "HTTP/1.1 2000 No\r\n\r\n",                                                                               false, "not HTTP"                           },
        {HTTP,                                       "SSH-2.0-OpenSSH_9\r\n",                                                                                  false, "not HTTP"                           },
        {HTTP,                                       "HTTP/1.1 20",                                                                                            false, "not HTTP"                           },
        {HTTP,                                       "",                                                                                                       false, "http: "                             },
        {HTTP,                                       NULL,                                                                                                     false, "no response within 50 ms"           },
        {TCP,                                        NULL,                                                                                                     true,  ""                                   },
        {TCP,                                        "",                                                                                                       true,  ""                                   },
        {"{'tcp': {'endpoint': 'other'}, " FAST "}", NULL,                                                                                                     false, "tcp: the endpoint other has no port"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(scene) struct scene s;
        struct berth_err err;
        scene_init(&s)->answer = rows[i].answer;
        door_open(&s);
        if (begin(&s, rows[i].check, &err) < 0)
            fail_msg("%s", err.text);
        until_verdicts(&s, 1);
        if (s.ready != rows[i].ready || !strstr(s.text, rows[i].text))
            fail_msg("row %zu: %s \"%s\"", i, s.ready ? "ready" : "not ready", s.text);
    }
}

static void the_request_is_http(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s;
    scene_init(&s)->answer = "HTTP/1.1 200 OK\r\n\r\n";
    door_open(&s);
    assert_int_equal(begin(&s, HTTP, NULL), 0);
    until_verdicts(&s, 1);
    char want[256];
    (void)snprintf(want, sizeof want, "GET /well?deep=1 HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n", s.port);
    assert_ptr_equal(strstr(s.request, want), s.request);
    assert_string_equal(s.request + strlen(s.request) - 4, "\r\n\r\n");
}

static void consecutive_failures_and_one_success(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s;
    scene_init(&s);
    assert_int_equal(begin(&s, EXEC, NULL), 0);
    until_asked(&s, 1);
    until_verdicts(&s, 1);
    assert_true(s.ready);
    s.exit = 7;
    unsigned before = s.asked;
    until_verdicts(&s, 2);
    assert_false(s.ready);
    assert_string_equal(s.text, "/bin/check failed with exit code 7");
    assert_int_equal(s.asked - before, 3);
    s.exit = 0;
    until_verdicts(&s, 3);
    assert_true(s.ready);
    /* two failures are not three */
    for (int i = 0; i < 3; i++) {
        s.exit = 1;
        until_asked(&s, 2);
        while (s.timer)
            assert_int_equal(loop_once(s.loop, MS, NULL), 0);
        s.exit = 0;
        until_asked(&s, 1);
        while (s.timer)
            assert_int_equal(loop_once(s.loop, MS, NULL), 0);
    }
    assert_int_equal(s.verdicts, 3);
}

/* The first verdict "not ready" takes the same number of failures. */
static void first_verdict_takes_all_failures(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s;
    scene_init(&s)->exit = 1;
    assert_int_equal(begin(&s, "{'exec': ['/bin/check', '--deep'], 'failures': 5, " FAST "}", NULL), 0);
    until_verdicts(&s, 1);
    assert_false(s.ready);
    assert_int_equal(s.asked, 5);
}

static void hanging_and_missing_programs_fail(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s;
    scene_init(&s)->hang = true;
    assert_int_equal(begin(&s, EXEC, NULL), 0);
    until_verdicts(&s, 1);
    assert_false(s.ready);
    assert_string_equal(s.text, "no response within 50 ms");
    assert_int_equal(s.cancelled, 3);
    s.hang = false;
    until_verdicts(&s, 2);
    assert_true(s.ready);
    s.refuse = true;
    until_verdicts(&s, 3);
    assert_string_equal(s.text, "/bin/check could not be run");
    assert_int_equal(s.cancelled, 3);
}

static void server_restart_changes_verdict(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s;
    scene_init(&s)->answer = "";
    door_open(&s);
    assert_int_equal(begin(&s, TCP, NULL), 0);
    until_verdicts(&s, 1);
    assert_true(s.ready);
    door_close(&s);
    until_verdicts(&s, 2);
    assert_false(s.ready);
    assert_string_equal(s.text, "tcp: Connection refused");
    door_open(&s);
    until_verdicts(&s, 3);
    assert_true(s.ready);
}

static void health_can_be_freed_at_any_time(void **state)
{
    (void)state;
    static const char *const checks[] = {HTTP, TCP, EXEC};
    for (size_t i = 0; i < ROWS(checks); i++) {
        CLEANUP(scene) struct scene s;
        scene_init(&s)->free_in_verdict = true;
        s.answer = "HTTP/1.1 200 OK\r\n\r\n";
        door_open(&s);
        assert_int_equal(begin(&s, checks[i], NULL), 0);
        until_verdicts(&s, 1);
        assert_null(s.health);
        assert_int_equal(loop_once(s.loop, MS, NULL), 0);
    }
    CLEANUP(scene) struct scene open; /* with an open check */
    scene_init(&open)->hang = true;
    assert_int_equal(begin(&open, EXEC, NULL), 0);
    until_asked(&open, 1);
    health_free(take_ptr(&open.health));
    assert_int_equal(open.cancelled, 1);
    health_free(NULL);
}

static void first_check_starts_after_delay(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s;
    scene_init(&s);
    assert_int_equal(begin(&s, "{'exec': ['/bin/check', '--deep'], 'delay_ns': 3600000000000, " FAST "}", NULL), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(loop_once(s.loop, 20 * MS, NULL), 0);
    assert_int_equal(s.asked, 0);
}

static void invalid_checks_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *check, *error;
    } rows[] = {
        {"[]",                                                      "health: expected an object"            },
        {"{}",                                                      "expected exec, http or tcp"            },
        {"{'tcp': {'endpoint': 'web'}, 'exec': ['x']}",             "use only one"                          },
        {"{'exec': []}",                                            "exec: expected a list"                 },
        {"{'exec': ['x', 3]}",                                      "exec: [1]: expected text"              },
        {"{'exec': 'true'}",                                        "exec: expected a list"                 },
        {"{'tcp': {}}",                                             "tcp: endpoint: "                       },
        {"{'http': {'endpoint': 'web', 'path': 'x'}}",              "http: path: "                          },
        {"{'http': {'endpoint': 'web', 'path': '/a b'}}",           "http: path: "                          },
        {"{'http': {'endpoint': 'web', 'path': '/a\\r\\nX: y'}}",   "http: path: "                          },
        {"{'http': {'endpoint': 'web', 'path': 7}}",                "http: path: "                          },
        {"{'tcp': {'endpoint': 'web'}, 'evry_ns': 1}",              "\"evry_ns\": unknown key"              },
        {"{'tcp': {'endpoint': 'web'}, 'every_ns': 0}",             "every_ns: expected a whole number"     },
        {"{'tcp': {'endpoint': 'web'}, 'every_ns': '1s'}",          "every_ns: expected a whole number"     },
        {"{'tcp': {'endpoint': 'web'}, 'failures': 0}",             "failures: expected a whole number"     },
        {"{'tcp': {'endpoint': 'web'}, 'delay_ns': -1}",            "delay_ns: expected a whole number"     },
        {"{'tcp': {'endpoint': 'web'}, 'timeout_ns': 10000000000}", "timeout_ns: must be less than every_ns"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(scene) struct scene s;
        struct berth_err err;
        scene_init(&s);
        assert_int_equal(begin(&s, rows[i].check, &err), -EINVAL);
        if (!strstr(err.text, rows[i].error))
            fail_msg("%s: \"%s\"", rows[i].check, err.text);
        assert_null(s.health);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_decide_readiness),           cmocka_unit_test(the_request_is_http),
        cmocka_unit_test(consecutive_failures_and_one_success), cmocka_unit_test(first_verdict_takes_all_failures),
        cmocka_unit_test(hanging_and_missing_programs_fail),    cmocka_unit_test(server_restart_changes_verdict),
        cmocka_unit_test(health_can_be_freed_at_any_time),      cmocka_unit_test(first_check_starts_after_delay),
        cmocka_unit_test(invalid_checks_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
