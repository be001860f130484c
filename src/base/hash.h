/* hash.h - 64-bit hashes of bytes and words, for tables and fingerprints; not for secrets.
 *
 * The hashes are the same on every machine and compiler, so a journal may store them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bijective mixing function (the finaliser of splitmix64). */
static inline uint64_t hash_u64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t hash_pair(uint64_t a, uint64_t b)
{
    return hash_u64(hash_u64(a + 0x9e3779b97f4a7c15u) ^ b);
}

uint64_t hash_bytes(const void *p, size_t len, uint64_t seed);
