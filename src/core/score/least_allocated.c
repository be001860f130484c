/* least_allocated.c - prefers the node with the larger free share.
 *
 * Node part: the free share of each resource. Shape part: the share that the pod takes. Bound: exact within a hardware
 * kind, by which the layout is sorted. All of it is in the key; see core/plan/cycle.c.
 */
#include "core/score/scores.h"

const struct score score_least_allocated = {
    .name = "least_allocated",
    .text = "prefers the node with the larger free share of the resources",
    .when = SCORE_NODE,
};
