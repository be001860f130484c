/* str.h - a growable string, and functions for JSON quoting, UTF-8 and numbers.
 *
 * For output that is built in pieces: declare `CLEANUP(str) struct str s = {0};`, then call str_add and its variants.
 * `at` is NUL-terminated after the first append; str_text never returns NULL. Not for parsing. For text that lives as
 * long as a plan or a request, use base/arena.h. To add another kind of piece, write `str_add_<kind>` on top of
 * str_add_bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    char *at; /* NULL while empty; owned */
    size_t len, cap;
};

/* Frees the text and empties s. */
void str_done(struct str *s);
/* Empties s but keeps its memory. */
void str_clear(struct str *s);
/* Returns the text, never NULL, and empties s. The caller frees the text with mem_free. */
char *str_take(struct str *s);

/* Each function appends to s, in time proportional to the appended text. The text must not be part of s. */
void str_add_bytes(struct str *s, const void *p, size_t len);
static inline void str_add(struct str *s, const char *text)
{
    str_add_bytes(s, text, strlen(text)); /* compilers evaluate strlen of a constant */
}
void str_add_char(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends the text as a quoted JSON string: one line of valid UTF-8 without control characters. Each byte that belongs
 * to no UTF-8 sequence becomes U+FFFD. */
void str_add_json(struct str *s, const char *text);
void str_add_json_bytes(struct str *s, const char *text, size_t len);

/* Returns whether the text is well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. NUL is
 * allowed. */
bool str_utf8_valid(const char *text, size_t len);

/* Parses the whole string as a decimal number: an optional '-', then only digits. Returns false and leaves *ret
 * unchanged if the string has another form or the number is out of range. */
bool str_parse_i64(const char *s, int64_t *ret);

static inline const char *str_text(const struct str *s)
{
    return s->at ? s->at : "";
}

static inline void str_cleanup(struct str *s)
{
    str_done(s);
}

/* Formats x in decimal into the caller's buffer, and returns the buffer. */
const char *str_u64(uint64_t x, char buf[24]);
