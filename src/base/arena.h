/* arena.h - memory that is freed all at once: one arena per plan, per request, per cluster.
 *
 * Chunks double up to a cap; a request larger than that gets a chunk of its own. Pointers stay valid until
 * arena_done or a rewind to before them. Not for single frees: what comes and goes on its own belongs to base/mem.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunk;
    size_t bytes; /* taken from the heap so far */
};

void arena_init(struct arena *a);
void arena_done(struct arena *a);

/* 16-byte aligned. `arena_zalloc` is zeroed. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_zalloc(struct arena *a, size_t size);
/* 64-byte aligned and zeroed, for columns that are read a cache line at a time. */
void *arena_column(struct arena *a, size_t len, size_t size);
void *arena_dup(struct arena *a, const void *p, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_fmt(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Gives back everything that was taken since the mark. */
struct arena_mark {
    struct arena_chunk *chunk;
    size_t used;
};
struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark mark);

#define ARENA_ARRAY(a, type, len) ((type *)arena_zalloc((a), arena_product((len), sizeof(type))))
#define ARENA_NEW(a, type) ((type *)arena_zalloc((a), sizeof(type)))

/* Multiplies, ending the process on overflow as base/mem.h does. */
size_t arena_product(size_t len, size_t size);
