/* layout.h - the order of nodes in columns.
 *
 * The planner works with positions, not slots: nodes sorted by rank, hardware kind, zone, rack and id, so that a block
 * of 64 neighbours is as homogeneous as the cluster allows and a bound over the block is tight. A new layout is made
 * when nodes are added, removed or changed (never for a mere change of state); snapshots made in between share it.
 * Immutable; O(nodes log nodes) to make.
 */
#pragma once

#include "core/model/cluster.h"

enum { BLOCK = 64, FANOUT = 8, LEVELS_MAX = 6 };

/* Level 1 has the segments: neighbours of one hardware kind within one block of 64 nodes. An entry of level l+1 covers
 * FANOUT entries of level l. */
struct layout_level {
    uint32_t len;
    uint64_t **inverse_min, **inverse_max; /* [resource][entry]: over the nodes covered */
    uint32_t *kind;                        /* [entry]: kind of the covered nodes if they are of one kind, else NONE */
    uint32_t *first;                       /* [entry]: the first position covered */
};

struct layout {
    atomic_uint refs;
    struct arena arena;
    uint32_t len; /* nodes */
    uint32_t blocks;
    uint32_t resources;
    const struct node_body **body; /* [position], referenced */
    uint32_t *slot;                /* [position] */
    uint32_t *position;            /* [slot], NONE */
    uint32_t slots;
    int64_t **capacity;  /* [resource][position]; NULL: no node has any */
    uint64_t **inverse;  /* [resource][position]: 2^64 / capacity */
    int64_t *real[USES]; /* [position]: allocatable, without over-commit */
    uint32_t *device;    /* [position]: index of its first device; [len] is the number of devices */
    const struct device *devices;
    sym *id, *zone, *rack, *domain, *arch; /* [position] */
    uint64_t *tainted;                     /* a bit per position with a taint */
    /* [position]: dense number; nodes with equal cpu, memory, pods and devices share one */
    uint32_t *kind;
    uint32_t *segment;       /* [segment]: its first position; [segments] is len */
    uint32_t *block_segment; /* [block]: its first segment; [blocks] is segments */
    uint32_t segments;       /* = level[1].len */
    bool soft_taints;        /* some node has a PREFER_NO_SCHEDULE taint */
    uint32_t levels;         /* levels in use: 1 .. levels */
    struct layout_level level[LEVELS_MAX + 1];
};

struct layout *layout_new(const struct berth_cluster *c);
struct layout *layout_ref(struct layout *l);
void layout_unref(struct layout *l);

/* Returns what an entry covers: positions for level 1, else entries of the level below. */
struct span {
    uint32_t from, to;
};
static inline struct span layout_below(const struct layout *l, uint32_t level, uint32_t entry)
{
    if (level == 1)
        return (struct span){l->segment[entry], l->segment[entry + 1]};
    uint32_t to = (entry + 1) * FANOUT, len = l->level[level - 1].len;
    return (struct span){entry * FANOUT, to < len ? to : len};
}

/* Returns the lanes of a block that have a node. */
static inline uint64_t layout_block_bits(const struct layout *l, uint32_t block)
{
    return (block + 1) * BLOCK <= l->len ? UINT64_MAX : UINT64_MAX >> (BLOCK - l->len % BLOCK);
}

static inline uint32_t layout_segment(const struct layout *l, uint32_t position)
{
    uint32_t s = l->block_segment[position / BLOCK];
    while (l->segment[s + 1] <= position)
        s++;
    return s;
}

/* Returns the nodes of a segment as bits of its block. */
static inline uint64_t layout_lanes(const struct layout *l, uint32_t segment)
{
    uint32_t first = l->segment[segment], len = l->segment[segment + 1] - first;
    return (len == BLOCK ? UINT64_MAX : ((uint64_t)1 << len) - 1) << first % BLOCK;
}

/* Returns amount * 2^SHARE_BITS / capacity, rounded down and clamped to 0 .. 2^SHARE_BITS. A request for more than the
 * whole capacity does not fit anyway. */
enum { SHARE_BITS = 16 };
static inline int32_t share_of(int64_t amount, uint64_t inverse)
{
    if (amount <= 0)
        return 0;
    unsigned __int128 share = ((unsigned __int128)(uint64_t)amount * inverse) >> (64 - SHARE_BITS);
    return share < (1 << SHARE_BITS) ? (int32_t)share : 1 << SHARE_BITS;
}
