/* allot.h - quotas in a plan: what is held as the plan goes on, at once and once all stops are done, as cycle.h has it of
 * nodes. Work of no quota costs nothing here. */
#pragma once

#include "core/plan.h"

void allotments_begin(struct berth_plan *p);

/* How many more pods of the class (at most `most`) its workload may have within every limit of its quotas: at once, or once
 * all stops are done. */
uint32_t allot_room(const struct berth_plan *p, uint32_t workload, const struct class *k, bool later, uint32_t most);
/* Counts pods that are placed (sign 1) or given back; `later`: reserved ones. */
void allot_take(struct berth_plan *p, uint32_t workload, const struct class *k, bool later, int sign);
/* What the instance holds is free once it has stopped; at once; a reserved one is dropped; it becomes real. */
void allot_leave(struct berth_plan *p, const struct instance *i);
void allot_lose(struct berth_plan *p, const struct instance *i);
void allot_drop(struct berth_plan *p, const struct instance *i);
void allot_promote(struct berth_plan *p, const struct instance *i);
/* May a reserved instance become real within all limits, as far as its quotas go? */
bool allot_holds(const struct berth_plan *p, const struct instance *i);

/* The first limit that keeps one more pod of the workload out: which quota and resource, how much is held, how much is
 * allowed. False: none. A total has `limit` and `held` in amount x seconds. */
struct allot_short {
    uint32_t quota, resource;
    bool total;
    int64_t held, limit, need;
};
bool allot_why(const struct berth_plan *p, uint32_t workload, const struct class *k, struct allot_short *ret);
