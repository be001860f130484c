/* attempt.h - one placement attempt for a workload: what its pods request, which nodes may take them, and their
 * topology counts.
 *
 * An attempt is begun for one class and one workload, used by search.c, told of each placement, and ended. Only the
 * state kept in the cycle survives it.
 */
#pragma once

#include "core/filter/filter.h"
#include "core/plan/cycle.h"

/* Counts, per domain of its topology, the pods that one topology constraint selects. */
struct topology_state {
    const struct topology_constraint *topology_constraint; /* NULL: the limit of pods per node */
    const struct topology *topology;
    int32_t *count; /* [domain] */
    int64_t total;  /* pods counted in all domains */
    bool self;      /* the pods of this attempt are counted as well */
    bool lasting;   /* stopping pods do not count: they are not near, and fill no preferred spread */
    uint32_t going; /* counted pods that are stopping */
    /* required `apart` seen from the later book: [position] number of pods that stop there; or NULL */
    int32_t *leaving;
    bool mirror;             /* another workload's `apart`; the counted pods are that workload's own */
    uint32_t mirrored;       /* of a mirror: index of that constraint */
    const uint64_t *counted; /* of a spread: positions whose pods count unless they stop; NULL: all count */
    const struct eligible_domains *eligible; /* of a required spread */
    int32_t least;                           /* of a spread: the lowest count of any eligible domain */
    uint32_t at_least;                       /* number of domains with that count */
    /* of a required spread: [domain] counts once all stopping pods and the replaced pod are gone; or NULL */
    int32_t *after;
    int32_t after_least; /* the lowest of these over eligible domains */
    uint32_t after_at_least;
};

/* The workload that a placement attempt is for, and the nodes it is restricted to. */
struct attempt_spec {
    uint32_t workload;
    struct class_ix class;
    uint32_t replaces;  /* the single pod takes over from this instance, or NONE */
    uint32_t only, but; /* positions: the only allowed node; a forbidden node; or NONE */
};

struct attempt {
    struct cycle *c;
    const struct workload *w;
    const struct class *k;
    uint32_t workload, class, replaces, only, but;
    bool confined;  /* nodes may refuse this pod that would take another pod of its class */
    bool awaited;   /* ... because of a reservation, a window or its deadline */
    bool later;     /* uses resources that are free once all stops are done */
    bool anywhere;  /* ... also on nodes where nothing stops */
    uint64_t *mask; /* [block]: nodes that pass static and turn filters */
    struct topology_state *topology_constraints;
    uint32_t topology_constraints_len;
    const struct preference_column *preferences; /* NULL: neutral */
    const struct filter *dynamic[12];
    uint32_t dynamic_len;
    struct {
        const struct score *score;
        int32_t weight;
    } live[32]; /* BLOCK scores that apply */
    uint32_t live_len;
    bool flat;      /* the class requests no GPUs, and BLOCK scores are equal for all nodes without GPUs: */
    int32_t plain;  /* this value */
    bool entangled; /* a placement may change filters or scores of other nodes */
    bool rose;      /* ... in their favour: the search must start again */
    uint32_t outer; /* the view to restore at the end */
    int32_t score;  /* of the node that the last search returned */
    int32_t rival;  /* upper bound for nodes of other segments; equal to score if there was none */
    struct arena_mark mark;
};

void attempt_begin(struct attempt *t, struct cycle *c, struct attempt_spec who, bool later);
/* Updates the attempt after one of its pods was placed on the node. */
void attempt_placed(struct attempt *t, uint32_t position);
void attempt_end(struct attempt *t);

/* Returns whether the attempt is like that of any other workload of its class: no topology counts, and no node closed
 * to this workload only. Ignores reservations, windows and deadlines. */
bool attempt_is_class_wide(struct cycle *c, struct attempt_spec who);

/* Returns the devices a pod would hold on this node, which must pass the filters; 0 for a class without GPUs. */
uint64_t attempt_pick_gpus(const struct attempt *t, uint32_t position);

/* Implemented by topology.c. topology_states_needed returns the number of constraint states that topology_begin
 * creates. */
uint32_t topology_states_needed(struct attempt *t);
void topology_begin(struct attempt *t);
void topology_placed(struct attempt *t, uint32_t position);

static inline uint32_t topology_state_domain(const struct topology_state *ts, uint32_t position)
{
    return ts->topology->domain ? ts->topology->domain[position] : position;
}

static inline bool topology_state_required(const struct topology_state *ts)
{
    return !ts->topology_constraint || ts->topology_constraint->weight == 0;
}

/* Counts all pods that the constraint selects. topology_count (topology.c) counts from the beginning and returns how
 * many pods it examined; topology_count_cached (topology_counts.c) reuses the counts of an earlier attempt and adds
 * what was placed since. */
uint32_t topology_count(const struct cycle *c, struct topology_state *ts);
void topology_count_pod(struct topology_state *ts, uint32_t position, bool leaving);
void topology_count_cached(struct cycle *c, struct topology_state *ts);
/* Returns whether pods of the workload count: by their labels, or, for a mirror, because they have the constraint
 * themselves. */
bool topology_state_selects(const struct cycle *c, const struct topology_state *ts, uint32_t workload);

/* topology_scope.c: the nodes on which a spread of the attempt counts pods (NULL: all nodes), and the domains it keeps
 * even. */
const uint64_t *spread_counted(struct attempt *t, const struct topology_constraint *topology_constraint);
const struct eligible_domains *spread_eligible(struct attempt *t,
                                               const struct topology_constraint *topology_constraint);

/* Returns the static mask of the class's constraints; computed on first use. */
const uint64_t *attempt_constraints_mask(struct cycle *c, const struct attempt *t);
