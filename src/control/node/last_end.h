/* last_end.h - how instances ended that no longer exist: the last end per ordinal.
 *
 * A failed or stopped instance has no document any more, but its log is still on its node, and users ask why it ended.
 * One small document per workload (KIND_LAST_END) keeps the latest end of up to LAST_ENDS_MAX ordinals. It is deleted
 * with its workload. No decision depends on it.
 */
#pragma once

#include "control/api/request.h"
#include "wire/doc/api.h"

enum { LAST_ENDS_MAX = 8 };

/* Adds the end of an instance to the change. It replaces an earlier end of the same ordinal, or else the oldest one. */
void last_end_note(struct request *c, const struct object *instance, const struct report_item *item);
/* Returns [{"instance", "ordinal", "node", "state", "outcome", "exit", "error", "since"}], latest first. A new
 * reference; NULL: none. */
json_t *last_end_show(const struct state *s, const char *workload);
