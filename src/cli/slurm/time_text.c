#include "cli/slurm/time_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/doc/api.h"
#include "wire/text/moment.h"

#define SECOND_NS INT64_C(1000000000)
#define DAYS_MAX INT64_C(3650)

/* ---- durations -------------------------------------------------------------------------------------------------- */

static void span_text(int64_t seconds, char ret[static SPAN_TEXT_MAX])
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {
        {86400, 'd'},
        {3600,  'h'},
        {60,    'm'},
        {1,     's'},
    };
    size_t at = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (seconds / units[i].seconds > 0)
            at += (size_t)snprintf(ret + at, SPAN_TEXT_MAX - at, "%" PRId64 "%c", seconds / units[i].seconds,
                                   units[i].unit);
        seconds %= units[i].seconds;
    }
    if (at == 0)
        (void)snprintf(ret, SPAN_TEXT_MAX, "0s");
}

/* Parses digits up to another character; false: none, or too many. */
static bool number_next(const char **at, int64_t *ret)
{
    char *end;

    if (**at < '0' || **at > '9' || strspn(*at, "0123456789") > 9)
        return false;
    *ret = strtol(*at, &end, 10);
    *at = end;
    return true;
}

/* Parses "D-HH[:MM[:SS]]", "HH:MM:SS", "MM:SS" or "N". */
static bool clock_parse(const char *text, int64_t bare_s, int64_t *ret_s)
{
    int64_t part[3] = {0}, days = 0;
    size_t len = 0;
    bool dayed = strchr(text, '-') != NULL;

    if (dayed && (!number_next(&text, &days) || *text++ != '-'))
        return false;
    do {
        if (len == 3 || !number_next(&text, &part[len++]))
            return false;
    } while (*text == ':' && text++);
    if (*text)
        return false;
    if (dayed)
        *ret_s = days * 86400 + part[0] * 3600 + part[1] * 60 + part[2];
    else if (len == 1)
        *ret_s = part[0] * bare_s;
    else
        *ret_s = len == 2 ? part[0] * 60 + part[1] : part[0] * 3600 + part[1] * 60 + part[2];
    return true;
}

int duration_text_read(const char *text, int64_t bare_s, char ret[static SPAN_TEXT_MAX], struct berth_err *err)
{
    int64_t ns = 0, seconds = 0;

    if (!clock_parse(text, bare_s, &seconds)) {
        if (duration_parse_text(text, &ns, NULL) != 0)
            return err_set(err, EINVAL, "invalid duration '%s'; use 30m, 1h30m, 2d, or 1-12:00:00 for a day and a half",
                           text);
        seconds = (ns + SECOND_NS - 1) / SECOND_NS;
    }
    if (seconds < 1 || seconds > DAYS_MAX * 86400)
        return err_set(err, EINVAL, "'%s' must be from 1s to %" PRId64 "d", text, DAYS_MAX);
    span_text(seconds, ret);
    return 0;
}

/* ---- times ------------------------------------------------------------------------------------------------------ */

/* Parses "now+2hours", "+90" or "now", with Slurm's and Berth's units. `sign`: '+', or '-' for past times. */
static bool relative_parse(const char *text, char sign, int64_t *ret_s)
{
    static const struct {
        const char *word;
        int64_t seconds;
    } units[] = {
        {"",        1     },
        {"second",  1     },
        {"seconds", 1     },
        {"minute",  60    },
        {"minutes", 60    },
        {"hour",    3600  },
        {"hours",   3600  },
        {"day",     86400 },
        {"days",    86400 },
        {"week",    604800},
        {"weeks",   604800},
    };
    const char *at = strncmp(text, "now", 3) == 0 ? text + 3 : text;
    int64_t n = 0, ns = 0;

    *ret_s = 0;
    if (at != text && !*at)
        return true;
    if (*at++ != sign)
        return false;
    const char *rest = at;
    if (number_next(&rest, &n))
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (strcmp(rest, units[i].word) == 0) {
                *ret_s = n * units[i].seconds;
                return true;
            }
    if (duration_parse_text(at, &ns, NULL) != 0)
        return false;
    *ret_s = ns / SECOND_NS;
    return true;
}

/* Parses a time of day, which means its next occurrence. */
static bool day_parse(const char *text, struct tm *tm, bool *ret_next)
{
    const char *end = NULL;

    *ret_next = true;
    tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
    if (strcmp(text, "midnight") == 0)
        return true;
    if (strcmp(text, "noon") == 0) {
        tm->tm_hour = 12;
        return true;
    }
    if (strcmp(text, "today") == 0 || strcmp(text, "tomorrow") == 0) {
        *ret_next = false;
        tm->tm_mday += text[2] == 'm';
        return true;
    }
    end = strptime(text, "%H:%M:%S", tm);
    if (!end || *end)
        end = strptime(text, "%H:%M", tm);
    return end && !*end;
}

static bool date_parse(const char *text, struct tm *tm)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm read = {.tm_isdst = -1};
        const char *end = strptime(text, forms[i], &read);
        if (end && !*end) {
            *tm = read;
            return true;
        }
    }
    return false;
}

