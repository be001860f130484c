/* future.h - when there will be room: reservations, and who may start before them.
 *
 * What runs is expected to end at its start plus its estimate; what has outrun that, at twice the estimate, and again, at most
 * its limit; services never end. A wish that finds no place gets a reservation at the earliest such moment at which all of
 * it that is needed fits, beside the reservations made before, device by device, outside the windows that are not its own.
 * Only resources, GPUs and fixed properties of nodes are foreseen; ports, volumes and spread are not.
 *
 * A pod is placed now only where it delays no reservation made before: it ends in time, or fits beside. So after a plan is
 * applied the same reservations are found again.
 */
#pragma once

#include "core/plan.h"

struct reservation {
    uint32_t wish; /* the first of its group */
    int64_t start_ns, end_ns;
    const struct reserved_place {
        uint32_t wish, position, pods;
        uint64_t gpus;
    } * places;
    uint32_t places_len;
};

/* Windows and what is expected; nothing is reserved yet. */
void future_begin(struct berth_plan *p);

/* How long a pod of the workload is expected to hold its place; BERTH_NEVER_NS: for ever. */
int64_t future_duration(const struct berth_plan *p, uint32_t workload);
/* When an instance is expected to have ended; never before the moment of the plan. */
int64_t future_end(const struct berth_plan *p, const struct instance *i);

/* The wishes of one group (or one wish alone: then one pod) found no place: reserves them one, if there are any left and
 * a moment can be foreseen. */
void future_reserve(struct berth_plan *p, struct wish *w, uint32_t len);
/* A round begins anew, with whatever is placed by now. */
void future_restart(struct berth_plan *p);
/* This plan has placed a pod there (sign 1), or given it back. */
void future_placed(struct berth_plan *p, const struct wish *w, uint32_t position, uint64_t gpus, int sign);

/* Does anything stand in the way of the pods of this turn, on some node? Takes away the nodes on which one of them would
 * delay a reservation made before, or still run when a window begins. For filter/reserved.c and filter/window.c. */
bool future_binds(const struct turn *t);
void future_mask(const struct turn *t, struct range blocks, uint64_t *bits);
bool window_binds(const struct turn *t);
void window_mask(const struct turn *t, struct range blocks, uint64_t *bits);

/* Remembers the reservations: facts where a start is new or has moved, and of those that are over. */
void future_close(struct berth_plan *p);
