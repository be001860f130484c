/* gpu.c - refuses a node on which too few suitable GPUs, or too little of one, are left. */
#include "core/filter/filters.h"
#include "core/gpu.h"

static bool applies(const struct turn *t)
{
    return t->k->gpu.count > 0;
}

static void mask(const struct turn *t, struct range blocks, uint64_t *bits)
{
    EACH_NODE(p, blocks, bits)
    if (!gpu_node_fits(t, p))
        NODE_REFUSES(p, blocks, bits);
}

const struct filter filter_gpu = {
    .name = "gpu",
    .text = "has enough of its GPUs free",
    .reason = REASON_GPU,
    .when = FILTER_BLOCK,
    .applies = applies,
    .mask = mask,
};
