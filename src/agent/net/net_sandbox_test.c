/* net_sandbox_test.c - the agent's side of the net sandbox, tested with well-behaved and hostile sandboxes, which are
 * played by this program started again.
 */
#include "agent/net/net_sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/net/net_frame.h"
#include "base/mem.h"

#define PART "BERTH_TEST_PART" /* environment variable: name of the part to play */
#define SECOND INT64_C(1000000000)
enum { ROOT_FD = 3 };

/* ---- the sandbox process ---------------------------------------------------------------------------------------- */

static void say_bytes(const void *at, size_t len)
{
    if (send(ROOT_FD, at, len, MSG_NOSIGNAL) != (ssize_t)len)
        _exit(0);
}

static void say(enum net_frame_kind kind, uint32_t call, const void *at, size_t len)
{
    const uint32_t head[3] = {(uint32_t)len, (uint32_t)kind, call};
    say_bytes(head, sizeof head);
    say_bytes(at, len);
}

static void say_number(enum net_frame_kind kind, uint32_t call, int64_t number, const char *text)
{
    CLEANUP(str) struct str bytes = {0};
    net_frame_add_number(&bytes, number);
    str_add(&bytes, text);
    say(kind, call, bytes.at, bytes.len);
}

static void play_well(uint32_t call)
{
    say(NET_FRAME_DATA, call, "hel", 3);
    say(NET_FRAME_DATA, call, "lo", 2);
    say_number(NET_FRAME_RESULT, call, 200, "");
}

static void play_slowly(uint32_t call)
{
    CLEANUP(str) struct str bytes = {0};
    size_t began = net_frame_begin(&bytes, NET_FRAME_DATA, call);
    str_add(&bytes, "hello");
    net_frame_end(&bytes, began);
    for (size_t i = 0; i < bytes.len; i++) {
        say_bytes(bytes.at + i, 1);
        (void)usleep(1000);
    }
    say_number(NET_FRAME_RESULT, call, 200, "");
}

static void play_others(uint32_t call)
{
    say(NET_FRAME_DATA, call + 1000, "not yours", 9);
    say_number(NET_FRAME_RESULT, call + 1000, 500, "not yours");
    say_number(NET_FRAME_CERTIFICATE, 4711, 1, "of certificates that nobody sent");
    say_number(NET_FRAME_CERTIFICATE, 1, 1, "the same once more");
    play_well(call);
}

static void play_too_long(uint32_t call)
{
    const uint32_t head[3] = {UINT32_MAX, NET_FRAME_DATA, call};
    say_bytes(head, sizeof head);
}

static void play_unknown(uint32_t call)
{
    say((enum net_frame_kind)99, call, "x", 1);
}

static void play_root(uint32_t call)
{
    say(NET_FRAME_REQUEST, call, "0123456701234567GET\0url\0\0", 26);
}

static void play_odd_status(uint32_t call)
{
    say_number(NET_FRAME_RESULT, call, 5, "");
}

static void play_flood(uint32_t call)
{
    static char piece[NET_FRAME_DATA_BYTES_MAX];
    for (;;)
        say(NET_FRAME_DATA, call, piece, sizeof piece);
}

static void play_death(uint32_t call)
{
    (void)call;
    _exit(1);
}

static void play_control(uint32_t call)
{
    say_number(NET_FRAME_RESULT, call, 0, "a\nb\33c");
}

static const struct part {
    const char *name;
    void (*play)(uint32_t call);
    int status;
    const char *text; /* the answer's body or, without one, the reason */
} parts[] = {
    {"well",               play_well,       200, "hello"                                   },
    {"byte by byte",       play_slowly,     200, "hello"                                   },
    {"for others",         play_others,     200, "hello"                                   },
    {"too long",           play_too_long,   0,   "the net sandbox sent a forbidden message"},
    {"of no kind",         play_unknown,    0,   "the net sandbox sent a forbidden message"},
    {"as if it were root", play_root,       0,   "the net sandbox sent a forbidden message"},
    {"an odd status",      play_odd_status, 0,   "the net sandbox sent a forbidden message"},
    {"without an end",     play_flood,      0,   "the net sandbox sent a forbidden message"},
    {"it dies",            play_death,      0,   "the net sandbox has ended"               },
    {"control characters", play_control,    0,   "a?b?c"                                   },
};

