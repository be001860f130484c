/* cycle.h - the working state of one plan: what is free as the plan goes on, and bounds over it.
 *
 * Columns are indexed by position (layout.h) and padded to whole blocks. For each entry of each level the cycle keeps
 * the maximum of every column and of the key over the nodes covered; that is what lets search.c leave most blocks
 * closed. A bound may be too high for a while, never too low: what rises, raises the bounds above it at once; the keys
 * of segments are always exact, those of coarser entries after cycle_refresh; columns are made tight where a search opened
 * one in vain.
 */
#pragma once

#include "core/plan/profile.h"
#include "core/snapshot/snapshot.h"

/* Columns after those of resources: whole GPUs free; most milli free of a GPU in part use; whole GPUs free on a node of
 * which some GPU is in use. */
enum { GPU_FREE, GPU_PART, GPU_USED_FREE, GPU_COLUMNS };

struct bounds {
    uint32_t len;
    int64_t **max; /* [column][entry] */
    int32_t *key;  /* [entry] */
};

/* A topology: which domain each node is in. */
struct topology {
    sym key;
    const uint32_t *domain; /* [position], NONE where the node has none; NULL: each node is its own */
    uint32_t domains;
    struct topology *next;
};

/* Nodes on which spreads count pods: those that satisfy a part of some rules and have some topologies. */
struct spread_nodes {
    uint32_t rules;
    enum berth_spread_nodes nodes;
    const struct topology *const *topologies;
    uint32_t topologies_len;
    const uint64_t *bits; /* [block] */
    struct spread_nodes *next;
};

/* Domains of a topology that have one of some nodes. */
struct eligible {
    const uint64_t *nodes; /* [block]: the same address, the same nodes */
    const struct topology *topology;
    const uint64_t *domains; /* a bit each */
    uint32_t domains_len;
    struct eligible *next;
};

struct label_column {
    sym key;
    const sym *at; /* [position] */
    struct label_column *next;
};

struct taste_column {
    int32_t *at;                  /* [position] */
    int32_t *max[LEVELS_MAX + 1]; /* [level][entry] */
};

/* A thing held by what this plan places. */
struct fresh_hold {
    uint32_t position;
    struct fresh_hold *next;
};

/* One action, compact. */
struct act {
    uint8_t op, cause;
    uint32_t workload, ordinal, position;
    uint32_t instance; /* slot concerned, or NONE */
    uint32_t replaces; /* slot, or NONE */
    uint32_t next;     /* earlier placement of the same workload, or NONE */
    uint32_t aux;      /* waits: index into cycle.waits; ADJUST: resource */
    uint32_t aux_len;
    int32_t score, rival; /* of a placement; see attempt.h */
    uint64_t gpus;
    int64_t limit;
};

struct headroom;
struct future;
struct typical;
struct fragments;
struct market;
struct worth_book;
struct gpu_cluster;
struct memo;
struct view;

struct cycle {
    const struct berth_snapshot *s;
    const struct layout *l;
    struct profile profile; /* with key, bounds of keys, market, worth and largest: of the present view */
    struct arena *arena;    /* lives as long as the plan */
    struct arena *scratch;  /* given back at the end of each turn */
    uint32_t len, blocks, columns, resources;

    int64_t **free;         /* [column][position]: what may be promised at once; NULL: nobody has any */
    int64_t **now, **later; /* [resource][position]; NULL without two books: both are `free` */
    struct device_free *devices;
    int32_t *key; /* [position] */
    struct bounds bounds[LEVELS_MAX + 1];
    /* Of search.c: a heap with room for every entry of every level; the scores in segments that a search has opened, and
     * by which search. */
    uint64_t *heap, *opened_by;
    int32_t *score;
    struct memo **memos; /* [class]: of search.c */
    size_t memo_bytes;
    VEC(uint32_t) given; /* segments in which something was given back, in order */
    uint64_t *over;      /* positions where more is held than there is, if the profile minds */
    bool any_over;
    uint64_t *pressed;         /* positions under pressure; NULL: none */
    struct headroom *headroom; /* NULL: none is kept */
    struct future *future;     /* of reservation.c; NULL: not begun */
    uint64_t *leaving;         /* positions with instances that stop: worth reserving */
    bool any_leaving;
    uint64_t *stopped; /* instance slots that this plan stops */
    uint64_t *removed; /* instance slots that are gone after this plan */
    uint32_t *dirty;   /* segments whose keys fell */
    uint32_t dirty_len;
    uint64_t *dirty_bits[LEVELS_MAX + 1];

