/* filter.h - which nodes may take a pod, and why not the others?
 *
 * A filter is pure: the same turn and nodes give the same bits in the daemon, in the simulator and in a replay. It works
 * on columns, a range of blocks at a time; `berth why` runs each filter alone and counts.
 *   STATIC  depends on the rules of the class and the nodes: once per rules and plan;
 *   TURN    depends on who holds what: once per turn, and again after each placement of the turn;
 *   BLOCK   changes as the plan places: whenever a block is opened.
 *
 * To add one: filter/<name>.c, filter/<name>_test.c and a row in filter/table.c.
 */
#pragma once

#include "core/explain/reason.h"
#include "core/snapshot/snapshot.h"

struct turn;

enum filter_when { FILTER_STATIC, FILTER_TURN, FILTER_BLOCK };

/* Blocks from .. to-1; bits[0] is the word of block `from`. */
struct range {
    uint32_t from, to;
};

struct filter {
    const char *name; /* stable: users write it in profiles and read it in `berth why` */
    const char *text;
    enum reason reason; /* what a refusal means */
    enum filter_when when;
    bool always;   /* in every profile: without it a plan could promise what is not there */
    bool by_rules; /* of BLOCK: what is free and the rules decide, nothing else of the class */
    bool timed;    /* depends on how long the pods run: refusals are told of the workload, not counted by node */
    /* Could it refuse any node at all? */
    bool (*applies)(const struct turn *t);
    /* Clears the bit of every node in the range that refuses. */
    void (*mask)(const struct turn *t, struct range blocks, uint64_t *bits);
    /* For filters that refuse for several things (one resource or another): how many, each alone, and its name. NULL:
     * one thing without a name. */
    uint32_t (*aspects)(const struct turn *t);
    void (*mask_aspect)(const struct turn *t, uint32_t aspect, struct range blocks, uint64_t *bits);
    const char *(*aspect_name)(const struct turn *t, uint32_t aspect);
};

/* Every filter, cheapest first. */
extern const struct filter *const filter_rows[];
extern const size_t filters_len;
