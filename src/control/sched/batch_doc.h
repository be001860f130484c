/* batch_doc.h - changes to documents of instances and volumes, as an action of a plan requires. */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "control/state/change.h"

/* Sets the instance's state and since when; clears the list of instances it waits for. */
void instance_doc_set_state(json_t *doc, const char *state, int64_t now_ns);
/* Returns a new document with another limit of the resource; NULL: `doc` cannot be read. */
json_t *instance_doc_with_limit(const json_t *doc, const char *resource, int64_t limit, int64_t now_ns,
                                struct arena *arena);

/* Returns whether the volume is a persistent local folder that is not bound to `node`: it is bound to no node or to
 * another one. False for shared volumes and volumes of a driver, which are reached from every node. */
bool volume_doc_needs_pin(const json_t *volume, const char *node, struct arena *arena);
/* Returns whether every instance that the reservation waits for is stopping or gone. Otherwise the reservation would
 * wait forever. */
bool reservation_victims_stop(struct change *change, const json_t *reservation);
