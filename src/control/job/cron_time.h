/* cron_time.h - times like "15 3 * * mon-fri", and when the next one is. UTC; a pure function of text and moment.
 *
 * Five fields: minute, hour, day of the month, month, day of the week. Each is a list of values, ranges and steps ("0-30/10",
 * "jan,mar"); Sunday is 0 or 7. Where both days are restricted either suffices, as cron has it. "@hourly", "@daily",
 * "@weekly", "@monthly" and "@yearly" stand for the usual ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct cron_time {
    uint64_t minutes;
    uint32_t hours, days, months, weekdays; /* a bit each; days and months from 1, weekdays from Sunday */
    bool any_day, any_weekday;              /* '*' was said */
};

/* -EINVAL with the field named. */
int cron_parse(const char *text, struct cron_time *ret, struct berth_err *err);
/* The first one after this moment, in nanoseconds since 1970; BERTH_NEVER_NS: there is none, as of a 30th of February. */
int64_t cron_next(const struct cron_time *t, int64_t after_ns);
