/* bits_test.c - compares bit sets with an array of bools. */
#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"

enum { LEN = 200, WORDS = 4 };

static void sizes_round_up(void **state)
{
    (void)state;
    static const struct {
        size_t len, want;
    } rows[] = {
        {0,   0},
        {1,   1},
        {63,  1},
        {64,  1},
        {65,  2},
        {128, 2},
        {129, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(bits_words(rows[i].len), rows[i].want);
}

static void bit_set_matches_array_of_bools(void **state)
{
    (void)state;
    uint64_t bits[WORDS] = {0};
    bool model[LEN] = {0};
    assert_int_equal(bits_words(LEN), WORDS);

    for (uint64_t step = 0; step < 3000; step++) {
        uint64_t random = hash_u64(step + 1);
        size_t i = random % LEN;
        model[i] = random >> 32 & 1;
        if (model[i])
            bits_add(bits, i);
        else
            bits_drop(bits, i);

        size_t count = 0;
        for (size_t k = 0; k < LEN; k++) {
            assert_int_equal(bits_has(bits, k), model[k]);
            count += model[k];
        }
        assert_int_equal(bits_count(bits, WORDS), count);
    }
}

static void each_visits_members_in_order(void **state)
{
    (void)state;
    static const uint64_t words[] = {
        0, 1, (uint64_t)1 << 63, UINT64_MAX, 0x8000000000000001, 0x00ff00f00a050000,
    };
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        uint64_t seen = 0, last = 0;
        BITS_EACH (i, words[w]) {
            assert_true(seen == 0 || i > last);
            seen |= (uint64_t)1 << i;
            last = i;
        }
        assert_true(seen == words[w]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_round_up),
        cmocka_unit_test(bit_set_matches_array_of_bools),
        cmocka_unit_test(each_visits_members_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
