/* plan_quota.h - quota usage during a plan: now, and after all stops are done, as cycle.h has it for nodes. Workloads
 * without a quota cost nothing here.
 */
#pragma once

#include "core/plan/plan.h"

void plan_quotas_begin(struct berth_plan *p);

/* Returns how many more pods of the class (at most `most`) the workload may have within every limit of its quotas: now,
 * or (`later`) once all stops are done. */
uint32_t plan_quota_room(const struct berth_plan *p, uint32_t workload, const struct class *k, bool later,
                         uint32_t most);
/* As plan_quota_room, for a demand, whose account is known. For a move, only what the new pod needs beyond the old one
 * counts. */
uint32_t plan_quota_room_of_demand(const struct berth_plan *p, const struct demand *w, bool later, uint32_t most);
/* Counts a pod that is placed (sign 1) or removed (sign -1). `later`: the pod is reserved. `replaces`: the instance
 * that the pod takes over from, or NONE. */
void plan_quota_count(struct berth_plan *p, uint32_t workload, uint32_t replaces, const struct class *k, bool later,
                      int sign);
/* Counts what a reservation will need of its quotas, until the end of the round: demands later in the order must leave
 * that free, too. */
void plan_quota_reserve(struct berth_plan *p, uint32_t workload, const struct class *k, uint32_t pods);
void plan_quota_unreserve_all(struct berth_plan *p);
/* Removes all reservations from the usage (sign -1), or counts them again (sign 1). */
void plan_quota_count_reservations(struct berth_plan *p, int sign);
/* Change how the instance in the slot is counted. plan_quota_stop: its quota is free once all stops are done.
 * plan_quota_undo_stop: undoes plan_quota_stop. plan_quota_lose: its quota is free now. plan_quota_promote: a reserved
 * instance counts now. An instance that another instance takes over from frees nothing, because the other one counts
 * then. A workload counts as a job until its last instance has gone. */
void plan_quota_stop(struct berth_plan *p, uint32_t slot);
void plan_quota_undo_stop(struct berth_plan *p, uint32_t slot);
void plan_quota_lose(struct berth_plan *p, uint32_t slot);
void plan_quota_promote(struct berth_plan *p, uint32_t slot);
/* Returns whether the quotas have room for an instance that was about to stop to stay. */
bool plan_quota_may_stay(const struct berth_plan *p, uint32_t slot);
/* Returns whether a reserved instance may be promoted within all limits of its quotas: 1 now, 0 later, -1 never,
 * because a limit was lowered. */
int plan_quota_promotable(const struct berth_plan *p, uint32_t slot);

/* Finds the first limit that keeps out one more pod of the workload: the quota and resource, the amount held and the
 * amount allowed. Returns false if there is none. For a total, `limit` and `held` are in amount x seconds. */
struct quota_shortage {
    uint32_t quota, resource;
    bool total;
    int64_t held, limit, need;
};
bool plan_quota_blocking_limit(const struct berth_plan *p, uint32_t workload, const struct class *k,
                               struct quota_shortage *ret);
