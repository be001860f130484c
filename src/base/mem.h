/* mem.h - heap memory that is there or ends the process.
 *
 * Inputs are bounded at the edge, so running out of memory is an operating failure of the whole machine: one line is
 * written and the process exits (status 71); everything acknowledged is on disk by then. No caller checks for NULL.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
/* The address is a multiple of `align`, a power of two: for types that are aligned beyond what malloc promises. */
void *mem_alloc_aligned(size_t align, size_t size);
/* Array forms; the product is checked. */
void *mem_array(size_t len, size_t size);
void *mem_zarray(size_t len, size_t size);
void *mem_resize(void *old, size_t len, size_t size);
char *mem_strdup(const char *s);
void mem_free(void *p);
/* Up to so many bytes that are freed stay with the process: who takes and frees much again and again gets the same pages, not
 * new ones that the system must clear first. To be called once, by a program. */
void mem_keep(size_t bytes);

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
