/* net_frame_test.c - frames between the agent and the net sandbox: encoding, decoding, rejection of invalid frames. */
#include "agent/net/net_frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void a_request_comes_as_it_went(void **state)
{
    const struct half_request sent = {.timeout_ns = 5,
                                      .stream = 1,
                                      .method = "POST",
                                      .url = "https://h/x?y",
                                      .type = "",
                                      .body = "a\0b",
                                      .body_len = 3};
    CLEANUP(str) struct str bytes = {0};
    struct half_request got;
    struct half_frame f;
    (void)state;
    half_request_add(&bytes, 7, &sent);
    for (size_t len = 0; len < bytes.len; len++)
        assert_int_equal(half_frame_read(bytes.at, len, false, &f), 0);
    assert_int_equal(half_frame_read(bytes.at, bytes.len, false, &f), bytes.len);
    assert_int_equal(f.call, 7);
    assert_true(half_request_take(&f, &got));
    assert_int_equal(got.timeout_ns, 5);
    assert_int_equal(got.stream, 1);
    assert_string_equal(got.method, "POST");
    assert_string_equal(got.url, "https://h/x?y");
    assert_string_equal(got.type, "");
    assert_int_equal(got.body_len, 3);
    assert_memory_equal(got.body, "a\0b", 3);
}

static void texts_without_an_end_are_none(void **state)
{
    struct half_frame f = {.kind = HALF_IDENTITY, .at = "abc", .len = 3};
    struct half_request q;
    const char *text;
    int64_t number;
    (void)state;
    assert_false(half_take_text(&f, &text));
    assert_false(half_take_number(&f, &number));
    f = (struct half_frame){.kind = HALF_START, .at = "0123456701234567GET\0url\0type", .len = 28};
    assert_false(half_request_take(&f, &q));
}

/* The header alone decides: an invalid frame is rejected before its body has arrived. */
static void what_may_not_come_is_refused(void **state)
{
    static const struct {
        const char *label;
        uint32_t len, kind;
        bool to_root;
        int want;
    } rows[] = {
        {"a piece",                1,                        HALF_PIECE,    true,  0      },
        {"the longest piece",      HALF_PIECE_BYTES_MAX,     HALF_PIECE,    true,  0      },
        {"a piece too long",       HALF_PIECE_BYTES_MAX + 1, HALF_PIECE,    true,  -EPROTO},
        {"an empty piece",         0,                        HALF_PIECE,    true,  -EPROTO},
        {"all bits of a length",   UINT32_MAX,               HALF_PIECE,    true,  -EPROTO},
        {"an end without number",  7,                        HALF_END,      true,  -EPROTO},
        {"an end",                 8,                        HALF_END,      true,  0      },
        {"an end of many words",   8 + HALF_TEXT_BYTES_MAX,  HALF_END,      true,  0      },
        {"an end of too many",     9 + HALF_TEXT_BYTES_MAX,  HALF_END,      true,  -EPROTO},
        {"known, too long",        1 << 20,                  HALF_KNOWN,    true,  -EPROTO},
        {"no kind",                1,                        0,             true,  -EPROTO},
        {"an unknown kind",        1,                        HALF_KINDS,    true,  -EPROTO},
        {"a kind from afar",       1,                        UINT32_MAX,    true,  -EPROTO},
        {"a request, to root",     64,                       HALF_START,    true,  -EPROTO},
        {"certificates, to root",  64,                       HALF_IDENTITY, true,  -EPROTO},
        {"a question, to root",    64,                       HALF_ASK,      true,  -EPROTO},
        {"a cancel, to root",      0,                        HALF_CANCEL,   true,  -EPROTO},
        {"a request",              64,                       HALF_START,    false, 0      },
        {"a request without head", 15,                       HALF_START,    false, -EPROTO},
        {"a request too long",     (64U << 20) + 1,          HALF_START,    false, -EPROTO},
        {"a cancel with a tail",   1,                        HALF_CANCEL,   false, -EPROTO},
        {"a piece, from root",     1,                        HALF_PIECE,    false, -EPROTO},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t head[3] = {rows[i].len, rows[i].kind, 1};
        struct half_frame f = {0};
        ssize_t got = half_frame_read((const char *)head, sizeof head, rows[i].to_root, &f);
        if (got != rows[i].want)
            fail_msg("%s: %zd, not %d", rows[i].label, got, rows[i].want);
        assert_int_equal(f.kind, 0);
    }
}

static void words_are_one_line(void **state)
{
    char text[HALF_TEXT_BYTES_MAX + 1], longest[HALF_TEXT_BYTES_MAX + 9];
    (void)state;
    half_take_words(&(struct half_frame){.at = "a\nb\33[m\0\377c", .len = 9}, text);
    assert_string_equal(text, "a?b?[m??c");
    half_take_words(&(struct half_frame){.at = "", .len = 0}, text);
    assert_string_equal(text, "");
    memset(longest, 'x', sizeof longest);
    half_take_words(&(struct half_frame){.at = longest, .len = sizeof longest}, text);
    assert_int_equal(strlen(text), HALF_TEXT_BYTES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_comes_as_it_went),
        cmocka_unit_test(texts_without_an_end_are_none),
        cmocka_unit_test(what_may_not_come_is_refused),
        cmocka_unit_test(words_are_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
