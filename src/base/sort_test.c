/* sort_test.c - compares both sorts with insertion sort, which is stable. */
#include "base/sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"

enum { LEN_MAX = 300, ROUNDS = 600 };

/* Masks for random keys: few bits make many equal keys; high bits find a radix sort that stops too early. */
static const uint64_t masks[] = {
    0, 1, 7, 0xff, 0xff00, 0xff000000000000ff, (uint64_t)1 << 63, 0x00f0000000f00000, UINT64_MAX,
};

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

static void sort_naive(struct keyed *at, size_t len)
{
    for (size_t i = 1; i < len; i++)
        for (size_t j = i; j > 0 && at[j - 1].key > at[j].key; j--) {
            struct keyed swap = at[j];
            at[j] = at[j - 1];
            at[j - 1] = swap;
        }
}

static int compare_keys(const void *ctx, uint32_t a, uint32_t b)
{
    const struct keyed *keyed = ctx;
    return keyed[a].key < keyed[b].key ? -1 : keyed[a].key > keyed[b].key;
}

static void sorts_match_a_naive_one_and_are_stable(void **state)
{
    (void)state;
    uint64_t seed = seed_first();
    for (int round = 0; round < ROUNDS; round++) {
        static struct keyed input[LEN_MAX], want[LEN_MAX], got[LEN_MAX], scratch[LEN_MAX];
        static uint32_t indices[LEN_MAX], indices_scratch[LEN_MAX];
        size_t len = round < 40 ? (size_t)round : draw(&seed) % LEN_MAX;
        uint64_t mask = masks[draw(&seed) % (sizeof masks / sizeof *masks)];

        for (uint32_t i = 0; i < len; i++) {
            input[i] = (struct keyed){draw(&seed) & mask, i}; /* the value distinguishes records with equal keys */
            want[i] = got[i] = input[i];
            indices[i] = i;
        }
        sort_naive(want, len);
        sort_keyed(got, scratch, len);
        sort_indices(indices, indices_scratch, len, compare_keys, input);
        for (size_t i = 0; i < len; i++) {
            if (got[i].key != want[i].key || got[i].value != want[i].value)
                fail_msg("sort_keyed: round %d, len %zu, mask %llx, place %zu", round, len, (unsigned long long)mask,
                         i);
            if (indices[i] != want[i].value)
                fail_msg("sort_indices: round %d, len %zu, mask %llx, place %zu", round, len, (unsigned long long)mask,
                         i);
        }
    }
}

static void empty_input_is_sorted(void **state)
{
    (void)state;
    sort_keyed(NULL, NULL, 0);
    sort_indices(NULL, NULL, 0, compare_keys, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_match_a_naive_one_and_are_stable),
        cmocka_unit_test(empty_input_is_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
