/* gpu_cost.h - what a node's idle GPUs are still worth, and what a pod there would cost of it.
 *
 * The worth of a node is the least, over the steps of gpu_prices.h, of what its cpu (or memory) costs at the step's price and its
 * GPUs earn after that: about as many GPUs as pods like those which have come can still hold there. A pod costs the
 * difference it makes, and for each GPU that only some pods may use a part of its scarcity. Of places that cost the same the
 * fuller ones are cheaper, by so little that it decides nothing else.
 *
 * Where a share would go decides with the cost: of the devices that could take it the cheapest is picked, the first of equal
 * ones.
 *
 * For each node with GPUs a row is kept: by how much each step is above the least. A pod costs the most, over the steps, of
 * what it takes there less that distance, so the least distances of many nodes bound what it costs on any of them. Rows and
 * bounds are made when they are asked for, and again once something has changed there.
 */
#pragma once

#include "core/search/attempt.h"

/* One pod of the turn on this node, which passes the filters. */
struct worth {
    double cost;     /* in GPUs */
    uint32_t device; /* of a share, counted from the node's first */
};
struct worth worth_of(const struct turn *t, uint32_t position);

/* On no node of this segment, which has GPUs, does a pod of the turn cost less: the same additions in the same order, of what
 * is no more. */
double worth_least(const struct turn *t, uint32_t segment);

/* Makes the market, where the profile goes by worth and somebody asks for GPUs. */
void worth_begin(struct cycle *c);
/* What is free on the node has changed. */
void worth_changed(struct cycle *c, uint32_t position);

/* Are nodes under this entry taken by worth, and not by how much of them is allocated? */
static inline bool worth_rules(const struct cycle *c, uint32_t level, uint32_t entry)
{
    const struct level *l = &c->l->level[level];
    uint32_t to = entry + 1 < l->len ? l->first[entry + 1] : c->l->len;
    return c->market && c->l->device[to] > c->l->device[l->first[entry]];
}
static inline bool worth_rules_node(const struct cycle *c, uint32_t position)
{
    return c->market && c->l->device[position + 1] > c->l->device[position];
}
