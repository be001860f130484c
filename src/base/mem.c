/* mem.c - checked allocation. */
#include "base/mem.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_NO_MEMORY = 71 };

static void *checked(void *p, size_t size)
{
    if (p || size == 0)
        return p;
    (void)fprintf(stderr, "berth: out of memory (asked for %zu bytes)\n", size);
    _Exit(EXIT_NO_MEMORY);
}

static size_t product(size_t len, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(len, size, &bytes))
        (void)checked(NULL, SIZE_MAX);
    return bytes;
}

void *mem_alloc(size_t size)
{
    return checked(malloc(size), size);
}

void *mem_zalloc(size_t size)
{
    return checked(calloc(1, size), size);
}

void *mem_alloc_aligned(size_t align, size_t size)
{
    if (size > SIZE_MAX - (align - 1))
        return checked(NULL, size);
    size = (size + align - 1) & ~(align - 1); /* aligned_alloc requires a multiple of the alignment */
    return checked(aligned_alloc(align, size), size);
}

void *mem_array(size_t len, size_t size)
{
    return mem_alloc(product(len, size));
}

void *mem_zarray(size_t len, size_t size)
{
    return checked(calloc(len, size), product(len, size));
}

void *mem_resize(void *old, size_t len, size_t size)
{
    size_t bytes = product(len, size);
    return checked(realloc(old, bytes), bytes);
}

char *mem_strdup(const char *s)
{
    size_t size = strlen(s) + 1;
    return memcpy(mem_alloc(size), s, size);
}

void mem_free(void *p)
{
    free(p);
}

void mem_keep_freed(size_t bytes)
{
    enum { LARGEST = 32 << 20 }; /* the largest threshold that malloc accepts */
    int keep = bytes > INT_MAX ? INT_MAX : (int)bytes;
    (void)mallopt(M_TRIM_THRESHOLD, keep);
    (void)mallopt(M_MMAP_THRESHOLD, keep < LARGEST ? keep : LARGEST);
}
