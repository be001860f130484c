/* mem.h - heap allocation that never returns NULL: a failed allocation ends the process.
 *
 * Inputs are bounded where they enter, so running out of memory is a failure of the whole machine. The process writes
 * one line and exits with status 71; everything acknowledged is already on disk. Callers do not check for NULL.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
/* Returns memory whose address is a multiple of `align`, a power of two; for types with a stricter alignment than
 * malloc guarantees. */
void *mem_alloc_aligned(size_t align, size_t size);
/* Array variants; the multiplication is checked for overflow. */
void *mem_array(size_t len, size_t size);
void *mem_zarray(size_t len, size_t size);
void *mem_resize(void *old, size_t len, size_t size);
char *mem_strdup(const char *s);
void mem_free(void *p);
/* Keeps up to `bytes` of freed memory in the process. A program that allocates and frees much memory repeatedly then
 * reuses the same pages, and the kernel does not have to clear new ones. A program calls this once. */
void mem_keep_freed(size_t bytes);

/* Moves ownership out of an owning local: returns *p and clears it. */
#define take_ptr(p)                                                                                                    \
    ({                                                                                                                 \
        __typeof__(*(p)) taken_ = *(p);                                                                                \
        *(p) = NULL;                                                                                                   \
        taken_;                                                                                                        \
    })

#define CLEANUP(type) __attribute__((cleanup(type##_cleanup)))

static inline void mem_cleanup(void *p)
{
    mem_free(*(void **)p);
}
