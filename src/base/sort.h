/* sort.h - stable sorting without allocation. qsort(3) may call malloc and is not stable. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Sorts records by their 64-bit keys, ascending. `scratch` must have room for len records. O(len) for each byte that
 * differs between keys. */
struct keyed {
    uint64_t key;
    uint32_t value;
};
void sort_keyed(struct keyed *at, struct keyed *scratch, size_t len);

/* Sorts indices by `compare`, with merge sort. `scratch` must have room for len indices. */
typedef int sort_compare(const void *ctx, uint32_t a, uint32_t b);
void sort_indices(uint32_t *at, uint32_t *scratch, size_t len, sort_compare *compare, const void *ctx);
