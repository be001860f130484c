/* eviction.h - who is to leave a node that nobody drains: one that runs out of memory, or that holds more than it has.
 *
 * Found before workloads are looked at, from the snapshot alone, so that the same are found again until they have gone.
 * From a node under pressure one replica at a time is stopped; from a node that is over as many services move as it takes
 * to fit again. instance_status.c and reconcile.c act on it; a workload never has fewer available than its minimum by this.
 */
#pragma once

#include "core/plan/plan.h"

/* Finds nodes under pressure (cycle.pressed) and who leaves. */
void leavers_find(struct berth_plan *p);
void leavers_done(struct berth_plan *p);
/* Adds their workloads. */
void leavers_mark(const struct berth_plan *p, uint64_t *workloads);
/* Remembers which nodes are under pressure, and when somebody was last picked to stop for it. */
void leavers_close(struct berth_plan *p);

/* Is it to move from a node that is over; to stop on one under pressure? */
bool leaver_moves(const struct berth_plan *p, uint32_t instance);
bool leaver_stops(const struct berth_plan *p, uint32_t instance);
