/* rules_relief.h - naive rules about real usage: how much of a resource is in use, and which nodes are under pressure
 * by the policy of the world.
 */
#pragma once

#include "rules_parts.h"

/* Returns the usage that the instance reports; below 0: none. */
int64_t inst_used(const struct inst *s, const char *resource);
/* Returns the larger of the sum that the node's active instances report and the usage that the node itself reports. */
int64_t node_uses(const struct world *world, size_t node, const char *resource);
/* Returns true if the node is ready or cordoned. */
bool node_is_reachable(const struct world *world, size_t node);
/* Returns the fact, or NULL if there is none. */
const struct berth_fact *fact_find(const struct world *world, enum berth_fact_kind kind, uint64_t subject,
                                   const char *key);
/* Returns true if `used` is more than that percentage of the node's allocatable memory. */
bool uses_above(const struct world *world, size_t node, int64_t used, uint32_t percent);
bool node_pressed(const struct world *world, size_t node);
