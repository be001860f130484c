/* plan_quota.h - quota usage during a plan: now, and after all stops are done, as cycle.h has it for nodes. Workloads
 * without a quota cost nothing here.
 */
#pragma once

#include "core/plan/plan.h"

void allotments_begin(struct berth_plan *p);

/* Returns how many more pods of the class (at most `most`) the workload may have within every limit of its quotas: now,
 * or (`later`) once all stops are done. */
uint32_t allot_room(const struct berth_plan *p, uint32_t workload, const struct class *k, bool later, uint32_t most);
/* As allot_room, for a demand, whose account is known. For a move, only what the new pod needs beyond the old one
 * counts. */
uint32_t allot_room_of(const struct berth_plan *p, const struct wish *w, bool later, uint32_t most);
/* Counts a pod that is placed (sign 1) or removed (sign -1). `later`: the pod is reserved. `replaces`: the instance
 * that the pod takes over from, or NONE. */
void allot_take(struct berth_plan *p, uint32_t workload, uint32_t replaces, const struct class *k, bool later,
                int sign);
/* Counts what a reservation will need of its quotas, until the end of the round: demands later in the order must leave
 * that free, too. */
void allot_reserve(struct berth_plan *p, uint32_t workload, const struct class *k, uint32_t pods);
void allot_unreserve_all(struct berth_plan *p);
/* Removes all reservations from the usage (sign -1), or counts them again (sign 1). */
void allot_reserves_count(struct berth_plan *p, int sign);
/* Change how the instance in the slot is counted. allot_leave: its quota is free once all stops are done. allot_stay:
 * undoes allot_leave. allot_lose: its quota is free now. allot_promote: a reserved instance counts now. An instance
 * that another instance takes over from frees nothing, because the other one counts then. A workload counts as a job
 * until its last instance has gone. */
void allot_leave(struct berth_plan *p, uint32_t slot);
void allot_stay(struct berth_plan *p, uint32_t slot);
void allot_lose(struct berth_plan *p, uint32_t slot);
void allot_promote(struct berth_plan *p, uint32_t slot);
/* Returns whether the quotas have room for an instance that was about to stop to stay. */
bool allot_may_stay(const struct berth_plan *p, uint32_t slot);
/* Returns whether a reserved instance may be promoted within all limits of its quotas: 1 now, 0 later, -1 never,
 * because a limit was lowered. */
int allot_promise(const struct berth_plan *p, uint32_t slot);

/* Finds the first limit that keeps out one more pod of the workload: the quota and resource, the amount held and the
 * amount allowed. Returns false if there is none. For a total, `limit` and `held` are in amount x seconds. */
struct allot_short {
    uint32_t quota, resource;
    bool total;
    int64_t held, limit, need;
};
bool allot_why(const struct berth_plan *p, uint32_t workload, const struct class *k, struct allot_short *ret);
