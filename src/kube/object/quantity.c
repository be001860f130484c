/* quantity.c - parses digits, a point, and a suffix or exponent, in saturating 128-bit integers. */
#include "kube/object/quantity.h"

typedef unsigned __int128 wide;

/* Saturation limit: above INT64_MAX in every unit. */
static const wide most = (wide)1 << 124;

enum { EXPONENT_MAX = 40 };
#define FINEST INT64_C(1000000000000) /* finer digits only round up */

static wide times(wide a, wide b)
{
    return a && b > most / a ? most : a * b;
}

static wide power(wide base, int exponent)
{
    wide p = 1;
    for (; exponent > 0; exponent--)
        p = times(p, base);
    return p;
}

/* Multiplier and divisor of the number. */
struct quantity_suffix {
    wide times, by;
};

static bool exponent_parse(const char *s, size_t len, struct quantity_suffix *ret)
{
    bool below = len > 0 && s[0] == '-';
    size_t at = len > 0 && (s[0] == '-' || s[0] == '+');
    int value = 0;
    if (at == len)
        return false;
    for (; at < len; at++) {
        if (s[at] < '0' || s[at] > '9')
            return false;
        if (value < EXPONENT_MAX)
            value = value * 10 + (s[at] - '0');
    }
    value = value < EXPONENT_MAX ? value : EXPONENT_MAX;
    *ret = below ? (struct quantity_suffix){1, power(10, value)} : (struct quantity_suffix){power(10, value), 1};
    return true;
}

/* Returns the position of the letter in `letters`, from 1; 0: not found. */
static int place_of(const char *letters, char letter)
{
    for (int i = 0; letters[i]; i++)
        if (letters[i] == letter)
            return i + 1;
    return 0;
}

static bool unit_parse(const char *s, size_t len, struct quantity_suffix *ret)
{
    int at;
    if (len == 0) {
        *ret = (struct quantity_suffix){1, 1};
    } else if (len == 1 && (at = place_of("kMGTPE", s[0]))) {
        *ret = (struct quantity_suffix){power(1000, at), 1};
    } else if (len == 1 && (at = place_of("mun", s[0]))) {
        *ret = (struct quantity_suffix){1, power(1000, at)};
    } else if (len == 2 && s[1] == 'i' && (at = place_of("KMGTPE", s[0]))) {
        *ret = (struct quantity_suffix){power(1024, at), 1};
    } else {
        return (s[0] == 'e' || s[0] == 'E') && exponent_parse(s + 1, len - 1, ret);
    }
    return true;
}

bool kube_quantity_parse(const char *text, size_t len, int64_t scale, int64_t *ret)
{
    size_t at = len > 0 && (text[0] == '-' || text[0] == '+');
    bool negative = len > 0 && text[0] == '-';
    wide number = 0, by = 1;
    bool any = false, point = false;
    for (; at < len && ((text[at] >= '0' && text[at] <= '9') || (text[at] == '.' && !point)); at++) {
        if (text[at] == '.') {
            point = true;
            continue;
        }
        any = true;
        if (number >= most / 10 || by == FINEST) {
            number = point ? number + (text[at] != '0') : most;
            continue;
        }
        number = number * 10 + (unsigned)(text[at] - '0');
        by = point ? by * 10 : by;
    }
    struct quantity_suffix unit;
    if (!any || !unit_parse(text + at, len - at, &unit))
        return false;
    wide whole = times(times(number, unit.times), (wide)scale), divisor = times(by, unit.by);
    wide amount = negative ? whole / divisor : whole / divisor + (whole % divisor != 0);
    int64_t value = whole == most || amount > INT64_MAX ? INT64_MAX : (int64_t)amount;
    *ret = negative ? -value : value;
    return true;
}
