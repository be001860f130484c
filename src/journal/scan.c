/* scan.c - a minimal JSON scanner. */
#include "journal/scan.h"

#include <stdlib.h>
#include <string.h>

static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at == '"')
            return at + 1;
        if (*at == '\\')
            at++;
    }
    return NULL;
}

const char *scan_value(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        switch (*at) {
        case '"':
            at = skip_string(at, end);
            if (!at || depth == 0)
                return at;
            continue;
        case '{':
        case '[': depth++; break;
        case '}':
        case ']':
            if (depth == 0)
                return at; /* end of a bare word: the end of the enclosing value */
            if (--depth == 0)
                return at + 1;
            break;
        case ',':
            if (depth == 0)
                return at;
            break;
        default: break;
        }
        at++;
    }
    return depth ? NULL : end;
}

/* Returns the start of a member's value; NULL: absent. */
static const char *member_begin(struct bytes object, const char *key)
{
    const char *at = object.at, *end = at + object.len;
    size_t key_len = strlen(key);
    if (object.len < 2 || *at != '{')
        return NULL;
    for (at++; at < end && *at == '"';) {
        const char *name = at + 1, *after = skip_string(at, end);
        if (!after || after >= end || *after != ':')
            return NULL;
        if ((size_t)(after - 1 - name) == key_len && memcmp(name, key, key_len) == 0)
            return after + 1;
        at = scan_value(after + 1, end);
        if (!at)
            return NULL;
        at += at < end && *at == ',';
    }
    return NULL;
}

bool scan_member(struct bytes object, const char *key, struct bytes *ret)
{
    const char *end = (const char *)object.at + object.len, *value = member_begin(object, key);
    const char *after = value ? scan_value(value, end) : NULL;
    if (!after)
        return false;
    *ret = (struct bytes){value, (size_t)(after - value)};
    return true;
}

bool scan_array(struct bytes object, const char *key, struct bytes *ret)
{
    const char *end = (const char *)object.at + object.len, *value = member_begin(object, key);
    if (!value || value >= end || *value != '[')
        return false;
    *ret = (struct bytes){value, (size_t)(end - value)};
    return true;
}

bool scan_next(struct bytes array, const char **at, struct bytes *ret)
{
    const char *begin = array.at, *end = begin + array.len, *value = *at;
    if (!value) {
        if (array.len < 2 || *begin != '[')
            return false;
        value = begin + 1;
    }
    if (value >= end || *value == ']')
        return false;
    const char *after = scan_value(value, end);
    if (!after)
        return false;
    *ret = (struct bytes){value, (size_t)(after - value)};
    *at = after + (after < end && *after == ',');
    return true;
}

/* Returns a NUL-terminated copy of a short value; "" if the value is long. */
static const char *short_text(struct bytes object, const char *key, char buf[static 32])
{
    struct bytes value;
    buf[0] = 0;
    if (scan_member(object, key, &value) && value.len < 32) {
        memcpy(buf, value.at, value.len);
        buf[value.len] = 0;
    }
    return buf;
}

uint64_t scan_u64(struct bytes object, const char *key, uint64_t otherwise)
{
    char buf[32], *end;
    uint64_t n = strtoull(short_text(object, key, buf), &end, 10);
    return end == buf || *end ? otherwise : n;
}

int64_t scan_i64(struct bytes object, const char *key, int64_t otherwise)
{
    int64_t n;
    char buf[32];
    return str_parse_i64(short_text(object, key, buf), &n) ? n : otherwise;
}

uint64_t scan_hex(struct bytes object, const char *key, uint64_t otherwise)
{
    char buf[32], *end;
    if (*short_text(object, key, buf) != '"')
        return otherwise;
    uint64_t n = strtoull(buf + 1, &end, 16);
    return end == buf + 1 || *end != '"' ? otherwise : n;
}

static void add_utf8(struct str *to, unsigned code)
{
    if (code < 0x80) {
        str_add_char(to, (char)code);
    } else if (code < 0x800) {
        str_add_char(to, (char)(0xc0 | code >> 6));
        str_add_char(to, (char)(0x80 | (code & 0x3f)));
    } else {
        str_add_char(to, (char)(0xe0 | code >> 12));
        str_add_char(to, (char)(0x80 | (code >> 6 & 0x3f)));
        str_add_char(to, (char)(0x80 | (code & 0x3f)));
    }
}

bool scan_text(struct bytes value, struct str *to)
{
    static const char from[] = "bfnrt", into[] = "\b\f\n\r\t";
    const char *at = value.at, *end = at + value.len;
    if (value.len < 2 || *at != '"' || end[-1] != '"')
        return false;
    for (at++, end--; at < end; at++) {
        if (*at != '\\' || at + 1 >= end) {
            str_add_char(to, *at);
            continue;
        }
        const char *found = strchr(from, *++at);
        if (*at == 'u' && end - at > 4) {
            char hex[5] = {at[1], at[2], at[3], at[4], 0};
            add_utf8(to, (unsigned)strtoul(hex, NULL, 16));
            at += 4;
        } else {
            str_add_char(to, found ? into[found - from] : *at);
        }
    }
    return true;
}
