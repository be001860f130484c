/* fragmentation.c - prefers the node on which the fewest idle GPUs become useless for typical pods (fragmentation gradient).
 *
 * The sigmoid of what the placement takes off the node's fragmentation; see core/fragmentation.h.
 */
#include "core/fragmentation.h"
#include "base/math.h"
#include "core/score/scores.h"

static bool applies(const struct turn *t)
{
    return t->c->l->device[t->c->len] > 0;
}

static int32_t score_of(const struct turn *t, uint32_t p)
{
    return score_from(math_sigmoid(fragmentation_gain(t, p) / 1000));
}

static void add(const struct turn *t, uint32_t block, uint64_t bits, int32_t weight, int32_t out[BLOCK])
{
    BITS_EACH (i, bits)
        out[i] += weight * score_of(t, block * BLOCK + (uint32_t)i);
}

const struct score score_fragmentation = {
    .name = "fragmentation",
    .text = "prefers the node on which the fewest idle GPUs become useless for typical pods",
    .when = SCORE_BLOCK,
    .applies = applies,
    .add = add,
};
