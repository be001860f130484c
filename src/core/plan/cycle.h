/* cycle.h - the working state of one plan: free resources as the plan changes them, and upper bounds over them.
 *
 * Columns are indexed by position (layout.h) and padded to whole blocks. For each entry of each level the cycle keeps
 * the maximum of every column and of the key over the covered nodes. These bounds let search.c skip most blocks. A
 * bound may temporarily be too high, never too low: an increase raises the bounds above it at once. Keys of segments
 * are always exact; keys of coarser entries are exact after cycle_refresh. Column bounds are tightened where a search
 * opened a segment without success.
 */
#pragma once

#include "core/plan/profile.h"
#include "core/snapshot/snapshot.h"

/* Columns after those of resources: number of free whole GPUs; most free thousandths of any partly used GPU; number of
 * free whole GPUs on a node where some GPU is in use, else 0. */
enum { GPU_FREE, GPU_PART, GPU_USED_FREE, GPU_COLUMNS };

struct key_bounds {
    uint32_t len;
    int64_t **max; /* [column][entry] */
    int32_t *key;  /* [entry] */
};

/* A topology: the domain of each node. */
struct topology {
    sym key;
    const uint32_t *domain; /* [position], NONE where the node has none; NULL: each node is its own domain */
    uint32_t domains;
    struct topology *next;
};

/* Nodes on which spreads count pods: nodes that satisfy the selected part of some constraints and have all the
 * topologies. */
struct spread_nodes {
    uint32_t constraints;
    enum berth_spread_nodes nodes;
    const struct topology *const *topologies;
    uint32_t topologies_len;
    const uint64_t *bits; /* [block] */
    struct spread_nodes *next;
};

/* Domains of a topology that contain at least one of some nodes. */
struct eligible_domains {
    const uint64_t *nodes; /* [block]; compared by address */
    const struct topology *topology;
    const uint64_t *domains; /* a bit per domain */
    uint32_t domains_len;
    struct eligible_domains *next;
};

struct label_column {
    sym key;
    const sym *at; /* [position] */
    struct label_column *next;
};

struct preference_column {
    int32_t *at;                  /* [position] */
    int32_t *max[LEVELS_MAX + 1]; /* [level][entry] */
};

/* A port or volume held by a pod that this plan places. */
struct planned_hold {
    uint32_t position;
    struct planned_hold *next;
};

/* One action in compact form. */
struct plan_act {
    uint8_t op, cause;
    uint32_t workload, ordinal, position;
    uint32_t instance; /* slot of the instance acted on, or NONE */
    uint32_t replaces; /* slot of the replaced instance, or NONE */
    uint32_t next;     /* earlier placement of the same workload, or NONE */
    uint32_t aux;      /* RESERVE: index into cycle.waits; ADJUST: resource */
    uint32_t aux_len;
    int32_t score, rival; /* placements only; see struct turn */
    uint64_t gpus;
    int64_t limit;
};

struct headroom;
struct reservation_state;
struct typical_pods;
struct fragmentation_cache;
struct gpu_prices;
struct gpu_cost_rows;
struct gpu_request_count_table;
struct search_memo;
struct profile_view;

struct cycle {
    const struct berth_snapshot *s;
    const struct layout *l;
    struct profile profile; /* with key, key bounds, market, worth and largest: those of the current view */
    struct arena *arena;    /* lives as long as the plan */
    struct arena *scratch;  /* rewound at the end of each placement attempt */
    uint32_t len, blocks, columns, resources;

    int64_t **free;         /* [column][position]: available at once; NULL: no node has any */
    int64_t **now, **later; /* [resource][position]; NULL while both books equal `free` */
    struct device_free *devices;
    int32_t *key; /* [position] */
    struct key_bounds bounds[LEVELS_MAX + 1];
    /* Owned by search.c: a heap with room for every entry of every level; for each segment the last search that opened
     * it; the scores found there. */
    uint64_t *heap, *opened_by;
    int32_t *score;
    struct search_memo **memos; /* [class]; owned by search.c */
    size_t memo_bytes;
    VEC(uint32_t) given; /* segments in which something was freed, in order */
    uint64_t *over;      /* positions that hold more than their capacity, if the profile excludes them */
    bool any_over;
    uint64_t *under_pressure;                    /* positions under pressure; NULL: none */
    struct headroom *headroom;                   /* NULL: no headroom is kept */
    struct reservation_state *reservation_state; /* owned by reservation.c; NULL: not begun */
    uint64_t *leaving; /* positions with stopping instances: candidates for reserving actions */
    bool any_leaving;
    uint64_t *stopped; /* instance slots that this plan stops */
    uint64_t *removed; /* instance slots that are gone after this plan */
    uint32_t *dirty;   /* segments whose keys decreased */
    uint32_t dirty_len;
    uint64_t *dirty_bits[LEVELS_MAX + 1];

