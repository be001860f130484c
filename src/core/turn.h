/* turn.h - one workload's turn in a plan: what its pods need, which nodes may take them, and how it stands to others.
 *
 * A turn is begun for one class and one workload, asked by search.c, told of each placement, and ended. Nothing of it
 * survives the turn except through the cycle.
 */
#pragma once

#include "core/cycle.h"
#include "core/filter.h"

/* How the pods counted by a tie are distributed over the domains of its topology. */
struct tie_state {
    const struct tie *tie; /* NULL: the limit of pods per node */
    const struct topology *topology;
    int32_t *count;                  /* [domain] */
    int64_t total;                   /* pods counted, nodes without the label included */
    bool self;                       /* the pods of this turn count, too */
    bool lasting;                    /* what is stopping is not near */
    bool mirror;                     /* another workload's `apart`: the pods counted are its own */
    const struct eligible *eligible; /* of a spread */
    int32_t least;                   /* of a spread: over eligible domains */
    uint32_t at_least;               /* domains that have so few */
    uint32_t gone;                   /* of a spread: the domain of the one that is replaced, or NONE */
    int32_t gone_least;              /* the least once it is gone */
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
    bool entangled; /* a placement may change the verdict on or the score of other nodes */
    bool rose;      /* ... for the better: start the search anew */
    struct arena_mark mark;
};

void turn_begin(struct turn *t, struct cycle *c, struct asker who, bool later);
/* A pod was placed here by this turn. */
void turn_placed(struct turn *t, uint32_t position);
void turn_end(struct turn *t);

/* The devices a pod would hold on this node, which passes the filters; 0 for a class without GPUs. */
uint64_t turn_pick_gpus(const struct turn *t, uint32_t position);

/* ties.c */
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

/* The static mask of some rules; made on first use. */
const uint64_t *turn_rules_mask(struct cycle *c, const struct turn *t);
