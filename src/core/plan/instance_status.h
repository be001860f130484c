/* instance_status.h - the status of a workload and its instances when a plan begins.
 *
 * workload_status_find classifies each instance on its own: a pod that counts as one of the requested replicas, a
 * replacement about to take over, a stopping instance, an instance that is gone (its node is lost and it is replaced or
 * fenced), or a finished task. It stops instances that are wrong whatever the workload wants: second instances of a pod
 * and reserved instances that can no longer be placed. reconcile.c compares the rest with the desired number.
 */
#pragma once

#include "core/plan/plan.h"

enum member_role {
    PART_NONE,    /* ended, removed by this plan, or lost and replaced */
    PART_COUNTED, /* one of the requested replicas */
    PART_EXTRA,   /* about to take over from a counted instance */
    PART_LEAVING, /* stopping */
    PART_DONE,    /* a finished task */
};

struct workload_member {
    uint32_t slot, ordinal;
    uint64_t id;
    enum member_role part;
    bool lost;     /* counted, but on a node that does not report */
    bool draining; /* must move off its node, because of `why` */
    enum berth_cause why;
    bool outdated;
    bool available; /* ready and running */
    bool promote;   /* reserved, and its resources are free now */
    uint32_t extra; /* index of the member that takes over from this one, or NONE */
};

/* A workload with the status of all its instances. */
struct workload_status {
    uint32_t workload;
    const struct workload *w;
    struct workload_member *at; /* sorted by ordinal, then id */
    uint32_t len;
    uint32_t want, counted, done, available;
};

enum promotion { PROMOTION_LATER, PROMOTION_NOW, PROMOTION_NEVER };

void workload_status_find(struct berth_plan *p, uint32_t workload, struct workload_status *st);

/* Returns whether a reserved instance can be assigned now, later, or never. */
enum promotion promotion_of(struct berth_plan *p, uint32_t slot);

/* Stops the member's instance. A reserved instance is dropped at once. */
void member_stop_instance(struct berth_plan *p, struct workload_member *m, enum berth_cause cause);
/* Stops a counted member and the replacement that was to take over from it. */
void member_stop(struct berth_plan *p, struct workload_status *st, struct workload_member *m, enum berth_cause cause);
