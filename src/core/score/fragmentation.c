/* fragmentation.c - prefers the node on which the fewest idle GPUs become useless for typical pods (fragmentation
 * gradient).
 *
 * The score is the sigmoid of the reduction of the node's fragmentation by the placement; see core/gpu/fragmentation.h.
 */
#include "core/gpu/fragmentation.h"
#include "core/score/scores.h"

static bool applies(const struct attempt *t)
{
    return t->c->l->device[t->c->len] > 0;
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    return fragmentation_of(t, p).score;
}

SCORE_ADD(score_of)

const struct score score_fragmentation = {
    .name = "fragmentation",
    .text = "prefers the node on which the fewest idle GPUs become useless for typical pods",
    .when = SCORE_BLOCK,
    .stepped = true,
    .applies = applies,
    .add = add,
};
