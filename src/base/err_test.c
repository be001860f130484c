/* err_test.c - tests that error texts are one line, terminated, and fit the buffer. */
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void err_set_stores_code_and_text(void **state)
{
    (void)state;
    struct berth_err err = {0};
    assert_int_equal(err_set(&err, EINVAL, "job %s: %d pods", "a", 3), -EINVAL);
    assert_int_equal(err.code, EINVAL);
    assert_string_equal(err.text, "job a: 3 pods");
    assert_int_equal(err_set(NULL, ENOENT, "nobody reads"), -ENOENT);
}

static void control_characters_are_replaced(void **state)
{
    (void)state;
    struct berth_err err = {0};
    (void)err_set(&err, EINVAL, "%s", "a\nb\x1b[0m\x7f caf\xc3\xa9");
    assert_string_equal(err.text, "a?b?[0m? caf\xc3\xa9");
    (void)err_prefix(&err, "line\t%d", 2);
    assert_string_equal(err.text, "line?2: a?b?[0m? caf\xc3\xa9");
}

static void prefix_is_prepended(void **state)
{
    (void)state;
    struct berth_err err = {0};
    (void)err_set(&err, ERANGE, "too large");
    assert_int_equal(err_prefix(&err, "%s", "pods"), -ERANGE);
    assert_int_equal(err_prefix(&err, "line %d", 7), -ERANGE);
    assert_string_equal(err.text, "line 7: pods: too large");
    assert_int_equal(err_prefix(NULL, "x"), -1);
}

static void old_text_may_be_an_argument(void **state)
{
    (void)state;
    struct berth_err err = {0};
    (void)err_set(&err, EIO, "disk");
    (void)err_set(&err, EIO, "%s and %s", err.text, err.text);
    (void)err_prefix(&err, "[%s]", err.text);
    assert_string_equal(err.text, "[disk and disk]: disk and disk");
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    for (int len = BERTH_ERR_TEXT_MAX - 4; len < BERTH_ERR_TEXT_MAX + 4; len++) {
        struct berth_err err = {0};
        (void)err_set(&err, E2BIG, "%0*d", len, 0);
        size_t kept = len < BERTH_ERR_TEXT_MAX ? (size_t)len : BERTH_ERR_TEXT_MAX - 1;
        assert_int_equal(strlen(err.text), kept);
        (void)err_prefix(&err, "ab");
        assert_memory_equal(err.text, "ab: 0", 5);
        assert_int_equal(strlen(err.text), BERTH_ERR_TEXT_MAX - 1);
        (void)err_prefix(&err, "%0*d", len, 1);
        assert_int_equal(strlen(err.text), BERTH_ERR_TEXT_MAX - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(err_set_stores_code_and_text), cmocka_unit_test(control_characters_are_replaced),
        cmocka_unit_test(prefix_is_prepended),          cmocka_unit_test(old_text_may_be_an_argument),
        cmocka_unit_test(long_texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
