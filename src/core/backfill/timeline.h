/* timeline.h - what is free on a node as time goes on: what reservation.c, earliest_start.c and window.c share.
 *
 * From the moment of the plan on, a node has what is free once all stops are done (the later book); then each end that is
 * expected gives back what that instance holds, and each reservation takes and gives back. Ends are gathered once per plan,
 * when something is first asked; what the plan places is told by future_placed.
 */
#pragma once

#include "core/backfill/reservation.h"

/* An instance that is expected to end. */
struct ending {
    int64_t at_ns;
    const struct class *k;
    uint64_t gpus;
    uint32_t position, slot;
};

/* A pod that this plan has placed and that is expected to end. */
struct fresh_end {
    int64_t at_ns;
    const struct class *k;
    uint64_t gpus;
    uint32_t position, next; /* of the node, NONE */
    bool gone;               /* given back */
};

/* A place of a reservation. */
struct kept {
    const struct reservation *of;
    struct reserved_place place;
    const struct class *k;
    uint32_t next; /* of the node, NONE */
};

/* Something given back (pods above 0) or taken at a moment. */
struct change {
    int64_t at_ns;
    const struct class *k;
    uint64_t gpus;
    int32_t pods;
};

typedef VEC(struct change) change_list;

/* A window of the policy, resolved. */
struct window {
    int64_t start_ns, end_ns;
    const char *id;
    const uint64_t *nodes; /* positions */
    const uint32_t *quotas;
    uint32_t quotas_len;
};

/* What of a class found no place: so many pods at once, for so long, with these rights. */
struct hopeless {
    int64_t duration_ns, longest_ns;
    uint64_t foreign;
    uint32_t pods;
    uint32_t round; /* of which it was; else of an earlier one */
    bool fits;      /* of what cannot be foreseen: so many would fit at once, for no longer than that */
};

struct future {
    struct berth_plan *p;
    struct ending *ends; /* by time; NULL: not gathered yet */
    uint32_t ends_len;
    uint32_t *first_end; /* [position]: into by_node; [len] is their number */
    uint32_t *by_node;   /* indices of ends, by node, then time */
    VEC(struct fresh_end) fresh;
    VEC(uint32_t) fresh_order; /* by time; may lag behind */
    uint32_t *fresh_of;        /* [position]: the last one there, or NONE */
    VEC(struct reservation *) made;
    VEC(struct kept) kept;
    uint32_t *kept_of;    /* [position]: the last one there, or NONE */
    uint64_t *reserved;   /* positions with a place that is kept */
    uint64_t *having;     /* workloads with a reservation */
    uint32_t *alike;      /* [rules]: reservations of those that have them */
    size_t open;          /* see future_full */
    change_list *changes; /* [position]: all that changes there, in order; NULL: none was asked for */
    uint64_t *known;      /* positions for which that is so */
    uint32_t stops;       /* of the plan, when they were made */
    int64_t **last;       /* [resource][position]: what is free when all that ends has ended; NULL: not asked yet */
    int64_t *last_most;   /* [resource]: the most of any node */
    uint32_t last_stops;  /* of the plan, when they were made */
    const struct window *windows;
    uint32_t windows_len;
    struct hopeless (*hopeless)[2]; /* [class]: one pod; a gang */
    struct hopeless *unforeseen;    /* [class]: nobody can say when so many pods fit */
    uint32_t round;
    uint32_t tries;     /* of this round that found nothing */
    int64_t horizon_ns; /* the last start of this round: the next is not far behind */
    /* The round before: what it reserved stands, as long as nothing has stopped since and this one has placed nothing. */
    VEC(struct reservation *) before;
    size_t before_at;
    bool reuse;
    size_t round_wishes;
    uint64_t placements, round_placements;
    uint64_t made_hash, made_before; /* of the reservations of this round, and of the one before */
    bool asked;                      /* somebody wanted a reservation: what is expected matters */
    bool refused;                    /* see future_refused */
};

static inline int64_t add_ns(int64_t at_ns, int64_t more_ns)
{
    int64_t sum;
    return __builtin_add_overflow(at_ns, more_ns, &sum) ? BERTH_NEVER_NS : sum;
}

/* ---- room on one node ------------------------------------------------------------------------------------------- */

/* What is free there of what a class needs: of each need, and of each device that suits it. */
struct room {
    int64_t free[BERTH_RESOURCES_MAX];
    int32_t milli[BERTH_NODE_GPUS_MAX];
    int64_t mem[BERTH_NODE_GPUS_MAX];
    uint32_t devices;
};

/* Once all stops are done; false: nobody has any of something it needs. */
bool room_load(const struct cycle *c, const struct class *k, uint32_t position, struct room *ret);
/* Gives back what `pods` pods of the other class hold, or takes it (below 0). */
void room_add(const struct class *k, struct room *r, const struct class *other, uint64_t gpus, int32_t pods);
/* Pods that fit, at most `most`; and by resources alone. */
uint32_t room_fits(const struct class *k, const struct room *r, uint32_t most);
uint32_t room_fits_needs(const struct class *k, const struct room *r, uint32_t most);
/* Devices of which one more pod may have (a share of) one. */
uint64_t room_devices(const struct class *k, const struct room *r);

/* ---- time ------------------------------------------------------------------------------------------------------- */

/* Finds out what is expected to end, unless that is known. */
void timeline_gather(struct future *f);
/* Brings fresh_order up to date. */
void timeline_sort_fresh(struct future *f);
/* All that changes on the node after the moment of the plan, in order. */
struct changes {
    const struct change *at;
    size_t len;
};
struct changes timeline_of(struct future *f, uint32_t position);
/* Something is different there. */
void timeline_changed(struct future *f, uint32_t position);
/* The least that is free there of what the class needs, from `at` until the duration is over; false: as room_load. */
bool timeline_low(struct future *f, const struct class *k, uint32_t position, int64_t at_ns, int64_t duration_ns,
                  struct room *ret);
/* Of a class without GPUs: is there always room for one more, from now on up to that moment? Looks no further than to the
 * first at which there is not. */
bool timeline_holds(struct future *f, const struct class *k, uint32_t position, int64_t last_ns);

/* Could so many pods of the class fit once all that is expected to end has ended, if nothing were reserved? Of resources
 * alone. */
bool timeline_ever(struct future *f, const struct class *k, uint32_t pods);

/* ---- windows ---------------------------------------------------------------------------------------------------- */

void windows_resolve(struct future *f);
/* The windows whose nodes the workload has no right to, a bit each; there are at most WINDOWS_MAX. */
uint64_t windows_foreign(const struct future *f, uint32_t workload);

/* ---- the earliest moment ---------------------------------------------------------------------------------------- */

/* What is asked for: pods of a class for so long, on these nodes, all at once. */
struct pods_wanted {
    const struct class *k;
    uint32_t wish, workload, pods;
    uint32_t only; /* a position, or NONE */
    uint64_t foreign;
    int64_t longest_ns; /* that it might run, for the windows of others */
};

typedef VEC(struct reserved_place) place_list;

/* The first moment at which they fit, the present one included; BERTH_NEVER_NS: none can be foreseen. Then their places, in
 * order of position, are added to `places`. */
int64_t earliest(struct future *f, const struct pods_wanted *d, int64_t duration_ns, place_list *places);
/* Their places at a moment that is given; false: too few. */
bool places_at(struct future *f, const struct pods_wanted *d, int64_t at_ns, int64_t duration_ns, place_list *places);
