/* gpu_worth.c - prefers the node with the lowest GPU cost: the pod takes the least from what typical pods could use of
 * the idle GPUs.
 *
 * The score is 1 / (1 + cost), with the cost of core/gpu/gpu_cost.h; it is one for no cost, and for a node without
 * GPUs. If some workload requests GPUs, this score replaces least and most allocated on nodes with GPUs, because pods
 * that are spread over these nodes leave no room for large ones. Bound: for segments, from gpu_cost.h; for coarser
 * entries a bound would cost more than opening them.
 */
#include "core/gpu/gpu_cost.h"
#include "core/score/scores.h"

static bool applies(const struct attempt *t)
{
    return t->c->gpu_prices != NULL;
}

static int32_t score_at(const struct attempt *t, double cost)
{
    return score_from(t, 1 / (1 + (cost > 0 ? cost : 0)));
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    return score_at(t, gpu_cost_of(t, p).cost);
}

static int32_t bound(const struct attempt *t, uint32_t level, uint32_t entry)
{
    if (level > 1 || t->later || !gpu_cost_applies(t->c, level, entry))
        return SCORE_ONE;
    return score_at(t, gpu_cost_min(t, entry));
}

SCORE_ADD(score_of)

const struct score score_gpu_worth = {
    .name = "gpu_worth",
    .text = "prefers the node where the pod least reduces the value of idle GPUs for typical pods",
    .when = SCORE_BLOCK,
    .gpus_only = true,
    .applies = applies,
    .add = add,
    .bound = bound,
};
