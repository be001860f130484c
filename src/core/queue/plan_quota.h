/* plan_quota.h - quotas in a plan: what is held as the plan goes on, at once and once all stops are done, as cycle.h has it of
 * nodes. Work of no quota costs nothing here. */
#pragma once

#include "core/plan/plan.h"

void allotments_begin(struct berth_plan *p);

/* How many more pods of the class (at most `most`) its workload may have within every limit of its quotas: at once, or once
 * all stops are done. */
uint32_t allot_room(const struct berth_plan *p, uint32_t workload, const struct class *k, bool later, uint32_t most);
/* The same of a wish, which knows its account; of a move, beyond what the old one has. */
uint32_t allot_room_of(const struct berth_plan *p, const struct wish *w, bool later, uint32_t most);
/* Counts a pod that is placed (sign 1) or given back; `later`: a reserved one; `replaces`: it takes over from that instance, or
 * NONE. */
void allot_take(struct berth_plan *p, uint32_t workload, uint32_t replaces, const struct class *k, bool later,
                int sign);
/* Counts what a reservation in time will need of its quotas, for as long as the round lasts: what comes later in the order
 * must leave that, too. */
void allot_reserve(struct berth_plan *p, uint32_t workload, const struct class *k, uint32_t pods);
void allot_unreserve_all(struct berth_plan *p);
/* Leaves them out of account (sign -1), or counts them again. */
void allot_reserves_count(struct berth_plan *p, int sign);
/* What the instance in the slot holds, or a reserved one was promised, is free once all stops are done; that is taken back; it
 * is free at once; a promise becomes real. One that another takes over from frees nothing: that one counts then. Whether its
 * workload counts as a job changes only when it has gone. */
void allot_leave(struct berth_plan *p, uint32_t slot);
void allot_stay(struct berth_plan *p, uint32_t slot);
void allot_lose(struct berth_plan *p, uint32_t slot);
void allot_promote(struct berth_plan *p, uint32_t slot);
/* Is there room for one that leaves to stay after all? */
bool allot_may_stay(const struct berth_plan *p, uint32_t slot);
/* May a reserved instance become real within all limits of its quotas? 1 at once, 0 later, -1 never: one was lowered. */
int allot_promise(const struct berth_plan *p, uint32_t slot);

/* The first limit that keeps one more pod of the workload out: which quota and resource, how much is held, how much is
 * allowed. False: none. A total has `limit` and `held` in amount x seconds. */
struct allot_short {
    uint32_t quota, resource;
    bool total;
    int64_t held, limit, need;
};
bool allot_why(const struct berth_plan *p, uint32_t workload, const struct class *k, struct allot_short *ret);
