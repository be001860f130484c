/* map.h - a hash table from byte strings or 64-bit words to 32-bit numbers.
 *
 * Keys are not copied: they live in what the numbers index, and the caller's `same` compares them. Nothing iterates a
 * map: order would depend on history.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

struct map {
    uint64_t *hash; /* 0: empty, 1: deleted */
    uint32_t *value;
    size_t cap, len, dead;
};

/* Is entry `value` the key that `key` points to? */
typedef bool map_same(const void *ctx, uint32_t value, const void *key);

void map_done(struct map *m);
/* Makes *ret an equal of the map, with memory of its own. O(its capacity). */
void map_copy(const struct map *m, struct map *ret);
/* The value stored for key, or MAP_NONE. */
uint32_t map_find(const struct map *m, uint64_t hash, map_same *same, const void *ctx, const void *key);
/* Adds a key that is not there. */
void map_add(struct map *m, uint64_t hash, uint32_t value);
/* Removes a value that is there. */
void map_drop(struct map *m, uint64_t hash, uint32_t value);
