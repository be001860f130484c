/* timeline.h - free resources of a node over time; shared by reservation.c, earliest_start.c and window.c.
 *
 * At the moment of the plan, a node has what is free once all stops are done. Then each expected end of an instance
 * frees what the instance holds, and each reservation takes resources at its start and frees them at its end. Ends are
 * gathered once per plan, on first use; pods that the plan places are added by reservations_note_placed.
 */
#pragma once

#include "core/backfill/reservation.h"

/* An instance that is expected to end. */
struct expected_end {
    int64_t at_ns;
    const struct class *k;
    uint64_t gpus;
    uint32_t position, slot;
};

/* A pod that this plan has placed and that is expected to end. */
struct new_pod_end {
    int64_t at_ns;
    const struct class *k;
    uint64_t gpus;
    uint32_t position, next; /* the next one on the node, or NONE */
    bool gone;               /* the placement was undone */
};

/* A place of a reservation. */
struct node_reservation {
    const struct reservation *of;
    struct reserved_place place;
    const struct class *k;
    uint32_t next; /* the next one on the node, or NONE */
};

/* Resources freed (pods above 0) or taken (pods below 0) at a moment. */
struct timeline_change {
    int64_t at_ns;
    const struct class *k;
    uint64_t gpus;
    int32_t pods;
};

typedef VEC(struct timeline_change) change_list;

/* A window of the policy with its nodes and quotas looked up. */
struct resolved_window {
    int64_t start_ns, end_ns;
    const char *id;
    const uint64_t *nodes; /* bit set of positions */
    const uint32_t *quotas;
    uint32_t quotas_len;
};

/* A failed search for a class: number of pods at once, durations, and the windows of others. */
struct failed_search {
    int64_t duration_ns, longest_ns;
    uint64_t foreign;
    uint32_t pods;
    uint32_t round; /* round of the failure; an older one is void */
    bool fits;      /* in `unforeseen`: up to so many pods would fit now, for up to these durations */
};

struct reservation_state {
    struct berth_plan *p;
    struct expected_end *ends; /* by time; NULL: not gathered yet */
    uint32_t ends_len;
    uint32_t *first_end; /* [position]: index into by_node; [len] is their number */
    uint32_t *by_node;   /* indices of ends, by node, then time */
    VEC(struct new_pod_end) fresh;
    VEC(uint32_t) fresh_order; /* indices of fresh by time; timeline_sort_fresh adds the new ones */
    uint32_t *fresh_of;        /* [position]: the last one there, or NONE */
    VEC(struct reservation *) made;
    VEC(struct node_reservation) kept;
    uint32_t *kept_of;          /* [position]: the last one there, or NONE */
    uint64_t *reserved;         /* bit set of positions with a reserved place */
    uint64_t *with_reservation; /* bit set of workloads with a reservation */
    uint32_t *alike;            /* [rules]: number of reservations for workloads with these constraints */
    size_t open;                /* see reservations_full */
    change_list *changes;       /* [position]: all changes there, in order; NULL: not used yet */
    uint64_t *known;            /* bit set of positions whose `changes` are valid */
    uint32_t stops;             /* stop_generation of the plan when `changes` were made */
    int64_t **last;             /* [resource][position]: free amount after all expected ends; NULL: not used yet */
    int64_t *last_most;         /* [resource]: the maximum over all nodes */
    uint32_t last_stops;        /* stop_generation of the plan when `last` was made */
    const struct resolved_window *windows;
    uint32_t windows_len;
    struct failed_search (*failed_search)[2]; /* [class][0: one pod; 1: a gang] */
    struct failed_search *unpredictable;      /* [class]: no start can be predicted for so many pods */
    uint32_t round;
    uint32_t tries;     /* failed searches of this round */
    int64_t horizon_ns; /* the latest start of this round: the next start is probably not much later */
    /* Reservations of the round before. They stay valid as long as nothing was stopped since then and this round has
     * placed nothing. */
    VEC(struct reservation *) before;
    size_t before_at;
    bool reuse;
    size_t round_wishes;
    uint64_t placements, round_placements;
    uint64_t made_hash, made_before; /* of the reservations of this round, and of the round before */
    bool asked;                      /* a reservation was requested: expected ends matter */
    bool refused;                    /* see reservations_refused_node */
};