static const struct part *part_find(const char *name)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (name && strcmp(parts[i].name, name) == 0)
            return &parts[i];
    return NULL;
}

static void play_frame(const struct net_frame *f)
{
    const struct part *part = part_find(getenv(PART));
    if (f->kind == NET_FRAME_IDENTITY)
        say_number(NET_FRAME_CERTIFICATE, f->call, strncmp(f->at, "bad", 3) ? 1234 : 0, "");
    else if (f->kind == NET_FRAME_REQUEST && part)
        part->play(f->call);
}

static int play(void)
{
    static char in[1 << 20];
    struct net_frame f;
    for (size_t len = 0;;) {
        ssize_t n = recv(ROOT_FD, in + len, sizeof in - len, 0);
        if (n <= 0)
            return 0;
        len += (size_t)n;
        while ((n = net_frame_read(in, len, false, &f)) > 0) {
            play_frame(&f);
            len -= (size_t)n;
            memmove(in, in + n, len);
        }
    }
}

/* ---- the root process ------------------------------------------------------------------------------------------- */

struct scene {
    struct loop *loop;
    struct net_sandbox *net_sandbox;
    char pem_path[32];
    unsigned knowns, trials;
    int64_t not_after_ns;
    struct net_sandbox_request *stream;
    struct str streamed;
    bool done;
    int status;
    char text[64];
};

static void known(void *ctx, int64_t not_after_ns, const char *text, bool trial)
{
    struct scene *s = ctx;
    (void)text;
    s->knowns += !trial;
    s->trials += trial;
    s->not_after_ns = not_after_ns;
}

static void answered(void *ctx, const struct async_answer *answer)
{
    struct scene *s = ctx;
    s->done = true;
    s->status = answer->status;
    (void)snprintf(s->text, sizeof s->text, "%s", answer->status ? answer->body : answer->text);
}

static void took_piece(void *ctx, const char *at, size_t len)
{
    struct scene *s = ctx;
    str_add_bytes(&s->streamed, at, len);
    if (s->stream && s->streamed.len == 3) {
        net_sandbox_cancel(s->stream); /* the rest must not be delivered */
        s->stream = NULL;
    }
}

static void scene_begin(struct scene *s, const char *part)
{
    static const struct log log = {.out = NULL};
    *s = (struct scene){.pem_path = "/tmp/half_test.XXXXXX"};
    int fd = mkstemp(s->pem_path);
    assert_true(fd >= 0 && write(fd, "pem", 3) == 3 && close(fd) == 0);
    assert_int_equal(setenv(PART, part, 1), 0);
    assert_int_equal(loop_new(&s->loop, NULL), 0);
    s->net_sandbox = net_sandbox_new(
        s->loop,
        &(struct net_sandbox_config){
            .user = {geteuid(), getegid()},
              .ca_path = s->pem_path, .pem_path = s->pem_path, .known = known, .ctx = s
    },
        &log);
}

static void scene_end(struct scene *s)
{
    net_sandbox_free(s->net_sandbox);
    loop_free(s->loop);
    str_done(&s->streamed);
    assert_int_equal(unlink(s->pem_path), 0);
}

static void ask(struct scene *s)
{
    s->done = false;
    (void)net_sandbox_start(s->net_sandbox,
                            &(struct async_request){.method = "GET", .url = "https://h/", .done = answered, .ctx = s});
}

static void wait_answer(struct scene *s)
{
    for (unsigned i = 0; !s->done && i < 100000; i++)
        assert_int_equal(loop_once(s->loop, SECOND, NULL), 0);
    assert_true(s->done);
}

