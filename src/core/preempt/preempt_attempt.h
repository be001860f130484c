/* preempt_attempt.h - one attempt at making room: what it has stopped and promised so far. What preempt.c and reprieve.c share. */
#pragma once

#include "core/preempt/victims.h"

struct stop {
    uint32_t slot, party;
    bool leaving, over, any_leaving; /* as it was before */
};

struct effort {
    struct berth_plan *p;
    struct wish *w; /* of the group */
    uint32_t len;
    int64_t tier;
    VEC(struct stop) stops;
    size_t acts, waits; /* that were there before */
};

/* Pods that one plan stops. */
static inline uint32_t effort_most(const struct berth_plan *p)
{
    enum { MOST_USUAL = 200 };
    return p->policy.preemption.most ? p->policy.preemption.most : MOST_USUAL;
}

/* Stops all of a party; and takes back all that was done since there were so many actions. */
void effort_stop(struct effort *e, uint32_t party);
void effort_undo(struct effort *e, size_t acts);

/* The parties that were stopped, the most valuable first. Valid until the scratch is given back. */
uint32_t *effort_parties(const struct effort *e, uint32_t *ret_len);

/* Is there room for the instance, which this plan stops, on its node, on its devices and within its quotas beside all
 * that was placed? `promised`: the plan reserves a place on its node. Ports, volumes and the number of pods on a node
 * are not looked at: such an instance has no room. */
bool reprieve_has_room(struct berth_plan *p, uint32_t slot, bool promised);
/* In the books alone: the instance stays, or goes again. */
void reprieve_stay(struct berth_plan *p, uint32_t slot);
void reprieve_go(struct berth_plan *p, uint32_t slot);

/* Whoever need not go after all stays, and what was promised on their nodes is placed at once. Nothing else is changed. */
void effort_reprieve(struct effort *e);