    uint64_t **constraints_mask; /* [constraints]: positions that pass every static filter; NULL: not computed yet */
    struct preference_column *preference_sets; /* [preferences] */
    uint8_t *preference_state;                 /* [preferences]: 0 unknown, 1 neutral, 2 has a column */
    uint8_t *dead;                             /* [class]: 1 if no node can take one more pod */
    struct planned_hold **planned_holds;       /* [thing]; NULL until first used */
    uint32_t *fresh; /* [workload]: its last placement in this plan, an index of acts, or NONE */
    struct topology *topologies;
    struct eligible_domains *eligibles;
    struct spread_nodes *spread_nodes;
    struct label_column *labels;
    const struct typical_pods *typical;                 /* from the policy; NULL: from the snapshot's workloads */
    struct fragmentation_cache *fragmentation_cache;    /* owned by fragmentation.c */
    const struct gpu_prices *gpu_prices;                /* NULL: no GPU cost score, or no pod requests GPUs */
    struct gpu_cost_rows *gpu_cost;                     /* owned by gpu_cost.c, set with gpu_prices */
    struct gpu_request_count_table *gpu_request_counts; /* owned by score/gpu_clustering.c */
    /* largest capacity of any node: GPUs in milli, then the profile's resources */
    int64_t largest[1 + PROFILE_RESOURCES_MAX];

    struct profile_view *views; /* owned by profile_view.c; NULL: there is one profile */
    uint32_t views_len, view;
    VEC(uint32_t) changed; /* with views: positions with changes, in order */

    struct topology_counts *topology_counts_cache; /* owned by topology_counts.c */
    uint32_t revocations;                          /* how often actions were revoked or moved */
    VEC(struct plan_act) acts;
    VEC(uint64_t) waits;
    uint64_t searches, opened;
};

void cycle_init(struct cycle *c, const struct berth_snapshot *s, const struct profile *p, struct arena *arena,
                struct arena *scratch);

/* Takes the requests of one pod of the class from the node (sign 1), or gives them back (sign -1). `gpus` are the
 * devices. With `later`, only the later book changes (a reserved pod). */
void cycle_take(struct cycle *c, const struct class *k, uint32_t position, uint64_t gpus, bool later, int sign);
/* Frees the resources of a stopping instance in the later book. */
void cycle_stop(struct cycle *c, const struct instance *i);
/* Frees the resources of a reserved instance that is dropped; or takes them at once, when it is promoted. */
void cycle_unreserve(struct cycle *c, const struct instance *i);
void cycle_promote(struct cycle *c, const struct instance *i);
/* Frees the resources of an instance at once: its node has fenced it. */
void cycle_lose(struct cycle *c, const struct instance *i);
/* Takes attachments of volumes on a node (amount below 0), or gives them back. */
void cycle_shift(struct cycle *c, uint32_t resource, uint32_t position, int64_t amount);
/* Makes the keys of coarse entries exact where resources were taken since the last call. */
void cycle_refresh(struct cycle *c);
/* For profile_view.c: computes keys, their bounds and everything else that follows from the profile; updates the key of
 * a node after its free resources changed. */
void cycle_profile_begin(struct cycle *c);
void cycle_key_changed(struct cycle *c, uint32_t position);
/* Makes the columns that the class needs exact in the bounds of a segment and of the entries above it. */
void cycle_tighten(struct cycle *c, const struct class *k, uint32_t segment);

const struct topology *cycle_topology(struct cycle *c, sym key);
/* Returns the value of a label on each node, MAP_NONE where it is missing. */
const sym *cycle_labels(struct cycle *c, sym key);

/* Returns the column of a resource, now or once all stops are done; NULL where no node has any. */
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
