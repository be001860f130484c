/* random.h - a seeded random number generator: splitmix64, the same on every machine.
 *
 * Each part of a simulation has its own stream, so an additional draw in one part does not change the others. Never
 * draw twice among the arguments of one call, because compilers evaluate arguments in different orders.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct random_stream {
    uint64_t state;
};

static inline struct random_stream random_stream_new(uint64_t seed, uint64_t stream)
{
    return (struct random_stream){hash_pair(seed, stream)};
}

static inline uint64_t random_next(struct random_stream *c)
{
    return hash_u64(c->state += 0x9e3779b97f4a7c15u);
}

/* Returns 0 to n - 1; 0 if n is 0. */
static inline size_t random_below(struct random_stream *c, size_t n)
{
    return n ? (size_t)(random_next(c) % n) : 0;
}

/* Returns low to high, both included. */
static inline int64_t random_range(struct random_stream *c, int64_t low, int64_t high)
{
    return low + (int64_t)(random_next(c) % (uint64_t)(high - low + 1));
}

/* Returns true with this probability, per mille. */
static inline bool random_per_mille(struct random_stream *c, unsigned per_mille)
{
    return random_next(c) % 1000 < per_mille;
}

/* Returns one of the arguments, which have the same type. */
#define RANDOM_PICK(c, type, ...)                                                                                      \
    ((const type[]){__VA_ARGS__})[random_below((c), sizeof((const type[]){__VA_ARGS__}) / sizeof(type))]
