/* eviction.h - instances to evict from a node that is not being drained: a node short of memory, or a node that holds
 * more than its capacity.
 *
 * Evictions are found before workloads are examined, from the snapshot alone, so each plan finds the same ones until
 * the instances are gone. On a node under memory pressure one replica at a time is stopped. From a node over capacity,
 * as many services move as are needed for the rest to fit. instance_status.c and reconcile.c carry the evictions out;
 * an eviction never brings a workload below min_available.
 */
#pragma once

#include "core/plan/plan.h"

/* Finds nodes under pressure (cycle.pressed) and the instances to evict. */
void evictions_find(struct berth_plan *p);
void evictions_done(struct berth_plan *p);
/* Adds the workloads of the evicted instances to the bit set. */
void evictions_mark_workloads(const struct berth_plan *p, uint64_t *workloads);
/* Leaves facts about the nodes under pressure and about the last eviction on each. */
void evictions_close(struct berth_plan *p);

/* Returns whether the instance must move off a node over capacity; or stop on a node under pressure. */
bool eviction_moves(const struct berth_plan *p, uint32_t instance);
bool eviction_stops(const struct berth_plan *p, uint32_t instance);
