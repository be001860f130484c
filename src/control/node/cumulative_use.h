/* cumulative_use.h - consumption of cumulative resources by instances, summed per node.
 *
 * An agent reports how much an instance has used since its start; the increase since the last report was consumed
 * meanwhile. The node's document has the sum in `consumed`, and since when it counts. The planner uses these until the
 * resource's period ends; then the sum starts from zero again, for each resource on its own (`consumed_begun`). A
 * resource is cumulative if an object of that name says so. It is counted on nodes that offer some of it.
 */
#pragma once

#include <jansson.h>

#include "control/api/request.h"

/* Adds the consumption between two versions of an instance's document, before (`was`) and after (`now`), to the node's
 * document. */
void cumulative_use_note(struct request *c, const char *node, const json_t *was, const json_t *now);
/* Returns the period after which consumption counts from zero again; 0: never, or the resource is not cumulative. */
int64_t cumulative_period_ns(const struct state *s, const char *resource);
