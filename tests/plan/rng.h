/* rng.h - seeded random numbers for tests: splitmix64, the same on every machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t x = r->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Returns 0 to n - 1; 0 if n is 0. */
static inline uint32_t rng_below(struct rng *r, size_t n)
{
    return n ? (uint32_t)(rng_next(r) % n) : 0;
}

/* Returns low to high, both included. */
static inline int64_t rng_range(struct rng *r, int64_t low, int64_t high)
{
    return low + (int64_t)(rng_next(r) % (uint64_t)(high - low + 1));
}

static inline bool rng_chance(struct rng *r, unsigned percent)
{
    return rng_next(r) % 100 < percent;
}

/* Picks one of the values, all of the given type. */
#define RNG_PICK(r, type, ...)                                                                                         \
    ((const type[]){__VA_ARGS__})[rng_below((r), sizeof((const type[]){__VA_ARGS__}) / sizeof(type))]
