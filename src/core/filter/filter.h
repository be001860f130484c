/* filter.h - filters: which nodes may take a pod, and why the others may not.
 *
 * A filter is pure: the same placement attempt and nodes give the same bits in the daemon, in the simulator and in a
 * replay. Filters work on columns, a range of blocks at a time; `berth why` runs each filter alone and counts.
 *
 *     STATIC  depends on the constraints of the class and the nodes: computed once per set of constraints and plan;
 *     TURN    depends on what instances hold: computed once per placement attempt, and after each of its placements;
 *     BLOCK   changes with every placement of the plan: computed whenever a block is opened.
 *
 * To add one: filter/<name>.c, filter/<name>_test.c and a row in filter/table.c.
 */
#pragma once

#include "core/explain/reason.h"
#include "core/snapshot/snapshot.h"

struct attempt;

enum filter_when { FILTER_STATIC, FILTER_ATTEMPT, FILTER_BLOCK };

/* The blocks from .. to-1; bits[0] is the word of block `from`. */
struct block_range {
    uint32_t from, to;
};

struct filter {
    const char *name; /* stable: users write it in profiles and read it in `berth why` */
    const char *text;
    enum reason reason; /* the reason reported for refused nodes */
    enum filter_when when;
    bool always;         /* in every profile: without it a plan could place pods on missing resources */
    bool by_constraints; /* BLOCK: depends only on free resources and the constraints of the class */
    bool timed;          /* depends on how long pods run: refusals are reported for the workload, not counted by node */
    /* Returns whether the filter could refuse any node. */
    bool (*applies)(const struct attempt *t);
    /* Clears the bit of every refused node in the range. */
    void (*mask)(const struct attempt *t, struct block_range blocks, uint64_t *bits);
    /* For filters with several aspects (such as resources): their number, the refusals of one aspect alone, and its
     * name. NULL: a single aspect without a name. */
    uint32_t (*aspects)(const struct attempt *t);
    void (*mask_aspect)(const struct attempt *t, uint32_t aspect, struct block_range blocks, uint64_t *bits);
    const char *(*aspect_name)(const struct attempt *t, uint32_t aspect);
};

/* All filters, the cheapest first. */
extern const struct filter *const filter_rows[];
extern const size_t filters_len;
