/* http_strict_test.c - tests over raw sockets that requests which another program could parse differently are rejected.
 *
 * Each row is sent as a whole, then byte by byte. A rejected request is never handled, and its connection is closed,
 * because the start of the next request is uncertain. A request smuggled behind the first must not be handled either.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/kit_test.h"

#define BYTES(text) text, sizeof(text) - 1
#define CHUNKED "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

static const struct {
    const char *label, *text;
    size_t len;
    bool good;
} rows[] = {
  /* clang-format off */
    {"plain",                            BYTES("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), true},
    {"old",                              BYTES("GET / HTTP/1.0\r\n\r\n"), true},
    {"many headers",                     BYTES("GET /a?b=c HTTP/1.1\r\nHost: h\r\nA:b\r\nC: \t d  \r\nE:\r\nCookie: a=b; c=d\r\nAuthorization: Bearer x\r\n\r\n"), true},
    {"a body",                           BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na\nb"), true},
    {"chunks",                           BYTES(CHUNKED "3\r\na\nb\r\nA\r\n0123456789\r\n0\r\n\r\n"), true},
    {"high bytes in a value",            BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: \xc3\xa9\r\n\r\n"), true},

    {"bare LF after the first line",     BYTES("GET / HTTP/1.1\nHost: h\r\n\r\n"), false},
    {"bare LF after a header",           BYTES("GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n"), false},
    {"bare LF after the last header",    BYTES("GET / HTTP/1.1\r\nHost: h\n\r\n"), false},
    {"bare LF at the end",               BYTES("GET / HTTP/1.1\r\nHost: h\r\n\n"), false},
    {"bare LF everywhere",               BYTES("GET / HTTP/1.1\nHost: h\n\n"), false},
    {"bare LF, old",                     BYTES("GET / HTTP/1.0\n\n"), false},
    {"bare CR after the first line",     BYTES("GET / HTTP/1.1\rHost: h\r\n\r\n"), false},
    {"bare CR after a header",           BYTES("GET / HTTP/1.1\r\nHost: h\rA: b\r\n\r\n"), false},
    {"bare CR in a value",               BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n"), false},
    {"CR CR LF",                         BYTES("GET / HTTP/1.1\r\nHost: h\r\r\n\r\n"), false},
    {"space before the colon",           BYTES("GET / HTTP/1.1\r\nHost : h\r\n\r\n"), false},
    {"space before a later colon",       BYTES("GET / HTTP/1.1\r\nHost: h\r\nContent-Length : 5\r\n\r\n"), false},
    {"tab before the colon",             BYTES("GET / HTTP/1.1\r\nHost: h\r\nA\t: b\r\n\r\n"), false},
    {"space in a name",                  BYTES("GET / HTTP/1.1\r\nHost: h\r\nA b: c\r\n\r\n"), false},
    {"space before a name",              BYTES("GET / HTTP/1.1\r\n Host: h\r\n\r\n"), false},
    {"folded line",                      BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n"), false},
    {"folded by a tab",                  BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\tc\r\n\r\n"), false},
    {"folded length",                    BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n 5\r\n\r\nhello"), false},
    {"no name",                          BYTES("GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n"), false},
    {"no colon",                         BYTES("GET / HTTP/1.1\r\nHost: h\r\nfoo\r\n\r\n"), false},
    {"bad character in a name",          BYTES("GET / HTTP/1.1\r\nHost: h\r\nA(b: c\r\n\r\n"), false},
    {"high byte in a name",              BYTES("GET / HTTP/1.1\r\nHost: h\r\n\xc3\xa9: c\r\n\r\n"), false},
    {"NUL in a value",                   BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n"), false},
    {"NUL at the end of a value",        BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\0\r\n\r\n"), false},
    {"NUL in a name",                    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA\0B: c\r\n\r\n"), false},
    {"NUL in the target",                BYTES("GET /\0a HTTP/1.1\r\nHost: h\r\n\r\n"), false},
    {"NUL in the method",                BYTES("G\0T / HTTP/1.1\r\nHost: h\r\n\r\n"), false},
    {"two NULs as a line's end",         BYTES("GET / HTTP/1.1\r\nHost: h\0\0A: b\r\n\r\n"), false},
    {"two Authorization headers",        BYTES("GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n"), false},
    {"the same, in other letters",       BYTES("GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer a\r\nAUTHORIZATION: Bearer a\r\n\r\n"), false},
    {"two idempotency keys",             BYTES("GET / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n"), false},
    {"two conditions",                   BYTES("GET / HTTP/1.1\r\nHost: h\r\nIf-Match: 1\r\nIf-Match: 2\r\n\r\n"), false},
    {"two hosts",                        BYTES("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n"), false},
    {"two lengths",                      BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), false},
    {"the same length twice",            BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\na"), false},
    {"a length with a sign",             BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na"), false},
    {"a negative length",                BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\na"), false},
    {"a length in hex",                  BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\na"), false},
    {"a length and more",                BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1 1\r\n\r\na"), false},
    {"an empty length",                  BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\na"), false},
    {"length and chunks",                BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), false},
    {"chunks and length",                BYTES("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"), false},
    {"two encodings",                    BYTES("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), false},
    {"a list of encodings",              BYTES("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), false},
    {"an encoding with a tab",           BYTES("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0b" "chunked\r\n\r\n0\r\n\r\n"), false},
    {"chunks, old",                      BYTES("POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), false},
    {"absolute target",                  BYTES("GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n"), false},
    {"absolute target of another host",  BYTES("GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n"), false},
    {"a target with a fragment",         BYTES("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n"), false},
    {"two spaces before the target",     BYTES("GET  / HTTP/1.1\r\nHost: h\r\n\r\n"), false},
    {"two spaces before the version",    BYTES("GET /  HTTP/1.1\r\nHost: h\r\n\r\n"), false},
    {"a tab before the target",          BYTES("GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n"), false},
    {"a space after the version",        BYTES("GET / HTTP/1.1 \r\nHost: h\r\n\r\n"), false},
    {"a space before the method",        BYTES(" GET / HTTP/1.1\r\nHost: h\r\n\r\n"), false},
    {"no version",                       BYTES("GET /\r\n\r\n"), false},
    {"another version",                  BYTES("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), false},
    {"a later version",                  BYTES("GET / HTTP/1.2\r\nHost: h\r\n\r\n"), false},
    {"another protocol",                 BYTES("GET / HTTQ/1.1\r\nHost: h\r\n\r\n"), false},
    {"a method that is no word",         BYTES("G(T / HTTP/1.1\r\nHost: h\r\n\r\n"), false},
    {"a chunk's extension",              BYTES(CHUNKED "3;a=b\r\nabc\r\n0\r\n\r\n"), false},
    {"a chunk's bare LF",                BYTES(CHUNKED "3\nabc\r\n0\r\n\r\n"), false},
    {"a chunk's data and bare LF",       BYTES(CHUNKED "3\r\nabc\n0\r\n\r\n"), false},
    {"a chunk's data without an end",    BYTES(CHUNKED "3\r\nabcd\r\n0\r\n\r\n"), false},
    {"a chunk's size with a sign",       BYTES(CHUNKED "+3\r\nabc\r\n0\r\n\r\n"), false},
    {"a chunk's size with 0x",           BYTES(CHUNKED "0x3\r\nabc\r\n0\r\n\r\n"), false},
    {"a chunk's size and a space",       BYTES(CHUNKED "3 \r\nabc\r\n0\r\n\r\n"), false},
    {"a chunk's size that is too long",  BYTES(CHUNKED "10000000000000003\r\nabc\r\n0\r\n\r\n"), false},
    {"chunks that end with bare LF",     BYTES(CHUNKED "3\r\nabc\r\n0\r\n\n"), false},
    {"a trailer",                        BYTES(CHUNKED "3\r\nabc\r\n0\r\nContent-Length: 3\r\n\r\n"), false},
  /* clang-format on */
};

/* A header that exceeds the library's first buffer and arrives in many pieces. */
static void long_header_is_accepted(void **state)
{
    CLEANUP(str) struct str text = {0};

    (void)state;
    str_add(&text, "GET /a?b=c&d=e HTTP/1.1\r\nHost: h\r\n");
    for (int i = 0; i < 20; i++) {
        str_addf(&text, "X-Header-%d:  ", i);
        for (int j = 0; j < 200; j++)
            str_add_char(&text, (char)('a' + j % 26));
        str_add(&text, "\r\n");
    }
    str_add(&text, "Cookie: a=b; c=\"d\"\r\n\r\n");
    for (size_t step = 1; step < text.len; step = step * 3 + 1) {
        CLEANUP(kit) struct kit k = {0};
        kit_start(&k, (struct http_config){0});
        CLEANUP(talk) struct talk t = talk_new(&k);
        for (int request = 0; request < 3; request++) {
            for (size_t at = 0; at < text.len; at += step) {
                talk_say_bytes(&k, &t, text.at + at, text.len - at < step ? text.len - at : step);
                assert_int_equal(loop_once(k.loop, 0, NULL), 0);
            }
            assert_int_equal(talk_answer(&k, &t, NULL), 200);
        }
    }
}

static void talk_send_slowly(struct kit *k, struct talk *t, const char *at, size_t len)
{
    for (size_t i = 0; i < len && !t->ended; i++) {
        talk_say_bytes(k, t, at + i, 1);
        for (int round = 0; round < 3; round++)
            assert_int_equal(loop_once(k->loop, 0, NULL), 0);
    }
}

/* Sends the row and a second request. Returns the number of handled requests. */
static unsigned send_row(size_t i, bool slowly, int *ret_status)
{
    CLEANUP(kit) struct kit k = {0};
    kit_start(&k, (struct http_config){.length_required = !rows[i].good,
                                       .request_ns_max = 2000 * (int64_t)KIT_MS,
                                       .idle_ns_max = 200 * KIT_MS});
    CLEANUP(talk) struct talk t = talk_new(&k);

    if (slowly)
        talk_send_slowly(&k, &t, rows[i].text, rows[i].len);
    else
        talk_say_bytes(&k, &t, rows[i].text, rows[i].len);
    talk_say(&k, &t, GET("/smuggled"));
    if (rows[i].good) {
        *ret_status = talk_answer(&k, &t, NULL);
        return k.handled;
    }
    (void)shutdown(t.fd, SHUT_WR); /* ends rows that wait for more data */
    talk_hear_end(&k, &t);
    *ret_status = t.heard.len ? atoi(t.heard.at + 9) : 0;
    return k.handled;
}

static void ambiguous_requests_are_rejected(void **state)
{
    int failed = 0;

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        for (int slowly = 0; slowly < 2; slowly++) {
            int status = 0;
            unsigned handled = send_row(i, slowly, &status);
            bool well = rows[i].good ? status == 200 && handled >= 1
                                     : handled == 0 && (status == 0 || (status >= 400 && status < 600));
            if (!well)
                (void)fprintf(stderr, "%s%s: %u handled, status %d\n", rows[i].label, slowly ? ", byte by byte" : "",
                              handled, status);
            failed += !well;
        }
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ambiguous_requests_are_rejected),
                                       cmocka_unit_test(long_header_is_accepted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
