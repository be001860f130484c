/* sort.c - radix sort of keyed records, merge sort of indices. */
#include "base/sort.h"

#include <stdbool.h>
#include <string.h>

enum { RUN = 12, FEW = 32, NARROW = 8, WIDE = 11, MANY = 8192 };

/* Distributes the records by one digit of their keys. `start` must have room for the number of digit values plus
 * one. */
static void sort_digit(const struct keyed *from, struct keyed *to, size_t len, unsigned shift, unsigned bits,
                       size_t *start)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    memset(start, 0, ((size_t)mask + 2) * sizeof *start);
    for (size_t i = 0; i < len; i++)
        start[(from[i].key >> shift & mask) + 1]++;
    for (size_t b = 0; b <= mask; b++)
        start[b + 1] += start[b];
    for (size_t i = 0; i < len; i++)
        to[start[from[i].key >> shift & mask]++] = from[i];
}

/* Sorts with insertion sort, which is stable. For few records the tables of a radix sort cost more. */
static void sort_few(struct keyed *at, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        struct keyed x = at[i];
        size_t j = i;
        for (; j > 0 && at[j - 1].key > x.key; j--)
            at[j] = at[j - 1];
        at[j] = x;
    }
}

void sort_keyed(struct keyed *at, struct keyed *scratch, size_t len)
{
    size_t start[(1 << WIDE) + 1];
    unsigned bits = len < MANY ? NARROW : WIDE; /* for many records, fewer passes outweigh larger tables */
    struct keyed *from = at, *to = scratch;
    uint64_t all_or = 0, all_and = UINT64_MAX, last = 0;
    bool sorted = true;

    if (len <= FEW) {
        sort_few(at, len);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        all_or |= at[i].key;
        all_and &= at[i].key;
        sorted &= at[i].key >= last;
        last = at[i].key;
    }
    if (sorted)
        return; /* equal keys are already in order */
    for (unsigned shift = 0; shift < 64; shift += bits) {
        if (((all_or ^ all_and) >> shift & (((uint64_t)1 << bits) - 1)) == 0)
            continue; /* all keys have the same digit here */
        sort_digit(from, to, len, shift, bits, start);
        struct keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != at)
        memcpy(at, from, len * sizeof *at);
}

static void sort_run(uint32_t *at, size_t len, sort_compare *compare, const void *ctx)
{
    for (size_t i = 1; i < len; i++) {
        uint32_t x = at[i];
        size_t j = i;
        for (; j > 0 && compare(ctx, at[j - 1], x) > 0; j--)
            at[j] = at[j - 1];
        at[j] = x;
    }
}

static void merge(const uint32_t *from, uint32_t *to, size_t mid, size_t len, sort_compare *compare, const void *ctx)
{
    size_t a = 0, b = mid;
    for (size_t i = 0; i < len; i++) {
        if (a < mid && (b >= len || compare(ctx, from[a], from[b]) <= 0))
            to[i] = from[a++];
        else
            to[i] = from[b++];
    }
}

void sort_indices(uint32_t *at, uint32_t *scratch, size_t len, sort_compare *compare, const void *ctx)
{
    for (size_t i = 0; i < len; i += RUN)
        sort_run(at + i, len - i < RUN ? len - i : RUN, compare, ctx);

    uint32_t *from = at, *to = scratch;
    for (size_t width = RUN; width < len; width *= 2) {
        for (size_t i = 0; i < len; i += 2 * width) {
            size_t n = len - i < 2 * width ? len - i : 2 * width;
            merge(from + i, to + i, width < n ? width : n, n, compare, ctx);
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != at)
        memcpy(at, from, len * sizeof *at);
}
