/* net_frame_test.c - frames between the agent and the net sandbox: encoding, decoding, rejection of invalid frames. */
#include "agent/net/net_frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void request_frame_round_trip(void **state)
{
    const struct net_frame_request sent = {.timeout_ns = 5,
                                           .stream = 1,
                                           .method = "POST",
                                           .url = "https://h/x?y",
                                           .type = "",
                                           .body = "a\0b",
                                           .body_len = 3};
    CLEANUP(str) struct str bytes = {0};
    struct net_frame_request got;
    struct net_frame f;
    (void)state;
    net_frame_add_request(&bytes, 7, &sent);
    for (size_t len = 0; len < bytes.len; len++)
        assert_int_equal(net_frame_read(bytes.at, len, false, &f), 0);
    assert_int_equal(net_frame_read(bytes.at, bytes.len, false, &f), bytes.len);
    assert_int_equal(f.call, 7);
    assert_true(net_frame_take_request(&f, &got));
    assert_int_equal(got.timeout_ns, 5);
    assert_int_equal(got.stream, 1);
    assert_string_equal(got.method, "POST");
    assert_string_equal(got.url, "https://h/x?y");
    assert_string_equal(got.type, "");
    assert_int_equal(got.body_len, 3);
    assert_memory_equal(got.body, "a\0b", 3);
}

static void unterminated_texts_are_rejected(void **state)
{
    struct net_frame f = {.kind = NET_FRAME_IDENTITY, .at = "abc", .len = 3};
    struct net_frame_request q;
    const char *text;
    int64_t number;
    (void)state;
    assert_false(net_frame_take_text(&f, &text));
    assert_false(net_frame_take_number(&f, &number));
    f = (struct net_frame){.kind = NET_FRAME_REQUEST, .at = "0123456701234567GET\0url\0type", .len = 28};
    assert_false(net_frame_take_request(&f, &q));
}

/* The header alone decides: an invalid frame is rejected before its body has arrived. */
static void invalid_frames_are_rejected(void **state)
{
    static const struct {
        const char *label;
        uint32_t len, kind;
        bool to_root;
        int want;
    } rows[] = {
        {"a piece",                1,                            NET_FRAME_DATA,        true,  0      },
        {"the longest piece",      NET_FRAME_DATA_BYTES_MAX,     NET_FRAME_DATA,        true,  0      },
        {"a piece too long",       NET_FRAME_DATA_BYTES_MAX + 1, NET_FRAME_DATA,        true,  -EPROTO},
        {"an empty piece",         0,                            NET_FRAME_DATA,        true,  -EPROTO},
        {"all bits of a length",   UINT32_MAX,                   NET_FRAME_DATA,        true,  -EPROTO},
        {"an end without number",  7,                            NET_FRAME_RESULT,      true,  -EPROTO},
        {"an end",                 8,                            NET_FRAME_RESULT,      true,  0      },
        {"an end of many words",   8 + NET_FRAME_TEXT_BYTES_MAX, NET_FRAME_RESULT,      true,  0      },
        {"an end of too many",     9 + NET_FRAME_TEXT_BYTES_MAX, NET_FRAME_RESULT,      true,  -EPROTO},
        {"known, too long",        1 << 20,                      NET_FRAME_CERTIFICATE, true,  -EPROTO},
        {"no kind",                1,                            0,                     true,  -EPROTO},
        {"an unknown kind",        1,                            NET_FRAME_KINDS,       true,  -EPROTO},
        {"a kind from afar",       1,                            UINT32_MAX,            true,  -EPROTO},
        {"a request, to root",     64,                           NET_FRAME_REQUEST,     true,  -EPROTO},
        {"certificates, to root",  64,                           NET_FRAME_IDENTITY,    true,  -EPROTO},
        {"a question, to root",    64,                           NET_FRAME_JOIN,        true,  -EPROTO},
        {"a cancel, to root",      0,                            NET_FRAME_CANCEL,      true,  -EPROTO},
        {"a request",              64,                           NET_FRAME_REQUEST,     false, 0      },
        {"a request without head", 15,                           NET_FRAME_REQUEST,     false, -EPROTO},
        {"a request too long",     (64U << 20) + 1,              NET_FRAME_REQUEST,     false, -EPROTO},
        {"a cancel with a tail",   1,                            NET_FRAME_CANCEL,      false, -EPROTO},
        {"a piece, from root",     1,                            NET_FRAME_DATA,        false, -EPROTO},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t head[3] = {rows[i].len, rows[i].kind, 1};
        struct net_frame f = {0};
        ssize_t got = net_frame_read((const char *)head, sizeof head, rows[i].to_root, &f);
        if (got != rows[i].want)
            fail_msg("%s: %zd, not %d", rows[i].label, got, rows[i].want);
        assert_int_equal(f.kind, 0);
    }
}

static void texts_are_made_printable(void **state)
{
    char text[NET_FRAME_TEXT_BYTES_MAX + 1], longest[NET_FRAME_TEXT_BYTES_MAX + 9];
    (void)state;
    net_frame_take_printable(&(struct net_frame){.at = "a\nb\33[m\0\377c", .len = 9}, text);
    assert_string_equal(text, "a?b?[m??c");
    net_frame_take_printable(&(struct net_frame){.at = "", .len = 0}, text);
    assert_string_equal(text, "");
    memset(longest, 'x', sizeof longest);
    net_frame_take_printable(&(struct net_frame){.at = longest, .len = sizeof longest}, text);
    assert_int_equal(strlen(text), NET_FRAME_TEXT_BYTES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_frame_round_trip),
        cmocka_unit_test(unterminated_texts_are_rejected),
        cmocka_unit_test(invalid_frames_are_rejected),
        cmocka_unit_test(texts_are_made_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
