/* event.h - recent events for users: "web.alice: 2 pods wait: 40 nodes short of memory".
 *
 * A bounded list in memory; the permanent record is the journal. An event that repeats the last event of its subject
 * increments the count of that event.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "control/api/request.h"

enum { EVENTS_MAX = 4096, EVENT_TEXT_MAX = 240 };

struct event_log;
struct event_log *events_new(void);
void events_free(struct event_log *e);

struct object_event {
    const char *type; /* "Scheduled", "FailedScheduling", "NodeLost", ... */
    enum kind kind;   /* of the subject */
    const char *id;
    const char *owner, *group;
    const char *message;
};
void events_add(struct event_log *e, int64_t now_ns, const struct object_event *event);
/* Adds an event for the change of a request. The event is copied, and published when the change is durable, so a reader
 * of the event also sees the change. */
void events_later(struct request *c, const struct object_event *event);
void events_now(struct request *c); /* publishes them: the change is durable */
/* Returns the events that the caller may see, newest last, at most `limit`, of one subject or (NULL) of all. A new
 * reference. */
json_t *events_list(const struct event_log *e, const struct request *c, const char *id, size_t limit);
