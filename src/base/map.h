/* map.h - a hash table from byte strings or 64-bit words to 32-bit numbers.
 *
 * The map does not copy keys: the keys are part of the objects that the numbers index, and the caller's `same` compares
 * them. A map cannot be iterated, because the order would depend on the history of insertions.
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

/* Returns whether entry `value` has the key that `key` points to. */
typedef bool map_same(const void *ctx, uint32_t value, const void *key);

void map_done(struct map *m);
/* Makes *ret an independent copy of the map. O(capacity). */
void map_copy(const struct map *m, struct map *ret);
/* Returns the value stored for the key, or MAP_NONE. */
uint32_t map_find(const struct map *m, uint64_t hash, map_same *same, const void *ctx, const void *key);
/* Adds an entry. The key must be absent. */
void map_add(struct map *m, uint64_t hash, uint32_t value);
/* Removes an entry. The entry must be present. */
void map_drop(struct map *m, uint64_t hash, uint32_t value);