int time_text_read(const char *text, int64_t now_ns, char ret[static SPAN_TEXT_MAX], struct berth_err *err)
{
    time_t now = (time_t)(now_ns / SECOND_NS), then = 0;
    int64_t seconds = 0, ns = 0;
    struct tm tm;
    bool next = false;

    (void)localtime_r(&now, &tm);
    if (relative_parse(text, '+', &seconds)) {
        ns = now_ns / SECOND_NS * SECOND_NS + seconds * SECOND_NS;
    } else if (strchr(text, 'T') && timestamp_parse_text(text, &ns, NULL) == 0) {
    } else if (date_parse(text, &tm) || day_parse(text, &tm, &next)) {
        tm.tm_isdst = -1;
        then = mktime(&tm);
        if (next && then <= now) {
            tm.tm_mday++;
            tm.tm_isdst = -1;
            then = mktime(&tm);
        }
        ns = (int64_t)then * SECOND_NS;
    } else {
        return err_set(err, EINVAL,
                       "invalid time '%s'; use +2h, 18:30, tomorrow, 2026-03-01T12:00 or 2026-03-01T12:00:00Z", text);
    }
    (void)snprintf(ret, SPAN_TEXT_MAX, "%s", timestamp_text(ns, (char[TIMESTAMP_MAX]){0}));
    return 0;
}

int past_time_read(const char *text, int64_t now_ns, char ret[static SPAN_TEXT_MAX], struct berth_err *err)
{
    const int64_t day_ns = 86400 * SECOND_NS;
    int64_t seconds = 0, ns = 0;
    struct tm tm = {0};
    bool next = false;

    if (relative_parse(text, '-', &seconds) || duration_parse_text(text, &ns, NULL) == 0) {
        ns = (now_ns / SECOND_NS - (ns ? ns / SECOND_NS : seconds)) * SECOND_NS;
        if (ns < 0)
            return err_set(err, EINVAL, "'%s' is too long ago", text);
        (void)snprintf(ret, SPAN_TEXT_MAX, "%s", timestamp_text(ns, (char[TIMESTAMP_MAX]){0}));
        return 0;
    }
    if (strcmp(text, "yesterday") == 0)
        return time_text_read("today", now_ns - day_ns, ret, err);
    bool clock = !date_parse(text, &tm) && day_parse(text, &tm, &next) && next;
    if (time_text_read(text, clock ? now_ns - day_ns : now_ns, ret, NULL) != 0)
        return err_set(err, EINVAL,
                       "invalid time '%s'; use -10m, 18:30 (most recent), yesterday, 2026-03-01, "
                       "2026-03-01T12:00 or 2026-03-01T12:00:00Z",
                       text);
    return 0;
}

/* ---- ranges ----------------------------------------------------------------------------------------------------- */

struct array_range {
    int64_t from, to, step;
    size_t len; /* indices seen */
};

/* Adds an index; the step must stay the same. */
static bool index_add(struct array_range *r, int64_t index)
{
    if (r->len == 0)
        r->from = index;
    else if (r->len == 1)
        r->step = index - r->from;
    else if (index - r->to != r->step)
        return false;
    r->to = index;
    r->len++;
    return r->len == 1 || r->step > 0;
}

static bool part_add(struct array_range *r, const char **at)
{
    int64_t from, to, step = 1;

    if (!number_next(at, &from))
        return false;
    to = from;
    if (**at == '-' && (++*at, !number_next(at, &to)))
        return false;
    if (**at == ':' && (++*at, !number_next(at, &step)))
        return false;
    if (step < 1 || to < from)
        return false;
    to -= (to - from) % step;
    if (!index_add(r, from))
        return false;
    if (to == from)
        return true;
    if (!index_add(r, from + step) || r->step != step)
        return false;
    r->to = to;
    r->len = r->len + 1;
    return true;
}

int range_read(const char *text, char ret[static RANGE_TEXT_MAX], struct berth_err *err)
{
    struct array_range r = {.step = 1};
    const char *at = text;
    int64_t parallel = 0;
    bool good = true;

    do
        good = part_add(&r, &at);
    while (good && *at == ',' && at++);
    if (good && *at == '%')
        good = (at++, number_next(&at, &parallel)) && parallel > 0;
    if (!good || *at)
        return err_set(err, EINVAL,
                       "invalid array '%s'; use 0-99, 0-99:2 for every second index, 0-99%%10 for at most 10 "
                       "tasks at once, or a list with a constant step, such as 1,3,5",
                       text);
    int len = snprintf(ret, RANGE_TEXT_MAX, "%" PRId64 "-%" PRId64, r.from, r.to);
    if (r.step != 1)
        len += snprintf(ret + len, RANGE_TEXT_MAX - (size_t)len, ":%" PRId64, r.step);
    if (parallel)
        (void)snprintf(ret + len, RANGE_TEXT_MAX - (size_t)len, "%%%" PRId64, parallel);
    return 0;
}