    uint64_t **rules_mask;           /* [rules]: positions that satisfy every static filter; NULL: not asked yet */
    struct taste_column *tastes;     /* [taste] */
    uint8_t *taste_state;            /* [taste]: 0 unknown, 1 neutral, 2 has a column */
    uint8_t *dead;                   /* [class]: 1 no node can take one more */
    struct fresh_hold **fresh_holds; /* [thing]; NULL until one is needed */
    uint32_t *fresh;                 /* [workload]: its last placement in this plan, an index of acts, or NONE */
    struct topology *topologies;
    struct eligible *eligibles;
    struct spread_nodes *spread_nodes;
    struct label_column *labels;
    const struct typical *typical;              /* of the policy; NULL: those of the snapshot */
    struct fragments *fragments;                /* of fragmentation.c */
    const struct market *market;                /* NULL: worth decides nothing, or nobody asks for GPUs */
    struct worth_book *worth;                   /* of gpu_cost.c, with the market */
    struct gpu_cluster *gpu_clusters;           /* of score/gpu_clustering.c */
    int64_t largest[1 + PROFILE_RESOURCES_MAX]; /* capacity of any node: GPUs in milli, then the profile's resources */

    struct view *views; /* of view.c; NULL: there is one profile */
    uint32_t views_len, view;
    VEC(uint32_t) changed; /* with views: positions where something changed, in order */

    struct tally *tallies; /* of topology_counts.c */
    uint32_t takebacks;    /* how often actions were taken back, or moved */
    VEC(struct act) acts;
    VEC(uint64_t) waits;
    uint64_t searches, opened;
};

void cycle_init(struct cycle *c, const struct berth_snapshot *s, const struct profile *p, struct arena *arena,
                struct arena *scratch);

/* Takes what one pod of the class needs from the node, or gives it back. `gpus` are the devices. With `later`, only the
 * later book changes (a reserved pod). */
void cycle_take(struct cycle *c, const struct class *k, uint32_t position, uint64_t gpus, bool later, int sign);
/* What an instance holds will be free once it has stopped. */
void cycle_leave(struct cycle *c, const struct instance *i);
/* What a reserved instance was promised is given up, or becomes real. */
void cycle_unreserve(struct cycle *c, const struct instance *i);
void cycle_promote(struct cycle *c, const struct instance *i);
/* What an instance holds is free at once: its node has fenced it. */
void cycle_lose(struct cycle *c, const struct instance *i);
/* Takes places for attached volumes on a node (amount below 0), or gives them back. */
void cycle_shift(struct cycle *c, uint32_t resource, uint32_t position, int64_t amount);
/* Makes the keys of coarse entries exact where something was taken since. */
void cycle_refresh(struct cycle *c);
/* For view.c: makes keys, their bounds and whatever else follows from the profile; and what changes of these with what is free on a
 * node. */
void cycle_profile_begin(struct cycle *c);
void cycle_key_changed(struct cycle *c, uint32_t position);
/* Makes what the class needs exact in the columns of a segment and of what is above it. */
void cycle_tighten(struct cycle *c, const struct class *k, uint32_t segment);

const struct topology *cycle_topology(struct cycle *c, sym key);
/* The value of a label on each node, MAP_NONE where it is missing. */
const sym *cycle_labels(struct cycle *c, sym key);

/* A resource as seen now, or once all stops are done; NULL where nobody has any. */
static inline const int64_t *cycle_column(const struct cycle *c, uint32_t resource, bool later)
{
    if (resource >= c->resources || !c->free[resource])
        return NULL;
    return later && c->later ? c->later[resource] : c->free[resource];
}

static inline uint32_t cycle_gpu_column(const struct cycle *c, unsigned which)
{
    return c->resources + which;
}
