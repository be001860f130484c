/* map_test.c - compares a map with an array. */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"

enum { KEYS = 700, STEPS = 200000 };

static uint64_t draw(uint64_t *seed)
{
    return hash_u64(*seed += 0x9e3779b97f4a7c15u);
}

/* The key of entry v is v. */
static bool same(const void *ctx, uint32_t value, const void *key)
{
    (void)ctx;
    return value == *(const uint32_t *)key;
}

static uint64_t hash_good(uint32_t key)
{
    return hash_u64(key);
}

/* Hashes 0 and 1 are reserved inside the map; the other hashes collide. */
static uint64_t hash_bad(uint32_t key)
{
    return key % 5;
}

static uint64_t hash_same_slot(uint32_t key)
{
    return (uint64_t)key << 40;
}

static void check_random_steps(uint64_t (*hash)(uint32_t), uint32_t keys, int steps, uint64_t seed)
{
    struct map m = {0};
    bool model[KEYS] = {0};
    size_t len = 0;

    for (int step = 0; step < steps; step++) {
        /* Alternates between mostly adding and mostly dropping, so that the map fills, empties and is rehashed in
         * place. */
        uint64_t random = draw(&seed);
        uint32_t key = (uint32_t)(random % keys);
        bool add = (random >> 32) % 8 < (step / 5000 % 2 ? 2 : 6);
        if (add && !model[key]) {
            map_add(&m, hash(key), key);
            model[key] = true;
            len++;
        } else if (!add && model[key]) {
            map_drop(&m, hash(key), key);
            model[key] = false;
            len--;
        }
        uint32_t asked = (uint32_t)((random >> 40) % keys);
        assert_int_equal(map_find(&m, hash(asked), same, NULL, &asked), model[asked] ? asked : MAP_NONE);
        assert_int_equal(m.len, len);
    }
    for (uint32_t key = 0; key < keys; key++)
        assert_int_equal(map_find(&m, hash(key), same, NULL, &key), model[key] ? key : MAP_NONE);
    assert_true(m.cap <= 4 * KEYS); /* dropped entries do not make the map grow */
    map_done(&m);
    assert_true(m.cap == 0 && m.len == 0);
}

static void random_steps_match_a_model(void **state)
{
    (void)state;
    const char *set = getenv("BERTH_TEST_SEED");
    uint64_t seed = set ? strtoull(set, NULL, 0) : 1;
    print_message("seed %llu\n", (unsigned long long)seed);
    check_random_steps(hash_good, KEYS, STEPS, seed);
    check_random_steps(hash_bad, 60, STEPS / 4, seed);
    check_random_steps(hash_same_slot, 60, STEPS / 4, seed);
}

static void an_empty_map_finds_nothing(void **state)
{
    (void)state;
    struct map m = {0};
    uint32_t key = 3;
    assert_int_equal(map_find(&m, 3, same, NULL, &key), MAP_NONE);
    map_done(&m);
}

static void copy_is_independent(void **state)
{
    (void)state;
    struct map m = {0}, copy, none;
    map_copy(&m, &none);
    for (uint32_t key = 0; key < 100; key++)
        map_add(&m, hash_good(key), key);
    map_copy(&m, &copy);
    for (uint32_t key = 0; key < 100; key += 2)
        map_drop(&m, hash_good(key), key);
    for (uint32_t key = 100; key < 200; key++)
        map_add(&copy, hash_good(key), key);
    for (uint32_t key = 0; key < 200; key++) {
        assert_int_equal(map_find(&copy, hash_good(key), same, NULL, &key), key);
        assert_int_equal(map_find(&m, hash_good(key), same, NULL, &key), key < 100 && key % 2 ? key : MAP_NONE);
        assert_int_equal(map_find(&none, hash_good(key), same, NULL, &key), MAP_NONE);
    }
    map_done(&m);
    map_done(&copy);
    map_done(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps_match_a_model),
        cmocka_unit_test(an_empty_map_finds_nothing),
        cmocka_unit_test(copy_is_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
