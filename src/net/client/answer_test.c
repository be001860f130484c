/* answer_test.c - tests answers that are complete, cut off at any position, and malformed. */
#include "net/client/answer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define OK "HTTP/1.1 200 OK\r\n"

static void headers_are_parsed(void **state)
{
    static const struct {
        const char *text;
        int rc;
        struct answer_head want; /* its `len` is the length of the text */
    } rows[] = {
        {OK "Content-Length: 12\r\n\r\n",                                                  1,       {.status = 200, .body_len = 12}                 },
        {OK "content-length:12  \r\nX: y\r\n\r\n",                                         1,       {.status = 200, .body_len = 12}                 },
        {OK "\r\n",                                                                        1,       {.status = 200, .body_len = -1}                 },
        {"HTTP/1.1 201\r\nContent-Length: 0\r\n\r\n",                                      1,       {.status = 201, .body_len = 0}                  },
        {OK "Transfer-Encoding: chunked\r\n\r\n",                                          1,       {.status = 200, .body_len = -1, .chunked = true}},
        {OK "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
         1,                                                                                         {.status = 200, .body_len = -1, .chunked = true}},
        {OK "Connection: close\r\n\r\n",                                                   1,       {.status = 200, .body_len = -1, .closes = true} },
        {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n",                                   1,       {.status = 200, .body_len = 1, .closes = true}  },
        {"HTTP/1.1 204 No Content\r\n\r\n",                                                1,       {.status = 204, .body_len = 0}                  },
        {"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",                  1,       {.status = 204, .body_len = 0}                  },
        {"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",               1,       {.status = 429, .retry_after_s = 7}             },
        {"HTTP/1.1 503 X\r\nRetry-After: Fri, 1 Jan\r\nContent-Length: 0\r\n\r\n",         1,       {.status = 503}                                 },
        {"HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 2\r\n\r\n",                   1,       {.status = 200, .body_len = 2}                  },
        {"HTTP/1.1 103 Hints\r\nConnection: close\r\n\r\n" OK "Content-Length: 2\r\n\r\n",
         1,                                                                                         {.status = 200, .body_len = 2}                  },
        {"SSH-2.0-x\r\n\r\n",                                                              -EPROTO, {0}                                             },
        {"HTTP/2 200 \r\n\r\n",                                                            -EPROTO, {0}                                             },
        {"HTTP/1.1 20x OK\r\n\r\n",                                                        -EPROTO, {0}                                             },
        {"HTTP/1.1 2000 OK\r\n\r\n",                                                       -EPROTO, {0}                                             },
        {"HTTP/1.1 099 OK\r\n\r\n",                                                        -EPROTO, {0}                                             },
        {OK "no field\r\n\r\n",                                                            -EPROTO, {0}                                             },
        {OK "Content-Length: -1\r\n\r\n",                                                  -EPROTO, {0}                                             },
        {OK "Content-Length: 123456789012345678\r\n\r\n",                                  -EPROTO, {0}                                             },
        {OK "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",                              -EPROTO, {0}                                             },
        {OK "Transfer-Encoding: gzip\r\n\r\n",                                             -EPROTO, {0}                                             },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct answer_head got = {0};
        size_t len = strlen(rows[i].text);
        int rc = answer_head_read(rows[i].text, len, &got);
        if (rc != rows[i].rc || got.status != rows[i].want.status || got.body_len != rows[i].want.body_len ||
            got.chunked != rows[i].want.chunked || got.closes != rows[i].want.closes ||
            got.retry_after_s != rows[i].want.retry_after_s || got.len != (rc == 1 ? len : 0))
            fail_msg("row %zu: %d %d %lld", i, rc, got.status, (long long)got.body_len);
        for (size_t cut = 0; rc == 1 && cut < len; cut++)
            assert_int_equal(answer_head_read(rows[i].text, cut, &got), 0);
    }
}

static void header_without_end_is_refused(void **state)
{
    static char text[ANSWER_HEAD_MAX + 100];
    struct answer_head head;
    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text, OK, sizeof OK - 1);
    assert_int_equal(answer_head_read(text, 1000, &head), 0);
    assert_int_equal(answer_head_read(text, sizeof text, &head), -EPROTO);
}

static void chunked_bodies_are_joined(void **state)
{
    static const struct {
        const char *text;
        int rc;
        const char *body;
    } rows[] = {
        {"0\r\n\r\n",                                       1,       ""               },
        {"5\r\nhello\r\n0\r\n\r\n",                         1,       "hello"          },
        {"5;x=y\r\nhello\r\nA \r\n, my world\r\n0\r\n\r\n", 1,       "hello, my world"},
        {"1\r\na\r\n0\r\nTrailer: x\r\n\r\n",               1,       "a"              },
        {"2\r\n\r\n\r\n0\r\n\r\n",                          1,       "\r\n"           },
        {"x\r\n",                                           -EPROTO, NULL             },
        {"\r\n",                                            -EPROTO, NULL             },
        {"-1\r\n",                                          -EPROTO, NULL             },
        {"5\r\nhelloXX0\r\n\r\n",                           -EPROTO, NULL             },
        {"ffffffffffffffff\r\n",                            -EPROTO, NULL             },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[100];
        size_t len = strlen(rows[i].text), got = 99;
        memcpy(text, rows[i].text, len + 1);
        for (size_t cut = 0; rows[i].rc == 1 && cut < len; cut++)
            assert_int_equal(answer_chunks_join(text, cut, &got), 0);
        assert_memory_equal(text, rows[i].text, len); /* nothing is moved before the body is complete */
        assert_int_equal(answer_chunks_join(text, len, &got), rows[i].rc);
        if (rows[i].rc != 1)
            continue;
        assert_int_equal(got, strlen(rows[i].body));
        assert_memory_equal(text, rows[i].body, got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_parsed),
        cmocka_unit_test(header_without_end_is_refused),
        cmocka_unit_test(chunked_bodies_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
