/* hash.c - hashing of byte strings. */
#include "base/hash.h"

#include <string.h>

uint64_t hash_bytes(const void *p, size_t len, uint64_t seed)
{
    const unsigned char *at = p;
    uint64_t h = hash_pair(seed, len);

    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word = 0;
        for (int i = 0; i < 8; i++) /* Reads little-endian on every machine; compilers turn the loop into one load. */
            word |= (uint64_t)at[i] << (8 * i);
        h = hash_u64(h ^ word) + 0x9e3779b97f4a7c15u;
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < len; i++)
        tail |= (uint64_t)at[i] << (8 * i);
    return hash_u64(h ^ tail);
}
