#include "control/system/alarm.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "control/control_parts.h"

static const struct {
    const char *name, *over;
} alarms[ALARMS] = {
    [ALARM_CLOCK] = {"clock", "the system clock and the time of berthd agree again"},
    [ALARM_STORE] = {"store", "changes are accepted again"                         },
};

const char *alarm_name(unsigned alarm)
{
    assert(alarm < ALARMS);
    return alarms[alarm].name;
}

static void add_alarm_event(struct control *c, enum alarm alarm, const char *type, const char *text)
{
    struct object_event event = {.type = type, .kind = KIND_NODE, .id = alarms[alarm].name, .message = text};
    events_add(c->events, c->now_ns, &event);
}

void alarm_raise(struct control *c, enum alarm alarm, const char *fmt, ...)
{
    struct alarm_state *a = &c->alarms[alarm];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(a->text, sizeof a->text, fmt, args);
    va_end(args);
    if (a->since_ns)
        return;
    a->since_ns = c->now_ns ? c->now_ns : 1;
    log_write(c->env.log, c->now_ns, LEVEL_ERROR, "alarm.raised", LOG_TEXT("alarm", alarms[alarm].name),
              LOG_TEXT("text", a->text));
    add_alarm_event(c, alarm, "Alarm", a->text);
}

void alarm_end(struct control *c, enum alarm alarm)
{
    struct alarm_state *a = &c->alarms[alarm];
    if (!a->since_ns)
        return;
    *a = (struct alarm_state){0};
    log_write(c->env.log, c->now_ns, LEVEL_INFO, "alarm.ended", LOG_TEXT("alarm", alarms[alarm].name));
    add_alarm_event(c, alarm, "AlarmEnded", alarms[alarm].over);
}
