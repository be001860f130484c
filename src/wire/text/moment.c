/* moment.c - parses and prints durations and timestamps. */
#include "wire/text/moment.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "wire/doc/api.h"
#include "wire/text/decimal.h"
#include "wire/text/words.h"

#define SECOND_NS ((int64_t)1000000000)

static const struct {
    const char *name;
    uint64_t ns;
} units[] = {
    {"ms", 1000000                         },
    {"s",  1000000000                      },
    {"m",  60 * (uint64_t)1000000000       },
    {"h",  3600 * (uint64_t)1000000000     },
    {"d",  86400 * (uint64_t)1000000000    },
    {"w",  7 * 86400 * (uint64_t)1000000000},
};

/* Returns the unit at the start of a text and its length in *ret_len; 0: none. */
static uint64_t unit_read(const char *text, size_t *ret_len)
{
    size_t len = 0;
    while (isalpha((unsigned char)text[len]))
        len++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == len && memcmp(units[i].name, text, len) == 0) {
            *ret_len = len;
            return units[i].ns;
        }
    return 0;
}

static int seconds_parse(const char *text, const struct decimal *d, int64_t *ret_ns, struct berth_err *err)
{
    char quoted[QUOTE_MAX];
    bool exact;
    int64_t ns;
    if (decimal_scale(d, (uint64_t)SECOND_NS, &ns, &exact) < 0)
        return err_set(err, ERANGE, "%s is out of range", quote(text, quoted));
    *ret_ns = ns; /* fractions of a nanosecond are dropped */
    return 0;
}

int duration_parse_text(const char *text, int64_t *ret_ns, struct berth_err *err)
{
    char quoted[QUOTE_MAX];
    struct decimal d;
    int64_t total = 0;
    const char *p = text;

    if (decimal_read(text, &d) == 0 && !d.negative && !*d.rest)
        return seconds_parse(text, &d, ret_ns, err);
    do {
        size_t len = 0;
        if (!isdigit((unsigned char)*p) || decimal_read(p, &d) < 0)
            return err_set(err, EINVAL, "expected a duration like 30s, 10m, 2h or 30d, found %s", quote(text, quoted));
        uint64_t unit = unit_read(d.rest, &len);
        if (!unit)
            return err_set(err, EINVAL, "%s has an unknown unit; expected ms, s, m, h, d or w", quote(text, quoted));
        int64_t part;
        bool exact;
        if (decimal_scale(&d, unit, &part, &exact) < 0 || __builtin_add_overflow(total, part, &total))
            return err_set(err, ERANGE, "%s is too long", quote(text, quoted));
        p = d.rest + len;
    } while (*p);
    *ret_ns = total;
    return 0;
}

/* Parses `len` digits into *ret; false if there are fewer. */
static bool digits_read(const char **p, size_t len, int64_t *ret)
{
    int64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)(*p)[i]))
            return false;
        value = value * 10 + ((*p)[i] - '0');
    }
    *p += len;
    *ret = value;
    return true;
}

static bool mark_read(const char **p, const char *any)
{
    if (!**p || !strchr(any, **p))
        return false;
    (*p)++;
    return true;
}

/* Returns the days since 1970-01-01 in the Gregorian calendar. The year starts in March, so that leap days are at its
 * end. */
static int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = y / 400; /* years start at 0 here */
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int64_t month_days(int64_t y, int64_t m)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return days[m - 1] + (m == 2 && leap);
}

static bool fraction_read(const char **p, int64_t *ret_ns)
{
    if (!mark_read(p, "."))
        return true;
    int64_t ns = 0, unit = SECOND_NS;
    const char *from = *p;
    for (; isdigit((unsigned char)**p); (*p)++) {
        unit /= 10;
        ns += (**p - '0') * unit;
    }
    *ret_ns = ns;
    return *p > from;
}

static bool zone_read(const char **p, int64_t *ret_seconds)
{
    if (mark_read(p, "Zz"))
        return true;
    bool west = **p == '-';
    int64_t h, m;
    if (!mark_read(p, "+-") || !digits_read(p, 2, &h) || !mark_read(p, ":") || !digits_read(p, 2, &m) || h > 23 ||
        m > 59)
        return false;
    *ret_seconds = (h * 3600 + m * 60) * (west ? -1 : 1);
    return true;
}

