/* str_test.c - tests building, quoting, UTF-8 and numbers. */
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void appended_pieces_are_joined(void **state)
{
    (void)state;
    CLEANUP(str) struct str s = {0};
    assert_string_equal(str_text(&s), "");
    str_add(&s, "");
    assert_string_equal(s.at, "");
    str_add(&s, "node");
    str_add_char(&s, ' ');
    str_addf(&s, "%s-%d", "n", 17);
    str_add_bytes(&s, ":xyz", 2);
    str_add_bytes(&s, NULL, 0);
    assert_string_equal(str_text(&s), "node n-17:x");
    assert_int_equal(s.len, 11);

    str_clear(&s);
    assert_string_equal(str_text(&s), "");
    str_add(&s, "again");
    CLEANUP(mem) char *taken = str_take(&s);
    assert_string_equal(taken, "again");
    assert_null(s.at);
    CLEANUP(mem) char *nothing = str_take(&s);
    assert_string_equal(nothing, "");
}

static void growth_keeps_every_byte(void **state)
{
    (void)state;
    CLEANUP(str) struct str s = {0};
    for (int i = 0; i < 3000; i++)
        str_addf(&s, "%04d", i);
    assert_int_equal(s.len, 12000);
    for (int i = 0; i < 3000; i++) {
        int64_t value;
        char four[5] = {0};
        memcpy(four, s.at + 4 * i, 4);
        assert_true(str_parse_i64(four, &value));
        assert_int_equal(value, i);
    }
    /* Appends one formatted piece that exceeds the remaining room, and one that exactly fills it. */
    CLEANUP(str) struct str t = {0};
    str_addf(&t, "%0200d", 1);
    assert_int_equal(strlen(t.at), 200);
    str_add_char(&t, ' ');
    str_addf(&t, "%0*d", (int)(t.cap - t.len - 1), 2);
    assert_int_equal(t.len, t.cap - 1);
    assert_int_equal(strlen(t.at), t.len);
}

#define LIT(s) s, sizeof s - 1

static void json_is_one_line_without_control_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *want;
    } rows[] = {
        {LIT(""),                                       "\"\""                                      },
        {LIT("plain / text"),                           "\"plain / text\""                          },
        {LIT("a\"b\\c"),                                "\"a\\\"b\\\\c\""                           },
        {LIT("\b\f\n\r\t"),                             "\"\\b\\f\\n\\r\\t\""                       },
        {LIT("\0\x01\x1f\x7f"),                         "\"\\u0000\\u0001\\u001f\\u007f\""          },
        {LIT("\xc2\x9b!\xc2\xa0"),                      "\"\\u009b!\xc2\xa0\""                      },
        {LIT("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x80"), "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x80\""},
        {LIT("a\xff"),                                  "\"a\xef\xbf\xbd\""                         },
        {LIT("\xc3"),                                   "\"\xef\xbf\xbd\""                          },
        {LIT("\xe2\x82z"),                              "\"\xef\xbf\xbd\xef\xbf\xbdz\""             },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(str) struct str s = {0};
        str_add_json_bytes(&s, rows[i].text, rows[i].len);
        assert_string_equal(s.at, rows[i].want);
        assert_true(str_utf8_valid(s.at, s.len));
    }
    CLEANUP(str) struct str s = {0};
    str_add_json(&s, "a\nb");
    assert_string_equal(s.at, "\"a\\nb\"");
}

/* A byte is written the same way at every position in the text. */
static void json_of_a_byte_is_the_same_at_any_position(void **state)
{
    enum { LEN = 19 };
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        CLEANUP(str) struct str alone = {0};
        str_add_json_bytes(&alone, (const char[]){(char)byte}, 1);
        for (size_t at = 0; at < LEN; at++) {
            CLEANUP(str) struct str want = {0}, got = {0};
            char text[LEN];
            memset(text, 'a', LEN);
            text[at] = (char)byte;
            str_add_char(&want, '"');
            str_add_bytes(&want, "aaaaaaaaaaaaaaaaaaa", at);
            str_add_bytes(&want, alone.at + 1, alone.len - 2);
            str_add_bytes(&want, "aaaaaaaaaaaaaaaaaaa", LEN - 1 - at);
            str_add_char(&want, '"');
            str_add_json_bytes(&got, text, LEN);
            assert_string_equal(got.at, want.at);
        }
    }
}

static void utf8_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *label, *text;
        size_t len;
        bool want;
    } rows[] = {
        {"empty",              LIT(""),                 true },
        {"ascii and NUL",      LIT("a\0b\x7f"),         true },
        {"two bytes, first",   LIT("\xc2\x80"),         true },
        {"two bytes, last",    LIT("\xdf\xbf"),         true },
        {"three bytes, first", LIT("\xe0\xa0\x80"),     true },
        {"before surrogates",  LIT("\xed\x9f\xbf"),     true },
        {"after surrogates",   LIT("\xee\x80\x80"),     true },
        {"four bytes, first",  LIT("\xf0\x90\x80\x80"), true },
        {"U+10FFFF",           LIT("\xf4\x8f\xbf\xbf"), true },
        {"lone continuation",  LIT("\x80"),             false},
        {"overlong two",       LIT("\xc1\xbf"),         false},
        {"overlong three",     LIT("\xe0\x9f\xbf"),     false},
        {"overlong four",      LIT("\xf0\x8f\xbf\xbf"), false},
        {"surrogate",          LIT("\xed\xa0\x80"),     false},
        {"above U+10FFFF",     LIT("\xf4\x90\x80\x80"), false},
        {"0xf5",               LIT("\xf5\x80\x80\x80"), false},
        {"cut two",            LIT("a\xc3"),            false},
        {"cut three",          LIT("\xe2\x82"),         false},
        {"cut four",           LIT("\xf0\x9f\x9a"),     false},
        {"broken inside",      LIT("\xf0\x9f(\x80"),    false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (str_utf8_valid(rows[i].text, rows[i].len) != rows[i].want)
            fail_msg("%s", rows[i].label);
}

static void number_must_be_the_whole_string(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        int64_t want;
    } rows[] = {
        {"0",                    true,  0        },
        {"-0",                   true,  0        },
        {"42",                   true,  42       },
        {"-42",                  true,  -42      },
        {"007",                  true,  7        },
        {"9223372036854775807",  true,  INT64_MAX},
        {"-9223372036854775808", true,  INT64_MIN},
        {"9223372036854775808",  false, 0        },
        {"-9223372036854775809", false, 0        },
        {"99999999999999999999", false, 0        },
        {"",                     false, 0        },
        {"-",                    false, 0        },
        {"--1",                  false, 0        },
        {"+1",                   false, 0        },
        {" 1",                   false, 0        },
        {"1 ",                   false, 0        },
        {"1.0",                  false, 0        },
        {"0x10",                 false, 0        },
        {"1e3",                  false, 0        },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t got = 12345;
        if (str_parse_i64(rows[i].text, &got) != rows[i].ok || got != (rows[i].ok ? rows[i].want : 12345))
            fail_msg("\"%s\" gives %lld", rows[i].text, (long long)got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_pieces_are_joined),
        cmocka_unit_test(growth_keeps_every_byte),
        cmocka_unit_test(json_is_one_line_without_control_characters),
        cmocka_unit_test(json_of_a_byte_is_the_same_at_any_position),
        cmocka_unit_test(utf8_is_checked),
        cmocka_unit_test(number_must_be_the_whole_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
