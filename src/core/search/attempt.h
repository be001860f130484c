/* attempt.h - one workload's turn in a plan: what its pods need, which nodes may take them, and how it stands to others.
 *
 * A turn is begun for one class and one workload, asked by search.c, told of each placement, and ended. Nothing of it
 * survives the turn except through the cycle.
 */
#pragma once

#include "core/filter/filter.h"
#include "core/plan/cycle.h"

/* How the pods counted by a tie are distributed over the domains of its topology. */
struct tie_state {
    const struct tie *tie; /* NULL: the limit of pods per node */
    const struct topology *topology;
    int32_t *count;    /* [domain] */
    int64_t total;     /* pods counted in all of them */
    bool self;         /* the pods of this turn count, too */
    bool lasting;      /* what is stopping is not counted by domain: it is not near, and fills no preferred spread */
    uint32_t going;    /* pods counted that stop */
    int32_t *leaving;  /* [position]: of a required `apart`, seen from later on: how many stop there; or NULL */
    bool mirror;       /* another workload's `apart`: the pods counted are its own */
    uint32_t mirrored; /* of a mirror: which tie that is */
    const uint64_t *counted;         /* of a spread: positions whose pods count unless they stop; NULL: all do */
    const struct eligible *eligible; /* of a required spread */
    int32_t least;                   /* of a spread: over eligible domains */
    uint32_t at_least;               /* domains that have so few */
    int32_t *after; /* of a required spread: [domain] once all that stop, and the replaced one, are gone; or NULL */
    int32_t after_least; /* ... over eligible domains */
    uint32_t after_at_least;
};

/* Whose turn it is. */
struct asker {
    uint32_t workload;
    struct class_ix class;
    uint32_t replaces;  /* the one pod is to take over from this instance, or NONE */
    uint32_t only, but; /* positions: on this node alone, and not on that; NONE */
};

struct turn {
    struct cycle *c;
    const struct workload *w;
    const struct class *k;
    uint32_t workload, class, replaces, only, but;
    bool confined;  /* nodes may refuse it that would take another pod of its class */
    bool awaited;   /* ... because of a reservation, a window or its deadline */
    bool later;     /* looking at what is free once all stops are done */
    bool anywhere;  /* ... also where nothing stops */
    uint64_t *mask; /* [block]: nodes that pass static and turn filters */
    struct tie_state *ties;
    uint32_t ties_len;
    const struct taste_column *taste; /* NULL: neutral */
    const struct filter *dynamic[12];
    uint32_t dynamic_len;
    struct {
        const struct score *score;
        int32_t weight;
    } live[32]; /* BLOCK scores that matter */
    uint32_t live_len;
    bool flat;      /* it asks for no GPUs, and they say the same of all nodes without: */
    int32_t plain;  /* this */
    bool entangled; /* a placement may change the verdict on or the score of other nodes */
    bool rose;      /* ... for the better: start the search anew */
    uint32_t outer; /* the view before */
    int32_t score;  /* of the node that a search has found last */
    int32_t rival;  /* no node of another segment had more; the same as score: there was none */
    struct arena_mark mark;
};

void turn_begin(struct turn *t, struct cycle *c, struct asker who, bool later);
/* A pod was placed here by this turn. */
void turn_placed(struct turn *t, uint32_t position);
void turn_end(struct turn *t);

/* Is a turn of it like that of any other workload of its class: nothing counted by domain, no node closed to it alone? Time
 * is left out. */
bool turn_alike(struct cycle *c, struct asker who);

/* The devices a pod would hold on this node, which passes the filters; 0 for a class without GPUs. */
uint64_t turn_pick_gpus(const struct turn *t, uint32_t position);

/* topology.c; how many there would be of them. */
uint32_t ties_found(struct turn *t);
void ties_begin(struct turn *t);
void ties_placed(struct turn *t, uint32_t position);

static inline uint32_t tie_domain(const struct tie_state *ts, uint32_t position)
{
    return ts->topology->domain ? ts->topology->domain[position] : position;
}

static inline bool tie_required(const struct tie_state *ts)
{
    return !ts->tie || ts->tie->weight == 0;
}

/* Counts all that the tie selects: in topology.c; and the same, by what was counted for an earlier turn and what was placed since, in
 * topology_counts.c. How many pods were looked at. */
uint32_t ties_count(const struct cycle *c, struct tie_state *ts);
void ties_count_one(struct tie_state *ts, uint32_t position, bool leaving);
void tally_count(struct cycle *c, struct tie_state *ts);
/* Do pods of the workload count: by their labels, or because they have the tie themselves? */
bool tie_counts(const struct cycle *c, const struct tie_state *ts, uint32_t workload);

/* topology_scope.c: the nodes on which a spread of the turn counts pods (NULL: on all), and the domains of which one is the
 * emptiest. */
const uint64_t *spread_counted(struct turn *t, const struct tie *tie);
const struct eligible *spread_eligible(struct turn *t, const struct tie *tie);

/* The static mask of some rules; made on first use. */
const uint64_t *turn_rules_mask(struct cycle *c, const struct turn *t);
