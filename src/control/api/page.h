/* page.h - bounds one page of a list in bytes, so that no answer is larger than about PAGE_BYTES_MAX.
 *
 * A page counts the bytes of its items as text. An item that does not fit is left for the next page; the first item always
 * fits, so a reader that follows `continue` reaches the end. Items are objects whose size is bounded when they are stored.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { PAGE_BYTES_MAX = 1 << 20 };

struct page {
    json_t *items; /* an array, the caller's */
    size_t bytes;
};

/* Bytes of the value as compact JSON text, without the few that escapes add. O(value), without making the text. */
size_t json_text_bytes(const json_t *value);
/* Would an item of at least so many bytes fit? */
bool page_fits(const struct page *p, size_t bytes);
/* Appends the item, which is taken in any case. False: the page is full, and the item is dropped. `stored_bytes` is the
 * length of the document that the item was made of: it counts the escapes; 0: unknown. */
bool page_add(struct page *p, json_t *item, size_t stored_bytes);
