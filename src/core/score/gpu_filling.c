/* gpu_filling.c - prefers the fullest GPU that is already shared, then free GPUs on a node in use, then the smallest
 * empty node.
 *
 * The score in hundredths is, for a shared GPU, 100 less one for each free tenth of it; for a node in use, 50 less the
 * number of requested GPUs, at least 33; for an empty node, 33 less its number of GPUs, at least 0. After the GPU
 * packing of "Beware of Fragmentation" (ATC'23). gpu_packing orders the three cases in the same way, but makes no
 * difference within a case. Bound: from the maxima of the GPU columns.
 */
#include "core/gpu/gpu.h"
#include "core/score/scores.h"

enum { HUNDRED = 100, SHARED_GPU = 100, USED_NODE = 50, EMPTY_NODE = 33, TENTH = BERTH_GPU_MILLI / 10 };

static bool applies(const struct attempt *t)
{
    return t->k->gpu.count > 0;
}

/* Returns the free thousandths of the partly used GPU that a share would get; 0: it would get a free GPU. */
static int32_t shared_milli(const struct attempt *t, uint32_t p)
{
    const struct layout *l = t->c->l;
    int32_t least = BERTH_GPU_MILLI;
    for (uint32_t d = l->device[p]; t->k->gpu.milli < BERTH_GPU_MILLI && d < l->device[p + 1]; d++) {
        int32_t milli = gpu_milli_left(t, d);
        if (milli < least && gpu_device_fits(t, d))
            least = milli;
    }
    return least < BERTH_GPU_MILLI ? least : 0;
}

static int32_t used_node(const struct attempt *t)
{
    int32_t score = USED_NODE - (int32_t)t->k->gpu.count;
    return score > EMPTY_NODE ? score : EMPTY_NODE;
}

static int32_t empty_node(int32_t gpus)
{
    return gpus < EMPTY_NODE ? EMPTY_NODE - gpus : 0;
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    const struct cycle *c = t->c;
    int32_t shared = shared_milli(t, p), score;
    if (shared)
        score = SHARED_GPU - shared / TENTH;
    else if (c->free[cycle_gpu_column(c, GPU_USED_FREE)][p] >= t->k->gpu.count)
        score = used_node(t);
    else
        score = empty_node((int32_t)(c->l->device[p + 1] - c->l->device[p]));
    return score_ratio(t, score, HUNDRED);
}

static int32_t bound(const struct attempt *t, uint32_t level, uint32_t entry)
{
    const struct cycle *c = t->c;
    const struct key_bounds *b = &c->bounds[level];
    int32_t score = empty_node((int32_t)t->k->gpu.count);
    if (t->k->gpu.milli < BERTH_GPU_MILLI && b->max[cycle_gpu_column(c, GPU_PART)][entry] >= t->k->gpu.milli)
        score = SHARED_GPU;
    else if (b->max[cycle_gpu_column(c, GPU_USED_FREE)][entry] >= t->k->gpu.count)
        score = used_node(t);
    return score_ratio(t, score, HUNDRED);
}

SCORE_ADD(score_of)

const struct score score_gpu_filling = {
    .name = "gpu_filling",
    .text = "prefers the fullest partly used GPU, then partly used nodes, then the smallest empty node",
    .when = SCORE_BLOCK,
    .stepped = true,
    .applies = applies,
    .add = add,
    .bound = bound,
};
