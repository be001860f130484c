/* most_allocated.c - prefers the node with the smaller share left.
 *
 * The mirror image of least_allocated.c, and as cheap.
 */
#include "core/score/scores.h"

const struct score score_most_allocated = {
    .name = "most_allocated",
    .text = "prefers the node with the smaller share left of the resources",
    .when = SCORE_NODE,
};
