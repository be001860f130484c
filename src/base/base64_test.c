/* base64_test.c - tests encoding and decoding, and rejection of invalid text. */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void known_texts_are_encoded(void **state)
{
    static const struct {
        const char *bytes, *text;
    } rows[] = {
        {"",         ""        },
        {"f",        "Zg=="    },
        {"fo",       "Zm8="    },
        {"foo",      "Zm9v"    },
        {"foob",     "Zm9vYg=="},
        {"foobar",   "Zm9vYmFy"},
        {"\xfb\xff", "+/8="    },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(str) struct str text = {0}, bytes = {0};
        str_add_base64(&text, rows[i].bytes, strlen(rows[i].bytes));
        assert_string_equal(str_text(&text), rows[i].text);
        assert_true(str_add_base64_bytes(&bytes, rows[i].text, strlen(rows[i].text)));
        assert_string_equal(str_text(&bytes), rows[i].bytes);
    }
}

static void every_length_round_trips(void **state)
{
    unsigned char all[300];
    (void)state;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)(i * 7);
    for (size_t len = 0; len <= sizeof all; len++) {
        CLEANUP(str) struct str text = {0}, bytes = {0};
        str_add_base64(&text, all, len);
        assert_int_equal(text.len, (len + 2) / 3 * 4);
        assert_true(str_add_base64_bytes(&bytes, str_text(&text), text.len));
        assert_int_equal(bytes.len, len);
        assert_memory_equal(str_text(&bytes), all, len);
    }
}

static void invalid_text_is_rejected(void **state)
{
    static const char *const rows[] = {
        "Z", "Zg", "Zg=", "Zg==Zg==", "Z===", "====", "=Zg=", "Zm9v\n", "Zm 9", "Zh==", "Zm9=", "Zm-v", "Zm9v=", "Zg=a",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(str) struct str bytes = {0};
        str_add(&bytes, "kept");
        if (str_add_base64_bytes(&bytes, rows[i], strlen(rows[i])))
            fail_msg("%s was taken", rows[i]);
        assert_string_equal(bytes.at, "kept");
        assert_int_equal(bytes.len, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts_are_encoded),
        cmocka_unit_test(every_length_round_trips),
        cmocka_unit_test(invalid_text_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
