/* arena.c - bump allocation in growing chunks. */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { ALIGN = 16, COLUMN_ALIGN = 64, CHUNK_MIN = 8 * 1024, CHUNK_MAX = 16 * 1024 * 1024, TEXT_USUAL = 256 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    _Alignas(COLUMN_ALIGN) unsigned char data[];
};

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

void arena_done(struct arena *a)
{
    for (struct arena_chunk *c = a->chunk, *next; c; c = next) {
        next = c->next;
        mem_free(c);
    }
    arena_init(a);
}

struct arena_mark arena_mark(const struct arena *a)
{
    return (struct arena_mark){a->chunk, a->chunk ? a->chunk->used : 0};
}

void arena_rewind(struct arena *a, struct arena_mark mark)
{
    while (a->chunk != mark.chunk) {
        struct arena_chunk *newer = a->chunk;
        assert(newer); /* the mark belongs to this arena */
        if (!newer->next && newer->size == CHUNK_MIN) {
            newer->used = 0; /* The first chunk is empty again and is kept, so that the next use allocates nothing. */
            return;
        }
        a->chunk = newer->next;
        a->bytes -= sizeof *newer + newer->size;
        mem_free(newer);
    }
    if (a->chunk)
        a->chunk->used = mark.used;
}

size_t arena_product(size_t len, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(len, size, &bytes))
        mem_free(mem_array(SIZE_MAX, SIZE_MAX)); /* does not return */
    return bytes;
}

static void *take(struct arena *a, size_t size, size_t align)
{
    struct arena_chunk *c = a->chunk;
    if (c) {
        uintptr_t at = ((uintptr_t)c->data + c->used + align - 1) & ~(uintptr_t)(align - 1);
        size_t end = at - (uintptr_t)c->data + size;
        if (size <= c->size && end <= c->size) {
            c->used = end;
            return (void *)at;
        }
    }
    size_t want = c ? c->size * 2 : CHUNK_MIN;
    if (want > CHUNK_MAX)
        want = CHUNK_MAX;
    if (want < size)
        want = size;
    struct arena_chunk *fresh;
    size_t bytes;
    if (__builtin_add_overflow(sizeof *fresh, want, &bytes))
        bytes = SIZE_MAX; /* does not return */
    fresh = mem_alloc_aligned(_Alignof(struct arena_chunk), bytes);
    *fresh = (struct arena_chunk){.next = c, .used = size, .size = want};
    a->bytes += bytes;
    a->chunk = fresh;
    return fresh->data; /* a new chunk is aligned for every type */
}

void *arena_alloc(struct arena *a, size_t size)
{
    return take(a, size, ALIGN);
}

void *arena_zalloc(struct arena *a, size_t size)
{
    return memset(take(a, size, ALIGN), 0, size);
}

void *arena_column(struct arena *a, size_t len, size_t size)
{
    size_t bytes = arena_product(len, size);
    return memset(take(a, bytes, COLUMN_ALIGN), 0, bytes);
}

void *arena_dup(struct arena *a, const void *p, size_t size)
{
    void *copy = arena_alloc(a, size);
    return size ? memcpy(copy, p, size) : copy;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
    char *copy = arena_alloc(a, len + 1);
    if (len > 0)
        memcpy(copy, s, len);
    copy[len] = 0;
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

/* Formats into a local buffer first: most texts fit, and formatting twice costs twice the time. */
char *arena_fmt(struct arena *a, const char *fmt, ...)
{
    char tried[TEXT_USUAL];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int len = vsnprintf(tried, sizeof tried, fmt, ap);
    va_end(ap);
    char *text = arena_alloc(a, (size_t)len + 1);
    if ((size_t)len < sizeof tried)
        memcpy(text, tried, (size_t)len + 1);
    else
        (void)vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    return text;
}
