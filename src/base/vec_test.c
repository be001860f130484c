/* vec_test.c - tests growth and zeroing. */
#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct pair {
    int a, b;
};

static void pushed_elements_keep_their_values(void **state)
{
    (void)state;
    VEC(uint64_t) v = {0};
    for (uint64_t i = 0; i < 10000; i++)
        vec_push(&v, i * i);
    assert_int_equal(v.len, 10000);
    for (uint64_t i = 0; i < 10000; i++)
        assert_int_equal(v.at[i], i * i);
    vec_push(&v, v.at[100]); /* pushes an element of the vector itself, also when the vector moves */
    assert_int_equal(v.at[10000], 10000);
    vec_done(&v);
    assert_true(v.at == NULL && v.len == 0 && v.cap == 0);
}

static void growth_doubles(void **state)
{
    (void)state;
    VEC(char) v = {0};
    size_t moves = 0;
    for (size_t i = 0, cap = 0; i < 100000; i++) {
        vec_push(&v, 'x');
        moves += v.cap != cap;
        cap = v.cap;
    }
    assert_true(moves <= 16);
    vec_done(&v);

    vec_reserve(&v, 1000);
    assert_true(v.len == 0 && v.cap >= 1000);
    const char *at = v.at;
    vec_reserve(&v, 10);
    assert_ptr_equal(v.at, at);
    vec_done(&v);
}

static void resize_zeroes_what_is_new(void **state)
{
    (void)state;
    VEC(struct pair) v = {0};
    vec_resize(&v, 0);
    assert_null(v.at);
    vec_resize(&v, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_true(v.at[i].a == 0 && v.at[i].b == 0);
        v.at[i].a = 7;
    }
    vec_resize(&v, 5);
    vec_resize(&v, 100); /* the room of former elements is zeroed too */
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(v.at[i].a, i < 5 ? 7 : 0);
    vec_done(&v);
}

static void copy_is_independent(void **state)
{
    (void)state;
    VEC(struct pair) v = {0}, copy, none;
    vec_copy(&none, &v);
    assert_true(none.at == NULL && none.len == 0 && none.cap == 0);
    vec_push(&v, ((struct pair){1, 2}));
    vec_copy(&copy, &v);
    v.at[0].a = 7;
    vec_push(&copy, ((struct pair){3, 4}));
    assert_true(v.len == 1 && copy.len == 2 && copy.at[0].a == 1 && copy.at[1].b == 4);
    vec_done(&v);
    vec_done(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushed_elements_keep_their_values),
        cmocka_unit_test(growth_doubles),
        cmocka_unit_test(resize_zeroes_what_is_new),
        cmocka_unit_test(copy_is_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
