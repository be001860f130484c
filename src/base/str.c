/* str.c - string building, JSON quoting, UTF-8. */
#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { CAP_MIN = 64 };

static void __attribute__((noinline)) grow(struct str *s, size_t len)
{
    size_t want;
    if (__builtin_add_overflow(s->len + 1, len, &want))
        want = SIZE_MAX; /* mem_resize then ends the process */
    size_t cap = s->cap > SIZE_MAX / 2 ? SIZE_MAX : s->cap * 2;
    if (cap < CAP_MIN)
        cap = CAP_MIN;
    s->cap = cap > want ? cap : want;
    s->at = mem_resize(s->at, s->cap, 1);
}

/* Reserves room for len more bytes and the NUL. */
static inline void reserve(struct str *s, size_t len)
{
    if (s->cap - s->len <= len)
        grow(s, len);
}

void str_done(struct str *s)
{
    mem_free(s->at);
    *s = (struct str){0};
}

void str_clear(struct str *s)
{
    s->len = 0;
    if (s->at)
        s->at[0] = 0;
}

char *str_take(struct str *s)
{
    char *text = s->at ? s->at : mem_strdup("");
    *s = (struct str){0};
    return text;
}

/* Works like memcpy. Most copies are a few bytes, for which a function call costs more than the copy. The two halves
 * overlap if the length is not a power of two. */
static inline void copy(char *to, const char *from, size_t len)
{
    if (len > 16) {
        memcpy(to, from, len);
    } else if (len >= 8) {
        memcpy(to, from, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else if (len >= 4) {
        memcpy(to, from, 4);
        memcpy(to + len - 4, from + len - 4, 4);
    } else if (len > 0) {
        to[0] = from[0];
        to[len / 2] = from[len / 2];
        to[len - 1] = from[len - 1];
    }
}

void str_add_bytes(struct str *s, const void *p, size_t len)
{
    reserve(s, len);
    copy(s->at + s->len, p, len);
    s->len += len;
    s->at[s->len] = 0;
}

void str_add_char(struct str *s, char c)
{
    reserve(s, 1);
    s->at[s->len++] = c;
    s->at[s->len] = 0;
}

void str_addf(struct str *s, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    reserve(s, 0);
    int len = vsnprintf(s->at + s->len, s->cap - s->len, fmt, ap);
    va_end(ap);
    assert(len >= 0);
    if ((size_t)len >= s->cap - s->len) {
        reserve(s, (size_t)len);
        (void)vsnprintf(s->at + s->len, s->cap - s->len, fmt, again);
    }
    va_end(again);
    s->len += (size_t)len;
}

static bool is_continuation(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Returns the length of the UTF-8 sequence at p, or 0 if there is no valid sequence. len > 0. */
static size_t sequence_len(const unsigned char *p, size_t len)
{
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        return len >= 2 && is_continuation(p[1]) ? 2 : 0;
    if (p[0] >= 0xe0 && p[0] <= 0xef) {
        if (len < 3 || !is_continuation(p[1]) || !is_continuation(p[2]))
            return 0;
        bool overlong = p[0] == 0xe0 && p[1] < 0xa0, surrogate = p[0] == 0xed && p[1] >= 0xa0;
        return overlong || surrogate ? 0 : 3;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        if (len < 4 || !is_continuation(p[1]) || !is_continuation(p[2]) || !is_continuation(p[3]))
            return 0;
        bool overlong = p[0] == 0xf0 && p[1] < 0x90, too_large = p[0] == 0xf4 && p[1] >= 0x90;
        return overlong || too_large ? 0 : 4;
    }
    return 0;
}

bool str_utf8_valid(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0, n; i < len; i += n) {
        n = sequence_len(p + i, len - i);
        if (n == 0)
            return false;
    }
    return true;
}

/* Returns the escape of one character (n bytes at p), or NULL if the character needs none. */
static const char *json_escape(const unsigned char *p, size_t n, char room[static 8])
{
    switch (p[0]) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\b': return "\\b";
    case '\f': return "\\f";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    }
    unsigned control = p[0];
    if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0) /* U+0080 to U+009F are also control characters of terminals */
        control = p[1];
    else if (control >= 0x20 && control != 0x7f)
        return NULL;
    (void)snprintf(room, 8, "\\u%04x", control & 0xffff);
    return room;
}

/* Returns whether these eight bytes are printable ASCII that JSON does not escape, which is the common case. */
static inline bool eight_need_no_escape(const unsigned char *p)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t w;
    memcpy(&w, p, 8);
    /* The highest bit is set in the first byte that needs an escape; the bits of later bytes may be wrong. */
    uint64_t odd = w | (w + ones) | (w - ones * 0x20) | ((w ^ ones * '"') - ones) | ((w ^ ones * '\\') - ones);
    return (odd & ones << 7) == 0;
}

/* Returns the length of the prefix that needs no escape. */
static size_t unescaped_prefix_len(const unsigned char *p, size_t len)
{
    size_t i = 0;
    while (len - i >= 8 && eight_need_no_escape(p + i))
        i += 8;
    if (len >= 8 && len - i < 8 && eight_need_no_escape(p + len - 8))
        return len;
    while (i < len && p[i] >= 0x20 && p[i] < 0x7f && p[i] != '"' && p[i] != '\\')
        i++;
    return i;
}

void str_add_json_bytes(struct str *s, const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t done = 0; /* bytes written so far; bytes without escapes are copied in runs */

    reserve(s, len + 2);
    str_add_char(s, '"');
    for (size_t i = unescaped_prefix_len(p, len), n; i < len; i += n, i += unescaped_prefix_len(p + i, len - i)) {
        char room[8];
        n = sequence_len(p + i, len - i);
        const char *instead = n ? json_escape(p + i, n, room) : "\xef\xbf\xbd";
        n = n ? n : 1;
        if (!instead)
            continue;
        str_add_bytes(s, text + done, i - done);
        str_add(s, instead);
        done = i + n;
    }
    str_add_bytes(s, text + done, len - done);
    str_add_char(s, '"');
}

void str_add_json(struct str *s, const char *text)
{
    str_add_json_bytes(s, text, strlen(text));
}

bool str_parse_i64(const char *s, int64_t *ret)
{
    bool negative = *s == '-';
    int64_t value = 0;

    s += negative;
    if (!*s)
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return false;
        int digit = *s - '0';
        /* The sum has the sign of the result, because INT64_MIN has no positive counterpart. */
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return false;
    }
    *ret = value;
    return true;
}

const char *str_u64(uint64_t x, char buf[24])
{
    char digits[24];
    size_t d = 0, n = 0;
    for (; x || d == 0; x /= 10)
        digits[d++] = (char)('0' + x % 10);
    while (d)
        buf[n++] = digits[--d];
    buf[n] = 0;
    return buf;
}
