/* cron_time.h - cron expressions such as "15 3 * * mon-fri" and their next time, in UTC; pure functions of text and
 * time.
 *
 * An expression has five fields: minute, hour, day of the month, month, day of the week. Each field is a list of
 * values, ranges and steps ("0-30/10", "jan,mar"); Sunday is 0 or 7. If both kinds of day are restricted, one match
 * suffices, as in cron. The shorthands are "@hourly", "@daily", "@weekly", "@monthly" and "@yearly".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct cron_time {
    uint64_t minutes;
    uint32_t hours, days, months, weekdays; /* one bit per value; days and months from 1, weekdays from Sunday */
    bool any_day, any_weekday;              /* the field is '*' */
};

/* Parses an expression. -EINVAL: the error names the field. */
int cron_parse(const char *text, struct cron_time *ret, struct berth_err *err);
/* Returns the first match after `after_ns`, in nanoseconds since 1970; BERTH_NEVER_NS if there is none (30
 * February). */
int64_t cron_next(const struct cron_time *t, int64_t after_ns);
