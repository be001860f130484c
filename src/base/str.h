/* str.h - a string that grows at its end, and small questions about text.
 *
 * For output that is built piece by piece: `CLEANUP(str) struct str s = {0};`, then str_add and its kin. `at` ends in a
 * NUL byte as soon as something was added; str_text is never NULL. Not for parsing and not for keeping: what lives as
 * long as a plan or a request belongs to base/arena.h. To add a piece of a new kind, write `str_add_<kind>` on top of
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

/* Frees the text and makes s empty. */
void str_done(struct str *s);
/* Makes s empty but keeps its memory. */
void str_clear(struct str *s);
/* Hands the text over, never NULL, to be freed with mem_free; s is empty afterwards. */
char *str_take(struct str *s);

/* Each appends at the end, in time of what is appended. The added text must not be part of s. */
void str_add_bytes(struct str *s, const void *p, size_t len);
static inline void str_add(struct str *s, const char *text)
{
    str_add_bytes(s, text, strlen(text)); /* which compilers know of a constant */
}
void str_add_char(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends a JSON string with its quotes: one line of valid UTF-8 without control characters, whatever the text holds.
 * A byte that belongs to no UTF-8 sequence becomes U+FFFD. */
void str_add_json(struct str *s, const char *text);
void str_add_json_bytes(struct str *s, const char *text, size_t len);

/* Is this well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF? NUL counts as a character. */
bool str_utf8_valid(const char *text, size_t len);

/* Reads a whole string as a decimal number: an optional '-', then digits, and nothing else. False, with *ret untouched,
 * for anything other or out of range. */
bool str_parse_i64(const char *s, int64_t *ret);

static inline const char *str_text(const struct str *s)
{
    return s->at ? s->at : "";
}

static inline void str_cleanup(struct str *s)
{
    str_done(s);
}

/* Decimal text of x in the caller's buffer, which is returned. */
const char *str_u64(uint64_t x, char buf[24]);
