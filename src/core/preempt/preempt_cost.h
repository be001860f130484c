/* preempt_cost.h - the cost of making room on each node for one more pod of a class.
 *
 * On a node, victim groups are chosen by the lowest tier, then the least work lost, then the youngest, until the pod
 * fits. Then each group that is not needed is reprieved, the most valuable first. Every service keeps its minimum of
 * available pods (preempt_cost.c).
 *
 * Nodes are examined in the order of a lower bound on the cost, which is that of the cheapest victim group alone, and
 * only as long as a node could be the best (preempt_node.c). The costs found for a class and a tier are cached. A node
 * is examined again if a pod was stopped on it, if an attempt was undone there, or if it had room and something was
 * placed on it. Elsewhere later placements can only have raised the cost, so the cheapest node is examined again before
 * it is used.
 */
#pragma once

#include "core/preempt/victims.h"

/* The cost of a preemption. The fields are compared in this order: the fewest pods that break a budget, the lowest
 * tier, the least work lost, the fewest pods, the youngest. */
struct preempt_cost {
    bool known; /* preempt_node.c: the node was examined */
    bool possible;
    bool has_room; /* the pod fits but another filter rejects the node; once its room is taken, victims may be needed */
    uint32_t breaks; /* pods that break a budget */
    uint32_t pods;
    int64_t tier, lost;
    uint64_t id; /* the youngest victim */
};

struct preemptor {
    uint32_t workload;
    const struct class *k;
    struct class_ix class;
    int64_t tier;
    bool quota;         /* its quotas are full as well */
    bool keeps_budgets; /* breaks no budget for it, whatever the policy says */
    uint32_t root;      /* preempt_root_quota */
};

/* Returns below 0 if the first cost is lower. */
int preempt_cost_compare(const struct preempt_cost *a, const struct preempt_cost *b);

/* Returns the root quota of the workload's account if some quota has a guarantee, else NONE. */
uint32_t preempt_root_quota(const struct berth_plan *p, uint32_t workload);

/* Returns the cost on the node. `ret` is NULL, or an array with room for all victim groups of the node, filled with
 * those chosen. */
struct preempt_cost preempt_cost_on_node(struct berth_plan *p, const struct preemptor *a, uint32_t position,
                                         uint32_t *ret, uint32_t *ret_len);

/* Returns the victim groups on the node that may be stopped for the pod, in the order in which they should be. Valid
 * until the scratch arena is rewound. */
uint32_t *preempt_node_groups(struct berth_plan *p, const struct preemptor *a, uint32_t position, uint32_t *ret_len);

/* The costs on all nodes that the class may use; preempt_costs_of returns NULL if preemption is possible on none. Valid
 * until the scratch arena is rewound. */
struct preempt_costs;
struct preempt_costs *preempt_costs_of(struct berth_plan *p, const struct preemptor *a);
/* Returns the cheapest node within the mask, or NONE. */
uint32_t preempt_costs_cheapest(struct berth_plan *p, const struct preemptor *a, struct preempt_costs *h,
                                const uint64_t *mask);
