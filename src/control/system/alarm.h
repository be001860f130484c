/* alarm.h - what an administrator has to look at now: in `berth status`, GET /v1/alarms, events, metrics and the log.
 *
 * In memory only: an alarm is raised again after a restart if its cause is still there. To add one: a name here and in the
 * table of alarm.c, and whoever notices calls alarm_raise and alarm_end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum alarm {
    ALARM_CLOCK, /* the machine's clock has jumped */
    ALARM_STORE, /* nothing can be written */
    ALARMS
};

enum { ALARM_TEXT_MAX = 200 };

struct alarm_state {
    int64_t since_ns; /* 0: all is well */
    char text[ALARM_TEXT_MAX];
};

struct control;
/* With its present text; told (event, log) when it begins. */
void alarm_raise(struct control *c, enum alarm alarm, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Ends the alarm; does nothing if the alarm was not raised. */
void alarm_end(struct control *c, enum alarm alarm);
const char *alarm_name(unsigned alarm);