static bool rfc3339_read(const char *p, int64_t *ret_seconds, int64_t *ret_ns)
{
    int64_t y, mo, d, h, mi, s, ns = 0, zone = 0;
    if (!digits_read(&p, 4, &y) || !mark_read(&p, "-") || !digits_read(&p, 2, &mo) || !mark_read(&p, "-") ||
        !digits_read(&p, 2, &d) || !mark_read(&p, "Tt ") || !digits_read(&p, 2, &h) || !mark_read(&p, ":") ||
        !digits_read(&p, 2, &mi) || !mark_read(&p, ":") || !digits_read(&p, 2, &s))
        return false;
    if (!fraction_read(&p, &ns) || !zone_read(&p, &zone) || *p)
        return false;
    if (y < 1 || mo < 1 || mo > 12 || d < 1 || d > month_days(y, mo) || h > 23 || mi > 59 || s > 60)
        return false;
    *ret_seconds = days_from_civil(y, mo, d) * 86400 + h * 3600 + mi * 60 + s - zone;
    *ret_ns = ns;
    return true;
}

int timestamp_parse_text(const char *text, int64_t *ret_ns, struct berth_err *err)
{
    char quoted[QUOTE_MAX];
    struct decimal d;
    int64_t seconds, ns;

    if (rfc3339_read(text, &seconds, &ns)) {
        __int128 total = (__int128)seconds * SECOND_NS + ns;
        if (total < INT64_MIN || total > INT64_MAX)
            return err_set(err, ERANGE, "%s is out of range", quote(text, quoted));
        *ret_ns = (int64_t)total;
        return 0;
    }
    if (decimal_read(text, &d) == 0 && !*d.rest)
        return seconds_parse(text, &d, ret_ns, err);
    return err_set(err, EINVAL, "expected a time like 2026-03-01T12:00:00Z or a number of seconds, found %s",
                   quote(text, quoted));
}

typedef int moment_parse_text(const char *text, int64_t *ret_ns, struct berth_err *err);

static int moment_parse(const json_t *value, moment_parse_text *parse, const char *what, int64_t *ret_ns,
                        struct berth_err *err)
{
    char buf[DECIMAL_TEXT_MAX];
    if (json_is_string(value))
        return parse(json_string_value(value), ret_ns, err);
    if (json_is_number(value))
        return parse(decimal_text(value, buf), ret_ns, err);
    return err_set(err, EINVAL, "expected %s", what);
}

int duration_parse(const json_t *value, int64_t *ret_ns, struct berth_err *err)
{
    return moment_parse(value, duration_parse_text, "a duration like \"10m\"", ret_ns, err);
}

int timestamp_parse(const json_t *value, int64_t *ret_ns, struct berth_err *err)
{
    return moment_parse(value, timestamp_parse_text, "a time like \"2026-03-01T12:00:00Z\"", ret_ns, err);
}

/* The inverse of days_from_civil. */
static void civil_from_days(int64_t days, int64_t *ret_y, int64_t *ret_m, int64_t *ret_d)
{
    days += 719468;
    int64_t era = days / 146097; /* 64-bit nanoseconds never reach the year 0 */
    int64_t of_era = days - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;
    *ret_d = of_year - (153 * m + 2) / 5 + 1;
    *ret_m = m < 10 ? m + 3 : m - 9;
    *ret_y = y + era * 400 + (*ret_m <= 2);
}

const char *timestamp_text(int64_t ns, char buf[static TIMESTAMP_MAX])
{
    int64_t fraction = ns % SECOND_NS, seconds = ns / SECOND_NS;
    if (fraction < 0) {
        fraction += SECOND_NS;
        seconds--;
    }
    int64_t of_day = seconds % 86400, days = seconds / 86400;
    if (of_day < 0) {
        of_day += 86400;
        days--;
    }
    int64_t y, m, d;
    civil_from_days(days, &y, &m, &d);
    int len = snprintf(buf, TIMESTAMP_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", (int)y, (int)m, (int)d,
                       (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60));
    if (fraction) {
        len += snprintf(buf + len, TIMESTAMP_MAX - (size_t)len, ".%09d", (int)fraction);
        while (buf[len - 1] == '0')
            len--;
    }
    (void)snprintf(buf + len, TIMESTAMP_MAX - (size_t)len, "Z");
    return buf;
}
