/* pages.h - a table that can be frozen: copy-on-write pages of equal records.
 *
 * `pages_share` makes a second table over the same pages in time of the number of pages, not of records; whoever
 * writes first copies the one page it writes. Reference counts are atomic, so that a frozen table may be read and
 * dropped on another thread while the first goes on changing. The last reference to a page frees it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PAGE_SHIFT = 8, PAGE_LEN = 1 << PAGE_SHIFT };

struct page;

struct pages {
    size_t record; /* bytes */
    uint32_t len;  /* records */
    size_t pages_len, pages_cap;
    unsigned char **at; /* each to the data of a page */
};

void pages_init(struct pages *t, size_t record);
void pages_done(struct pages *t);
/* Makes *ret a frozen equal of t. */
void pages_share(const struct pages *t, struct pages *ret);
/* Appends a zeroed record and returns its index. */
uint32_t pages_push(struct pages *t);
/* For writing; valid until the next share or write. */
void *pages_edit(struct pages *t, uint32_t ix);

static inline const void *pages_at(const struct pages *t, uint32_t ix)
{
    return t->at[ix >> PAGE_SHIFT] + (size_t)(ix & (PAGE_LEN - 1)) * t->record;
}
