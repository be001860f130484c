/* bits.h - bit sets: sets of small integers in 64-bit words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t bits_words(size_t len)
{
    return (len + 63) / 64;
}

static inline bool bits_has(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static inline void bits_add(uint64_t *bits, size_t i)
{
    bits[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline void bits_drop(uint64_t *bits, size_t i)
{
    bits[i / 64] &= ~((uint64_t)1 << (i % 64));
}

static inline unsigned bits_low(uint64_t word)
{
    return (unsigned)__builtin_ctzll(word);
}

static inline size_t bits_count(const uint64_t *bits, size_t words)
{
    size_t n = 0;
    for (size_t w = 0; w < words; w++)
        n += (size_t)__builtin_popcountll(bits[w]);
    return n;
}

/* Runs the loop body for each member `i` of one word, in ascending order. */
#define BITS_EACH(i, word)                                                                                             \
    for (uint64_t rest_##i = (word), i = 0; rest_##i && ((i = bits_low(rest_##i)), 1); rest_##i &= rest_##i - 1)
