/* least_allocated.c - prefers the node with the larger share left.
 *
 * Node part: the share of each resource that is free. Shape part: the share the pod takes. Bound: exact within a hardware
 * kind, which is how the layout sorts. All of it is in the key; see cycle.c.
 */
#include "core/score/scores.h"

const struct score score_least_allocated = {
    .name = "least_allocated",
    .text = "prefers the node with the larger share left of the resources",
    .when = SCORE_NODE,
};
