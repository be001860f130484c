/* pages.h - a copy-on-write table: pages of equally sized records, which can be shared and frozen.
 *
 * `pages_share` makes a second table over the same pages; its cost depends on the number of pages, not of records. The
 * first writer of a shared page copies that page. Reference counts are atomic, so another thread may read and free a
 * frozen table while the original changes. The last reference to a page frees the page.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PAGE_SHIFT = 8, PAGE_LEN = 1 << PAGE_SHIFT };

struct page;

struct pages {
    size_t record; /* size in bytes */
    uint32_t len;  /* number of records */
    size_t pages_len, pages_cap;
    unsigned char **at; /* data pointers of the pages */
};

void pages_init(struct pages *t, size_t record);
void pages_done(struct pages *t);
/* Makes *ret a frozen copy of t that shares its pages. */
void pages_share(const struct pages *t, struct pages *ret);
/* Appends a zeroed record and returns its index. */
uint32_t pages_push(struct pages *t);
/* Returns a writable record; valid until the next share or write. */
void *pages_edit(struct pages *t, uint32_t ix);

static inline const void *pages_at(const struct pages *t, uint32_t ix)
{
    return t->at[ix >> PAGE_SHIFT] + (size_t)(ix & (PAGE_LEN - 1)) * t->record;
}