static inline int64_t add_ns(int64_t at_ns, int64_t more_ns)
{
    int64_t sum;
    return __builtin_add_overflow(at_ns, more_ns, &sum) ? BERTH_NEVER_NS : sum;
}

/* ---- room on one node ------------------------------------------------------------------------------------------- */

/* The free amount on a node of each need of a class, and of each device that suits the class. */
struct node_free {
    int64_t free[BERTH_RESOURCES_MAX];
    int32_t milli[BERTH_NODE_GPUS_MAX];
    int64_t mem[BERTH_NODE_GPUS_MAX];
    uint32_t devices;
};

/* Loads what is free once all stops are done; returns false if no node has one of the needed resources. */
bool node_free_load(const struct cycle *c, const struct class *k, uint32_t position, struct node_free *ret);
/* Adds what `pods` pods of the other class hold; a negative number subtracts it. */
void node_free_add(const struct class *k, struct node_free *r, const struct class *other, uint64_t gpus, int32_t pods);
/* Return the number of pods that fit, at most `most`; node_free_fits_needs considers resources without devices. */
uint32_t node_free_fits(const struct class *k, const struct node_free *r, uint32_t most);
uint32_t node_free_fits_needs(const struct class *k, const struct node_free *r, uint32_t most);
/* Returns the devices that one more pod may hold, or hold a share of, a bit each. */
uint64_t node_free_devices(const struct class *k, const struct node_free *r);

/* ---- time ------------------------------------------------------------------------------------------------------- */

/* Gathers the expected ends, unless that was done. */
void timeline_gather(struct reservation_state *f);
/* Brings fresh_order up to date. */
void timeline_sort_fresh(struct reservation_state *f);
/* All changes on the node after the moment of the plan, in order. */
struct timeline_changes {
    const struct timeline_change *at;
    size_t len;
};
struct timeline_changes timeline_changes(struct reservation_state *f, uint32_t position);
/* Call when the changes of the node are no longer valid. */
void timeline_changed(struct reservation_state *f, uint32_t position);
/* Computes, for each resource that the class requests, the smallest free amount from at_ns until the duration has
 * passed. Returns what node_free_load returns. */
bool timeline_min_room(struct reservation_state *f, const struct class *k, uint32_t position, int64_t at_ns,
                       int64_t duration_ns, struct node_free *ret);
/* For a class without GPUs: returns whether there is always room for one more pod from now until that moment. Stops at
 * the first moment without room. */
bool timeline_always_fits(struct reservation_state *f, const struct class *k, uint32_t position, int64_t last_ns);

/* Returns whether so many pods of the class could fit after all expected ends if nothing were reserved. Considers
 * resources only. */
bool timeline_fits_eventually(struct reservation_state *f, const struct class *k, uint32_t pods);

/* ---- windows ---------------------------------------------------------------------------------------------------- */

void windows_resolve(struct reservation_state *f);
/* Returns the windows whose nodes the workload may not use, a bit each; there are at most WINDOWS_MAX. */
uint64_t windows_of_others(const struct reservation_state *f, uint32_t workload);

/* ---- search for the first start --------------------------------------------------------------------------------- */

/* A request for pods of a class, all at once. */
struct pods_request {
    const struct class *k;
    uint32_t demand, workload, pods;
    uint32_t only; /* a position, or NONE */
    uint64_t foreign;
    int64_t longest_ns; /* maximum run time, for the windows of others */
};

typedef VEC(struct reserved_place) place_list;

/* Returns the first moment, now included, at which the pods fit, and adds their places to `places` in order of
 * position; BERTH_NEVER_NS if no moment can be predicted. */
int64_t find_earliest_start(struct reservation_state *f, const struct pods_request *d, int64_t duration_ns,
                            place_list *places);
/* Adds the places of the pods at a given moment; returns false if too few fit. */
bool places_at(struct reservation_state *f, const struct pods_request *d, int64_t at_ns, int64_t duration_ns,
               place_list *places);
