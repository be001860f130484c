/* lanes_test.c - compares each vectorised loop with a plain loop, including extreme values. */
#include "base/lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"

enum { ROUNDS = 4000, OFFSETS = 7 };

static uint64_t draw(uint64_t *seed)
{
    return hash_u64(*seed += 0x9e3779b97f4a7c15u);
}

static uint64_t seed_first(void)
{
    const char *set = getenv("BERTH_TEST_SEED");
    uint64_t seed = set ? strtoull(set, NULL, 0) : 1;
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

static const int64_t extremes64[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
static const int32_t extremes32[] = {INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX - 1, INT32_MAX};

/* Draws from few distinct values, so that equal values are common; some values are extreme. */
static int64_t draw64(uint64_t *seed)
{
    uint64_t x = draw(seed);
    return x % 3 == 0 ? extremes64[x / 3 % 7] : x % 3 == 1 ? (int64_t)(x / 3 % 9) - 4 : (int64_t)draw(seed);
}

static int32_t draw32(uint64_t *seed)
{
    uint64_t x = draw(seed);
    return x % 3 == 0 ? extremes32[x / 3 % 7] : x % 3 == 1 ? (int32_t)(x / 3 % 9) - 4 : (int32_t)(uint32_t)draw(seed);
}

static void wide_lanes_match_a_loop(void **state)
{
    (void)state;
    uint64_t seed = seed_first();
    for (int round = 0; round < ROUNDS; round++) {
        int64_t room[LANES + OFFSETS];
        int64_t *column = room + round % OFFSETS; /* segments start at any offset */
        for (unsigned i = 0; i < LANES; i++)
            column[i] = draw64(&seed);
        int64_t amount = round % 2 ? column[draw(&seed) % LANES] : draw64(&seed), most = column[0];
        uint64_t bits = 0;
        for (unsigned i = 0; i < LANES; i++) {
            bits |= (uint64_t)(column[i] >= amount) << i;
            most = column[i] > most ? column[i] : most;
        }
        if (lanes_at_least(column, amount) != bits || lanes_max64(column) != most)
            fail_msg("round %d", round);
    }
}

static void narrow_lanes_match_a_loop(void **state)
{
    (void)state;
    uint64_t seed = seed_first();
    for (int round = 0; round < ROUNDS; round++) {
        int32_t room[LANES + OFFSETS];
        int32_t *column = room + round % OFFSETS;
        for (unsigned i = 0; i < LANES; i++)
            column[i] = draw32(&seed);
        int32_t most = column[0], x = column[draw(&seed) % LANES];
        uint32_t first = 0;
        for (unsigned i = 0; i < LANES; i++)
            most = column[i] > most ? column[i] : most;
        while (column[first] != x)
            first++;
        if (lanes_max32(column) != most || lanes_find32(column, x) != first)
            fail_msg("round %d", round);
    }
}

static void every_lane_is_compared(void **state)
{
    (void)state;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        int64_t wide[LANES];
        int32_t narrow[LANES];
        for (unsigned i = 0; i < LANES; i++) {
            wide[i] = INT64_MIN;
            narrow[i] = INT32_MIN;
        }
        assert_true(lanes_at_least(wide, INT64_MIN) == UINT64_MAX);
        wide[lane] = INT64_MAX;
        narrow[lane] = INT32_MAX;
        assert_true(lanes_at_least(wide, INT64_MAX) == (uint64_t)1 << lane);
        assert_true(lanes_max64(wide) == INT64_MAX);
        assert_int_equal(lanes_max32(narrow), INT32_MAX);
        assert_int_equal(lanes_find32(narrow, INT32_MAX), lane);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_lanes_match_a_loop),
        cmocka_unit_test(narrow_lanes_match_a_loop),
        cmocka_unit_test(every_lane_is_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
