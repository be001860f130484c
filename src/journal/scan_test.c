/* scan_test.c - tests the JSON scanner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "journal/scan.h"

static struct bytes text(const char *s)
{
    return (struct bytes){s, strlen(s)};
}

static void members_are_found_at_any_position(void **state)
{
    (void)state;
    static const struct {
        const char *object, *key, *want; /* NULL: absent */
    } rows[] = {
        {"{\"a\":1}",                             "a",  "1"            },
        {"{\"a\":1,\"b\":[1,{\"c\":2}]}",         "b",  "[1,{\"c\":2}]"},
        {"{\"a\":{\"b\":1},\"b\":2}",             "b",  "2"            },
        {"{\"a\":\"}\\\",\\\"b\\\":3\",\"b\":4}", "b",  "4"            },
        {"{\"a\":\"x\\\\\",\"b\":null}",          "b",  "null"         },
        {"{\"a\":-1.5e3,\"bb\":true}",            "bb", "true"         },
        {"{\"a\":{\"b\":1}}",                     "b",  NULL           },
        {"{}",                                    "a",  NULL           },
        {"[1]",                                   "a",  NULL           },
        {"{\"a\":[1",                             "a",  NULL           },
        {"{\"a",                                  "a",  NULL           },
        {"",                                      "a",  NULL           },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes found = {0};
        bool there = scan_member(text(rows[i].object), rows[i].key, &found);
        if (there != (rows[i].want != NULL) ||
            (there && (found.len != strlen(rows[i].want) || memcmp(found.at, rows[i].want, found.len) != 0)))
            fail_msg("%s of %s: %.*s", rows[i].key, rows[i].object, (int)found.len,
                     found.len ? (const char *)found.at : "");
    }
}

static void arrays_are_walked(void **state)
{
    (void)state;
    static const struct {
        const char *array, *want;
    } rows[] = {
        {"[]",                           ""                           },
        {"[1,\"a,]\",[2,3],{\"x\":[]}]", "1|\"a,]\"|[2,3]|{\"x\":[]}|"},
        {"[[\"k\"],null]",               "[\"k\"]|null|"              },
        {"{}",                           ""                           },
        {"[1,[2",                        "1|"                         },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(str) struct str got = {0};
        const char *at = NULL;
        for (struct bytes one; scan_next(text(rows[i].array), &at, &one);) {
            str_add_bytes(&got, one.at, one.len);
            str_add_char(&got, '|');
        }
        assert_string_equal(str_text(&got), rows[i].want);
    }
}

static void values_are_read(void **state)
{
    (void)state;
    struct bytes o = text(
        "{\"n\":18446744073709551615,\"i\":-7,\"h\":\"00000000deadbeef\",\"t\":\"a\\\"\\\\\\u00e4\\n\",\"x\":1.5}");
    CLEANUP(str) struct str got = {0};
    struct bytes value;
    assert_true(scan_u64(o, "n", 0) == UINT64_MAX);
    assert_int_equal(scan_i64(o, "i", 0), -7);
    assert_int_equal(scan_i64(o, "x", 3), 3);
    assert_int_equal(scan_hex(o, "h", 0), 0xdeadbeef);
    assert_int_equal(scan_hex(o, "n", 5), 5);
    assert_int_equal(scan_u64(o, "none", 9), 9);
    assert_true(scan_member(o, "t", &value) && scan_text(value, &got));
    assert_string_equal(str_text(&got), "a\"\\\xc3\xa4\n");
    assert_false(scan_text(text("12"), &got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_at_any_position),
        cmocka_unit_test(arrays_are_walked),
        cmocka_unit_test(values_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
