/* cumulative_use.h - what instances use up of cumulative resources, added up on their node.
 *
 * An agent tells how much an instance has used since it began; what that is more than before was consumed meanwhile. The node's document
 * has `consumed` and since when, by which the planner goes until the resource's period ends; then it counts from zero again, each resource
 * on its own (`consumed_begun`). A resource
 * is cumulative if an object of that name says so, and is counted on nodes that have some of it to give.
 */
#pragma once

#include <jansson.h>

#include "control/api/request.h"

/* The document of an instance as it was and as it will be written; the node's is changed with it. */
void consume_note(struct call *c, const char *node, const json_t *was, const json_t *now);
/* After how long consumption of it counts from zero again; 0: never, or it is not cumulative. */
int64_t consume_period_ns(const struct state *s, const char *resource);
