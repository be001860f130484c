/* page.h - bounds one page of a list in bytes, so that no answer is larger than about PAGE_BYTES_MAX.
 *
 * A page counts the bytes of its items as JSON text. An item that does not fit goes to the next page. The first item
 * always fits, so a client that follows `continue` reaches the end. Items are objects whose size is bounded when they
 * are stored.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { PAGE_BYTES_MAX = 1 << 20 };

struct list_page {
    json_t *items; /* an array, owned by the caller */
    size_t bytes;
};

/* Returns the bytes of the value as compact JSON text, without the few bytes of escapes. O(value), without writing the
 * text. */
size_t json_text_bytes(const json_t *value);
/* Tells whether an item of at least this many bytes fits. */
bool page_fits(const struct list_page *p, size_t bytes);
/* Appends the item and consumes the reference in any case. Returns false and drops the item if the page is full.
 * `stored_bytes` is the length of the stored document of the item, which includes escapes; 0: unknown. */
bool page_add(struct list_page *p, json_t *item, size_t stored_bytes);
