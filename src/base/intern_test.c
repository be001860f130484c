/* intern_test.c - tests that equal strings get equal numbers. */
#include "base/intern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { STRINGS = 5000 };

static void empty_string_has_id_zero(void **state)
{
    (void)state;
    struct intern in;
    intern_init(&in);
    assert_int_equal(intern_put(&in, ""), 0);
    assert_int_equal(intern_put(&in, NULL), 0);
    assert_int_equal(intern_find(&in, ""), 0);
    assert_string_equal(intern_text(&in, 0), "");
    intern_done(&in);
}

static void equal_strings_get_equal_numbers(void **state)
{
    (void)state;
    struct intern in;
    intern_init(&in);
    static sym syms[STRINGS];
    char text[32];

    for (int i = 0; i < STRINGS; i++) {
        (void)snprintf(text, sizeof text, "node-%d", i);
        assert_int_equal(intern_find(&in, text), MAP_NONE);
        syms[i] = intern_put(&in, text);
        assert_int_equal(intern_find(&in, text), syms[i]);
    }
    memset(text, 'x', sizeof text); /* interned strings are copies */
    for (int i = 0; i < STRINGS; i++) {
        (void)snprintf(text, sizeof text, "node-%d", i);
        assert_int_equal(intern_put(&in, text), syms[i]);
        assert_string_equal(intern_text(&in, syms[i]), text);
    }
    assert_int_equal(in.strings.len, STRINGS + 1); /* all strings differ, none is stored twice */
    intern_done(&in);
}

static void interned_texts_do_not_move(void **state)
{
    (void)state;
    struct intern in;
    intern_init(&in);
    sym first = intern_put(&in, "first");
    const char *text = intern_text(&in, first);
    for (int i = 0; i < STRINGS; i++) {
        char more[64];
        (void)snprintf(more, sizeof more, "%050d", i);
        (void)intern_put(&in, more);
    }
    assert_ptr_equal(intern_text(&in, first), text);
    assert_string_equal(text, "first");
    intern_done(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_string_has_id_zero),
        cmocka_unit_test(equal_strings_get_equal_numbers),
        cmocka_unit_test(interned_texts_do_not_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
