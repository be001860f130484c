/* preempt_attempt.h - one preemption attempt: its stops and reservations so far. Shared by preempt.c,
 * preempt_blockers.c and reprieve.c.
 */
#pragma once

#include "core/preempt/victims.h"

struct attempt_stop {
    uint32_t slot, victim_group;
    bool leaving, over, any_leaving; /* bits of the node, and of the cycle, before the stop */
};

struct preempt_attempt {
    struct berth_plan *p;
    struct demand *w; /* first demand of the group */
    uint32_t len;
    int64_t tier;
    VEC(struct attempt_stop) stops;
    size_t acts, waits; /* lengths before the attempt */
};

/* Returns the maximum number of pods that one plan may preempt. */
static inline uint32_t preempt_max_stops(const struct berth_plan *p)
{
    enum { MOST_USUAL = 200 };
    return p->policy.preemption.most ? p->policy.preemption.most : MOST_USUAL;
}

/* preempt_attempt_stop stops all pods of a victim group; preempt_attempt_undo undoes all actions from index `acts`
 * on. */
void preempt_attempt_stop(struct preempt_attempt *e, uint32_t victim_group);
void preempt_attempt_undo(struct preempt_attempt *e, size_t acts);

/* Returns the stopped victim groups, the most valuable first. Valid until the scratch arena is rewound. */
uint32_t *preempt_attempt_groups(const struct preempt_attempt *e, uint32_t *ret_len);

/* Returns whether an instance that this plan stops has room on its node, on its devices and within its quotas beside
 * everything that was placed. `promised`: the plan reserves a place on its node. Returns false for instances with
 * ports, volumes or a limit of pods per node, which are not checked. */
bool reprieve_has_room(struct berth_plan *p, uint32_t slot, bool promised);
/* Change only the resource counts: the instance stays (reprieve_stay), or stops again (reprieve_undo). */
void reprieve_stay(struct berth_plan *p, uint32_t slot);
void reprieve_undo(struct berth_plan *p, uint32_t slot);

/* Reprieves the victims that need not be stopped, and turns reservations on their nodes into placements. Changes
 * nothing else. */
void preempt_attempt_reprieve(struct preempt_attempt *e);
