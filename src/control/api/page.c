#include "control/api/page.h"

#include <string.h>

enum { NUMBER_BYTES = 12, WORD_BYTES = 5, QUOTES_BYTES = 3 }; /* including the comma or colon that follows */

static size_t object_text_bytes(const json_t *value)
{
    size_t bytes = 2;
    const char *key;
    json_t *member;

    json_object_foreach((json_t *)value, key, member) bytes += strlen(key) + QUOTES_BYTES + json_text_bytes(member) + 1;
    return bytes;
}

size_t json_text_bytes(const json_t *value)
{
    size_t bytes = 2;

    switch (json_typeof(value)) {
    case JSON_OBJECT: return object_text_bytes(value);
    case JSON_ARRAY:
        for (size_t i = 0; i < json_array_size(value); i++)
            bytes += json_text_bytes(json_array_get(value, i)) + 1;
        return bytes;
    case JSON_STRING: return json_string_length(value) + QUOTES_BYTES;
    case JSON_INTEGER:
    case JSON_REAL: return NUMBER_BYTES;
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL: break;
    }
    return WORD_BYTES;
}

bool page_fits(const struct list_page *p, size_t bytes)
{
    return json_array_size(p->items) == 0 || bytes <= PAGE_BYTES_MAX - p->bytes;
}

bool page_add(struct list_page *p, json_t *item, size_t stored_bytes)
{
    size_t bytes = json_text_bytes(item);

    bytes = bytes > stored_bytes ? bytes : stored_bytes;
    if (!page_fits(p, bytes)) {
        json_decref(item);
        return false;
    }
    p->bytes += bytes < PAGE_BYTES_MAX - p->bytes ? bytes : PAGE_BYTES_MAX - p->bytes;
    (void)json_array_append_new(p->items, item);
    return true;
}
