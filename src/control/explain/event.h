/* event.h - what happened lately, for people: "web.alice: 2 pods wait: 40 nodes short of memory".
 *
 * A bounded list in memory; the lasting record is the journal. An event that repeats the last one of its subject counts up
 * instead of adding a line.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "control/api/request.h"

enum { EVENTS_MAX = 4096, EVENT_TEXT_MAX = 240 };

struct events;
struct events *events_new(void);
void events_free(struct events *e);

struct event {
    const char *type; /* "Scheduled", "FailedScheduling", "NodeLost", ... */
    enum kind kind;   /* of the subject */
    const char *id;
    const char *owner, *group;
    const char *message;
};
void events_add(struct events *e, int64_t now_ns, const struct event *event);
/* Of what a call changes: told when that is durable, so that who reads of it finds it done; copied until then. */
void events_later(struct call *c, const struct event *event);
void events_now(struct call *c); /* those: it is durable */
/* Those the caller may see, newest last, at most `limit`, of one subject or (NULL) of all. A new reference. */
json_t *events_list(const struct events *e, const struct call *c, const char *id, size_t limit);
