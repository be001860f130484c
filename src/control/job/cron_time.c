#include "control/job/cron_time.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "berth.h"
#include "wire/text/words.h"

enum { MINUTES_A_DAY = 1440, DAYS_MAX = 366 * 9 }; /* 29 February comes after eight years at the latest */
#define MINUTE_NS INT64_C(60000000000)

/* ---- parsing ---------------------------------------------------------------------------------------------------- */

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

static const struct cron_field {
    const char *what;
    unsigned min, max;
    const char *const *names;
    size_t names_len;
} fields[] = {
    {"minute",           0, 59, NULL,          0 },
    {"hour",             0, 23, NULL,          0 },
    {"day of the month", 1, 31, NULL,          0 },
    {"month",            1, 12, month_names,   12},
    {"day of the week",  0, 7,  weekday_names, 7 },
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* Parses a number or a name at *at and moves *at past it. */
static bool value_of(const struct cron_field *f, const char **at, unsigned *ret)
{
    unsigned n = 0;
    size_t digits = strspn(*at, "0123456789");
    for (size_t i = 0; i < f->names_len; i++)
        if (strncasecmp(*at, f->names[i], 3) == 0) {
            *at += 3;
            *ret = (unsigned)i + f->min;
            return true;
        }
    if (digits == 0 || digits > 2)
        return false;
    for (size_t i = 0; i < digits; i++)
        n = n * 10 + (unsigned)((*at)[i] - '0');
    *at += digits;
    *ret = n;
    return n >= f->min && n <= f->max;
}

/* Parses "*", "5" or "1-5", each optionally with "/STEP". */
static bool part_of(const struct cron_field *f, const char **at, uint64_t *bits)
{
    static const struct cron_field steps = {"step", 1, 99, NULL, 0};
    unsigned first = f->min, last = f->max, step = 1;
    bool all = **at == '*';
    if (all)
        ++*at;
    else if (!value_of(f, at, &first))
        return false;
    if (!all && **at == '-') {
        ++*at;
        if (!value_of(f, at, &last) || last < first)
            return false;
    } else if (!all && **at != '/') {
        last = first;
    }
    if (**at == '/') {
        ++*at;
        if (!value_of(&steps, at, &step))
            return false;
    }
    for (unsigned n = first; n <= last; n += step)
        *bits |= UINT64_C(1) << n;
    return true;
}

static int field_of(const struct cron_field *f, const char *text, size_t len, uint64_t *ret, struct berth_err *err)
{
    char buf[128], quoted[QUOTE_MAX];
    const char *at = buf;
    uint64_t bits = 0;
    if (len >= sizeof buf)
        return err_set(err, EINVAL, "the %s is longer than %zu characters", f->what, sizeof buf - 1);
    memcpy(buf, text, len);
    buf[len] = 0;
    do {
        if (!part_of(f, &at, &bits) || (*at && *at != ','))
            return err_set(err, EINVAL,
                           "%s is not a valid %s; expected numbers from %u to %u like \"*\", \"5\", \"1-5\" or \"*/2\"",
                           quote(buf, quoted), f->what, f->min, f->max);
    } while (*at++ == ',');
    *ret = bits;
    return 0;
}

static const char *spelled_out(const char *text)
{
    static const struct {
        const char *word, *means;
    } rows[] = {
        {"@hourly",   "0 * * * *"},
        {"@daily",    "0 0 * * *"},
        {"@midnight", "0 0 * * *"},
        {"@weekly",   "0 0 * * 0"},
        {"@monthly",  "0 0 1 * *"},
        {"@yearly",   "0 0 1 1 *"},
        {"@annually", "0 0 1 1 *"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcasecmp(text, rows[i].word) == 0)
            return rows[i].means;
    return text;
}

int cron_parse(const char *text, struct cron_time *ret, struct berth_err *err)
{
    uint64_t bits[FIELDS] = {0};
    bool any[FIELDS] = {false};
    char quoted[QUOTE_MAX];
    const char *at = spelled_out(text);
    if (*at == '@')
        return err_set(err, EINVAL, "%s is unknown; expected @hourly, @daily, @weekly, @monthly or @yearly",
                       quote(text, quoted));
    for (size_t i = 0; i < FIELDS; i++) {
        at += strspn(at, " \t");
        size_t len = strcspn(at, " \t");
        if (len == 0)
            return err_set(err, EINVAL, "%s has %zu fields; expected five: minute, hour, day, month, weekday",
                           quote(text, quoted), i);
        any[i] = *at == '*' && (len == 1 || at[1] == '/');
        int rc = field_of(&fields[i], at, len, &bits[i], err);
        if (rc < 0)
            return rc;
        at += len;
    }
    if (at[strspn(at, " \t")])
        return err_set(err, EINVAL, "%s has more than five fields", quote(text, quoted));
    if (bits[4] & 1u << 7)
        bits[4] |= 1;
    *ret = (struct cron_time){.minutes = bits[0],
                              .hours = (uint32_t)bits[1],
                              .days = (uint32_t)bits[2],
                              .months = (uint32_t)bits[3],
                              .weekdays = (uint32_t)bits[4] & 0x7f,
                              .any_day = any[2],
                              .any_weekday = any[4]};
    return 0;
}

/* ---- next time -------------------------------------------------------------------------------------------------- */

/* Gets month and day of the month of a day since 1970 in the Gregorian calendar: computed in eras of 400 years that
 * begin in March. */
static void civil(int64_t day, unsigned *ret_month, unsigned *ret_day)
{
    int64_t of_era = (day + 719468) % 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    *ret_day = (unsigned)(of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (unsigned)(month < 10 ? month + 3 : month - 9);
}

static bool day_fits(const struct cron_time *t, int64_t day)
{
    unsigned month, of_month, weekday = (unsigned)((day + 4) % 7); /* day 0 was a Thursday */
    civil(day, &month, &of_month);
    if (!(t->months >> month & 1))
        return false;
    bool by_day = t->days >> of_month & 1, by_weekday = t->weekdays >> weekday & 1;
    return t->any_day || t->any_weekday ? by_day && by_weekday : by_day || by_weekday;
}

int64_t cron_next(const struct cron_time *t, int64_t after_ns)
{
    int64_t minute = (after_ns < 0 ? -1 : after_ns / MINUTE_NS) + 1, first = minute / MINUTES_A_DAY;
    for (int64_t day = first; day < first + DAYS_MAX; day++) {
        if (!day_fits(t, day))
            continue;
        for (int64_t m = day == first ? minute % MINUTES_A_DAY : 0; m < MINUTES_A_DAY; m++)
            if (t->hours >> (m / 60) & 1 && t->minutes >> (m % 60) & 1)
                return (day * MINUTES_A_DAY + m) * MINUTE_NS;
    }
    return BERTH_NEVER_NS;
}
