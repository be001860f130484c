/* instance_status.h - a workload and its instances as they stand at the beginning of a plan.
 *
 * standing_look decides for each instance alone what it is: one of the pods asked for, one that is about to take over from
 * another, one that leaves, one that is gone (its node is lost and it is replaced or fenced), or a task that is done. It
 * stops what is wrong whatever the workload wants: second instances of a pod, reservations that cannot be kept.
 * reconcile.c compares the rest with what is wanted.
 */
#pragma once

#include "core/plan/plan.h"

enum part {
    PART_NONE,    /* gone with this plan, or ended, or unknown and replaced */
    PART_COUNTED, /* one of the pods asked for */
    PART_EXTRA,   /* about to take over from a counted one */
    PART_LEAVING, /* stopping */
    PART_DONE,    /* a task that ended */
};

struct member {
    uint32_t slot, ordinal;
    uint64_t id;
    enum part part;
    bool lost;     /* unknown: on a node that does not report, and yet counted */
    bool draining; /* or to leave for another reason: */
    enum berth_cause why;
    bool outdated;
    bool available; /* ready and running */
    bool promote;   /* reserved, and its place is free now */
    uint32_t extra; /* member that takes over from this one, or NONE */
};

/* A workload and its instances, as they stand. */
struct standing {
    uint32_t workload;
    const struct workload *w;
    struct member *at; /* by ordinal and id */
    uint32_t len;
    uint32_t want, counted, done, available;
};

enum promise { PROMISE_WAITS, PROMISE_HOLDS, PROMISE_BROKEN };

void standing_look(struct berth_plan *p, uint32_t workload, struct standing *st);

/* Could a reserved instance have its place at once, later, or never? */
enum promise promise_of(struct berth_plan *p, uint32_t slot);

/* Tells it to stop. One that was only reserved is gone at once. */
void member_leave(struct berth_plan *p, struct member *m, enum berth_cause cause);
/* Stops a counted member and whoever was to take over from it. */
void member_stop(struct berth_plan *p, struct standing *st, struct member *m, enum berth_cause cause);
