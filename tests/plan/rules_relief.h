/* rules_relief.h - real use, naively: what is in use where, and which nodes are under pressure by the world's policy. */
#pragma once

#include "rules_parts.h"

/* What the instance says; below 0: nothing. */
int64_t seat_uses(const struct seat *s, const char *resource);
/* What its active instances say, or the node itself if that is more. */
int64_t node_uses(const struct world *world, size_t node, const char *resource);
/* Ready or cordoned. */
bool node_listens(const struct world *world, size_t node);
/* NULL: nothing is remembered. */
const struct berth_fact *fact_find(const struct world *world, enum berth_fact_kind kind, uint64_t subject,
                                   const char *key);
/* More than so many percent of its allocatable memory? */
bool uses_above(const struct world *world, size_t node, int64_t used, uint32_t percent);
bool node_pressed(const struct world *world, size_t node);
