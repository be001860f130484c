/* preempt_cost.h - what it would cost to make room for one more pod of a class on each node.
 *
 * Of the parties on a node those of the lowest tier, then with the least work lost, then the youngest, until the pod fits; then
 * each that is not needed stays, the most valuable first. No service is left with fewer than its minimum (preempt_cost.c).
 *
 * Nodes are looked at in the order of the least harm that could be done there, by the cheapest party alone, and only as far as one
 * could be the best. What was found for a class and a tier is remembered, and looked at again where somebody was stopped or a
 * try was taken back, and where there was room that something was placed on; else what was placed meanwhile can only have made
 * it dearer, so the cheapest is looked at again before it is used (preempt_node.c).
 */
#pragma once

#include "core/preempt/victims.h"

/* The least harm comes first: the fewest that break a budget, the lowest tier, the least work, the fewest pods. */
struct harm {
    bool known; /* in preempt_node.c: it was looked at */
    bool possible;
    bool
        has_room; /* there is room as it is, and something else refuses it: once that is taken, others may be in the way */
    uint32_t breaks; /* pods that break a budget */
    uint32_t pods;
    int64_t tier, lost;
    uint64_t id; /* of the youngest */
};

struct harm_asker {
    uint32_t workload;
    const struct class *k;
    struct class_ix class;
    int64_t tier;
    bool quota;         /* its quotas are full as well */
    bool keeps_budgets; /* none is broken for it, whatever the policy says */
    uint32_t root;      /* harm_root */
};

/* Below 0: the first is less harm. */
int harm_compare(const struct harm *a, const struct harm *b);

/* The root of its account, where guarantees divide what there is; or NONE. */
uint32_t harm_root(const struct berth_plan *p, uint32_t workload);

/* What it costs on the node. `ret`: room for all parties of the node, filled with those that go; or NULL. */
struct harm harm_at(struct berth_plan *p, const struct harm_asker *a, uint32_t position, uint32_t *ret,
                    uint32_t *ret_len);

/* The parties on the node that may go for it, in the order in which they should. Valid until the scratch is given back. */
uint32_t *harm_parties(struct berth_plan *p, const struct harm_asker *a, uint32_t position, uint32_t *ret_len);

/* Costs on all nodes that the class may use, NULL if it cannot be had anywhere. Valid until the scratch is given back. */
struct harms;
struct harms *harms_of(struct berth_plan *p, const struct harm_asker *a);
/* The cheapest node within the mask, or NONE. */
uint32_t harms_best(struct berth_plan *p, const struct harm_asker *a, struct harms *h, const uint64_t *mask);
