/* reservation.h - when there will be room: reservations, and who may start before them.
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

#include "core/plan/plan.h"

struct reservation {
    uint32_t wish; /* the first of its group */
    int64_t start_ns, end_ns;
    const struct reserved_place {
        uint32_t wish, position, pods;
        uint64_t gpus;
    } * places;
    uint32_t places_len;
    uint32_t stops; /* stop_state of the plan when it was found */
};

/* Windows and what is expected; nothing is reserved yet. Freed by future_done. */
void future_begin(struct berth_plan *p);
void future_done(struct berth_plan *p);

/* How long a pod of a workload with this claim (NULL: none) is expected to hold its place; BERTH_NEVER_NS: for ever. */
int64_t expected_duration(const struct workload *w, const struct claim *t, const struct berth_backfill *by);
/* When an instance of it that runs since then is expected to have ended; after now_ns. BERTH_NEVER_NS: never. */
int64_t expected_end(const struct workload *w, const struct claim *t, const struct berth_backfill *by, int64_t since_ns,
                     int64_t now_ns);

/* How long a pod of the workload is expected to hold its place; BERTH_NEVER_NS: for ever. */
int64_t future_duration(const struct berth_plan *p, uint32_t workload);
/* For how long it might: until its limit, if it has one. */
int64_t future_longest(const struct berth_plan *p, uint32_t workload);
/* When an instance is expected to have ended; never before the moment of the plan. */
int64_t future_end(const struct berth_plan *p, const struct instance *i);

/* The wishes of one group (or one wish alone: then one pod) found no place: reserves them one, if there are any left and
 * a moment can be foreseen; returns whether it has. Called in order of the wishes; not for what is short of quota. */
bool future_reserve(struct berth_plan *p, struct wish *w, uint32_t len);
/* Is there one left for it, should it find no place? */
bool future_reserves(const struct berth_plan *p, const struct wish *w);
/* Are there as many reservations as the policy allows, for all wishes from the next one on? */
bool future_full(const struct berth_plan *p, size_t next);
/* A round begins anew, with whatever is placed by now: nothing is reserved. */
void future_restart(struct berth_plan *p);
/* Which round it is: what one refused for a reservation, another may grant. */
uint32_t future_round(const struct berth_plan *p);
/* This plan has placed a pod there (sign 1), or given it back. */
void future_placed(struct berth_plan *p, const struct wish *w, uint32_t position, uint64_t gpus, int sign);

/* A wish of this class, with as few pods to be placed at once and expected to run for no longer, found no place since the
 * last restart: this one need not be tried. Only of wishes that may go anywhere (not `bound`, not `elsewhere`). */
bool future_hopeless(const struct berth_plan *p, const struct wish *w, uint32_t pods);
/* Remembers that; `pods`: 1, or of a gang what is needed. */
void future_failed(struct berth_plan *p, const struct wish *w, uint32_t pods);
/* Since the last turn began: was a node refused by a reservation, a window or a deadline that everything else let pass?
 * Else nothing but room is missing, for every other pod of the class, too. */
bool future_refused(const struct berth_plan *p);

/* Has this round, which is over, other reservations than the one before? Then what those refused may find a place. */
bool future_moved(const struct berth_plan *p);

/* Of an instance that this plan would stop: could it stay until its expected end beside all that is kept on its node, and
 * delay none of it? */
bool future_may_stay(struct berth_plan *p, const struct instance *i);
/* What stands on the node was changed in the books alone. */
void future_changed(struct berth_plan *p, uint32_t position);

/* Remembers the reservations: facts where a start is new or has moved, and of those that are over. */
void future_close(struct berth_plan *p);
/* Start, end, nodes and blockers of the wish's reservation. */
void future_tell(struct berth_plan *p, const struct wish *w, struct berth_standing *ret);
/* Why it has no place, as far as that is a matter of time: its deadline, windows, reservations. */
enum { FUTURE_WHYS_MAX = 6 };
uint32_t future_why(struct berth_plan *p, const struct wish *w, struct berth_reason ret[static FUTURE_WHYS_MAX]);

/* ---- for turns and filters -------------------------------------------------------------------------------------- */

/* A turn begins: may any of this refuse it a node that would take another pod of its class? */
void future_turn(struct turn *t);

/* Takes away the nodes on which a pod of the turn would delay a reservation made for a wish before it. */
bool future_binds(const struct turn *t);
void future_mask(const struct turn *t, struct range blocks, uint64_t *bits);
/* The devices there that a pod may hold without such a delay, a bit each. */
uint64_t future_devices(const struct turn *t, uint32_t position);

/* Could it not end by its deadline? Then no node takes it. */
bool future_too_late(const struct turn *t);
void future_mask_all(const struct turn *t, struct range blocks, uint64_t *bits);

/* The windows of others that a pod might run into, a bit each; its id; takes away its nodes. */
uint64_t windows_bind(const struct turn *t);
const char *window_name(const struct turn *t, uint32_t window);
void window_mask(const struct turn *t, uint32_t window, struct range blocks, uint64_t *bits);
