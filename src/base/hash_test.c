/* hash_test.c - tests fixed results: journals store hashes, so the results never change. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void word_hashes_are_fixed(void **state)
{
    (void)state;
    static const struct {
        uint64_t word, want;
    } rows[] = {
        {0x0,                0x0000000000000000},
        {0x1,                0x5692161d100b05e5},
        {0x2,                0xdbd238973a2b148a},
        {0x9e3779b97f4a7c15, 0xe220a8397b1dcdaf},
        {0xffffffffffffffff, 0xb4d055fcf2cbbd7b},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(hash_u64(rows[i].word) == rows[i].want);
}

static void pair_hashes_are_fixed(void **state)
{
    (void)state;
    static const struct {
        uint64_t a, b, want;
    } rows[] = {
        {0x0,                0x0,                0x48218226ff3cd4bf},
        {0x0,                0x1,                0x9e0160293a33aaf7},
        {0x1,                0x0,                0xdce423fc82c0d5b8},
        {0xffffffffffffffff, 0xffffffffffffffff, 0x4650bc0eb3312e23},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(hash_pair(rows[i].a, rows[i].b) == rows[i].want);
}

static void byte_hashes_are_fixed_at_any_alignment(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        uint64_t seed, want;
    } rows[] = {
        {"",                                 0,  0,  0x33fe8bd4f9c57863},
        {"",                                 0,  1,  0x0a385ef24fa6a992},
        {"a",                                1,  0,  0xd029820cc4b71979},
        {"b",                                1,  0,  0xa255dd562092bdb4},
        {"abcdefg",                          7,  0,  0x241eb9d131073118},
        {"abcdefgh",                         8,  0,  0x66e9c500ce163ca0},
        {"abcdefghi",                        9,  0,  0x2ceaa7aa0dc80b0e},
        {"abcdefghi",                        9,  42, 0x74a71317ed7f1918},
        {"the same on every machine, twice", 32, 0,  0xa4bd84c5e8b0549f},
        {"\xff\x80\0\x7f",                   4,  0,  0x8027a0e392864e2a},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t shift = 0; shift < 8; shift++) { /* the alignment must not matter */
            _Alignas(8) char room[64];
            memset(room, (int)(0x11 * (shift + 1)), sizeof room); /* the surrounding bytes must not matter */
            memcpy(room + shift, rows[i].bytes, rows[i].len);
            assert_true(hash_bytes(room + shift, rows[i].len, rows[i].seed) == rows[i].want);
        }
}

static void every_byte_and_the_length_change_the_hash(void **state)
{
    (void)state;
    unsigned char bytes[40] = {0};
    for (size_t len = 0; len < sizeof bytes; len++) {
        uint64_t plain = hash_bytes(bytes, len, 0);
        assert_true(plain != hash_bytes(bytes, len + 1, 0));
        for (size_t i = 0; i < len; i++) {
            bytes[i] ^= 0x80;
            assert_true(plain != hash_bytes(bytes, len, 0));
            bytes[i] ^= 0x80;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(word_hashes_are_fixed),
        cmocka_unit_test(pair_hashes_are_fixed),
        cmocka_unit_test(byte_hashes_are_fixed_at_any_alignment),
        cmocka_unit_test(every_byte_and_the_length_change_the_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
