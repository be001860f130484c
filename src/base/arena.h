/* arena.h - an arena allocator: all memory of one plan, request or cluster is freed at once.
 *
 * Chunks double in size up to a cap; a larger request gets its own chunk. Pointers stay valid until arena_done or a
 * rewind to an earlier mark. An arena cannot free single blocks: use base/mem.h for those.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunk;
    size_t bytes; /* allocated from the heap so far */
};

void arena_init(struct arena *a);
void arena_done(struct arena *a);

/* Returns memory that is 16-byte aligned. `arena_zalloc` also zeroes the memory. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_zalloc(struct arena *a, size_t size);
/* Returns memory that is 64-byte aligned and zeroed, for columns that are read one cache line at a time. */
void *arena_column(struct arena *a, size_t len, size_t size);
void *arena_dup(struct arena *a, const void *p, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_fmt(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Position in an arena. arena_rewind frees everything that was allocated since the mark. */
struct arena_mark {
    struct arena_chunk *chunk;
    size_t used;
};
struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark mark);

#define ARENA_ARRAY(a, type, len) ((type *)arena_zalloc((a), arena_product((len), sizeof(type))))
#define ARENA_NEW(a, type) ((type *)arena_zalloc((a), sizeof(type)))

/* Returns len * size. On overflow, ends the process as base/mem.h does. */
size_t arena_product(size_t len, size_t size);
