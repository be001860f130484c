/* decimal.c - exact decimal numbers. */
#include "wire/text/decimal.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { EXPONENT_MAX = 9999 };

static int exponent_read(const char **at, int32_t *ret)
{
    const char *p = *at;
    if (*p != 'e' && *p != 'E')
        return 0;
    bool minus = p[1] == '-';
    const char *digit = p + 1 + (p[1] == '-' || p[1] == '+');
    if (!isdigit((unsigned char)*digit))
        return 0; /* a unit may start with 'e' or 'E' */
    int32_t value = 0;
    for (; isdigit((unsigned char)*digit); digit++)
        value = value > EXPONENT_MAX ? value : value * 10 + (*digit - '0');
    if (value > EXPONENT_MAX)
        return -ERANGE;
    *ret += minus ? -value : value;
    *at = digit;
    return 0;
}

int decimal_read(const char *text, struct decimal *ret)
{
    struct decimal d = {.negative = *text == '-'};
    const char *p = text + (*text == '-' || *text == '+');
    bool dot = false, any = false;
    int32_t zeros = 0; /* trailing zeros not yet added: 2.500 is 2.5 */

    for (;; p++) {
        if (*p == '.' && !dot) {
            dot = true;
            continue;
        }
        if (!isdigit((unsigned char)*p))
            break;
        any = true;
        if (zeros > EXPONENT_MAX || d.exponent < -EXPONENT_MAX)
            return -ERANGE;
        d.exponent -= dot;
        zeros++;
        if (*p == '0')
            continue;
        for (; zeros > 1; zeros--)
            if (__builtin_mul_overflow(d.digits, 10, &d.digits))
                return -ERANGE;
        if (__builtin_mul_overflow(d.digits, 10, &d.digits) ||
            __builtin_add_overflow(d.digits, (uint64_t)(*p - '0'), &d.digits))
            return -ERANGE;
        zeros = 0;
    }
    if (!any)
        return -EINVAL;
    d.exponent += zeros;
    int rc = exponent_read(&p, &d.exponent);
    if (rc < 0)
        return rc;
    d.rest = p;
    *ret = d;
    return 0;
}

int decimal_scale(const struct decimal *d, uint64_t scale, int64_t *ret, bool *ret_exact)
{
    unsigned __int128 value = (unsigned __int128)d->digits * scale;
    bool exact = true;

    for (int32_t e = d->exponent; e > 0 && value; e--) {
        value *= 10;
        if (value > INT64_MAX) /* below 2^68 before the next step, so no wraparound */
            return -ERANGE;
    }
    for (int32_t e = d->exponent; e < 0 && value; e++) {
        exact &= value % 10 == 0;
        value /= 10;
    }
    if (value > INT64_MAX)
        return -ERANGE;
    *ret = d->negative ? -(int64_t)value : (int64_t)value;
    *ret_exact = exact;
    return 0;
}

const char *decimal_text(const json_t *number, char buf[static DECIMAL_TEXT_MAX])
{
    /* With 15 digits, numbers written with up to 15 digits are printed unchanged. jansson ignores the locale. */
    size_t len = json_dumpb(number, buf, DECIMAL_TEXT_MAX - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    buf[len < DECIMAL_TEXT_MAX ? len : 0] = 0;
    return buf;
}