/* For each behaviour of a sandbox: the request ends, and the next request succeeds or fails on its own. */
static void request_ends_for_every_sandbox_behaviour(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct scene s;
        scene_begin(&s, parts[i].name);
        ask(&s);
        wait_answer(&s);
        if (s.status != parts[i].status || strcmp(s.text, parts[i].text) != 0)
            fail_msg("%s: %d %s", parts[i].name, s.status, s.text);
        assert_int_equal(s.knowns, 1);
        assert_int_equal(s.not_after_ns, 1234);
        assert_int_equal(setenv(PART, "well", 1), 0);
        ask(&s);
        wait_answer(&s);
        if (parts[i].status == 0 && strncmp(parts[i].text, "the net sandbox", 15) == 0) {
            assert_int_equal(s.status, 200);
            assert_int_equal(s.knowns, 2);
        } else {
            assert_int_equal(s.knowns, 1); /* still the same process */
        }
        scene_end(&s);
    }
}

static void stream_can_be_cancelled_in_its_callback(void **state)
{
    struct scene s;
    (void)state;
    scene_begin(&s, "well");
    s.stream = net_sandbox_start(
        s.net_sandbox, &(struct async_request){
                           .method = "GET", .url = "https://h/", .piece = took_piece, .done = answered, .ctx = &s});
    while (s.stream)
        assert_int_equal(loop_once(s.loop, SECOND, NULL), 0);
    ask(&s);
    wait_answer(&s);
    assert_string_equal(s.text, "hello");
    assert_string_equal(s.streamed.at, "hel");
    scene_end(&s);
}

static void tried_certificate_reports_its_result(void **state)
{
    static const struct {
        const char *part, *pem;
        int64_t want;
    } rows[] = {
        {"well",    "good", 1234},
        {"well",    "bad",  0   },
        {"it dies", "good", 0   },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s;
        scene_begin(&s, rows[i].part);
        while (!s.knowns)
            assert_int_equal(loop_once(s.loop, SECOND, NULL), 0);
        if (rows[i].want == 0 && strcmp(rows[i].part, "it dies") == 0)
            ask(&s); /* first, so that it does not hear of the certificate */
        net_sandbox_try(s.net_sandbox, rows[i].pem);
        while (!s.trials)
            assert_int_equal(loop_once(s.loop, SECOND, NULL), 0);
        assert_int_equal(s.not_after_ns, rows[i].want);
        scene_end(&s);
    }
}

static void unreadable_certificate_is_reported(void **state)
{
    struct scene s;
    (void)state;
    scene_begin(&s, "well");
    assert_int_equal(unlink(s.pem_path), 0);
    while (!s.knowns)
        assert_int_equal(loop_once(s.loop, SECOND, NULL), 0);
    assert_int_equal(s.not_after_ns, 0);
    FILE *file = fopen(s.pem_path, "we"); /* for scene_end */
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    scene_end(&s);
}

/* A sandbox without a valid certificate is restarted until the files contain one. */
static void sandbox_restarts_until_certificate_is_valid(void **state)
{
    struct scene s;
    (void)state;
    scene_begin(&s, "well");
    for (unsigned i = 0; i < 2; i++) {
        FILE *file = fopen(s.pem_path, "we");
        assert_non_null(file);
        assert_true(fputs(i ? "pem" : "bad", file) >= 0);
        assert_int_equal(fclose(file), 0);
        for (unsigned before = s.knowns; s.knowns < before + 2 && s.not_after_ns == 0;)
            assert_int_equal(loop_once(s.loop, SECOND, NULL), 0);
        assert_int_equal(s.not_after_ns, i ? 1234 : 0);
    }
    ask(&s);
    wait_answer(&s);
    assert_string_equal(s.text, "hello");
    scene_end(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_ends_for_every_sandbox_behaviour),
        cmocka_unit_test(stream_can_be_cancelled_in_its_callback),
        cmocka_unit_test(tried_certificate_reports_its_result),
        cmocka_unit_test(unreadable_certificate_is_reported),
        cmocka_unit_test(sandbox_restarts_until_certificate_is_valid),
    };
    if (argc > 1 && strcmp(argv[1], "network") == 0)
        return play();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
