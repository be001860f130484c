/* batch_doc.h - documents of instances as an action of a plan changes them. */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "control/state/change.h"

/* It is in another state from now on, and waits for nothing. */
void unit_doc_becomes(json_t *doc, const char *state, int64_t now_ns);
/* A new document: with another limit. NULL: it cannot be read. */
json_t *unit_doc_limited(const json_t *doc, const char *resource, int64_t limit, int64_t now_ns, struct arena *arena);

/* Is the volume a folder that stays, on no node yet or on another than this? What hangs on a driver or is shared is reached from
 * elsewhere. */
bool unit_doc_pins(const json_t *volume, const char *node, struct arena *arena);
/* What a reservation waits for is about to stop, or has: else nothing would ever end the waiting. */
bool unit_doc_waits(struct change *change, const json_t *reservation);
