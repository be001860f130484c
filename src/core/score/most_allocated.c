/* most_allocated.c - prefers the node with the smaller free share.
 *
 * The opposite of least_allocated.c, at the same cost.
 */
#include "core/score/scores.h"

const struct score score_most_allocated = {
    .name = "most_allocated",
    .text = "prefers the node with the smaller free share of the resources",
    .when = SCORE_NODE,
};
