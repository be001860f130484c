/* base64.c - base64 encoding and decoding. */
#include "base/base64.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void str_add_base64(struct str *to, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    for (; len > 0; at += 3, len -= len < 3 ? len : 3) {
        uint32_t three = (uint32_t)at[0] << 16 | (uint32_t)(len > 1 ? at[1] : 0) << 8 | (len > 2 ? at[2] : 0);
        const char four[4] = {alphabet[three >> 18], alphabet[three >> 12 & 63],
                              len > 1 ? alphabet[three >> 6 & 63] : '=', len > 2 ? alphabet[three & 63] : '='};
        str_add_bytes(to, four, sizeof four);
    }
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes four characters to one to three bytes. Returns the number of bytes; 0 if the characters are invalid. */
static size_t group_decode(const char *at, bool last, unsigned char ret[static 3])
{
    size_t given = last && at[3] == '=' ? at[2] == '=' ? 2 : 3 : 4;
    uint32_t bits = 0;

    for (size_t i = 0; i < 4; i++) {
        int value = i < given ? value_of(at[i]) : 0;
        if (value < 0)
            return 0;
        bits = bits << 6 | (uint32_t)value;
    }
    ret[0] = (unsigned char)(bits >> 16);
    ret[1] = (unsigned char)(bits >> 8);
    ret[2] = (unsigned char)bits;
    bool left_over = (given == 2 && (bits & 0xffff)) || (given == 3 && (bits & 0xff));
    return left_over ? 0 : given - 1;
}

bool str_add_base64_bytes(struct str *to, const char *text, size_t len)
{
    size_t was = to->len;

    for (size_t at = 0; at < len; at += 4) {
        unsigned char three[3];
        size_t n = len - at >= 4 ? group_decode(text + at, len - at == 4, three) : 0;
        if (n == 0) {
            to->len = was;
            if (to->at)
                to->at[was] = '\0';
            return false;
        }
        str_add_bytes(to, three, n);
    }
    return true;
}
