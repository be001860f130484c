/* alarm.h - conditions that need an administrator, shown in `berth status`, GET /v1/alarms, events, metrics and the
 * log.
 *
 * In memory only: after a restart, an alarm is raised again if its cause persists. To add an alarm: a name here and in
 * the table of alarm.c, and calls of alarm_raise and alarm_end where the condition is detected.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum alarm {
    ALARM_CLOCK, /* the wall clock has jumped */
    ALARM_STORE, /* the store rejects writes */
    ALARMS
};

enum { ALARM_TEXT_MAX = 200 };

struct alarm_state {
    int64_t since_ns; /* 0: not raised */
    char text[ALARM_TEXT_MAX];
};

struct control;
/* Raises the alarm or updates its text. Adds an event and a log line when the alarm begins. */
void alarm_raise(struct control *c, enum alarm alarm, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Ends the alarm; does nothing if the alarm was not raised. */
void alarm_end(struct control *c, enum alarm alarm);
const char *alarm_name(unsigned alarm);
