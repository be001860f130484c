#include "cli/app/instance_choice.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void random_number_selects_by_weight(void **state)
{
    static const struct {
        uint32_t weights[4];
        size_t len;
        uint64_t random;
        size_t want;
    } rows[] = {
        {{5},       1, 0,                    0},
        {{5},       1, UINT64_MAX,           0},
        {{1, 1},    2, 0,                    0},
        {{1, 1},    2, (UINT64_MAX / 2),     0},
        {{1, 1},    2, (UINT64_MAX / 2) + 1, 1},
        {{1, 3},    2, (UINT64_MAX / 4),     0},
        {{1, 3},    2, (UINT64_MAX / 4) + 1, 1},
        {{0, 1, 0}, 3, 0,                    1},
        {{0, 0, 0}, 3, UINT64_MAX,           2},
        {{0, 0, 0}, 3, UINT64_MAX / 2,       1},
        {{100, 0},  2, UINT64_MAX,           0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(choice_weighted(rows[i].weights, rows[i].len, rows[i].random), rows[i].want);
}

/* Evenly spread numbers give each instance exactly its share, and an instance of weight 0 nothing. */
static void instances_get_their_share(void **state)
{
    static const uint32_t weights[] = {10, 0, 30, 60, 0};
    size_t times[5] = {0};
    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        times[choice_weighted(weights, 5, i * (UINT64_MAX / 1000) + 12345)]++;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(times[i], weights[i] * 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_number_selects_by_weight),
        cmocka_unit_test(instances_get_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
