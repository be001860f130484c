/* gpu_packing.c - prefers a GPU that is already shared, then a free GPU on a node in use, then an empty node.
 *
 * Bound: from the maxima of the GPU columns.
 */
#include "core/score/scores.h"

enum { EMPTY_NODE = SCORE_ONE / 3, USED_NODE = 2 * (SCORE_ONE / 3), SHARED_GPU = SCORE_ONE };

static bool applies(const struct attempt *t)
{
    return t->k->gpu.count > 0;
}

static int32_t packing_score(const struct attempt *t, int64_t part, int64_t used_free)
{
    if (t->k->gpu.milli < BERTH_GPU_MILLI && part >= t->k->gpu.milli)
        return SHARED_GPU;
    return used_free >= t->k->gpu.count ? USED_NODE : EMPTY_NODE;
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    const struct cycle *c = t->c;
    return packing_score(t, c->free[cycle_gpu_column(c, GPU_PART)][p], c->free[cycle_gpu_column(c, GPU_USED_FREE)][p]);
}

static int32_t bound(const struct attempt *t, uint32_t level, uint32_t entry)
{
    const struct cycle *c = t->c;
    const struct key_bounds *b = &c->bounds[level];
    return packing_score(t, b->max[cycle_gpu_column(c, GPU_PART)][entry],
                         b->max[cycle_gpu_column(c, GPU_USED_FREE)][entry]);
}

SCORE_ADD(score_of)

const struct score score_gpu_packing = {
    .name = "gpu_packing",
    .text = "prefers partly used GPUs, then partly used nodes, then empty nodes",
    .when = SCORE_BLOCK,
    .applies = applies,
    .add = add,
    .bound = bound,
};
