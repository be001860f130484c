/* gpu_cost.h - GPU cost: how much of the value of a node's idle GPUs a pod would use up.
 *
 * The value of a node is the minimum, over the steps of gpu_prices.h, of what its cpu (or memory) costs at the step's
 * price plus what its GPUs earn after that. It is about the number of GPUs that pods like those seen so far can still
 * use there. A pod costs the difference that it makes, plus, for each GPU that only some pods may use, a part of the
 * GPU's scarcity. Between places of equal cost, fuller devices and nodes are cheaper, by an amount too small to decide
 * anything else.
 *
 * For a share, the device is part of the result: of the devices that could hold it, the cheapest is picked, the first
 * of equal ones.
 *
 * For each node with GPUs a row is kept: the distance of each step from the minimum. A pod costs the maximum, over the
 * steps, of what it takes there less that distance; so the minimum distances over many nodes bound its cost on any of
 * them. Rows and bounds are computed on demand, and again after a change on the node.
 */
#pragma once

#include "core/search/attempt.h"

/* The cost of one pod of the placement attempt on this node, which passes the filters. */
struct gpu_cost {
    double cost;     /* in GPUs */
    uint32_t device; /* for a share: index of the device on the node */
};
struct gpu_cost gpu_cost_of(const struct attempt *t, uint32_t position);

/* Returns a lower bound on the cost of a pod of the placement attempt on the nodes of this segment, which has GPUs. It
 * is exact in floating point: the same additions in the same order, of values that are not larger. */
double gpu_cost_min(const struct attempt *t, uint32_t segment);

/* Makes the prices if the profile uses GPU cost and some workload requests GPUs. */
void gpu_cost_begin(struct cycle *c);
/* Call when free resources of the node have changed. */
void gpu_cost_changed(struct cycle *c, uint32_t position);

/* Return whether nodes under this entry, or this node, are scored by GPU cost instead of by allocation. */
static inline bool gpu_cost_applies(const struct cycle *c, uint32_t level, uint32_t entry)
{
    const struct layout_level *l = &c->l->level[level];
    uint32_t to = entry + 1 < l->len ? l->first[entry + 1] : c->l->len;
    return c->gpu_prices && c->l->device[to] > c->l->device[l->first[entry]];
}
static inline bool gpu_cost_applies_to_node(const struct cycle *c, uint32_t position)
{
    return c->gpu_prices && c->l->device[position + 1] > c->l->device[position];
}
