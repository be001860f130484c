/* reservation.h - backfill: reservations for demands that wait, and which pods may start before them.
 *
 * A running pod is expected to end at its start plus its estimate. When the pod has outrun the estimate, the estimate
 * is doubled, again and again, up to the pod's time limit. Services never end. A demand that finds no place gets a
 * reservation at the earliest such moment at which all the pods it needs fit: beside the earlier reservations, device
 * by device, and outside the windows of others. Reservations consider only resources, GPUs and fixed properties of
 * nodes, not ports, volumes or spread.
 *
 * A pod is placed now only if it delays no earlier reservation: it ends in time, or fits beside the reserved pods. So
 * after a plan is applied, the next plan finds the same reservations.
 */
#pragma once

#include "core/plan/plan.h"

struct reservation {
    uint32_t demand; /* the first demand of its group */
    int64_t start_ns, end_ns;
    const struct reserved_place {
        uint32_t demand, position, pods;
        uint64_t gpus;
    } * places;
    uint32_t places_len;
    uint32_t stops; /* stop_set of the plan when the reservation was made */
};

/* Resolves windows; makes no reservation yet. The result is freed by reservations_done. */
void reservations_begin(struct berth_plan *p);
void reservations_done(struct berth_plan *p);

/* Returns how long a pod of a workload with this claim (NULL: none) is expected to hold its place; BERTH_NEVER_NS: for
 * ever. */
int64_t expected_duration(const struct workload *w, const struct claim *t, const struct berth_backfill *by);
/* Returns when an instance of the workload that runs since since_ns is expected to end; always after now_ns.
 * BERTH_NEVER_NS: never. */
int64_t expected_end(const struct workload *w, const struct claim *t, const struct berth_backfill *by, int64_t since_ns,
                     int64_t now_ns);

/* Returns how long a pod of the workload is expected to hold its place; BERTH_NEVER_NS: for ever. */
int64_t expected_duration_of(const struct berth_plan *p, uint32_t workload);
/* Returns how long the pod may hold its place at most: its time limit, or if it has none, the expected duration. */
int64_t max_duration_of(const struct berth_plan *p, uint32_t workload);
/* Returns when an instance is expected to end; never before the moment of the plan. */
int64_t expected_end_of(const struct berth_plan *p, const struct instance *i);

/* Makes a reservation for the demands of one group, or for one pod of a single demand, that found no place. Returns
 * false if no reservations are left or no start can be predicted. Call in the order of the demands; not for a demand
 * that is short of quota. */
bool reservation_make(struct berth_plan *p, struct demand *w, uint32_t len);
/* Returns whether the demand could get a reservation if it finds no place. */
bool reservation_allowed(const struct berth_plan *p, const struct demand *w);
/* Returns whether no demand from index `next` on can get a reservation under the policy's limits. */
bool reservations_full(const struct berth_plan *p, size_t next);
/* Starts a new round without reservations; what is placed by now stays placed. */
void reservations_restart(struct berth_plan *p);
/* Returns the number of the round: a place refused for a reservation in one round may be free in another. */
uint32_t reservations_round(const struct berth_plan *p);
/* Notes that this plan has placed a pod there (sign 1), or has undone that (sign -1). */
void reservations_note_placed(struct berth_plan *p, const struct demand *w, uint32_t position, uint64_t gpus, int sign);

/* Returns whether the attempt would fail: since the last restart, a demand of this class that needs as few pods at once
 * and runs for no longer found no place. Only for demands that may use any node (not `bound`, not `elsewhere`). */
bool is_placement_known_to_fail(const struct berth_plan *p, const struct demand *w, uint32_t pods);
/* Records a failed attempt for is_placement_known_to_fail. `pods`: 1, or for a gang the number needed. */
void placement_note_failure(struct berth_plan *p, const struct demand *w, uint32_t pods);
/* Returns whether, since the last placement attempt began, a reservation, a window or a deadline has refused a node
 * that passed all other filters. If not, only room is missing, for every other pod of the class, too. */
bool reservations_refused_node(const struct berth_plan *p);

/* Returns whether the finished round has other reservations than the round before. Then demands that those refused may
 * find a place. */
bool reservations_moved(const struct berth_plan *p);

/* Returns whether an instance that this plan would stop could stay until its expected end without delaying a
 * reservation on its node. */
bool reservations_allow_stay(struct berth_plan *p, const struct instance *i);
/* Call when the resource counts of the node were changed without an action. */
void reservations_node_changed(struct berth_plan *p, uint32_t position);

/* Records the reservations as facts: those whose start is new or has moved, and those that are over. */
void reservations_record(struct berth_plan *p);
/* Fills in start, end, nodes and blockers of the demand's reservation. */
void reservation_describe(struct berth_plan *p, const struct demand *w, struct berth_queue_position *ret);
/* Fills in the reasons of time why the demand has no place (deadline, windows, reservations); returns their number. */
enum { RESERVATION_REASONS_MAX = 6 };
uint32_t reservation_reasons(struct berth_plan *p, const struct demand *w,
                             struct berth_reason ret[static RESERVATION_REASONS_MAX]);

/* ---- for placement attempts and filters ------------------------------------------------------------------------- */

/* Call when a placement attempt begins. Sets t->awaited: a reservation, a window or the deadline may refuse it a node
 * that would accept another pod of its class. */
void reservations_attempt_begin(struct attempt *t);

/* reservations_bind returns whether reservations exist; reservations_mask clears the nodes on which a pod of the
 * placement attempt would delay a reservation. */
bool reservations_bind(const struct attempt *t);
void reservations_mask(const struct attempt *t, struct block_range blocks, uint64_t *bits);
/* Returns the devices of the node that a pod may hold without such a delay, a bit each. */
uint64_t reservations_devices(const struct attempt *t, uint32_t position);

/* deadline_missed returns whether the pod cannot end by its deadline; then deadline_mask_all clears all nodes. */
bool deadline_missed(const struct attempt *t);
void deadline_mask_all(const struct attempt *t, struct block_range blocks, uint64_t *bits);

/* windows_bind returns the windows of others that the pod might overlap, a bit each. window_name returns the id of a
 * window. window_mask clears its nodes. */
uint64_t windows_bind(const struct attempt *t);
const char *window_name(const struct attempt *t, uint32_t window);
void window_mask(const struct attempt *t, uint32_t window, struct block_range blocks, uint64_t *bits);
